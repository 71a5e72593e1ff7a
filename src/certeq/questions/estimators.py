"""Off-policy estimators: what a policy would have earned, from episodes in which somebody else chose.

With ρ(t) = Π π(a|s) / b(a|s) over the decisions of an episode up to and including t, discount γ, and E episodes:

- ``pdis``, per-decision importance sampling: (1/E) Σ γᵗ ρ(t) r;
- ``wpdis``, the same with ρ(t) over the sum of all episodes' ρ(t) instead of over E;
- ``wis``, weighted importance sampling: whole returns Σ γᵗ r, weighed by the ρ of the last decision;
- ``fqe``, fitted Q evaluation: the mean of V(s) over the first states, V as `certeq.questions.fitted` has it;
- ``dr``, doubly robust: the mean of V(s) over the first states + (1/E) Σ γᵗ ρ(t) (r + γ V(s') - Q(s, a)), with V and Q
  fitted as in fqe, or given; ``wdr``, the same with weights as in wpdis.

An episode that is over keeps its last ρ in the sums, and earns nothing more. If it *ended*, that is the truth. If
watching stopped first, importance sampling (the first three) is of the watched part only; fqe, dr and wdr go on with V
of the state that was reached. With a horizon only the decisions before it are used. Where the weights of all episodes
are 0, a weighted mean is not a number, and the correction of wdr is 0.
"""

from __future__ import annotations

import numpy as np

from certeq.base.arrays import Floats, Integers
from certeq.questions.fitted import Critic, fit, given, sums
from certeq.questions.log import Log

METHODS = {
    "pdis": "per-decision importance sampling",
    "wpdis": "weighted per-decision importance sampling",
    "wis": "weighted importance sampling",
    "dr": "doubly robust",
    "wdr": "weighted doubly robust",
    "fqe": "fitted Q evaluation",
}
BLOCK = 2_000_000  # rows, or numbers in the chains, that are looked at together
CACHED = 200_000  # the same with a horizon, where they are gone over at every decision
HUGE = 300.0  # log of a product of ratios: more would make no difference, but could overflow


def estimates(log: Log, times: Integers) -> dict[str, Floats]:
    """All estimates, ``(B,)`` each: ``times``, ``(B, E)``, says how often each episode counts."""
    fixed = None if log.action_values is None else given(log, log.action_values)
    size = BLOCK if log.horizon is None else CACHED
    together = max(1, size // max(len(log.state), log.policy.shape[1] ** 2))
    chunks = [times[i : i + together] for i in range(0, len(times), together)]
    found = [_estimates(log, chunk, fit(log, chunk[:, log.number]), fixed) for chunk in chunks]
    return {name: np.concatenate([each[name] for each in found]) for name in METHODS}


def _estimates(log: Log, times: Integers, fitted: Critic, fixed: Critic | None) -> dict[str, Floats]:
    critic = fitted if fixed is None else fixed
    E, often, fade = times.sum(axis=1), times[:, log.number], log.discount**log.step
    rho = ratios(log, often)
    share = _shares(log, times, rho)
    surprise = log.reward + log.discount * critic.after - critic.pair
    begin = log.state[log.first]
    base, fqe = ((times * each.first[:, begin]).sum(axis=1) / E for each in (critic, fitted))
    returns = np.bincount(log.number, fade * log.reward)
    weight = times * rho[:, log.last]
    total = weight.sum(axis=1)
    return {
        "pdis": (often * fade * rho * log.reward).sum(axis=1) / E,
        "wpdis": (fade * share * log.reward).sum(axis=1),
        "wis": np.where(total > 0, (weight * returns).sum(axis=1) / np.where(total > 0, total, 1.0), np.nan),
        "dr": base + (often * fade * rho * surprise).sum(axis=1) / E,
        "wdr": base + (fade * np.nan_to_num(share) * surprise).sum(axis=1),
        "fqe": fqe,
    }


def ratios(log: Log, often: Integers) -> Floats:
    """ρ of each row, ``(B, n)``, where rows count so often; those that do not count may have any."""
    chance = log.policy[log.at, log.state, log.action]
    behavior = _estimated(log, often) if log.behavior is None else log.behavior
    ratio = np.where(often > 0, chance / np.where(often > 0, behavior, 1.0), 1.0)
    zero = ratio == 0
    logs, zeros = np.cumsum(np.log(np.where(zero, 1.0, ratio)), axis=1), np.cumsum(zero, axis=1)
    begin = np.repeat(log.first, log.length)
    logs_before, zeros_before = (np.where(begin > 0, total[:, begin - 1], 0) for total in (logs, zeros))
    return np.where(zeros > zeros_before, 0.0, np.exp(np.minimum(logs - logs_before, HUGE)))


def effective_size(log: Log) -> float:
    """How many episodes the weights of whole episodes amount to: (Σρ)² / Σρ²."""
    weight = ratios(log, np.ones((1, len(log.state)), dtype=np.int64))[0, log.last]
    return float(weight.sum() ** 2 / (weight**2).sum()) if weight.any() else 0.0


def _estimated(log: Log, often: Integers) -> Floats:
    """Chance of each logged action: how often it was taken in its state, with made-up rows where that was asked for."""
    _, S, A = log.policy.shape
    k, pair = log.smoothing, sums(log.pair, often, S * A)
    state = pair.reshape(-1, S, A).sum(axis=-1)[:, log.state] + k
    return np.asarray((pair[:, log.pair] + k / A) / np.where(state > 0, state, 1.0))


def _shares(log: Log, times: Integers, rho: Floats) -> Floats:
    """Each row's part in the weights of all episodes at its step, ``(B, n)``; NaN where these are all 0."""
    weight, steps = times[:, log.number] * rho, int(log.length.max()) + 1
    over = np.cumsum(sums(log.length, times * rho[:, log.last], steps), axis=1)  # by step: who is over by then
    total = (sums(log.step, weight, steps) + over)[:, log.step]
    share = np.where(total > 0, weight / np.where(total > 0, total, 1.0), np.nan)
    return np.where(times[:, log.number] > 0, share, 0.0)
