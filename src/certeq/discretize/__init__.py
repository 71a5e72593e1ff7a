"""Continuous columns -> states, and the recipe kept so that new rows can be mapped the same way."""

from certeq.discretize.axes import Axis, Bins, Clusters, Labels
from certeq.discretize.columns import Column
from certeq.discretize.containers import column
from certeq.discretize.fitting import MAX_STATES, fit, fit_encode
from certeq.discretize.recipe import Recipe
from certeq.discretize.report import BinningReport, MarkovCheck, binning_report, markov_check

__all__ = [
    "MAX_STATES",
    "Axis",
    "BinningReport",
    "Bins",
    "Clusters",
    "Column",
    "Labels",
    "MarkovCheck",
    "Recipe",
    "binning_report",
    "column",
    "fit",
    "fit_encode",
    "markov_check",
]
