"""What a policy's own rows say about a correction of its values, roughly.

The values of a policy whose rows, times the discount, are P are off by d where (I - P) d = r, the residual. Sweeps add
up d = r + P r + P² r + ...; where they mix slowly, BiCGStab gets there in far fewer steps. Neither need be precise: the
next full pass over the model sees what is left, and asks again. So rows that are slow to mix are kept in single
precision. The vectors are not: BiCGStab needs their digits, and loses its way without.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certeq.base.arrays import Floats
from certeq.model.kernel import Operator, Rows
from certeq.planners.backup import policy_operator
from certeq.planners.sparse import kernels
from certeq.planners.sparse.kernels import BLOCK, Followed, Lines, PerPair

Singles = NDArray[np.float32]
Actions = NDArray[np.uint32]

TRIAL = 3  # sweeps before it is judged how fast they mix
SWEEPS = 12  # sweeping goes on if at most this many more sweeps are expected
PARTIAL = 100  # sweeps at most
STEPS = 5000  # of BiCGStab at most
FAILURES = 3  # of BiCGStab, after which it is not tried again
LOST = 1e8  # times the residual it began with: BiCGStab will not come back from there
LIGHT = 64  # blocks: passes over mere vectors are worth several threads from here on
FEW = 8  # rows that all states share are kept side by side, up to so many of a part
NOTHING = 2.0**-23  # a chance that is lost beside one in single precision
SPARE = 0.05  # of what discounting takes off: no row may lose more of its mass
NOBODY = 2**32 - 1  # an action that nobody takes
ALL = PerPair(np.ones(1), 0, 0)
NOBODYS = Followed(
    np.zeros(1, dtype=np.uint32), np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint32), np.empty(0),
    np.empty((0, 0), dtype=np.float32),
)  # fmt: skip


class Component(NamedTuple):
    """A share of the model: rows that count with ``base + slope * weight``."""

    rows: Lines | Rows | Operator
    weight: PerPair
    base: float
    slope: float


class Choice(NamedTuple):
    """An action for each state, and the probability with which it is taken."""

    policy: Actions
    share: PerPair


class Follower:
    """The rows of the policy that is followed, and how to solve with them.

    ``averaging`` says that the policy is stochastic: it is given as several choices. ``contraction`` is γ mass.
    """

    def __init__(
        self,
        parts: list[Component],
        S: int,
        A: int,
        discount: float,
        contraction: float,
        averaging: bool,
        run: Callable[..., Any],
    ) -> None:
        self.parts, self.discount, self.contraction, self.run = parts, discount, contraction, run
        self.blocks = -(-S // BLOCK)
        self.notes = np.zeros((self.blocks, 3))
        self.slots = self._slots(S, A, averaging)
        size, longest = int(self.slots[-1]), int(np.diff(self.slots).max(initial=1))
        self.least = min(NOTHING, SPARE * (1 - contraction) / max(longest, 1))  # what is left out where steps are many
        self.room: tuple[Actions, Floats | Singles] = np.empty(size, dtype=np.uint32), np.empty(size)
        self.lengths = np.zeros(S, dtype=np.uint32)
        self.before = np.full(S, NOBODY, dtype=np.uint32)  # whose rows were copied
        self.vectors = [np.empty(S) for _ in range(7)]  # pages that are never touched cost nothing
        self.slow = False  # whether sweeps were seen to mix slowly
        self.failures = 0  # of BiCGStab

    def _slots(self, S: int, A: int, averaging: bool) -> NDArray[np.unsignedinteger]:
        slots = np.zeros(S + 1, dtype=np.uint64)
        for part in self.parts:
            if isinstance(part.rows, Lines):
                self.run(kernels.add_room, self.blocks, part.rows, A, averaging, slots[1:], grain=LIGHT)
        np.cumsum(slots, out=slots)
        return slots.astype(np.uint32) if slots[-1] < 2**32 else slots

    @property
    def precise(self) -> bool:
        """Whether the rows are those of the data alone, in double precision."""
        return not self.slow and sum(isinstance(part.rows, Lines) for part in self.parts) == 1

    def take(self, choices: list[Choice]) -> None:
        """Copy the rows of a policy; of several choices, the average."""
        first, least = True, self.least if self.slow else 0.0
        for part in self.parts:
            for choice in choices:
                if isinstance(part.rows, Lines):
                    factors = self.discount * part.base, self.discount * part.slope
                    what = part.rows, part.weight, *factors, choice.share, choice.policy, self.before, first
                    self.run(kernels.copy_rows, self.blocks, *what, least, self.slots, self.lengths, *self.room)
                    first = False
        self.before[:] = choices[0].policy if len(choices) == 1 else NOBODY
        shared, amounts = list[Any](), list[Any]()
        self.others: list[tuple[Floats, Callable[[Floats], Floats]]] = []  # amounts of further dense rows
        for part in self.parts:
            rows = part.rows
            if isinstance(rows, Lines):
                continue
            much = [self._amounts(part, choice) for choice in choices]
            if isinstance(rows, Rows) and rows.shape[0] == 1 and rows.shape[1] <= FEW:  # one, or one for each action
                for a, row in enumerate(rows.array[0]):
                    taken = [1.0 if rows.shape[1] == 1 else choice.policy == a for choice in choices]
                    amount = sum(own * each for own, each in zip(taken, much, strict=True))
                    if np.max(amount) > least:
                        shared.append(row)
                        amounts.append(amount)
            else:
                acted = [policy_operator(rows, choice.policy.astype(np.int64)) for choice in choices]
                self.others += zip(much, acted, strict=True)
        S = len(self.lengths)
        self.shared: Singles = np.array(shared, dtype=np.float32).reshape(-1, S)  # rows that all states share
        self.pulled = np.empty((self.blocks, len(self.shared)))
        kept = np.array(amounts, dtype=np.float32).reshape(-1, S)
        self.followed = Followed(self.slots, self.lengths, *self.room, kept)

    def _amounts(self, part: Component, choice: Choice) -> Floats:
        """How much of a part each state takes, ``(S,)``."""
        amount = np.zeros(len(self.lengths))
        what = part.weight, self.discount * part.slope, choice.share, choice.policy
        self.run(kernels.add_amounts, self.blocks, *what, amount, grain=LIGHT)
        return amount

    def _targets(self, x: Floats) -> tuple[Floats, Floats]:
        """What the dense target rows expect of x: each shared one, and all others by state, if there are any."""
        if len(self.shared):
            self.run(kernels.pull, self.blocks, self.shared, x, self.pulled, grain=LIGHT)
        pulled = self.pulled.sum(axis=0)
        if not self.others:
            return pulled, np.empty(0)
        extra = np.zeros(len(x))
        for amount, expect in self.others:
            extra += amount * expect(x)
        return pulled, extra

    def _sizes(self, even: bool) -> tuple[float, float]:
        """Size of a vector whose least and greatest entries are noted, and the constant that may be taken off it."""
        low, high = float(self.notes[:, 0].min()), float(self.notes[:, 1].max())
        middle = (low + high) / 2 if even else 0.0
        return max(high - middle, middle - low), middle

    def correct(self, goal: float, even: bool, trial: bool = False) -> Floats:
        """Solve roughly: until the part ``goal`` of the residual, whose largest entry is 1, is left, if that can be.

        The residual stands in the first and the third of the vectors. If ``even``, all rows have the same mass, and
        constants do not matter. A ``trial`` ends where sweeps mix slowly.
        """
        x, y, total, *scratch = self.vectors
        size, rate, middle, done, failed = 1.0, 1.0, 0.0, 0, self.failures >= FAILURES
        while size * rate > goal and done < PARTIAL:  # what is left is the next term of the sum
            if self.slow and trial:
                break
            if self.slow and not failed:
                if middle:
                    self.run(kernels.take_off, self.blocks, x, middle, grain=LIGHT)
                failed = not self._bicgstab(x, y, total, scratch, goal, even)
                if not failed:
                    break
                self.failures += 1
            self.run(kernels.follow, self.blocks, self.followed, *self._targets(x), x, y, total, self.notes)
            left, middle = self._sizes(even)
            x, y, size, rate, done = y, x, left, left / size, done + 1
            if not self.slow and done >= TRIAL and size > goal and _many(goal / size, rate):
                self._slow_down()
        self.vectors = [x, y, total, *scratch]
        return total

    def _slow_down(self) -> None:
        """Be ready for many steps: with rows in single precision, which are two thirds of the bytes or fewer."""
        self.slow, light = True, np.empty(len(self.room[1]), dtype=np.float32)
        self.run(kernels.lighten, self.blocks, self.followed, self.least, light)
        self.room = self.room[0], light
        self.followed = self.followed._replace(chances=light)

    def _bicgstab(self, r: Floats, t: Floats, total: Floats, scratch: list[Floats], goal: float, even: bool) -> bool:
        """Van der Vorst's method: replace r in the total by d, (I - P) d = r up to ``goal``; False if that fails."""
        run, notes, blocks = self.run, self.notes, self.blocks
        d, shadow, p, v = scratch
        run(kernels.first, blocks, r, d, shadow, p, notes, grain=LIGHT)
        rho = float(notes[:, 0].sum())
        for _ in range(min(STEPS, int(log(goal) / log(self.contraction)) + 1)):  # sweeps would need no more
            run(kernels.apply, blocks, self.followed, *self._targets(p), p, v, shadow, notes)
            along = float(notes[:, 0].sum())
            alpha = rho / along if along else np.inf
            if not isfinite(alpha):
                break
            run(kernels.half, blocks, r, alpha, v, grain=LIGHT)  # nothing of the shadow is left in r
            run(kernels.apply, blocks, self.followed, *self._targets(r), r, t, shadow, notes)
            with_shadow, with_r, square = notes.sum(axis=0).tolist()
            omega = with_r / square if square else 0.0
            rho, before = -omega * with_shadow, rho
            beta = rho / before * alpha / omega if omega else 0.0
            if not (isfinite(omega) and isfinite(beta)):
                break
            run(kernels.whole, blocks, d, r, p, v, t, alpha, omega, beta, notes, grain=LIGHT)
            size, _ = self._sizes(even)
            if size <= goal:
                run(kernels.last, blocks, total, d, shadow, grain=LIGHT)
                return True
            if not (rho and omega and size < LOST):
                break
        r[:] = shadow
        return False


def _many(part: float, rate: float) -> bool:
    """Whether reaching that part at that rate takes more sweeps than is worth it."""
    return part < 1 and (rate >= 1 or log(part) / log(rate) > SWEEPS)
