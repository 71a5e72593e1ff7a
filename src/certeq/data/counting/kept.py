"""Counts of shares that are kept while others are counted, so that counting goes on where it was stopped.

A share is kept as soon as it is counted, by whoever counted it: on a cluster the workers write into the folder, which
they must see under the same path. What is kept is bit for bit what was counted, so the result is that of one go.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certeq.base.keeping import keep, recall
from certeq.data.counting.coding import LabelSeries
from certeq.data.counting.parquet import File, Piece, opened
from certeq.data.counting.parts import LeftOut, Part
from certeq.data.counting.pieces import Layout
from certeq.data.counting.spaces import Space
from certeq.data.counting.tallying import Cells
from certeq.data.recipes import Bins
from certeq.data.sums import PARTS, Sums

SUMS = (*PARTS, "span")


def count_kept(
    share: Sequence[Piece], layout: Layout, count: Callable[[Sequence[Piece], Layout], Part], folder: Path
) -> Part:
    """Take a share's counts from the folder, or count it and keep them there."""
    about = identity(share, layout)
    known = recall(folder, about)
    if known is not None:
        return from_arrays(known)
    part = count(share, layout)
    keep(folder, about, to_arrays(part))
    return part


def identity(share: Sequence[Piece], layout: Layout) -> dict[str, Any]:
    """What a share's counts depend on: the rows, by file (its path, size and time of change), and how they are read."""
    files = {piece.file.path: [piece.file.size, _changed(piece.file)] for piece in share}
    pieces = [[piece.file.path, piece.start, piece.rows] for piece in share]
    return {"task": "count by kind, and what is left", "files": files, "pieces": pieces, "layout": repr(layout)}


def _changed(file: File) -> int:
    with opened(file.path, file.size) as handle:
        return os.fstat(handle.fileno()).st_mtime_ns


def to_arrays(part: Part) -> dict[str, NDArray[Any]]:
    """A part as arrays of numbers; whatever is text is in one of them, as JSON."""
    text: dict[str, Any] = {"rows": part.rows, "dropped": dict(part.dropped), "left": part.left}
    arrays: dict[str, NDArray[Any]] = {f"cells_{name}": array for name, array in part.cells._asdict().items()}
    arrays["ended"] = part.ended
    for name, space in (("state", part.states), ("action", part.actions)):
        arrays[f"{name}_cells"] = space.cells
        text[name] = []
        for i, axis in enumerate(space.axes):
            if isinstance(axis, Bins):
                text[name].append({"column": axis.column})
                arrays[f"{name}_{i}"] = np.array(axis.edges)
            elif axis.kind == "text":
                text[name].append({"column": axis.column, "kind": axis.kind, "values": axis.values.to_list()})
            else:
                text[name].append({"column": axis.column, "kind": axis.kind})
                arrays[f"{name}_{i}"] = axis.values.to_numpy()
    if part.rewards is not None:
        arrays |= {f"reward_{name}": np.asarray(getattr(part.rewards, name)) for name in ("size", *SUMS)}
    arrays["text"] = np.frombuffer(json.dumps(text).encode(), dtype=np.uint8)
    return arrays


def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Part:
    """The part that was written as these arrays."""
    text = json.loads(arrays["text"].tobytes())
    states, actions = (
        Space(
            tuple(_axis(told, arrays.get(f"{name}_{i}")) for i, told in enumerate(text[name])), arrays[f"{name}_cells"]
        )
        for name in ("state", "action")
    )
    rewards = None
    if "reward_size" in arrays:
        rewards = Sums(float(arrays["reward_size"]), *(arrays[f"reward_{name}"] for name in SUMS))
    cells = Cells(*(arrays[f"cells_{name}"] for name in Cells._fields))
    return Part(states, actions, cells, arrays["ended"], rewards, text["rows"], text["dropped"], LeftOut(*text["left"]))


def _axis(told: Mapping[str, Any], array: NDArray[Any] | None) -> LabelSeries | Bins:
    import polars as pl

    if "kind" not in told:
        return Bins(told["column"], tuple([] if array is None else array.tolist()))
    values = pl.Series(told["values"], dtype=pl.String) if array is None else pl.Series(array)
    return LabelSeries(told["column"], told["kind"], values)
