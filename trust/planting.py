"""Things that came with an archive and lie where certeq will write: none is executed, moved or believed.

A folder is planted with random things under the names that certeq, or one of its libraries, looks for. The files of a
user lie beside them, and others outside. Whatever is then written there, or refused: only the files that were asked for
may change, all of them or none, and nothing that was planted may turn up anywhere else.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path

import numpy as np

from certeq.base import writing
from certeq.base.errors import InputError
from certeq.base.writing import PART, READY, check_free, settle, sweep, write_files

EVIL = b"planted"
USERS = {"Makefile": b"mine", ".bashrc": b"mine as well", "a.json": b"old a", "b.csv": b"old b"}
RESULTS = ("a.json", "b.csv", "c.html", "d.svg")
HIDDEN = (READY, f"{PART}1", f"{PART}zz", f"{READY}-1", ".certeq", "promises", "kept-0.npz", "c.html")
KINDS = ("file", "empty folder", "folder", "link to a file", "link to a folder", "link to nothing", "fifo", "deep")


def plant(folder: Path, outside: Path, name: str, kind: str, rng: np.random.Generator) -> None:
    """Put one thing where it does not belong."""
    place = folder / name
    if kind == "file":
        place.write_bytes(EVIL)
    elif kind == "fifo":
        os.mkfifo(place)
    elif kind.startswith("link"):
        place.symlink_to({"a file": outside / "letter", "a folder": outside}.get(kind[8:], folder / "nothing"))
    else:
        place.mkdir()
        inner = place / "new" if kind == "deep" else place
        inner.mkdir(exist_ok=True)
        names = rng.permutation([*USERS, *RESULTS[2:], "letter"])[: 0 if kind == "empty folder" else rng.integers(1, 6)]
        for one in names:
            plant(inner, outside, str(one), str(rng.choice(["file", "link to a file"], p=[0.8, 0.2])), rng)
        if rng.random() < 0.5:  # a promise such as certeq writes, but where it does not write it
            where = [place.stat().st_dev, place.stat().st_ino]
            said = {"folder": str(folder), "waiting": where, "files": dict.fromkeys(map(str, names), "0" * 64)}
            (place / "promise.json").write_text(json.dumps(said))
    if rng.random() < 0.5:
        os.utime(place, (0, 0), follow_symlinks=False)


def attempt(folder: Path, rng: np.random.Generator) -> tuple[str, str]:
    """Plant, write, and look: what came of it, and what is wrong ('' if nothing)."""
    shutil.rmtree(folder, ignore_errors=True)
    out, outside = folder / "out", folder / "outside"
    for place, files in ((out, USERS), (outside, {"letter": b"dear"})):
        place.mkdir(parents=True)
        for name, content in files.items():
            (place / name).write_bytes(content)
    planted = [str(name) for name in rng.permutation(HIDDEN)[: rng.integers(1, 5)]]
    kinds = [str(rng.choice(KINDS)) for _ in planted]
    for name, kind in zip(planted, kinds, strict=True):
        plant(out, outside, name, kind, rng)
    asked = [str(name) for name in rng.permutation(RESULTS)[: rng.integers(1, 5)]]
    force = bool(rng.random() < 0.7)
    ready = _tree(out / READY)
    try:
        if rng.random() < 0.3:
            settle(out)
            sweep(out)
        if rng.random() < 0.5:
            check_free([out / name for name in asked], force=force)
        write_files({out / name: b"new" for name in asked}, force=force)
        found = "written"
    except InputError:
        found = "refused"
    told = f"{dict(zip(planted, kinds, strict=True))}, {asked}, force={force}, {found}"
    return found, _wrong(out, outside, asked, found, ready, planted, told)


def _wrong(out: Path, outside: Path, asked: list[str], found: str, ready: object, planted: list[str], told: str) -> str:
    if _tree(outside) != {"letter": b"dear"}:
        return f"something outside has changed: {told}"
    for name, content in USERS.items():
        now = (out / name).read_bytes()
        if now != (b"new" if found == "written" and name in asked else content):
            return f"{name} is now {now!r}: {told}"
    for name in asked:
        if found == "written" and ((out / name).is_symlink() or (out / name).read_bytes() != b"new"):
            return f"{name} is not what was written: {told}"
        if found == "refused" and name not in (*USERS, *planted) and os.path.lexists(out / name):
            return f"{name} was left although all was refused: {told}"
    if READY in planted and ready and _tree(out / READY) != ready:
        return f"{READY} was touched: {told}"
    left = {path.name for path in out.iterdir()} - {*USERS, *asked, *planted, "nothing"}
    return f"{sorted(left)} turned up: {told}" if left else ""


def _tree(folder: Path) -> dict[str, bytes | str] | None:
    """All that lies in a folder; None where there is no folder."""
    if folder.is_symlink() or not folder.is_dir():
        return None
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def campaign(folder: Path, rng: np.random.Generator, times: int) -> tuple[Counter[str], list[str]]:
    """Many attempts; gives what was found, and what was wrong."""
    found: Counter[str] = Counter()
    failures = []
    patience, writing.PATIENCE = writing.PATIENCE, 0.02  # nobody else writes here who might be worth waiting for
    try:
        for _ in range(times):
            what, wrong = attempt(folder / "planted", rng)
            found[what] += 1
            failures += [wrong] if wrong else []
    finally:
        writing.PATIENCE = patience
    return found, failures
