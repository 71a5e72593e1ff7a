"""The outer interval in models that are never written out: see `certeq.questions.outer`, whose law this is.

What is seen of a drawn model, followed under a policy, is a chain C that loses the part l of each step. With x, y and z
for what (I - γC)⁻¹ makes of what the seen part earns, of l, and of what the unseen part is paid, all values with the
unseen part led to state j are

    v = x + z + γ·v(j)·y,    v(j) = (x(j) + z(j)) / (1 - γ·y(j))

so that two or three systems are solved for each draw, whatever the states are that the unseen part leads to in turn.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from certeq.base import matrices as sp
from certeq.base.arrays import Floats
from certeq.learning.case import Case
from certeq.model import targets
from certeq.model.frequencies import mle
from certeq.model.kernel import Mixture, SparseRows
from certeq.questions.draws import reward_law
from certeq.questions.outer import ROUNDS, UNSEEN, Extreme
from certeq.questions.sparse_draws import PriorMean, SparseDraws
from certeq.questions.sparse_posterior import value_forever
from certeq.regularizers.shrinkage import LEAST

CLOSE, STEPS = 1e-3, 2000  # part of all decisions that may be left out when pairs are named, and steps at most


class SeenPart(NamedTuple):
    """One drawn model, as far as it was seen."""

    rows: Mixture  # of the seen part; where there is none, any
    reward: Floats  # (S, A), of the seen part
    part: Floats  # (S, A): how much is unseen


class FollowedPart(NamedTuple):
    """What a policy makes of it."""

    chain: Any  # CSR (S, S), of the seen part
    gain: Floats  # (S,), of the seen part
    leak: Floats  # (S,): how much is unseen
    paid: Floats  # (S,): what that is paid where rewards are known


def draw_ends(
    case: Case, ends: list[Extreme], draws: int, starts: Floats, first: Floats, random: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Values of each draw at the low and at the high end, ``(draws,)``, and what each pair adds, ``(S, A)``.

    ``starts`` are those of the draws, ``(draws, S)``, or the one that is known, ``(S,)``.
    """
    visits, drawn = case.data.counts.visits, _draws(case, draws, random)
    found, mean = np.empty((2, draws)), np.zeros(visits.shape)
    for number in range(draws):
        rows, reward = drawn.draw(number)
        assert isinstance(rows, Mixture)  # no convention has a say in it
        part = np.where(visits > 0, random.beta(UNSEEN, np.maximum(visits, 1)), 1.0)
        start = starts if starts.ndim == 1 else starts[number]
        found[:, number] = [values @ start for values in _values(ends, SeenPart(rows, reward, part))]
        mean += reward / draws
    rows = Mixture(mle(case.data.counts), np.where(visits > 0, 0.0, 1.0), targets.uniform(case.data.counts))
    middling = SeenPart(rows, mean, np.asarray(UNSEEN / (UNSEEN + visits), dtype=np.float64))
    both = zip(ends, _values(ends, middling), strict=True)
    return found[0], found[1], np.asarray(sum(_parts(end, middling, values, first) for end, values in both))


def _draws(case: Case, draws: int, random: np.random.Generator) -> SparseDraws:
    """Models in which nothing is believed of rows but what was seen."""
    counts, S, A = case.data.counts, case.data.counts.n_states, case.data.counts.n_actions
    law = reward_law(counts, case.table, case.rewards, case.data.batch)
    nothing, nobody = np.broadcast_to(LEAST, (draws, S, A)), np.zeros((S, A), dtype=bool)
    seeds, alone = random.integers(2**32, size=(draws, 4)), replace(case.model, held=nobody)
    belief, target = np.zeros(draws, dtype=np.int64), PriorMean.of(targets.uniform(counts), A)
    return SparseDraws(alone, (target,), belief, nothing, law, seeds, nobody, nobody[:, 0])


def _values(ends: list[Extreme], seen: SeenPart) -> list[Floats]:
    """Values at either end, ``(S,)`` each."""
    if ends[0].horizon is not None:
        return [_backward(end, seen, end.horizon) for end in ends if end.horizon is not None]
    policy, gamma = ends[0].policy[0], ends[0].discount
    followed = _follow(seen, policy)
    chain, only = SparseRows(followed.chain, len(policy), 1), np.ones((len(policy), 1))
    x, y = (value_forever(chain, each[:, None], gamma, only) for each in (followed.gain, followed.leak))
    known = ends[0].pays is None
    z = value_forever(chain, followed.paid[:, None], gamma, only) if known else None
    found = []
    for end in ends:
        value = x
        for _ in range(ROUNDS):
            j, goes_on = end.one_choice(value)
            without = x + (z if z is not None else end.one_pay(goes_on) * y)
            value = without + goes_on * gamma * without[j] / (1 - goes_on * gamma * y[j]) * y
        found.append(value)
    return found


def _backward(end: Extreme, seen: SeenPart, horizon: int) -> Floats:
    """Values of so many decisions at one end."""
    followed, value = _follow(seen, end.policy[-1]), np.zeros(len(seen.reward))
    for t in reversed(range(horizon)):
        if len(end.policy) > 1:
            followed = _follow(seen, end.policy[t % len(end.policy)])
        j, goes_on = end.one_choice(value)
        paid = followed.paid if end.pays is None else end.one_pay(goes_on) * followed.leak
        further = goes_on * end.discount * value[j]
        value = followed.gain + end.discount * (followed.chain @ value) + paid + followed.leak * further
    return value


def _follow(seen: SeenPart, policy: Floats) -> FollowedPart:
    lines, reward, part = seen.rows.data, seen.reward, seen.part
    assert isinstance(lines, SparseRows)
    S, A = policy.shape
    share = np.where(part < 1, policy * (1 - part), 0.0)
    states = np.arange(S).repeat(A)
    mixing = sp.csr_array((share.ravel(), (states, np.arange(S * A))), shape=(S, S * A))
    leak, paid = ((policy * each).sum(axis=-1) for each in (part, part * reward))
    return FollowedPart((mixing @ lines.matrix).tocsr(), (share * reward).sum(axis=-1), leak, paid)


def _parts(end: Extreme, seen: SeenPart, value: Floats, start: Floats) -> Floats:
    """What the unseen part of each pair adds to the interval at this end, about, ``(S, A)``."""
    policy, (j, goes_on) = end.policy[0], end.one_choice(value)
    followed = _follow(seen, policy)
    back = followed.chain.T.tocsr()

    def before(often: Floats) -> Floats:
        led = back @ often
        led[j] += goes_on * (followed.leak @ often)
        return np.asarray(led)

    gamma = min(end.discount, 1 - 1 / end.horizon) if end.horizon else end.discount
    often, now = start.copy(), start
    for _ in range(STEPS):
        now = gamma * before(now)
        often += now
        if (1 - gamma) * CLOSE * often.sum() >= now.sum():
            break
    paid = seen.reward if end.pays is None else end.one_pay(goes_on)
    apart = np.abs(seen.reward + end.discount * seen.rows.expect(value) - paid - goes_on * end.discount * value[j])
    return np.asarray(often[:, None] * policy * seen.part * apart)
