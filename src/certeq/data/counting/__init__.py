"""Counting rows that are too many to hold: Parquet in, sparse counts out, here or on many machines.

Files are cut into pieces of some million rows. Each piece is read, coded and counted on its own (`pieces`), and
neighboring results are merged two by two (`parts`) until one is left. The shape of that tree depends on the files
alone, so the result is the same, bit for bit, on one thread, on many, and on a cluster (`running`). Memory depends on
how many different transitions there are, and not on how many rows.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certeq.data.counting.running import count
    from certeq.data.counting.tallied import Tallied

__all__ = ["Tallied", "count"]


def __getattr__(name: str) -> Any:
    """What this room offers: whoever learns from rows needs to know counts when he sees them, and not how to count."""
    if name == "count":
        from certeq.data.counting.running import count

        return count
    if name == "Tallied":
        from certeq.data.counting.tallied import Tallied

        return Tallied
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
