"""Connecting to a Dask cluster that already exists, and believing nothing about it: not that, nor when, it answers.

Nothing is started, and no port is opened for others. Whoever listens at the address may be anybody; what they send is
measured before it is read, and every answer has its time.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, TypeVar
from urllib.parse import urlsplit

import certeq
from certeq.base.errors import InputError

PATIENCE = 10.0  # seconds for a scheduler to answer
WAIT = 20.0  # seconds for the first worker to come, and without one before that is said
GREETING = 1 << 20  # bytes of what a scheduler says first; it says a few hundred
Reply = TypeVar("Reply")


@contextmanager
def cluster(scheduler: str) -> Iterator[Any]:
    """Connect to a scheduler whose workers are of this version: a Dask client."""
    try:
        import distributed
    except ImportError:
        raise InputError("--scheduler needs Dask: install certeq[dask].") from None
    dask: Any = distributed  # its functions are not typed
    for name in ("distributed", "tornado.application", "asyncio"):  # we tell ourselves who is gone, in words
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    _knock(scheduler)
    if scheduler.startswith("tls:"):
        _check_certificates(dask)
    client = _connected(dask, scheduler)
    left = Event()
    try:
        _check_workers(client, scheduler)
        Thread(target=_watch, args=(client, scheduler, left), daemon=True).start()
        yield client
    except dask.KilledWorker:
        raise InputError(
            f"Several workers of {scheduler} died over the same task, probably because they had too little memory. "
            "Their logs tell more."
        ) from None
    finally:
        left.set()
        with contextlib.suppress(InputError):
            _within(PATIENCE, lambda: client.close(timeout=PATIENCE / 2), "")


def _connected(dask: Any, scheduler: str, *, again: bool = True) -> Any:
    answers = f"What listens at {scheduler} does not answer as a Dask scheduler"
    try:
        return _within(2 * PATIENCE, lambda: dask.Client(scheduler, timeout=PATIENCE, set_as_default=False), answers)
    except InputError:
        raise
    except AssertionError:  # Dask expects one message in answer to its greeting, and may read two at once
        if again:
            return _connected(dask, scheduler, again=False)
        raise InputError(f"{answers}.") from None
    except Exception as error:  # whatever its protocol makes of what it was sent
        raise InputError(f"{answers}: {_first_line(error)}.") from None


def _within(seconds: float, ask: Callable[[], Reply], otherwise: str) -> Reply:
    """Ask somebody who may never answer; a thread waits for them, and may wait for ever."""
    answer: list[Any] = []

    def wait() -> None:
        try:
            answer.extend((ask(), None))
        except BaseException as error:
            answer.extend((None, error))

    waiting = Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(seconds)
    if len(answer) < 2:
        raise InputError(f"{otherwise}: there was no answer within {seconds:.0f} seconds.")
    if answer[1] is not None:
        raise answer[1]
    found: Reply = answer[0]
    return found


# ---- who is there ----


def _knock(scheduler: str) -> None:
    """Complain at once about an address that is none, where nobody listens, or where somebody else does."""
    try:
        address = urlsplit(scheduler if "://" in scheduler else f"tcp://{scheduler}")
        host, port = address.hostname, address.port
    except ValueError:
        host = port = None
    if host is None or port is None or address.scheme not in ("tcp", "tls"):
        raise InputError(f"--scheduler takes an address such as tcp://host:8786 or tls://host:8786; got {scheduler!r}.")
    try:
        with socket.create_connection((host, port), timeout=PATIENCE) as line:
            if address.scheme == "tcp":
                _hear(line, scheduler)
    except OSError as error:
        raise InputError(
            f"No Dask scheduler answers at {scheduler}: {error.strerror or error}. Start one with 'dask scheduler'."
        ) from None


def _hear(line: socket.socket, scheduler: str) -> None:
    """Hear the greeting of a scheduler, which speaks first: its length in eight bytes, and then so many bytes."""
    size = struct.unpack("<Q", _bytes(line, 8, scheduler))[0]
    if not 0 < size <= GREETING:
        raise _no_scheduler(scheduler)
    _bytes(line, size, scheduler)


def _bytes(line: socket.socket, number: int, scheduler: str) -> bytes:
    heard = b""
    while len(heard) < number:
        more = line.recv(number - len(heard))
        if not more:
            raise _no_scheduler(scheduler)
        heard += more
    return heard


def _no_scheduler(scheduler: str) -> InputError:
    return InputError(f"What listens at {scheduler} is not a Dask scheduler, or not one that certeq knows.")


def _check_certificates(dask: Any) -> None:
    """Complain about certificates that are not there; Dask itself would fail with a riddle."""
    try:
        there = dask.Security().get_connection_args("client").get("ssl_context") is not None
    except (OSError, ValueError) as error:
        raise InputError(f"The certificates for tls:// cannot be used: {error}.") from None
    if not there:
        raise InputError(
            "tls:// needs certificates. Name their files in the environment: DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
            "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY."
        )


# ---- its workers ----


def _check_workers(client: Any, scheduler: str) -> None:
    """See that there are workers, and that they are of this version: others could count differently."""
    try:
        client.wait_for_workers(1, timeout=WAIT)
    except TimeoutError:
        raise InputError(
            f"The scheduler at {scheduler} has no workers. Start some with 'dask worker {scheduler}', and try again."
        ) from None
    need = f"The workers of {scheduler} need certeq {certeq.__version__} on Python {_python()} as well"
    try:
        found = _within(WAIT, lambda: client.run(prepare), need)
    except InputError:
        raise
    except Exception as error:  # whatever the import raised over there
        raise InputError(f"{need}: {_first_line(error)}.") from None
    mine = prepare()
    for worker, versions in found.items():
        if versions != mine:
            other = ", ".join(f"{name} {versions.get(name)}" for name in mine if versions.get(name) != mine[name])
            raise InputError(f"{need}; the one at {worker} has {other}.")


def prepare() -> dict[str, str]:
    """On a worker: use one thread, unless whoever started it said otherwise; and say of which version it is."""
    import numpy
    import polars

    os.environ.setdefault("CERTEQ_THREADS", "1")
    return {
        "certeq": certeq.__version__,
        "Python": _python(),
        "NumPy": numpy.__version__,
        "polars": polars.__version__,
    }


def _python() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def _watch(client: Any, scheduler: str, left: Event) -> None:
    """Say it where all workers have gone: others may come and go on, but somebody should know what is waited for."""
    alone = 0.0
    while not left.wait(WAIT / 4):
        with contextlib.suppress(Exception):  # a client that is being closed
            alone = 0.0 if client.scheduler_info()["workers"] else alone + WAIT / 4
            if alone == WAIT:
                said = f"All workers of {scheduler} are gone; waiting for others to come. Ctrl-C ends that."
                logging.getLogger("certeq").warning(said)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
