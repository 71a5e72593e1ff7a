"""SQL: one query that advises on every row of a table, in words that DuckDB, SQLite and PostgreSQL have in common.

Each column becomes a code by a CASE, and the codes are looked up in a list of rules. Three traps are stepped around.
Databases read decimals with different care, so that numbers which no short decimal gives exactly are written as
quotients of whole numbers. SQLite takes a quoted name that is no column for a text, so that all names are qualified,
and compares text with numbers without a word, so that what is no number is looked for. And NaN is larger than all
numbers where there is one.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

import certeq
from certeq.base.display import shorten
from certeq.base.errors import InputError
from certeq.report.exports.advising import BLANKS, FLAGS
from certeq.report.exports.written import ByCell, ByCenter, ByLabel, Coding, Rule, Written

EXACT = 1 << 53  # up to where floats tell whole numbers apart
OURS = "certeq_"  # how the columns that are added begin


def write(rules: Written, *, table: str = "rows", step: str | None = None) -> str:
    """The query; ``table`` holds the rows, and ``step`` is its column of decisions made before."""
    _check(rules, step)
    codes = [_code(by) for by in rules.codes if not isinstance(by, ByCenter)]
    columns = ("state", "advice", "action", "choices", "chance", "visits", *(f"c{i}" for i in range(len(codes))))
    on = [f"a.c{i} = {code}" for i, code in enumerate(codes)]
    listed = list(rules.rules)
    if rules.horizon is not None:
        last, when = rules.horizon - 1, f"r.{_name(step or '')}"
        columns = (*columns, "decision")
        on.append(f"a.decision = CASE WHEN {when} BETWEEN 0 AND {last} THEN {when} ELSE -1 END")
        listed += [_silent(rule) for rule in listed if rule.decision == 0]  # beyond the horizon
    chosen = ["r.*", *(f"a.{name} AS {OURS}{name}" for name in columns[:6])]
    if rules.ranges:
        chosen.append(f"{_beyond(rules.ranges)} AS {OURS}out_of_range")
    return (
        f"-- Advice by a policy of certeq {certeq.__version__}: columns {OURS}... are added to those of the table.\n"
        f"-- A row without advice has a state that is not known ({OURS}state is NULL) or in which nothing is advised.\n"
        f"WITH certeq_blanks(signs) AS (VALUES ({_text(BLANKS)})),\n"
        f"certeq_rules({', '.join(columns)}) AS (VALUES\n  {_listed(listed)}\n)\n"
        f"SELECT {', '.join(chosen)}\n"
        f"FROM {'.'.join(_name(part) for part in table.split('.'))} AS r\n"
        f"CROSS JOIN certeq_blanks AS b\nLEFT JOIN certeq_rules AS a ON {_both(on)};\n"
    )


def _both(conditions: list[str]) -> str:
    return "\n  AND ".join(conditions)


def _check(rules: Written, step: str | None) -> None:
    """Raise where SQL cannot say what the policy says."""
    for by in rules.codes:
        if isinstance(by, ByCenter):
            raise InputError(
                f"SQL has no short way to find the nearest of {len(by.centers)} centers of {', '.join(by.columns)}. "
                "Export --to python or --to json, or learn with columns that are cut one by one (--bins)."
            )
    names = [name for by in rules.codes for name in by.columns]
    twice = [name for name, often in Counter(name.lower() for name in names).items() if often > 1]
    if twice:
        raise InputError(
            f"Column {twice[0]!r} is there in several spellings of large and small letters, which SQL does not tell "
            "apart. Rename one of them in the data and learn again, or export --to python."
        )
    if rules.horizon is None and step is not None:
        raise InputError("This policy does not depend on how many decisions were made before: leave --step out.")
    if rules.horizon is not None and step is None:
        raise InputError(
            f"This policy plans for {rules.horizon} decisions: say which column of the table tells how many were made "
            "before, with --step COLUMN."
        )


def _listed(rules: Iterable[Rule]) -> str:
    """The rules as rows of VALUES."""
    lines = []
    for rule in rules:
        words = (rule.state, rule.advice, rule.action, " | ".join(rule.set) or None)
        chance = "NULL" if rule.chance is None else f"{rule.chance:.6e}"
        numbers = [chance, "NULL" if rule.visits is None else str(rule.visits), *map(str, rule.cell)]
        if rule.decision is not None:
            numbers.append(str(rule.decision))
        lines.append(f"({', '.join([*map(_text, words), *numbers])})")
    return ",\n  ".join(lines)


def _silent(rule: Rule) -> Rule:
    return Rule(
        cell=rule.cell,
        decision=-1,
        state=rule.state,
        words=[],
        advice=None,
        action=None,
        set=[],
        chance=None,
        visits=None,
    )


def _code(by: Coding) -> str:
    """The code of a row on one axis, as an expression: -1 where it has none."""
    assert not isinstance(by, ByCenter)
    value, missing = f"r.{_name(by.column)}", -1 if by.missing is None else by.missing
    blank = f"WHEN {value} IS NULL OR TRIM(CAST({value} AS VARCHAR), b.signs) = '' THEN {missing}"
    number = f"CAST({value} AS DOUBLE PRECISION)"
    numeric = f"{blank}\n    WHEN {_nan(number)} THEN {missing}\n    WHEN NOT {_is_number(value)} THEN -1"
    if isinstance(by, ByCell):
        cells = [f"WHEN {number} < {exact(edge)} THEN {code}" for code, edge in enumerate(by.edges)]
        return _case([numeric, *cells], len(cells))
    if by.kind in ("integer", "float") and all(abs(x) < EXACT or x != int(x) for x in map(float, by.labels)):
        return _case([numeric, *(f"WHEN {number} = {exact(float(x))} THEN {i}" for i, x in enumerate(by.labels))], -1)
    if by.kind in ("integer", "float"):  # numbers that a float cannot hold are compared as they are
        return _case([blank, *(f"WHEN {value} = {x} THEN {i}" for i, x in enumerate(by.labels))], -1)
    text = f"TRIM(CAST({value} AS VARCHAR), b.signs)"
    if by.kind == "boolean":
        text = f"LOWER({text})"
    forms = ((i, ", ".join(map(_text, _forms(by, label)))) for i, label in enumerate(by.labels))
    return _case([blank, *(f"WHEN {text} IN ({words}) THEN {i}" for i, words in forms)], -1)


def _case(parts: Iterable[str], otherwise: int) -> str:
    return "CASE\n    " + "\n    ".join(parts) + f"\n    ELSE {otherwise} END"


def _nan(number: str) -> str:
    """Whether a number is NaN: that alone is larger than 0 and remains so with the other sign."""
    return f"({number} > 0 AND -{number} > 0)"


def _is_number(value: str) -> str:
    """Whether a value is a number: text that is none is read as some number by SQLite, but does not equal it."""
    number = f"CAST({value} AS DOUBLE PRECISION)"
    return f"({value} = {number} OR ABS({number}) >= {EXACT})"


def _beyond(ranges: dict[str, tuple[float, float]]) -> str:
    """Names of the columns whose number is smaller or larger than any in the data."""
    parts = []
    for name, (low, high) in ranges.items():
        value = f"r.{_name(name)}"
        number = f"CAST({value} AS DOUBLE PRECISION)"
        outside = (
            f"({number} < {exact(low)} OR {number} > {exact(high)}) AND NOT {_nan(number)} AND {_is_number(value)}"
        )
        blank = f"TRIM(CAST({value} AS VARCHAR), b.signs) = ''"
        parts.append(f"CASE WHEN {blank} THEN '' WHEN {outside} THEN {_text(f', {name}')} ELSE '' END")
    return f"NULLIF(SUBSTR({' || '.join(parts)}, 3), '')"


def _forms(by: ByLabel, label: str | int | float | bool) -> list[str]:
    """All ways in which databases write a label as text."""
    if by.kind == "boolean":
        return [*(word for word, flag in FLAGS.items() if flag is label), "1.0" if label else "0.0"]
    if by.kind == "text":
        return [str(label)]
    moment = datetime.datetime.fromisoformat(str(label))
    day, clock = moment.date().isoformat(), moment.time().isoformat()
    clocks = {clock, f"{clock}.000000" if not moment.microsecond else clock.rstrip("0")}
    return [day] * (moment.time() == datetime.time()) + [
        f"{day}{sign}{time}" for sign in " T" for time in sorted(clocks)
    ]


def exact(number: float) -> str:
    """A number that every database reads as exactly this float."""
    if len(repr(number)) <= 16 and "e" not in repr(number) and Decimal(number) == Decimal(repr(number)):
        return f"{repr(number).removesuffix('.0')}e0"
    fraction, power = math.frexp(number)
    whole, power = int(fraction * EXACT), power - 53
    while whole % 2 == 0:
        whole, power = whole // 2, power + 1
    text = f"{whole}e0"
    while power:
        step = max(-52, min(52, power))
        text, power = f"{text} {'*' if step > 0 else '/'} {2 ** abs(step)}e0", power - step
    return f"({text} /* {number!r} */)"


def _text(text: str | None) -> str:
    """A text in quotes."""
    if text is None:
        return "NULL"
    if "\0" in text:
        raise InputError(f"SQL has no way to write the character NUL, which is in {shorten(text, 80)!r}.")
    return "'" + text.replace("'", "''") + "'"


def _name(name: str) -> str:
    """A name of a column or table in quotes."""
    if not name or "\0" in name:
        raise InputError(f"SQL cannot have a table or column called {shorten(name, 80)!r}. Export --to python instead.")
    return '"' + name.replace('"', '""') + '"'
