"""The way from `solve` to the graphics processor: what already exists stays there, and what is not is copied.

The kernel checks its input while it reads it. If anything is wrong, everything is brought to the host, which finds out
what it was and says it in the words that it always uses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from certeq.base.errors import InputError
from certeq.model.kernel import Mixture, Rows, SparseRows, is_sparse, kernel
from certeq.planners import compiled
from certeq.planners.episodic import check_problem
from certeq.planners.gpu import device, planning
from certeq.planners.gpu.mixture import DeviceMixture
from certeq.planners.plan import Plan
from certeq.planners.policy_iteration import policy_iteration
from certeq.planners.problem import How, Problem, Solution, read_problem


@dataclass(frozen=True)
class DevicePlan:
    """A plan for each MDP of a batch that was on the device, and stays there; `get` brings it to the host."""

    policy: Any  # (..., S), CuPy like the others: the lowest-numbered of the tied best actions
    values: Any  # (..., S)
    iterations: Any  # (...)
    residual: Any  # (...): largest \|max Q - V\|
    converged: Any  # (...)
    given: tuple[Any, ...] = field(repr=False)  # what was planned in

    def get(self) -> Plan:
        """The plan as `solve` gives it on the host, with its bounds, ties and action values."""
        arrays = (self.policy, self.values, self.iterations, self.residual, self.converged)
        found = Solution(*(array.get() for array in arrays))
        return Plan.of(found, "policy_iteration", _on_host(*self.given)[0])


def able(problem: Problem) -> bool:
    """Whether the rows may be written out and have room on the device."""
    return problem.dense and planning.fits(problem.n_states, problem.n_actions)


def plan(problem: Problem, how: How) -> Solution:
    """Plan exactly in arrays of the host, for which they are copied."""
    data, weight, target = (device.cupy().asarray(part) for part in compiled.mixture(problem))
    reward, discount, allowed = (device.cupy().asarray(part) for part in problem[1:])
    pull = (weight, target) if isinstance(problem.model, Mixture) else None
    found = planning.plan(data, pull, reward, discount, allowed, how.limit)
    if found is None:
        check_problem(problem, trusted=False)
        return policy_iteration(problem, how)  # no more than rounding was wrong
    policy, values, iterations, residual = (array.get() for array in found)
    return Solution(policy, values, np.minimum(iterations, how.limit), residual, iterations <= how.limit)


def there(*given: Any) -> bool:
    """Whether anything of a problem is on the device, so that its plan should stay there."""
    return any(isinstance(part, device.cupy().ndarray | DeviceMixture) for part in given)


def plan_there(transition: Any, reward: Any, discount: Any, allowed: Any, limit: int) -> Any:
    """Plan exactly in arrays of the device: a `DevicePlan`."""
    cp, given = device.cupy(), (transition, reward, discount, allowed)
    data, weight, target = _parts(transition)
    gain, factor = cp.asarray(reward, dtype=cp.float64), cp.asarray(discount, dtype=cp.float64)
    mask = cp.ones((1, 1), dtype=bool) if allowed is None else cp.asarray(allowed)
    rows, tables = (data, target), (weight, gain, mask)
    try:
        pairs = np.broadcast_shapes(*(x.shape[-3:-1] for x in rows), *(x.shape[-2:] for x in tables))
        np.broadcast_shapes(factor.shape, *(x.shape[:-3] for x in rows), *(x.shape[:-2] for x in tables))
    except ValueError:
        _say(*given)
    S = data.shape[-1] if data.ndim > 2 else 0
    if S == 0 or pairs[0] != S or min(x.ndim for x in tables) < 2 or mask.dtype != bool:
        _say(*given)
    weight, gain, mask = (cp.broadcast_to(x, (*x.shape[:-2], *pairs)) for x in tables)
    data = cp.broadcast_to(data, (*data.shape[:-3], *pairs, S))
    found = planning.plan(data, (weight, target) if target.size else None, gain, factor, mask, limit)
    if found is None:
        _say(*given)
    policy, values, iterations, residual = found
    return DevicePlan(policy, values, cp.minimum(iterations, limit), residual, iterations <= limit, given)


def _parts(transition: Any) -> tuple[Any, Any, Any]:
    """Data, weight and target on the device; nothing is mixed into plain rows, which have a target of no size."""
    cp = device.cupy()
    model = transition if isinstance(transition, cp.ndarray | DeviceMixture) else kernel(transition)
    if isinstance(model, Mixture) and not is_sparse(model):
        model = DeviceMixture(model.data.dense(), model.weight, model.target.dense())
    if isinstance(model, DeviceMixture):
        return model.data, model.weight, model.target
    if isinstance(model, SparseRows | Mixture):
        raise InputError("device='gpu' plans in dense models; use device='cpu' for sparse ones.")
    array = model.array if isinstance(model, Rows) else model
    return cp.asarray(array, dtype=cp.float64), cp.zeros((1, 1)), cp.zeros((1, 1, 0))


def _on_host(transition: Any, reward: Any, discount: Any, allowed: Any) -> tuple[Problem, bool]:
    """Bring a problem to the host and check it there."""
    cp = device.cupy()
    model = transition.get() if isinstance(transition, cp.ndarray) else transition
    if isinstance(transition, DeviceMixture):
        model = Mixture(Rows(transition.data.get()), transition.weight.get(), Rows(transition.target.get()))
    mask = None if allowed is None else cp.asnumpy(allowed)
    return read_problem(model, cp.asnumpy(reward), cp.asnumpy(discount), mask)


def _say(*given: Any) -> NoReturn:
    """Say what is wrong with a problem on the device."""
    check_problem(*_on_host(*given))
    shapes = ", ".join(str(getattr(part, "shape", type(part).__name__)) for part in given)
    raise InputError(f"Something is wrong with transitions, rewards, discount or mask, of shapes {shapes}.")
