"""How well each prior magnitude explains the counts, and what weights that leads to, for many data sets.

The rows of all data sets stand one after another as lists of their non-zero counts. The marginal likelihood of a row
with counts c under a Dirichlet prior of magnitude M and mean q is, up to the multinomial coefficient,

    Γ(M) / Γ(M + Σc) · Π Γ(Mq + c) / Γ(Mq),

a product of rising factorials Γ(x + c)/Γ(x) = x(x + 1)···(x + c - 1). Plain twin: scipy's Dirichlet-multinomial, in
tests/paper/test_evidence.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

_compile = njit(cache=True, nogil=True, error_model="numpy")
TABLE = 64  # rising factorials of smaller counts are looked up
FEW = 16  # factors that are multiplied out before Stirling's series is exact enough


@_compile
def log_rising(x: float, c: float) -> float:
    """log Γ(x + c) - log Γ(x) for x > 0 and whole c, accurate also where both are huge or x is tiny."""
    few = min(c, FEW)
    product, total, j = 1.0, 0.0, 0.0
    while j < few:
        product *= x + j
        if product > 1e250 or product < 1e-250:
            total += math.log(product)
            product = 1.0
        j += 1.0
    total += math.log(product)
    if c <= FEW:
        return total
    y, d = x + FEW, c - FEW
    return total + (y - 0.5) * math.log1p(d / y) + d * math.log(y + d) - d + _series(y + d) - _series(y)


@_compile
def _series(z: float) -> float:
    """What Stirling's formula leaves out."""
    r = 1.0 / z
    r2 = r * r
    return r * (1.0 / 12.0 - r2 * (1.0 / 360.0 - r2 * (1.0 / 1260.0 - r2 / 1680.0)))


@_compile
def _row(
    first: int,
    last: int,
    count: Any,
    share: Any,
    uniform: bool,
    visits: float,
    magnitudes: Any,
    table: Any,
    totals: Any,
    out: Any,
) -> None:
    """Log marginal likelihood of one row for each magnitude."""
    for g in range(len(magnitudes)):
        out[g] = -(totals[int(visits), g] if visits < TABLE else log_rising(magnitudes[g], visits))
    for i in range(first, last):
        c = count[i]
        if uniform and c < TABLE:
            for g in range(len(magnitudes)):
                out[g] += table[int(c), g]
        else:
            q = share[0] if uniform else share[i]
            for g in range(len(magnitudes)):
                out[g] += log_rising(magnitudes[g] * q, c)


@_compile
def _contradicted(first: int, last: int, share: Any, uniform: bool) -> bool:
    """Whether a row has an outcome that the target excludes: then no magnitude can explain it."""
    if not uniform:
        for i in range(first, last):
            if share[i] <= 0.0:
                return True
    return False


@_compile
def _posterior(likelihood: Any, prior: Any) -> float:
    """Turn log likelihoods over the grid into probabilities in place; return the log evidence."""
    top = -np.inf
    for g in range(len(prior)):
        likelihood[g] += prior[g]
        top = max(top, likelihood[g])
    total = 0.0
    for g in range(len(prior)):
        likelihood[g] = math.exp(likelihood[g] - top)
        total += likelihood[g]
    for g in range(len(prior)):
        likelihood[g] /= total
    return top + math.log(total)


@_compile
def weigh(
    start: int,
    stop: int,
    pointer: Any,  # (D * P + 1,): where the non-zero counts of each pair begin
    count: Any,  # (nonzeros,)
    share: Any,  # (nonzeros,): the target's probability of each, or (1,) if it is uniform
    uniform: bool,
    visits: Any,  # (D, P)
    groups: Any,  # (K, P): the group of each pair under each structure
    sizes: Any,  # (K,): number of groups
    prior: Any,  # (G,): log prior of each magnitude
    odds: Any,  # (K,): log prior odds of each structure
    magnitudes: Any,  # (G,)
    weight: Any,  # out (D, P)
    center: Any,  # out (D, P): mean log magnitude
    evidence: Any,  # out (D, K): log evidence of each structure, prior odds included
) -> None:
    """Average the weight M/(M + c) over magnitudes within each structure, and over the structures."""
    K, P = groups.shape
    G = len(magnitudes)
    table, totals, weights = np.empty((TABLE, G)), np.empty((TABLE, G)), np.empty((TABLE, G))
    for c in range(TABLE):
        for g in range(G):
            table[c, g] = log_rising(magnitudes[g] * share[0], float(c)) if uniform else 0.0
            totals[c, g] = log_rising(magnitudes[g], float(c))
            weights[c, g] = magnitudes[g] / (magnitudes[g] + c)
    logs = np.log(magnitudes)
    first_of = np.zeros(K + 1, np.int64)
    for k in range(K):
        first_of[k + 1] = first_of[k] + sizes[k]
    likelihood = np.empty((first_of[K], G))
    row = np.empty(G)
    chance = np.empty(K)
    for d in range(start, stop):
        likelihood[:] = 0.0
        for p in range(P):
            line = d * P + p
            first, last = pointer[line], pointer[line + 1]
            if visits[d, p] > 0 and not _contradicted(first, last, share, uniform):
                _row(
                    first,
                    last,
                    count,
                    share,
                    uniform,
                    visits[d, p],
                    magnitudes,
                    table,
                    totals,
                    row,
                )
                for k in range(K):
                    group = first_of[k] + groups[k, p]
                    for g in range(G):
                        likelihood[group, g] += row[g]
        top = -np.inf
        for k in range(K):
            total = odds[k]
            for group in range(first_of[k], first_of[k + 1]):
                total += _posterior(likelihood[group], prior)
            evidence[d, k] = total
            top = max(top, total)
        total = 0.0
        for k in range(K):
            chance[k] = math.exp(evidence[d, k] - top)
            total += chance[k]
        for p in range(P):
            c = visits[d, p]
            w = 0.0
            m = 0.0
            for k in range(K):
                posterior = likelihood[first_of[k] + groups[k, p]]
                inner = 0.0
                middle = 0.0
                for g in range(G):
                    share_of_prior = weights[int(c), g] if c < TABLE else magnitudes[g] / (magnitudes[g] + c)
                    inner += posterior[g] * share_of_prior
                    middle += posterior[g] * logs[g]
                w += chance[k] / total * inner
                m += chance[k] / total * middle
            weight[d, p] = min(w, 1.0) if c > 0 else 1.0
            if _contradicted(pointer[d * P + p], pointer[d * P + p + 1], share, uniform):
                weight[d, p] = 0.0
            center[d, p] = m
