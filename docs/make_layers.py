"""Draw docs/layers.svg, the rooms of certeq and who imports whom, and write docs/rooms.md, the same as a table.

Rooms and layers are those of tests/test_layers.py; arrows are read from the source. An arrow is left out where a longer
way says the same. ``python docs/make_layers.py`` writes both; tests/docs/test_generated.py says when they are old.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from itertools import pairwise
from math import fsum
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from test_layers import LAYERS, files_of, imported_rooms  # noqa: E402

ROW, BOX, GAP, EDGE = 52, 26, 16, 12  # pixels: of a layer, a room, between neighbors, around the picture
LETTER, PAD = 7.2, 12  # of a name, and beside it
Node = tuple[str, str, int]  # an arrow from a room to another on its way through a layer; a room is (room, room, layer)


def made() -> dict[Path, str]:
    """The picture and the page."""
    imports = {room: _imports(room) for layer in LAYERS for room in layer}
    return {HERE / "layers.svg": _draw(imports), HERE / "rooms.md": _page(imports)}


def _imports(room: str) -> frozenset[str]:
    found = (set(imported_rooms(path.read_text(encoding="utf-8"))) for path in files_of(room))
    return frozenset(set().union(*found) - {room})


def _short(imports: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Only the imports that no longer way implies."""

    @cache
    def below(room: str) -> frozenset[str]:
        return imports[room].union(*(below(other) for other in imports[room]))

    return {
        room: frozenset(other for other in found if not any(other in below(way) for way in found - {other}))
        for room, found in imports.items()
    }


def _ways(arrows: dict[str, frozenset[str]]) -> list[list[Node]]:
    """Each arrow as a way from layer to layer."""
    level = {room: i for i, layer in enumerate(LAYERS) for room in layer}
    ways = []
    for room in sorted(arrows):
        for other in sorted(arrows[room]):
            middle = [(room, other, i) for i in range(level[room] + 1, level[other])]
            ways.append([(room, room, level[room]), *middle, (other, other, level[other])])
    return ways


def _places(ways: list[list[Node]]) -> dict[Node, float]:
    """Where along its layer everything lies: first in an order with few crossings, then pulled straight."""
    tied: dict[Node, list[Node]] = {(room, room, i): [] for i, layer in enumerate(LAYERS) for room in sorted(layer)}
    for way in ways:
        for one, two in pairwise(way):
            tied.setdefault(one, []).append(two)
            tied.setdefault(two, []).append(one)
    layers = [[node for node in tied if node[2] == i] for i in range(len(LAYERS))]
    at = {node: float(x) for layer in layers for x, node in enumerate(layer)}
    for turn in range(60):
        for layer in layers if turn % 2 else reversed(layers):
            layer.sort(key=lambda node: _mean(at, tied[node], at[node]))
            at |= {node: x - len(layer) / 2 for x, node in enumerate(layer)}
    at = {node: x * GAP for node, x in at.items()}
    for _ in range(200):
        for layer in layers:
            at |= _apart(layer, {node: _mean(at, tied[node], at[node]) for node in layer})
    left = min(at[node] - _size(node) / 2 for node in at)
    return {node: x - left + EDGE for node, x in at.items()}


def _mean(at: dict[Node, float], nodes: list[Node], alone: float) -> float:
    return fsum(at[node] for node in nodes) / len(nodes) if nodes else alone


def _apart(layer: list[Node], wanted: dict[Node, float]) -> dict[Node, float]:
    """Places near the wanted ones, in the same order and not on top of each other."""
    need = [0.0, *((_size(one) + _size(two)) / 2 + GAP for one, two in pairwise(layer))]
    right, left = dict(wanted), dict(wanted)
    for i in range(1, len(layer)):
        right[layer[i]] = max(right[layer[i]], right[layer[i - 1]] + need[i])
    for i in range(len(layer) - 1, 0, -1):
        left[layer[i - 1]] = min(left[layer[i - 1]], left[layer[i]] - need[i])
    return {node: (right[node] + left[node]) / 2 for node in layer}


def _size(node: Node) -> float:
    return LETTER * len(node[0]) + 2 * PAD if node[0] == node[1] else 0.0


def _draw(imports: dict[str, frozenset[str]]) -> str:
    ways = _ways(_short(imports))
    at = _places(ways)
    width = max(at[node] + _size(node) / 2 for node in at) + EDGE
    height = ROW * len(LAYERS) - (ROW - BOX) + 2 * EDGE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
        f'height="{height}" role="img" font-family="system-ui, sans-serif" font-size="13">',
        "<title>The rooms of certeq: each imports only from rooms below it</title>",
        f'<rect width="{width:.0f}" height="{height}" fill="#fff"/>',
        '<g fill="none" stroke="#8fa5ba">',
        *(_line([(at[node], EDGE + BOX / 2 + ROW * node[2]) for node in way]) for way in ways),
        "</g>",
    ]
    for node in (node for node in at if node[0] == node[1]):
        room, x, top, wide = node[0], at[node], EDGE + ROW * node[2], _size(node)
        told = ", ".join(sorted(imports[room])) or "nothing"
        lines.append(
            f'<g><title>{room} imports {told}</title><rect x="{x - wide / 2:.1f}" y="{top}" width="{wide:.1f}" '
            f'height="{BOX}" rx="5" fill="#eef3f8" stroke="#4a6a8a"/><text x="{x:.1f}" y="{top + BOX / 2 + 4.5:.1f}" '
            f'text-anchor="middle" fill="#1c2733">{room}</text></g>'
        )
    return "\n".join([*lines, "</svg>", ""])


def _line(points: list[tuple[float, float]]) -> str:
    """A smooth way through the layers, from the foot of a box to the head of another."""
    (x, y), *middle, (u, v) = points
    path, y = f"M{x:.1f} {y + BOX / 2:.1f}", y + BOX / 2
    for a, b in [*middle, (u, v - BOX / 2)]:
        half = (b - y) / 2
        path += f"C{x:.1f} {y + half:.1f} {a:.1f} {b - half:.1f} {a:.1f} {b:.1f}"
        x, y = a, b
    return f'<path d="{path}"/>'


def _page(imports: dict[str, frozenset[str]]) -> str:
    lines = [
        "<!-- made by docs/make_layers.py; edit the modules' first lines, or LAYERS of tests/test_layers.py -->",
        "",
        "# The rooms",
        "",
        "Every room, top to bottom, with the first sentence of its own words. A room imports only from rooms further "
        "down; rooms on one line of the picture know nothing of one another. A test keeps it so.",
        "",
        "![The rooms in layers, with lines to the rooms that each imports from](layers.svg)",
        "",
        "| room | what is kept there | imports from |",
        "| --- | --- | --- |",
    ]
    for layer in LAYERS:
        for room in sorted(layer):
            below = ", ".join(f"`{other}`" for other in sorted(imports[room]))
            lines.append(f"| `{room}` | {_about(room)} | {below} |")
    return "\n".join([*lines, ""])


def _about(room: str) -> str:
    """First sentence of a room's docstring."""
    paths = files_of(room)
    first = next((path for path in paths if path.name == "__init__.py"), paths[0])
    doc = ast.get_docstring(ast.parse(first.read_text(encoding="utf-8"))) or ""
    return doc.split("\n\n")[0].replace("\n", " ").replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
