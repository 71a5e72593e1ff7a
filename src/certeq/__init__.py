"""certeq: logged decisions in, a defensible policy out.

Every method is one line, ``T_plan = (1 - w) * T_data + w * T_target``. A regularizer says what w and T_target are.
The public names are listed here and loaded when first used, so that ``import certeq`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from certeq import pictures, sampling, weights
    from certeq.batch import Batch
    from certeq.certainty import plan
    from certeq.counts import Counts, tally
    from certeq.environments import ENVIRONMENTS, environment
    from certeq.errors import InputError
    from certeq.estimator import CertaintyEquivalence
    from certeq.evaluation.exact import evaluate, loss
    from certeq.inquiry.bootstrap import bootstrap
    from certeq.inquiry.collect import collect_next
    from certeq.inquiry.conventions import compare_conventions
    from certeq.inquiry.discount import audit
    from certeq.inquiry.findings import Findings, examine
    from certeq.inquiry.fragility import fragility
    from certeq.inquiry.path import path
    from certeq.kernel import Mixture, Rows, SparseRows
    from certeq.learned import Learned, learn
    from certeq.mdp import MDP
    from certeq.model_free import QLearning, Schedule, q_learning
    from certeq.planners import Plan, solve, solve_finite
    from certeq.policy import Policy
    from certeq.reading import read
    from certeq.regularizers import REGULARIZERS, Shrinkage, shrink

_HOMES = {
    "certeq.batch": ("Batch",),
    "certeq.certainty": ("plan",),
    "certeq.counts": ("Counts", "tally"),
    "certeq.environments": ("ENVIRONMENTS", "environment"),
    "certeq.errors": ("InputError",),
    "certeq.estimator": ("CertaintyEquivalence",),
    "certeq.evaluation.exact": ("evaluate", "loss"),
    "certeq.inquiry.bootstrap": ("bootstrap",),
    "certeq.inquiry.collect": ("collect_next",),
    "certeq.inquiry.conventions": ("compare_conventions",),
    "certeq.inquiry.discount": ("audit",),
    "certeq.inquiry.findings": ("Findings", "examine"),
    "certeq.inquiry.fragility": ("fragility",),
    "certeq.inquiry.path": ("path",),
    "certeq.kernel": ("Mixture", "Rows", "SparseRows"),
    "certeq.learned": ("Learned", "learn"),
    "certeq.mdp": ("MDP",),
    "certeq.model_free": ("QLearning", "Schedule", "q_learning"),
    "certeq.planners": ("Plan", "solve", "solve_finite"),
    "certeq.policy": ("Policy",),
    "certeq.reading": ("read",),
    "certeq.regularizers": ("REGULARIZERS", "Shrinkage", "shrink"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("pictures", "sampling", "weights")

__all__ = [
    "ENVIRONMENTS",
    "MDP",
    "REGULARIZERS",
    "Batch",
    "CertaintyEquivalence",
    "Counts",
    "Findings",
    "InputError",
    "Learned",
    "Mixture",
    "Plan",
    "Policy",
    "QLearning",
    "Rows",
    "Schedule",
    "Shrinkage",
    "SparseRows",
    "audit",
    "bootstrap",
    "collect_next",
    "compare_conventions",
    "environment",
    "evaluate",
    "examine",
    "fragility",
    "learn",
    "loss",
    "path",
    "pictures",
    "plan",
    "q_learning",
    "read",
    "sampling",
    "shrink",
    "solve",
    "solve_finite",
    "tally",
    "weights",
]


def __getattr__(name: str) -> Any:
    """Load a public name from the room where it lives."""
    if name in _MODULES:
        return importlib.import_module(f"certeq.{name}")
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'certeq' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*__all__, "__version__"])
