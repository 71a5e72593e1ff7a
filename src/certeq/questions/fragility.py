"""Fragility: how little would change the advice of a state.

Three measures, for each state:

- the smallest strength of a uniform prior at which the advice is not what it is without a prior, and at which it is
  not what was learned (from the regularization path);
- the smallest number of observations *against* the advised action: so many more rows of that pair, all with the worst
  outcome there is;
- the smallest number of observations *for* the runner-up: so many more rows of that pair, all with the best outcome.

An outcome is what a row of the data says about what follows: its reward r and its next state s' (or an ending), worth
r + γ·V(s') with the values V of the learned plan, or γ·V(s') where rewards are known. The worst and the best are sought
among the rows that leave the same state, whatever was done there (``outcomes="state"``, the default: what happened to
somebody like this), or among all rows of the data (``outcomes="anywhere"``). With the added rows everything is done
again, as it was: counted, rewards estimated, regularized with the same rule, planned.

The number is doubled from 1 to 64; then the cap is tried, and if that does not overturn the advice, the answer is "more
than the cap". Halving what is between the last two trials gives a number that overturns the advice while one fewer does
not. Advice can flip back with still more observations (they also move what the regularizer learns), so an even smaller
number could hide between those that were tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certeq.base import matrices as sp
from certeq.base.arrays import Booleans, Floats, Integers, first, whole
from certeq.base.display import several, told
from certeq.base.errors import InputError, unknown
from certeq.base.texts import finite
from certeq.data.batch import Batch
from certeq.data.counts import Counts
from certeq.data.sums import Sums
from certeq.learning.case import Case
from certeq.learning.learned import Learned, asked
from certeq.planners import FinitePlan, compiled
from certeq.questions.asking import WORK, Asking, Question, effort
from certeq.questions.path import ROUGHLY, RegularizationPath, follow, path
from certeq.questions.words import advised, listed, name

OUTCOMES = ("state", "anywhere")
CAP = 10_000
SOON = 7  # so many powers of two are tried before the cap is
FEW = 3
MOST, EACH = 24, 25  # states that a report asks, and about so many plans for each
UP_TO = 100  # contrary observations, where a report stops counting
ROOM = 8_000_000  # numbers in the counts that are planned together


class AddedRows(NamedTuple):
    """Rows to be added, one kind for each element: a pair, and where a row of the data says it leads."""

    state: Integers  # (B,)
    action: Integers  # (B,)
    arrival: Integers  # (B,), S for an ending
    reward: Floats  # (B,)

    def at(self, places: Any) -> AddedRows:
        """Some of them."""
        return AddedRows(self.state[places], self.action[places], self.arrival[places], self.reward[places])


@dataclass(frozen=True)
class Fragility:
    """What it takes to overturn the advice of each state."""

    advice: Integers  # (S,), -1 for none
    runner_up: Integers  # (S,), -1 where nothing else may be advised
    strength: Floats  # (S,): of a uniform prior, overturns the advice given without a prior; NaN where none does
    learned_strength: Floats  # (S,): the same for the learned advice; 0 where it differs without a prior already
    against: Integers  # (S,): worst outcomes of the advised action; 0 where not asked, cap + 1 for more than the cap
    favor: Integers  # (S,): best outcomes of the runner-up; likewise
    cap: int
    outcomes: str  # where outcomes were sought: anywhere or state
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]

    @property
    def observations(self) -> Integers:
        """Fewest contrary observations of either kind, ``(S,)``; 0 where not asked, cap + 1 for more than the cap."""
        return np.minimum(self.against, self.favor)

    @property
    def choice(self) -> Booleans:
        """States that are advised, and with something else that may be advised, ``(S,)``."""
        return np.asarray((self.advice >= 0) & (self.runner_up >= 0))

    @property
    def asked(self) -> Booleans:
        """States with a choice that were asked about, ``(S,)``."""
        return np.asarray(self.against > 0)

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """Fragility in words."""
        asked, needed, choices = np.flatnonzero(self.asked), self.observations, int(self.choice.sum())
        if not choices:
            return ["In no state could anything else be advised, so no observation can overturn the advice."]
        if not len(asked):
            return [f"No state was asked about; in {choices:,} there is a choice."]
        one, few = (asked[needed[asked] <= k] for k in (1, FEW))
        where = "where there is a choice"
        if len(asked) < choices:
            where = f"asked about (there is a choice in {choices:,})"
        sturdy = int((needed[asked] > self.cap).sum())
        told = [
            f"One contrary observation would change the advice in {len(one):,} of {several(len(asked), 'state')} "
            f"{where}{listed(self.state_names, one)}; {FEW} or fewer would in {len(few):,}. In half of them it takes "
            f"{int(np.median(needed[asked])):,} at most.",
        ]
        if sturdy:
            told.append(f"In {several(sturdy, 'state')} it takes more than {self.cap:,} contrary observations.")
        moved = int(np.isfinite(self.learned_strength[asked]).sum())
        told.append(
            f"In {moved:,} of {several(len(asked), 'state')}, some strength of a uniform prior would change the advice."
        )
        return told

    def line(self, state: int) -> str:
        """One state's advice, in words: what would change it."""
        if not self.asked[state]:
            return "This state was not asked about." if self.choice[state] else "Nothing else can be advised here."
        counts = []
        for number, outcome, action in (
            (int(self.against[state]), "bad", int(self.advice[state])),
            (int(self.favor[state]), "good", int(self.runner_up[state])),
        ):
            often = f"more than {self.cap:,}" if number > self.cap else f"{number:,}"
            outcomes = f"{outcome} {'outcome' if number == 1 else 'outcomes'}"
            counts.append(f"{often} {outcomes} of {name(self.action_names[action])}")
        return f"{' or '.join(counts)} would change this."

    def to_json(self) -> dict[str, Any]:
        """Write fragility as plain values: None where not asked or never overturned."""

        def plain(numbers: Integers) -> list[Any]:
            return [None if not 0 < number <= self.cap else number for number in numbers.tolist()]

        return {
            "format": "certeq-fragility",
            "version": 1,
            "states": list(self.state_names),
            "actions": list(self.action_names),
            "advice": advised(self.advice, self.action_names),
            "runner_up": advised(self.runner_up, self.action_names),
            "asked": self.asked.tolist(),
            "strength": finite(self.strength),
            "learned_strength": finite(self.learned_strength),
            "cap": self.cap,
            "outcomes": self.outcomes,
            "against": plain(self.against),
            "favor": plain(self.favor),
            "words": self.lines(),
        }


def fragility(
    learned: Learned,
    *,
    states: Sequence[int] | None = None,
    outcomes: str = "state",
    cap: int = CAP,
    along: RegularizationPath | None = None,
) -> Fragility:
    """Find out what it takes to overturn the advice of each state.

    Parameters
    ----------
    learned
        What `certeq.learn` returned; with a horizon, its first decision is asked about.
    states
        Numbers of the states to count contrary observations for: all by default. A large sparse model needs it said.
    outcomes
        Where the worst and the best outcome are sought: among rows of the same ``state``, or ``anywhere`` in the data.
    cap
        Where to stop counting.
    along
        The path along the strength of a uniform prior, if it already exists.
    """
    if outcomes not in OUTCOMES:
        raise unknown("place for outcomes", outcomes, OUTCOMES)
    case, most = asked(learned), whole("cap", cap, 1)
    batch = case.data.rows("This part asks for the best and the worst of the rows that were seen")
    advice, runner = learned.policy.first.actions, learned.policy.first.runner_up()[0]
    open_to = _asked(case, states, (advice >= 0) & (runner >= 0))
    line = follow(case, "strength") if along is None else along
    against, favor = np.zeros_like(advice), np.zeros_like(advice)
    if len(open_to):
        worth = _worth(learned, batch)
        bad, good = (_extreme(batch, sign * worth, outcomes)[open_to] for sign in (1, -1))
        rows = _rows(batch, np.tile(open_to, 2), np.append(advice[open_to], runner[open_to]), np.append(bad, good))
        against[open_to], favor[open_to] = _fewest(case, rows, advice, most).reshape(2, -1)
    return Fragility(
        advice=advice,
        runner_up=runner,
        strength=line.first_departure(line.policies[0]),
        learned_strength=line.first_departure(advice),
        against=against,
        favor=favor,
        cap=most,
        outcomes=outcomes,
        state_names=case.data.state_names,
        action_names=case.data.action_names,
    )


def _asked(case: Case, states: Sequence[int] | None, open_to: Booleans) -> Integers:
    """States to ask about: those said, where there is a choice."""
    S = len(open_to)
    if states is None:
        if case.data.counts.sparse:
            raise InputError(f"With {S:,} states, say which to ask about, as states=[...]: each takes many plans.")
        return np.flatnonzero(open_to)
    said = np.asarray(states, dtype=np.int64)
    bad = (said < 0) | (said >= S)
    if bad.any():
        raise InputError(f"states are numbers from 0 to {S - 1}; got {said[first(bad)]}.")
    return np.unique(said[open_to[said]])


def _worth(learned: Learned, batch: Batch) -> Floats:
    """What each row of the data says an outcome is worth, ``(n,)``: r + γ·V(s'), nothing beyond an ending."""
    plan, ahead = learned.plan, learned.plan.values
    if isinstance(plan, FinitePlan):
        ahead = plan.values[1] if plan.horizon > 1 else np.zeros(batch.n_states)
    later = learned.rules.discount * np.append(ahead, 0.0)[_arrival(batch)]
    return np.asarray(later if learned.rewards is None or batch.reward is None else batch.reward + later)


def _extreme(batch: Batch, worth: Floats, outcomes: str) -> Integers:
    """The row with the lowest worth for each state, ``(S,)``: of the whole data, or of its own where it has any."""
    lowest = np.full(batch.n_states, int(worth.argmin()))
    if outcomes == "state":
        order = np.lexsort((worth, batch.state))
        state, begin = np.unique(batch.state[order], return_index=True)
        lowest[state] = order[begin]
    return lowest


def _rows(batch: Batch, state: Integers, action: Integers, source: Integers) -> AddedRows:
    """Rows of some pairs with the outcomes of some rows of the data."""
    reward = np.zeros(len(batch)) if batch.reward is None else batch.reward
    return AddedRows(state, action, _arrival(batch)[source], reward[source])


def _arrival(batch: Batch) -> Integers:
    return np.where(batch.ended, batch.n_states, batch.next_state)


def _fewest(case: Case, rows: AddedRows, advice: Integers, cap: int) -> Integers:
    """Smallest number of rows of each kind that overturns the advice of their state, ``(B,)``; cap + 1 if none does."""
    low, high = np.zeros(len(rows.state), dtype=np.int64), np.full(len(rows.state), cap + 1)  # not enough; enough
    small, many = not case.data.counts.sparse, (SOON * len(rows.state),)  # all trials together may be worth a compiler
    how = {"engine": "numba"} if small and compiled.worth(many, case.data.counts.n_states) else {}
    for trial in (*(2**i for i in range(SOON) if 2**i < cap), cap):
        left = np.flatnonzero(high > cap)
        overturned = _overturns(case, rows.at(left), np.full(len(left), trial), advice, how)
        high[left[overturned]], low[left[~overturned]] = trial, trial
    while True:
        left = np.flatnonzero((high <= cap) & (high - low > 1))
        if not len(left):
            return high
        trials = np.minimum((low + high) // 2, 2 * low)[left]
        overturned = _overturns(case, rows.at(left), trials, advice, how)
        high[left], low[left] = np.where(overturned, trials, high[left]), np.where(overturned, low[left], trials)


def _overturns(case: Case, rows: AddedRows, times: Integers, advice: Integers, how: Mapping[str, Any]) -> Booleans:
    """Whether so many rows of each kind change the advice of their state, ``(B,)``."""
    S, A = case.data.counts.n_states, case.data.counts.n_actions
    size = 1 if case.data.counts.sparse else max(1, ROOM // (S * A * S))
    found = np.zeros(len(times), dtype=bool)
    for start in range(0, len(times), size):
        block = slice(start, start + size)
        state = rows.state[block]
        policy = np.atleast_2d(_with_rows(case, rows.at(block), times[block]).advise(**how).policy)
        found[block] = policy[np.arange(len(state)), state] != advice[state]
    return found


def _with_rows(case: Case, rows: AddedRows, times: Integers) -> Case:
    """The case with rows added, one variant for each element."""
    data = case.data
    counts, reward = _recount(data.counts, rows, times), data.reward
    if isinstance(reward, Sums):
        reward = reward.add(*rows, times)
        reward = reward[0] if data.counts.sparse else reward
    return case.supposing(counts, reward)


def _recount(counts: Counts, rows: AddedRows, times: Integers) -> Counts:
    S, A = counts.n_states, counts.n_actions
    stays, variant = rows.arrival < S, np.arange(len(times))
    ended = None
    if counts.ended is not None:
        ended = np.repeat(counts.ended[None], len(times), axis=0)
        ended[variant[~stays], rows.state[~stays], rows.action[~stays]] += times[~stays]
    if counts.sparse:
        place = (rows.state * A + rows.action)[stays], rows.arrival[stays]
        more = sp.coo_array((times[stays], place), shape=(S * A, S))
        return Counts(counts.transitions + more.tocsr(), None if ended is None else ended[0], A, counts.positions)
    transitions = np.repeat(counts.transitions[None], len(times), axis=0)
    transitions[variant[stays], rows.state[stays], rows.action[stays], rows.arrival[stays]] += times[stays]
    return Counts(transitions, ended, A, counts.positions)


def _ask(asking: Asking) -> Fragility:
    """Ask the most visited of the states that have something else to advise, as many as there is time for."""
    learned = asking.learned
    open_to = learned.policy.first.runner_up()[0] >= 0
    order = np.argsort(-learned.policy.visits.sum(axis=1), kind="stable")
    most = int(min(WORK / (EACH * effort(learned)), MOST))
    along = path(learned, tolerance=ROUGHLY)
    return fragility(learned, states=order[open_to[order]][:most].tolist(), cap=UP_TO, along=along)


ASKED = Question(
    "fragility",
    _ask,
    doing="Counting what would change the advice",
    by_itself="certeq.fragility(learned)",
    asks="how little would change the advice",
    plans=300,
)
