"""Check: look at a table before planning. What was read as what, what it shows, what would be refused, and what not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NamedTuple

from certeq.base.arrays import Rng
from certeq.base.display import number, several, shorten, told
from certeq.base.errors import InputError
from certeq.base.fields import takes
from certeq.data.batch import Batch
from certeq.data.look import Look, look
from certeq.data.reading import open_roles, read
from certeq.data.reading.frames import Table
from certeq.data.reading.roles import Roles
from certeq.data.recipes.columns import label_text
from certeq.data.request import OTHERS, Request

LISTED = 6  # labels of a column that are shown
ROUNDS = 20  # ways out that are tried, one after another


class ColumnSeen(NamedTuple):
    """A column as it was found."""

    name: str
    role: str  # state, action, ...; "not used"
    kind: str
    different: int
    missing: int
    span: str  # from the smallest to the largest, or some of its labels


@dataclass(frozen=True)
class Checked:
    """What `check` found."""

    rows: int
    columns: tuple[ColumnSeen, ...]
    refused: tuple[str, ...]  # what would be refused as it was said, one after another
    request: Request | None  # with which the table can be read; None where no way out is known
    batch: Batch | None  # what is then read
    look: Look | None  # and what that shows

    @property
    def ready(self) -> bool:
        """Whether the table can be read as it was said."""
        return not self.refused

    def command(self, data: str = "DATA", verb: str = "learn") -> str | None:
        """The command that works; None where none is known."""
        return (
            None if self.request is None else " ".join(["certeq", verb, *filter(None, [data]), *self.request.options()])
        )

    def alerts(self) -> list[str]:
        """What deserves a second look, what was decided unasked first."""
        if self.batch is None or self.look is None:
            return []
        return [*self.batch.decisions, *self.look.alerts()]

    def lines(self) -> list[str]:
        """All else in words."""
        if self.batch is None or self.look is None:
            return [f"{several(self.rows, 'row')} in {several(len(self.columns), 'column')}."]
        out = [f"Left out: {count:,} × {why}." for why, count in self.batch.dropped.items()]
        made = f"{several(self.rows, 'row')} make {several(len(self.batch), 'transition')}."
        return [*filter(None, [self.batch.goal]), made, *out, *self.batch.notes, *self.look.lines()]

    def _repr_html_(self) -> str:
        way = self.command()
        tail = [] if self.ready or way is None else [f"This works: {way}"]
        return told([*(f"Refused: {why}" for why in self.refused), *self.alerts(), *self.lines(), *tail])


@takes(Request)
def check(
    source: Any, request: Request | None = None, *, limit_bytes: int | None = None, rng: Rng = 0, **said: Any
) -> Checked:
    """Look at logged decisions before learning from them.

    Takes what `certeq.read` takes. Where that would refuse the table, the reason is kept, the way out that it names is
    tried, and so on until the table can be read; ``Checked.command`` writes down what that took. Ways out are the
    cautious ones, such as a cell of its own for missing values, and each of them deserves a thought.
    """
    asked = Request.of(request, **said)
    refused: list[str] = []
    for _ in range(ROUNDS):
        try:
            batch = read(source, asked, limit_bytes=limit_bytes, rng=rng)
        except InputError as error:
            refused.append(str(error))
            after = _changed(asked, error.remedy)
            if after == asked:
                return _only_columns(source, asked, refused, limit_bytes)
            asked = after
            continue
        table, roles = open_roles(source, asked, limit_bytes)
        states = None if batch.recipe is None else batch.recipe.column_names
        return Checked(table.n_rows, tuple(_seen(table, roles, states)), tuple(refused), asked, batch, look(batch))
    return _only_columns(source, asked, refused, limit_bytes)


def _only_columns(source: Any, asked: Request, refused: list[str], limit_bytes: int | None) -> Checked:
    """What can be said of a table that cannot be read; nothing where it cannot even be opened."""
    from certeq.data.reading import columns

    try:
        table, roles = open_roles(source, asked, limit_bytes)
    except InputError:
        table, roles = columns(source, limit_bytes=limit_bytes), None
    return Checked(table.n_rows, tuple(_seen(table, roles)), tuple(refused), None, None, None)


def _changed(request: Request, remedy: dict[str, Any]) -> Request:
    """A request with the way out of an error; what is said column by column is added to what was."""
    changes = {}
    for name, value in remedy.items():
        if name in ("bins", "missing"):
            default, single = request.by_column(name)
            both = single | value
            value = both if default is None else {OTHERS: default} | both
        changes[name] = value
    return replace(request, **changes)


def _seen(table: Table, roles: Roles | None, states: Sequence[str] | None = None) -> Iterator[ColumnSeen]:
    for name in table:
        column = table[name]
        different = column.distinct.labels
        span = ""
        if different and column.kind in ("integer", "float"):
            ends = (float(end) for end in (different[0], different[-1]))
            span = " to ".join(number(end) if isfinite(end) else f"{end:g}" for end in ends)
        elif different and column.kind == "date":
            span = f"{different[0]} to {different[-1]}"
        elif different:
            more = f" and {len(different) - LISTED:,} more" if len(different) > LISTED else ""
            span = shorten(", ".join(map(label_text, different[:LISTED])), 60 - len(more)) + more
        role = "" if roles is None else roles.role_of(name)
        role = "not used" if role == "state" and states is not None and name not in states else role
        yield ColumnSeen(name, role, column.kind, len(different), int(column.missing.sum()), span)
