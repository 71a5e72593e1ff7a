"""The worlds of the paper, each a fully known MDP, and a reader for tables of other worlds.

To add one: a file that tells the world's rules and builds it, and a line in ``ENVIRONMENTS``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from certeq.base.errors import unknown
from certeq.model.mdp import MDP
from certeq.worlds.grid import grid
from certeq.worlds.loop import loop
from certeq.worlds.random_chain import random_chain
from certeq.worlds.river_swim import river_swim
from certeq.worlds.stay_or_leave import stay_or_leave
from certeq.worlds.table import from_table
from certeq.worlds.tumor import tumor

__all__ = [
    "ENVIRONMENTS",
    "environment",
    "from_table",
    "grid",
    "loop",
    "random_chain",
    "river_swim",
    "settings_of",
    "stay_or_leave",
    "tumor",
]

ENVIRONMENTS: dict[str, Callable[..., MDP]] = {
    "random_chain": random_chain,
    "river_swim": river_swim,
    "loop": loop,
    "stay_or_leave": stay_or_leave,
    "grid": grid,
    "tumor": tumor,
}


def environment(name: str, **settings: Any) -> MDP:
    """Build a world of the catalogue by its name, with settings of its own."""
    known = settings_of(name)
    for setting in settings:
        if setting not in known:
            raise unknown(f"setting of {name}", setting, known)
    return ENVIRONMENTS[name](**settings)


def settings_of(name: str) -> dict[str, Any]:
    """The settings of a world and what they are by default; one that is drawn at random has ``rng`` among them."""
    if name not in ENVIRONMENTS:
        raise unknown("environment", name, ENVIRONMENTS)
    return {each: about.default for each, about in inspect.signature(ENVIRONMENTS[name]).parameters.items()}
