"""The one exception that means: the input is at fault, and here is where."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any


class InputError(ValueError):
    """Bad input, told to the person who gave it: which place, which value, what was expected, what to try.

    ``remedy`` is the first thing to try, where it is something to say: fields of a request and their values.
    """

    def __init__(self, *said: object, remedy: Mapping[str, Any] | None = None) -> None:
        """Say what is wrong."""
        super().__init__(*said)
        self.remedy = dict(remedy or {})


def nearest(name: str, names: Iterable[str]) -> str:
    """Say which of ``names`` was probably meant: `` Did you mean 'x'?`` or an empty string."""
    close = difflib.get_close_matches(str(name), [str(n) for n in names], n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


def no_number(where: str) -> InputError:
    """What to say when something that is no number was about to be told or written: nothing is, then."""
    return InputError(
        f"{where}: a result is infinite or not a number, so nothing was written. Values that are too large, too small "
        "or too far apart cause that: look at the rewards, and at a discount close to 1."
    )


def unknown(kind: str, name: object, names: Iterable[str]) -> InputError:
    """Build the error for a name that is in no catalogue, with the nearest name and the whole list."""
    known = sorted(names)
    return InputError(f"There is no {kind} named {name!r}.{nearest(str(name), known)} There are: {', '.join(known)}.")
