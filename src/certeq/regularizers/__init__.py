"""Regularizers: functions ``counts -> Shrinkage(weight, target)``, all in one catalogue.

To add one, write a function in a file of its own and give it a line in ``REGULARIZERS``: it then has a name on the
command line, its settings are checked, and the contract test holds it to the laws that all of them obey.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from certeq.arrays import ArrayLike
from certeq.counts import Counts, as_counts
from certeq.errors import InputError, nearest, unknown
from certeq.regularizers.discount import discount as _discount
from certeq.regularizers.epsilon_greedy import epsilon_greedy, least_mse_epsilon_greedy
from certeq.regularizers.evidence import evidence
from certeq.regularizers.expert import expert_prior
from certeq.regularizers.least_mse import least_mse
from certeq.regularizers.none import none
from certeq.regularizers.shrinkage import Shrinkage
from certeq.regularizers.uniform import uniform_blend, uniform_prior

__all__ = ["DEFAULT", "REGULARIZERS", "Shrinkage", "check_settings", "settings_of", "shrink"]

REGULARIZERS: dict[str, Callable[..., Shrinkage]] = {
    "none": none,
    "discount": _discount,
    "uniform_prior": uniform_prior,
    "uniform_blend": uniform_blend,
    "expert_prior": expert_prior,
    "epsilon_greedy": epsilon_greedy,
    "least_mse": least_mse,
    "least_mse_epsilon_greedy": least_mse_epsilon_greedy,
    "evidence": evidence,
}
DEFAULT = "evidence"


def settings_of(regularizer: str) -> tuple[str, ...]:
    """Names of the settings a regularizer takes (``discount`` is passed on by whoever plans)."""
    if regularizer not in REGULARIZERS:
        raise unknown("regularizer", regularizer, REGULARIZERS)
    return tuple(inspect.signature(REGULARIZERS[regularizer]).parameters)[1:]


def check_settings(regularizer: str, settings: Iterable[str]) -> None:
    """Raise if a regularizer has no setting of one of these names."""
    named = [name for name in settings_of(regularizer) if name != "discount"]
    for name in settings:
        if name not in named:
            takes = f"It takes: {', '.join(named)}." if named else "It takes none."
            raise InputError(f"{regularizer!r} has no setting {name!r}.{nearest(name, named)} {takes}")


def shrink(
    counts: Counts | ArrayLike | Any,
    regularizer: str = DEFAULT,
    *,
    discount: ArrayLike | None = None,
    **settings: Any,
) -> Shrinkage:
    """Ask a regularizer of the catalogue for its weights and target.

    >>> from certeq import shrink
    >>> shrink([[[8, 0]], [[1, 1]]], "uniform_prior", magnitude=2.0).weight
    array([[0.2],
           [0.5]])
    """
    check_settings(regularizer, settings)
    if discount is not None and "discount" in settings_of(regularizer):
        settings["discount"] = discount
    return REGULARIZERS[regularizer](as_counts(counts), **settings)
