"""Archives of numbers (.npz): flat arrays of the kinds that are expected, and one text in JSON. They hold no code."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certeq.base.doors import door
from certeq.base.errors import InputError
from certeq.base.limits import most, way_out


def unpack(
    path: str | Path, kinds: Mapping[str, type[np.generic]], what: str, limit_bytes: int | None = None
) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file, ``about`` among them; sizes are checked before anything is unpacked."""
    file, limit = Path(path), most("bytes") if limit_bytes is None else limit_bytes
    with door(str(file), f"It is damaged, or not a {what}."):
        if not file.is_file():
            raise InputError(f"There is no file {file}." if not file.exists() else f"{file} is not a file.")
        with zipfile.ZipFile(file) as archive:
            return _arrays(archive, file.name, kinds, what, limit)


def of_size(array: NDArray[Any], size: int, name: str) -> NDArray[Any]:
    """An array, if it has that many entries."""
    if len(array) != size:
        raise ValueError(f"{name} has {len(array)} entries instead of {size}")
    return array


def _arrays(
    archive: zipfile.ZipFile, name: str, kinds: Mapping[str, type[np.generic]], what: str, limit: int
) -> dict[str, NDArray[Any]]:
    """Unpack the arrays that are expected, none of them larger than it says and all together within the limit."""
    members = archive.infolist()
    names = [member.filename.removesuffix(".npy") for member in members]
    if len(set(names)) < len(names) or "about" not in names or not set(names) <= {*kinds}:
        raise InputError(f"{name} is not a {what} as written by certeq.")
    if sum(member.file_size for member in members) > limit:
        raise InputError(f"{name} unpacks to more than {limit:,} bytes. If that is meant, {way_out('bytes')}.")
    if members[names.index("about")].file_size > most("policy_bytes"):  # JSON takes many times its size in memory
        raise InputError(f"{name} has labels without end. If they are meant, {way_out('policy_bytes')}.")
    return {key: _array(archive, member, kinds[key]) for key, member in zip(names, members, strict=True)}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, kind: type[np.generic]) -> NDArray[Any]:
    """One flat array of the kind that is expected; its header is read before anything else."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise ValueError(f"{member.filename} has the version {version}")
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=10_000)
        if dtype != np.dtype(kind) or len(shape) != 1 or shape[0] * dtype.itemsize > member.file_size:
            raise ValueError(f"{member.filename} holds {dtype} {shape}")
        array = np.frombuffer(stream.read(shape[0] * dtype.itemsize), dtype=dtype)
        if len(array) != shape[0]:
            raise ValueError(f"{member.filename} is cut off")
        stream.read(1)  # to the very end, where the checksum is compared
        return array
