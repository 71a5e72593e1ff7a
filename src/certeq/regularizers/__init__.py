"""Regularizers: functions ``counts -> Shrinkage(weight, target)``, all in one catalogue.

To add one, write a function in a file of its own and give it a line in ``REGULARIZERS``: it then has a name on the
command line, its settings are checked, and the contract test holds it to the laws that all of them obey.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import cache
from typing import Any, NamedTuple

from certeq.base import defaults
from certeq.base.arrays import ArrayLike
from certeq.base.errors import InputError, nearest, unknown
from certeq.data.counts import Counts, as_counts
from certeq.regularizers.discount import discount as _discount
from certeq.regularizers.epsilon_greedy import epsilon_greedy, least_mse_epsilon_greedy
from certeq.regularizers.evidence import evidence
from certeq.regularizers.expert import expert_prior
from certeq.regularizers.learned_target import learned_target
from certeq.regularizers.least_mse import least_mse
from certeq.regularizers.none import none
from certeq.regularizers.shrinkage import Shrinkage
from certeq.regularizers.uniform import uniform_blend, uniform_prior

__all__ = ["ALIKE", "DEFAULT", "REGULARIZERS", "Shrinkage", "check_settings", "needs_of", "settings_of", "shrink"]

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
    "learned_target": learned_target,
}
DEFAULT = defaults.REGULARIZER
ALIKE = {"discount": "uniform_blend"}  # predicts no next state; by Theorem 1 the other plans alike, and does predict


def settings_of(regularizer: str) -> dict[str, Any]:
    """The settings a regularizer takes and what they are by default."""
    return dict(_taken(regularizer).settings)


def needs_of(regularizer: str) -> tuple[str, ...]:
    """Names of the settings that only the user can give: those without a default."""
    return _taken(regularizer).needs


class _Taken(NamedTuple):
    """What a regularizer takes beside counts."""

    settings: dict[str, Any]  # and what they are by default
    needs: tuple[str, ...]  # those that have no default
    discount: bool


def _taken(regularizer: str) -> _Taken:
    if regularizer not in REGULARIZERS:
        raise unknown("regularizer", regularizer, REGULARIZERS)
    return _taken_by(REGULARIZERS[regularizer])


@cache
def _taken_by(function: Callable[..., Shrinkage]) -> _Taken:
    _, *rest = inspect.signature(function).parameters.values()
    settings = {each.name: each.default for each in rest if each.name != "discount"}
    needs = tuple(name for name, unsaid in settings.items() if unsaid is inspect.Parameter.empty)
    return _Taken(settings, needs, len(settings) < len(rest))


def check_settings(regularizer: str, settings: Collection[str]) -> None:
    """Raise if a regularizer has no setting of one of these names, or needs one that is not among them."""
    named, needs, _ = _taken(regularizer)
    for name in settings:
        if name not in named:
            takes = f"It takes: {', '.join(named)}." if named else "It takes none."
            raise InputError(f"{regularizer!r} has no setting {name!r}.{nearest(name, named)} {takes}")
    for name in needs:
        if name not in settings:
            raise InputError(f"{regularizer!r} needs {name}= (--setting {name}=...), which only you can give.")


def shrink(
    counts: Counts | ArrayLike | Any,
    regularizer: str = DEFAULT,
    *,
    discount: ArrayLike | None = None,
    **settings: Any,
) -> Shrinkage:
    """Ask a regularizer of the catalogue for its weights and target.

    The discount is that of the plan; only regularizers whose strength may be said by a planning discount look at it.

    >>> from certeq import shrink
    >>> shrink([[[8, 0]], [[1, 1]]], "uniform_prior", magnitude=2.0).weight
    array([[0.2],
           [0.5]])
    """
    check_settings(regularizer, settings)
    if _taken(regularizer).discount:
        settings["discount"] = discount
    return REGULARIZERS[regularizer](as_counts(counts), **settings)
