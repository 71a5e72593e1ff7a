"""Known rewards: a table that says what each pair earns."""

from __future__ import annotations

from typing import Any

import numpy as np

from certeq.arrays import Floats
from certeq.batch import Batch
from certeq.errors import InputError, nearest
from certeq.reading.tables import open_table


def known_rewards(batch: Batch, source: Any, *, reward: str = "reward") -> Floats:
    """Read rewards ``(S, A)`` of the pairs of a batch from a table with its state columns, its action and a reward.

    Every pair that was tried needs a line. A pair without one that was never tried gets the mean of its state's lines,
    or of all. Lines about states or actions that do not occur are left out.
    """
    if batch.recipe is None or batch.action_recipe is None:
        raise InputError("A reward table needs a batch that was read from a table, since it goes by the same columns.")
    table = open_table(source)
    if reward not in table:
        raise InputError(
            f"The reward table has no column {reward!r}.{nearest(reward, table)} It has: {', '.join(table)}."
        )
    numbers = table[reward].numbers()
    state, action = batch.recipe.encode(table), batch.action_recipe.encode(table)
    known = (state >= 0) & (action >= 0)
    bad = known & ~np.isfinite(numbers)
    if bad.any():
        raise InputError(f"Row {int(np.argmax(bad)) + 1} of the reward table has no finite {reward!r}.")
    rewards = np.full((batch.n_states, batch.n_actions), np.nan)
    pair = state[known] * batch.n_actions + action[known]
    if len(np.unique(pair)) < len(pair):
        twice = int(np.bincount(pair).argmax())
        raise InputError(f"The reward table has more than one line for {_pair(batch, twice)}.")
    rewards.ravel()[pair] = numbers[known]
    tried = np.bincount(batch.state * batch.n_actions + batch.action, minlength=rewards.size)
    lacking = np.flatnonzero((tried > 0) & np.isnan(rewards.ravel()))
    if len(lacking):
        more = f" ({len(lacking)} pairs in all)" if len(lacking) > 1 else ""
        raise InputError(f"The reward table has no line for {_pair(batch, int(lacking[0]))}, which was tried{more}.")
    lines = np.isfinite(rewards)
    total = np.where(lines, rewards, 0.0)
    by_state = total.sum(axis=1, keepdims=True) / np.maximum(lines.sum(axis=1, keepdims=True), 1)
    overall = total.sum() / max(int(lines.sum()), 1)
    stand_in = np.where(lines.any(axis=1, keepdims=True), by_state, overall)
    return np.asarray(np.where(lines, rewards, stand_in))


def _pair(batch: Batch, pair: int) -> str:
    state, action = divmod(pair, batch.n_actions)
    return f"state {batch.state_names[state]!r}, action {batch.action_names[action]!r}"
