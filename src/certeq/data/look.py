"""Look: what a careful person would want to know of rows before anybody plans with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certeq.base.arrays import Integers
from certeq.base.display import number, several, shorten
from certeq.data.batch import Batch
from certeq.data.binning import BinningReport, binning_report
from certeq.data.guided import Guided, guided, strongest
from certeq.data.reading.endings import lost

MARKOV_ROWS = 100_000  # up to here it is checked how Markov the states look
TRIFLE = 0.01  # share of the uncertainty that the previous state removes, below which it is not pointed out
FEW = 5  # rows of a state or a pair, below which there is little to learn from, and advice is called thin
RARE = 0.01  # share of the rows, below which an action is rare
LISTED = 8  # actions that are named
FAR = 3  # times the median: a longer step is a gap


@dataclass(frozen=True)
class Look:
    """What rows show by themselves, in words; one data set."""

    batch: Batch
    binning: BinningReport | None  # where the states were made of columns
    guided: tuple[Guided, ...] = ()  # what columns still tell about the action, given the state

    @cached_property
    def visits(self) -> Integers:
        """How often each pair occurs, ``(S, A)``."""
        rows = self.batch
        found = np.bincount(rows.state * rows.n_actions + rows.action, minlength=rows.n_states * rows.n_actions)
        return np.asarray(found.reshape(rows.n_states, rows.n_actions))

    @property
    def markov(self) -> bool | None:
        """Whether the states look Markov; None where that was not checked or cannot be told."""
        return None if self.binning is None or self.binning.markov is None else self.binning.markov.markov

    @property
    def people(self) -> str | None:
        """The alert that people acted on more than the states hold; empty where they did not, None where none asked."""
        return next(self._beyond(), "") if self.guided else None

    def lines(self) -> list[str]:
        """All of it in words."""
        binning = [] if self.binning is None else self.binning.lines()
        return [
            *binning,
            *self._acting(),
            *self._lengths(),
            *self._durations(),
            *self._rewards(),
            *self._actions(),
            *self._pairs(),
        ]

    def alerts(self) -> list[str]:
        """What deserves a second look before anybody plans."""
        return [
            *self._beyond(),
            *self._scattered(),
            *self._alike(),
            *self._one_sided(),
            *self._rare(),
            *self._history(),
        ]

    def _lengths(self) -> Iterator[str]:
        if self.batch.episode is None:
            return
        size = np.unique(self.batch.episode, return_counts=True)[1]
        low, high = int(size.min()), int(size.max())
        span = f"{several(low, 'row')}" if low == high else f"{low:,} to {high:,} rows, median {np.median(size):g}"
        yield f"{several(len(size), 'episode')} of {span}; seen to end: {int(self.batch.ended.sum()):,}."

    def _durations(self) -> Iterator[str]:
        if self.batch.duration is None or not (lasted := self.batch.duration[~self.batch.ended]).size:
            return
        middle = float(np.median(lasted))
        far = int((lasted > FAR * middle).sum())
        yield (
            f"The next decision came {self.batch.lasting(lasted)} later, median {number(middle)}. Gaps of more than "
            f"{FAR} times the median: {far:,} of {several(len(lasted), 'step')}."
        )

    def _rewards(self) -> Iterator[str]:
        earned = self.batch.reward
        if earned is None or not len(earned):
            return
        different, often = np.unique(earned, return_counts=True)
        if len(different) == 1:
            yield f"Every reward is {number(float(different[0]))}."
            return
        usual = f", {often.max() / len(earned):.0%} of them {number(float(different[often.argmax()]))}"
        yield (
            f"Rewards have {len(different):,} different values from {number(float(different[0]))} to "
            f"{number(float(different[-1]))}, mean {number(float(earned.mean()))}"
            f"{usual if often.max() > 0.1 * len(earned) else ''}."
        )
        share = lost(earned, ~self.batch.ended)
        if share > 0.1:
            yield f"{share:.0%} of their variation is on rows that end an episode."

    def _actions(self) -> Iterator[str]:
        often = self.visits.sum(axis=0)
        order = np.argsort(-often, kind="stable")
        names = [f"{shorten(self.batch.action_names[a], 40)} ({often[a] / often.sum():.0%})" for a in order[:LISTED]]
        more = f" and {len(order) - LISTED:,} more" if len(order) > LISTED else ""
        yield f"Actions, by share of the rows: {', '.join(names)}{more}."

    def _pairs(self) -> Iterator[str]:
        tried = self.visits[self.visits > 0]
        choice = int(((self.visits > 0).sum(axis=1) > 1).sum())
        thin = int((tried < FEW).sum())
        yield (
            f"More than one action was tried in {choice:,} of {several(len(self.visits), 'state')}. The median "
            f"number of rows of a tried pair is {np.median(tried):g}; {thin:,} of {several(len(tried), 'pair')} "
            f"{'has' if thin == 1 else 'have'} fewer than {FEW}."
        )

    def _scattered(self) -> Iterator[str]:
        middle = float(np.median(self.visits.sum(axis=1)))
        if middle < FEW and self.binning is not None:
            few = several(max(int(middle), 1), "row")
            yield (
                f"There are many states for so few rows: half of the states have at most {few}. Cut more "
                "coarsely (--bins 2), or name fewer columns (--state)."
            )

    def _alike(self) -> Iterator[str]:
        """Names of actions that one action may have been given."""
        known: dict[str, str] = {}
        for name in self.batch.action_names:
            other = known.setdefault(" ".join(name.lower().split()), name)
            if other != name:
                yield (
                    f"Actions {other!r} and {name!r} differ in capitals or spaces alone. If they are one, write them "
                    "alike."
                )
                return

    def _one_sided(self) -> Iterator[str]:
        if self.batch.n_actions == 1:
            yield "Only one action was ever taken, so nobody can tell what another would do."
        alone = (self.visits > 0).sum(axis=1) == 1
        share = self.visits[alone].sum() / max(self.visits.sum(), 1)
        if share > 0.5 and self.batch.n_actions > 1:
            yield f"{share:.0%} of the rows are in states where only one action was ever tried: nothing to compare."

    def _rare(self) -> Iterator[str]:
        often = self.visits.sum(axis=0)
        rare = np.flatnonzero((often > 0) & (often < RARE * often.sum()))
        if len(rare):
            name = shorten(self.batch.action_names[rare[0]], 40)
            others = f" The same is true of {several(len(rare) - 1, 'other action')}." if len(rare) > 1 else ""
            yield f"Action {name!r} was taken in only {several(int(often[rare[0]]), 'row')}, under {RARE:.0%}.{others}"

    def _acting(self) -> Iterator[str]:
        if self.guided and strongest(self.guided) is None:
            now, then = (_listed([each.column for each in self.guided if each.before == one]) for one in (False, True))
            tested = "; ".join(filter(None, (now, then and f"one row before: {then}")))
            yield f"As far as a test can tell, people acted on nothing but the state (tested: {tested})."

    def _beyond(self) -> Iterator[str]:
        found = strongest(self.guided)
        if found is not None:
            though = "" if found.used or found.before else ", even if it does not clearly help to predict what follows"
            late = "" if found.before else " But if it was recorded only after the action, leave it out of the state."
            yield (
                f"{found.line} What followed an action is then partly due to why it was chosen: the advice may look "
                "better than it is, and may even be worse than what was done. Intervals and chances do not allow for "
                f"that. {found.remedy}, as far as the rows allow{though}.{late}"
            )

    def _history(self) -> Iterator[str]:
        check = None if self.binning is None else self.binning.markov
        if check is not None and check.markov is False and check.share >= TRIFLE:
            yield (
                "The states are not quite Markov, so values and advice may be off: history matters beyond the state."
            )


def _listed(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - LISTED:,} more" if len(columns) > LISTED else ""
    return ", ".join(shorten(name, 40) for name in columns[:LISTED]) + more


def look(batch: Batch) -> Look:
    """Look at rows; with very many of them it is not checked how Markov the states are."""
    if batch.recipe is None:
        return Look(batch, None)
    report = binning_report(batch, permutations=200 if len(batch) <= MARKOV_ROWS else 0)
    return Look(batch, report, guided(batch))
