"""``certeq learn``: from a file of logged decisions to a policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certeq.cli import options

if TYPE_CHECKING:
    from certeq.learned import Learned


def learn(
    data: Annotated[
        Path | None,
        typer.Argument(help="CSV, Parquet, Arrow or JSON lines, or a Minari data set. Without it: the bundled trial."),
    ] = None,
    state: Annotated[str | None, typer.Option(help="State column(s), comma-separated.")] = None,
    action: Annotated[str | None, typer.Option(help="Action column.")] = None,
    reward: Annotated[str | None, typer.Option(help="Reward column.")] = None,
    next_state: Annotated[str | None, typer.Option(help="Next-state column(s), comma-separated.")] = None,
    episode: Annotated[str | None, typer.Option(help="Episode (patient, user) column.")] = None,
    time: Annotated[str | None, typer.Option(help="Time column; rows of an episode are sorted by it.")] = None,
    done: Annotated[str | None, typer.Option(help="Column that says that the episode ended for good.")] = None,
    truncated: Annotated[str | None, typer.Option(help="Column that says that watching stopped there.")] = None,
    bins: Annotated[
        list[str] | None,
        typer.Option(help="How columns become states: a number of quantile bins for all, or COLUMN=quantile:4, ..."),
    ] = None,
    gaps: Annotated[str, typer.Option(help="About gaps in time: error, allow, or cut there.")] = "error",
    layout: Annotated[
        str, typer.Option(help="The next state is in the row (explicit), the next row (long), or auto.")
    ] = "auto",
    max_states: Annotated[int, typer.Option(help="More states than this are refused.")] = 50_000,
    discount: Annotated[float, typer.Option(help="Worth of a reward one step later; 1 if episodes surely end.")] = 0.99,
    regularizer: Annotated[
        str,
        typer.Option(help="By name: evidence unless said; the README lists them.", show_default=False),
    ] = "",
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the regularizer, NAME=VALUE.")] = None,
    unvisited: Annotated[
        str,
        typer.Option(help="For pairs without data: exclude, target, uniform, zero, self_loop or average."),
    ] = "exclude",
    min_visits: Annotated[int, typer.Option(help="Visits below which a pair counts as unvisited.")] = 1,
    reward_by: Annotated[str, typer.Option(help="Estimate rewards by pair or by next_state.")] = "pair",
    reward_pool: Annotated[str, typer.Option(help="Pool noisy rewards toward: none, state or overall.")] = "none",
    reward_table: Annotated[
        Path | None, typer.Option(help="Known rewards: a table with the state columns, the action and a reward.")
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Plan for this many decisions instead of for ever.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("certeq-out"),
    seed: Annotated[int, typer.Option(min=0, help="For whatever is random (k-means).")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite results that are there.")] = False,
) -> None:
    """Learn a policy from logged decisions.

    Reads rows (state, action, reward, next state), or rows in order of time for each episode; counts them; regularizes
    what is estimated; plans; and writes policy.json, policy.csv and summary.json.
    """
    from certeq import examples, output
    from certeq.cli import show
    from certeq.learned import learn as run
    from certeq.reading import known_rewards, read
    from certeq.regularizers import DEFAULT, check_settings

    paths = {name: out / name for name in ("policy.json", "policy.csv", "summary.json")}
    output.check_free(paths.values(), force=force)
    console = show.console()
    source = data or examples.path()
    if data is None:
        console.print("[bold]The bundled example[/bold]: a simulated trial of 50 tumor patients, treated at random.")
    name, chosen = regularizer or DEFAULT, options.settings(setting or [])
    check_settings(name, chosen)
    batch = read(
        source,
        state=options.names(state),
        action=action,
        reward=False if reward_table is not None and reward is None else reward,
        next_state=options.names(next_state),
        episode=episode,
        time=time,
        done=done,
        truncated=truncated,
        bins=options.bins(bins or []),
        gaps=gaps,
        layout=layout,
        max_states=max_states,
        rng=seed,
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
    output.write_files(
        {
            paths["policy.json"]: output.json_text(learned.policy.to_json()),
            paths["policy.csv"]: policy_csv(learned),
            paths["summary.json"]: output.json_text(learned.summary.to_json() | {"seed": seed}),
        },
        force=force,
    )
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
