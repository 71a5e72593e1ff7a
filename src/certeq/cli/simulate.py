"""``certeq simulate``: rows from an environment of the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certeq.base.errors import InputError
from certeq.cli import options

if TYPE_CHECKING:
    from certeq.base.arrays import Floats
    from certeq.model.mdp import MDP


def simulate(
    environment: Annotated[str, typer.Argument(help="An environment by name, such as river_swim or tumor.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="PATH", help="Where to write the rows (CSV).")] = Path(
        "rows.csv"
    ),
    episodes: Annotated[int, typer.Option(metavar="NUMBER", help="How many episodes.")] = 50,
    length: Annotated[int, typer.Option(metavar="NUMBER", help="Maximum number of decisions in an episode.")] = 20,
    behavior: Annotated[
        str, typer.Option(metavar="TEXT", help="random, or the name of an action to always take.")
    ] = "random",
    policy: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Follow a policy.json (at random where it advises nothing).")
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the environment, NAME=VALUE.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Same seed, same world and rows.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
) -> None:
    """Write a batch of simulated decisions: episode, time, state, action, reward, next_state, terminated."""
    import numpy as np

    from certeq.base import texts, writing
    from certeq.base.arrays import whole
    from certeq.base.display import several
    from certeq.base.limits import most, way_out
    from certeq.worlds import environment as build
    from certeq.worlds import sampling, settings_of

    writing.check_free([out], force=force)
    whole("--seed", seed, 0)
    chosen = options.settings(setting or [])
    if "rng" in settings_of(environment):
        chosen = {"rng": seed} | chosen  # a random world is fixed by the seed as well
    try:
        mdp = build(environment, **chosen)
    except InputError:
        raise
    except (MemoryError, ValueError, OverflowError) as error:  # of NumPy, about arrays beyond all measure
        raise InputError(f"A world with these settings cannot be built: {error}.") from None
    if mdp.batch:
        raise InputError("simulate takes one world at a time; leave the setting size out.")
    if policy is not None:
        probabilities = follow(policy, mdp)
    elif behavior == "random":
        probabilities = np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions)
    elif behavior in mdp.action_names:
        probabilities = np.tile(np.array(mdp.action_names) == behavior, (mdp.n_states, 1)).astype(float)
    else:
        raise InputError(f"--behavior is random or one of {', '.join(mdp.action_names)}; got {behavior!r}.")
    rows = whole("--episodes", episodes, 1) * whole("--length", length, 1)
    if rows > most("rows"):
        raise InputError(
            f"{episodes:,} episodes of up to {length:,} decisions make more than {most('rows'):,} rows. Take fewer, or "
            f"{way_out('rows')}."
        )
    batch = sampling.trajectories(mdp, episodes, length, behavior=probabilities, rng=seed)
    reward = batch.reward if batch.reward is not None else np.zeros(len(batch))
    lines = [
        (e, t, mdp.state_names[s], mdp.action_names[a], r, mdp.state_names[n] if n >= 0 else None, n < 0)
        for e, t, s, a, r, n in zip(
            np.asarray(batch.episode).tolist(),
            np.asarray(batch.time).tolist(),
            batch.state.tolist(),
            batch.action.tolist(),
            reward.tolist(),
            batch.next_state.tolist(),
            strict=True,
        )
    ]
    header = ("episode", "time", "state", "action", "reward", "next_state", "terminated")
    writing.write_files({out: texts.csv_text(header, lines)}, force=force, last=True)
    typer.echo(f"{several(len(lines), 'row')} of {environment}, {several(episodes, 'episode')}. Written: {out}")


def follow(path: Path, mdp: MDP) -> Floats:
    """Behavior ``(S, A)`` of a policy file in an environment; random where the policy is silent."""
    import numpy as np

    from certeq.learning.policy import Policy

    advisor = Policy.load(path)
    strange = sorted(set(advisor.action_names) - set(mdp.action_names))
    if strange:
        there = ", ".join(mdp.action_names)
        raise InputError(f"The policy advises {strange[0]!r}, which is not an action here: {there}.")
    if len(advisor.recipe.column_names) > 1:
        made_of = ", ".join(advisor.recipe.column_names)
        raise InputError(f"The policy's states are made of {made_of}; it can only be followed where states have names.")
    if advisor.horizon is not None:
        raise InputError(f"The policy has a horizon of {advisor.horizon} decisions; only one without can be followed.")
    advised = advisor.act({advisor.recipe.column_names[0]: np.array(mdp.state_names)})
    table = np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions)
    for s, action in enumerate(advised):
        if action is not None:
            table[s] = np.array(mdp.action_names) == action
    return table
