"""Campaigns against classes of attack: each has a generator, which finds cousins of what was found before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from trust import planting
from trust.rows import Row, scaled, words


def planted(folder: Path) -> Iterator[Row]:
    """Hidden folders, links and pipes that came with an archive, where results are written."""
    found, failures = planting.campaign(folder, np.random.default_rng(10), scaled(5_000))
    yield Row("random things planted under names that certeq looks for", sum(found.values()), words(found), failures)


ATTACKS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "planted": planted,
}
