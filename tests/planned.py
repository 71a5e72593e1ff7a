"""Every planner of the catalogue, asked by itself: what the laws of planning are tried on."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from certeq import InputError, Plan, SparseRows
from certeq.planners import PLANNERS
from certeq.planners.gpu import device
from certeq.planners.problem import How, read_problem
from certeq.planners.progress import Watch


@cache
def no_device():
    """Why nothing can be run on a graphics processor here, or an empty string."""
    try:
        device.cupy()
    except InputError as error:
        return str(error)
    return ""


def sparse_rows(T):
    """The same rows as a sparse kernel."""
    return SparseRows(sp.csr_array(T.reshape(-1, T.shape[-1])), *T.shape[:2])


def both(T):
    """The same rows in both ways."""
    return [T, sparse_rows(T)]


def plans(planner, *problem, **how):
    """Its plans in all of these models that it is able to plan in, of which there must be one."""
    found = plans_if_able(planner, *problem, **how)
    assert found
    return found


def plans_if_able(planner, models, R, discount, *, allowed=None, limit=None):
    """The same, or none; whether or not `solve` would have taken it."""
    found = []
    for model in models:
        problem, trusted = read_problem(model, R, discount, allowed)
        if planner.able(problem):
            planner.check(problem, trusted)
            how = How(1e-9, limit or planner.limit, Watch(), None)
            found.append(Plan.of(planner.run(problem, how), planner.method, problem))
    return found


def _each(able=lambda planner: True):
    missing = pytest.mark.skipif(bool(no_device()), reason=no_device())
    chosen = [planner for planner in PLANNERS if planner.device == "gpu" or able(planner)]

    def marks(planner):
        compiled = (pytest.mark.slow,) if planner.engine == "numba" else ()
        return (missing,) if planner.device == "gpu" else compiled

    return pytest.mark.parametrize("planner", [pytest.param(p, id=p.name, marks=marks(p)) for p in chosen])


BATCH, _ = read_problem(np.full((2, 1, 1, 1), 0.5), [[1.0]], 0.9, None)
ENDS_LATE = [read_problem(m, np.ones((2, 1)), 1.0, None)[0] for m in both(np.array([[[0.0, 1.0]], [[0.0, 0.5]]]))]
each_planner = _each()
each_of_batches = _each(lambda planner: planner.able(BATCH))
each_without_discounting = _each(lambda planner: any(map(planner.able, ENDS_LATE)))  # where not every step may end
