"""Returns: does the fitted model, acted in as people acted, earn over many decisions what the episodes earned?

A model is fitted one decision at a time, and agrees with the rows there whatever the states leave out. Over several
decisions it need not: where history matters beyond the state, or where rows were borrowed that should not have been,
errors add up. From every row the next k decisions are followed, for k = 1, 2, 4, ..., as far as the episode was watched
or until it ended: what they earned, alone and together with what the plan says that the state they led to is worth,
minus what the model expects of them from that row's state if actions are taken as often as they were. The mean of these
differences, in standard errors that take episodes as a whole, is near 0 where the model is right; nearer than chance
would have it, since the model was fitted to the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Floats
from certeq.base.display import number, several, told
from certeq.data.order import episodes, sections
from certeq.learning.learned import Learned, asked
from certeq.model.kernel import Kernel
from certeq.questions.asking import Question
from certeq.questions.episodes import behavior, check_whole

APART = 2.0  # standard errors (docs/decisions/0019-sure-means-sure.md)
LONGEST = 64  # decisions
ROUNDING = 1e-9  # of the largest value: less is no difference
FEWEST = 10  # episodes to tell from


class Stretch(NamedTuple):
    """What so many decisions earned, less what the model expects of them."""

    decisions: int
    onward: bool  # whether what the state that they led to is worth is counted in
    difference: float
    error: float  # its standard error

    @property
    def apart(self) -> float:
        """The difference in standard errors."""
        return self.difference / self.error if self.error > 0 else 0.0


@dataclass(frozen=True)
class Returns:
    """Whether the model earns over many decisions what the episodes earned."""

    followed: tuple[Stretch, ...]
    episodes: int  # or sections of long ones, where there are few

    @property
    def worst(self) -> Stretch:
        """Where model and episodes are farthest apart."""
        return max(self.followed, key=lambda each: abs(each.apart))

    @property
    def agrees(self) -> bool | None:
        """Whether they agree; None with too few episodes to tell."""
        return None if self.episodes < FEWEST else abs(self.worst.apart) < APART

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """The comparison in words."""
        if self.agrees is None:
            return ["There are too few episodes to tell whether the model fits."]
        if self.agrees:
            return [
                "The fitted model, with actions taken as people took them, earns what the episodes earned, as "
                "far as these can tell, over "
                f"one decision and over {max(each.decisions for each in self.followed)}."
            ]
        found = self.worst
        less = "less" if found.difference < 0 else "more"
        onward = ", counting what it says lies ahead of them" if found.onward else ""
        return [
            "The model does not fit, so no interval of its own can be trusted: over "
            f"{several(found.decisions, 'decision')} people earned {number(abs(found.difference))} {less} than the "
            f"model expects of them{onward} ({abs(found.apart):.1f} standard errors). The states leave something out "
            "that matters, or the model borrows where it should not; finer or other states (--bins, --state) may mend "
            "it."
        ]

    def to_json(self) -> dict[str, Any]:
        """Write the comparison as plain values."""
        rows = [each._asdict() | {"apart": each.apart} for each in self.followed]
        return {"agrees": self.agrees, "episodes": self.episodes, "followed": rows, "words": self.lines()}


def returns(learned: Learned) -> Returns:
    """Follow the episodes and the fitted model over one decision, two, four and so on."""
    case = asked(learned)
    batch = case.data.rows("This part follows whole episodes")
    check_whole(batch, episodes(batch))
    order = sections(batch)
    at = order.row
    state, then = batch.state[at], batch.next_state[at]
    known = case.rewards is None or batch.reward is None
    paid = case.table[state, batch.action[at]] if known else np.asarray(batch.reward)[at]
    log = _Watched(state, then, paid, order.number, order.length[order.number] - order.step, case.rules.discount)
    values = np.atleast_2d(learned.plan.values)[0]
    parts = (case.model.transition, learned.reward, behavior(case.data.counts))
    found = (
        each for onward in (False, True) for each in _follow(log, values if onward else 0 * values, onward, *parts)
    )
    return Returns(tuple(found), len(order.length))


class _Watched(NamedTuple):
    """Rows in order of episode and time."""

    state: Any  # (n,)
    then: Any  # (n,): next state, below 0 where the episode ended
    paid: Floats  # (n,)
    number: Any  # (n,): of the episode, or its section
    left: Any  # (n,): rows of it from here on, this one included
    discount: float


def _follow(
    log: _Watched, values: Floats, onward: bool, transition: Kernel, reward: Floats, chance: Floats
) -> Iterator[Stretch]:
    """Compare over 1, 2, 4, ... decisions, as long as half of the rows are watched so far."""
    n = len(log.state)
    row, last = np.arange(n), np.arange(n) + log.left - 1
    ends = log.then[last] < 0
    earned, expected, k = np.zeros(n), values, 0
    for decisions in (2**i for i in range(LONGEST.bit_length())):
        for step in range(k, decisions):
            there = step < log.left
            earned[there] += log.discount**step * log.paid[row[there] + step]
            expected = (chance * (reward + log.discount * transition.expect(expected))).sum(axis=-1)
        k = decisions
        watched = (log.left >= k) | ends
        if 2 * watched.sum() < n and decisions > 1:
            return
        reached = log.then[np.minimum(row + k - 1, last)]
        ahead = np.where((log.left >= k) & (reached >= 0), values[np.maximum(reached, 0)], 0.0)
        apart = (earned + log.discount**k * ahead - expected[log.state])[watched]
        apart[np.abs(apart) <= ROUNDING * max(1.0, float(np.abs(expected).max()))] = 0.0
        yield Stretch(k, onward, float(apart.mean()), _error(apart, log.number[watched]))
        if decisions >= log.left.max():
            return


def _error(apart: Floats, episode: Any) -> float:
    """Standard error of the mean over rows, episodes being independent."""
    total, size = np.bincount(episode, apart - apart.mean()), len(apart)
    return float(np.sqrt((total**2).sum()) / size)


ASKED = Question(
    "returns",
    lambda asking: returns(asking.learned),
    doing="Following the episodes over many decisions",
    asks="whether the model earns over many decisions what the episodes earned",
    by_itself="certeq.questions.returns.returns(learned)",
    sparse=True,
)
