"""Writing results: everything or nothing, and never over something that is there unless that was asked for.

Files of one run are first written, and flushed to the disk, in a hidden folder beside their places: killed so far, a
run has changed nothing. One rename of that folder then decides that the new files hold, and they move to their places
one by one. A run that is killed between two of these moves leaves the hidden folder `READY` behind as a sign; whatever
certeq writes there next first finishes what was begun, if it was this user's own run that promised it (see `promises`).
A single file is moved in one step and needs no sign.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO, TypeAlias

from certeq.base.errors import InputError
from certeq.base.manners import complete
from certeq.base.private import owned
from certeq.base.promises import STALE, forget, fulfil, number, promise

Content: TypeAlias = str | bytes | Callable[[BinaryIO], None]  # or what writes it, part by part, to an open file
READY = ".certeq-ready"  # files that are whole and hold, on the way to their places
PART = ".certeq-part-"  # how folders begin in which files are being written
PATIENCE = 3.0  # seconds for another run to be through with moving its files


def check_free(paths: Iterable[Path], *, force: bool) -> None:
    """Raise if something is in the way, before any work is done; with ``force`` files may be overwritten."""
    places = list(paths)
    for folder in {path.parent for path in places}:
        sweep(folder)
    _check_free(places, force=force)
    for folder, number_of_files in Counter(path.parent for path in places).items():
        try:
            Stage(folder).withdraw()  # whether anything can be written there at all
        except OSError as error:
            alone = next(path for path in places if path.parent == folder)
            raise _unwritable(alone if number_of_files == 1 else folder, error) from None
        if number_of_files > 1:
            _wait(folder)


def _wait(folder: Path) -> None:
    """Let another run finish what it is putting in place; what no run has promised is in the way."""
    until = time.monotonic() + PATIENCE
    while os.path.lexists(folder / READY):
        settle(folder)
        if time.monotonic() > until:
            raise _in_the_way(folder / READY)
        time.sleep(0.01)


def _check_free(paths: Iterable[Path], *, force: bool) -> None:
    for path in paths:
        try:
            settle(path.parent)
            if path.is_dir():
                raise InputError(f"Could not write {path}: a folder of that name already exists. Choose another place.")
            if os.path.lexists(path) and not force:
                remedy = "Choose another place with --out, or overwrite with --force."
                raise InputError(f"{path} already exists. {remedy}")
        except OSError as error:
            raise _unwritable(path, error) from None


def settle(folder: Path) -> None:
    """Finish what a killed run of this user had promised to put in place here; anything else is left alone."""
    if owned(folder / READY):
        fulfil(folder, folder / READY)


def sweep(folder: Path, *, patience: float = STALE) -> None:
    """Remove what killed runs left half-written, if that is old enough to be nobody's."""
    with contextlib.suppress(OSError):
        for left in folder.glob(f"{PART}*"):
            if owned(left) and time.time() - left.lstat().st_mtime >= patience:
                shutil.rmtree(left, ignore_errors=True)


def write_files(files: Mapping[Path, Content], *, force: bool = False, last: bool = False) -> None:
    """Write all files, or on any trouble none of them: everything is then as it was before.

    ``last`` says that these are all results of a command: whoever stops it from then on is told that they are complete.
    """
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
    if last:
        complete(*(stages if len(files) > 1 else files))
    for stage in stages.values():
        stage.end()


def remove(paths: Iterable[Path]) -> list[Path]:
    """Remove what is there of these files; gives those that were."""
    there = [path for path in paths if os.path.lexists(path)]
    for path in there:
        try:
            path.unlink()
        except OSError as error:
            raise InputError(f"Could not remove {path}, which is of an earlier run: {error.strerror}.") from None
    return there


class Stage:
    """Files of one folder on their way: written aside, decided upon, moved to their places; or withdrawn."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = [above for above in (folder, *folder.parents) if not above.exists()]
        self.aside = _aside(folder)
        self.new, self.old = self.aside / "new", self.aside / "old"
        self.moved: list[tuple[str, bool]] = []  # (name, whether there was such a file before)
        self.promised: Path | None = None
        self.new.mkdir()
        self.old.mkdir()

    def write(self, name: str, content: Content) -> None:
        """Write a file aside and see it to the disk, with the usual permissions."""
        with (self.new / name).open("wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())

    def decide(self) -> None:
        """From here on the new files hold: with one rename, if there are several, so that it can be seen."""
        if len(list(self.new.iterdir())) == 1:
            return
        ready = self.folder / READY
        self.promised = promise(self.folder, self.new)
        self.number = number(self.new)
        for _ in range(1000):
            try:
                self.new.rename(ready)
            except OSError:
                if not os.path.lexists(ready):
                    raise
                _wait(self.folder)  # another run is about to put its files here; they come first
            else:
                self.new = ready
                return
        raise OSError(16, "another run keeps writing here")

    def move(self, path: Path) -> None:
        """Put one file into its place, keeping what was there until the end."""
        there = os.path.lexists(path)
        if path.is_symlink():
            (self.old / path.name).symlink_to(path.readlink())
        elif there:
            try:
                (self.old / path.name).hardlink_to(path)
            except OSError:  # a file system without hard links
                shutil.copy2(path, self.old / path.name)
        self.moved.append((path.name, there))
        with contextlib.suppress(FileNotFoundError):  # another run has finished this one's work
            (self.new / path.name).replace(path)

    def withdraw(self) -> None:
        """Put everything back as it was, as far as the disk allows."""
        with contextlib.suppress(OSError):
            if self.new != self.aside / "new" and number(self.new) == self.number:  # still our own, not the next run's
                self.new.rename(self.aside / "new")  # what is withdrawn must not be finished by others
        forget(self.promised)
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
        forget(self.promised)
        shutil.rmtree(self.aside, ignore_errors=True)
        with contextlib.suppress(OSError):  # not every system can do this with a folder
            handle = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _aside(folder: Path) -> Path:
    """Make a folder to write in, and the folder that it lies in; runs that end meanwhile may take an empty one away."""
    made = False
    for _ in range(1000):
        with contextlib.suppress(FileNotFoundError):
            folder.mkdir(parents=True, exist_ok=True)
            made = True
            return Path(tempfile.mkdtemp(prefix=PART, dir=folder))
    raise FileNotFoundError(2, "other runs keep removing the folder" if made else "no folder can be made there")


def _in_the_way(ready: Path) -> InputError:
    return InputError(
        f"Could not write to {ready.parent}: {ready} already exists, and no run of yours on this machine promised "
        "what is in it. It came with other files, or from a run elsewhere that was killed. Look at it, and remove it. "
        "Nothing was kept."
    )


def _unwritable(path: Path, error: OSError | UnicodeEncodeError) -> InputError:
    if not isinstance(error, OSError):
        return InputError(f"Could not write {path}: it holds text that no file can hold. Nothing was kept.")
    why = error.strerror
    if isinstance(error, FileExistsError | NotADirectoryError):
        file = next((above for above in (path, *path.parents) if above.is_file()), None)
        why = why if file is None else f"{file} is a file and not a folder"
    return InputError(f"Could not write {path}: {why}. Nothing was kept. Choose another place.")
