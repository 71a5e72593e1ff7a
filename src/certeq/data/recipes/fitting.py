"""Fit a recipe: choose for each column how it becomes codes, and find the combinations that occur."""

from __future__ import annotations

import math
import re
import shlex
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Floats, Integers, Rng, first, generator, whole
from certeq.base.errors import InputError, nearest
from certeq.data.recipes.axes import UNKNOWN, Axis, Bins, Clusters, Labels, OrMissing, Present
from certeq.data.recipes.columns import Column, compact, is_whole, text_numbers
from certeq.data.recipes.containers import column
from certeq.data.recipes.recipe import Recipe
from certeq.data.request import OTHERS

MAX_STATES = 50_000
CELLS = 4  # of a column that is cut, by default
FEWER = 8  # into which a column with too many values is advised to be cut
SURE_LABELS = 12  # whole numbers with at most this many different values are labels
LIKELY_LABELS = 20  # and so are those with at most this many, where each occurs often enough
STATE_NAMES = ("state", "states", "s", "stateid", "cell", "cluster")  # whole numbers in such a column are names
ROWS_PER_LABEL = 5  # how often that is, on average
STARTS, ROUNDS = 4, 10  # of k-means: the best start, moved on until it rests
SAMPLE = 20_000  # centers are found on at most this many rows; every row then gets its nearest center
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
DECIMAL = re.compile(r"[+-]?\d+,\d+")
WAYS = "'labels', 'quantile:4', 'edges:1,2.5,7' or 'kmeans:8'"


class Binning(NamedTuple):
    """How one column becomes codes."""

    way: str  # labels, quantile, edges, kmeans
    size: int = 0  # of quantile and kmeans
    edges: tuple[float, ...] = ()


def fit(
    table: Mapping[str, Any],
    how: Mapping[str, Any] | None = None,
    *,
    bins: int | None = None,
    max_states: int = MAX_STATES,
    absent: Collection[str] = (),
    rng: Rng = 0,
) -> Recipe:
    """Fit a recipe to the columns of a table.

    ``how`` says for a column 'labels', 'quantile:K', 'edges:1,2.5,7' or 'kmeans:K' (columns with the same K are
    clustered together). By default, text, booleans and dates are labels. So are whole numbers with at most 12 different
    values, or with at most 20 that have 5 rows each on average; and, unless ``bins`` are asked for, whole numbers in a
    column that is called state, or is the only one and says the same number twice on average. All other numbers are cut
    at their quantiles into ``bins`` cells, 4 by default. Columns in ``absent`` may miss values: a cell of its own.
    """
    return fit_encode(table, how, bins=bins, max_states=max_states, absent=absent, rng=rng)[0]


def fit_encode(
    table: Mapping[str, Any],
    how: Mapping[str, Any] | None = None,
    *,
    bins: int | None = None,
    max_states: int = MAX_STATES,
    absent: Collection[str] = (),
    rng: Rng = 0,
    rows: Integers | None = None,
) -> tuple[Recipe, Integers]:
    """Fit a recipe and give the state of each row too; ``rows`` are the row numbers for messages, counted from 0."""
    columns = {name: column(values, name) for name, values in table.items()}
    bins = None if bins is None else whole("bins", bins, 1)
    whole("max_states", max_states, 1)
    _check(columns, absent, rows)
    for name in how or {}:
        if name not in columns:
            raise InputError(
                f"There is no column {name!r} to bin.{nearest(name, columns)} There are: {', '.join(columns)}."
            )
    alone = len(columns) == 1
    named = {name: _named(name, values, alone) for name, values in columns.items()}
    choices = {name: choose(name, c, (how or {}).get(name), bins, rows, named[name]) for name, c in columns.items()}
    axes: list[Axis] = []
    codes = []
    for group in _groups(choices):
        present = _axis(group, columns, choices[group[0]], rng)
        axis = OrMissing(present) if any(columns[name].missing.any() for name in group) else present
        axes.append(axis)
        codes.append(axis.codes(columns))
        bad = codes[-1] == UNKNOWN
        if bad.any():
            (row,) = first(bad)
            raise InputError(f"{place(row, rows)}: {axis.why(columns, row)}.")
    return _combine(axes, codes, columns, max_states)


def parse(name: str, given: Any) -> Binning:
    """Read what someone wrote for a column: a text such as 'quantile:4', a number of bins, or a list of edges."""
    if isinstance(given, Binning):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        given = f"quantile:{given}"
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        given = "edges:" + ",".join(str(edge) for edge in given)
    way, _, rest = str(given).partition(":")
    way = way.strip().lower()
    if way == "labels" and not rest:
        return Binning("labels")
    try:
        if way in ("quantile", "kmeans") and 1 <= int(rest) <= 1_000_000:
            return Binning(way, int(rest))
        if way == "edges":
            edges = tuple(float(edge) for edge in rest.split(","))
            if all(map(math.isfinite, edges)):
                return Binning("edges", edges=edges)
    except ValueError:
        pass
    hint = " Say --bins once for each column." if "=" in str(given) else ""
    raise InputError(f"I do not know how to bin {name!r} by {given!r}. Write {WAYS}.{hint}")


def choose(
    name: str, values: Column, given: Any, bins: int | None, rows: Integers | None = None, named: bool = False
) -> Binning:
    """Decide how a column becomes codes: as told, or by its kind and the number of its different values.

    ``named`` says that whole numbers are probably the names of the states; if ``bins`` are asked for, they are cut.
    """
    if given is not None:
        choice = parse(name, given)
        _check_numbers(name, values, choice.way, rows)
        return choice
    refuse_mixed(name, values, rows)
    if values.kind in ("text", "boolean", "date"):
        return Binning("labels")
    if is_whole(values) and (_few(values) or (named and bins is None)):
        return Binning("labels")
    return Binning("quantile", CELLS if bins is None else bins)


def would_cut(name: str, values: Column, alone: bool) -> bool:
    """Whether a column about which nothing is said would be cut."""
    return choose(name, values, None, None, None, _named(name, values, alone)).way == "quantile"


def _named(name: str, values: Column, alone: bool) -> bool:
    """Whether whole numbers are probably names of states: the column is called so, or the only one and they recur."""
    called = re.sub("[^a-z]", "", name.lower()) in STATE_NAMES
    return called or (alone and 2 * len(values.distinct.labels) <= len(values))


def _few(values: Column) -> bool:
    """Whether whole numbers have so few different values, for the rows there are, that each is a label."""
    different = len(values.distinct.labels)
    return different <= SURE_LABELS or (different <= LIKELY_LABELS and len(values) >= ROWS_PER_LABEL * different)


def refuse_mixed(name: str, values: Column, rows: Integers | None = None) -> None:
    """Refuse text that is mostly numbers: one typing error would silently make every number a label."""
    if values.kind != "text":
        return
    refuse_commas(name, values, rows)
    numeric = np.append(~np.isnan(text_numbers(values.labels)), False)[values.values]
    if 0 < numeric.sum() < len(numeric) and 2 * numeric.sum() > (~values.missing).sum():
        (row,) = first(~numeric & ~values.missing)
        raise InputError(
            f"{place(row, rows)}: {name!r} is {values.show(row)}, but most of this column are numbers. Correct the "
            f"value, or say that all of them are labels: {say_bins(name, 'labels')}."
        )


def refuse_commas(name: str, values: Column, rows: Integers | None = None, *, labels: bool = True) -> None:
    """Refuse text that would be numbers but for commas: only who wrote them knows what the commas mean."""
    if values.kind != "text" or not any("," in label for label in values.labels):
        return
    found = values.distinct
    words = [str(label) for label in found.labels]
    comma = [bool(THOUSANDS.fullmatch(word) or DECIMAL.fullmatch(word)) for word in words]
    others = [word for word, has in zip(words, comma, strict=True) if not has]
    if not any(comma) or np.isnan(text_numbers(others)).any():
        return
    clear = [bool(DECIMAL.fullmatch(word)) and not THOUSANDS.fullmatch(word) for word in words]  # it is a decimal comma
    row = int(first(np.array([*(clear if any(clear) else comma), False])[found.codes])[0])
    word = str(values.label(row))
    plain, pointed = word.replace(",", ""), word.replace(",", ".")
    if any(clear):
        said = f"a decimal comma. Write {pointed}, or separate the columns by ; instead of commas"
    elif DECIMAL.fullmatch(word):
        said = f"commas between thousands. Write {plain}, or {pointed} if the comma is a decimal mark"
    else:
        said = f"commas between thousands. Write {plain}"
    otherwise = f" If these are labels and not numbers, say {say_bins(name, 'labels')}." if labels else ""
    raise InputError(
        f"{place(row, rows)}: {name!r} is {values.show(row)}, which looks like a number with {said}.{otherwise}"
    )


def quantile_edges(values: Floats, k: int) -> tuple[float, ...]:
    """Edges at the k-quantiles of the finite values; equal ones merge.

    Where the smallest value is so common that it is a quantile itself, the edge moves just above it: nothing lies
    below the smallest value, and zeros deserve a cell of their own.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return ()
    edges = np.unique(np.quantile(finite, np.arange(1, k) / k))
    low = finite.min()
    if (edges <= low).any() and (finite > low).any():
        edges = np.unique(np.append(edges[edges > low], finite[finite > low].min()))
    return tuple(float(edge) for edge in edges[edges > low])


def k_means(points: Floats, k: int, *, rng: Rng = 0) -> Floats:
    """Centers of at most k clusters of the points ``(n, d)``, sorted, whatever the order of the points.

    SciPy's Lloyd steps from k-means++ starts; where no more than k points are different, they are the centers.
    """
    from scipy.cluster.vq import kmeans2, vq

    random, points = generator(rng), points[np.lexsort(points.T)]
    if len(points) > SAMPLE:
        points = points[np.sort(random.choice(len(points), SAMPLE, replace=False))]
    different = np.unique(points, axis=0)
    if len(different) <= k:
        return different
    with warnings.catch_warnings(action="ignore"):  # a cluster that loses all its points stays where it was
        found = [kmeans2(points, k, minit="++", seed=random)[0] for _ in range(STARTS)]
        centers = min(found, key=lambda each: float((vq(points, each)[1] ** 2).sum()))
        for _ in range(ROUNDS):
            before, (centers, _) = centers, kmeans2(points, centers, minit="matrix")
            if np.array_equal(before, centers):
                break
    return np.unique(centers, axis=0)


def _groups(choices: Mapping[str, Binning]) -> list[tuple[str, ...]]:
    """Columns that make one axis each, in order: alone, or with all others that say kmeans with the same number."""
    groups: dict[object, list[str]] = {}
    for name, choice in choices.items():
        groups.setdefault(choice.size if choice.way == "kmeans" else name, []).append(name)
    return [tuple(group) for group in groups.values()]


def _axis(names: tuple[str, ...], columns: Mapping[str, Column], choice: Binning, rng: Rng) -> Present:
    values = columns[names[0]]
    if choice.way == "labels":
        found = values.distinct
        return Labels(names[0], found.kind, found.labels)
    if choice.way == "edges":
        return Bins(names[0], choice.edges)
    if choice.way == "quantile":
        return Bins(names[0], quantile_edges(values.numbers(), choice.size))
    points = np.stack([columns[name].numbers() for name in names], axis=1)
    finite = points[np.isfinite(points).all(axis=1)]
    scale = finite.std(axis=0) if len(finite) else np.ones(len(names))
    scale = np.where(scale > 0, scale, 1.0)
    centers = k_means(finite / scale, choice.size, rng=rng) * scale
    return Clusters(names, tuple(map(tuple, centers.tolist())), tuple(scale.tolist()))


def _combine(
    axes: list[Axis], codes: list[Integers], columns: Mapping[str, Column], max_states: int
) -> tuple[Recipe, Integers]:
    """Find the combinations of codes that occur, axis by axis so that no number grows beyond rows times codes."""
    state = np.zeros(len(codes[0]), dtype=np.int64)
    cells = np.zeros((1, 0), dtype=np.int64)
    for axis, code in zip(axes, codes, strict=True):
        keys, state = compact(state * axis.size + code, len(cells) * axis.size)
        if len(keys) > max_states:
            raise _too_many(axes, columns, len(keys), max_states)
        before, now = np.divmod(keys, axis.size)
        cells = np.concatenate([cells[before], now[:, None]], axis=1)
    return Recipe(tuple(axes), cells), state


def _too_many(axes: list[Axis], columns: Mapping[str, Column], n: int, limit: int) -> InputError:
    axis = max(axes, key=lambda one: one.size)
    name = axis.columns[0]
    said: dict[str, Any] = {}
    cut = max((one.size for one in axes if isinstance(one, Bins)), default=1)
    if axis.size <= FEWER and cut > 1:
        fewer = min(FEWER // 2, cut - 1)
        remedy = f"Cut all into fewer, bins={fewer} (--bins {fewer}), or name fewer columns with state= (--state)"
        said = {"bins": {OTHERS: fewer}}
    elif columns[name].kind in ("integer", "float", "boolean"):
        remedy = f"Bin it into fewer: {say_bins(name, f'quantile:{FEWER}')}"
        said = {"bins": {name: f"quantile:{FEWER}"}}
    else:
        remedy = (
            "Group its labels into fewer, or make it a number that can be binned, or leave it out by naming the others "
            "with state= (--state)"
        )
    return InputError(
        f"These columns make more than {limit:,} states (at least {n:,}). Column {name!r} has the most different "
        f"values, {axis.size:,}. {remedy}; or raise max_states=.",
        remedy=said,
    )


def _check(columns: Mapping[str, Column], absent: Collection[str], rows: Integers | None) -> None:
    if not columns:
        raise InputError("There is no column to make states of.")
    lengths = {len(c) for c in columns.values()}
    if len(lengths) > 1 or 0 in lengths:
        raise InputError(f"Columns must have one length, at least 1; got {sorted(lengths)}.")
    for name, values in columns.items():
        if values.missing.any() and (name not in absent or values.missing.all()):
            (row,) = first(values.missing)
            more = int(values.missing.sum()) - 1
            also = f", and {more} further row{'s' * (more > 1)} of this column" if more else ""
            ways = (
                f"make “missing” a cell of its own with missing={{{name!r}: 'category'}} (--missing "
                f"{shlex.quote(name)}=category), carry the last value of the episode forward ('last'), or "
            )
            raise InputError(
                f"{place(row, rows)}: {name!r} is missing{also}. A state needs every value: fill the gaps, "
                f"{ways * (not values.missing.all())}leave the column out by naming the others with state= (--state).",
                remedy={} if values.missing.all() else {"missing": {name: "category"}},
            )


def _check_numbers(name: str, values: Column, way: str, rows: Integers | None) -> None:
    if way == "labels":
        size = np.abs(values.values) if values.kind == "float" else np.zeros(len(values))
        bad = (size >= 2**53) & ~values.missing
        if bad.any():
            (row,) = first(bad)
            why = "which cannot be a label"
            if np.isfinite(size[row]):
                why += ": beyond 2^53, one such number stands for several. Write it as a whole number, or as text"
            raise InputError(f"{place(row, rows)}: {name!r} is {values.show(row)}, {why}.")
        return
    refuse_commas(name, values, rows)
    bad = np.isnan(values.numbers()) & ~values.missing
    if bad.any():
        (row,) = first(bad)
        raise InputError(
            f"{place(row, rows)}: {name!r} is {values.show(row)}, but {way} needs numbers. Correct the value, or say "
            f"{say_bins(name, 'labels')}."
        )


def place(row: int, rows: Integers | None = None) -> str:
    """A row as people count it; ``rows`` are the numbers of the rows of a part, counted from 0."""
    return f"Row {(row if rows is None else int(rows[row])) + 1} (counting from 1, header not counted)"


def say_bins(name: str, way: str) -> str:
    """What to write for a column to become codes in this way: in Python, and on a command line."""
    return f"bins={{{name!r}: {way!r}}} (--bins {shlex.quote(f'{name}={way}')})"
