"""Continuous columns -> states, and the recipe kept so that new rows can be mapped the same way."""

from certeq.discretize.axes import Axis, Bins, Clusters, Labels
from certeq.discretize.columns import Column
from certeq.discretize.containers import column
from certeq.discretize.fitting import MAX_STATES, fit, fit_encode
from certeq.discretize.recipe import Recipe

__all__ = [
    "MAX_STATES",
    "Axis",
    "Bins",
    "Clusters",
    "Column",
    "Labels",
    "Recipe",
    "column",
    "fit",
    "fit_encode",
]
