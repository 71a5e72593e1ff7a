"""Known rewards: a table that says what each pair earns."""

from __future__ import annotations

from typing import Any

import numpy as np

from certeq.base.arrays import Floats, Integers
from certeq.base.errors import InputError, nearest
from certeq.data.batch import Batch
from certeq.data.reading.frames import open_table
from certeq.data.recipes import Recipe


def known_rewards(batch: Batch, source: Any, *, reward: str = "reward") -> Floats:
    """Read rewards ``(S, A)`` of the pairs of a batch from a table with its state columns, its action and a reward.

    Every pair that was tried needs a line. A pair without one that was never tried gets the mean of its state's lines,
    or of all. Lines about states or actions that do not occur are left out.
    """
    if batch.recipe is None or batch.action_recipe is None:
        raise InputError("A reward table needs a batch that was read from a table, since it goes by the same columns.")
    tried = np.bincount(batch.state * batch.n_actions + batch.action, minlength=batch.n_states * batch.n_actions)
    return rewards_of_pairs(batch.recipe, batch.action_recipe, tried, source, reward=reward)


def rewards_of_pairs(
    states: Recipe, actions: Recipe, tried: Integers, source: Any, *, reward: str = "reward"
) -> Floats:
    """The same for the states and actions of two recipes, of which ``tried`` says how often each pair occurred."""
    table = open_table(source)
    if reward not in table:
        raise InputError(
            f"The reward table has no column {reward!r}.{nearest(reward, table)} It has: {', '.join(table)}."
        )
    numbers = table[reward].numbers()
    state, action = states.encode(table), actions.encode(table)
    known = (state >= 0) & (action >= 0)
    bad = known & ~np.isfinite(numbers)
    if bad.any():
        raise InputError(f"Row {int(np.argmax(bad)) + 1} of the reward table has no finite {reward!r}.")
    rewards = np.full((states.n_states, actions.n_states), np.nan)
    pair = state[known] * actions.n_states + action[known]
    if len(np.unique(pair)) < len(pair):
        twice = int(np.bincount(pair).argmax())
        raise InputError(f"The reward table has more than one line for {_pair(states, actions, twice)}.")
    rewards.ravel()[pair] = numbers[known]
    lacking = np.flatnonzero((tried.ravel() > 0) & np.isnan(rewards.ravel()))
    if len(lacking):
        more = f" ({len(lacking)} pairs in all)" if len(lacking) > 1 else ""
        lost = _pair(states, actions, int(lacking[0]))
        raise InputError(f"The reward table has no line for {lost}, which was tried{more}.")
    lines = np.isfinite(rewards)
    total = np.where(lines, rewards, 0.0)
    by_state = total.sum(axis=1, keepdims=True) / np.maximum(lines.sum(axis=1, keepdims=True), 1)
    overall = total.sum() / max(int(lines.sum()), 1)
    stand_in = np.where(lines.any(axis=1, keepdims=True), by_state, overall)
    return np.asarray(np.where(lines, rewards, stand_in))


def _pair(states: Recipe, actions: Recipe, pair: int) -> str:
    state, action = divmod(pair, actions.n_states)
    return f"state {states.names[state]!r}, action {actions.names[action]!r}"
