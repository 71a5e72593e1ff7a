"""``certeq learn``: from a file of logged decisions to a policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certeq.cli import options, source

if TYPE_CHECKING:
    from certeq.learned import Learned


def learn(
    data: source.Data = None,
    state: source.State = None,
    action: source.Action = None,
    reward: source.Reward = None,
    next_state: source.NextState = None,
    episode: source.Episode = None,
    time: source.Time = None,
    done: source.Done = None,
    truncated: source.Truncated = None,
    bins: source.Bins = None,
    gaps: source.Gaps = "error",
    layout: source.Layout = "auto",
    max_states: source.MaxStates = 50_000,
    discount: source.Discount = 0.99,
    regularizer: Annotated[
        str,
        typer.Option(help="By name: evidence unless said; the README lists them.", show_default=False),
    ] = "",
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the regularizer, NAME=VALUE.")] = None,
    unvisited: source.Unvisited = "exclude",
    min_visits: source.MinVisits = 1,
    reward_by: source.RewardBy = "pair",
    reward_pool: source.RewardPool = "none",
    reward_table: source.RewardTable = None,
    horizon: source.Horizon = None,
    out: source.Out = Path("certeq-out"),
    report: source.Report = True,
    draws: source.Draws = None,
    suppress_below: source.SuppressBelow = 0,
    seed: source.Seed = 0,
    force: source.Force = False,
) -> None:
    """Learn a policy from logged decisions.

    Reads rows (state, action, reward, next state), or rows in order of time for each episode; counts them; regularizes
    what is estimated; plans; and writes policy.json, policy.csv, summary.json and report.html.
    """
    from certeq import output
    from certeq.cli import show
    from certeq.learned import learn as run
    from certeq.reading import known_rewards
    from certeq.regularizers import DEFAULT, check_settings

    names = ("policy.json", "policy.csv", "summary.json", *(["report.html"] if report else []))
    paths = {name: out / name for name in names}
    output.check_free(paths.values(), force=force)
    console = show.console()
    name, chosen = regularizer or DEFAULT, options.settings(setting or [])
    check_settings(name, chosen)
    batch = source.read_rows(
        console,
        data,
        state=state,
        action=action,
        reward=reward,
        next_state=next_state,
        episode=episode,
        time=time,
        done=done,
        truncated=truncated,
        bins=bins,
        gaps=gaps,
        layout=layout,
        max_states=max_states,
        reward_table=reward_table,
        seed=seed,
    )
    learned = run(
        batch,
        reward=None if reward_table is None else known_rewards(batch, reward_table),
        discount=discount,
        regularizer=name,
        unvisited=unvisited,
        min_visits=min_visits,
        reward_by=reward_by,
        reward_pool=reward_pool,
        horizon=horizon,
        **chosen,
    )
    files: dict[Path, str | bytes] = {
        paths["policy.json"]: output.json_text(learned.policy.to_json()),
        paths["policy.csv"]: policy_csv(learned),
        paths["summary.json"]: output.json_text(learned.summary.to_json() | {"seed": seed}),
    }
    if report:
        files[paths["report.html"]] = show.page(learned, draws=draws, seed=seed, suppress_below=suppress_below)
    output.write_files(files, force=force)
    show.summary(console, learned.summary)
    console.print()
    show.policy(console, learned)
    console.print()
    show.alerts(console, learned.summary)
    show.written(console, *paths.values())


def policy_csv(learned: Learned) -> str:
    """The policy as a table, one line per state (and decision, with a horizon)."""
    import numpy as np

    from certeq.output import csv_text

    policy = learned.policy
    weight = np.broadcast_to(learned.shrinkage.weight, policy.visits.shape)
    actions, values = np.atleast_2d(policy.actions), np.atleast_2d(learned.plan.values)
    runner, gap = (np.atleast_2d(part) for part in policy.runner_up())
    axes, states = policy.recipe.parts()
    told = ["advised", "visits", "weight", "value", "runner_up", "gap"]
    header = [*(f"state: {axis}" if axis in (*told, "decision") else axis for axis in axes), *told]
    lines: list[list[Any]] = []
    for t in range(len(actions)):
        for s, state in enumerate(states):
            a, second = int(actions[t, s]), int(runner[t, s])
            advice: list[Any] = [None] * 6
            if a >= 0:
                support = (int(policy.visits[s, a]), round(float(weight[s, a]), 6), float(values[t, s]))
                advice[:4] = policy.action_names[a], *support
            if second >= 0:
                advice[4:] = policy.action_names[second], float(gap[t, s])
            lines.append([*state, *advice] if policy.horizon is None else [t, *state, *advice])
    return csv_text(header if policy.horizon is None else ["decision", *header], lines)
