"""Options: what people may write after a verb, made from the fields that say what it means.

A verb asks for `Rules`, a `Request` and the like as whole values. `expand` gives it one option for each of their
fields, with the help that stands beside the field, and hands the values over. `Verb` lays the help out in panels.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from certeq.base.display import harmless as harmless
from certeq.base.errors import InputError
from certeq.base.fields import Told, check_all, default_of, said, told
from certeq.base.limits import most, way_out
from certeq.data.request import OTHERS

LONGEST = 3000  # characters of a message
OUTPUT, LARGE = "Output", "Large data"
CHOICES: dict[str, Callable[[], Iterable[str]]] = {}  # name of an option -> what there is to choose from
PANELS = ("Your columns", "States", "Planning", OUTPUT, LARGE)  # in this order; all else comes first


def _at_least(least: int) -> Callable[[str, Any], Any]:
    def check(name: str, value: Any) -> Any:
        from certeq.base.arrays import whole

        return None if value is None else whole(f"--{name.replace('_', '-')}", value, least)

    return check


FEWEST = 20  # models drawn: with fewer, the ends of a 90% interval are those of all of them


def _drawn(name: str, value: Any) -> Any:
    draws = _at_least(0)(name, value)
    if draws and draws < FEWEST:
        raise InputError(
            f"--{name} must be at least {FEWEST}, or 0 for none; got {draws}. A 90% interval leaves out one model in "
            f"{FEWEST} on either side."
        )
    return draws


MinChance = Annotated[
    float | None,
    typer.Option(
        help="Give an action alone only if it is the best with at least this chance; by default, the chance the policy "
        "was learned with.",
        metavar="NUMBER",
    ),
]


@dataclass(frozen=True)
class Output:
    """Where results go, and what is in the report."""

    out: Path = said(Path("certeq-out"), "Folder for the results.", panel=OUTPUT)
    report: bool = said(True, "Write report.html: what is advised, why, and how sure it is.", panel=OUTPUT)
    title: str | None = said(None, "Title of the report.", panel=OUTPUT, metavar="TEXT")
    author: str | None = said(None, "Author, shown at the top of the report.", panel=OUTPUT, metavar="TEXT")
    draws: int | None = said(
        None,
        "How many models to draw from the posterior, 20 or more: 400 by default (1,000 to compare), fewer if they are "
        "large; 0 for none.",
        panel=OUTPUT,
        check=_drawn,
    )
    checklist: bool = said(
        False,
        "Also write checklist.md: what reporting guidelines ask (DECIDE-AI, TRIPOD+AI and others), answered as far as "
        "this run can.",
        panel=OUTPUT,
    )
    suppress_below: int = said(
        0, "Hide smaller counts in the report. (The other files have them all.)", panel=OUTPUT, check=_at_least(0)
    )
    seed: int = said(0, "Seed of everything random.", panel=OUTPUT, check=_at_least(0))
    force: bool = said(False, "Overwrite existing results.", panel=OUTPUT)

    def __post_init__(self) -> None:
        check_all(self)
        if self.checklist and not self.report:
            raise InputError("--checklist is filled from what the report finds out: leave --no-report out.")


@dataclass(frozen=True)
class Work:
    """Where the work is done."""

    workers: int = said(1, "Local processes that share the work.", panel=LARGE, check=_at_least(1))
    scheduler: str | None = said(
        None,
        "A running Dask scheduler, tcp://host:port or tls://host:port, whose workers share it instead. They read "
        "Parquet themselves, by the same path. To compare, they are sent the rows as numbers of states and actions; "
        "otherwise no row is sent anywhere.",
        panel=LARGE,
        metavar="ADDRESS",
    )

    def __post_init__(self) -> None:
        from certeq.base import places

        check_all(self)
        places.check_one(self.workers, self.scheduler)

    @property
    def places(self) -> dict[str, Any]:
        """As functions that share work take it."""
        return {"workers": self.workers, "scheduler": self.scheduler}


class Without(NamedTuple):
    """Marks a parameter of a verb whose fields are not all asked for: ``Annotated[Rules, Without("horizon")]``."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, *names: str) -> Without:
        """Leave these fields out."""
        return cls(names)


class Verb(TyperCommand):
    """A command whose help is laid out in panels, with a catalogue after them where it has one."""

    catalogue: tuple[str, Callable[[], Mapping[str, str]]] | None = None

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options, which read plain words quickly."""
        return _quick(super().get_params(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, panel by panel; what there is to choose from is asked for only now."""
        panels: dict[str, list[Any]] = {name: [] for name in ("Arguments", "Options", *PANELS)}
        for each in self.get_params(ctx):
            if each.name in CHOICES and each.metavar is None:
                each.metavar = f"[{'|'.join(CHOICES[each.name]())}]"
            own = "Arguments" if each.param_type_name == "argument" else "Options"
            if (record := each.get_help_record(ctx)) is not None:
                panels[getattr(each, "rich_help_panel", None) or own].append(record)
        for name, records in panels.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        if self.catalogue is not None:
            title, lines = self.catalogue
            with formatter.section(title):
                formatter.write_dl(list(lines().items()))


class Verbs(TyperGroup):
    """All commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Options that come before any verb."""
        return _quick(super().get_params(ctx))


def _quick(options: list[Any]) -> list[Any]:
    """Let options take plain words as they are, and what nobody said: to read them, Typer would load Pydantic."""
    for each in options:
        if hasattr(each, "type_descriptor") and not isinstance(each.process_value, partial):
            each.process_value = partial(_processed, each, each.process_value)
    return options


def _processed(option: Any, usual: Callable[..., Any], context: Any, value: Any) -> Any:
    kind = option.type_descriptor.annotation
    word = kind in (str, int, Path) and isinstance(value, str) and value.isascii() and not option.multiple
    if kind is int:
        word = word and value.isdecimal() and len(value) < 10
    if word and (kind is not Path or os.access(value, os.R_OK) or not os.access(value, os.F_OK)):
        return kind(value) if option.callback is None else option.callback(context, option, kind(value))
    if option.required or not (value is None or (value is option.default and not option.multiple)):
        return usual(context, value)
    value = () if option.multiple else value
    return value if option.callback is None else option.callback(context, option, value)


def listing(title: str, lines: Callable[[], Mapping[str, str]]) -> type[Verb]:
    """A verb that ends its help with a catalogue, which is asked for only then."""
    return type("Listing", (Verb,), {"catalogue": (title, lines)})


def first_sentence(thing: Any) -> str:
    """What a docstring says first, in plain words."""
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ").replace("``", "")


def expand(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb an option for each field of the dataclasses that it asks for."""
    hints = get_type_hints(verb, include_extras=True)
    asked: dict[str, tuple[type, list[str]]] = {}
    shown: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(verb).parameters.items():
        cls, *marks = get_args(hints[name]) or (hints[name],)
        if not (isinstance(cls, type) and is_dataclass(cls)):
            shown.append(parameter.replace(annotation=hints[name]))
            continue
        left_out = {each for mark in marks if isinstance(mark, Without) for each in mark.names}
        options = [(each, field, about) for each, (field, about) in told(cls).items() if each not in left_out]
        asked[name], kinds = (cls, [each for each, _, _ in options]), get_type_hints(cls)
        shown += [_option(each, field, about, kinds[each]) for each, field, about in options]

    def run(**words: Any) -> None:
        for name, (cls, options) in asked.items():
            said = {each: words.pop(each) for each in options}
            words[name] = cls(**{each: _read(told(cls)[each][1], value) for each, value in said.items()})
        verb(**words)

    run.__name__, run.__doc__, run.__module__ = verb.__name__, verb.__doc__, verb.__module__
    changed: Any = run
    changed.__signature__ = inspect.Signature([each.replace(kind=each.KEYWORD_ONLY) for each in shown])
    run.__annotations__ = {each.name: each.annotation for each in shown}
    return run


def _option(name: str, field: Any, about: Told, hint: Any) -> inspect.Parameter:
    default, kind = default_of(field), KINDS[about.kind][0] if about.kind else hint
    long = f"--{(about.option or name).replace('_', '-')}"
    more: dict[str, Any] = {
        "help": about.help,
        "rich_help_panel": about.panel,
        "metavar": about.metavar or _metavar(about.kind, hint),
    }
    if about.choices is not None:
        CHOICES[name] = about.choices
    declared = [long] if kind is not bool or default is False else []
    annotation = Annotated[kind, typer.Option(*declared, **more)]  # type: ignore[valid-type]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None if about.kind else default, annotation=annotation
    )


def _metavar(kind: str, hint: Any) -> str | None:
    """What stands for the value in help; None where the choices do."""
    words = [kind, *(getattr(each, "__name__", "") for each in (hint, *get_args(hint)))]
    return next((METAVARS[word] for word in words if word in METAVARS), None)


def _read(about: Told, value: Any) -> Any:
    return KINDS[about.kind][1](value) if about.kind else value


def names(text: str | None) -> list[str] | None:
    """Column names, separated by commas."""
    return None if text is None else [part.strip() for part in text.split(",")]


def pair(text: str, option: str, form: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise InputError(f"{option} takes {form}; got {text!r}.")
    return name.strip(), value.strip()


def bins(said: list[str] | None) -> dict[str, Any] | int | None:
    """How columns become states: one number for all, COLUMN=HOW for some, or both."""
    words = said or []
    numbers = [int(word) for word in words if word.isdecimal() and len(word) < 20]
    form = "a number, or COLUMN=quantile:4, =edges:1,5, =kmeans:9 or =labels"
    single = dict(pair(text, "--bins", form) for text in words if not (text.isdecimal() and len(text) < 20))
    if len(numbers) > 1:
        raise InputError(f"--bins takes one number, for all columns; got {numbers[0]} and {numbers[1]}.")
    if not single:
        return numbers[0] if numbers else None
    return {OTHERS: numbers[0], **single} if numbers else single


def missing(said: list[str] | None) -> dict[str, str] | None:
    """What to do about missing values: a word for all columns, COLUMN=WORD for some, or both."""
    form = "error, category or last, or COLUMN=category"
    words = [text if "=" in text else f"{OTHERS}={text}" for text in said or ()]
    return dict(pair(text, "--missing", form) for text in words) or None


def orders(said: list[str] | None) -> dict[str, list[str] | None] | None:
    """Labels in their order, COLUMN=A,B,C for some columns."""
    form = "COLUMN=LABELS, the labels in their order, for example stage=mild,moderate,severe"
    return {name: names(text) for name, text in (pair(each, "--ordered", form) for each in said)} if said else None


def units(said: list[str] | None) -> dict[str, str] | None:
    """Units, COLUMN=UNIT for some columns."""
    return dict(pair(each, "--unit", "COLUMN=UNIT, for example sbp=mmHg") for each in said) if said else None


def settings(said: Iterable[str] | None) -> dict[str, Any]:
    """Settings NAME=VALUE: whole numbers, numbers, arrays (a file .npy), else words."""
    pairs = (pair(text, "--setting", "NAME=VALUE, for example strength=0.3") for text in said or ())
    return {name: value(text) for name, text in pairs}


KINDS: dict[str, tuple[Any, Callable[[Any], Any]]] = {  # kind of a field -> type of its option, and how it is read
    "column": (str | None, lambda name: name),
    "columns": (str | None, names),
    "bins": (list[str] | None, bins),
    "missing": (list[str] | None, missing),
    "orders": (list[str] | None, orders),
    "units": (list[str] | None, units),
    "settings": (list[str] | None, settings),
    "limits": (list[str] | None, lambda said: tuple(said or ())),
}
METAVARS = {"column": "COLUMN", "columns": "COLUMNS", "bins": "HOW", "orders": "COLUMN=LABELS", "units": "COLUMN=UNIT"}
METAVARS |= {"int": "NUMBER", "float": "NUMBER", "Path": "PATH"}


def value(text: str) -> Any:
    """Read a value as what it looks like."""
    if text.endswith(".npy"):
        return _array(Path(text))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def paragraph(error: Exception) -> str:
    """What an error says, in one paragraph that a terminal can show whatever the data hold."""
    said = "\n".join(line for line in harmless(error).split("\n") if line.strip())  # a file's name may hold blank ones
    return said if len(said) <= LONGEST else f"{said[:LONGEST]} ..."


def _array(path: Path) -> Any:
    """Read an array; as a view of the file first, since a header can claim to be larger than all the memory."""
    import numpy as np

    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if path.stat().st_size > most("policy_bytes"):
        raise InputError(f"{path} has more than {most('policy_bytes'):,} bytes; {way_out('policy_bytes')}.")
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # NumPy lets through whatever its parsers raise
        said = str(error)[:200] or type(error).__name__
        raise InputError(f"{path} is not an array that NumPy saved: {said}.") from None
    if not isinstance(found, np.ndarray):
        found.close()
        raise InputError(f"{path} holds several arrays; save one alone, with numpy.save.")
    if found.dtype.kind not in "biuf":
        raise InputError(f"{path} holds values of the type {found.dtype}; a setting is made of numbers.")
    return np.array(found)
