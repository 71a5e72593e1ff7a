"""Minari data sets: HDF5 that points into other files, holds itself, or claims to be huge; metadata without sense."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CASES: dict[str, Callable[[Path], tuple[Any, ...]]] = {}
SPACE = json.dumps({"type": "Discrete", "n": 3, "start": 0, "dtype": "int64", "shape": []})
ABOUT = {"data_format": "hdf5", "observation_space": SPACE, "action_space": SPACE, "total_steps": 3}


def hdf5(name: str) -> Callable[[Callable[[Any, Path], None]], Callable[[Any, Path], None]]:
    """Register what spoils the HDF5 file of a sound data set."""

    def keep(spoil: Callable[[Any, Path], None]) -> Callable[[Any, Path], None]:
        def make(folder: Path) -> tuple[Any, ...]:
            import h5py

            data = sound(folder)
            with h5py.File(data / "main_data.hdf5", "a") as file:
                spoil(file, folder)
            return "learn", "set"

        CASES[f"Minari: {name}"] = make
        return spoil

    return keep


def sound(folder: Path) -> Path:
    """A data set of one episode that can be read."""
    import h5py

    data = folder / "set" / "data"
    data.mkdir(parents=True)
    (data / "metadata.json").write_text(json.dumps(ABOUT))
    with h5py.File(data / "main_data.hdf5", "w") as file:
        episode = file.create_group("episode_0")
        episode["observations"] = np.array([0, 1, 2, 0])
        episode["actions"] = np.array([0, 1, 1])
        episode["rewards"] = np.array([1.0, 0.0, 2.0])
        episode["terminations"] = np.array([False, False, True])
        episode["truncations"] = np.zeros(3, dtype=bool)
    return data


def secret(folder: Path) -> Path:
    """Something private outside of the data set."""
    path = folder / "secret.bin"
    path.write_bytes(b"s3cr3t!!" * 10)
    return path


@hdf5("an external link")
def _(file: Any, folder: Path) -> None:
    import h5py

    with h5py.File(folder / "other.h5", "w") as other:
        other["observations"] = np.array([0, 1, 2, 0])
    del file["episode_0/observations"]
    file["episode_0/observations"] = h5py.ExternalLink(str(folder / "other.h5"), "observations")


@hdf5("an external link to a folder above")
def _(file: Any, folder: Path) -> None:
    import h5py

    shutil.copy(file.filename, folder / "above.h5")
    del file["episode_0/actions"]
    file["episode_0/actions"] = h5py.ExternalLink("../../above.h5", "episode_0/actions")


@hdf5("external storage in a folder above")
def _(file: Any, folder: Path) -> None:
    secret(folder)
    del file["episode_0/rewards"]
    file.create_dataset("episode_0/rewards", (3,), "f8", external=[("../../secret.bin", 0, 24)])


@hdf5("external storage")
def _(file: Any, folder: Path) -> None:
    del file["episode_0/observations"]
    file.create_dataset("episode_0/observations", (4,), "i8", external=[(str(secret(folder)), 0, 32)])


@hdf5("a virtual array")
def _(file: Any, folder: Path) -> None:
    import h5py

    with h5py.File(folder / "other.h5", "w") as other:
        other["observations"] = np.array([0, 1, 2, 0])
    layout = h5py.VirtualLayout((4,), "i8")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "observations", (4,))
    del file["episode_0/observations"]
    file.create_virtual_dataset("episode_0/observations", layout)


@hdf5("a soft link")
def _(file: Any, folder: Path) -> None:
    import h5py

    file.move("episode_0/observations", "elsewhere")
    file["episode_0/observations"] = h5py.SoftLink("/elsewhere")


@hdf5("a whole episode behind an external link")
def _(file: Any, folder: Path) -> None:
    import h5py

    shutil.copy(file.filename, folder / "other.h5")
    file["episode_1"] = h5py.ExternalLink(str(folder / "other.h5"), "episode_0")


@hdf5("an array that claims 800 GB")
def _(file: Any, folder: Path) -> None:
    del file["episode_0/observations"]
    file.create_dataset("episode_0/observations", (10**11,), "i8", chunks=(10**6,), fillvalue=1)


@hdf5("zeros that unpack to 1 GB")
def _(file: Any, folder: Path) -> None:
    del file["episode_0/observations"]
    zeros = file.create_dataset("episode_0/observations", (10**9,), "i1", chunks=(10**7,), compression="gzip")
    zeros[: 10**7] = 1


@hdf5("a million references to one long text")
def _(file: Any, folder: Path) -> None:
    import h5py

    del file["episode_0/observations"]
    texts = file.create_dataset(
        "episode_0/observations", (200,), h5py.string_dtype(), chunks=(200,), compression="gzip"
    )
    texts[:] = "x" * 4_000_000


@hdf5("a group that holds itself")
def _(file: Any, folder: Path) -> None:
    del file["episode_0/observations"]
    group = file.create_group("episode_0/observations")
    group["_index_0"] = group


@hdf5("a group with 2^40 ways down")
def _(file: Any, folder: Path) -> None:
    del file["episode_0/observations"]
    below = file.create_group("bottom")
    for level in range(40):
        group = file.create_group(f"level_{level}")
        group["_index_0"] = below
        group["_index_1"] = below
        below = group
    file["episode_0/observations"] = below


@hdf5("a type in place of an array")
def _(file: Any, folder: Path) -> None:
    del file["episode_0/observations"]
    file["episode_0/observations"] = np.dtype("i8")


@hdf5("a single number in place of an array")
def _(file: Any, folder: Path) -> None:
    del file["episode_0/rewards"]
    file["episode_0/rewards"] = 1.0


@hdf5("an empty array without a shape")
def _(file: Any, folder: Path) -> None:
    import h5py

    del file["episode_0/rewards"]
    file["episode_0/rewards"] = h5py.Empty("f8")


@hdf5("records in place of numbers")
def _(file: Any, folder: Path) -> None:
    del file["episode_0/rewards"]
    file["episode_0/rewards"] = np.zeros(3, dtype=[("a", "f8"), ("b", "i8")])


@hdf5("two numbers for each reward")
def _(file: Any, folder: Path) -> None:
    del file["episode_0/rewards"]
    file["episode_0/rewards"] = np.zeros((3, 2))


@hdf5("an array of another length")
def _(file: Any, folder: Path) -> None:
    del file["episode_0/rewards"]
    file["episode_0/rewards"] = np.zeros(7)


@hdf5("no episodes")
def _(file: Any, folder: Path) -> None:
    del file["episode_0"]


@hdf5("an array in place of an episode")
def _(file: Any, folder: Path) -> None:
    file["episode_1"] = np.zeros(3)


def about(name: str, **other: Any) -> None:
    """Register metadata that make no sense."""
    raw(name, json.dumps(ABOUT | other))


def raw(name: str, text: str) -> None:
    """Register a text in place of the metadata."""

    def make(folder: Path) -> tuple[Any, ...]:
        (sound(folder) / "metadata.json").write_text(text)
        return "learn", "set"

    CASES[f"Minari metadata: {name}"] = make


raw("no JSON", "not json")
raw("a list", "[]")
raw("10,000 deep", "[" * 10_000)
about("an unknown format", data_format="zarr")
about("a format that is a list", data_format=["hdf5"])
about("an unknown space", observation_space='{"type": "Graph"}')
about("a space that is a list", observation_space="[1, 2")
about("a space with a number for its parts", observation_space={"subspaces": 7})
about("a space with a text for its shape", observation_space={"type": "Box", "shape": ["a", "b"]})
about("a space as large as a picture", observation_space={"type": "Box", "shape": [210, 160, 3]})
about("a space with a number for its vector", action_space={"type": "MultiDiscrete", "nvec": 7})


def _deep_space(folder: Path) -> tuple[Any, ...]:
    space = '{"subspaces": [' * 400 + SPACE + "]}" * 400
    (sound(folder) / "metadata.json").write_text(json.dumps(ABOUT | {"observation_space": space}))
    (folder / "set" / "data" / "main_data.hdf5").unlink()
    return "learn", "set"


CASES["Minari metadata: a space 400 deep"] = _deep_space


def _linked(folder: Path) -> tuple[Any, ...]:
    data = sound(folder)
    (data / "main_data.hdf5").rename(folder / "elsewhere.hdf5")
    (data / "main_data.hdf5").symlink_to(folder / "elsewhere.hdf5")
    return "learn", "set"


def _cut(folder: Path) -> tuple[Any, ...]:
    path = sound(folder) / "main_data.hdf5"
    path.write_bytes(path.read_bytes()[:700])
    return "learn", "set"


def _empty_part(folder: Path) -> tuple[Any, ...]:
    data = sound(folder)
    (data / "metadata.json").write_text(json.dumps(ABOUT | {"data_format": "arrow"}))
    (data / "0").mkdir()
    (data / "0" / "part-0.arrow").touch()
    return "learn", "set"


def _above(folder: Path) -> tuple[Any, ...]:
    data = sound(folder)
    (data / "main_data.hdf5").rename(folder / "above.hdf5")
    (data / "main_data.hdf5").symlink_to("../../above.hdf5")
    return "learn", "set"


CASES["Minari: a link that leaves the folder"] = _linked
CASES["Minari: a link to a folder above"] = _above
CASES["Minari: cut off"] = _cut
CASES["Minari: an empty part"] = _empty_part
