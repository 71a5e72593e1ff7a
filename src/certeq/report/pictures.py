"""Pictures for notebooks and papers: each takes what certeq found and returns a matplotlib Figure.

Nothing is shown or saved by itself: a notebook shows a figure that a cell returns, and ``figure.savefig("x.pdf")``
keeps it. Matplotlib is imported when the first picture is drawn.
"""

from __future__ import annotations

from certeq.report.comparing import comparison
from certeq.report.curves import (
    chances,
    cuts,
    departures,
    estimates,
    frontier,
    origin,
    reasons,
    trade_off,
    value_densities,
)
from certeq.report.maps import count_map, implied_prior_map, policy_map, weight_map
from certeq.report.style import to_png, to_svg

__all__ = [
    "chances",
    "comparison",
    "count_map",
    "cuts",
    "departures",
    "estimates",
    "frontier",
    "implied_prior_map",
    "origin",
    "policy_map",
    "reasons",
    "to_png",
    "to_svg",
    "trade_off",
    "value_densities",
    "weight_map",
]
