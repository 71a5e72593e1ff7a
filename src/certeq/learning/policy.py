"""Policy: the advice, with the support behind it and the recipe for new rows. What is kept, shipped and applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import msgspec
import numpy as np

from certeq.base import defaults
from certeq.base.arrays import ArrayLike, Booleans, Floats, Integers, first, within
from certeq.base.display import MOST, notebook, several
from certeq.base.errors import InputError
from certeq.base.writing import write_files
from certeq.data.batch import Carried
from certeq.data.recipes import Recipe, column
from certeq.learning import policy_archive, policy_file, sets
from certeq.learning.steps import read_steps

Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Advice:
    """What a policy says about some rows; arrays of one length, one entry per row."""

    state: Integers  # state number, -1 if the row's state is not known
    action: Integers  # number of the action that the plan takes, -1 for no advice
    told: tuple[str, ...]  # in words: an action, "no clear difference: ..." or "either of ..."; empty for none
    open: Booleans  # whether the data leave it open which of several actions is best
    chance: Floats  # that the action is the best one; NaN where that is not known, or nothing else may be advised
    among: tuple[tuple[str, ...], ...]  # all actions that the data do not tell apart, where they are several
    stake: Floats  # how much less the least of those is worth than the action; NaN where there is one alone
    visits: Integers  # how often the action was tried in that state
    rival: Integers  # second-best action, -1 where there is none
    gap: Floats  # how much less that is worth; NaN where there is none
    out_of_range: tuple[tuple[str, ...], ...]  # columns whose number is smaller or larger than any in the data
    reason: tuple[str, ...]  # why there is no advice; empty where there is


class AdviceLine(NamedTuple):
    """A piece of advice: what is known of one state at one decision. None where there is none, or it is not known."""

    decision: int  # how many were made before
    state: int
    words: tuple[str, ...]  # for the state, one for each axis of the recipe
    action: int = -1
    advised: str | None = None
    visits: int | None = None  # how often the advised action was tried
    weight: float | None = None  # of the regularizer's target, in its row
    value: float | None = None
    rival: int = -1
    runner_up: str | None = None
    gap: float | None = None  # how much less the runner-up is worth
    chance: float | None = None  # that the advised action is the best one
    among: tuple[str, ...] = ()  # all actions that may be taken as well, where they are several
    stake: float | None = None  # how much less the least of those is worth
    open: bool = False  # whether the data leave it open which of them is best; else they are equally good by the plan
    others: int = 0  # actions that were ever tried there besides the advised one

    @property
    def told(self) -> str | None:
        """The advice in words."""
        return sets.in_words(self.among, tied=not self.open) if self.among else self.advised

    @property
    def no_rival(self) -> str:
        """Why there is no runner-up, in words."""
        return "others tried too seldom" if self.others else "nothing else tried"


@dataclass(frozen=True)
class Policy:
    """One advised action for each state, or none; for a fixed horizon, one for each decision and state."""

    recipe: Recipe  # raw columns -> state
    action_names: tuple[str, ...]
    actions: Integers  # (S,) or, for a horizon of H decisions, (H, S); -1 for no advice
    visits: Integers  # (S, A)
    action_values: Floats  # (S, A) or (H, S, A); minus infinity where an action may not be chosen
    settings: Mapping[str, Any] = field(default_factory=dict)  # how it was learned
    data: Mapping[str, Any] = field(default_factory=dict)  # from what it was learned
    chances: Floats | None = None  # like action_values: that each action is the best one; None where nobody asked

    def __post_init__(self) -> None:
        S, A = self.recipe.n_states, len(self.action_names)
        shape = self.actions.shape
        fits = shape[-1:] == (S,) and len(shape) in (1, 2) and self.action_values.shape == (*shape, A)
        if not fits or self.visits.shape != (S, A):
            raise InputError(
                f"A policy of {S} states and {A} actions has advice {shape}, visits {self.visits.shape} and action "
                f"values {self.action_values.shape}; these do not fit together."
            )
        if self.actions.min(initial=-1) < -1 or self.actions.max(initial=-1) >= A:
            raise InputError(f"A policy of {A} actions advises action number {self.actions.max()}.")
        twice = [name for name, often in Counter(self.action_names).items() if often > 1]
        if twice:
            raise InputError(f"A policy's actions need different names; {twice[0]!r} is there more than once.")
        if self.visits.min(initial=0) < 0:
            raise InputError("A policy's visits cannot be negative.")
        if not self.action_values.max(initial=-np.inf) < np.inf:
            raise InputError(
                "A policy's action values are numbers, or minus infinity where an action may not be chosen."
            )
        own = np.take_along_axis(self.action_values, np.maximum(self.actions, 0)[..., None], axis=-1)[..., 0]
        worthless = np.isneginf(own) & (self.actions >= 0)
        if worthless.any():
            *_, state = first(worthless)
            raise InputError(f"A policy advises only what has a value; in state number {state} it does not.")
        if self.chances is not None:
            if self.chances.shape != self.action_values.shape:
                raise InputError(f"A policy has a chance for each of its action values; got {self.chances.shape}.")
            if not (self.chances.min(initial=0) >= 0 and self.chances.max(initial=0) <= 1):
                raise InputError("A policy's chances lie between 0 and 1.")

    @property
    def horizon(self) -> int | None:
        """How many decisions the policy plans for; None if it does not depend on time."""
        return len(self.actions) if self.actions.ndim == 2 else None

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the states."""
        return self.recipe.names

    def apply(self, rows: Any, *, step: Any = None) -> Advice:
        """Advise on raw rows: a mapping of columns, or anything `certeq.read` takes.

        Rows whose state is unknown or has no advice are listed with the reason, never guessed. For a policy with a
        horizon, ``step`` says how many decisions were made before each row (a whole number, or one per row). Where last
        values were taken for missing ones when the policy was learned, they are here, in the order that the rows'
        episode and time tell.
        """
        table, lost, why = self._carry(rows if isinstance(rows, Mapping) else _columns(rows))
        state = self.recipe.encode(table)
        state[lost] = -1
        known = state >= 0
        where = np.maximum(state, 0)
        when, late = self._when(len(state), step)
        told = known & ~late
        action, visits = np.where(told, self.actions[*when, where], -1), np.where(told, self.support[*when, where], 0)
        reasons = np.full(len(state), "", dtype=object)
        reasons[known & (action < 0)] = "no action was tried often enough in this state"
        reasons[known & late] = f"the policy plans for {self.horizon} decisions"
        unknown = np.flatnonzero(~known)
        reasons[unknown] = self.recipe.explain_many(table, unknown)
        reasons[lost] = why
        rival, gap = (part[*when, where] for part in self.runner_up())
        advised = action >= 0
        beside = np.where(advised, rival, -1), np.where(advised, gap, np.nan)
        chance, stake = (np.where(advised, part[*when, where], np.nan) for part in (self.chance, self.stake))
        words, among = self._words(np.where(advised, where, -1), when)
        beyond = self._beyond(table, len(state))
        undecided = advised & self.open[*when, where]
        return Advice(state, action, words, undecided, chance, among, stake, visits, *beside, beyond, tuple(reasons))

    def _carry(self, table: Mapping[str, Any]) -> tuple[Mapping[str, Any], Integers, str]:
        """The table with last values for missing ones, if they were taken; rows that lack one and its order; why."""
        how, nobody = self.carried, np.zeros(0, dtype=np.int64)
        if how is None:
            return table, nobody, ""
        gone = {name: values.missing for name, values in self.recipe.read(table).items() if name in how.columns}
        lost = np.flatnonzero(np.logical_or.reduce([*gone.values()]))
        if not len(lost):
            return table, nobody, ""
        by = [name for name in (how.episode, how.time) if name is not None]
        order, why = " and ".join(map(repr, by)), ": fill it in"
        if how.marked:
            pass  # where episodes begin and end, new rows do not say
        elif not all(name in table for name in by):
            why += f", or give the rows {order} too"
        else:
            from certeq.data.reading.blanks import carry_forward

            table, unknown = carry_forward(table, how)
            lost, why = np.flatnonzero(unknown), f", and {order} {'do' if len(by) > 1 else 'does'} not tell which{why}"
        names = " or ".join(repr(name) for name, missing in gone.items() if missing.any())
        return (
            table,
            lost,
            f"{names} is missing, for which the policy was learned with the last value of the episode{why}",
        )

    def _words(
        self, state: Integers, when: tuple[Integers, ...]
    ) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """The advice on each row in words, and the set where it is one; each place of the policy is told once."""
        place = state + (when[0] * len(self.visits) if when else 0)
        told, which = np.unique(np.where(state < 0, -1, place), return_inverse=True)
        words: list[tuple[str, Names]] = []
        for one in told.tolist():
            at = () if one < 0 else (one,) if self.horizon is None else divmod(one, len(self.visits))
            among = self._set(*at) if at and self._several[at] else ()
            alone = self.action_names[self.actions[at]] if at else ""
            words.append((sets.in_words(among, tied=not self.open[at]) if among else alone, among))
        return tuple(words[i][0] for i in which), tuple(words[i][1] for i in which)

    def _beyond(self, table: Mapping[str, Any], n: int) -> tuple[tuple[str, ...], ...]:
        """Columns of each row whose number lies outside of what the data had."""
        found: list[tuple[str, ...]] = [()] * n
        for name, (low, high) in self.ranges.items():
            numbers = column(table[name], name).numbers()
            for row in np.flatnonzero((numbers < low) | (numbers > high)):
                found[row] = (*found[row], name)
        return tuple(found)

    @cached_property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The least and the largest number that the data had in each column; empty where the file does not tell."""
        told = self.data.get("ranges", {})
        good = isinstance(told, Mapping) and all(
            isinstance(span, list | tuple) and len(span) == 2 and all(isinstance(x, int | float) for x in span)
            for span in told.values()
        )
        if not good:
            raise InputError("The policy file is damaged: data.ranges must hold two numbers for each column.")
        known = self.recipe.column_names
        return {name: (float(low), float(high)) for name, (low, high) in told.items() if name in known}

    @cached_property
    def carried(self) -> Carried | None:
        """Columns in which last values were taken for missing ones when the policy was learned."""
        told = self.data.get("carried")
        if told is None:
            return None
        names = told.get("columns") if isinstance(told, Mapping) else None
        by = [told.get(role) for role in ("episode", "time")] if isinstance(told, Mapping) else []
        good = (
            isinstance(names, list | tuple)
            and len(names) > 0
            and all(name in self.recipe.column_names for name in names)
        )
        if not good or not all(name is None or isinstance(name, str) for name in by):
            raise InputError("The policy file is damaged: data.carried must name columns, an episode and a time.")
        return Carried(tuple(names or ()), by[0], by[1], bool(told.get("marked")))

    def _when(self, rows: int, step: Any) -> tuple[tuple[Integers, ...], Any]:
        """Which decision each row is about, and whether that is beyond the horizon."""
        if self.horizon is None:
            return (), np.zeros(rows, dtype=bool)
        if step is None:
            raise InputError(
                f"This policy plans for {self.horizon} decisions: say how many were made before, with step= (--step)."
            )
        t = read_steps(step, rows)
        late = (t < 0) | (t >= self.horizon)
        return (np.where(late, 0, t).astype(np.int64),), late

    def act(self, rows: Any, *, step: Any = None) -> list[str | None]:
        """Advise on raw rows: the name of an action for each, or None."""
        advised = self.apply(rows, step=step).action
        return [self.action_names[a] if a >= 0 else None for a in advised]

    @cached_property
    def first(self) -> Policy:
        """The policy at the first decision; without a horizon, at any."""
        here = slice(None) if self.horizon is None else 0
        chances = None if self.chances is None else self.chances[here]
        return replace(self, actions=self.actions[here], action_values=self.action_values[here], chances=chances)

    @cached_property
    def support(self) -> Integers:
        """How often the advised action was tried, like ``actions``; 0 where there is no advice."""
        tried = self.visits[np.arange(len(self.visits)), np.maximum(self.actions, 0)]
        return np.where(self.actions >= 0, tried, 0)

    @cached_property
    def tied(self) -> Booleans:
        """Which actions are as good as the advised one, like ``action_values``; none where there is no advice."""
        own = np.take_along_axis(self.action_values, np.maximum(self.actions, 0)[..., None], axis=-1)
        return np.asarray((self.action_values >= own) & (self.actions >= 0)[..., None])

    @property
    def min_chance(self) -> float:
        """The chance from which on an action is advised alone."""
        said = self.settings.get("min_chance", defaults.MIN_CHANCE)
        return float(said) if isinstance(said, int | float) and 0 <= said <= 1 else defaults.MIN_CHANCE

    def stricter(self, min_chance: float) -> Policy:
        """The same policy with another chance from which on an action is advised alone."""
        limit = float(within("min_chance", min_chance, 0, 1))
        return replace(self, settings={**self.settings, "min_chance": limit})

    @cached_property
    def chance(self) -> Floats:
        """The chance that the advised action is the best one, like ``actions``; NaN without a choice or an answer."""
        if self.chances is None:
            return np.full(self.actions.shape, np.nan)
        own = np.take_along_axis(self.chances, np.maximum(self.actions, 0)[..., None], axis=-1)[..., 0]
        return np.where(self.runner_up()[0] >= 0, own, np.nan)

    @cached_property
    def among(self) -> Booleans:
        """The advice as sets of actions, like ``action_values``: what is as good, and what may well be better."""
        if self.chances is None:
            return self.tied
        return self.tied | (sets.likely(self.chances, self.actions, self.min_chance) & np.isfinite(self.action_values))

    @cached_property
    def open(self) -> Booleans:
        """Where the data leave it open which of several actions is the best, like ``actions``; not where all tie."""
        return np.asarray((self.among & ~self.tied).any(axis=-1))

    @property
    def clear(self) -> float:
        """The chance from which on an action is called clearly best: the usual one where one is advised in any case."""
        return self.min_chance or defaults.MIN_CHANCE

    @cached_property
    def stake(self) -> Floats:
        """How much less the least of the set is worth than the advised action, like ``actions``; NaN for one alone."""
        own = np.take_along_axis(self.action_values, np.maximum(self.actions, 0)[..., None], axis=-1)
        lost = np.where(self.among, own - np.where(self.among, self.action_values, 0.0), 0.0).max(axis=-1, initial=0.0)
        return np.where(self._several, lost, np.nan)

    @cached_property
    def _several(self) -> Booleans:
        """Whether the advice is more than one action, like ``actions``."""
        return np.asarray(self.among.sum(axis=-1) > 1)

    def _set(self, *at: int) -> Names:
        """The names of a set of actions, the most valuable first."""
        which = np.flatnonzero(self.among[at])
        order = np.argsort(-self.action_values[at][which], kind="stable")
        return tuple(self.action_names[a] for a in which[order])

    def runner_up(self) -> tuple[Integers, Floats]:
        """Second-best action of each state (-1 if there is none) and how much worse it is, both like ``actions``."""
        return self._runner_up

    @cached_property
    def _runner_up(self) -> tuple[Integers, Floats]:
        best = np.maximum(self.actions, 0)[..., None]
        rest = self.action_values.copy()
        np.put_along_axis(rest, best, -np.inf, axis=-1)
        second = rest.argmax(axis=-1)
        left = np.take_along_axis(rest, second[..., None], axis=-1)[..., 0]
        exists = np.isfinite(left) & (self.actions >= 0)
        gap = np.take_along_axis(self.action_values, best, axis=-1)[..., 0] - np.where(exists, left, 0)
        return np.where(exists, second, -1), np.where(exists, gap, np.nan)

    def pieces(
        self, states: ArrayLike | None = None, *, weight: Floats | None = None, values: Floats | None = None
    ) -> Iterator[AdviceLine]:
        """List the advice, decision by decision and state by state: the one table that all others are made of.

        Parameters
        ----------
        states
            Numbers of the states to list, in order: all by default. Words are made for these alone.
        weight
            Of the regularizer's target in each pair, ``(S, A)`` or what broadcasts to it; not listed unless given.
        values
            Of the states, like ``actions``; unless given, of the advised actions.
        """
        shown = np.arange(len(self.visits)) if states is None else np.asarray(states, dtype=np.int64)
        names, words = [*self.action_names, None], self.recipe.parts(shown)
        tried = ((self.visits > 0).sum(axis=1) - 1).tolist()  # besides the advised action
        certain = self.chance, self.stake, self._several, self.open
        actions, support, rival, gap, *known = (
            np.atleast_2d(part)[:, shown] for part in (self.actions, self.support, *self.runner_up(), *certain)
        )
        pair = shown, np.maximum(actions, 0)
        share = np.broadcast_to(np.nan if weight is None else weight, self.visits.shape)[pair]
        q = self.action_values.reshape(len(actions), *self.visits.shape)
        worth = q[np.arange(len(q))[:, None], *pair] if values is None else np.atleast_2d(values)[:, shown]
        for t, columns in enumerate(zip(actions, support, share, worth, rival, gap, *known, strict=True)):
            lines = zip(shown.tolist(), words, *(column.tolist() for column in columns), strict=True)
            for s, word, a, visits, w, value, b, less, chance, stake, many, undecided in lines:
                if a < 0:
                    yield AdviceLine(t, s, word)
                    continue
                told = visits, None if weight is None else w, value
                second = b, names[b], less if b >= 0 else None
                sure = None if np.isnan(chance) else chance
                several_of = self._set(*([] if self.horizon is None else [t]), s) if many else ()
                at_stake = stake if many else None
                yield AdviceLine(
                    t, s, word, a, names[a], *told, *second, sure, several_of, at_stake, undecided, tried[s]
                )

    def __repr__(self) -> str:
        advised, undecided = (int(part.sum()) for part in (self.first.actions >= 0, self.first.open))
        when = "" if self.horizon is None else f", {several(self.horizon, 'decision')}"
        sure = "chances not computed" if self.chances is None else f"no clear difference in {undecided:,}"
        of = f"{several(len(self.visits), 'state')}, {several(len(self.action_names), 'action')}"
        return f"Policy({of}{when}: advice in {advised:,}, {sure})"

    def _repr_html_(self) -> str:
        S = len(self.visits)
        when = "" if self.horizon is None else f", at the first of {several(self.horizon, 'decision')}"
        header = (*self.recipe.axis_names, "advised", "chance it is best", "tried", "runner-up", "gap")
        pieces = self.first.pieces(range(min(S, MOST)))
        rows = ((*piece.words, piece.told, piece.chance, piece.visits, piece.runner_up, piece.gap) for piece in pieces)
        return notebook(f"Policy for {several(S, 'state')}{when}", header, rows, S)

    def to_bytes(self) -> bytes:
        """The content of a policy file; what is too long for people to read has no line breaks."""
        return policy_file.write(self)

    def to_json(self) -> dict[str, Any]:
        """Write the policy as plain values, as they are in its file."""
        plain: dict[str, Any] = msgspec.json.decode(self.to_bytes())
        return plain

    @classmethod
    def from_json(cls, value: Any) -> Policy:
        """Read what `to_json` or `to_bytes` wrote, or say what is wrong with it."""
        return cls(*policy_file.read(value))

    @property
    def readable(self) -> bool:
        """Whether people can read it state by state; where there are more, files hold it as arrays."""
        return self.action_values.size <= policy_file.READABLE

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the policy to a file, whole or not at all: as arrays if it is called .npz, else as JSON."""
        file = Path(path)
        content = self.to_archive if file.suffix.lower() == ".npz" else self.to_bytes()
        write_files({file: content}, force=force)

    def to_archive(self, file: BinaryIO) -> None:
        """Write the policy as arrays, a fraction of what the readable file takes, to an open file."""
        policy_archive.write(self, file)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file, readable or of arrays."""
        try:
            if policy_archive.is_one(path):
                return cls(*policy_archive.read(path))
            return cls.from_json(policy_file.content(path))
        except InputError as error:
            raise (error if str(path) in str(error) else InputError(f"{path}: {error}")) from None
        except MemoryError:
            raise InputError(f"{path} needs more memory than there is.") from None


def _columns(rows: Any) -> Mapping[str, Any]:
    from certeq.data.reading import columns

    return columns(rows)
