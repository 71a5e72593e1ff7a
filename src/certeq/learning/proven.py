"""Proven: what people seldom did is advised only if its own rows show for sure that it is better.

What people were much less likely to do than the usual thing may not be advised (`certeq.model.unvisited`). How much
less is asked of the rows, where habits differ from state to state. Let π(s, a) be how likely people were to take an
action (`certeq.model.habits`), π(a) the same in all states together, ρ = π(s, a) - π(a) less its mean over the rows of
the state, and x = r + γV(s') what a row was worth, with the values V of the plan that keeps to what was usual. If
people knew what they did, and where, what they did more of in a state than elsewhere was worth more,

    g(s) = Σ_a n(s, a)·ρ(s, a)·x̄(s, a),    t = Σ_s g(s) / √(Σ_s g(s)²)

says by how many standard errors. With few rows it says little, and to be careful in vain costs less than to harm. So
wherever people acted differently in different states, an action may be advised only if it was at least ``CAREFUL``
times as likely as the usual one, and t says what proof lets in the others.

With enough rows of its own an action that was kept out speaks for itself. It is let in where, with n rows and one more
that is as bad as any that was seen,

    (n·Q(s, a) + min x) / (n + 1) - V(s)  >  SURE · √(σ²(s, a) / n(s, a) + σ²(s, π(s)) / n(s, π(s)))

Q and σ², the variance of x, are those of the regularized row; how rewards scatter within a pair comes on top. A few
rows that happen to be alike tell little of σ², so it counts ``LEAST`` rows of the mean over all pairs in; and they tell
little of what is rare and bad, hence the one row more. Then all is planned anew, until nothing else is let in. Where
habits differ and t is at most ``TELLING``, nothing says that people avoided what harms: then ``LIKELY`` standard errors
are enough, from ``FEW`` rows on and without the one row more. Whether all states together show what no state shows
alone, `certeq.learning.shown` asks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.data.sums import Sums
from certeq.learning.equivalence import Model, solve_model
from certeq.model.frequencies import mle
from certeq.model.habits import differ, shares
from certeq.model.unvisited import at_least
from certeq.planners import FinitePlan, Plan, compiled

CAREFUL = 0.5  # of the usual action's chance, where habits differ; docs/decisions/0015-avoided-actions.md
TELLING = 1.0  # standard errors by which habits turned out well, or not
SURE = 2.0  # standard errors; docs/decisions/0015-avoided-actions.md
LIKELY = 1.0  # standard errors that are enough where habits did not turn out well
LEAST = 5  # rows without which nothing is proven
FEW = 2  # rows without which nothing is likely
ROUNDING = 1e-12  # of what the actions of a state are worth: differences below are none
ROUNDS = 3  # of planning anew, at most


def prove(
    model: Model,
    table: Floats,
    paid: tuple[Floats, Floats],
    scatter: Floats | float,
    discount: float,
    horizon: int | None = None,
    min_visits: int = 1,
    told: Floats | float = np.nan,
    rounds: int = ROUNDS,
    engine: str = "auto",
) -> Model:
    """The model with more actions allowed: those that were tried, avoided, and are better for sure.

    ``paid`` is what going on and what ending pays, ``(..., S, A)`` each; ``scatter`` is how rewards vary, ``(...)``,
    and ``told`` is t, ``(...)``, NaN where nobody asks.
    """
    if not model.counts.sparse and compiled.worth(model.counts.batch, model.counts.n_states):
        engine = "numba"  # also for the few data sets that are planned anew
    noise, t = np.asarray(scatter), np.asarray(told)
    better = _better(model, table, paid, noise, discount, horizon, min_visits, t, engine)
    changed = np.asarray(better.any(axis=(-2, -1)))
    if not changed.any():
        return model
    model = replace(model, allowed=model.allowed | better)
    if rounds == 1:
        return model
    if not model.counts.batch or changed.all():
        return prove(model, table, paid, scatter, discount, horizon, min_visits, told, rounds - 1, engine)
    going, ending, own = (one[changed] if one.ndim > 2 else one for one in (*paid, table))
    noise, t = (np.broadcast_to(one, changed.shape)[changed] for one in (scatter, told))
    part = prove(model[changed], own, (going, ending), noise, discount, horizon, min_visits, t, rounds - 1, engine)
    model.allowed[changed] = part.allowed
    return model


def bold(model: Model, min_visits: int = 1) -> Model:
    """The model with whatever has a few rows allowed."""
    return replace(model, allowed=model.allowed | _open(model, min_visits, LEAST))


def _open(model: Model, min_visits: int, least: Integers | int) -> Booleans:
    """Which actions may not be advised and have rows enough to speak for themselves, ``(..., S, A)``."""
    visits = np.broadcast_to(model.counts.visits, model.allowed.shape)
    return np.asarray((visits >= np.maximum(least, min_visits)) & ~model.allowed & ~model.stranded[..., None])


def _better(
    model: Model,
    table: Floats,
    paid: tuple[Floats, Floats],
    scatter: Floats,
    discount: float,
    horizon: int | None,
    min_visits: int,
    told: Floats,
    engine: str,
) -> Booleans:
    """Which actions that may not be advised are better than those that may, for sure, ``(..., S, A)``."""
    doubt = (told <= TELLING)[..., None, None]  # that people avoided what harms
    open_to = _open(model, min_visits, np.where(doubt, FEW, LEAST))
    if not open_to.any():
        return open_to
    visits = np.broadcast_to(model.counts.visits, model.allowed.shape)
    plan = solve_model(model, table, discount, horizon=horizon, engine=engine)
    here, ahead, policy = plan.values, _ahead(plan), plan.policy
    if isinstance(plan, FinitePlan):
        here, policy = plan.values[0], plan.policy[0]
    expected = discount * model.transition.expect(ahead)
    spread = _variance(model, paid, ahead, discount) + scatter[..., None, None]
    common = (visits * spread).sum(axis=(-2, -1), keepdims=True) / visits.sum(axis=(-2, -1), keepdims=True)
    error = (visits * spread + LEAST * common) / (visits + LEAST) / np.maximum(visits, 1)
    own = np.take_along_axis(error, np.maximum(policy, 0)[..., None], axis=-1)
    q, more = model.reward(table) + expected, np.where(doubt, 0, 1)
    low = (visits * q + more * _worst(model, paid, ahead, discount)) / np.maximum(visits + more, 1)
    return np.asarray(open_to & (low - here[..., None] > np.where(doubt, LIKELY, SURE) * np.sqrt(error + own)))


def careful(
    model: Model, table: Floats, paid: tuple[Floats, Floats], discount: float, horizon: int | None = None
) -> tuple[Model, Floats]:
    """The model with less allowed where people acted differently in different states; and t, ``(...)``, else NaN.

    Where asking for half as likely leaves out no more than the rules do, nobody asks for t either.
    """
    visits, untold = (
        np.broadcast_to(model.counts.visits, model.allowed.shape),
        np.full(model.allowed.shape[:-2], np.nan),
    )
    apart = differ(visits)
    if not apart.any():
        return model, untold
    here = shares(visits)
    everywhere = visits.sum(axis=-2, keepdims=True) / np.maximum(visits.sum(axis=(-2, -1), keepdims=True), 1)
    strict = model.allowed & (at_least(here, CAREFUL) | model.stranded[..., None])
    asked = apart & (strict != model.allowed).any(axis=(-2, -1))
    if not asked.any():
        return model, untold
    plan = solve_model(replace(model, allowed=strict), table, discount, horizon=horizon)
    told = np.where(asked, _told(model, visits, here - everywhere, paid, _ahead(plan), discount), np.nan)
    return replace(model, allowed=np.where(asked[..., None, None], strict, model.allowed)), told


def _told(
    model: Model, visits: Integers, more: Floats, paid: tuple[Floats, Floats], ahead: Floats, discount: float
) -> Floats:
    """How many standard errors better what people did more of turned out, ``(...)``."""
    (going, ending), rows = paid, mle(model.counts)
    mass = rows.mass()
    worth = mass * going + (1 - mass) * ending + discount * rows.expect(ahead)
    more = more - (visits * more).sum(axis=-1, keepdims=True) / np.maximum(visits.sum(axis=-1, keepdims=True), 1)
    each = visits * more * worth
    gain = each.sum(axis=-1)
    gain = np.where(np.abs(gain) > ROUNDING * np.abs(each).sum(axis=-1), gain, 0.0)  # actions that are worth the same
    size = np.abs(gain).max(axis=-1, keepdims=True, initial=0.0)
    gain = gain / np.where(size > 0, size, 1.0)
    return np.asarray(gain.sum(axis=-1) / np.maximum(np.sqrt((gain**2).sum(axis=-1)), 1e-300))


def _ahead(plan: Plan | FinitePlan) -> Floats:
    """What the states after the first decision are worth."""
    if not isinstance(plan, FinitePlan):
        return plan.values
    return plan.values[1] if plan.horizon > 1 else np.zeros_like(plan.values[0])


def _variance(model: Model, paid: tuple[Floats, Floats], ahead: Floats, discount: float) -> Floats:
    """Variance of what a row of each pair is worth, ``(..., S, A)``, but for the scatter of rewards."""
    (going, ending), rows = paid, model.transition
    mass, one = rows.mass(), discount * rows.expect(ahead)
    two = discount**2 * rows.expect(ahead**2)
    mean = mass * going + one + (1 - mass) * ending
    square = mass * going**2 + 2 * going * one + two + (1 - mass) * ending**2
    return np.maximum(square - mean**2, 0.0)


def _worst(model: Model, paid: tuple[Floats, Floats], ahead: Floats, discount: float) -> Floats:
    """The least that any outcome that was seen is worth, wherever it was, ``(..., 1, 1)``."""
    (going, ending), counts = paid, model.counts
    if counts.sparse:
        matrix = counts.transitions
        pair = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        worth = going.reshape(*going.shape[:-2], -1)[..., pair] + discount * ahead[..., matrix.indices]
        least = worth.min(axis=-1, initial=np.inf)
    else:
        batch, (S, A) = np.broadcast_shapes(counts.batch, ahead.shape[:-1]), model.allowed.shape[-2:]
        shape = (int(np.prod(batch)), S, A, S)
        which, state, action, later = np.nonzero(np.broadcast_to(counts.transitions, (*batch, S, A, S)).reshape(shape))
        going, ahead = np.broadcast_to(going, (*batch, S, A)), np.broadcast_to(ahead, (*batch, S))
        worth = going.reshape(shape[:3])[which, state, action] + discount * ahead.reshape(-1, S)[which, later]
        least = np.full(shape[0], np.inf)
        np.minimum.at(least, which, worth)
        least = least.reshape(batch)
    if counts.ended is not None:
        least = np.minimum(least, np.where(counts.ended > 0, ending, np.inf).min(axis=(-2, -1)))
    return np.asarray(least)[..., None, None]


def scatter(earned: Sums) -> Floats:
    """Variance of a reward around the mean of its pair and kind, ``(...)``."""
    freedom = np.maximum(earned.number - 1, 0).sum(axis=(-3, -2, -1))
    return np.asarray(earned.size**2 * earned.spread.sum(axis=-1) / np.maximum(freedom, 1))
