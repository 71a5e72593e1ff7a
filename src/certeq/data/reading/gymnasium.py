"""Watch a Gymnasium environment for some episodes: rows as if someone had logged them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certeq.base.arrays import Rng, generator, whole
from certeq.base.errors import InputError
from certeq.data.batch import Batch
from certeq.data.reading.batches import make_batch
from certeq.data.reading.frames import Table
from certeq.data.reading.minari import explicit_table
from certeq.data.reading.roles import find_roles
from certeq.data.recipes import MAX_STATES
from certeq.data.request import Request


def rollout(
    env: Any,
    policy: Callable[[Any], Any] | None = None,
    *,
    episodes: int,
    max_steps: int = 1000,
    rng: Rng = None,
    bins: Mapping[str, Any] | int | None = None,
    max_states: int = MAX_STATES,
) -> Batch:
    """Act in an environment, at random or as ``policy(observation)`` says, and give the rows.

    ``env`` is an environment or its Gymnasium name. Observations become the columns ``obs``, or ``obs_0``, ``obs_1``,
    ... where they have parts; ``bins`` says how continuous ones become states.
    """
    n, longest, random = whole("episodes", episodes, 1), whole("max_steps", max_steps, 1), generator(rng)
    world = _make(env) if isinstance(env, str) else env
    world.action_space.seed(int(random.integers(2**31)))
    seed: int | None = int(random.integers(2**31))
    seen = []
    try:
        for _ in range(n):
            seen.append(_episode(world, policy or (lambda _: world.action_space.sample()), longest, seed))
            seed = None  # later episodes go on with the environment's own chance
    finally:
        if isinstance(env, str):
            world.close()
    columns, roles = explicit_table(seen)
    table = Table(columns, len(columns["reward"]))
    return make_batch(table, find_roles(tuple(table), roles), Request(bins=bins, max_states=max_states), rng=random)


def _episode(env: Any, act: Callable[[Any], Any], longest: int, seed: int | None) -> dict[str, NDArray[Any]]:
    observation, _ = env.reset(seed=seed)
    observations, actions, outcomes = [_parts("obs", observation)], [], []
    for _ in range(longest):
        action = act(observation)
        observation, reward, done, truncated, _ = env.step(action)
        observations.append(_parts("obs", observation))
        actions.append(_parts("action", action))
        outcomes.append((float(reward), bool(done), bool(truncated)))
        if done or truncated:
            break
    columns = {name: np.array([step[name] for step in observations]) for name in observations[0]}
    columns |= {name: np.array([step[name] for step in actions]) for name in actions[0]}
    for name, values in zip(("reward", "done", "truncated"), zip(*outcomes, strict=True), strict=True):
        columns[name] = np.array(values)
    return columns


def _parts(name: str, value: Any) -> dict[str, Any]:
    """An observation or action as plain values by name, whatever it is made of."""
    if isinstance(value, Mapping):
        return {key: part for inner, item in value.items() for key, part in _parts(f"{name}_{inner}", item).items()}
    if isinstance(value, tuple | list):
        return {key: part for i, item in enumerate(value) for key, part in _parts(f"{name}_{i}", item).items()}
    if isinstance(value, np.ndarray) and value.ndim:
        return {f"{name}_{i}": item for i, item in enumerate(value.ravel())}
    return {name: value.item() if isinstance(value, np.ndarray | np.generic) else value}


def _make(name: str) -> Any:
    try:
        import gymnasium
    except ModuleNotFoundError:
        raise InputError("Gymnasium environments need Gymnasium: pip install 'certeq[gym]'.") from None
    try:
        return gymnasium.make(name)
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        raise InputError(f"Gymnasium does not know the environment {name!r}: {error}") from None
