"""What the binning does to the data: how thin it spreads the rows, and how Markov the states look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certeq.base.arrays import Booleans, Integers, Rng, generator, whole
from certeq.base.display import in_a_sentence, percent, several
from certeq.data.batch import Batch

FEW = 100  # rows that have a previous row in their episode; with fewer the check finds nothing either way
ROWS = 200_000  # rows that the Markov check looks at, drawn at random where there are more


@dataclass(frozen=True)
class MarkovCheck:
    """How much the previous state still tells about the next one, given the current state and action; in bits."""

    observed: float  # I(next; previous | state, action) in the data
    expected: float  # its mean when the previous states are shuffled: what few rows pretend by themselves
    p_value: float  # share of shuffles with at least as much, the data counted as one of them
    uncertainty: float  # H(next | state, action), all there is to tell
    rows: int  # rows that have a previous row in their episode

    @property
    def excess(self) -> float:
        """Information beyond what shuffling leaves; about 0 where the states are Markov."""
        return self.observed - self.expected

    @property
    def share(self) -> float:
        """How much of what state and action leave open about the next state the previous one removes."""
        return max(self.excess / self.uncertainty, 0.0) if self.uncertainty > 0 else 0.0

    @property
    def markov(self) -> bool | None:
        """Whether the states look Markov; None where there are too few rows to tell."""
        return None if self.rows < FEW else self.p_value > 0.05

    def lines(self) -> list[str]:
        """The finding in words."""
        if not self.rows:
            return ["Whether the states are Markov cannot be checked: no row has a previous row in its episode."]
        if self.rows < FEW:
            return [f"There are too few rows to check whether the states are Markov ({self.rows:,}; it takes {FEW:,})."]
        told = f"({self.rows:,} rows, excess {max(self.excess, 0):.3f} bits, p = {self.p_value:.3g})"
        if self.markov:
            return [f"The states look Markov: the previous state tells nothing more about the next one {told}."]
        little = in_a_sentence(percent(self.share))
        return [
            f"The states are not quite Markov: the previous state removes {little} of what state and action "
            f"leave open about the next one {told}. Finer bins, or the previous value as another column, may help."
        ]


def markov_check(batch: Batch, *, permutations: int = 200, rng: Rng = 0) -> MarkovCheck:
    """Ask whether the previous state still predicts the next one, given the current state and action.

    The conditional mutual information I(next; previous | state, action) over consecutive rows is compared with what
    remains of it when ``previous`` is shuffled among the rows of each (state, action). Shuffling keeps all pairs of
    counts but one, so only Σ n log n over (previous, state, action, next) has to be counted again.
    """
    whole("permutations", permutations, 1)
    random = generator(rng)
    before, now = consecutive(batch)
    if len(now) > ROWS:
        kept = np.sort(random.choice(len(now), ROWS, replace=False))
        before, now = before[kept], now[kept]
    n = len(now)
    if n == 0:
        return MarkovCheck(0.0, 0.0, 1.0, 0.0, 0)
    pair = _codes(batch.state[now] * (int(batch.action.max()) + 1) + batch.action[now])
    previous, following = batch.state[before], batch.next_state[now]
    uncertainty = (_n_log_n(pair) - _n_log_n(_join(pair, following))) / n
    telling = _varied(pair, previous) & _varied(pair, following)  # the other pairs have nothing to tell or be told
    order = np.flatnonzero(telling)[np.argsort(pair[telling], kind="stable")]
    pair, previous, following = _codes(pair[order]), _codes(previous[order]), _codes(following[order])
    joint = _join(pair, following)
    fixed = _n_log_n(pair) - _n_log_n(joint) - _n_log_n(_join(pair, previous))
    place = _codes(joint) * (previous.max(initial=0) + 1)
    observed = fixed + _n_log_n(place + previous)
    shuffled = np.array([fixed + _n_log_n(place + _shuffle(pair, previous, random)) for _ in range(permutations)])
    as_much = int((shuffled >= observed - 1e-9 * n).sum())
    return MarkovCheck(
        observed=max(observed, 0.0) / n,
        expected=float(shuffled.mean()) / n,
        p_value=(1 + as_much) / (1 + permutations),
        uncertainty=uncertainty,
        rows=n,
    )


def consecutive(batch: Batch) -> tuple[Integers, Integers]:
    """Rows that follow one another within an episode: (previous row, row), by time, or as they stand."""
    if batch.episode is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    keys = (batch.episode,) if batch.time is None else (batch.time, batch.episode)
    order = np.lexsort(keys)
    before, now = order[:-1], order[1:]
    linked = (batch.episode[before] == batch.episode[now]) & (batch.next_state[before] == batch.state[now])
    if batch.time is not None and linked.any():
        step = batch.time[now] - batch.time[before]
        sizes, often = np.unique(step[linked], return_counts=True)
        linked &= step == sizes[np.argmax(often)]
    return before[linked], now[linked]


def _codes(values: Integers) -> Integers:
    """Values renumbered 0, 1, ... so that products of a few of them stay small."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _join(one: Integers, other: Integers) -> Integers:
    """One number for each combination of two."""
    codes = _codes(other)
    return np.asarray(one * (codes.max(initial=0) + 1) + codes)


def _varied(stratum: Integers, values: Integers) -> Booleans:
    """Which rows lie in a stratum that has at least two different values."""
    largest, smallest = np.full(stratum.max() + 1, values.min()), np.full(stratum.max() + 1, values.max())
    np.maximum.at(largest, stratum, values)
    np.minimum.at(smallest, stratum, values)
    return np.asarray((largest > smallest)[stratum])


def _n_log_n(keys: Integers) -> float:
    """Σ n log₂ n over how often each key occurs."""
    if int(keys.max(initial=0)) < 4 * len(keys):
        counts = np.bincount(keys)
        n = counts[counts > 0].astype(np.float64)
    else:
        ordered = np.sort(keys)
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
        n = np.diff(ends, prepend=-1).astype(np.float64)
    return float((n * np.log2(n)).sum())


def _shuffle(stratum: Integers, values: Integers, random: np.random.Generator) -> Integers:
    """Shuffle the values within each stratum: shuffle all rows, then sort them back into their strata.

    The strata must be sorted. NumPy sorts 16-bit numbers by counting, several times faster than larger ones.
    """
    small = stratum.astype(np.uint16) if stratum.max(initial=0) < 1 << 16 else stratum
    anywhere = random.permutation(len(values))
    return np.asarray(values[anywhere[np.argsort(small[anywhere], kind="stable")]])


@dataclass(frozen=True)
class BinningReport:
    """How the rows of a batch are spread over the states."""

    used: int  # states that occur, as state or as next state
    possible: int  # combinations of all codes
    rows: int
    fewest: int  # rows in a state
    median: float
    most: int
    markov: MarkovCheck | None = None

    @property
    def never_seen(self) -> int:
        """Combinations that do not occur."""
        return self.possible - self.used

    def lines(self) -> list[str]:
        """The report in words."""
        seen = several(self.used, "state occurs", "states occur")
        if self.possible > self.used:
            never = several(self.never_seen, "was", "were")
            seen += f" of {self.possible:,} possible combinations ({never} never seen)"
        spread = f"between {self.fewest:,} and {self.most:,} in a state, median {self.median:g}"
        if self.fewest == self.most:
            spread = (
                f"{'all ' if self.rows > 1 else ''}in one state" if self.used == 1 else f"{self.most:,} in each state"
            )
        return [f"{seen}.", f"{several(self.rows, 'row')}: {spread}.", *(self.markov.lines() if self.markov else [])]


def binning_report(batch: Batch, *, permutations: int = 200, rng: Rng = 0) -> BinningReport:
    """Report what the binning does: cells used, rows in each, and, where episodes are known, how Markov it looks.

    With ``permutations=0`` the last is left out.
    """
    rows = np.bincount(batch.state, minlength=batch.n_states)
    told = batch.episode is not None
    return BinningReport(
        used=batch.n_states,
        possible=batch.n_states if batch.recipe is None else batch.recipe.possible,
        rows=len(batch.state),
        fewest=int(rows.min()),
        median=float(np.median(rows)),
        most=int(rows.max()),
        markov=markov_check(batch, permutations=permutations, rng=rng) if permutations and told else None,
    )
