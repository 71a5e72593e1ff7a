"""Counting all pieces and merging what comes of them: on threads, on local processes, or on a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from certeq.base import places, writing
from certeq.base.arrays import whole
from certeq.base.errors import InputError, nearest
from certeq.base.threads import default_threads
from certeq.data.counting import parquet as files
from certeq.data.counting.kept import count_kept
from certeq.data.counting.parquet import PIECE, File, Piece
from certeq.data.counting.parts import Part, merge
from certeq.data.counting.pieces import MAX_STATES, Layout, check_states
from certeq.data.counting.shares import TALLEST, TOGETHER, count_share, tree
from certeq.data.counting.tallied import Tallied, finish
from certeq.data.reading.roles import SPELLINGS, Roles, find_roles, plain
from certeq.data.recipes.fitting import Binning, parse
from certeq.data.request import OTHERS, Request

WRITE_IT = (
    "Where the next state stands in the next row, write it into each row first: in polars, for example, "
    "pl.col('state').shift(-1).over('episode')."
)
SHARES = 4  # tasks for each process, so that none waits long for the last
LEAST_SHARES = 64  # tasks for a cluster, to which workers may come while it works
KEPT_SHARES = 256  # shares that are kept, at least: a number of its own, so that any workers go on with those of others


def count(
    source: Any,
    *,
    state: Any = None,
    action: Any = None,
    next_state: Any = None,
    reward: Any = None,
    cost: Any = None,
    minimize: bool | None = None,
    done: Any = None,
    truncated: Any = None,
    bins: Mapping[str, Any] | int | None = None,
    max_states: int = MAX_STATES,
    threads: int | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    fingerprint: bool = True,
    resume: str | Path | None = None,
    piece_rows: int = PIECE,
    progress: places.Advance | None = None,
) -> Tallied:
    """Count the rows of a Parquet file, or of all Parquet files in a folder, without holding them in memory.

    Each row holds its own next state (the explicit layout). The counts are those of ``certeq.tally(certeq.read(...))``
    with ``bins`` that say 'labels' for every column for which none are said here, bit for bit, whatever the threads,
    the workers and the pieces. Sums of rewards are added in an order that depends on the files and ``piece_rows`` only.

    Parameters
    ----------
    source
        A Parquet file, or a folder of them, taken in the order of their names.
    state, action, next_state, reward, cost, minimize, done, truncated
        Which column is what, as for `certeq.read`; there may be no reward.
    bins
        For a column 'labels', the default, or 'edges:1,2.5,7'. Quantiles would need all rows at once.
    max_states
        More states than this are refused.
    threads, workers, scheduler
        Threads of this process (all processors by default), or local processes, or the address of a Dask scheduler
        whose workers see the files under the same path.
    fingerprint
        Whether to keep a SHA-256 of what was read. On a file system that is slow, that is reading everything twice.
    resume
        A folder in which counts of parts of the files are kept as they are done; the same call then goes on where an
        earlier one was stopped, to the same bytes. On a cluster, the workers must see it under the same path.
    piece_rows
        Rows that a thread reads at a time. Memory is in proportion to it, and to the number of different transitions.
    progress
        Called with the rows done and the rows there are, now and then.
    """
    whole("piece_rows", piece_rows, 1), whole("max_states", max_states, 1)
    places.check_one(workers, scheduler)
    found = files.find(source)
    said = {"state": state, "action": action, "next_state": next_state, "reward": reward, "done": done}
    asked = Request(**said, truncated=truncated, cost=cost, minimize=minimize)
    layout = plan(found, asked, bins or {}, max_states)
    hands = (default_threads() if threads is None else whole("threads", threads, 1), whole("workers", workers, 1))
    work = count_share if resume is None else partial(count_kept, count=count_share, folder=_workplace(resume))
    with places.workforce(*hands, scheduler) as force:
        digests = [force.submit(files.digest, file) for file in found] if fingerprint else []
        number = _number(force.size, workers, scheduler) if resume is None else KEPT_SHARES
        tallest = TALLEST if resume or workers > 1 or scheduler else TOGETHER.bit_length() - 1
        shares = _shares(files.pieces(found, piece_rows), number, tallest)
        part = _gather(force, *shares, partial(work, layout=layout), progress)
        marks = [digest.result() for digest in digests]
    check_states(part.states, max_states)
    return finish(part, layout.roles, tuple(file.name for file in found), _mark(found, marks))


def _workplace(resume: str | Path) -> Path:
    """The folder for what is kept; whether anything can be written there is seen before any work."""
    folder = Path(resume).absolute()
    writing.check_free([folder / "kept"], force=True)
    return folder


def plan(found: Sequence[File], asked: Request, bins: Mapping[str, Any] | int, max_states: int) -> Layout:
    """Decide which column is what, and check that all files have them."""
    names = tuple(found[0].kinds)
    said = asked.roles | {"episode": False, "time": False}
    if said["reward"] is None and not any(plain(name) in SPELLINGS["reward"] for name in names):
        said["reward"] = False
    if said["next_state"] is False:
        raise InputError(f"Counting needs a column for the next state. {WRITE_IT}")
    try:
        roles = find_roles(names, said, "explicit", asked.smaller)
    except InputError as error:
        if said["next_state"] is None and "the next state" in str(error):
            raise InputError(f"{error} {WRITE_IT}") from None
        raise
    states = list(zip(roles.state, roles.next_state, strict=True))
    files.check_columns(found, [*states, *((name,) for name in roles.columns)])
    return Layout(roles, _choices(bins, roles), max_states)


def _choices(bins: Mapping[str, Any] | int, roles: Roles) -> dict[str, Binning]:
    if not isinstance(bins, Mapping) or OTHERS in bins:
        raise InputError("Counting cannot cut all columns alike; say bins for a column: {'age': 'edges:40,55'}.")
    names = (*roles.state, *roles.action)
    choices = {name: parse(name, way) for name, way in bins.items()}
    for name, choice in choices.items():
        if name not in names:
            there = f"{nearest(name, names)} There are: {', '.join(names)}."
            raise InputError(f"There is no state or action column {name!r} to bin.{there}")
        if choice.way not in ("labels", "edges"):
            raise InputError(
                f"Counting reads the rows once, so it cannot bin {name!r} by {choice.way}, which needs all of them. "
                f"Say where to cut: bins={{{name!r}: 'edges:1,2.5'}} (--bins {name}=edges:1,2.5)."
            )
    return choices


def _mark(found: Sequence[File], digests: Sequence[str]) -> str | None:
    if len(digests) <= 1:
        return next(iter(digests), None)
    lines = "".join(f"{digest}  {file.name}\n" for digest, file in zip(digests, found, strict=True))
    return hashlib.sha256(lines.encode()).hexdigest()


# ---- the tree ----


def _number(size: int, workers: int, scheduler: str | None) -> int:
    """How many shares there should be, at least, if there are so many pieces."""
    if scheduler is not None:
        return max(LEAST_SHARES, SHARES * size)
    return SHARES * size if workers > 1 else size


def _shares(pieces: Sequence[Piece], number: int, tallest: int = TALLEST) -> tuple[int, list[Sequence[Piece]]]:
    """Deal out neighboring pieces, 2 ** height to each: the tree over them is then a branch of the whole one."""
    height = 0
    while height < tallest and (2 << height) * number <= len(pieces):
        height += 1
    return height, [pieces[i : i + (1 << height)] for i in range(0, len(pieces), 1 << height)]


def _gather(
    force: places.Workforce,
    height: int,
    shares: Sequence[Sequence[Piece]],
    work: Callable[[Sequence[Piece]], Part],
    progress: places.Advance | None,
) -> Part:
    """Count all shares and merge them; the first of them that fails, in their order, ends it."""
    finished: SimpleQueue[tuple[int, Any]] = SimpleQueue()

    def begin(index: int) -> Any:
        future = force.submit(work, shares[index])
        future.add_done_callback(partial(_tell, finished, index))
        return future

    last = tree(range(len(shares)), begin, partial(force.submit, merge), height)
    _watch(finished, [sum(piece.rows for piece in share) for share in shares], progress)
    part: Part = last.result()
    return part


def _tell(finished: SimpleQueue[tuple[int, Any]], index: int, future: Any) -> None:
    finished.put((index, CancelledError() if future.cancelled() else future.exception()))


def _watch(finished: SimpleQueue[tuple[int, Any]], rows: Sequence[int], progress: places.Advance | None) -> None:
    """Wait for all shares, or for one that failed and all before it; then raise the first of the failures."""
    say: places.Advance = progress or (lambda done, total: None)
    waiting, done, total = set(range(len(rows))), 0, sum(rows)
    failures: dict[int, BaseException] = {}
    say(0, total)
    while waiting:
        index, error = finished.get()
        waiting.discard(index)
        done += rows[index]
        if error is not None:
            failures[index] = error
        if failures and not any(before in waiting for before in range(min(failures))):
            raise failures[min(failures)]
        say(done, total)
