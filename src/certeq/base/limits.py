"""How large things may be, so that no file can take all the memory or all the time of a machine.

Each limit has a default that suits the machine's memory, and an environment variable that sets it to something else:
``CERTEQ_MAX_BYTES=20000000000 certeq learn rows.csv``.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from certeq.base.errors import InputError

PREFIX = "CERTEQ_MAX_"
ROOM = 2 << 30  # bytes of addresses: libraries reserve that much and use a sixth of it


def memory() -> int:
    """Bytes that this process may use: all of the machine's, or less where its group or its shell says so."""
    sizes = [16 << 30]  # where nobody tells
    if hasattr(os, "sysconf"):
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    return min((*sizes, *_address_space(), *group_limits()))


def _address_space() -> tuple[int, ...]:
    """Bytes of addresses that a shell lets this process have (``ulimit -v``), if it says."""
    if sys.platform == "win32":
        return ()
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return (soft,) if soft != resource.RLIM_INFINITY else ()


def cramped() -> bool:
    """Whether there are too few addresses for libraries to be loaded, whatever they then complain about."""
    return any(size < ROOM for size in _address_space())


@cache
def group_limits(about: Path = Path("/proc/self")) -> tuple[int, ...]:
    """What control groups allow this process, of either version: its own, and all that it lies in; looked up once."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # no such thing here
        groups = [line.split(":", 2) for line in (about / "cgroup").read_text().splitlines()]
        for line in (about / "mountinfo").read_text().splitlines():
            before, after = (part.split() for part in line.split(" - ", 1))
            root, point = before[3], Path(before[4])
            if after[0] == "cgroup2":
                own, name = [group for number, _, group in groups if number == "0"], "memory.max"
            elif after[0] == "cgroup" and "memory" in after[-1].split(","):
                own = [group for _, kinds, group in groups if "memory" in kinds.split(",")]
                name = "memory.limit_in_bytes"
            else:
                continue
            for group in own:
                inner = group if root == "/" or not group.startswith(root) else group[len(root) :]
                place = point if ".." in inner else point / inner.lstrip("/")  # a container sees its group as the top
                for folder in (place, *place.parents):
                    with contextlib.suppress(OSError, ValueError):  # not there, or "max"
                        found.append(int((folder / name).read_text()))
                    if folder == point:
                        break
    return tuple(found)


# shares of the memory leave room for what is made of a thing on the way: see docs/security.md for what was measured
DEFAULTS: dict[str, Callable[[], int]] = {
    "bytes": lambda: min(8 << 30, memory() // 8),  # of a file of rows, and of the table that it unpacks to
    "rows": lambda: memory() // 512,  # of a table that is read as a whole, which takes some 250 bytes for each
    "columns": lambda: 10_000,  # of a table
    "label": lambda: 10_000,  # characters; a longer label is a document, not the name of a state
    "pairs": lambda: min(100_000_000, memory() // 1024),  # states x actions
    "policy_bytes": lambda: min(1 << 30, memory() // 64),  # of a policy file, which takes up to 25 bytes for each
}


def most(name: str) -> int:
    """A limit: as the environment sets it, otherwise its default."""
    said = os.environ.get(PREFIX + name.upper())
    if said is None:
        return DEFAULTS[name]()
    if not (said.isascii() and said.isdecimal() and len(said) < 20 and int(said) > 0):
        raise InputError(f"{PREFIX}{name.upper()} must be a whole number, at least 1; got {said[:40]!r}.")
    return int(said)


def check_pairs(n_states: int, n_actions: int, decisions: int = 1) -> None:
    """Refuse tables of states and actions (and decisions of a horizon) that would not fit into memory."""
    pairs, limit = n_states * n_actions * decisions, most("pairs")
    if pairs > limit:
        times = f", for each of {decisions:,} decisions," if decisions > 1 else ""
        raise InputError(
            f"{n_states:,} states and {n_actions:,} actions{times} make {pairs:,} pairs, more than {limit:,}. Group "
            f"the labels of either, or {way_out('pairs')}."
        )


def check_lengths(where: str, texts: Iterable[object]) -> None:
    """Refuse labels that are documents, whatever file they are in."""
    limit = most("label")
    length = max((len(text) for text in texts if isinstance(text, str)), default=0)
    if length > limit:
        raise InputError(
            f"{where} holds a text of {length:,} characters; a label may have {limit:,}. Shorten it, or "
            f"{way_out('label')}."
        )


def way_out(name: str) -> str:
    """How to raise a limit, as a message says it."""
    return f"raise the limit with the environment variable {PREFIX}{name.upper()}"
