"""Arrays for settings: NumPy files that claim terabytes, nest without end, or hold pickles."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CASES: dict[str, Callable[[Path], tuple[Any, ...]]] = {}
LEARN = ("learn", "--regularizer", "expert_prior", "--setting", "target=target.npy")


def header(text: bytes) -> bytes:
    """A NumPy file that is all header."""
    padded = text + b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded


def case(name: str, content: Callable[[], bytes] | bytes) -> None:
    """Register what makes a file target.npy."""

    def make(folder: Path) -> tuple[Any, ...]:
        (folder / "target.npy").write_bytes(content if isinstance(content, bytes) else content())
        return LEARN

    CASES[f"array: {name}"] = make


case("7 TiB in a header", header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"))
case("brackets without end", header(b"(" * 5000))
case("a negative shape", header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-5,), }"))
case("a header that is code", header(b"__import__('os').system('touch canary')"))
case("empty", b"")
case("the mark alone", b"\x93NUMPY")
case("another version", b"\x93NUMPY\x09\x00" + bytes(100))


def _objects() -> bytes:
    from trust.hostile import Exploit

    held = io.BytesIO()
    np.save(held, np.array([Exploit()], dtype=object), allow_pickle=True)
    return held.getvalue()


def _several() -> bytes:
    held = io.BytesIO()
    np.savez_compressed(held, target=np.zeros(20_000_000))
    return held.getvalue()


def _pickled() -> bytes:
    from trust.hostile import exploit

    return exploit()


case("objects that run a command", _objects)
case("a pickle under another name", _pickled)
case("an npz bomb under another name", _several)


def _pipe(folder: Path) -> tuple[Any, ...]:
    os.mkfifo(folder / "target.npy")
    return LEARN


CASES["array: a pipe that nobody writes to"] = _pipe
CASES["array: nowhere"] = lambda folder: LEARN
