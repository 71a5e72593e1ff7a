"""Maps of states and actions: how often each pair was tried, how much it was regularized, and what is advised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.base.display import number, shorten
from certeq.data.look import FEW
from certeq.model import weights
from certeq.questions.findings import drift
from certeq.report import cells, style
from certeq.report.sheet import Sheet, Side, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from certeq.learning.learned import Learned
    from certeq.learning.policy import Policy

FEW_STATES = 24  # up to here a map is a table of states and actions, with the states' names
PANELS = 6  # up to this many actions each has a sheet of states; with more, the states lie along one line
OPEN = -2  # stands for an action where the data leave it open which is best
GRAY = "#d5d9de"
MANY = 3  # actions whose signs fit into a box
NUMBERED = 600  # cells of a sheet that may have their numbers written in


def count_map(learned: Learned, *, suppress_below: int = 0) -> Figure:
    """How often each action was tried in each state: log colors, hatched where never.

    Counts from 1 to ``suppress_below - 1`` are only said to be fewer than that.
    """
    visits = learned.policy.visits.astype(np.float64)
    return _map(learned.policy, visits, (1, max(visits.max(), 2)), "times tried", suppress_below, log=True)


def weight_map(learned: Learned, *, suppress_below: int = 0) -> Figure:
    """How much of each pair's outcome is the regularizer's target rather than the data: 0 none, 1 all."""
    weight = np.broadcast_to(learned.shrinkage.weight, learned.policy.visits.shape)
    return _map(learned.policy, weight, (0, 1), "weight of the target", suppress_below)


def implied_prior_map(learned: Learned, planning_discount: float, *, suppress_below: int = 0) -> Figure:
    """Invented transitions that a planning discount amounts to for each pair (Eq. 3), more where more is known."""
    visits, discount = learned.policy.visits, learned.rules.discount
    amount = weights.implied_magnitude(visits, discount, planning_discount)
    told = amount[(amount > 0) & np.isfinite(amount) & (visits >= suppress_below)]
    limits = (told.min(), max(told.max(), 2 * told.min())) if len(told) else (1, 2)
    label = f"invented transitions at γp = {planning_discount:.3g}"
    return _map(learned.policy, np.minimum(amount, limits[1]), limits, label, suppress_below, log=True)


def policy_map(learned: Learned, *, suppress_below: int = 0) -> Figure:
    """What is advised in each state: a color and a sign for each action, pale where it was hardly tried.

    Where the data leave it open which of several actions is best, the state is gray and has the signs of all of them.
    Where the states lie on a line or a grid, arrows show where the advised action leads on average.
    """
    policy = learned.policy
    undecided, support = policy.first.open, policy.first.support
    advised = np.where(undecided, OPEN, policy.first.actions)
    solid = support >= max(FEW, suppress_below)
    paper = sheet(policy.recipe)
    signs = action_signs(policy.action_names)
    with style.style(page=True):
        figure, (axis,) = cells.canvas((paper.rows, paper.columns), paper.across, extra=0.3)
        _paint_actions(axis, paper, advised, solid)
        cells.sides(axis, paper.down, paper.across)
        if paper.ordered:
            _arrows(axis, paper, drift(learned), advised >= 0)
        if paper.rows * paper.columns <= NUMBERED:
            for s in np.flatnonzero(undecided if paper.ordered else (advised >= 0) | undecided):
                ink = "#ffffff" if solid[s] and not undecided[s] else style.INK
                said = signs[advised[s]] if advised[s] >= 0 else signs_of(policy.first.among[s], signs)
                cells.write(axis, paper.row[s], paper.column[s], said, ink)
        _key(figure, policy.action_names, signs, advised, pale=not solid.all(), limit=max(FEW, suppress_below))
    return figure


def action_signs(names: tuple[str, ...]) -> list[str]:
    """A sign for each action: its first letter where all differ, else its number."""
    letters = [shorten(name, 8)[:1].upper() for name in names]
    return letters if len(set(letters)) == len(names) and all(letters) else [str(i + 1) for i in range(len(names))]


def signs_of(among: Booleans, signs: list[str]) -> str:
    """The signs of a set of actions, if they fit."""
    which = np.flatnonzero(among)
    return "/".join(signs[a] for a in which) if len(which) <= MANY else "?"


def action_color(action: int) -> str:
    """The color of an action, the same in every picture."""
    return style.COLORS[action % len(style.COLORS)]


def _map(
    policy: Policy, values: Floats, limits: tuple[float, float], label: str, suppress_below: int, *, log: bool = False
) -> Figure:
    """Draw values of pairs ``(S, A)``: a table, a sheet for each action, or one long line of states."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize

    hidden = (policy.visits > 0) & (policy.visits < suppress_below)
    panels, down, across = _panels(policy, values, hidden)
    low, high = map(float, limits)
    scale = LogNorm(low, high) if log else Normalize(low, high)
    with style.style(page=True):
        figure, axes = cells.canvas(panels[0].values.shape, across, len(panels))
        for i, (axis, panel) in enumerate(zip(axes, panels, strict=True)):
            cells.paint(axis, panel, scale)
            if panel.values.size <= NUMBERED:
                cells.numbers(axis, panel, scale, f"<{suppress_below}" if label == "times tried" else "")
            cells.sides(axis, down, across, left=i % cells.per_line(len(panels)) == 0)
            axis.set_title(panel.title)
        bar = figure.colorbar(
            ScalarMappable(scale, cells.SHADES), ax=axes, label=label, pad=0.02, shrink=0.9, aspect=30
        )
        bar.outline.set_visible(False)
        bar.ax.tick_params(which="both", length=0)
        if log:
            bar.ax.minorticks_off()
            bar.ax.set_yticks(_round_numbers(*limits))
            bar.ax.yaxis.set_major_formatter(lambda x, _: number(float(x)))
    return figure


def _panels(policy: Policy, values: Floats, hidden: Booleans) -> tuple[list[cells.ValueSheet], Side, Side]:
    never = policy.visits == 0
    actions = tuple(shorten(name, cells.LABEL) for name in policy.action_names)
    S, A = values.shape
    if S <= FEW_STATES:
        return [cells.ValueSheet("", values, never, hidden)], Side((), policy.state_names), Side((), actions)
    if A > PANELS:
        return [cells.ValueSheet("", values.T, never.T, hidden.T)], Side((), actions), Side(("states, by number",))
    paper = sheet(policy.recipe)
    parts = zip(actions, values.T, never.T, hidden.T, strict=True)
    panels = [cells.ValueSheet(name, paper.fill(v), paper.fill(n) == 1, paper.fill(h) == 1) for name, v, n, h in parts]
    return panels, paper.down, paper.across


def _paint_actions(axis: Any, paper: Sheet, advised: Integers, solid: Booleans) -> None:
    from matplotlib.colors import to_rgba

    where, strong = paper.fill(advised), paper.fill(solid)
    used = np.unique(advised[advised >= 0]).tolist()
    layers = [
        ((where == action) & (strong == sure), to_rgba(action_color(action), alpha))
        for action in used
        for sure, alpha in ((1, 1.0), (0, 0.3))
    ]
    cells.fill(axis, [*layers, (where == OPEN, to_rgba(GRAY)), (where == -1, None)])


def _arrows(axis: Any, paper: Sheet, ahead: Floats, there: Booleans) -> None:
    """Draw where the advised action leads on average, at most a cell far; a dot where it stays."""
    across, down = ahead[:, -1], ahead[:, 0] if ahead.shape[1] == 2 else np.zeros(len(ahead))
    length = np.hypot(across, down)
    moves, size = there & (length > 0.05), 0.8 / np.maximum(length, 0.8)
    x, y = paper.column + 0.5, paper.row + 0.5
    axis.quiver(
        x[moves], y[moves], (across * size)[moves], (down * size)[moves],
        angles="xy", scale_units="xy", scale=1, pivot="mid", color=style.INK, width=0.005,
    )  # fmt: skip
    axis.plot(x[there & ~moves], y[there & ~moves], "o", color=style.INK, markersize=2.5)


def _key(figure: Any, names: tuple[str, ...], signs: list[str], advised: Integers, *, pale: bool, limit: int) -> None:
    from matplotlib.patches import Patch

    used = np.unique(advised[advised >= 0])[:12]
    keys = [Patch(facecolor=action_color(a), label=f"{signs[a]}: {shorten(names[a], cells.LABEL)}") for a in used]
    if (advised == OPEN).any():
        keys.append(Patch(facecolor=GRAY, label="no clear difference"))
    if (advised == -1).any():
        keys.append(Patch(**cells.HATCH, label="no advice"))
    if pale:
        keys.append(Patch(facecolor="#8a919955", label=f"pale: tried fewer than {limit} times"))
    figure.legend(handles=keys, loc="outside upper left", ncols=min(len(keys), 5))


def _round_numbers(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, ... within the limits; powers of ten alone where there would be many."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    steps = (1, 2, 5) if len(powers) <= 4 else (1,)
    return [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
