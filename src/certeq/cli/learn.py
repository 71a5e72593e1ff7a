"""``certeq learn``: from a file of logged decisions, or from counts of them, to a policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certeq.cli import options, source

if TYPE_CHECKING:
    from certeq.learning.learned import Advised


def learn(
    data: source.DataOrCounts = None,
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
    max_states: source.MaxStates = None,
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
    workers: source.Workers = 1,
    scheduler: source.Scheduler = None,
    seed: source.Seed = 0,
    force: source.Force = False,
) -> None:
    """Learn a policy from logged decisions.

    Reads rows (state, action, reward, next state), or rows in order of time for each episode; counts them; regularizes
    what is estimated; plans; and writes policy.json, policy.csv, summary.json and report.html.

    A folder of Parquet files is counted without being held in memory, as certeq count does it, here or, with
    --scheduler, on a Dask cluster whose workers send counts and never rows. What only rows can tell is then missing in
    the report, with the reason.

    Once a plan that takes long tells how far it is, Ctrl-C keeps what it has by then, with its bound.
    """
    from certeq.base import texts, writing
    from certeq.cli import show
    from certeq.regularizers import DEFAULT, check_settings

    names = ("policy.json", "policy.csv", "summary.json", *(["report.html"] if report else []))
    paths = {name: out / name for name in names}
    writing.check_free(paths.values(), force=force)
    console = show.console()
    name, chosen = regularizer or DEFAULT, options.settings(setting or [])
    check_settings(name, chosen)
    found = source.get(
        console,
        data,
        workers=workers,
        scheduler=scheduler,
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
    with show.Planning() as planning:
        learned = source.learn(
            found,
            reward_table=reward_table,
            discount=discount,
            regularizer=name,
            unvisited=unvisited,
            min_visits=min_visits,
            reward_by=reward_by,
            reward_pool=reward_pool,
            horizon=horizon,
            progress=planning.progress,
            on_interrupt="return",
            **chosen,
        )
        planning.check(learned)
        files: dict[Path, str | bytes] = {
            paths["policy.json"]: learned.policy.to_text(),
            paths["policy.csv"]: policy_csv(learned),
            paths["summary.json"]: texts.json_text(learned.summary.to_json() | {"seed": seed}),
        }
    if learned.interrupted:  # somebody who wants an end does not want all that a report asks
        paths.pop("report.html", None)
    if "report.html" in paths:
        how: dict[str, Any] = {"suppress_below": suppress_below, "workers": workers, "scheduler": scheduler}
        files[paths["report.html"]] = show.page(learned, draws=draws, seed=seed, **how)
    writing.write_files(files, force=force)
    show.summary(console, learned.summary)
    console.print()
    show.policy(console, learned)
    console.print()
    show.alerts(console, learned.summary)
    show.written(console, *paths.values())
    if learned.interrupted:
        console.print("Planning was stopped, and this is what it had by then." + " No report was made." * report)
        raise typer.Exit(130)


def policy_csv(learned: Advised) -> str:
    """The policy as a table, one line per state (and decision, with a horizon)."""
    import numpy as np

    from certeq.base.texts import csv_text

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
