"""Planning and evaluation on the device: from arrays with batch axes to the kernels, and back."""

from __future__ import annotations

from typing import Any

from certeq.base.errors import InputError
from certeq.planners.gpu import launching as small
from certeq.planners.gpu.arguments import Found, line_up
from certeq.planners.gpu.device import cupy


def plan(
    rows: Any, pull: tuple[Any, Any] | None, reward: Any, discount: Any, allowed: Any, max_iterations: int
) -> Found | None:
    """Plan for a batch of CuPy arrays with trailing axes in full and leading ones that broadcast.

    ``pull`` is the weight and the target of what is mixed in. Gives None if any MDP is not as it should be.
    """
    cp = cupy()
    S, A = rows.shape[-3:-1]
    check_size(S, A)
    batch, work = line_up(cp, rows, *(pull or _nothing(S)), reward, discount, allowed)
    if not work.size:
        none = cp.zeros((*batch, S))
        return Found(none.astype(cp.int64), none, cp.zeros(batch, dtype=cp.int64), cp.zeros(batch))
    found = small.plan(work, max_iterations)
    return found and Found(*(array.reshape((*batch, *array.shape[1:])) for array in found))


def evaluate(transition: Any, reward: Any, discount: Any, policy: Any) -> Any:
    """Values ``(..., S)``, on the device, of deterministic policies ``(..., S)``; the twin of `certeq.evaluate`.

    ``transition`` is ``(..., S, A, S)`` and ``reward`` ``(..., S, A)``; all arguments broadcast over leading axes.
    """
    cp = cupy()
    rows, rewards, discounts = (cp.asarray(x, dtype=cp.float64) for x in (transition, reward, discount))
    actions = cp.asarray(policy)
    S, A = rows.shape[-3:-1] if rows.ndim > 2 else (0, 0)
    shapes = rows.shape[-1:], rewards.shape[-2:], actions.shape[-1:]
    if shapes != ((S,), (S, A), (S,)) or actions.dtype.kind != "i":
        told = f"{rows.shape}, {rewards.shape} and {actions.dtype} {actions.shape}"
        raise InputError(f"Values need rows (..., S, A, S), rewards (..., S, A) and actions (..., S); got {told}.")
    check_size(S, A)
    allowed = cp.broadcast_to(cp.ones((S, A), dtype=bool), (*actions.shape[:-1], S, A))  # the policies' axes count too
    batch, work = line_up(cp, rows, *_nothing(S), rewards, discounts, allowed)
    if not work.size:
        return cp.zeros((*batch, S))
    chosen = cp.ascontiguousarray(cp.broadcast_to(actions, (*batch, S)), dtype=cp.int64).reshape(-1, S)
    values = small.value(work, chosen)
    if values is None:
        raise InputError(
            "Some row is no distribution, some reward not finite, some discount not between 0 and 1 (or 1 where a "
            f"policy may go on forever), or some action not among 0 to {A - 1}; certeq.evaluate says which."
        )
    return values.reshape(*batch, S)


def fits(S: int, A: int) -> bool:
    """Whether there are lanes and memory enough for MDPs of this size."""
    return S <= small.WARP and small.room(S, A) <= small.shared_memory()


def check_size(S: int, A: int) -> None:
    """Raise if there are not."""
    if not fits(S, A):
        raise InputError(
            f"device='gpu' plans in MDPs of up to {small.WARP} states whose rows fit into "
            f"{small.shared_memory() // 1024} KiB; these have {S} states and {A} actions, which take "
            f"{small.room(S, A) // 1024} KiB. Use device='cpu'."
        )


def _nothing(S: int) -> tuple[Any, Any]:
    """Weight and target where nothing is mixed in."""
    return cupy().zeros((0, 0)), cupy().zeros((0, 0, S))
