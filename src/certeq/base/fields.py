"""Fields that explain themselves: what a user may say, declared once with its default, its check and its help.

A frozen dataclass of such fields (`Rules`, `Request`) is checked at birth. The functions that take its fields as
keywords, the options of the command line, the estimator's parameters and the reference page are all made from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, field, fields
from typing import Any, NamedTuple, TypeVar

from certeq.base.errors import unknown

Made = TypeVar("Made", bound=Callable[..., Any])
KEY = "certeq"  # where a dataclass field keeps what is said about it


class Told(NamedTuple):
    """What is said about a field."""

    help: str  # one line, as --help shows it
    panel: str = ""  # the heading that it stands under there
    choices: Callable[[], Iterable[str]] | None = None  # names to choose from, asked for when they are needed
    what: str = ""  # what such a name names, for messages
    check: Callable[[str, Any], Any] | None = None  # (name, value) -> the value as it is kept, or an InputError
    kind: str = ""  # how it is written on the command line, where that is not the field's own type
    option: str = ""  # name on the command line, where it is not the field's own
    metavar: str | None = None


def said(default: Any, help: str, **more: Any) -> Any:
    """Declare a field."""
    told = {KEY: Told(help, **more)}
    if isinstance(default, Mapping):
        return field(default_factory=lambda: dict(default), metadata=told)
    return field(default=default, metadata=told)


def told(cls: type) -> dict[str, tuple[Field[Any], Told]]:
    """The fields of a dataclass that explain themselves, by name."""
    return {each.name: (each, each.metadata[KEY]) for each in fields(cls) if KEY in each.metadata}


def default_of(each: Field[Any]) -> Any:
    """What a field is when nothing was said; a mapping is made anew."""
    return each.default if not callable(each.default_factory) else each.default_factory()


def check_all(value: Any) -> None:
    """Check every field of a newborn dataclass, and keep what the checks return."""
    for name, (_, about) in told(type(value)).items():
        now = getattr(value, name)
        if about.choices is not None and now not in (known := tuple(about.choices())):
            raise unknown(about.what or name, now, known)
        if about.check is not None:
            object.__setattr__(value, name, about.check(name, now))


def takes(*classes: type, but: Iterable[str] = ()) -> Callable[[Made], Made]:
    """Let a function's signature show the fields that it takes as keywords, in place of its ``**said``."""
    hidden = set(but)

    def show(function: Made) -> Made:
        own = list(inspect.signature(function).parameters.values())
        rest = [each for each in own if each.kind is not each.VAR_KEYWORD]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default_of(each), annotation=each.type)
            for cls in classes
            for name, (each, _) in told(cls).items()
            if name not in hidden
        ]
        left = [each for each in own if each.kind is each.VAR_KEYWORD] if function.__name__ != "__init__" else []
        changed: Any = function
        changed.__signature__ = inspect.Signature([*rest, *more, *left])
        return function

    return show
