"""Advising: the reader that every exported Python file carries with it. It needs the standard library alone."""

import datetime
import decimal
import math
import re
from typing import Any

BLANKS = "\t\n\x0b\x0c\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE)
FLAGS = dict.fromkeys(("true", "t", "yes", "y", "1"), True) | dict.fromkeys(("false", "f", "no", "n", "0"), False)
SILENT: dict[str, Any] = {"advice": None, "action": None, "set": [], "chance": None, "visits": None}
TOLD = ("state", *SILENT)


def advisor(rules: Any) -> Any:
    """Make the function that advises by these rules."""
    places = {(rule["decision"], *rule["cell"]): rule for rule in rules["rules"]}
    labels = [{label: code for code, label in enumerate(by.get("labels", ()))} for by in rules["codes"]]
    horizon = rules["horizon"]

    def advise(row: Any, step: Any = None) -> dict[str, Any]:
        """Advise on a row, a mapping from columns to values: what is advised, on what support, or why nothing is.

        Returns a dict with state, advice (in words), action, set, chance, visits, out_of_range (columns with a number
        that the data never reached) and reason (why there is no advice). A value that is None, NaN or blank is missing.
        ``step`` counts the decisions made before, for rules that plan for a number of them.
        """
        if horizon is not None and (not isinstance(step, int | float) or step != step // 1):
            raise ValueError(f"These rules plan for {horizon} decisions: step must say how many were made before.")
        when: Any = None if horizon is None else int(step)
        columns = {name for by in rules["codes"] for name in _columns(by)}
        gone = sorted(name for name in columns if name not in row)
        if gone:
            raise KeyError(f"The row has no column {gone[0]!r}; it has {', '.join(map(str, row))}.")
        values = {name: _value(row[name]) for name in columns}
        far = [name for name, (low, high) in rules["ranges"].items() if not low <= _number(values[name], low) <= high]
        cell = []
        for by, place in zip(rules["codes"], labels, strict=True):
            code, reason = _code(by, place, values)
            if reason:
                return {"state": None, **SILENT, "out_of_range": far, "reason": reason}
            cell.append(code)
        rule = places.get((when if horizon is None else 0, *cell))
        if rule is None:
            return {
                "state": None,
                **SILENT,
                "out_of_range": far,
                "reason": "this combination never occurred in the data",
            }
        late = horizon is not None and not 0 <= when < horizon
        rule = {"state": rule["state"], **SILENT} if late else places[when, *cell]
        silent = (
            f"the policy plans for {horizon} decisions" if late else "no action was tried often enough in this state"
        )
        reason = "" if rule["action"] is not None else silent
        return {**{name: rule[name] for name in TOLD}, "out_of_range": far, "reason": reason}

    return advise


def _columns(by: Any) -> Any:
    return by["columns"] if by["by"] == "center" else [by["column"]]


def _value(value: Any) -> Any:
    """A value of a row as a plain one; None where it is missing."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    value = value.item() if type(value).__module__ == "numpy" else value
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, str):
        return value.strip(BLANKS) or None
    if value is None or isinstance(value, int | float | datetime.date):
        return None if value != value else value
    raise TypeError(f"A row holds text, numbers, flags and dates; got {value!r}.")


def _number(value: Any, otherwise: float = math.nan) -> float:
    """A value as a number; NaN, or whatever is said, where it is none."""
    if isinstance(value, str):
        value = float(value) if NUMBER.fullmatch(value) else math.nan
    number = float(value) if isinstance(value, int | float) else math.nan
    return otherwise if number != number else number


def _code(by: Any, place: Any, values: Any) -> tuple[Any, str]:
    """The code of a row on one axis, and why there is none."""
    of = [values[name] for name in _columns(by)]
    for name, value in zip(_columns(by), of, strict=True):
        if value is None:
            return by["missing"], f"{name!r} is missing" if by["missing"] is None else ""
    if by["by"] == "label":
        code = place.get(_label(by["kind"], of[0]))
        return code, f"{by['column']!r} is {of[0]!r}, which never occurred in the data" if code is None else ""
    numbers = list(map(_number, of))
    for name, value, number in zip(_columns(by), of, numbers, strict=True):
        if number != number or (by["by"] == "center" and math.isinf(number)):
            return None, f"{name!r} is {value!r}, which is not a number to go by"
    if by["by"] == "cell":
        return sum(edge <= numbers[0] for edge in by["edges"]), ""
    far = [
        sum((x / s - c / s) ** 2 for x, c, s in zip(numbers, center, by["scale"], strict=True))
        for center in by["centers"]
    ]
    return far.index(min(far)), ""


def _label(kind: str, value: Any) -> Any:
    """A value as labels of some kind are written."""
    if kind == "text":
        return _text(value)
    if kind == "date":
        return _day(value) if isinstance(value, str | datetime.date) else None
    if isinstance(value, str):
        return FLAGS.get(value.lower()) if kind == "boolean" else _number(value)
    return value


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return _day(value) if isinstance(value, datetime.date) else str(value)


def _day(value: Any) -> Any:
    """A date, or text in the ISO form, as ISO text: the day where there is no time of day."""
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(f"{value}-01" if len(value) == 7 else value)
        except ValueError:
            return None
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    value = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
    return value.date().isoformat() if value.time() == datetime.time() else value.isoformat()
