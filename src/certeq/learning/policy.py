"""Policy: the advice, with the support behind it and the recipe for new rows. What is kept, shipped and applied.

A policy file is JSON that people can read and other programs can use; it holds no code. Its format has a version of its
own (``VERSION``): a file of an older version is read for ever, a file of a newer one is refused with a clear word.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import certeq
from certeq.base.arrays import Floats, Integers, first, whole
from certeq.base.display import notebook, several, shorten
from certeq.base.doors import door
from certeq.base.errors import InputError
from certeq.base.limits import most, way_out
from certeq.base.texts import json_text
from certeq.base.writing import write_files
from certeq.data.recipes import Recipe

FORMAT = "certeq-policy"
VERSION = 1
READABLE = 1_000_000  # action values; with more, line breaks would double the file and take most of the time


@dataclass(frozen=True)
class Advice:
    """What a policy says about some rows; arrays of one length, one entry per row."""

    state: Integers  # state number, -1 if the row's state is not known
    action: Integers  # action number, -1 for no advice
    visits: Integers  # how often the advised action was tried in that state
    reason: tuple[str, ...]  # why there is no advice; empty where there is


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

    def __post_init__(self) -> None:
        S, A = len(self.recipe.names), len(self.action_names)
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
        horizon, ``step`` says how many decisions were made before each row (a whole number, or one per row).
        """
        table = rows if isinstance(rows, Mapping) else _columns(rows)
        state = self.recipe.encode(table)
        known = state >= 0
        where = np.maximum(state, 0)
        action, late = self._action(where, step)
        action = np.where(known & ~late, action, -1)
        visits = np.where(action >= 0, self.visits[where, np.maximum(action, 0)], 0)
        reasons = np.full(len(state), "", dtype=object)
        reasons[known & (action < 0)] = "no action was tried often enough in this state"
        reasons[known & late] = f"the policy plans for {self.horizon} decisions"
        unknown = np.flatnonzero(~known)
        reasons[unknown] = self.recipe.explain_many(table, unknown)
        return Advice(state, action, visits, tuple(reasons))

    def _action(self, state: Integers, step: Any) -> tuple[Integers, Any]:
        if self.horizon is None:
            return self.actions[state], np.zeros(len(state), dtype=bool)
        if step is None:
            raise InputError(
                f"This policy plans for {self.horizon} decisions: say how many were made before, with step= (--step)."
            )
        t = _steps(step, len(state))
        late = (t < 0) | (t >= self.horizon)
        return self.actions[np.where(late, 0, t).astype(np.int64), state], late

    def act(self, rows: Any, *, step: Any = None) -> list[str | None]:
        """Advise on raw rows: the name of an action for each, or None."""
        advised = self.apply(rows, step=step).action
        return [self.action_names[a] if a >= 0 else None for a in advised]

    def runner_up(self) -> tuple[Integers, Floats]:
        """Second-best action of each state (-1 if there is none) and how much worse it is, both like ``actions``."""
        order = np.where(np.isfinite(self.action_values), self.action_values, -np.inf)
        best = np.maximum(self.actions, 0)[..., None]
        rest = order.copy()
        np.put_along_axis(rest, best, -np.inf, axis=-1)
        second = rest.argmax(axis=-1)
        left = np.take_along_axis(rest, second[..., None], axis=-1)[..., 0]
        exists = np.isfinite(left) & (self.actions >= 0)
        gap = np.take_along_axis(order, best, axis=-1)[..., 0] - np.where(exists, left, 0)
        return np.where(exists, second, -1), np.where(exists, gap, np.nan)

    def _repr_html_(self) -> str:
        actions = np.atleast_2d(self.actions)[0].tolist()
        runner, gap = (np.atleast_2d(part)[0].tolist() for part in self.runner_up())
        names = [*self.action_names, "–"]
        rows = (
            (state, names[a], f"{self.visits[s, a]:,}" if a >= 0 else "–", names[b], f"{gap[s]:.3g}" if b >= 0 else "–")
            for s, (state, a, b) in enumerate(zip(self.state_names, actions, runner, strict=True))
        )
        when = "" if self.horizon is None else f", at the first of {several(self.horizon, 'decision')}"
        title = f"Policy for {several(len(actions), 'state')}{when}"
        return notebook(title, ("state", "advised", "tried", "runner-up", "gap"), rows, len(actions))

    def to_json(self) -> dict[str, Any]:
        """Write the policy as plain values."""
        names = [None if a < 0 else self.action_names[a] for a in self.actions.ravel()]
        advice = np.array(names, dtype=object).reshape(self.actions.shape).tolist()
        per_state = zip(self.recipe.names, self.recipe.cells.tolist(), self.visits.tolist(), strict=True)
        return {
            "format": FORMAT,
            "version": VERSION,
            "certeq": certeq.__version__,
            "actions": list(self.action_names),
            "horizon": self.horizon,
            "states": [{"name": n, "cell": c, "visits": v} for n, c, v in per_state],
            "advice": advice,
            "action_values": _finite(self.action_values),
            "recipe": self.recipe.to_json(),
            "settings": dict(self.settings),
            "data": dict(self.data),
        }

    def to_text(self) -> str:
        """Write the content of a policy file; what is too long for people to read has no line breaks."""
        return json_text(self.to_json(), compact=self.action_values.size > READABLE)

    @classmethod
    def from_json(cls, value: Any) -> Policy:
        """Read what `to_json` wrote, or say what is wrong with it."""
        try:
            return cls._read(value)
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"The policy file is damaged: {type(error).__name__} at {error}.") from None

    @classmethod
    def _read(cls, value: Any) -> Policy:
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise InputError(f'This is not a policy file: it does not say "format": "{FORMAT}".')
        version = whole("version", value.get("version"), 1)
        if version > VERSION:
            raise InputError(
                f"The policy file has version {version}; this certeq reads up to {VERSION}. Upgrade certeq."
            )
        missing = [k for k in ("actions", "states", "advice", "action_values", "recipe") if k not in value]
        if missing:
            raise InputError(f"The policy file lacks {missing[0]!r}.")
        recipe = Recipe.from_json(value["recipe"])
        names = _action_names(value["actions"])
        actions, q = _advice(value["advice"], names), _values(value["action_values"])
        visits = _visits(_list("states", value["states"]), recipe, len(names))
        policy = cls(recipe, names, actions, visits, q, _object("settings", value), _object("data", value))
        if "horizon" in value and value["horizon"] != policy.horizon:
            raise InputError(
                f"The policy file is damaged: its horizon is {_shown(value['horizon'])}, but its advice is for "
                f"{'any' if policy.horizon is None else policy.horizon} decisions."
            )
        return policy

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the policy to a file, whole or not at all."""
        write_files({Path(path): self.to_text()}, force=force)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file."""
        file = Path(path)
        with door(str(file), "It is not a policy file, as certeq learn writes it, or it is damaged."):
            if not file.is_file():
                raise InputError(f"There is no policy file {file}." if not file.exists() else f"{file} is not a file.")
            if file.stat().st_size > most("policy_bytes"):
                raise InputError(
                    f"{file} is larger than a policy file can be ({most('policy_bytes'):,} bytes). If it is one, "
                    f"{way_out('policy_bytes')}."
                )
            try:
                found = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse, object_pairs_hook=_once)
            except InputError:
                raise
            except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or a number of thousands of digits
                raise InputError(f"{file} is not a policy file: it is not JSON ({type(error).__name__}).") from None
            return cls.from_json(found)


def _refuse(constant: str) -> Any:
    raise InputError(f"The policy file holds {constant}, which is not a number.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of the file; what stands there twice would mean one thing to us and another to the next reader."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, often in Counter(name for name, _ in pairs).items() if often > 1)
        raise InputError(f"The policy file is damaged: it has {_shown(twice)} twice in one object.")
    return found


def _shown(value: Any) -> str:
    """A value of a file as a message shows it: not all of it, where it is long."""
    return shorten(repr(value), 80)


def _list(field: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise InputError(f"The policy file is damaged: {field!r} must be a list, not {type(value).__name__}.")
    return list(value)


def _object(field: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    found = value.get(field, {})
    if not isinstance(found, Mapping):
        raise InputError(f"The policy file is damaged: {field!r} must be an object, not {type(found).__name__}.")
    return found


def _action_names(value: Any) -> tuple[str, ...]:
    names = _list("actions", value)
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError("The policy file is damaged: 'actions' must be a list of names, at least one.")
    return tuple(names)


def _advice(value: Any, names: tuple[str, ...]) -> Integers:
    """Numbers of the advised actions, -1 where there is no advice."""
    advice = np.array(_list("advice", value), dtype=object)
    number = {name: i for i, name in enumerate(names)}
    for name in advice.flat:
        if name is not None and (not isinstance(name, str) or name not in number):
            there = shorten(", ".join(names), 200)
            raise InputError(f"The policy file advises {_shown(name)}, which is none of its actions: {there}.")
    numbers = [-1 if name is None else number[name] for name in advice.flat]
    return np.array(numbers, dtype=np.int64).reshape(advice.shape)


def _values(value: Any) -> Floats:
    """Action values, minus infinity where the file has null."""
    table = np.array(_list("action_values", value), dtype=object)
    for x in table.flat:
        if x is not None and (isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x)):
            raise InputError(
                f"The policy file is damaged: {_shown(x)} is among its action values, which are finite numbers or null."
            )
    numbers = [-np.inf if x is None else float(x) for x in table.flat]
    return np.array(numbers, dtype=np.float64).reshape(table.shape)


def _visits(states: list[Any], recipe: Recipe, n_actions: int) -> Integers:
    """Visits ``(S, A)`` of the states of a file, which must be those of its recipe, in the same order."""
    if len(states) != recipe.n_states:
        return np.zeros((len(states), n_actions), dtype=np.int64)  # which the policy will not take
    rows = []
    for i, (state, name, cell) in enumerate(zip(states, recipe.names, recipe.cells.tolist(), strict=True)):
        where = f"The policy file is damaged: state {i + 1}"
        if not isinstance(state, Mapping) or "visits" not in state:
            raise InputError(f"{where} must be an object with 'name', 'cell' and 'visits'.")
        if state.get("cell") != cell:  # names are for people, and later versions may word them differently
            raise InputError(
                f"{where} is {_shown(state.get('name'))} in cell {_shown(state.get('cell'))}, but by the recipe it is "
                f"{_shown(name)} in cell {cell}. The states must stand in the order of the recipe's cells."
            )
        visits = _list("visits", state["visits"])
        if len(visits) != n_actions:
            raise InputError(f"{where}, {_shown(name)}, has {len(visits)} visits for {n_actions} actions.")
        rows.append([_count(number, f"{where}, {_shown(name)}") for number in visits])
    return np.array(rows, dtype=np.int64)


def _count(number: Any, where: str) -> int:
    """A number of visits; 3.0 is one too, since some programs write whole numbers so."""
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        raise InputError(f"{where}, has {_shown(number)} visits; visits are whole numbers.")
    if not 0 <= number < 1 << 63:
        raise InputError(f"{where}, has visits that are negative or too many to be true.")
    return number


def _steps(step: Any, n: int) -> Any:
    """Decisions made before each of n rows: whole numbers, one for each row or one for all."""
    try:
        steps = np.asarray(step)
    except ValueError:
        steps = np.zeros((0, 0))  # lists of several lengths
    if steps.shape not in ((), (n,)):
        raise InputError(
            f"step must be one whole number, or one for each of the {n} rows; got an array of shape {steps.shape}."
        )
    if steps.dtype.kind not in "iuf":
        raise InputError(f"step must be a number of decisions, 0 or more; got {_first_word(steps)}.")
    bad = ~np.isfinite(steps) | (steps != np.round(steps))
    if bad.any():
        place = first(bad)
        at = f"step[{place[0]}]" if place else "step"
        raise InputError(f"step counts decisions, so it must be a whole number; {at} is {steps[place]}.")
    return np.broadcast_to(steps, (n,))


def _first_word(values: Any) -> str:
    """The first value that is no number, as a message shows it."""
    plain = values.ravel().tolist()
    odd = [x for x in plain if isinstance(x, bool) or not isinstance(x, int | float)]
    return repr((odd or plain or [None])[0])[:80]


def _columns(rows: Any) -> Mapping[str, Any]:
    from certeq.data.reading import columns

    return columns(rows)


def _finite(values: Floats) -> Any:
    """Nested lists with None for minus infinity, which JSON does not have."""
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()
