"""River Swim and Loop, drawn from the MDPs that the experiments use and checked against what the paper describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Rng
from certeq.experiments.verdict import Verdict, exactly
from certeq.worlds import environment

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "River Swim and Loop (paper, Figs. 3 and 4)"
CLAIM = (
    "River Swim has six states: swimming left always works and pays a little at the left end; swimming right often "
    "fails and pays well at the right end. Loop has nine states in two loops that share one; half of the time the "
    "action is random."
)
NOTES = (
    "The paper shows the pictures of Osband et al. (2013) and Strens (2000). These are drawn from the transition rows "
    "and rewards of the environments themselves."
)
ALT = (
    "Two diagrams of states and arrows with probabilities. River Swim: a row of six states, with arrows to the left of "
    "probability 1, and arrows to the right that mostly stay. Loop: two loops of five states that meet in state 0."
)
SETTINGS: dict[str, dict[str, Any]] = {"smoke": {}, "paper": {}}
WORLDS = {"river_swim": "River Swim", "loop": "Loop"}
ROUNDING = 1e-15

Row = tuple[float, dict[int, float]]  # reward, and the chance of each next state


def described() -> dict[tuple[str, int, str], Row]:
    """What the paper and its sources say about every pair, written down apart from the code that builds the worlds."""
    swim: dict[tuple[str, int, str], Row] = {}
    for s in range(6):
        swim["river_swim", s, "left"] = (0.005 if s == 0 else 0.0, {max(s - 1, 0): 1.0})
        swim["river_swim", s, "right"] = (1.0 if s == 5 else 0.0, {s - 1: 0.05, s: 0.6, s + 1: 0.35})
    swim["river_swim", 0, "right"] = (0.0, {0: 0.4, 1: 0.6})
    swim["river_swim", 5, "right"] = (1.0, {4: 0.4, 5: 0.6})
    leads = {0: (1, 5), 1: (2, 2), 2: (3, 3), 3: (4, 4), 4: (0, 0), 5: (0, 6), 6: (0, 7), 7: (0, 8), 8: (0, 0)}
    loops: dict[tuple[str, int, str], Row] = {}
    for s, (by_a, by_b) in leads.items():
        pays = {4: 1.0, 8: 2.0}.get(s, 0.0)
        for action, wanted, other in (("a", by_a, by_b), ("b", by_b, by_a)):
            # as wanted with chance .5, else random between the two: .5 + .25 and .25
            loops["loop", s, action] = (pays, {wanted: 1.0} if wanted == other else {wanted: 0.75, other: 0.25})
    return swim | loops


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One for each world."""
    return [{"environment": name} for name in WORLDS]


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """The rows that are not zero; nothing is random."""
    world = environment(cell["environment"])
    rows = world.transition.dense()
    state, action, following = np.nonzero(rows)
    return {
        "environment": np.full(len(state), cell["environment"]),
        "state": state,
        "action": np.asarray(world.action_names)[action],
        "next_state": following,
        "probability": rows[state, action, following],
        "reward": world.reward[state, action],
    }


def holds(table: pl.DataFrame) -> list[Verdict]:
    """Every row and reward is as described."""
    return [_judge(table, name) for name in WORLDS]


def _judge(table: pl.DataFrame, name: str) -> Verdict:
    expected = {pair: row for pair, row in described().items() if pair[0] == name}
    found = _rows(table, name)
    off = max(_distance(found.get(pair), row) for pair, row in expected.items())
    extra = len(set(found) - set(expected))
    states = len({pair[1] for pair in expected})
    what = {
        "river_swim": "left is certain; right is .05 back, .6 stay, .35 on, and .4 or .6 at the ends; pays .005 and 1",
        "loop": "two loops of five states through state 0; the action taken is random half of the time; pays 1 and 2",
    }[name]
    return exactly(
        f"{WORLDS[name]}: {what}",
        off <= ROUNDING and not extra,
        f"{len(found)} rows of {states} states; largest difference in a probability or reward {off:.2g}",
        paper="Sec. 7.1, Figs. 3 and 4",
    )


def _rows(table: pl.DataFrame, name: str) -> dict[tuple[str, int, str], Row]:
    rows: dict[tuple[str, int, str], Row] = {}
    for line in table.iter_rows(named=True):
        if line["environment"] == name:
            _, chances = rows.setdefault((name, line["state"], line["action"]), (line["reward"], {}))
            chances[line["next_state"]] = line["probability"]
    return rows


def _distance(found: Row | None, row: Row) -> float:
    if found is None:
        return np.inf
    (pays, chances), (should, expected) = found, row
    gaps = [abs(chances.get(s, 0.0) - expected.get(s, 0.0)) for s in {*chances, *expected}]
    return max(abs(pays - should), *gaps)


def draw(table: pl.DataFrame) -> Figure:
    """One diagram above the other."""
    from certeq.report import style

    figure: Figure
    with style.style():
        figure, axes = style.canvas(rows=2, width=6.4, height=2.0, height_ratios=(2, 3))
        for axis, (name, title), place in zip(axes[:, 0], WORLDS.items(), (_along, _around), strict=True):
            place(axis, _rows(table, name), name)
            axis.set_title(title, loc="left")
            axis.set_aspect("equal")
            axis.axis("off")
    return figure


def _along(axis: Any, rows: dict[tuple[str, int, str], Row], name: str) -> None:
    """River Swim: states in a row, right above and left below."""
    from certeq.report import diagram, style

    at = {s: (1.7 * s, 0.0) for s in range(1 + max(pair[1] for pair in rows))}
    colors = {"left": style.COLORS[0], "right": style.COLORS[1]}
    dashes = {"left": "-", "right": (0, (4, 1.5))}
    for (_, s, action), (_, chances) in rows.items():
        for after, chance in chances.items():
            bend = 0.0 if after == s else 0.3 if action == "left" else 0.2 if after > s else 0.08
            side = -1 if action == "left" else 1
            look: dict[str, Any] = {"color": colors[action], "linestyle": dashes[action]}
            diagram.arrow(axis, at[s], at[after], f"{chance:g}".lstrip("0"), bend=bend, side=side, **look)
    for s, place in at.items():
        diagram.node(axis, place, str(s))
    for (_, s, action), (pays, _) in rows.items():
        if pays:
            x, y = at[s][0], -1.0 if action == "left" else 1.02
            where = {"ha": "center", "va": "center", "color": colors[action]}
            axis.text(x, y, f"{action} pays {pays:g}", fontsize=7, fontweight="bold", **where)
    diagram.key(axis, [(f"swim {action}", colors[action], dashes[action]) for action in colors])
    axis.set(xlim=(-0.9, at[len(at) - 1][0] + 0.9), ylim=(-1.1, 1.1))


def _around(axis: Any, rows: dict[tuple[str, int, str], Row], name: str) -> None:
    """Loop: two circles through state 0; an arrow bears the chance under each action."""
    from certeq.report import diagram, style

    at = {0: (0.0, 0.0)}
    for i in range(1, 5):
        turn = 2 * np.pi * i / 5
        at[i] = (-2.6 + 2.6 * np.cos(turn), 1.35 * np.sin(turn))
        at[i + 4] = (2.6 - 2.6 * np.cos(turn), 1.35 * np.sin(turn))
    chances: dict[tuple[int, int], dict[str, float]] = {}
    for (_, s, action), (_, row) in rows.items():
        for after, chance in row.items():
            chances.setdefault((s, after), {})[action] = chance
    for (s, after), by in chances.items():
        sure = set(by.values()) == {1.0}
        label = (
            "a or b" if sure else ", ".join(f"{action} {chance:g}".replace("0.", ".") for action, chance in by.items())
        )
        back = after == 0 and not sure  # falling back, drawn through the inside of the loop
        bend = {(0, 5): 0.14, (5, 0): 0.1, (7, 0): -0.06}.get((s, after), 0.0)
        look: dict[str, Any] = {"color": style.COLORS[0] if s < 5 and after < 5 else style.COLORS[1]}
        if back:
            look = {"color": "#777777", "linestyle": (0, (4, 1.5))}
        diagram.arrow(axis, at[s], at[after], label, bend=bend, halfway=0.4 if s == 5 else 0.3 if back else 0.5, **look)
    for s, place in at.items():
        diagram.node(axis, place, str(s))
    for s in sorted({pair[1] for pair in rows}):
        pays = rows[name, s, "a"][0]
        if pays:
            axis.text(at[s][0], at[s][1] - 0.5, f"leaving pays {pays:g}", ha="center", fontsize=7, fontweight="bold")
    axis.set(xlim=(-5.7, 5.7), ylim=(-1.9, 1.6))
