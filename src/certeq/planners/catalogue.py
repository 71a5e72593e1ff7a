"""The catalogue of planners: what each can plan in, when it pays, and how it is run.

To add one, write ``run(problem, how) -> Solution`` in a file of its own and give it a line in ``PLANNERS``: `solve`
then takes it where its method and engine are asked for, or by itself where it comes first and pays, and the contract
test holds it to the laws that all of them obey.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from certeq.base.display import several
from certeq.base.errors import InputError
from certeq.planners import compiled, sparse
from certeq.planners.episodic import check_clear, check_ends, check_problem
from certeq.planners.gpu import solving as on_gpu
from certeq.planners.policy_iteration import policy_iteration
from certeq.planners.problem import How, Problem, Solution
from certeq.planners.value_iteration import modified_policy_iteration, value_iteration


class Planner(NamedTuple):
    """One way to plan: a method, and an engine that does it."""

    method: str
    engine: str
    plans_in: str  # what it is able to plan in, in words
    able: Callable[[Problem], bool]
    pays: Callable[[Problem], bool]  # whether to take it where nobody asked for another
    run: Callable[[Problem, How], Solution]
    limit: int = 1_000_000  # iterations, by default
    check: Callable[[Problem, bool], None] = check_problem  # what `run` takes for granted
    device: str = "cpu"

    @property
    def name(self) -> str:
        """What to ask for."""
        return f"{self.method} ({self.engine if self.device == 'cpu' else f'device={self.device!r}'})"


def _dense(problem: Problem) -> bool:
    return problem.dense


def _always(problem: Problem) -> bool:
    return True


PLANNERS = (  # `auto` takes the first that is able and pays
    Planner(
        "policy_iteration", "numba", "dense models", compiled.fits, compiled.pays, compiled.plan_side_by_side,
        limit=1_000, check=lambda problem, trusted: check_ends(problem),
    ),
    Planner("policy_iteration", "numba", "dense models", _dense, compiled.pays, compiled.plan_one_by_one, limit=1_000),
    Planner(
        "policy_iteration", "cuda", "dense models of up to 32 states whose rows fit into the memory of a block",
        on_gpu.able, _always, on_gpu.plan, limit=1_000, check=check_clear, device="gpu",
    ),
    Planner(
        "inexact_policy_iteration", "numba",
        "models whose data are sparse, with a discount below 1 (or where every row may end the episode) and rewards of "
        "1e-20 to 1e20",
        sparse.able, sparse.pays, sparse.plan,
    ),
    Planner("policy_iteration", "numpy", "any model", _always, _dense, policy_iteration, limit=1_000),
    Planner("modified_policy_iteration", "numpy", "any model", _always, _always, modified_policy_iteration),
    Planner("value_iteration", "numpy", "any model", _always, _always, value_iteration),
)  # fmt: skip
METHODS = {each.method: tuple(other for other in PLANNERS if other.method == each.method) for each in PLANNERS}
ENGINES = tuple(dict.fromkeys(each.engine for each in PLANNERS))
DEVICES = tuple(dict.fromkeys(each.device for each in PLANNERS))
EITHER = "Leave method, engine and device out to have one chosen."


def asked_for(method: str, engine: str, device: str) -> list[Planner]:
    """The planners of that method and engine on that device; ``auto`` is any."""
    there = (each for each in PLANNERS if each.device == device)
    asked = [each for each in there if method in (each.method, "auto") and engine in (each.engine, "auto")]
    if not asked:
        wanted = f"method={method!r}, engine={engine!r} and device={device!r}"
        raise InputError(f"No planner has {wanted}. There are: {_names(PLANNERS)}. {EITHER}")
    return asked


def choose(asked: list[Planner], problem: Problem) -> Planner:
    """Of the planners that are able, the first that pays; if none does, the first."""
    able = [each for each in asked if each.able(problem)]
    if able:
        return next((each for each in able if each.pays(problem)), able[0])
    told = "; ".join(dict.fromkeys(f"{each.name} plans in {each.plans_in}" for each in asked))
    size = f"{several(problem.n_states, 'state')} and {several(problem.n_actions, 'action')}"
    this = f"This is a {'dense' if problem.dense else 'sparse'} model of {size}"
    here = _names(each for each in PLANNERS if each.device == "cpu" and each.able(problem))
    raise InputError(f"{told}. {this}; these plan in it: {here}. {EITHER}")


def _names(planners: Iterable[Planner]) -> str:
    return ", ".join(dict.fromkeys(each.name for each in planners))
