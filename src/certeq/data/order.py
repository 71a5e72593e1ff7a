"""Order: rows of a batch, one episode after another; and sections of long episodes, where there are few of them.

Episodes are drawn again, dealt into parts and held against one another. One store that was watched for three years is
one episode, of which nothing could be learned in that way: drawn again it is always the same, and dealt out it leaves
no rows to predict it from. So where episodes are few, long ones are cut into sections of neighboring rows, which have
little to do with one another if they are long enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certeq.base.arrays import Integers
from certeq.base.errors import InputError
from certeq.data.batch import Batch

FEW = 10  # episodes: as many or more are not cut
LONG = 20  # rows that a section has at least
SECTIONS = 30  # of all episodes together, about


@dataclass(frozen=True)
class Episodes:
    """Rows in order: one episode, or section of one, after another, each from its first decision to its last."""

    row: Integers  # (n,), where each stands in the batch
    number: Integers  # (n,), 0 .. E - 1
    step: Integers  # (n,), decisions before it in its episode
    length: Integers  # (E,)

    @property
    def begin(self) -> Integers:
        """Place of the first row of each episode, ``(E,)``."""
        return np.asarray(np.cumsum(self.length) - self.length)

    @property
    def last(self) -> Integers:
        """Place of the last row of each episode, ``(E,)``."""
        return np.asarray(np.cumsum(self.length) - 1)


def episodes(batch: Batch) -> Episodes:
    """Put the rows of a batch in order, by episode and time, or as they stand where there is no time."""
    if batch.data_set is not None:
        raise InputError("Episodes are looked at in one data set at a time; this batch holds several.")
    if batch.episode is None:
        raise InputError(
            "The rows are not in episodes. Name the column that tells episodes apart (episode=, --episode), such as a "
            "patient or a customer."
        )
    if len(batch) == 0:
        raise InputError("There are no rows, and so no episodes.")
    keys = (batch.episode,) if batch.time is None else (batch.time, batch.episode)
    row = np.lexsort(keys)  # stable: equal keys stay as they stand
    return _in_order(row, np.unique(batch.episode[row], return_inverse=True)[1])


def _in_order(row: Integers, number: Integers) -> Episodes:
    length = np.bincount(number)
    return Episodes(row, number, np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length), length)


def sections(batch: Batch) -> Episodes:
    """The same, with long episodes cut into sections if there are few."""
    order = episodes(batch)
    return _in_order(order.row, section_of(order.number))


def section_of(number: Integers) -> Integers:
    """Number the sections of rows that stand in order, of which ``number`` tells the episode: 0, 1, ..."""
    length = np.bincount(number)
    if len(length) >= FEW:
        return number
    pieces = np.clip(np.round(SECTIONS * length / len(number)).astype(int), 1, np.maximum(length // LONG, 1))
    step = np.arange(len(number)) - (np.cumsum(length) - length)[number]
    return np.asarray((np.cumsum(pieces) - pieces)[number] + step * pieces[number] // length[number])


def unit_of(batch: Batch) -> Integers:
    """What each row is drawn again or held out with, as a number: its section; itself where there are no episodes."""
    if batch.episode is None or len(batch) == 0:
        return np.arange(len(batch))
    order = sections(batch)
    number = np.empty_like(order.number)
    number[order.row] = order.number
    return number
