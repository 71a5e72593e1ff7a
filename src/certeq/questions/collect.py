"""What to collect next: how much expected regret one more observation of a pair would remove.

Models are drawn from the posterior (`certeq.questions.draws`). The best that can be done now is the policy with the
highest value on average over them; its expected regret is what knowing the model would add. One more observation of a
pair tells a little about its row and its reward, after which another policy may be best on average. The expected gain
from being able to change one's mind is the value of that observation (expected value of sample information).

An observed outcome o turns a row that is Dirichlet(α) into one that is Dirichlet(α + e_o), and a draw of the former
into a draw of the latter: (1 - B)·row + B·e_o with B ~ Beta(1, Σα). So the same draws serve before and after. (Weighing
draws by how likely the outcome is in them would leave few draws for rare outcomes, and picking the best policy from
those few turns noise into gain: with 200 draws of a chain of ten states it doubled the sum of all gains.) One row
changes at a time, so values after it follow from (I - γP)⁻¹ in closed form (Sherman and Morrison):

    J' = J + d(s)·(r(s, a) + γ·row·V - V(s)) / (N(s, s) - γ·row·N(:, s)),    N = (I - γP)⁻¹,  d = start·N,

for the policy that takes a in s, with ``row`` in place of the row of (s, a). Where the rewards of pairs were estimated,
an observed reward moves their mean by Normal(0, v²/(v + σ²)) in turn, v being the variance of that mean and σ² that of
one row; this is averaged over a fine partition, each part by its mean. The strength M of the prior is not learned anew
from one observation, nor are rewards by next state.

The policies to choose among are: the best one for the mean of the draws, the advised one, the ones that are best in
most draws (as many as time allows, few in large models), and each of these with any action that may be advised in the
pair's own state; the pair's own action counts as one, so that an observation is never valued for being a permission.
Other changes of mind, elsewhere in the state space, are left out, so gains are a little too low.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import erfc, sqrt
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, Integers, Rng, generator, whole
from certeq.base.display import number, several, told
from certeq.base.errors import InputError
from certeq.learning.learned import Learned, asked
from certeq.model.kernel import Rows
from certeq.planners import solve
from certeq.questions.asking import Asking, Question, check_draws
from certeq.questions.draws import Draws, Law, draw_models
from certeq.questions.posterior import start_of
from certeq.questions.reward_posterior import ByOutcome, RewardPosterior
from certeq.questions.words import name

DRAWS = 40  # from the posterior, in a report
GROUPS = 10  # of draws, left out one at a time to tell the Monte Carlo error
EDGES = np.linspace(-4, 4, 31)  # in standard deviations, of the parts that an observed reward is averaged over
WORK = 5e8  # draws times policies times states cubed that are worth the wait
MOST = 64  # policies
KEPT = 40_000_000  # numbers in all drawn rows; up to here they are kept rather than drawn again
ROOM = 50_000_000  # numbers in the tables that all draws are added up in
CACHED = 30_000  # numbers that are gone through once for each part of a reward
LASTING = 0.9999  # a discount beyond which every policy is solved for by itself
FEW = 3  # policies that differ in no more than one of so many states are solved for by what differs
ROUNDING = 1e-12  # a gain that is smaller than this part of the value is none
SHOWN = 5  # pairs that the words name


@dataclass(frozen=True)
class Ranking:
    """All pairs, the most valuable observation first."""

    state: Integers  # (P,)
    action: Integers  # (P,)
    gain: Floats  # (P,): expected regret that one more observation removes
    error: Floats  # (P,): its Monte Carlo standard error (jackknife)
    visits: Integers  # (P,)
    regret: float  # expected regret of the best policy now
    draws: int
    policies: int  # how many were compared, not counting other actions in the pair's state
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """The ranking in words."""
        if not (self.gain > 0).any():
            return ["In no draw of the posterior would one more observation of any pair change what is best to do."]
        told = [
            f"Not knowing the model exactly costs {number(self.regret)} of value on average ({self.draws:,} draws from "
            "the posterior). One more observation removes most of it at:"
        ]
        for i in range(min(SHOWN, int((self.gain > 0).sum()))):
            s, a = name(self.state_names[self.state[i]]), name(self.action_names[self.action[i]])
            told.append(
                f"{i + 1}. {a} in state {s} ({several(int(self.visits[i]), 'visit')} so far): "
                f"{number(float(self.gain[i]))}, give or take {number(float(self.error[i]))}."
            )
        return told

    def to_json(self) -> dict[str, Any]:
        """Write the ranking as plain values."""
        pairs = zip(self.state, self.action, self.visits, self.gain, self.error, strict=True)
        return {
            "format": "certeq-collect",
            "version": 1,
            "draws": self.draws,
            "policies": self.policies,
            "regret": self.regret,
            "pairs": [
                {
                    "state": self.state_names[s],
                    "action": self.action_names[a],
                    "visits": int(visits),
                    "gain": float(gain),
                    "error": float(error),
                }
                for s, a, visits, gain, error in pairs
            ],
            "words": self.lines(),
        }


def collect_next(learned: Learned, *, draws: int = 200, rng: Rng = 0, start: ArrayLike | None = None) -> Ranking:
    """Rank all pairs by how much expected regret one more observation of them would remove.

    Parameters
    ----------
    learned
        What `certeq.learn` returned; a plan for ever, not one with a horizon.
    draws, rng
        How many models are drawn from the posterior, and the seed.
    start
        Distribution ``(S,)`` of the first state, whose value counts: by default that of the episodes in the data, and
        of the states in all rows where there are no episodes, or only counts.
    """
    rules = asked(learned).rules
    if rules.horizon is not None:
        raise InputError("What to collect next is worked out for plans without a horizon: learn without horizon=.")
    whole("draws", draws, 2 * GROUPS)
    first = start_of(learned.model, learned.batch, start)
    random = generator(rng)
    drawn = draw_models(learned.model, learned.table, draws, rewards=learned.rewards, batch=learned.batch, rng=random)
    found = weigh(drawn, rules.discount, learned.policy.first.actions, learned.model.allowed, first, random)
    visits = learned.counts.visits
    order = np.argsort(-found.gain, axis=None, kind="stable")
    state, action = np.unravel_index(order, found.gain.shape)
    return Ranking(
        state=state,
        action=action,
        gain=found.gain[state, action],
        error=found.error[state, action],
        visits=visits[state, action],
        regret=found.regret,
        draws=draws,
        policies=found.policies,
        state_names=learned.state_names,
        action_names=learned.action_names,
    )


class Worth(NamedTuple):
    """What observations are worth."""

    gain: Floats  # (S, A)
    error: Floats  # (S, A)
    regret: float
    policies: int


def weigh(
    drawn: Draws, discount: float, advice: Integers, allowed: Booleans, start: Floats, random: np.random.Generator
) -> Worth:
    """Value one more observation of each pair, under a posterior that can be drawn from."""
    models = _Models(drawn, random)
    policies, ideal = _candidates(models, discount, allowed, advice, start)
    tables, sizes = _tabulate(models, policies, discount, start)
    (gain, now), *left_out = (_gain(each, models, allowed) for each in _means(tables, sizes))
    error = np.sqrt((len(sizes) - 1) * np.var([each for each, _ in left_out], axis=0))
    lost = ideal - now
    return Worth(gain, error, lost if lost > ROUNDING * abs(ideal) else 0.0, len(policies))


class _Models:
    """Drawn models, block by block, and how far each row moves toward an outcome that is observed."""

    def __init__(self, drawn: Draws, random: np.random.Generator) -> None:
        self.drawn = drawn
        visits = drawn.counts.sum(axis=-1)
        total = visits + drawn.magnitude  # (draws, S, A): Σα
        self.move = random.beta(1.0, total)
        self.predicted = drawn.predicted  # (S, A, N): chance of each outcome, observed next
        self.parts, self.chance, self.spread = _reward_parts(drawn.reward, self.predicted)
        small = len(total) * drawn.counts.size <= KEPT
        self._kept = [drawn.by_outcome(at) for at in drawn.blocks] if small else None

    def __len__(self) -> int:
        return len(self.move)

    def __iter__(self) -> Iterator[tuple[slice, Floats, Floats, Floats | None]]:
        """Which draws, their rows ``(k, S, A, S)``, rewards ``(k, S, A)``, and what each outcome pays, or None."""
        for at in self.drawn.blocks:
            rows, reward, paid = self.drawn.by_outcome(at) if self._kept is None else self._kept[at]
            begin = at * self.drawn.together
            yield slice(begin, begin + len(rows)), rows, reward, paid


def _reward_parts(law: Law, predicted: Floats) -> tuple[Floats, Floats, Floats]:
    """Parts of a standard normal, each by its mean, with their chances; and how far a reward moves the pair's.

    How far depends on the outcome that it came with, ``(S, A, N)``: what going on pays, and what ending pays, are parts
    of what the pair earns as large as their chances.
    """
    pairs = predicted.shape[:-1]
    if isinstance(law, np.ndarray) or (not isinstance(law, ByOutcome) and law.variance.shape != pairs):
        return np.zeros(1), np.ones(1), np.zeros(predicted.shape)  # known, or by next state
    edges = np.concatenate([[-np.inf], EDGES, [np.inf]])
    chance = np.diff([erfc(-edge / sqrt(2)) / 2 for edge in edges])
    moved = np.zeros(predicted.shape)
    if not isinstance(law, ByOutcome):
        moved += _moved(law)[..., None]
    else:
        going, ending = (_moved(each) for each in law)
        ends = predicted[..., -1:]
        moved += (1 - ends) * going[..., None]
        moved[..., -1:] = ends * ending[..., None]
    density = np.exp(-(edges**2) / 2) / np.sqrt(2 * np.pi)
    return -np.diff(density) / chance, chance, moved


def _moved(law: RewardPosterior) -> Floats:
    """How far an observed reward moves its mean, in standard deviations, ``(S, A)``."""
    variance, total = law.variance, law.variance + law.within * law.noisier
    return np.asarray(variance / np.sqrt(np.where(total > 0, total, 1)))


def _candidates(
    models: _Models, discount: float, allowed: Booleans, advice: Integers, start: Floats
) -> tuple[Integers, float]:
    """Policies to choose among ``(K, S)``; and what the best policy of each draw is worth on average."""
    D, S = len(models), allowed.shape[0]
    reward, optima, ideal = np.zeros(allowed.shape), [], 0.0
    for _, rows, gain, _ in models:
        plan = solve(Rows.trusted(rows), gain, discount, allowed=allowed)
        optima.append(plan.policy)
        ideal += float((plan.values @ start).sum()) / D
        reward += gain.sum(axis=0) / D
    mean = solve(Rows.trusted(models.predicted[..., :S]), reward, discount, allowed=allowed).policy
    often, count = np.unique(np.concatenate(optima), axis=0, return_counts=True)
    often = often[np.argsort(-count, kind="stable")]
    named = np.stack([mean, np.where(advice >= 0, advice, mean)])
    every = np.concatenate([named, often])
    _, first = np.unique(every, axis=0, return_index=True)
    limit = int(np.clip(WORK / (D * S**3), 2, MOST))
    return every[np.sort(first)[:limit]], ideal


class _Tables(NamedTuple):
    """Values from the start, for each policy with each action in each state; leading axes (policies, groups)."""

    before: Floats  # (..., S, A)
    after: Floats  # (..., S, A, N): once the outcome was observed for that pair
    slope: Floats  # (..., S, A, N): of that, in the reward of the pair


def _tabulate(models: _Models, policies: Integers, discount: float, start: Floats) -> tuple[_Tables, Integers]:
    """Sums over groups of draws; and how many draws a group has."""
    shape = models.predicted.shape
    groups = int(np.clip(ROOM / (2 * len(policies) * models.predicted.size), 2, GROUPS))
    member = np.arange(len(models)) * groups // len(models)
    lead = (len(policies), groups)
    sums = _Tables(np.zeros((*lead, *shape[:2])), np.zeros((*lead, *shape)), np.zeros((*lead, *shape)))
    for block, rows, reward, paid in models:
        own, begin = np.unique(member[block], return_index=True)  # in order
        for group, (first, end) in zip(own, pairwise([*begin.tolist(), len(rows)]), strict=True):
            some, move = slice(first, end), models.move[block][first:end]  # few draws at a time stay in the cache
            drawn = rows[some], reward[some], None if paid is None else paid[some]
            inverses = _inverses(rows[some], policies, discount)
            for k, (policy, inverse) in enumerate(zip(policies, inverses, strict=True)):
                found = _look(drawn, policy, inverse, discount, start, move, shape[-1])
                for table, part in zip(sums, found, strict=True):
                    table[k, group] += part.sum(axis=0)
    return sums, np.bincount(member)


def _inverses(rows: Floats, policies: Integers, discount: float) -> Iterator[Floats]:
    """N = (I - γT)⁻¹ of each policy in some drawn models, ``(k, S, S)``.

    Policies differ from the first one in few states. There, with D the rows that change, in E: (A - γED)⁻¹ is
    N + NE(I - γDNE)⁻¹γDN (Woodbury). Where lasting for ever is too near, digits would be lost, and each is inverted.
    """
    usual, state, one = policies[0], np.arange(policies.shape[1]), np.eye(policies.shape[1])
    inverse = np.linalg.inv(one - discount * rows[:, state, usual])
    for policy in policies:
        at = np.flatnonzero(policy != usual)
        if discount > LASTING or FEW * len(at) > len(state):
            yield np.asarray(np.linalg.inv(one - discount * rows[:, state, policy]))
            continue
        change = discount * ((rows[:, at, policy[at]] - rows[:, at, usual[at]]) @ inverse)  # γDN (k, r, S)
        yield np.asarray(inverse + inverse[:, :, at] @ np.linalg.solve(np.eye(len(at)) - change[:, :, at], change))


def _look(
    drawn: tuple[Floats, Floats, Floats | None],
    policy: Integers,
    inverse: Floats,
    discount: float,
    start: Floats,
    move: Floats,
    outcomes: int,
) -> _Tables:
    """Values in each of some drawn models, by the formula above; what an outcome pays moves with its chance."""
    rows, reward, paid = drawn
    state = np.arange(len(policy))
    value = (inverse @ reward[:, state, policy, None])[..., 0]  # V (k, S)
    weight = (start @ inverse)[..., None]  # d (k, S, 1)
    back = np.swapaxes(inverse, 1, 2)  # (k, s, n): N(n, s)
    own, total = inverse[:, state, state, None], (value @ start)[:, None, None]
    ahead = (rows @ value[:, None, :, None])[..., 0]  # row·V (k, S, A)
    again = (rows @ back[..., None])[..., 0]  # row·N(:, s) (k, S, A)
    before = total + weight * (reward + discount * ahead - value[..., None]) / (own - discount * again)
    later, return_to = value, back
    if outcomes > len(policy):  # ending is the last one: nothing is worth anything beyond it
        later, return_to = (np.append(each, np.zeros_like(each[..., :1]), axis=-1) for each in (later, return_to))
    stay, go = 1 - move[..., None], move[..., None]
    slope = (discount * go) * return_to[:, :, None]  # the next lines are of large arrays, and change them in place
    np.subtract(own[..., None] - discount * stay * again[..., None], slope, out=slope)
    np.divide(weight[..., None], slope, out=slope)
    known = reward[..., None] if paid is None else stay * reward[..., None]
    after = (discount * go) * later[:, None, None]
    after += known + discount * stay * ahead[..., None] - value[..., None, None]
    if paid is not None:
        after += go * paid
    after *= slope
    after += total[..., None]
    return _Tables(before, after, slope)


def _means(tables: _Tables, sizes: Integers) -> Iterator[_Tables]:
    """Mean over all draws; then over all but one group, for each."""
    total = [table.sum(axis=1) for table in tables]
    yield _Tables(*(one / sizes.sum() for one in total))
    for group, size in enumerate(sizes):
        rest = sizes.sum() - size
        yield _Tables(*((one - table[:, group]) / rest for one, table in zip(total, tables, strict=True)))


def _gain(tables: _Tables, models: _Models, allowed: Booleans) -> tuple[Floats, float]:
    """What an observation of each pair adds ``(S, A)``; and what the best policy is worth now."""
    S, A = allowed.shape
    found = np.zeros((S, A))
    value = np.where(allowed, tables.before.max(axis=0), -np.inf)  # (S, A), of the best policy with that action
    others = np.where(np.eye(A, dtype=bool), -np.inf, value[:, None, :]).max(axis=-1)  # (S, A)
    step = max(1, CACHED // (len(tables.after) * tables.after[0, 0].size))
    for some in (slice(s, s + step) for s in range(0, S, step)):
        after, chance = tables.after[:, some], models.predicted[some]  # (K, s, A, N), (s, A, N)
        staying = np.maximum((after * chance).sum(axis=-1).max(axis=0), others[some])
        after, shift = _highest(after, tables.slope[:, some] * models.spread[some], models.parts)
        changing, moved = np.zeros(chance.shape), np.empty(shift.shape)
        for part, often in zip(models.parts, models.chance, strict=True):
            np.multiply(part, shift, out=moved)
            moved += after
            changing += often * np.maximum(moved.max(axis=0), others[some, :, None])
        found[some] = (chance * changing).sum(axis=-1) - staying
    best = float(value.max())
    return np.where(found > ROUNDING * abs(best), found, 0.0), best


def _highest(after: Floats, shift: Floats, parts: Floats) -> tuple[Floats, Floats]:
    """Of the lines after + part·shift of all policies, those that may be the highest somewhere between the parts.

    A line that is nowhere above the middle's highest at both ends is nowhere above it in between.
    """
    middle = after.argmax(axis=0)[None]
    top, rise = np.take_along_axis(after, middle, axis=0), np.take_along_axis(shift, middle, axis=0)
    above = np.zeros(len(after), dtype=bool)
    for end in (parts.min(), parts.max()):
        above |= (after + end * shift > top + end * rise).any(axis=(1, 2, 3))
    return np.concatenate([top, after[above]]), np.concatenate([rise, shift[above]])


def _ask(asking: Asking) -> Ranking:
    check_draws(asking.draws)
    return collect_next(asking.learned, draws=DRAWS, rng=asking.rng)


ASKED = Question(
    "collect",
    _ask,
    doing="Asking what to collect next",
    by_itself="certeq.collect_next(learned)",
    asks="what to collect next",
    plans=6 * DRAWS,
)
