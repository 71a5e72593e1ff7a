"""Make the pages docs/reference/api-*.md from signatures, docstrings and the help and comments beside fields.

``python docs/make_api.py`` writes them; tests/docs/test_generated.py says when they are out of date. A new public name
needs a place in ``PAGES``.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import certeq
from certeq.base import fields

HERE = Path(__file__).parent / "reference"
WIDE = 100  # characters of a signature that stays on one line
SECTION = re.compile(r"^(Parameters|Returns|Raises|Examples)\n-+\n", re.M)


class Page(NamedTuple):
    """A page: what it is about, the public names on it, and what else a reader of those will meet."""

    title: str
    about: str
    public: tuple[str, ...]
    further: tuple[str, ...] = ()


PAGES = {
    "rows": Page(
        "Rows and counts",
        "From a table of logged decisions to a `Batch`, and from a batch to counts.",
        ("read", "check", "Checked", "Batch", "tally", "Counts", "InputError"),
        ("certeq.data.request.Request", "certeq.data.look.Look", "certeq.data.counting.count",
         "certeq.data.counting.Tallied",
         "certeq.data.reading.known_rewards", "certeq.data.reading.rollout", "certeq.data.recipes.fit",
         "certeq.data.recipes.Recipe"),
    ),
    "learning": Page(
        "Learning and policies",
        "The main job in one call, and what it returns.",
        ("learn", "Learned", "Policy", "export", "CertaintyEquivalence"),
        ("certeq.learning.rules.Rules", "certeq.learning.case.Case", "certeq.learning.case.Data",
         "certeq.learning.learned.Summary", "certeq.learning.policy.Advice", "certeq.learning.policy.AdviceLine",
         "certeq.model.rewards.Rewards"),
    ),
    "models": Page(
        "Models and plans",
        "The one line, `T_plan = (1 - w) * T_data + w * T_target`, and planning in what comes out.",
        ("shrink", "Shrinkage", "REGULARIZERS", "plan", "solve", "solve_average", "solve_finite", "Plan",
         "evaluate", "loss", "sweep", "Sweep", "weights",
         "Rows", "SparseRows", "Mixture", "MDP"),
        ("certeq.learning.equivalence.estimate", "certeq.learning.equivalence.Model", "certeq.planners.FinitePlan",
         "certeq.questions.exact.value_bound", "certeq.model.evidence.Evidence", "certeq.model.moments.moments",
         "certeq.model.moments.Moments"),
    ),
    "questions": Page(
        "Questions about a policy",
        "How sure is it, what does it rest on, what would change it.",
        ("examine", "Findings", "audit", "path", "frontier", "Frontier", "fragility", "compare_conventions",
         "transition_mse", "collect_next"),
        ("certeq.questions.compare.compare", "certeq.questions.comparison.Comparison",
         "certeq.questions.posterior.posterior", "certeq.questions.credible.Posterior",
         "certeq.questions.off_policy.off_policy", "certeq.questions.off_policy.OffPolicy",
         "certeq.questions.audit.Audit", "certeq.questions.path.RegularizationPath",
         "certeq.questions.fragility.Fragility", "certeq.questions.conventions.Conventions",
         "certeq.questions.collect.Ranking", "certeq.questions.few_rules.few_rules",
         "certeq.questions.few_rules.FewRules"),
    ),
    "worlds": Page(
        "Worlds and sampling",
        "Known decision problems, rows drawn from them, and the model-free appendix.",
        ("ENVIRONMENTS", "environment", "sampling", "q_learning", "QLearning", "Schedule"),
        ("certeq.worlds.from_table",),
    ),
    "pictures": Page("Pictures", "Matplotlib figures for notebooks and papers.", ("pictures",)),
}  # fmt: skip
CATALOGUES = {"REGULARIZERS": "regularizers", "ENVIRONMENTS": "environments"}  # name -> heading in catalogues.md


def made() -> dict[Path, str]:
    """All pages."""
    placed = [name for page in PAGES.values() for name in page.public]
    missing = sorted(set(certeq.__all__) - set(placed))
    if missing or len(placed) > len(certeq.__all__):
        raise SystemExit(f"Give each public name one place in PAGES of {__file__}: {missing or placed}")
    links = _links()
    return {HERE / f"api-{name}.md": _page(page, links) for name, page in PAGES.items()}


def _links() -> dict[str, str]:
    """Where each documented name is told about: written in full, and as `certeq` knows it."""
    links = {}
    for page, told in PAGES.items():
        for name in (*told.public, *told.further):
            thing, short = _find(name), name.rpartition(".")[2]
            heading = f"class {short}" if inspect.isclass(thing) else short
            place = f"api-{page}.md#{_slug(heading)}"
            links[name] = links[short if name in told.further else f"certeq.{name}"] = place
            links.setdefault(f"{getattr(thing, '__module__', '')}.{short}", place)
            if isinstance(thing, ModuleType):
                links |= {f"certeq.{name}.{each}": f"api-{page}.md#{_slug(f'{name}.{each}')}" for each in _names(thing)}
    return links


def _slug(heading: str) -> str:
    """The anchor of a heading, as Markdown makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _find(name: str) -> Any:
    home, _, short = name.rpartition(".")
    return getattr(importlib.import_module(home) if home else certeq, short)


def _page(page: Page, links: dict[str, str]) -> str:
    parts = [
        "<!-- made by docs/make_api.py; edit the docstrings instead -->",
        f"# {page.title}",
        page.about,
        *(part for name in page.public for part in _told(name, f"certeq.{name}", links)),
    ]
    if page.further:
        parts.append("## Further names")
        parts.append("These are not in `certeq` itself, but in the rooms named here.")
        parts += [part for name in page.further for part in _told(name, name, links, level=3)]
    return "\n\n".join(parts) + "\n"


def _told(name: str, full: str, links: dict[str, str], level: int = 2) -> Iterator[str]:
    """Everything about one name."""
    thing, short = _find(name), name.rpartition(".")[2]
    mark = "#" * level
    if inspect.isclass(thing):
        yield f"{mark} class {short}"
        yield from _class(thing, short, full, links, level)
    elif isinstance(thing, ModuleType):
        yield f"{mark} {short}"
        yield _markdown(thing.__doc__ or "", links)
        for each in _names(thing):
            yield f"{mark}# {short}.{each}"
            yield from _function(getattr(thing, each), f"{full}.{each}", links)
    elif callable(thing):
        yield f"{mark} {short}"
        yield from _function(thing, full, links)
    else:
        yield f"{mark} {short}"
        table = f"catalogues.md#{CATALOGUES[name]}"
        yield f"`{full}`: the catalogue, a dict from names to functions. See [the table]({table})."


def _names(module: ModuleType) -> list[str]:
    """Public functions of a module, in the order in which they are written or listed."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]


def _function(function: Any, full: str, links: dict[str, str]) -> Iterator[str]:
    yield f"```py\n{_signature(function, full)}\n```"
    yield _markdown(function.__doc__ or "", links)


def _class(kind: type, short: str, full: str, links: dict[str, str], level: int) -> Iterator[str]:
    listed = list(_fields(kind))
    if listed:
        yield f"`{full}`"
        yield _markdown(kind.__doc__ or "", links)
        yield _table(("field", "type", ""), ((f"`{n}`", f"`{t}`", _inline(c, links)) for n, t, c in listed))
    elif issubclass(kind, Exception):
        yield f"`{full}`"
        yield _markdown(kind.__doc__ or "", links)
    else:
        yield f"```py\n{_signature(kind, full)}\n```"
        yield _markdown(kind.__doc__ or "", links)
    own = [(name, value) for each in _family(kind) for name, value in vars(each).items() if not name.startswith("_")]
    properties = [(name, value) for name, value in own if isinstance(value, property) or hasattr(value, "attrname")]
    if properties:
        rows = ((f"`{name}`", _inline(_first(value), links)) for name, value in properties)
        yield _table(("property", ""), rows)
    for name, value in own:
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(function):
            yield f"{'#' * level}# {short}.{name}"
            yield f"```py\n{_signature(getattr(kind, name), f'{short}.{name}', bound=True)}\n```"
            yield _markdown(function.__doc__ or "", links)


def _fields(kind: type) -> Iterator[tuple[str, str, str]]:
    """Fields of a dataclass or a named tuple: name, type, and the help or the comment beside it."""
    if not hasattr(kind, "__dataclass_fields__") and not hasattr(kind, "_fields"):
        return
    for each in _family(kind):
        source = textwrap.dedent(inspect.getsource(each))
        lines = source.splitlines()
        [tree] = ast.parse(source).body
        assert isinstance(tree, ast.ClassDef)
        for node in tree.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                _, _, comment = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")
                about = fields.told(kind).get(node.target.id) if is_dataclass(kind) else None
                if not node.target.id.startswith("_"):
                    yield node.target.id, ast.unparse(node.annotation), comment if about is None else _help(*about)


def _help(each: Any, about: fields.Told) -> str:
    """What is said about a field, with what there is to choose from and what it is when nothing is said."""
    names = "" if about.choices is None else f" One of {', '.join(f'`{name}`' for name in about.choices())}."
    usual = fields.default_of(each)
    return f"{about.help}{names}" + (f" Unless said: `{usual}`." if usual not in (None, {}) else "")


def _family(kind: type) -> list[type]:
    """A class and those of ours that it builds on, the oldest first."""
    return [each for each in reversed(kind.__mro__) if each.__module__.startswith("certeq")]


def _first(value: Any) -> str:
    """First paragraph of a docstring."""
    return inspect.cleandoc(value.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _signature(function: Any, full: str, *, bound: bool = False) -> str:
    """A signature as it stands in the source, on one line or one line for each parameter."""
    found = inspect.signature(function)
    parts, star = [], False
    for parameter in found.parameters.values():
        if bound and parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        sign = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        star = star or sign == "*"
        text = sign + parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {_annotation(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            equals = " = " if ":" in text else "="
            text += equals + _default(parameter.default)
        parts.append(text)
    gives = "" if found.return_annotation is found.empty else f" -> {_annotation(found.return_annotation)}"
    if inspect.isclass(function):
        gives = ""
    one = f"{full}({', '.join(parts)}){gives}"
    return one if len(one) <= WIDE else f"{full}(\n    " + ",\n    ".join(parts) + f",\n){gives}"


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _default(value: Any) -> str:
    if callable(value):
        return "..."
    return repr(value)


def _markdown(doc: str, links: dict[str, str]) -> str:
    """A docstring as Markdown."""
    text = inspect.cleandoc(doc)
    first, *rest = SECTION.split(text)
    parts = [_prose(first, links)]
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        entries, after = _entries(body)
        if heading == "Examples":
            parts.append(_prose(body, links))
            continue
        parts.append(f"**{heading}**")
        parts.append("\n".join(f"- {_names_of(names)}: {_inline(what, links)}" for names, what in entries))
        if after:
            parts.append(_prose(after, links))
    return "\n\n".join(part for part in parts if part)


def _names_of(names: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in names.split(","))


def _entries(body: str) -> tuple[list[tuple[str, str]], str]:
    """Entries of a section, name and description; and what stands after them."""
    lines, entries = body.splitlines(), []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if lines[at].startswith((" ", ">>>")) or not following.startswith(" "):
            break
        name, what = lines[at], []
        at += 1
        while at < len(lines) and (lines[at].startswith(" ") or not lines[at].strip()):
            what.append(lines[at].strip())
            at += 1
        entries.append((name, " ".join(part for part in what if part)))
    return entries, "\n".join(lines[at:]).strip()


def _prose(text: str, links: dict[str, str]) -> str:
    """Paragraphs, with doctests as code."""
    parts = []
    for block in text.strip().split("\n\n"):
        if block.startswith(">>>"):
            parts.append(f"```pycon\n{block}\n```")
        elif block.startswith("    "):
            parts.append(block)
        else:
            parts.append(_inline(block, links))
    return "\n\n".join(part for part in parts if part)


def _inline(text: str, links: dict[str, str]) -> str:
    """Code and references as Markdown has them: ``x`` is code, `certeq.read` is a link."""

    def each(found: re.Match[str]) -> str:
        code, name, emphasis = found[1], found[2], found[3]
        if code:
            return f"`{code}`"
        if name:
            return f"[`{name}`]({links[name]})" if name in links else f"`{name}`"
        return emphasis or "\\*"  # a star that is none of these is a star

    return re.sub(r"``(.+?)``|`([^`]+)`|(\*\*[^*]+\*\*|(?<!\w)\*\w[^*\n]*\w\*(?!\w))|\*", each, text, flags=re.S)


def _table(header: tuple[str, ...], rows: Any) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
