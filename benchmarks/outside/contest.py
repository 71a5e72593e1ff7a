"""A contest: many data sets of a world, what each method makes of them, and what that is worth in the truth.

Methods with a constant are tuned by an oracle: the constant with the best mean *in the truth*, on data sets of the same
size that were drawn with another seed; only that one is judged. Nobody who has only a log could do so: it is the best
that such a method can hope for. What has no constant has nothing to tune.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import certeq
from benchmarks.opponents import OPPONENTS, Known, follow, known, worth
from certeq.data.batch import Batch
from certeq.learning.learned import learn
from certeq.model.kernel import SparseRows

WORST = 0.05
TUNING = 1000  # added to the seed for the data sets on which constants are chosen
OURS: dict[str, dict[str, Any]] = {
    "certeq, default": {},
    "certeq, evidence": {"regularizer": "evidence"},
    "certeq, no regularizer": {"regularizer": "none"},
    "plain plan, any tried action": {"regularizer": "none", "min_share": 0.0},
}
DISCOUNTS = (0.2, 0.5, 0.8, 0.9, 0.95)
MAGNITUDES = (1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class World:
    """A known world, how it is logged, and at which discounts a policy is judged; the first is planned with."""

    name: str
    truth: certeq.MDP
    behavior: np.ndarray  # (S, A)
    log: Callable[[int, np.random.Generator], Batch]  # (size, rng)
    sizes: tuple[int, ...]
    discounts: tuple[float, ...]
    told: bool = False  # whether methods of others are told the behavior, as in their papers; certeq never is
    again: Callable[[np.random.Generator], World] | None = None  # another such world, for each data set a new one
    span: tuple[float, float] = (0.0, 1.0)  # what counts as 0 and as 1

    @cached_property
    def rows(self) -> sp.csr_array:
        """The truth's rows, ``(S * A, S)``."""
        rows = self.truth.transition
        return rows.matrix if isinstance(rows, SparseRows) else sp.csr_array(rows.dense().reshape(-1, rows.shape[-1]))

    def worth(self, policy: np.ndarray) -> tuple[float, ...]:
        """Exact value from the start at each discount."""
        values = (worth(self.rows, self.truth.reward, policy, discount) for discount in self.discounts)
        low, high = self.span
        return tuple((float(self.truth.start @ each) - low) / (high - low) for each in values)

    def landmarks(self) -> dict[str, tuple[float, ...]]:
        """The optimum at each discount, the behavior, and a random action in every state."""
        truth, A = self.truth, self.truth.n_actions
        best = [certeq.solve(truth.transition, truth.reward, g).policy for g in self.discounts]
        return {
            "optimum": tuple(self.worth(np.eye(A)[policy])[at] for at, policy in enumerate(best)),
            "behavior": self.worth(self.behavior),
            "random": self.worth(np.full((truth.n_states, A), 1 / A)),
        }


class Entry(NamedTuple):
    """A method with its constant, if it has one."""

    method: str
    constant: str
    run: Callable[[Batch, Known], np.ndarray]


def entries(others: Iterable[str] = tuple(OPPONENTS), discount: float = 0.99) -> Iterator[Entry]:
    """Everybody who takes part; ``others`` are names of opponents."""
    for name, rules in OURS.items():
        yield Entry(name, "", _learning(rules))
    yield Entry("what was done most", "", lambda batch, given: follow(np.full(len(given.visits), -1), given.visits))
    for gamma in DISCOUNTS:
        if gamma < discount:
            yield Entry("discount", f"γ_p {gamma:g}", _learning(regularizer="discount", planning_discount=gamma))
    for size in MAGNITUDES:
        yield Entry("uniform prior", f"M {size:g}", _learning(regularizer="uniform_prior", magnitude=size))
    for name in others:
        method, constants = OPPONENTS[name]
        yield from (Entry(name, f"{each:g}", _opponent(method, each)) for each in constants)


def _learning(rules: dict[str, Any] | None = None, **more: Any) -> Callable[[Batch, Known], np.ndarray]:
    said = (rules or {}) | more

    def run(batch: Batch, given: Known) -> np.ndarray:
        learned = learn(batch, discount=given.discount, **said)  # as certeq.learn, without asking how sure it is
        return follow(learned.policy.actions, given.visits)

    return run


def _opponent(method: Callable[[Known, float], np.ndarray], constant: float) -> Callable[[Batch, Known], np.ndarray]:
    return lambda batch, given: method(given, constant)


def hold(
    world: World, size: int, seed: int, sets: tuple[int, int], who: list[Entry], tell: Callable[[str], None]
) -> dict[str, Any]:
    """Draw data sets of one size: so many to choose constants on, so many others to judge on."""
    begin = time.perf_counter()

    def values(entries: list[Entry], first: int, number: int) -> dict[tuple[str, str], list[tuple[float, ...]]]:
        found: dict[tuple[str, str], list[tuple[float, ...]]] = {(each.method, each.constant): [] for each in entries}
        for d in range(number):
            rng = np.random.default_rng([first, size, d])
            here = world if world.again is None else world.again(rng)
            batch = here.log(size, rng)
            given = known(batch, here.discounts[0])
            given = given._replace(done=here.behavior) if here.told else given
            for each in entries:
                found[each.method, each.constant].append(here.worth(each.run(batch, given)))
            tell(f"{world.name}, {size:,}: {d + 1} of {number}, {time.perf_counter() - begin:.0f} s")
        return found

    first = values([each for each in who if each.constant], seed + TUNING, sets[0])
    tuned = {pair: _rounded(np.mean(found, axis=0)) for pair, found in first.items()}
    best = {method: max((at[0], c) for (m, c), at in tuned.items() if m == method)[1] for method, _ in tuned}
    judged = values([each for each in who if best.get(each.method, "") == each.constant], seed, sets[1])
    return {
        "world": world.name,
        "size": size,
        "discounts": world.discounts,
        "landmarks": {name: _rounded(at) for name, at in world.landmarks().items()},
        "tuning": [{"method": m, "constant": c, "means": at} for (m, c), at in tuned.items()],
        "judged": [
            {"method": m, "constant": c, "values": [_rounded(each) for each in found]}
            for (m, c), found in judged.items()
        ],
        "seconds": round(time.perf_counter() - begin, 1),
    }


def _rounded(values: Iterable[float]) -> list[float]:
    return [float(f"{each:.6g}") for each in values]


class Score(NamedTuple):
    """How a method did over data sets, at one discount."""

    mean: float
    error: float  # standard error of the mean
    worst: float  # mean of the worst data sets
    below: float  # share of data sets in which it is worth less than the behavior


def score(values: Iterable[float], behavior: float, worst: float = WORST) -> Score:
    """Mean, standard error, the worst of the data sets, and the share below the behavior."""
    ordered = np.sort(list(values))
    low = ordered[: max(1, int(worst * len(ordered)))].mean()
    error = ordered.std(ddof=1) / np.sqrt(len(ordered)) if len(ordered) > 1 else np.nan
    return Score(float(ordered.mean()), float(error), float(low), float(np.mean(ordered < behavior - 1e-9)))
