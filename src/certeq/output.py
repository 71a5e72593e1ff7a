"""Writing results: everything or nothing, and never over something that is there unless that was asked for.

Files of one run are first written, and flushed to the disk, in a hidden folder beside their places: killed so far, a
run has changed nothing. One rename of that folder then decides that the new files hold, and they move to their places
one by one. A run that is killed between two of these moves leaves the hidden folder `READY` behind as a sign; whatever
certeq writes there next first finishes what was begun. A single file is moved in one step and needs no sign.

Long work may keep what is done of it, task by task, in a folder of its own (`keep`), and go on from there (`recall`).
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import certeq
from certeq.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would take for a formula
READY = ".certeq-ready"  # files that are whole and hold, on the way to their places
PART = ".certeq-part-"  # how folders begin in which files are being written
DAMAGED = (  # what reading an archive of arrays raises where it is damaged, down to how NumPy reads a header
    ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, TokenError,
)  # fmt: skip
STALE = 3600.0  # seconds after which such a folder belongs to nobody any more


def check_free(paths: Iterable[Path], *, force: bool) -> None:
    """Raise if something is in the way, before any work is done; with ``force`` files may be overwritten."""
    places = list(paths)
    for folder in {path.parent for path in places}:
        sweep(folder)
    _check_free(places, force=force)
    for folder in {path.parent for path in places}:
        try:
            Stage(folder).withdraw()  # whether anything can be written there at all
        except OSError as error:
            raise _unwritable(folder, error) from None


def _check_free(paths: Iterable[Path], *, force: bool) -> None:
    for path in paths:
        try:
            settle(path.parent)
            if path.is_dir():
                raise InputError(
                    f"Could not write {path}: a folder of that name is there already. Choose another place."
                )
            if path.exists() and not force:
                remedy = "Choose another place with --out, or overwrite with --force."
                raise InputError(f"{path} is there already. {remedy}")
        except OSError as error:
            raise _unwritable(path, error) from None


def settle(folder: Path) -> None:
    """Finish what a killed run had begun to put in place."""
    ready = folder / READY
    if not _ours(ready):
        return
    for file in ready.iterdir():
        with contextlib.suppress(FileNotFoundError):  # somebody else is finishing it as well
            file.replace(folder / file.name)
    with contextlib.suppress(OSError):
        ready.rmdir()


def sweep(folder: Path, *, patience: float = STALE) -> None:
    """Remove what killed runs left half-written, if that is old enough to be nobody's."""
    with contextlib.suppress(OSError):
        for left in folder.glob(f"{PART}*"):
            if _ours(left) and time.time() - left.lstat().st_mtime >= patience:
                shutil.rmtree(left, ignore_errors=True)


def _ours(folder: Path) -> bool:
    """Whether this is a real folder of this very user: in a shared place, somebody else may have left it as a trap."""
    try:
        mine = not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()
        return mine and folder.is_dir() and not folder.is_symlink()
    except OSError:
        return False


def write_files(files: Mapping[Path, str | bytes], *, force: bool = False) -> None:
    """Write all files, or on any trouble none of them: everything is then as it was before."""
    _check_free(files, force=force)
    stages: dict[Path, Stage] = {}
    path = Path()
    try:
        for path, content in files.items():
            if path.parent not in stages:
                stages[path.parent] = Stage(path.parent)
            stages[path.parent].write(path.name, content)
        for stage in stages.values():
            path = stage.folder
            stage.decide()
        for path in files:
            stages[path.parent].move(path)
    except BaseException as error:
        for stage in stages.values():
            stage.withdraw()
        if isinstance(error, OSError | UnicodeEncodeError):
            raise _unwritable(path, error) from None
        raise
    for stage in stages.values():
        stage.end()


class Stage:
    """Files of one folder on their way: written aside, decided upon, moved to their places; or withdrawn."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = [above for above in (folder, *folder.parents) if not above.exists()]
        self.aside = _aside(folder)
        self.new, self.old = self.aside / "new", self.aside / "old"
        self.moved: list[tuple[str, bool]] = []  # (name, whether there was such a file before)
        self.new.mkdir()
        self.old.mkdir()

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file aside and see it to the disk, with the usual permissions."""
        data = content.encode("utf-8") if isinstance(content, str) else content
        with (self.new / name).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def decide(self) -> None:
        """From here on the new files hold: with one rename, if there are several, so that it can be seen."""
        if len(list(self.new.iterdir())) == 1:
            return
        ready = self.folder / READY
        for _ in range(1000):
            try:
                self.new.rename(ready)
            except OSError:
                if not _ours(ready):
                    raise
                settle(self.folder)  # another run is about to put its files here; they come first
            else:
                self.new = ready
                return
        raise OSError(16, "another run keeps writing here")

    def move(self, path: Path) -> None:
        """Put one file into its place, keeping what was there until the end."""
        there = path.exists()
        if there:
            try:
                (self.old / path.name).hardlink_to(path)
            except OSError:  # a file system without hard links
                shutil.copy2(path, self.old / path.name)
        self.moved.append((path.name, there))
        with contextlib.suppress(FileNotFoundError):  # another run has finished this one's work
            (self.new / path.name).replace(path)

    def withdraw(self) -> None:
        """Put everything back as it was, as far as the disk allows."""
        if self.new != self.aside / "new":
            with contextlib.suppress(OSError):
                self.new.rename(self.aside / "new")  # what is withdrawn must not be finished by others
        for name, there in reversed(self.moved):
            with contextlib.suppress(OSError):
                (self.old / name).replace(self.folder / name) if there else (self.folder / name).unlink()
        shutil.rmtree(self.aside, ignore_errors=True)
        for folder in self.made:
            with contextlib.suppress(OSError):
                folder.rmdir()

    def end(self) -> None:
        """See the new names to the disk, and clear away."""
        with contextlib.suppress(OSError):
            self.new.rmdir()
        shutil.rmtree(self.aside, ignore_errors=True)
        with contextlib.suppress(OSError):  # not every system can do this with a folder
            handle = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _aside(folder: Path) -> Path:
    """Make a folder to write in, and the folder that it lies in; runs that end meanwhile may take an empty one away."""
    for _ in range(1000):
        with contextlib.suppress(FileNotFoundError):
            folder.mkdir(parents=True, exist_ok=True)
            return Path(tempfile.mkdtemp(prefix=PART, dir=folder))
    raise FileNotFoundError(2, "other runs keep removing the folder")


def _unwritable(path: Path, error: OSError | UnicodeEncodeError) -> InputError:
    why = error.strerror if isinstance(error, OSError) else "it holds text that no file can hold"
    return InputError(f"Could not write {path}: {why}. Nothing was kept.")


# ---- work that goes on where it was stopped ----


def keep(folder: Path, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Keep what came of one task in a file of its own, which says what the task was about; numbers only, no pickles."""
    import numpy as np

    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays, about=np.frombuffer(_said(about), dtype=np.uint8))
    write_files({_place(folder, about): file.getvalue()}, force=True)


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
        raise InputError(f"Work with a setting of the kind {type(thing).__name__} cannot be kept and gone on with.")


# ---- texts ----


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table as CSV; text that a spreadsheet would run as a formula is led by an apostrophe."""
    return "".join(",".join(map(_cell, row)) + "\n" for row in (header, *rows))


def json_text(value: Any, *, compact: bool = False) -> str:
    """Write JSON that people can read, or all in one line; numbers that JSON does not have are an error."""
    return json.dumps(value, indent=None if compact else 2, ensure_ascii=False, allow_nan=False) + "\n"


def _cell(cell: Any) -> str:
    text = "" if cell is None else str(cell)
    if isinstance(cell, str) and text.startswith(FORMULA_STARTS) and not _is_number(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
