"""Places that belong to this user alone, where nothing that came in an archive or from a stranger can lie.

What certeq believes later (which files a run promised, compiled kernels) is kept there, never beside data or results.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path


def private(kind: str) -> Path | None:
    """A folder for one kind of thing, made if need be; None where this user has no place of their own."""
    for root in _roots():
        with contextlib.suppress(OSError):
            for folder in (root, root / kind):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if mine(root) and mine(root / kind) and os.access(root / kind, os.W_OK | os.X_OK):
                return root / kind
    return None


def mine(folder: Path) -> bool:
    """Whether this is a real folder of this very user, in which nobody else may write."""
    return owned(folder) and (os.name != "posix" or not folder.lstat().st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def owned(folder: Path) -> bool:
    """Whether this is a real folder, no link, of this very user: in a shared place it may be somebody's trap."""
    try:
        status = folder.lstat()
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(status.st_mode) and (not hasattr(os, "getuid") or status.st_uid == os.getuid())


def _roots() -> Iterator[Path]:
    """Where to look, best first: what lasts, and then what lasts until the machine or the container ends."""
    said = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME", "")
    if Path(said).is_absolute():
        yield Path(said) / "certeq"
    with contextlib.suppress(RuntimeError):  # nobody told where home is
        yield Path.home() / ".local" / "state" / "certeq"
    with contextlib.suppress(OSError):  # no place for temporary files either
        yield Path(tempfile.gettempdir()) / f"certeq-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
