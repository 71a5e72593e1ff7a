"""Make docs/reference/cli.md from the command line's own definitions, catalogues.md from the catalogues, and a schema.

``python docs/make_reference.py`` writes them; tests/docs/test_generated.py says when they are out of date.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from typer.models import ArgumentInfo, OptionInfo

from certeq import REGULARIZERS
from certeq.cli import app
from certeq.experiments.figures import FIGURES, STUDIES, figure
from certeq.model import unvisited
from certeq.regularizers import DEFAULT
from certeq.report.exports import written
from certeq.worlds import ENVIRONMENTS

HERE = Path(__file__).parent / "reference"
SIGN = "<!-- made by docs/make_reference.py; edit the source instead -->"
PRESET = {"planning_discount", "strength", "magnitude"}  # a global method needs one of these said


def made() -> dict[Path, str]:
    """Both pages, and the schema of exported rules."""
    schema = json.dumps(written.schema(), indent=2) + "\n"
    return {HERE / "cli.md": _cli(), HERE / "catalogues.md": _catalogues(), HERE / "certeq-rules.schema.json": schema}


def _cli() -> str:
    parts = [
        SIGN,
        "# Command line",
        "One verb per job. In a clone of the repository write `uv run certeq`; where the package is installed, "
        "`certeq`. `certeq VERB --help` says what stands here, `certeq --version` which version it is.",
        "Exit codes: 0 done, 2 the input or an option is at fault (one paragraph says which and what to do), 1 "
        "something could not be finished, 130 stopped with Ctrl-C.",
    ]
    for command in app.registered_commands:
        parts += _verb(command.callback)
    return "\n\n".join(parts) + "\n"


def _verb(verb: Callable[..., None] | None) -> Iterator[str]:
    assert verb is not None
    plain = inspect.unwrap(verb)
    hints = get_type_hints(plain, include_extras=True)
    told = [(name, hints[name], p.default) for name, p in inspect.signature(plain).parameters.items()]
    arguments = [each for each in told if isinstance(_info(each[1]), ArgumentInfo)]
    options = [each for each in told if isinstance(_info(each[1]), OptionInfo)]
    words = [_argument(name, hint, default) for name, hint, default in arguments]
    yield f"## certeq {plain.__name__}"
    yield _plain(inspect.getdoc(plain) or "")
    yield f"```text\n{' '.join(['certeq', plain.__name__, *words, '[OPTIONS]'])}\n```"
    if arguments:
        yield _table(("argument", ""), ((f"`{_argument(*each)}`", _info(each[1]).help) for each in arguments))
    rows = ((_option(name, _info(hint), hint), _info(hint).help, _value(default)) for name, hint, default in options)
    yield _table(("option", "", "by default"), rows)


def _info(hint: Any) -> Any:
    return next((part for part in getattr(hint, "__metadata__", ()) if hasattr(part, "param_decls")), None)


def _argument(name: str, hint: Any, default: Any) -> str:
    word = _info(hint).metavar or name.upper()
    several = "list" in str(hint)
    word += "..." if several else ""
    return word if default is inspect.Parameter.empty else f"[{word}]"


def _option(name: str, info: OptionInfo, hint: Any) -> str:
    long = "--" + name.replace("_", "-")
    spelled = [word for word in (info.default, *(info.param_decls or ())) if str(word).startswith("-")]
    if hint.__args__[0] is bool:
        return ", ".join(f"`{word}`" for word in spelled or (long, f"--no-{long[2:]}"))
    again = "" if "list" not in str(hint) else " (may be repeated)"
    kind = info.metavar or _kind(hint)
    return ", ".join(f"`{word} {kind}`" for word in spelled or [long]) + again


def _kind(hint: Any) -> str:
    said = str(hint.__args__[0])
    kinds = {"int": "NUMBER", "float": "NUMBER", "Path": "PATH"}
    return next((word for kind, word in kinds.items() if kind in said), "TEXT")


def _value(default: Any) -> str:
    if default is None or default is False or default == "":
        return ""
    return "yes" if default is True else f"`{default}`"


def _catalogues() -> str:
    parts = [
        SIGN,
        "# Catalogues",
        "What can be chosen by name. Each table is made from the catalogue itself.",
        "## Regularizers",
        "A regularizer says what `w` and `T_target` are in `T_plan = (1 - w) * T_data + w * T_target`. Choose one with "
        "`--regularizer NAME --setting KEY=VALUE`, or `regularizer=\"NAME\", key=value` in Python. "
        f"The default is `{DEFAULT}`. [The one line](../explanation/one-line.md) tells what they have in common, and "
        "[how to choose](../how-to/choose-a-regularizer.md) how to compare them on your data.",
        _table(("name", "what it does", "settings"), map(_regularizer, REGULARIZERS)),
        "Where several of `strength`, `planning_discount` and `magnitude` are listed, one of them must be given. "
        "A `strength` of a prior is the weight of a pair with the average number of visits.",
        "## Conventions for unvisited pairs",
        "What stands for a pair with fewer than `min_visits` visits: `--unvisited NAME`, `unvisited=\"NAME\"`. "
        "[Decision 1](../decisions/0001-unvisited-pairs.md) says who uses which, and why.",
        _table(("name", "what stands for the row"), _bullets(unvisited.__doc__, unvisited.CONVENTIONS)),
        "## Environments",
        "Known worlds: `certeq.environment(\"NAME\", key=value)`, `certeq simulate NAME --setting KEY=VALUE`.",
        _table(("name", "what it is", "settings"), map(_environment, ENVIRONMENTS)),
        "## Figures and studies",
        "`certeq reproduce NAME` computes one again and judges its claim; `all` means the figures, studies go by name.",
        _table(("name", "title", "the claim, in our words"), map(_figure, (*FIGURES, *STUDIES))),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _regularizer(name: str) -> tuple[str, str, str]:
    function = REGULARIZERS[name]
    settings = {n: p for n, p in list(inspect.signature(function).parameters.items())[1:] if n != "discount"}
    return f"`{name}`", _plain(_first(function)), _settings(settings)


def _environment(name: str) -> tuple[str, str, str]:
    build = ENVIRONMENTS[name]
    module = inspect.getmodule(build)
    assert module is not None
    return f"`{name}`", _plain(_first(module)), _settings(inspect.signature(build).parameters)


def _figure(name: str) -> tuple[str, str, str]:
    module = figure(name)
    return f"`{name}`", _plain(module.TITLE), _plain(module.CLAIM)


def _settings(parameters: Mapping[str, inspect.Parameter]) -> str:
    told = []
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        said = "" if name in PRESET or parameter.default in (None, parameter.empty) else f"={_short(parameter.default)}"
        told.append(f"`{name}{said}`")
    return ", ".join(told)


def _short(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _first(thing: Any) -> str:
    """First paragraph of a docstring."""
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")


def _bullets(doc: str | None, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The lines ``- ``name``: text`` of a docstring, in the order of the names."""
    text = inspect.cleandoc(doc or "")
    found = {m[1]: m[2] for m in re.finditer(r"^- ``(\w+)``: (.*?)(?=\n- |\n\n|\Z)", text, re.M | re.S)}
    for name in names:
        if name not in found:
            raise SystemExit(f"The docstring that lists {name!r} has no line for it.")
        yield f"`{name}`", _plain(found[name].replace("\n", " ").rstrip(";."))


def _plain(text: str) -> str:
    """A docstring's text as Markdown."""
    return re.sub(r" +", " ", re.sub(r"``(.+?)``", r"`\1`", text)).replace("ε*", "ε\\*")


def _table(header: tuple[str, ...], rows: Iterable[Iterable[Any]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(
        "| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", str(cell or "")) for cell in line) + " |" for line in lines
    )


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
