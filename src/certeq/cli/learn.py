"""``certeq learn``: from a file of logged decisions to a policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certeq.errors import InputError

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
    regularizer: Annotated[str, typer.Option(help="A regularizer by name; see the README for the list.")] = "",
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
    seed: Annotated[int, typer.Option(help="For whatever is random (k-means, permutations).")] = 0,
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
    from certeq.regularizers import DEFAULT

    paths = {name: out / name for name in ("policy.json", "policy.csv", "summary.json")}
    output.check_free(paths.values(), force=force)
    console = show.console()
    source = data
    if source is None:
        source = examples.path()
        console.print("[bold]The bundled example[/bold]: a simulated trial of 50 tumor patients, treated at random.")
    batch = read(
        source,
        state=_list(state),
        action=action,
        reward=False if reward_table is not None and reward is None else reward,
        next_state=_list(next_state),
        episode=episode,
        time=time,
        done=done,
        truncated=truncated,
        bins=_bins(bins or []),
        gaps=gaps,
        layout=layout,
        max_states=max_states,
        rng=seed,
    )
    learned = run(
        batch,
        reward=None if reward_table is None else known_rewards(batch, reward_table),
        discount=discount,
        regularizer=regularizer or DEFAULT,
        unvisited=unvisited,
        min_visits=min_visits,
        reward_by=reward_by,
        reward_pool=reward_pool,
        horizon=horizon,
        **dict(_setting(text) for text in setting or []),
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
    console.print(f"Written: {', '.join(str(path) for path in paths.values())}")


def policy_csv(learned: Learned) -> str:
    """The policy as a table, one line per state (and decision, with a horizon)."""
    import numpy as np

    from certeq.output import csv_text

    policy = learned.policy
    weight = np.broadcast_to(learned.shrinkage.weight, policy.visits.shape)
    actions, values = np.atleast_2d(policy.actions), np.atleast_2d(learned.plan.values)
    runner, gap = (np.atleast_2d(part) for part in policy.runner_up())
    axes, states = policy.recipe.parts()
    header = [*axes, "advised", "visits", "weight", "value", "runner_up", "gap"]
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


def _list(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",")]


def _bins(said: list[str]) -> dict[str, str] | int | None:
    if len(said) == 1 and said[0].isdigit():
        return int(said[0])
    return dict(
        _pair(text, "--bins", "a number, or COLUMN=quantile:4, =edges:1,5, =kmeans:9, =labels") for text in said
    )


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise InputError(f"{option} takes {example}; got {text!r}.")
    return name.strip(), value.strip()


def _setting(text: str) -> tuple[str, Any]:
    name, value = _pair(text, "--setting", "NAME=VALUE, for example strength=0.3")
    try:
        return name, float(value)
    except ValueError:
        return name, value
