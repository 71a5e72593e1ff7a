"""Continuous columns -> states, and the recipe kept so that new rows can be mapped the same way."""

from certeq.data.recipes.axes import Axis, Bins, Clusters, Labels, OrMissing
from certeq.data.recipes.columns import Column
from certeq.data.recipes.containers import column
from certeq.data.recipes.fitting import MAX_STATES, fit, fit_encode
from certeq.data.recipes.recipe import Recipe

__all__ = [
    "MAX_STATES",
    "Axis",
    "Bins",
    "Clusters",
    "Column",
    "Labels",
    "OrMissing",
    "Recipe",
    "column",
    "fit",
    "fit_encode",
]
