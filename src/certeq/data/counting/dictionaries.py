"""Text by the dictionary that Parquet keeps of it, where pyarrow is installed: each label is read once, not each row.

polars, which reads everything else faster, hands out every text of every row. Coding those takes three times as long as
all other work, so pyarrow (the extra ``scale``) is worth its place where states or actions are text.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from certeq.data.counting.coding import Words
from certeq.data.reading.files import parse


def installed() -> bool:
    """Whether pyarrow is there."""
    return importlib.util.find_spec("pyarrow") is not None


def read(path: str, handle: io.BufferedReader, start: int, rows: int, columns: Sequence[str]) -> dict[str, Words]:
    """Read some rows of text columns; nothing where groups of rows are so large that most would be thrown away."""
    found: dict[str, Words] = parse(lambda *_: _read(handle, start, rows, columns), Path(path), handle, 0)
    return found


def _read(handle: io.BufferedReader, start: int, rows: int, columns: Sequence[str]) -> dict[str, Words]:
    parquet = importlib.import_module("pyarrow.parquet")
    file = parquet.ParquetFile(handle, read_dictionary=list(columns), pre_buffer=False)
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    ends = np.cumsum([0, *sizes])
    groups = [i for i in range(len(sizes)) if ends[i] < start + rows and ends[i + 1] > start]
    if sum(sizes[i] for i in groups) > 3 * rows:
        return {}
    table = file.read_row_groups(groups, columns=list(columns), use_threads=False)
    return {name: _words(table[name].slice(start - int(ends[groups[0]]), rows)) for name in columns}


def _words(column: Any) -> Words:
    """Codes and labels of a column that is kept by dictionaries, one for each group of rows."""
    import polars as pl

    column.validate(full=True)  # damaged pages hold codes beyond their labels, which compiled code would follow
    chunks = column.unify_dictionaries().chunks
    labels = pl.Series(pl.from_arrow(chunks[0].dictionary)).cast(pl.String)
    codes = np.concatenate([chunk.indices.fill_null(len(labels)).to_numpy().astype(np.uint32) for chunk in chunks])
    return Words(codes, labels.extend_constant(None, 1))
