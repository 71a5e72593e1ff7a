"""Minari data sets on disk, in HDF5, Arrow or Parquet, read without Minari and without following links elsewhere.

A stored episode of n steps has n + 1 observations. HDF5 keeps n actions, rewards and ends beside them; Arrow and
Parquet pad these to n + 1 rows, and the last of them is no transition.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certeq.base.doors import door
from certeq.base.errors import InputError
from certeq.base.limits import way_out
from certeq.data.reading.files import READERS, parse
from certeq.data.reading.frames import Table, flat

WIDTH = 100  # numbers in one observation or action; more are a picture, not a table
PARTS_LIMIT = 1000  # groups and arrays of one episode
PARTS = {
    "observations": "obs",
    "actions": "action",
    "rewards": "reward",
    "terminations": "done",
    "truncations": "truncated",
}
Columns = dict[str, NDArray[Any]]


def is_minari(folder: Path) -> bool:
    """Whether a folder is a Minari data set, or its data folder."""
    return any((at / "metadata.json").is_file() for at in (folder / "data", folder))


def open_minari(folder: Path, limit_bytes: int) -> tuple[Table, dict[str, Any]]:
    """Open a data set: its table in the explicit layout, and which column is what."""
    with door(f"The Minari data set {folder.name}", "It is damaged, or not a table. Copy it again."):
        return _opened(folder, limit_bytes)


def _opened(folder: Path, limit_bytes: int) -> tuple[Table, dict[str, Any]]:
    data = folder / "data" if (folder / "data" / "metadata.json").is_file() else folder
    metadata = _metadata(_inside(folder, data / "metadata.json"))
    kind = metadata.get("data_format", "hdf5")
    for space in ("observation_space", "action_space"):
        _check_space(metadata.get(space), folder.name, space.replace("_", " "))
    if kind == "hdf5":
        episodes, fingerprint = _hdf5(folder, data, limit_bytes)
    elif kind in ("arrow", "parquet"):
        episodes, fingerprint = _arrow(folder, data, kind, limit_bytes)
    else:
        raise InputError(f"{folder.name} is kept as {kind!r}; certeq reads Minari data sets in hdf5, arrow or parquet.")
    if not episodes:
        raise InputError(f"{folder.name} has no episodes. There is nothing to learn from.")
    return _table(folder.name, episodes, fingerprint)


def explicit_table(episodes: list[Columns]) -> tuple[Columns, dict[str, Any]]:
    """Episodes, each with one observation more than actions, as one table with next states; and its roles."""
    whole: Columns = {}
    observed = _natural(name for name in episodes[0] if name == "obs" or name.startswith("obs_"))
    acted = _natural(name for name in episodes[0] if name == "action" or name.startswith("action_"))
    for name in observed:
        whole[name] = np.concatenate([part[name][:-1] for part in episodes])
        whole[f"next_{name}"] = np.concatenate([part[name][1:] for part in episodes])
    for name in (*acted, "reward", "done", "truncated"):
        whole[name] = np.concatenate([part[name] for part in episodes])
    lengths = [len(part["reward"]) for part in episodes]
    whole["episode"] = np.repeat(np.arange(len(episodes)), lengths)
    whole["step"] = np.concatenate([np.arange(n) for n in lengths])
    roles = {name: name for name in ("reward", "episode", "done", "truncated")} | {"time": "step"}
    return whole, {"state": observed, "next_state": [f"next_{n}" for n in observed], "action": acted} | roles


def _table(name: str, episodes: list[Columns], fingerprint: str) -> tuple[Table, dict[str, Any]]:
    for i, part in enumerate(episodes):
        if part.keys() != episodes[0].keys():
            raise InputError(f"Episode {i} of {name} has different fields from the first one.")
        lacking = [field for field in ("reward", "done", "truncated") if field not in part]
        if lacking:
            raise InputError(f"Episode {i} of {name} has several numbers for each {lacking[0]!r}. It is damaged.")
        n = len(part["reward"])
        for field, values in part.items():
            if len(values) != n + (field == "obs" or field.startswith("obs_")):
                raise InputError(
                    f"Episode {i} of {name} has {n} rewards but {len(values)} entries of {field!r}. It is damaged."
                )
    for field in episodes[0]:
        if len({part[field].dtype.kind for part in episodes if len(part[field])}) > 1:
            raise InputError(f"{field!r} of {name} is of different types in different episodes. Write all alike.")
    whole, roles = explicit_table(episodes)
    if not len(whole["reward"]):
        raise InputError(f"{name} has episodes but no steps. There is nothing to learn from.")
    note = f"Minari data set {name}: {len(episodes):,} episodes."
    return Table(whole, len(whole["reward"]), fingerprint=fingerprint, notes=(note,), source=name), roles


# ---- HDF5 ----


def _hdf5(folder: Path, data: Path, limit_bytes: int) -> tuple[list[Columns], str]:
    try:
        h5py: Any = importlib.import_module("h5py")
    except ModuleNotFoundError:
        raise InputError(f"{folder.name} is kept in HDF5, which needs h5py: pip install 'certeq[minari]'.") from None
    path = _inside(folder, data / "main_data.hdf5")
    size = path.stat().st_size
    if size > limit_bytes:
        raise _too_large(folder.name, limit_bytes)
    with path.open("rb") as handle:
        fingerprint = hashlib.file_digest(handle, "sha256").hexdigest()
    with (
        door(f"{path.name} of {folder.name}", "It is damaged or cut off. Copy it again."),
        h5py.File(path, "r") as file,
    ):
        left = Left(limit_bytes, size)
        names = _natural(name for name in file if re.fullmatch(r"episode_[0-9]+", name))
        return [_episode(h5py, _member(h5py, file, name), left) for name in names], fingerprint


@dataclass
class Left:
    """How many bytes may still be unpacked."""

    limit_bytes: int
    file_bytes: int
    used: int = 0

    def take(self, size: int) -> None:
        """Use some up."""
        self.used += size
        if self.used > self.limit_bytes:
            raise _too_large("The data set", self.limit_bytes)


def _episode(h5py: Any, group: Any, left: Left) -> Columns:
    columns: Columns = {}
    visits = iter(range(PARTS_LIMIT))
    for stored, name in PARTS.items():
        if stored not in group:
            raise InputError(f"{group.name} has no {stored!r}. This is not a Minari episode.")
        for inner, dataset in _datasets(h5py, _member(h5py, group, stored), name, visits):
            columns |= _split(inner, _values(dataset, left))
    return columns


def _datasets(h5py: Any, item: Any, name: str, visits: Iterator[int]) -> Iterator[tuple[str, Any]]:
    """The arrays below an item, named by their path: a Tuple's parts are stored as _index_0, _index_1, ...

    A group may hold itself, or the same group twice, so there are more ways down than parts; ``visits`` run out.
    """
    if next(visits, None) is None:
        raise InputError(f"An episode has more than {PARTS_LIMIT:,} parts, or parts that hold themselves.")
    if isinstance(item, h5py.Group):
        for key in item:
            yield from _datasets(h5py, _member(h5py, item, key), f"{name}_{key.removeprefix('_index_')}", visits)
    elif isinstance(item, h5py.Dataset):
        yield name, item
    else:
        raise InputError(f"{item.name} is neither an array nor a group. It has no place in a table.")


def _values(dataset: Any, left: Left) -> NDArray[Any]:
    """Read an array: numbers whose size is known, or texts, of which none can be longer than the file."""
    if dataset.shape is None or dataset.dtype.kind not in "biufSO":
        raise InputError(f"{dataset.name} has the type {dataset.dtype}, which has no place in a table.")
    left.take(dataset.size * max(dataset.dtype.itemsize, 1))
    if dataset.dtype.kind != "O" or not dataset.shape:
        return np.asarray(dataset[()])
    step = max(1, (left.limit_bytes - left.used) // max(left.file_bytes, 1))
    parts = [np.zeros((0, *dataset.shape[1:]), dtype=object)]
    for start in range(0, len(dataset), step):
        parts.append(dataset[start : start + step])
        left.take(sum(len(text) for text in parts[-1].flat if hasattr(text, "__len__")))
    return np.concatenate(parts)


def _member(h5py: Any, parent: Any, name: str) -> Any:
    """A part of the file, and only of this file: HDF5 can point into any other file of the machine."""
    if not isinstance(parent.get(name, getlink=True), h5py.HardLink):
        raise InputError(f"{parent.name}/{name} points to another place. certeq reads only what is in the file itself.")
    item = parent[name]
    if isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
        raise InputError(f"{parent.name}/{name} is kept in another file. certeq reads only what is in the file itself.")
    return item


def _split(name: str, values: NDArray[Any]) -> Columns:
    if values.ndim == 1:
        return {name: values}
    parts = values.reshape(len(values), -1)
    if parts.shape[1] > WIDTH:
        raise _too_wide(name, parts.shape[1])
    return {f"{name}_{i}": parts[:, i] for i in range(parts.shape[1])}


# ---- Arrow and Parquet ----


def _arrow(folder: Path, data: Path, kind: str, limit_bytes: int) -> tuple[list[Columns], str]:
    digest, episodes, left = hashlib.sha256(), [], limit_bytes
    for name in _natural(entry.name for entry in data.iterdir() if re.fullmatch(r"[0-9]+", entry.name)):
        path = _inside(folder, data / name / f"part-0.{kind}")
        left -= path.stat().st_size
        if left < 0:
            raise _too_large(folder.name, limit_bytes)
        with path.open("rb") as handle:
            digest.update(hashlib.file_digest(handle, "sha256").digest())
            handle.seek(0)
            episodes.append(_padded(path, handle, kind, folder, data / name / "metadata.json", left))
            left -= sum(values.nbytes for values in episodes[-1].values())
    return episodes, digest.hexdigest()


def _padded(path: Path, handle: Any, kind: str, folder: Path, about: Path, limit_bytes: int) -> Columns:
    try:
        frame = parse(READERS[kind], path, handle, limit_bytes)
    except InputError as error:
        raise InputError(
            f"Episode {path.parent.name} of {folder.name} cannot be read: it is damaged or cut off, or large. {error}"
        ) from None
    lacking = [stored for stored in PARTS if stored not in frame.columns]
    if lacking:
        raise InputError(f"Episode {path.parent.name} of {folder.name} has no {lacking[0]!r}. It is not Minari's.")
    steps = _metadata(_inside(folder, about)).get("total_steps") if about.exists() else frame.height - 1
    if steps != frame.height - 1:
        raise InputError(
            f"Episode {path.parent.name} of {folder.name} has {frame.height} rows for {steps} steps; expected one more."
        )
    columns: Columns = {}
    for stored, name in PARTS.items():
        leaves = flat(name, frame[stored] if stored == "observations" else frame[stored][:-1])
        if len(leaves) > WIDTH:
            raise _too_wide(name, len(leaves))
        columns |= {inner: series.to_numpy() for inner, series in leaves.items()}
    return columns


# ---- what both need ----


def _inside(folder: Path, path: Path) -> Path:
    """A regular file that really lies in the folder."""
    try:
        real = path.resolve(strict=True)
    except OSError:
        raise InputError(
            f"{folder.name} has no {path.name}. It is not a whole Minari data set; download it again."
        ) from None
    if not real.is_relative_to(folder.resolve()) or not real.is_file():
        raise InputError(
            f"{path.name} of {folder.name} lies elsewhere. certeq reads only what is in the folder itself."
        )
    return real


def _metadata(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size <= 16 << 20:
            found = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(found, dict):
                return found
    except (OSError, ValueError, RecursionError):
        pass
    raise InputError(f"{path.parent.name}/{path.name} is not the metadata of a Minari data set.")


def _check_space(given: Any, name: str, what: str) -> None:
    """Refuse spaces that are no table: pictures, graphs, sequences. They are written as JSON within JSON."""
    try:
        leaves = list(_leaves(json.loads(given) if isinstance(given, str) else given))
    except (ValueError, RecursionError, TypeError, AttributeError):
        raise InputError(f"The {what} of {name} cannot be understood.") from None
    for kind, size in leaves:
        if kind not in ("Discrete", "MultiDiscrete", "MultiBinary", "Box", "Text"):
            raise InputError(f"The {what} of {name} has a part of type {kind}, which has no place in a table.")
        if size > WIDTH:
            raise _too_wide(f"the {what}", size)


def _leaves(space: Any) -> Iterator[tuple[str, int]]:
    if not isinstance(space, dict):
        return
    inner = space.get("subspaces")
    if inner is not None:
        for part in inner.values() if isinstance(inner, dict) else inner:
            yield from _leaves(part)
    else:
        shape = space.get("shape") or [len(space.get("nvec") or [1])]
        yield str(space.get("type")), math.prod(shape) if isinstance(shape, list) else 1


def _too_large(name: str, limit_bytes: int) -> InputError:
    return InputError(f"{name} unpacks to more than {limit_bytes:,} bytes. Take fewer episodes, or {way_out('bytes')}.")


def _too_wide(name: str, size: int) -> InputError:
    return InputError(
        f"{name} has {size:,} numbers in each step; certeq takes {WIDTH}. Pictures are not states: make features of "
        "them first."
    )


def _natural(names: Any) -> list[str]:
    """Names in the order of the numbers in them: episode_2 before episode_10."""

    def key(name: str) -> list[int | str]:  # every other part is a number
        return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"([0-9]+)", name))]

    return sorted(names, key=key)
