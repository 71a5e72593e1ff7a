"""Read the transition table that Gymnasium's tabular environments carry.

The table ``P`` gives for each state and action a list of outcomes ``(probability, next_state, reward, terminated)``.
A reader has to know three things. The same next state may be listed more than once, so probabilities are added up. The
reward belongs to the outcome, so the pair's reward is the mean over outcomes. And ``terminated`` says that the episode
is over: here that is probability missing from the row, so that no value follows, whatever the table says about the
state it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certeq.base import matrices as sp
from certeq.base.arrays import ArrayLike, Booleans, Floats, Integers, Rng, floats, generator, whole
from certeq.base.arrays import first as first_of
from certeq.base.errors import InputError
from certeq.data.batch import ENDED, Batch
from certeq.model.kernel import Kernel, Rows, SparseRows
from certeq.model.mdp import MDP

DENSE_LIMIT = 2_000_000  # S * A * S entries: beyond, rows are kept sparse
SUM_TOLERANCE = 1e-6  # rounding allowed in the table's probabilities, which are then scaled to sum to one


def from_table(P: Any, *, discount: float = 0.99, start: ArrayLike | None = None) -> MDP:
    """Read a table ``P[s][a] = [(probability, next_state, reward, terminated), ...]``, or an environment that has one.

    From an environment the start distribution (``initial_state_distrib``) is taken too, unless ``start`` is given.
    """
    if hasattr(P, "unwrapped"):
        world = P.unwrapped
        if not hasattr(world, "P"):
            raise InputError(f"{type(world).__name__} has no transition table: it needs an attribute P.")
        P, start = world.P, getattr(world, "initial_state_distrib", None) if start is None else start
    outcomes = _read(P)
    outcomes.check()
    return MDP(
        outcomes.transition(),
        outcomes.reward(),
        discount,
        start=None if start is None else floats("start", start),
    )


def log_table(
    P: Any, episodes: int, length: int, *, behavior: ArrayLike, start: ArrayLike | None = None, rng: Rng = None
) -> Batch:
    """Log episodes of a table, or of an environment that has one, with what each *outcome* pays.

    ``behavior`` are chances of the actions, ``(S, A)``. An environment says itself where episodes start.
    """
    if hasattr(P, "unwrapped"):
        P, start = P.unwrapped.P, getattr(P.unwrapped, "initial_state_distrib", None) if start is None else start
    found, random = _read(P), generator(rng)
    found.check()
    S, A = found.n_states, found.n_actions
    chance = np.cumsum(floats("behavior", behavior).reshape(S, A), axis=-1)[:, :-1]
    begin = np.searchsorted(found.line, np.arange(S * A))
    running = np.cumsum(found.share)  # of line i it rises from i to i + 1
    who = np.arange(whole("episodes", episodes, 1))
    first = np.full(S, 1 / S) if start is None else floats("start", start)
    state, rows = random.choice(S, size=len(who), p=first / first.sum()), []
    for t in range(whole("length", length, 1)):
        action = (random.random((len(who), 1)) >= chance[state]).sum(axis=-1)
        line = state * A + action
        at = np.searchsorted(running, line + random.random(len(who)), side="right")
        at = np.clip(at, begin[line], np.append(begin[1:], len(running))[line] - 1)
        over = found.terminated[at]
        following = np.where(over, ENDED, found.next_state[at])
        rows.append((who, np.full_like(who, t), state, action, found.gain[at], following))
        who, state = who[~over], following[~over]
        if not len(who):
            break
    episode, time, here, taken, paid, then = (np.concatenate(column) for column in zip(*rows, strict=True))
    order = np.lexsort((time, episode))
    who, time, paid = episode[order], time[order], paid[order]
    return Batch(here[order], taken[order], then[order], S, A, reward=paid, episode=who, time=time)


@dataclass(frozen=True)
class Outcomes:
    """The table as columns: outcome i belongs to pair ``line[i] = s * n_actions + a``."""

    n_states: int
    n_actions: int
    line: Integers
    probability: Floats
    next_state: Integers
    gain: Floats
    terminated: Booleans

    @property
    def total(self) -> Floats:
        """Sum of each pair's probabilities, (S * A,)."""
        return _sums(self.line, self.probability, self.n_states * self.n_actions)

    @property
    def share(self) -> Floats:
        """Probabilities, scaled so that each pair's sum is one to the last digit."""
        return np.asarray(self.probability / self.total[self.line])

    def check(self) -> None:
        """Name the first pair with a value that makes no sense."""
        S = self.n_states
        self._refuse(~(self.probability >= 0), "probability", self.probability, "is not a probability")
        self._refuse(
            (self.next_state < 0) | (self.next_state >= S), "next state", self.next_state, f"is not in 0..{S - 1}"
        )
        self._refuse(~np.isfinite(self.gain), "reward", self.gain, "is not finite")
        off = ~(np.abs(self.total - 1) <= SUM_TOLERANCE)
        if off.any():
            (line,) = first_of(off)
            raise InputError(f"{self._pair(line)}: the probabilities sum to {self.total[line]:.9g}; expected 1.")

    def _refuse(self, bad: Booleans, what: str, values: Floats | Integers, why: str) -> None:
        if bad.any():
            (i,) = first_of(bad)
            raise InputError(f"{self._pair(self.line[i])}: the {what} {values[i]} {why}.")

    def _pair(self, line: int) -> str:
        state, action = divmod(int(line), self.n_actions)
        return f"State {state}, action {action}"

    def transition(self) -> Kernel:
        """Rows over next states, without what terminates; sparse where the dense array would be large."""
        S, A = self.n_states, self.n_actions
        on = ~self.terminated
        entries = (self.share[on], (self.line[on], self.next_state[on]))
        matrix = sp.coo_array(entries, shape=(S * A, S)).tocsr()  # adds up what is repeated
        if S * A * S > DENSE_LIMIT:
            return SparseRows(matrix, S, A)
        return Rows(matrix.toarray().reshape(S, A, S))

    def reward(self) -> Floats:
        """Mean reward of each pair, (S, A)."""
        S, A = self.n_states, self.n_actions
        return _sums(self.line, self.share * self.gain, S * A).reshape(S, A)


def _sums(line: Integers, amounts: Floats, lines: int) -> Floats:
    """Add up what belongs to each line."""
    return np.bincount(line, amounts, minlength=lines).astype(np.float64, copy=False)


def _read(P: Any) -> Outcomes:
    """Turn the nested table into columns, after looking at its outline."""
    states = _numbered(P, "P", "state")
    actions = [_numbered(row, f"State {s}", "action") for s, row in enumerate(states)]
    A = len(actions[0])
    for s, row in enumerate(actions):
        if len(row) != A:
            raise InputError(
                f"State {s} has {len(row)} actions, but state 0 has {A}: every state needs the same actions."
            )
    flat = [
        (s * A + a, *outcome)
        for s, row in enumerate(actions)
        for a, out in enumerate(row)
        for outcome in _outcomes(out, s, a)
    ]
    line, probability, next_state, gain, terminated = zip(*flat, strict=True)
    try:
        return Outcomes(
            n_states=len(states),
            n_actions=A,
            line=np.array(line, dtype=np.int64),
            probability=np.array(probability, dtype=np.float64),
            next_state=np.array(next_state, dtype=np.int64),
            gain=np.array(gain, dtype=np.float64),
            terminated=np.array(terminated, dtype=np.bool_),
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"P holds something that is not a number: {error}.") from None


def _numbered(table: Any, where: str, kind: str) -> list[Any]:
    """List the entries 0, 1, 2, ... of a dict or a sequence, none of them missing."""
    if isinstance(table, Mapping):
        missing = [i for i in range(len(table)) if i not in table]
        if missing:
            raise InputError(
                f"{where} lacks {kind} {missing[0]}: {kind}s are numbered 0..{len(table) - 1} without a gap."
            )
        entries = [table[i] for i in range(len(table))]
    elif isinstance(table, Sequence) and not isinstance(table, str):
        entries = list(table)
    else:
        raise InputError(f"{where} must be a dict or a list with one entry per {kind}; got {type(table).__name__}.")
    if not entries:
        raise InputError(f"{where} has no {kind}s.")
    return entries


def _outcomes(outcomes: Any, s: int, a: int) -> Iterator[tuple[Any, ...]]:
    """Yield a pair's outcomes, each of them four values with a whole number as next state."""
    if not isinstance(outcomes, Sequence) or not outcomes:
        raise InputError(f"State {s}, action {a}: expected a list of outcomes; got {outcomes!r}.")
    for outcome in outcomes:
        if not isinstance(outcome, Sequence) or len(outcome) != 4 or not isinstance(outcome[1], int | np.integer):
            raise InputError(
                f"State {s}, action {a}: an outcome is (probability, next_state, reward, terminated), "
                f"with a whole number as next_state; got {outcome!r}."
            )
        yield tuple(outcome)
