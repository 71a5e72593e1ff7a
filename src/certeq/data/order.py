"""Order: rows of a batch, one episode after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certeq.base.arrays import Integers
from certeq.base.errors import InputError
from certeq.data.batch import Batch


@dataclass(frozen=True)
class Episodes:
    """Rows in order: one episode after another, each from its first decision to its last."""

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
    number = np.unique(batch.episode[row], return_inverse=True)[1]
    length = np.bincount(number)
    step = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
    return Episodes(row, number, step, length)
