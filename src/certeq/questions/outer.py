"""The outer interval: what a policy is worth whatever the rows that nobody saw are like.

A credible interval believes that rows are alike in the way the regularizer says. This one believes nothing of the kind:
of a pair with n rows, a part B ~ Beta(½, n) of what may follow has not been seen yet (the imprecise Dirichlet model,
with s = ½; all of it where n = 0), and it may be anything that was ever seen anywhere. The rest is Dirichlet(counts).
For the low end of each draw the unseen part leads to the worst outcome and pays the least, for the high end the best
and the most: the worst state is that of the values found so far, and these follow from it in turn, a few times.

The interval reaches from the low quantile of the one to the high quantile of the other. With few rows it holds nearly
everything, and that is then the honest answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Floats, Integers, Rng, generator, middle, whole
from certeq.base.display import between, several, told
from certeq.base.errors import InputError
from certeq.data.sums import ENDED, WENT_ON, Sums
from certeq.learning.case import Case
from certeq.planners import compiled
from certeq.questions.asking import ADVICE, Asking, Question, affordable_draws
from certeq.questions.chains import follow, read_policy, value_chains
from certeq.questions.credible import LEVEL
from certeq.questions.draws import draw_models
from certeq.questions.posterior import start_of
from certeq.questions.sparse_draws import unwritten
from certeq.questions.words import name
from certeq.regularizers.shrinkage import LEAST

UNSEEN = 0.5  # s: rows that the unseen part counts for
ROUNDS = 6  # in which the worst outcome and the values are found in turn
DRAWS = 200
NAMED, MOST = 0.5, 5  # pairs are named where so few of them make up so much of the width
WIDE = 2.0  # times the credible interval, from which on it is said what makes the outer one wide


class Thin(NamedTuple):
    """A pair that makes the interval wide."""

    state: str
    action: str
    rows: int
    share: float  # of what the unseen part of all rows adds to the interval
    needed: int  # more rows of it, about, that would bring the interval to twice the credible one


@dataclass(frozen=True)
class Outer:
    """What a policy is worth, whatever the unseen rows are like."""

    low: float
    high: float
    credible: tuple[float, float]  # what is believed where rows are alike
    draws: int
    level: float
    thin: tuple[Thin, ...]  # the pairs behind it, where few make up most of it; the most first

    @property
    def wide(self) -> bool:
        """Whether it is much wider than the credible interval."""
        return self.high - self.low > WIDE * (self.credible[1] - self.credible[0])

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """The interval in words."""
        said = [
            f"Whatever the unseen rows are like, the advice is worth {between(self.low, self.high)} "
            f"({self.level:.0%} interval)."
        ]
        if not self.wide:
            return [*said, "That is not much wider than if rows are alike in the way the model believes."]
        if not self.thin:
            return [*said, "It is this wide because there are few rows for the pairs that the advice leads to."]
        pairs = ", ".join(
            f"{name(each.action)} in {name(each.state)} ({several(each.rows, 'row')}, {each.share:.0%} of the width)"
            for each in self.thin
        )
        most = several(max(each.needed for each in self.thin), "more row")
        narrow = f"With about {most} of each, it would be {WIDE:g} times as wide as the other interval."
        return [*said, f"What makes it wide: {pairs}. {narrow}"]

    def to_json(self) -> dict[str, Any]:
        """Write the interval as plain values."""
        return {
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "draws": self.draws,
            "unseen": UNSEEN,
            "wide_because_of": [each._asdict() for each in self.thin],
            "words": self.lines(),
        }


def outer(
    case: Case,
    policy: Any,
    *,
    credible: tuple[float, float],
    start: Any = None,
    watched: int | None = None,
    draws: int = DRAWS,
    level: float = LEVEL,
    rng: Rng = 0,
) -> Outer:
    """Value a policy in the worst and in the best models that the rows seen do not exclude.

    ``credible`` is the interval that is believed where rows are alike; the outer one is never inside of it. Without a
    horizon, values are of all decisions, or of so many as were ``watched``. Who comes first is drawn again, unless the
    start is said.
    """
    rules, counts = case.rules, case.data.counts
    if case.peculiar:
        raise InputError(case.peculiar)
    over = rules.horizon or watched
    if rules.discount == 1 and over is None:
        raise InputError("Without a discount or a horizon, what may follow unseen rows has no bound: set a horizon.")
    chances = read_policy(ADVICE, policy, counts.n_states, counts.n_actions, rules.horizon)
    first, random = start_of(case.model, case.data.batch, start), generator(rng)
    size, ends = whole("draws", draws, 1), [_side(case, chances, side, over) for side in (0, 1)]
    batch = case.data.batch
    comers = 0 if batch is None or start is not None else len(batch.first_rows)
    starts = random.multinomial(comers, first, size=size) / comers if comers else first
    if unwritten(counts):
        from certeq.questions.sparse_outer import draw_ends

        low, high, parts = draw_ends(case, ends, size, starts, first, random)
    else:
        low, high, parts = _draw_ends(case, ends, size, starts, first, random)
    reach = min(float(middle(low, level)[0]), credible[0]), max(float(middle(high, level)[1]), credible[1])
    return Outer(*reach, credible, draws, level, _named(case, parts, reach, credible))


def _draw_ends(
    case: Case, ends: list[Extreme], draws: int, starts: Floats, first: Floats, random: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Values of each draw at the low and at the high end, ``(draws,)``, and what each pair adds, ``(S, A)``."""
    found: list[list[Floats]] = [[], []]
    mean: list[Any] = [0.0, 0.0, 0.0]
    for block in _seen(case, draws, random):
        mean = [total + each.sum(axis=0) / draws for total, each in zip(mean, block, strict=True)]
        for side, values in zip(ends, found, strict=True):
            values.append(side.values(block))
    low, high = ((np.concatenate(values) * starts).sum(axis=-1) for values in found)
    middling = _Block(*(each[None] for each in mean))
    return low, high, np.asarray(sum(side.parts(middling, first) for side in ends))


class _Block(NamedTuple):
    """What was seen, drawn some times."""

    rows: Floats  # (k, S, A, S), of the seen part
    reward: Floats  # (k, S, A), of the seen part
    part: Floats  # (k, S, A): how much is unseen


def _seen(case: Case, draws: int, random: np.random.Generator) -> Iterator[_Block]:
    visits = case.data.counts.visits
    drawn = draw_models(case.model, case.table, draws, rewards=case.rewards, batch=case.data.batch, rng=random)
    alone = replace(drawn, magnitude=np.full_like(drawn.magnitude, LEAST), held=None)
    for at in alone.blocks:
        rows, reward = alone.block(at)
        part = np.where(visits > 0, random.beta(UNSEEN, np.maximum(visits, 1), size=rows.shape[:-1]), 1.0)
        yield _Block(rows, np.broadcast_to(reward, part.shape), part)


def _side(case: Case, policy: Floats, side: int, horizon: int | None) -> Extreme:
    """One end of the interval."""
    earned = case.data.reward
    pays = None
    if isinstance(earned, Sums):
        ends = [float(earned.span[kind, side]) for kind in (WENT_ON, ENDED)]
        pays = ends[0] if np.isfinite(ends[0]) else 0.0, ends[1]
    return Extreme(policy, case.rules.discount, horizon, side, pays, case.data.counts.ended is not None)


@dataclass(frozen=True)
class Extreme:
    """One end: the unseen parts lead to the worst (0) or to the best (1) there is."""

    policy: Floats  # (1 or H, S, A)
    discount: float
    horizon: int | None
    side: int
    pays: tuple[float, float] | None  # that going on, and ending, pays at worst or best; None where rewards are known
    ends: bool  # whether an episode may end

    def values(self, block: _Block) -> Floats:
        """Values in each drawn model, ``(k, S)``."""
        rows, reward, part = block
        if self.horizon is not None:
            value = np.zeros((len(rows), rows.shape[1]))
            chain, gain, leak = self._followed(block, self.policy[-1])
            for t in reversed(range(self.horizon)):
                policy = self.policy[t % len(self.policy)]
                if len(self.policy) > 1:
                    chain, gain, leak = self._followed(block, policy)
                state, goes_on = self._choice(value)
                ahead = goes_on * self.discount * value[np.arange(len(value)), state]
                paid = (policy * part * self._pay(goes_on, reward)).sum(axis=-1)
                value = gain + self.discount * (chain @ value[..., None])[..., 0] + paid + leak * ahead[:, None]
            return value
        chain, gain, leak = self._followed(block, self.policy[0])
        compiles = compiled.worth((len(rows),), rows.shape[1])
        value = value_chains(chain, gain, np.asarray(self.discount), compiles=compiles)
        for _ in range(ROUNDS):
            state, goes_on = self._choice(value)
            to = chain.copy()
            to[np.arange(len(to)), :, state] += leak * goes_on[:, None]
            paid = gain + (self.policy[0] * part * self._pay(goes_on, reward)).sum(axis=-1)
            value = value_chains(to, paid, np.asarray(self.discount), compiles=compiles)
        return value

    def _followed(self, block: _Block, policy: Floats) -> tuple[Floats, Floats, Floats]:
        """What a policy makes of the seen parts, rows ``(k, S, S)`` and rewards, and how much is unseen, ``(k, S)``."""
        rows, reward, part = block
        seen = policy * (1 - part)
        chain = np.einsum("ksa,ksan->ksn", seen, rows)
        return chain, (seen * reward).sum(axis=-1), (policy * part).sum(axis=-1)

    def _choice(self, value: Floats) -> tuple[Integers, Floats]:
        """The worst or best state, ``(k,)``, and whether to go there (1) rather than to end (0)."""
        pick = np.argmin if self.side == 0 else np.argmax
        state = pick(value, axis=-1)
        ahead = self.discount * value[np.arange(len(value)), state]
        if not self.ends:
            return state, np.ones(len(value))
        go, stop = self.pays or (0.0, 0.0)
        further = go + ahead < stop if self.side == 0 else go + ahead > stop
        return state, further.astype(np.float64)

    def one_choice(self, value: Floats) -> tuple[int, float]:
        """The same of the values ``(S,)`` of one model."""
        state, goes_on = self._choice(value[None])
        return int(state[0]), float(goes_on[0])

    def one_pay(self, goes_on: float) -> float:
        """What the unseen part pays at once, where rewards are not known."""
        assert self.pays is not None
        return self.pays[0] if goes_on > 0 else self.pays[1]

    def _pay(self, goes_on: Floats, reward: Floats) -> Floats:
        """What the unseen part pays at once, ``(k, S, A)``."""
        if self.pays is None:
            return reward
        going, ending = self.pays
        return np.broadcast_to(np.where(goes_on > 0, going, ending)[:, None, None], reward.shape)

    def _unseen(self, value: Floats, reward: Floats) -> Floats:
        """Worth of the unseen part with all that follows, ``(k, S, A)``."""
        state, goes_on = self._choice(value)
        ahead = goes_on * self.discount * value[np.arange(len(value)), state]
        return np.asarray(self._pay(goes_on, reward) + ahead[:, None, None])

    def parts(self, block: _Block, start: Floats) -> Floats:
        """What the unseen part of each pair adds to the interval at this end, about, ``(S, A)``: at the mean draw."""
        rows, reward, part = block
        value, policy = self.values(block), self.policy[0]
        state, goes_on = self._choice(value)
        chain, _ = follow(rows * (1 - part)[..., None], reward, policy)
        chain[0, :, state[0]] += (policy * part[0]).sum(axis=-1) * goes_on[0]
        gamma = min(self.discount, 1 - 1 / self.horizon) if self.horizon else self.discount
        often = np.linalg.solve(np.eye(len(start)) - gamma * chain[0].T, start)
        seen = reward[0] + self.discount * rows[0] @ value[0]
        gap = np.abs(seen - self._unseen(value, reward)[0])
        return np.asarray(often[:, None] * policy * part[0] * gap)


def _named(case: Case, parts: Floats, reach: tuple[float, float], credible: tuple[float, float]) -> tuple[Thin, ...]:
    """The few pairs that make up most of the width, and about how many rows would narrow it."""
    total, visits = parts.sum(), case.data.counts.visits
    if not total > 0:
        return ()
    order = np.argsort(-parts, axis=None, kind="stable")[:MOST]
    share = np.cumsum(parts.ravel()[order]) / total
    if share[-1] < NAMED:
        return ()
    wide, want = reach[1] - reach[0], credible[1] - credible[0]
    factor = max((wide - want) / want, 1.0) if want > 0 else 1.0
    found = []
    for place in order[: int(np.argmax(share >= NAMED)) + 1]:
        s, a = divmod(int(place), visits.shape[1])
        n = int(visits[s, a])
        more = int(np.ceil((n + UNSEEN) * (factor - 1)))
        found.append(Thin(case.data.state_names[s], case.data.action_names[a], n, float(parts[s, a] / total), more))
    return tuple(found)


def _ask(asking: Asking) -> Outer:
    learned, model = asking.learned, asking.found.get("posterior")
    if model is None:
        raise InputError("It is compared with the credible interval, and there is none.")
    draws = min(DRAWS, affordable_draws(learned, asking.draws))
    ends = model.interval(ADVICE)
    settings: dict[str, Any] = {"watched": model.watched, "draws": draws, "rng": asking.rng}
    return outer(learned.case, learned.policy.actions, credible=(ends.low, ends.high), **settings)


ASKED = Question(
    "outer",
    _ask,
    doing="Valuing the advice whatever the unseen rows are like",
    asks="what the advice is worth whatever unseen rows are like",
    after=("posterior",),
)
