"""The door that every file comes in by: whatever a library raises over it, panics included, is told in words."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from certeq.base.errors import InputError
from certeq.base.limits import cramped
from certeq.base.manners import hushed

REMEDY = "It is damaged, cut off, or not what its name says. Write it again, or save it as CSV."


@contextmanager
def door(what: str, remedy: str = REMEDY) -> Iterator[None]:
    """Read something of somebody else's within: it is read, or refused with an error that names ``what`` it is.

    Parsers of damaged files raise whatever their insides raise, and those written in Rust raise panics, which are not
    even an `Exception`. What is not about the file (Ctrl-C, leaving) goes through.
    """
    try:
        with hushed():
            yield
    except (InputError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError:
        raise InputError(f"{what} needs more memory than there is. Split it, or keep fewer columns.") from None
    except BaseException as error:
        if short_of_threads(error) or cramped():
            raise
        raise _refusal(what, error, remedy) from None


def short_of_threads(error: BaseException) -> bool:
    """Whether the machine lets this process start no more threads or processes, which is no fault of any file."""
    if isinstance(error, OSError):
        return error.errno in (errno.EAGAIN, errno.EMFILE, errno.ENFILE)
    said = str(error)
    return "can't start new thread" in said or "ThreadPoolBuildError" in said or "code: 11, kind: WouldBlock" in said


def reason(error: BaseException) -> str:
    """What the machine says about a file, in words that help."""
    if isinstance(error, PermissionError):
        return "you are not allowed to read it (permission denied)"
    return (getattr(error, "strerror", None) or str(error)).rstrip(".")


def _refusal(what: str, error: BaseException, remedy: str) -> InputError:
    if isinstance(error, OSError) and error.errno is not None:  # the machine's complaint, not the parser's
        return InputError(f"{what} cannot be read: {reason(error)}.")
    said = (str(error)[:500].strip().splitlines() or [""])[0][:200].rstrip(". ")
    return InputError(f"{what} cannot be read: {said or type(error).__name__}. {remedy}")
