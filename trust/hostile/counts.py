"""Files of counts: archives that unpack to gigabytes, hold pickles or other names, or numbers that make no sense."""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

CASES: dict[str, Callable[[Path], tuple[Any, ...]]] = {}
LEARN = ("learn", "counts.npz", "--no-report")


@cache
def _sound() -> bytes:
    """A file of counts that can be read."""
    import tempfile

    import polars as pl

    from certeq.data.counting import count

    rows = {"s": ["a", "b", "a", "b"], "x": [1, 2, 3, 4], "do": ["u", "v", "v", "u"], "r": [1.0, 2.0, 0.5, 0.0]}
    after = {"t": ["b", "a", "a", "a"], "y": [2, 3, 4, 1], "done": [False, False, False, True]}
    with tempfile.TemporaryDirectory() as place:
        pl.DataFrame(rows | after).write_parquet(Path(place) / "x.parquet")
        roles = {"state": ["s", "x"], "next_state": ["t", "y"], "action": "do", "reward": "r", "done": "done"}
        return count(Path(place) / "x.parquet", **roles, bins={"x": "edges:2.5"}).to_bytes()


def sound() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What such a file says, and its arrays."""
    with np.load(io.BytesIO(_sound())) as archive:
        arrays = dict(archive)
    return json.loads(arrays.pop("about").tobytes()), arrays


def raw(name: str, content: Callable[[], bytes] | bytes) -> None:
    """Register what makes a file counts.npz."""

    def make(folder: Path) -> tuple[Any, ...]:
        (folder / "counts.npz").write_bytes(content if isinstance(content, bytes) else content())
        return LEARN

    CASES[f"counts: {name}"] = make


def spoiled(name: str, spoil: Callable[[dict[str, Any], dict[str, np.ndarray]], Any]) -> None:
    """Register what spoils a sound file: what it says about itself, or its arrays."""

    def content() -> bytes:
        about, arrays = sound()
        spoil(about, arrays)
        return archive(arrays | {"about": text(json.dumps(about))})

    raw(name, content)


def archive(arrays: dict[str, np.ndarray], packed: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    """An archive of arrays, and of other members as they are."""
    held = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(held, "w", packed) as file:
        warnings.simplefilter("ignore")  # about members of the same name, which are meant
        for name, array in arrays.items():
            stream = io.BytesIO()
            np.save(stream, array, allow_pickle=True)
            file.writestr(f"{name}.npy", stream.getvalue())
        for name, content in members.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a name is there twice is meant
                file.writestr(name, content)
    return held.getvalue()


def text(said: str) -> np.ndarray:
    """A text as it stands in such a file."""
    return np.frombuffer(said.encode(), dtype=np.uint8)


def instead(name: str, content: Callable[[], bytes]) -> bytes:
    """A sound file with other bytes for one of its members."""
    held = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_sound())) as before, zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        for member in before.namelist():
            file.writestr(member, content() if member == name else before.read(member))
    return held.getvalue()


def header(shape: str, kind: str = "<i8") -> bytes:
    """The beginning of an array that claims a shape."""
    said = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    padded = said + b" " * (-(len(said) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded


def exploit() -> bytes:
    """An array of objects that leave the canary behind, if anybody unpickles them."""
    from trust.hostile import Exploit

    held = io.BytesIO()
    np.save(held, np.array([Exploit()], dtype=object), allow_pickle=True)
    return held.getvalue()


# ---- no archive, or another one ----

raw("empty", b"")
raw("no archive", b"counts")
raw("the end of an archive alone", b"PK\x05\x06" + bytes(18))
raw("cut off", lambda: _sound()[:-100])
raw("a bit changed", lambda: (b := bytearray(_sound())).__setitem__(300, b[300] ^ 1) or bytes(b))
raw("arrays of something else", lambda: archive({"x": np.zeros(3)}))
raw("a member that leads elsewhere", lambda: archive({}, **{"../../about.npy": b"x"}))
raw("a member twice", lambda: archive({"about": text("{}")}, **{"about.npy": b"x"}))
raw("an archive within", lambda: archive({}, **{"about.npy": _sound()}))
raw("a bomb of 800 MB", lambda: instead("count.npy", lambda: header("(100000000,)") + bytes(800_000_000)))
raw("a bomb in the text", lambda: instead("about.npy", lambda: header("(600000000,)", "|u1") + b" " * 600_000_000))
raw("8 TB in a header", lambda: instead("count.npy", lambda: header("(1000000000000,)") + bytes(80)))
raw("a negative shape", lambda: instead("count.npy", lambda: header("(-3,)") + bytes(80)))
raw("brackets without end", lambda: instead("count.npy", lambda: header("(" * 5000)))
raw("code in a header", lambda: instead("count.npy", lambda: header("__import__('os').system('touch canary')")))
raw("objects that run a command", lambda: instead("count.npy", exploit))
raw("objects in place of the text", lambda: instead("about.npy", exploit))
raw("a text that is no UTF-8", lambda: instead("about.npy", lambda: header("(3,)", "|u1") + b"\xff\xfe\x00"))
raw(
    "20,000,000 empty objects",
    lambda: archive({"about": text('{"format":"certeq-counts","x":[' + "{}," * 20_000_000 + "{}]}")}),
)
raw("100,000 deep", lambda: archive({"about": text("[" * 100_000)}))
raw("Infinity", lambda: archive({"about": text('{"format": "certeq-counts", "version": Infinity}')}))

# ---- what it says about itself ----

for _field in ("format", "version", "states", "actions", "rows", "dropped", "notes", "files", "fingerprint"):
    spoiled(f"without {_field!r}", lambda about, arrays, field=_field: about.pop(field))  # type: ignore[misc]
for _field in ("format", "version", "states", "actions", "rows", "dropped", "reward"):
    for _other in (None, -1, "text", [], [[]], True, 2**70):
        if not (_field == "version" and _other is True):
            spoiled(
                f"{_field!r} is {_other!r}",
                lambda about, arrays, field=_field, other=_other: about.update({field: other}),  # type: ignore[misc]
            )
spoiled("a version to come", lambda about, arrays: about.update(version=3))
spoiled("a recipe of a version to come", lambda about, arrays: about["states"].update(version=2))
spoiled("an axis of no kind", lambda about, arrays: about["states"]["axes"].__setitem__(0, {"column": "s"}))
spoiled("states that are not counted", lambda about, arrays: about["states"]["cells"].append([1, 1]))
spoiled("a reward that is no number", lambda about, arrays: about["reward"].update(unit="1"))
spoiled("a reward without a unit", lambda about, arrays: about["reward"].pop("unit"))

# ---- its arrays ----

for _name in ("pointer", "next_state", "count", "reward_earned", "reward_arrived"):
    spoiled(f"without the array {_name}", lambda about, arrays, name=_name: arrays.pop(name))  # type: ignore[misc]
for _name in ("pointer", "next_state", "count", "ended", "reward_earned", "reward_arrived"):
    spoiled(
        f"{_name} too short",
        lambda about, arrays, name=_name: arrays.update({name: arrays[name][:-1]}),  # type: ignore[misc]
    )
    spoiled(
        f"{_name} of two axes",
        lambda about, arrays, name=_name: arrays.update({name: arrays[name][None]}),  # type: ignore[misc]
    )
    spoiled(
        f"{_name} of another type",
        lambda about, arrays, name=_name: arrays.update({name: arrays[name].astype(np.float32)}),  # type: ignore[misc]
    )
for _name in ("pointer", "next_state", "count", "ended"):
    spoiled(f"{_name} negative", lambda about, arrays, name=_name: arrays[name].__setitem__(0, -1))  # type: ignore[misc]
for _name in ("pointer", "next_state"):
    spoiled(f"{_name} too large", lambda about, arrays, name=_name: arrays[name].__setitem__(-1, 2**31 - 1))  # type: ignore[misc]
for _name in ("count", "ended"):
    spoiled(f"{_name} beyond all numbers", lambda about, arrays, name=_name: arrays[name].fill(2**62))  # type: ignore[misc]
spoiled("fewer rows than counts", lambda about, arrays: about.update(rows=1))
for _name in ("reward_earned", "reward_arrived"):
    spoiled(f"{_name} not a number", lambda about, arrays, name=_name: arrays[name].__setitem__(0, np.nan))  # type: ignore[misc]


# ---- no file ----


def _linked(target: str) -> Callable[[Path], tuple[Any, ...]]:
    def make(folder: Path) -> tuple[Any, ...]:
        (folder / "counts.npz").symlink_to(target)
        return LEARN

    return make


def _pipe(folder: Path) -> tuple[Any, ...]:
    os.mkfifo(folder / "counts.npz")
    return LEARN


def _folder(folder: Path) -> tuple[Any, ...]:
    (folder / "counts.npz").mkdir()
    return LEARN


CASES["counts: a link to itself"] = _linked("counts.npz")
CASES["counts: a link to an endless device"] = _linked("/dev/zero")
CASES["counts: a link to nowhere"] = _linked("../gone.npz")
CASES["counts: a pipe that nobody writes to"] = _pipe
CASES["counts: a folder"] = _folder
CASES["counts: an address"] = lambda folder: ("learn", "https://example.org/counts.npz")
