"""Keeping work: long work keeps what is done of it, task by task, in a folder, and can go on from there."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import certeq
from certeq.base.errors import InputError
from certeq.base.writing import write_files

if TYPE_CHECKING:
    from numpy.typing import NDArray

DAMAGED = (  # what reading an archive of arrays raises where it is damaged, down to how NumPy reads a header
    ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, TokenError,
)  # fmt: skip


def keep(folder: Path, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Keep what came of one task in a file of its own, which says what the task was about; numbers only, no pickles."""
    write_files({_place(folder, about): pack(arrays, _said(about))}, force=True)


def pack(arrays: Mapping[str, NDArray[Any]], about: bytes) -> bytes:
    """Numbers, and what they are about, as the bytes of a file."""
    import numpy as np

    if any(array.dtype.hasobject for array in arrays.values()):
        raise ValueError("Object arrays cannot be saved: reading them back would run whatever they hold.")
    file = io.BytesIO()
    held: dict[str, Any] = {**arrays, "about": np.frombuffer(about, dtype=np.uint8)}
    np.savez(file, **held)
    return file.getvalue()


def recall(folder: Path, about: Mapping[str, Any]) -> dict[str, NDArray[Any]] | None:
    """What came of a task, if it was kept; None where it was not, is damaged, or was about something else."""
    import numpy as np

    try:
        with zipfile.ZipFile(_place(folder, about)) as archive:
            found = {name.removesuffix(".npy"): _array(archive, name) for name in archive.namelist()}
    except (OSError, *DAMAGED):
        return None
    told = found.pop("about", np.zeros(0, dtype=np.uint8))
    return found if told.tobytes() == _said(about) else None


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    import numpy as np

    with archive.open(name) as stream:
        array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
        stream.read(1)  # to the very end, where the checksum is compared
        return array


def _place(folder: Path, about: Mapping[str, Any]) -> Path:
    return folder / f"kept-{hashlib.sha256(_said(about)).hexdigest()[:20]}.npz"


def _said(about: Mapping[str, Any]) -> bytes:
    return json.dumps({"certeq": certeq.__version__, **about}, sort_keys=True).encode()


def fingerprint(thing: Any) -> str:
    """SHA-256 of plain values, arrays, and dataclasses and mappings of them: the same for the same things."""
    mark = hashlib.sha256()
    _feed(mark, thing)
    return mark.hexdigest()


def _feed(mark: Any, thing: Any) -> None:
    """Add a thing to a hash, with its kind and size before it, so that no two things are written alike."""
    import numpy as np

    if isinstance(thing, np.ndarray):
        mark.update(f"array {thing.dtype.str} {thing.shape}:".encode())
        _feed(mark, thing.tolist()) if thing.dtype == object else mark.update(np.ascontiguousarray(thing).tobytes())
    elif hasattr(thing, "tocsr"):
        table = thing.tocsr()
        mark.update(b"sparse:")
        _feed(mark, (table.shape, table.indptr, table.indices, table.data))
    elif is_dataclass(thing) and not isinstance(thing, type):
        mark.update(f"{type(thing).__name__}:".encode())
        _feed(mark, {one.name: getattr(thing, one.name) for one in fields(thing)})
    elif isinstance(thing, Mapping):
        mark.update(b"mapping:")
        _feed(mark, sorted(thing.items(), key=lambda item: str(item[0])))
    elif isinstance(thing, list | tuple):
        mark.update(f"list {len(thing)}:".encode())
        for one in thing:
            _feed(mark, one)
    elif thing is None or isinstance(thing, str | int | float | np.generic):
        text = repr(thing.item() if isinstance(thing, np.generic) else thing).encode()
        mark.update(f"value {len(text)}:".encode() + text)
    else:
        raise InputError(f"Work with a setting of the kind {type(thing).__name__} cannot be kept and resumed.")
