"""Draw docs/layers.svg, the house and the walk of one row through it, and write docs/rooms.md, what is kept where.

Wings and their order are those of tests/test_layers.py; rooms speak in the first sentence of their modules. Functions
of the walk are looked up, so that nobody is sent to one that is gone. ``python docs/make_layers.py`` writes both;
tests/docs/test_generated.py says when they are old.
"""

from __future__ import annotations

import ast
import sys
from html import escape
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from test_layers import LAYERS, ROOT, files_of, imported_rooms  # noqa: E402


class Step(NamedTuple):
    """One step of the walk: in a wing, by a function, a row becomes part of a value."""

    wing: str
    value: str
    by: str  # the function, in full
    told: str  # the step in words


WALK = (
    Step(
        "data", "Batch", "certeq.read",
        "reads a table, a file or a data frame, finds out what the columns mean, and checks every row. A recipe "
        "(`certeq.data.recipes.fit`) makes states of the columns; it travels with the policy to the very end.",
    ),
    Step(
        "data", "Counts", "certeq.tally",
        "counts what followed each pair of state and action. From here on our row is one more in a cell. Tables that "
        "do not fit into memory come here directly, by `certeq.data.counting.running.count`.",
    ),
    Step(
        "regularizers", "Shrinkage", "certeq.shrink",
        "asks a regularizer of the catalogue how much to trust the row's pair, and what to pull it toward: a weight "
        "and a target.",
    ),
    Step(
        "model", "Mixture", "certeq.learning.equivalence.estimate",
        "writes the one line, T_plan = (1 − w)·T_data + w·T_target, as an operator. Pairs with too few visits were "
        "filled by a convention (`certeq.model.unvisited.fill`), rewards estimated (`certeq.model.rewards.estimate`).",
    ),
    Step(
        "planners", "Plan", "certeq.solve",
        "plans as if that model were true, exactly or with a bound, by whatever method and engine suits its size.",
    ),
    Step(
        "learning", "Policy", "certeq.learn",
        "has taken the row all the way here: its `Case`, made of `Data` and `Rules`, is the only pipeline. The advice "
        "is written down as a policy, which knows its recipe and says what to do in a new row.",
    ),
    Step(
        "questions", "Findings", "certeq.examine",
        "asks the case again, with other data or other rules: how sure, how fragile, what a discount assumed, what to "
        "collect next.",
    ),
    Step(
        "report", "page", "certeq.report.learned_page.render",
        "puts everything into words and pictures on one page. It reads, and computes nothing.",
    ),
)  # fmt: skip
KEPT = {  # what is kept in a wing, in a few words
    "data": ("reading, recipes,", "counting"),
    "regularizers": ("one file each,", "one catalogue"),
    "model": ("kernels, targets,", "weights, evidence"),
    "planners": ("methods, engines,", "certificates"),
    "learning": ("cases, rules,", "policies"),
    "questions": ("how sure,", "what if"),
    "report": ("pages", "and pictures"),
    "worlds": ("known MDPs,", "sampling"),
    "experiments": ("the paper's figures: worlds, the same walk many times, and verdicts",),
    "cli": ("one verb per job",),
    "base": ("arrays, errors, limits, words, writing, workers",),
}
WIDE, GAP, EDGE, DOOR = 122, 20, 12, 116  # of a wing, between wings, around the picture, and left of the house
ROOF, ATTIC, FLOOR, CELLAR = 62, 40, 196, 40  # how high they are
HALF = 13  # the height of a value
INK, PALE, LINE, WALL = "#1c2733", "#4c5b69", "#4a6a8a", "#eef3f8"


def made() -> dict[Path, str]:
    """The picture and the page."""
    wings = [wing for layer in LAYERS for wing in sorted(layer)]
    if sorted(wings) != sorted(KEPT):
        raise SystemExit(f"Say in KEPT of {__file__} what is kept in each wing: {sorted(set(wings) ^ set(KEPT))}")
    for step in WALK:
        resolve_name(step.by)
    imports = {wing: _imports(wing) for wing in wings}
    return {HERE / "layers.svg": _draw(imports), HERE / "rooms.md": _page(imports)}


def _imports(wing: str) -> list[str]:
    found = (set(imported_rooms(path.read_text(encoding="utf-8"))) for path in files_of(wing))
    return sorted(set().union(*found) - {wing})


# ---- the picture ----


class Pill(NamedTuple):
    """What the row is by now, by the middle of where it is written."""

    value: str
    x: float
    y: float
    wide: float


def _draw(imports: dict[str, list[str]]) -> str:
    ground = list(dict.fromkeys(step.wing for step in WALK))
    left, top = EDGE + DOOR, EDGE + ROOF + ATTIC
    bottom, wide = top + FLOOR, len(ground) * (WIDE + GAP) + GAP
    width, height = left + wide + EDGE, bottom + CELLAR + EDGE
    at = {wing: left + GAP + i * (WIDE + GAP) for i, wing in enumerate(ground)}
    upper, lower = top + 100, top + 152  # as a batch our row is still itself; then it goes on as one of many
    outside = Pill("rows", EDGE + (DOOR - GAP) / 2, upper, DOOR - GAP)
    walk = [outside]
    walk += [Pill(s.value, at[s.wing] + WIDE / 2, upper if s is WALK[0] else lower, WIDE - 24) for s in WALK]
    shapes = [
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<rect x="{left}" y="{top}" width="{wide}" height="{FLOOR}" fill="#fff" stroke="{LINE}"/>',
        _roof(imports, left, wide),
        _box("experiments", imports, left, top - ATTIC, wide, ATTIC),
        _box("base", imports, left, bottom, wide, CELLAR),
        _box("worlds", imports, EDGE, bottom - 30, DOOR - GAP, CELLAR + 30),
        *(_box(wing, imports, x, top + 14, WIDE, FLOOR - 28) for wing, x in at.items()),
        _arrow(outside.x, bottom - 30, outside.x, upper + HALF),
        *(_between(one, two) for one, two in pairwise(walk)),
        *map(_pill, walk),
    ]
    title = "The wings of certeq, and the walk of one row through them: " + ", ".join(pill.value for pill in walk)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" font-family="system-ui, sans-serif" font-size="13" fill="{INK}">',
            f"<title>{title}</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>',
            *shapes,
            "</svg>",
            "",
        ]
    )


def _box(wing: str, imports: dict[str, list[str]], x: float, y: float, wide: float, high: float) -> str:
    """A wing with its name and what is kept there; a flat one has both on one line."""
    middle, kept = x + wide / 2, KEPT[wing]
    wall = f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="4" fill="{WALL}" stroke="{LINE}"/>'
    if high < 50:
        told = f'{_name(wing)}<tspan fill="{PALE}">{"&#160;" * 3}{escape(kept[0])}</tspan>'
        return f"<g>{_about(wing, imports)}{wall}{_text(told, middle, y + high / 2 + 4.5)}</g>"
    words = [_text(_name(wing), middle, y + 22)]
    words += [_text(escape(line), middle, y + 42 + 15 * i, small=True) for i, line in enumerate(kept)]
    return f"<g>{_about(wing, imports)}{wall}{''.join(words)}</g>"


def _roof(imports: dict[str, list[str]], left: float, wide: float) -> str:
    low, middle = EDGE + ROOF, left + wide / 2
    wall = f'<path d="M{left} {low}L{left + 90} {EDGE}H{left + wide - 90}L{left + wide} {low}z" '
    wall += f'fill="{WALL}" stroke="{LINE}" stroke-linejoin="round"/>'
    told = f'{_name("cli")}<tspan fill="{PALE}">{"&#160;" * 3}{KEPT["cli"][0]}</tspan>'
    return f"<g>{_about('cli', imports)}{wall}{_text(told, middle, low - ROOF / 2 + 4.5)}</g>"


def _name(wing: str) -> str:
    return f'<tspan font-weight="600" font-size="15">{wing}</tspan>'


def _about(wing: str, imports: dict[str, list[str]]) -> str:
    return f"<title>{wing} imports from {', '.join(imports[wing]) or 'nothing'}</title>"


def _text(words: str, x: float, y: float, *, small: bool = False) -> str:
    look = f' font-size="12" fill="{PALE}"' if small else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="middle"{look}>{words}</text>'


def _pill(pill: Pill) -> str:
    return (
        f'<rect x="{pill.x - pill.wide / 2:g}" y="{pill.y - HALF:g}" width="{pill.wide:g}" height="{2 * HALF}" '
        f'rx="{HALF}" fill="#fff" stroke="{LINE}" stroke-width="1.6"/>{_text(pill.value, pill.x, pill.y + 4.5)}'
    )


def _between(one: Pill, two: Pill) -> str:
    """On along the floor, or down to it."""
    if one.y == two.y:
        return _arrow(one.x + one.wide / 2, one.y, two.x - two.wide / 2, two.y)
    return _arrow(one.x, one.y + HALF, two.x, two.y - HALF)


def _arrow(x: float, y: float, u: float, v: float) -> str:
    return f'<path d="M{x:g} {y:g}L{u:g} {v:g}" stroke="{LINE}" stroke-width="1.6" marker-end="url(#tip)"/>'


# ---- the page ----


def _page(imports: dict[str, list[str]]) -> str:
    lines = [
        "<!-- made by docs/make_layers.py; edit the modules' first lines, WALK there, or tests/test_layers.py -->",
        "",
        "# The house",
        "",
        "Ten wings and a base that they stand on. The ground floor is the walk of the data, left to right; nothing "
        "goes back. [The walk](#the-walk-of-one-row) is told below, and after it what is kept in every room.",
        "",
        "![A house: one row walks through data, regularizers, model, planners, learning, questions and report]"
        "(layers.svg)",
        "",
        "## The walk of one row",
        "",
        "Somebody was in a state, did something, and something followed: one row of a table. Or it was drawn from a "
        "known world (`certeq.sampling.trajectories`), which nothing that estimates may look at again.",
        "",
        *(f"{i}. **{step.value}**, in `{step.wing}`: `{step.by}` {step.told}" for i, step in enumerate(WALK, 1)),
        "",
        "The command line calls these functions, one verb per job; the experiments take whole batches of data sets "
        "through them, and hold the outcome against the truth.",
        "",
        "## The wings",
        "",
        "From the roof down. A wing imports only from wings below it, and those on one line know nothing of one "
        "another: "
        f"{', '.join(' and '.join(f'`{wing}`' for wing in sorted(layer)) for layer in LAYERS)}. A test keeps it so.",
    ]
    for wing in (wing for layer in LAYERS for wing in sorted(layer)):
        below = ", ".join(f"`{other}`" for other in imports[wing]) or "nothing"
        inside = {_called(path, wing): _says(path) for path in files_of(wing) if path.name != "__main__.py"}
        lines += ["", f"### {wing}", "", f"{_says(ROOT / wing / '__init__.py')} Imports from {below}.", ""]
        lines += ["| room | what is kept there |", "| --- | --- |"]
        lines += [f"| `{room}` | {said} |" for room, said in sorted(inside.items()) if room]
    return "\n".join([*lines, ""])


def _called(path: Path, wing: str) -> str:
    """A room by its name in the wing; a folder by its own."""
    inside = path.relative_to(ROOT / wing).with_suffix("").as_posix()
    return inside.removesuffix("__init__")


def _says(path: Path) -> str:
    """First sentence of a module, as it tells of itself: one line, or all of the first paragraph."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return doc.split("\n\n")[0].replace("\n", " ").replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
