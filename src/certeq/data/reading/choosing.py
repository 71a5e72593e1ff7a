"""Cells that the rows can carry: which columns to use, chosen by what predicts best out of sample, and how finely.

What is predicted is the same for every choice, so that choices can be compared: the reward, whether the episode ends,
and for each column the rank that it has in the next row and how far it moves there, as far as the column itself tells
something about rewards. Moves show what a column does to another: a tolerance that halves what a drug does is hardly
seen in where severity is next, and plainly in how far it moved. Rows of other episodes predict, by the mean of their
cell and action, held toward the mean of the action. One column after another joins, cut in two, as long as that
predicts better by more than its own standard error. Those that joined are then cut alike: in three, and all of them
more finely as long as there are enough rows for each pair of a cell and an action. To spend the rows on the column that
predicts the next month best, and none on one that matters in the long run, makes states that forget: the plan then
believes in gains that come again and again, and are there only once. Where people acted on more than such cells hold,
they are cut on, with fewer rows for each pair: cells that are coarser than what competent people saw make advice that
is worse than what they did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.data.batch import ENDED
from certeq.data.guided import FEW, Guided, above, strongest, telling
from certeq.data.order import section_of
from certeq.data.reading.rows import Links
from certeq.data.recipes.columns import Column, compact
from certeq.data.recipes.fitting import quantile_edges

LADDER = (1, 2, 3, 4, 5, 6, 8, 12, 16)  # cells of a column that are tried
EVENLY = 8  # cells at most, unless people acted on more
ROWS_PER_PAIR = 5.5  # rows that a pair of a cell and an action has at least, on average over those that occur
THREE = 3  # cells of a column that are worth fewer rows: two are hardly ever enough
FEWEST = 2.5  # these rows, for three cells and for what people acted on
FOLDS = 5  # parts that the episodes are dealt into
HELD = 3.0  # rows that the mean of the action counts for in each cell
ALONE = 8  # cells of a column, when it is asked by itself what it tells
SIGHT = 0.9  # discount of the rewards that lie ahead, when a column is asked what it tells about them
ENOUGH = 200  # rows: fewer cannot choose
MOST = 20_000  # rows that choose; of more, some episodes


class Step(NamedTuple):
    """A column joined."""

    column: str
    states: int  # that occur
    explained: float  # share of what is predicted that is explained out of sample
    error: float  # standard error of what this step added to it


@dataclass(frozen=True)
class Chosen:
    """How finely each column is cut, and how that was found."""

    cells: Mapping[str, int]  # 1: the column is not used
    steps: tuple[Step, ...]
    rows: int  # that chose
    labels: tuple[str, ...] = ()  # columns of labels, which are used or not
    alone: bool = True  # whether there are no other columns of the state
    curve: Mapping[str, Mapping[int, float]] = field(default_factory=dict)  # column -> cells -> explained
    people: bool = False  # whether columns were cut on because people acted on more than coarser cells hold

    @property
    def unused(self) -> tuple[str, ...]:
        """Columns that are not used; a state needs one at least, if only with a single cell."""
        left_out = tuple(name for name, cells in self.cells.items() if cells == 1)
        return left_out[1:] if self.alone and len(left_out) == len(self.cells) else left_out

    @property
    def ways(self) -> dict[str, str]:
        """How each column that is used becomes cells, as one would say it."""
        used = {name: cells for name, cells in self.cells.items() if name not in self.unused}
        return {name: f"quantile:{cells}" for name, cells in used.items() if name not in self.labels}

    def lines(self) -> list[str]:
        """The choice in words, step by step."""
        better = "rewards and next values better out of sample"
        if not self.steps and not self.people:
            return [f"However the numbers are cut, they do not predict {better}: none is used."]
        told = []
        if self.steps:
            whole = any(step.column in self.labels for step in self.steps)
            ways = {name: " (all values)" if name in self.labels else " (cut in two)" for name in self.cells if whole}
            parts = ", with ".join(f"{name}{ways.get(name, '')} {share:.1%}" for name, _, share, _ in self.steps)
            how = "" if whole else ", each cut in two"
            told.append(f"Columns are part of the state as far as they predict {better}. Explained{how}: {parts}.")
        if joined := [name for name in self.ways if name not in {step.column for step in self.steps} and self.people]:
            told.append(f"Part of the state because people acted on them: {', '.join(joined)}.")
        cut = ", ".join(f"{name} {cells}" for name, cells in self.cells.items() if name in self.ways)
        if cut:
            until = "until they hold what people acted on" if self.people else "in three"
            finely = f"as finely as {FEWEST if self.people else ROWS_PER_PAIR:g} rows for each pair of a state and an "
            told.append(f"They are cut {until}, or {finely}action allow: {cut}. Say bins= (--bins) to cut otherwise.")
        if self.people:
            told.append(
                "If a column goes with the action because it was recorded after it, leave it out: it is no state."
            )
        if self.unused:
            why = "rewards and next values are not clearly better predicted with them"
            told.append(f"Not used, since {why}: {', '.join(self.unused)}.")
        return told


class Cuts(NamedTuple):
    """A column at every step of the ladder."""

    now: dict[int, Integers]  # cells -> code of each row
    next: Floats  # (2, n): rank of each row's next value, from 0 to 1, and how far it is from the rank of its own
    here: Integers | None  # (n,), rank of each row's value; None for labels


def choose_cells(
    cut: Collection[str], labels: Collection[str], fixed: Integers, links: Links, action: Integers, reward: Floats
) -> Chosen:
    """Choose how finely to cut some columns of numbers, and which of some columns of labels to use.

    ``fixed`` is the code that each entry has by the other columns, which are used as they are.
    """
    free = [name for name in links.states if name in cut or name in labels]
    values = {name: _values(column, links.now, reward, name in cut) for name, column in links.states.items()}
    dealt = _deal(links, reward, values)
    part = np.flatnonzero(dealt % int(np.ceil(len(dealt) / MOST)) == 0)  # all, or those of enough episodes
    now, then = links.now[part], links.then[part]
    cuts = {name: _cuts(links.states[name], values[name], now, then, name in cut) for name in free}
    acts = np.unique(action[part], return_inverse=True)[1]
    episode = np.unique(dealt[part], return_inverse=True)[1]
    targets = _targets(cuts, acts, episode, reward[part], then == ENDED)
    judge = _Judge(acts, episode, *targets)
    others = np.unique(fixed[now], return_inverse=True)[1]
    evenly, steps = _choose(cuts, others, judge)
    cells = _cut_on(cuts, others, judge, evenly)
    curve = _curve(cuts, others, judge, cells)
    return Chosen(cells, steps, len(now), tuple(labels), len(free) == len(links.states), curve, cells != evenly)


def _choose(cuts: Mapping[str, Cuts], fixed: Integers, judge: _Judge) -> tuple[dict[str, int], tuple[Step, ...]]:
    """Let columns join, always the one that predicts best, as long as it pays; then cut them evenly."""
    cells, steps, state, errors = dict[str, int](), list[Step](), fixed, judge.errors(fixed)
    while True:
        best: tuple[float, float, str, Integers, Floats] | None = None
        for name in [name for name in cuts if name not in cells and _finer(cuts[name], 1)]:
            joined = _join([state, cuts[name].now[_finer(cuts[name], 1)]])
            if judge.carries(joined):
                after = judge.errors(joined)
                gain, error = judge.compare(errors, after)
                if gain > error and (best is None or gain > best[0]):
                    best = (gain, error, name, joined, after)
        if best is None:
            break
        _, error, name, state, errors = best
        cells[name] = _finer(cuts[name], 1)
        steps.append(Step(name, int(state.max()) + 1, float(1 - errors.mean()), error))
    return dict.fromkeys(cuts, 1) | _evenly(cuts, fixed, judge, cells), tuple(steps)


def _evenly(cuts: Mapping[str, Cuts], fixed: Integers, judge: _Judge, cells: dict[str, int]) -> dict[str, int]:
    """Cut what joined in three, the most telling column first; then all more finely at once, as far as rows carry."""
    for name in cells:
        three = _finer_all(cuts, {name: cells[name]}, THREE)
        if judge.carries(_states(cuts, fixed, cells | three), FEWEST):
            cells = cells | three
    while (finer := _finer_all(cuts, cells, EVENLY)) != cells and judge.carries(_states(cuts, fixed, finer)):
        cells = finer
    return cells


def _finer_all(cuts: Mapping[str, Cuts], cells: Mapping[str, int], most: int) -> dict[str, int]:
    """Every column one step more finely, but for those that would have more than so many cells."""
    finer = {name: _finer(cuts[name], size) for name, size in cells.items()}
    return {name: finer[name] if 0 < finer[name] <= most else size for name, size in cells.items()}


def _cut_on(cuts: Mapping[str, Cuts], fixed: Integers, judge: _Judge, cells: dict[str, int]) -> dict[str, int]:
    """Cut what people acted on, or let it in, for as long as they acted on more than the cells hold."""
    while (column := _acted_on(cuts, fixed, judge, cells)) is not None:
        finer = cells | {column: _finer(cuts[column], cells[column])}
        if not judge.carries(_states(cuts, fixed, finer), FEWEST):
            break
        cells = finer
    return cells


def _acted_on(cuts: Mapping[str, Cuts], fixed: Integers, judge: _Judge, cells: Mapping[str, int]) -> str | None:
    """The column that people acted on most, beyond what the cells hold, of those that can be cut on."""
    state = _states(cuts, fixed, cells)
    ranks = {name: cut.here for name, cut in cuts.items() if _finer(cut, cells[name]) and len(state) >= FEW}
    told = {name: telling(state, above(rank, state), judge.action) for name, rank in ranks.items() if rank is not None}
    found = strongest([Guided(name, True, *each, len(state)) for name, each in told.items()])
    return None if found is None else found.column


def _states(cuts: Mapping[str, Cuts], fixed: Integers, cells: Mapping[str, int]) -> Integers:
    return _join([fixed, *(cuts[name].now[size] for name, size in cells.items())])


def _finer(cut: Cuts, cells: int) -> int:
    """The next step of a column's ladder; 0 where there is none."""
    return min((size for size in cut.now if size > cells), default=0)


def _curve(
    cuts: Mapping[str, Cuts], fixed: Integers, judge: _Judge, cells: Mapping[str, int]
) -> dict[str, dict[int, float]]:
    """What each column would explain with fewer or more cells, all others being cut as chosen; as far as rows carry."""
    found: dict[str, dict[int, float]] = {}
    for name, cut in cuts.items():
        rest = _join([fixed, *(cuts[other].now[size] for other, size in cells.items() if other != name)])
        states = {size: _join([rest, codes]) for size, codes in cut.now.items()}
        carried = {size: state for size, state in states.items() if size <= cells[name] or judge.carries(state)}
        found[name] = {size: float(1 - judge.errors(state).mean()) for size, state in carried.items()}
    return found


@dataclass(frozen=True)
class _Judge:
    """What is to be predicted, and by whom."""

    action: Integers  # (n,)
    episode: Integers  # (n,), 0, 1, ...
    targets: Floats  # (T, n), each with mean 0 and variance 1
    weight: Floats  # (T,), adding up to 1

    def errors(self, state: Integers) -> Floats:
        """Squared errors of predicting each row from the other parts, weighted over what is predicted, ``(n,)``."""
        total, count = np.zeros(len(state)), self.weight > 0
        said = self.predict(_join([state, self.action]), count)
        for weight, target, mean in zip(self.weight[count], self.targets[count], said, strict=True):
            total += weight * (target - mean) ** 2
        return total

    def predict(self, pair: Integers, count: Booleans | bool = True) -> Iterator[Floats]:
        """What the other parts say of each row, ``(n,)``, for all targets that count in turn."""
        others, taken = _Others.of(pair, self.episode), np.broadcast_to(count, len(self.targets))
        told = zip(self.targets, self.usual, taken, strict=True)
        return (others.mean(target, usual, HELD) for target, usual, counts in told if counts)

    @cached_property
    def usual(self) -> list[Floats]:
        """What the other parts say of each row by its action alone, ``(n,)`` for each target."""
        others = _Others.of(self.action, self.episode)
        return [others.mean(target, 0.0, 1e-9) for target in self.targets]

    def carries(self, state: Integers, rows: float = ROWS_PER_PAIR) -> bool:
        """Whether there are enough rows for each pair that occurs."""
        return len(state) >= rows * (int(_join([state, self.action]).max()) + 1)

    def compare(self, before: Floats, after: Floats) -> tuple[float, float]:
        """How much better one prediction is than another, and the standard error of that, by episodes."""
        gain = np.bincount(self.episode, before - after)
        return float(gain.sum() / len(before)), float(gain.std() * np.sqrt(len(gain)) / len(before))


class _Others(NamedTuple):
    """The rows of each row's group in the other parts of the episodes."""

    group: Integers  # (n,)
    key: Integers  # (n,): group and part
    size: int
    rows: Integers  # (n,): how many there are

    @classmethod
    def of(cls, group: Integers, episode: Integers) -> _Others:
        """Tell them by group and episode."""
        key, size = group * FOLDS + episode % FOLDS, int(group.max()) + 1
        count = np.bincount(key, minlength=size * FOLDS)
        return cls(group, key, size, count.reshape(size, FOLDS).sum(axis=1)[group] - count[key])

    def mean(self, target: Floats, usual: Floats | float, held: float) -> Floats:
        """Their mean, held toward what is usual, ``(n,)``."""
        total = np.bincount(self.key, target, minlength=self.size * FOLDS)
        others = total.reshape(self.size, FOLDS).sum(axis=1)[self.group] - total[self.key]
        return np.asarray((others + held * usual) / (self.rows + held))


def _targets(
    cuts: Mapping[str, Cuts], action: Integers, episode: Integers, reward: Floats, ended: Booleans
) -> tuple[Floats, Floats]:
    """What is predicted, and how much each of it counts: rewards and ends, and columns as far as they tell of them."""
    goals = np.stack([_standard(reward), _standard(_ahead(reward, episode))])
    judge = _Judge(action, episode, goals, np.ones(2))

    def telling(cut: Cuts) -> float:
        """How much of rewards, now or later, a column explains by itself."""
        size = next((size for size in reversed(cut.now) if 1 < size <= ALONE), max(cut.now))
        said = zip(goals, judge.predict(action), judge.predict(_join([cut.now[size], action])), strict=True)
        better = ((y - alone) ** 2 - (y - both) ** 2 for y, alone, both in said)
        return max(0.0, *(float(each.mean()) for each in better))

    ranks = [_standard(each) for cut in cuts.values() for each in cut.next]
    targets = np.stack([goals[0], _standard(ended.astype(np.float64)), *ranks])
    weight = np.array([1.0, 1.0, *np.repeat([telling(cut) for cut in cuts.values()], 2)]) * targets.any(axis=1)
    return targets, weight / (weight.sum() or 1.0)


def _ahead(reward: Floats, episode: Integers) -> Floats:
    """Discounted rewards from each row on, to the last row of its episode; rows stand in order."""
    ahead = reward.copy()
    for i in range(len(ahead) - 2, -1, -1):
        if episode[i] == episode[i + 1]:
            ahead[i] += SIGHT * ahead[i + 1]
    return ahead


def _standard(values: Floats) -> Floats:
    """Values with mean 0 and variance 1; zeros where all are the same."""
    scaled = values / (np.abs(values).max(initial=0.0) or 1.0)  # else the squares of large ones overflow
    spread = float(scaled.std())
    return np.zeros_like(values) if spread < 1e-12 else np.asarray((scaled - scaled.mean()) / spread)


def _values(column: Column, now: Integers, reward: Floats, numeric: bool) -> Floats:
    """A number for each entry of a column: its own, or for a label what its rows earn, so that names decide nothing."""
    if numeric:
        return column.numbers()
    codes, size = column.distinct.codes, len(column.distinct.labels)
    known = now[~column.missing[now]]
    at = codes[known]
    often = np.bincount(at, minlength=size)
    earned = np.bincount(at, reward[~column.missing[now]], minlength=size)
    worth = np.divide(earned, often, out=np.full(len(often), np.nan), where=often > 0)
    return np.asarray(np.where(column.missing, np.nan, worth[np.where(column.missing, 0, codes)]))


def _cuts(column: Column, numbers: Floats, now: Integers, then: Integers, numeric: bool) -> Cuts:
    """A column at every step of the ladder, and the ranks of next values; labels are used or not."""
    codes = column.distinct.codes
    goes_on = then != ENDED
    ordered = np.sort(numbers[now][~np.isnan(numbers[now])])
    following = np.where(goes_on, numbers[np.maximum(then, 0)], np.nan)
    here, there = (_rank(ordered, each) for each in (numbers[now], following))
    ahead = np.stack([np.where(np.isnan(there), 0.5, there), np.nan_to_num(there - here)])
    nothing = np.zeros(len(now), dtype=np.int64)
    if not numeric:
        return Cuts({1: nothing, max(2, len(column.distinct.labels)): codes[now] - codes[now].min()}, ahead, None)
    found = {1: nothing}
    for size in LADDER[1:]:
        edges = quantile_edges(numbers, size)
        cell = np.searchsorted(edges, numbers[now], side="right")
        if len(edges):
            found[size] = np.where(np.isnan(numbers[now]), len(edges) + 1, cell)
    return Cuts(found, ahead, np.unique(numbers[now], return_inverse=True)[1])


def _rank(ordered: Floats, values: Floats) -> Floats:
    """Ranks of values among others, from 0 to 1; NaN where there is none."""
    place = (np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right")) / 2
    return np.where(np.isnan(values), np.nan, place / max(len(ordered), 1))


def _join(codes: list[Integers]) -> Integers:
    """One number for each combination that occurs."""
    state = codes[0]
    for code in codes[1:]:
        size = int(code.max()) + 1
        state = compact(state * size + code, (int(state.max()) + 1) * size)[1]
    return state


def _deal(links: Links, reward: Floats, values: Mapping[str, Floats]) -> Integers:
    """Number episodes, sections of long ones, or rows that stand alone, by what they say.

    Neither names nor the order of the table count. Rows stand in order, one episode after another.
    """
    n = len(links.now)
    episode = np.arange(n) if links.episode is None else section_of(np.unique(links.episode, return_inverse=True)[1])
    ahead = np.where(links.then == ENDED, links.now, links.then)
    told = [np.nan_to_num(each[at]) for each in values.values() for at in (links.now, ahead)]
    keys = [np.bincount(episode, part) for part in (*told, links.then == ENDED, np.ones(n), reward)]
    rank = np.empty(len(keys[0]), dtype=np.int64)
    rank[np.lexsort(keys)] = np.arange(len(rank))
    return np.asarray(rank[episode])
