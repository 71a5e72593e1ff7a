"""The policy archive: what a policy file says, as arrays (.npz), where there are too many states to read.

Its format has a version of its own (``VERSION``), as that of the readable file has; both are read with the same checks.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

import certeq
from certeq.base.archives import of_size, unpack
from certeq.base.doors import door
from certeq.base.errors import InputError
from certeq.base.forms import EXACT, Whole, check_json, damaged, fill
from certeq.base.limits import check_lengths
from certeq.data.recipes import Recipe

if TYPE_CHECKING:
    from certeq.learning.policy import Policy

FORMAT, VERSION, WHAT = "certeq-policy-arrays", 1, "policy file"
START = b"PK\x03\x04"  # of every such file
ARRAYS: dict[str, type[np.generic]] = {
    "about": np.uint8,  # JSON
    "cells": np.int32,  # (S * axes,): codes of each state
    "visits": np.int64,  # (S * A,)
    "advice": np.int32,  # (S,), or with a horizon (H * S,): numbers of actions, -1 for none
    "action_values": np.float64,  # (S * A,) or (H * S * A,); minus infinity where an action may not be chosen
    "chances": np.float64,  # like action_values, or not there
}


class Axes(Struct):
    """A recipe without its cells."""

    version: Whole
    axes: Annotated[list[Any], Meta(min_length=1)]


class About(Struct, kw_only=True):
    """What the arrays are about."""

    format: str = FORMAT
    version: Whole = VERSION
    certeq: str = certeq.__version__
    actions: Annotated[list[str], Meta(min_length=1)]
    horizon: Whole | None
    recipe: Axes
    settings: dict[str, Any] = {}
    data: dict[str, Any] = {}


def write(policy: Policy, file: BinaryIO) -> None:
    """Write a policy to an open file, array after array."""
    form = policy.recipe.form_without_cells
    about = About(
        actions=list(policy.action_names),
        horizon=policy.horizon,
        recipe=Axes(*form),
        settings=dict(policy.settings),
        data=dict(policy.data),
    )
    try:
        text = msgspec.json.encode(about)
    except (ValueError, RecursionError) as error:  # half a surrogate pair, or settings without end
        raise InputError(f"The policy cannot be written: {error}.") from None
    given: dict[str, NDArray[Any] | None] = {
        "about": np.frombuffer(text, dtype=np.uint8),
        "cells": policy.recipe.cells,
        "visits": policy.visits,
        "advice": policy.actions,
        "action_values": policy.action_values,
        "chances": policy.chances,
    }
    arrays: dict[str, Any] = {
        name: each.ravel().astype(ARRAYS[name], copy=False) for name, each in given.items() if each is not None
    }
    np.savez(file, **arrays)  # of numbers alone


def is_one(path: str | Path) -> bool:
    """Whether a file begins as such a file does."""
    try:
        if not Path(path).is_file():
            return False  # a pipe, which would be waited for without end, is none
        with Path(path).open("rb") as file:
            return file.read(len(START)) == START
    except OSError:
        return False  # whoever reads it will say why it cannot be read


def read(path: str | Path) -> tuple[Any, ...]:
    """Read the fields of a policy, or say what is wrong with the file."""
    arrays = unpack(path, ARRAYS, WHAT)
    with door(str(path), f"It is damaged, or not a {WHAT}."):
        return _fields(arrays)


def _fields(arrays: dict[str, NDArray[Any]]) -> tuple[Any, ...]:
    text = arrays["about"].tobytes()
    check_json(text, WHAT)
    header = fill(dict[str, Any], text, WHAT)
    if header.get("format") != FORMAT:
        raise InputError(f'This is not a {WHAT}: it does not say "format": "{FORMAT}".')
    about = fill(About, text, WHAT)
    if about.version != VERSION:
        raise InputError(f"The {WHAT} has version {about.version:g}; this certeq reads {VERSION}. Upgrade certeq.")
    check_lengths("The list of actions", about.actions)
    missing = [name for name in ARRAYS if name not in arrays and name != "chances"]
    if missing:
        raise damaged(WHAT, missing[0], "it is missing")
    axes, A = Recipe.read_axes(about.recipe.version, about.recipe.axes), len(about.actions)
    S = len(arrays["cells"]) // len(axes)
    recipe = Recipe(axes, of_size(arrays["cells"], S * len(axes), "cells").astype(np.int64).reshape(S, len(axes)))
    shape = (S,) if about.horizon is None else (int(about.horizon), S)
    sizes = {"visits": (S, A), "advice": shape, "action_values": (*shape, A), "chances": (*shape, A)}
    found = {
        name: of_size(arrays[name], int(np.prod(size)), name).reshape(size)
        for name, size in sizes.items()
        if name in arrays
    }
    if found["visits"].max(initial=0) > EXACT:
        raise damaged(WHAT, "visits", f"they must be whole numbers up to {EXACT:,}")
    actions = found["advice"].astype(np.int64)
    told = actions, found["visits"], found["action_values"], about.settings, about.data, found.get("chances")
    return recipe, tuple(about.actions), *told
