"""Elapsed time: decisions that are not equally far apart, as a semi-Markov model.

With γ the discount for one unit of time, a next decision that comes Δt later counts γ^Δt. The transitions stay those of
the decisions, T_plan = (1 - w)·T_data + w·T_target, so nothing changes for counts and regularizers. What is planned in
is T_plan(s, a, s') times the mean of γ^Δt over the rows of (s, a, s'): rows that sum to less than one, as those of a
discount do, for the planners as they are. Where an outcome was never seen the mean over its pair stands in, and over
all rows where the pair was never seen to go on.

A row's reward counts when it is ``paid``: at the start of its step, in full; at its end, γ^Δt of it; or evenly over it,
(1 - γ^Δt) / (Δt ln 1/γ) of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from certeq.base.arrays import Floats, first
from certeq.base.errors import InputError
from certeq.data.batch import Batch
from certeq.data.counting.tallied import Tallied

if TYPE_CHECKING:
    from certeq.learning.rules import Rules

UNALIKE = "This is worked out for steps that are equally long. To see it, read the rows without duration= (--duration)."
LARGEST = 50_000_000  # numbers of rows that are written out


def fading(batch: Batch, discount: float) -> Floats:
    """Mean of γ^Δt for each state, action and next state, ``(S, A, S)``."""
    assert batch.duration is not None
    S, A, goes_on = batch.n_states, batch.n_actions, ~batch.ended
    if S * A * S > LARGEST:
        raise InputError(
            f"Elapsed time is kept for each state, action and next state, and {S:,} states and {A:,} actions have too "
            "many of them. Use fewer states (coarser bins)."
        )
    pair = (batch.state * A + batch.action)[goes_on]
    counts = discount ** batch.duration[goes_on]
    place, size = pair * S + batch.next_state[goes_on], S * A * S
    often, weight = (np.bincount(place, each, minlength=size).reshape(S, A, S) for each in (None, counts))
    overall = counts.mean() if len(counts) else discount
    tried = often.sum(axis=-1, keepdims=True)
    of_pair = np.where(tried > 0, weight.sum(axis=-1, keepdims=True) / np.maximum(tried, 1), overall)
    return np.where(often > 0, weight / np.maximum(often, 1), of_pair)


def check_alike(batch: Batch | None) -> None:
    """Raise if the steps of these rows have a duration, for whoever takes all of them to count alike."""
    if batch is not None and batch.duration is not None:
        raise InputError(UNALIKE)


def paid(batch: Batch | Tallied, rules: Rules) -> Batch | Tallied:
    """The rows with rewards as they count when they are paid, and the words that tell it."""
    if isinstance(batch, Tallied) or batch.duration is None:
        if rules.paid != "start":
            raise InputError("paid= is about steps that have a duration: name it when rows are read (--duration).")
        return batch
    _check(rules)
    lasted = batch.duration
    if rules.paid != "start" and batch.reward is not None:
        unknown = lasted == 0
        if unknown.any():
            raise InputError(
                f"Transition {first(unknown)[0]} ended its episode, and its duration is missing, so nobody can say "
                "when its reward was paid. Fill it in, or count rewards at the start of their steps (--paid start)."
            )
        batch = replace(batch, reward=batch.reward * share(lasted, rules.discount, rules.paid))
    when = {"start": "at the start of its step", "end": "at the end of its step", "evenly": "evenly over its step"}
    going = lasted[~batch.ended]
    apart = f", decisions are {batch.lasting(going)} apart" if going.size else ""
    said = (
        f"Time counts: the discount of {rules.discount:g} is for one {batch.unit}{apart}, and a reward counts "
        f"{when[rules.paid]}."
    )
    return replace(batch, decisions=(said, *batch.decisions))


def share(lasted: Floats, discount: float, when: str) -> Floats:
    """What a unit of reward counts for at the start of a step that lasted so long."""
    if when == "start" or discount == 1:
        return np.ones(len(lasted))
    if when == "end" or discount == 0:
        return np.asarray(discount**lasted if when == "end" else np.zeros(len(lasted)))
    rate = -np.log(discount) * lasted
    return np.asarray(-np.expm1(-rate) / rate)


def _check(rules: Rules) -> None:
    """Refuse rules that count steps rather than time."""
    if rules.regularizer == "discount":
        raise InputError(
            "Steps have a duration here, and one lower planning discount for all of them is not a discount of time: "
            "say a lower discount= instead (--discount), or choose another regularizer."
        )
    for name, counted in (("average", "an average is of decisions"), ("limit", "a limit adds up by decisions")):
        if getattr(rules, name):
            raise InputError(f"Steps have a duration here, and {counted}: leave {name}= or duration= out (--{name}).")
