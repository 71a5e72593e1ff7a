"""Campaigns against classes of attack: each has a generator, which finds cousins of what was found before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from trust import containers, costs, distinct, formats, planting, terminals
from trust.rows import Row, scaled, words


def planted(folder: Path) -> Iterator[Row]:
    """Hidden folders, links and pipes that came with an archive, where results are written."""
    found, failures = planting.campaign(folder, np.random.default_rng(10), scaled(5_000))
    yield Row("random things planted under names that certeq looks for", sum(found.values()), words(found), failures)


def files(folder: Path) -> Iterator[Row]:
    """Files of every format with flipped bits and flipped types, opened by the verb that somebody would use."""
    shares = {"table": 18_000, "counting": 9_000, "policy": 7_000, "arrays": 4_000, "counts": 4_000, "array": 2_000}
    for kind, times in (shares | {"Minari": 6_000, "name": 2_000}).items():
        found, failures = formats.campaign(kind, 200_000, scaled(times))
        yield Row(f"files: {kind}", sum(found.values()), words(found), failures)


def at_the_ends(folder: Path) -> Iterator[Row]:
    """Numbers at the ends of what numbers can be: results are finite, in files and in words, or there are none."""
    found, failures = formats.campaign("extremes", 0, scaled(400))
    what = "rewards, states and discounts of any size, by `learn`, `audit` and `compare`"
    yield Row(what, sum(found.values()), words(found), failures)


def small_files(folder: Path) -> Iterator[Row]:
    """Small files with large contents: time, memory and disk are linear in the cells and in the different labels."""
    found, failures = costs.campaign(folder, np.random.default_rng(13), scaled(80))
    yield Row("tables with long labels, many, or both", sum(found.values()), words(found), failures)


def contained(folder: Path) -> Iterator[Row]:
    """Hardened containers: a read-only root, no home, no network, no rights, little memory."""
    if not containers.able():
        yield Row("not run: only root can arrange it", 0, "")
        return
    rng = np.random.default_rng(14)
    containers.prepare(folder / "case")
    found: Counter[str] = Counter()
    failures = []
    for _ in range(scaled(20)):
        what, wrong = containers.attempt(folder / "case", containers.drawn(rng))
        found[what] += 1
        failures += [wrong] if wrong else []
    yield Row("`learn` in settings drawn at random", sum(found.values()), words(found), failures)


def kept_apart(folder: Path) -> Iterator[Row]:
    """Columns of any type in any container: two values that differ stay two, or the column is refused."""
    found, failures = distinct.campaign(np.random.default_rng(11), scaled(20_000))
    yield Row("columns of any type as labels", sum(found.values()), words(found), failures)


def stops(folder: Path) -> Iterator[Row]:
    """Ctrl-C typed into a terminal, which sends it to every process of the group, once or up to three times."""
    for name, tally in terminals.campaign(folder, np.random.default_rng(15), scaled(34)).items():
        yield Row(f"Ctrl-C in `{name}`", sum(tally.found.values()), words(tally.found), tally.failures)


ATTACKS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "planted": planted,
    "files": files,
    "extremes": at_the_ends,
    "costs": small_files,
    "containers": contained,
    "distinct": kept_apart,
    "stops": stops,
}
