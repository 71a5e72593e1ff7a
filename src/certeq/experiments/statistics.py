"""Means with intervals, and differences taken pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Floats
from certeq.base.texts import finite

if TYPE_CHECKING:
    import polars as pl

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean and its 95% confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"

    def to_json(self) -> dict[str, float | None]:
        """Write it as plain values; what is not finite is not known."""
        return {"mean": finite(self.mean), "low": finite(self.low), "high": finite(self.high)}


def interval(values: Any) -> Interval:
    """Mean of independent values with Student's 95% interval."""
    mean, half = bands(np.asarray(values, dtype=np.float64))
    return Interval(float(mean), float(mean - half), float(mean + half))


def difference(first: Any, second: Any) -> Interval:
    """Mean of first - second, taken pair by pair on the same data sets."""
    return interval(np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64))


def ratio(first: Any, second: Any) -> Interval:
    """Mean of first over mean of second, on the same data sets, with the interval of its linear approximation."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if not b.mean() > 0:
        return Interval(np.nan, np.nan, np.nan)
    center = float(a.mean() / b.mean())
    _, half = bands((a - center * b) / b.mean())
    return Interval(center, center - float(half), center + float(half))


def bands(values: Floats) -> tuple[Floats, Floats]:
    """Mean and half width of the 95% interval along the first axis; one value alone has an endless interval."""
    n = len(values)
    half = quantile(n) * values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(values.shape[1:], np.inf)
    return np.asarray(values.mean(axis=0)), np.asarray(half)


def quantile(n: Any) -> Any:
    """How many standard errors lie on either side of a mean of ``n`` values."""
    from scipy.special import stdtrit

    return stdtrit(np.asarray(n) - 1, (1 + CONFIDENCE) / 2)


def hindsight(losses: Floats) -> Floats:
    """Losses at the strength that is best on average in hindsight; ``losses`` is (data sets, strengths).

    Nobody could have known that strength beforehand, so this favors the methods that need one.
    """
    return np.asarray(losses[:, int(losses.mean(axis=0).argmin())])


def summarize(table: pl.DataFrame, values: Sequence[str]) -> pl.DataFrame:
    """Number, means and 95% half widths of the measured columns for each combination of all other columns."""
    import polars as pl

    over = ("data_set", "cell", *values)
    groups = [name for name in table.columns if name not in over]
    measured = [pl.col(name).cast(pl.Float64) for name in values]
    grouped = table.group_by(groups, maintain_order=True).agg(
        pl.len().alias("data_sets"),
        *(column.mean().alias(name) for name, column in zip(values, measured, strict=True)),
        *(
            (column.std() / pl.len().sqrt()).alias(f"{name}_half")
            for name, column in zip(values, measured, strict=True)
        ),
    )
    wide = pl.Series(quantile(np.maximum(grouped["data_sets"].to_numpy(), 2)))
    return grouped.with_columns(pl.col(f"{name}_half") * wide for name in values)
