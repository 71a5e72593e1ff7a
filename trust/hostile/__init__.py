"""Files that mean harm, made by code, and how each must be refused.

A case makes its files in an empty folder and gives the words of a command. The command must end with exit code 2 and
one paragraph, within a fixed amount of memory and time, and write nothing. ``canary`` is a file that only executed code
could have made.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trust.hostile import arrays, counts, minari, options, policies, tables

Case = Callable[[Path], tuple[Any, ...]]
CASES: dict[str, Case] = tables.CASES | minari.CASES | policies.CASES | counts.CASES | arrays.CASES | options.CASES
MEMORY = 4 << 30  # bytes of address space for each command
CANARY = "canary"
HEAVY = {  # seconds to make or to refuse; the tests leave them to the campaign
    "table: Parquet: a list of 100,000,000 in 2 KB",
    "table: Parquet: a text of 600 MB",
    "table: Parquet: 1,000,000,000 blanks",
    "table: Parquet: 5,000,000 labels of 10,001 letters in a dictionary",
    "policy: 20,000,000 empty objects",
    "counts: a bomb of 800 MB",
    "counts: a bomb in the text",
}

__all__ = ["CANARY", "CASES", "HEAVY", "MEMORY", "Case", "made"]


def made(name: str, folder: Path) -> tuple[Any, ...]:
    """Make the files of a case; gives the words of its command."""
    return CASES[name](folder)


class Exploit:
    """What runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {CANARY}",)


def exploit() -> bytes:
    """A pickle that leaves the canary behind, if anybody loads it."""
    return pickle.dumps(Exploit())
