"""The policy file: JSON that people can read and other programs can use; it holds no code.

Its format has a version of its own (``VERSION``): a file of an older version is read for ever, a file of a newer one is
refused with a clear word.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType

import certeq
from certeq.base.arrays import Integers
from certeq.base.errors import InputError
from certeq.base.forms import Finite, Whole, check_json, damaged, fill, table, whole_table
from certeq.base.limits import check_lengths, most, way_out
from certeq.data.recipes import Recipe
from certeq.data.recipes.recipe import RecipeForm

if TYPE_CHECKING:
    from certeq.learning.policy import Policy

FORMAT, VERSION, WHAT = "certeq-policy", 1, "policy file"
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
READABLE = 1_000_000  # action values; with more, line breaks would double the file and take most of the time


class Header(Struct):
    """What a file says of itself, which is read first."""

    format: Any = None
    version: Whole | None = None


class State(Struct, kw_only=True, gc=False):
    """A state; names are for people, and later versions may word them differently."""

    name: str = ""
    cell: list[Whole]
    visits: list[Whole]


class PolicyForm(Struct, kw_only=True):
    """A policy file of version 1. Fields that are not here are passed over."""

    format: str = FORMAT
    version: Whole = VERSION
    certeq: str = certeq.__version__
    actions: Annotated[list[str], Meta(min_length=1)]
    horizon: Whole | UnsetType | None = UNSET
    states: list[State]
    advice: list[str | list[str | None] | None]  # (S,), or with a horizon (H, S)
    action_values: list[list[Finite | list[Finite | None] | None]]  # (S, A), or with a horizon (H, S, A)
    chances: list[list[Share | list[Share]]] | None = None  # like action_values; null where nobody asked
    recipe: RecipeForm
    settings: dict[str, Any] = {}
    data: dict[str, Any] = {}


def write(policy: Policy) -> bytes:
    """The content of a policy file; what is too long for people to read has no line breaks."""
    names = np.array([*policy.action_names, None], dtype=object)
    per_state = zip(policy.recipe.names, policy.recipe.cells.tolist(), policy.visits.tolist(), strict=True)
    form = PolicyForm(
        actions=list(policy.action_names),
        horizon=policy.horizon,
        states=[State(name=name, cell=cell, visits=visits) for name, cell, visits in per_state],
        advice=names[policy.actions].tolist(),
        action_values=policy.action_values.tolist(),  # minus infinity is written as null
        chances=None if policy.chances is None else policy.chances.tolist(),
        recipe=policy.recipe.form,
        settings=dict(policy.settings),
        data=dict(policy.data),
    )
    try:
        text = msgspec.json.encode(form)
    except (ValueError, RecursionError) as error:  # half a surrogate pair, or settings without end
        raise InputError(f"The policy cannot be written as JSON: {error}.") from None
    return (text if policy.action_values.size > READABLE else msgspec.json.format(text, indent=2)) + b"\n"


def content(path: str | Path) -> bytes:
    """The bytes of a policy file, if they are not too many."""
    file = Path(path)
    try:
        if not file.is_file():
            raise InputError(f"There is no policy file {file}." if not file.exists() else f"{file} is not a file.")
        if file.stat().st_size > most("policy_bytes"):
            raise InputError(
                f"{file} is larger than a policy file can be ({most('policy_bytes'):,} bytes). If it is one, "
                f"{way_out('policy_bytes')}."
            )
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"Could not read {file}: {error.strerror}.") from None


def read(given: Any) -> tuple[Any, ...]:
    """Read the fields of a policy out of JSON in bytes, or of the plain values in it; or say what is wrong with it."""
    header = fill(Header, given, WHAT)
    if header.format != FORMAT:
        raise InputError(f'This is not a policy file: it does not say "format": "{FORMAT}".')
    if header.version is None or header.version < 1 or header.version % 1:
        raise damaged(WHAT, "version", "it must be a whole number, at least 1")
    if header.version > VERSION:
        raise InputError(
            f"The policy file has version {header.version:g}; this certeq reads up to {VERSION}. Upgrade certeq."
        )
    if isinstance(given, bytes):
        check_json(given, WHAT)
    form = fill(PolicyForm, given, WHAT)
    check_lengths("The list of actions", form.actions)
    recipe, n_actions = Recipe.of(form.recipe), len(form.actions)
    _check_order(form)
    actions = _advice(form, recipe.n_states)
    counted = [state.visits for state in form.states]
    visits = whole_table(WHAT, "states[].visits", counted, (recipe.n_states, n_actions))
    values = table(WHAT, "action_values", form.action_values, (*actions.shape, n_actions), np.float64)
    values[np.isnan(values)] = -np.inf
    chances = None if form.chances is None else table(WHAT, "chances", form.chances, values.shape, np.float64)
    return recipe, tuple(form.actions), actions, visits, values, form.settings, form.data, chances


def _check_order(form: PolicyForm) -> None:
    """Raise unless the states are those of the recipe, in the same order."""
    cells, expected = [state.cell for state in form.states], form.recipe.cells
    if len(cells) != len(expected):
        raise damaged(WHAT, "states", f"it has {len(cells):,} states, but the recipe has {len(expected):,} cells")
    if cells != expected:
        i = next(i for i, cell in enumerate(cells) if cell != expected[i])
        raise damaged(
            WHAT, f"states[{i}].cell", f"it is {cells[i]}, but in the recipe's order it would be {expected[i]}"
        )


def _advice(form: PolicyForm, n_states: int) -> Integers:
    """Numbers of the advised actions, ``(S,)`` or ``(H, S)``; -1 where there is no advice."""
    horizon = len(form.advice) if any(isinstance(line, list) for line in form.advice) else None
    if form.horizon not in (UNSET, horizon):
        planned = "any decision" if horizon is None else f"{horizon:,} decisions"
        raise damaged(WHAT, "horizon", f"it is {form.horizon}, but the advice is for {planned}")
    names = table(WHAT, "advice", form.advice, (n_states,) if horizon is None else (horizon, n_states), object)
    number = {name: i for i, name in enumerate(form.actions)} | {None: -1}
    odd = next((name for name in names.flat if name not in number), None)
    if odd is not None:
        raise damaged(WHAT, "advice", f"{odd!r} is none of the actions, {', '.join(form.actions)}")
    return np.array([number[name] for name in names.flat], dtype=np.int64).reshape(names.shape)
