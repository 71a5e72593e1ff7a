"""certeq: logged decisions in, a defensible policy out.

Every method is one line, ``T_plan = (1 - w) * T_data + w * T_target``. A regularizer says what w and T_target are.
The public names are listed here and loaded when first used, so that ``import certeq`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from certeq.base.errors import InputError
    from certeq.data.batch import Batch
    from certeq.data.check import Checked, check
    from certeq.data.counts import Counts, tally
    from certeq.data.reading import read
    from certeq.learning.equivalence import plan
    from certeq.learning.estimator import CertaintyEquivalence
    from certeq.learning.learned import Learned
    from certeq.learning.policy import Policy
    from certeq.model import weights
    from certeq.model.kernel import Mixture, Rows, SparseRows
    from certeq.model.mdp import MDP
    from certeq.planners import Plan, solve, solve_finite
    from certeq.planners.average import solve_average
    from certeq.questions.audit import audit
    from certeq.questions.collect import collect_next
    from certeq.questions.conventions import compare_conventions
    from certeq.questions.exact import evaluate, loss
    from certeq.questions.examine import examine, learn
    from certeq.questions.findings import Findings
    from certeq.questions.fragility import fragility
    from certeq.questions.frontier import Frontier, frontier
    from certeq.questions.path import path
    from certeq.questions.row_errors import transition_mse
    from certeq.questions.sweep import Sweep, sweep
    from certeq.regularizers import REGULARIZERS, Shrinkage, shrink
    from certeq.report import pictures
    from certeq.report.exports import export
    from certeq.worlds import ENVIRONMENTS, environment, sampling
    from certeq.worlds.model_free import QLearning, Schedule, q_learning

_HOMES = {
    "certeq.data.batch": ("Batch",),
    "certeq.data.check": ("Checked", "check"),
    "certeq.learning.equivalence": ("plan",),
    "certeq.data.counts": ("Counts", "tally"),
    "certeq.worlds": ("ENVIRONMENTS", "environment"),
    "certeq.base.errors": ("InputError",),
    "certeq.learning.estimator": ("CertaintyEquivalence",),
    "certeq.questions.exact": ("evaluate", "loss"),
    "certeq.questions.collect": ("collect_next",),
    "certeq.questions.conventions": ("compare_conventions",),
    "certeq.questions.audit": ("audit",),
    "certeq.questions.row_errors": ("transition_mse",),
    "certeq.questions.sweep": ("Sweep", "sweep"),
    "certeq.questions.examine": ("examine", "learn"),
    "certeq.questions.findings": ("Findings",),
    "certeq.questions.fragility": ("fragility",),
    "certeq.questions.frontier": ("Frontier", "frontier"),
    "certeq.questions.path": ("path",),
    "certeq.model.kernel": ("Mixture", "Rows", "SparseRows"),
    "certeq.learning.learned": ("Learned",),
    "certeq.model.mdp": ("MDP",),
    "certeq.worlds.model_free": ("QLearning", "Schedule", "q_learning"),
    "certeq.planners": ("Plan", "solve", "solve_finite"),
    "certeq.planners.average": ("solve_average",),
    "certeq.learning.policy": ("Policy",),
    "certeq.data.reading": ("read",),
    "certeq.report.exports": ("export",),
    "certeq.regularizers": ("REGULARIZERS", "Shrinkage", "shrink"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = {
    "gpu": "certeq.planners.gpu",
    "pictures": "certeq.report.pictures",
    "sampling": "certeq.worlds.sampling",
    "weights": "certeq.model.weights",
}

__all__ = [
    "ENVIRONMENTS",
    "MDP",
    "REGULARIZERS",
    "Batch",
    "CertaintyEquivalence",
    "Checked",
    "Counts",
    "Findings",
    "Frontier",
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
    "Sweep",
    "audit",
    "check",
    "collect_next",
    "compare_conventions",
    "environment",
    "evaluate",
    "examine",
    "export",
    "fragility",
    "frontier",
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
    "solve_average",
    "solve_finite",
    "sweep",
    "tally",
    "transition_mse",
    "weights",
]


def __getattr__(name: str) -> Any:
    """Load a public name from the room where it lives."""
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'certeq' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*__all__, "__version__"])
