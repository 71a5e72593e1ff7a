"""How well each prior magnitude explains the counts, and what weights that leads to, for many data sets.

The rows of all data sets stand one after another as lists of their non-zero counts. The marginal likelihood of a row
with counts c under a Dirichlet prior of magnitude M and mean q is, up to the multinomial coefficient,

    Γ(M) / Γ(M + Σc) · Π Γ(Mq + c) / Γ(Mq),

a product of rising factorials Γ(x + c)/Γ(x) = x(x + 1)···(x + c - 1). Plain twin: scipy's Dirichlet-multinomial, in
tests/model/test_evidence.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certeq.base.compiling import njit
from certeq.base.lanes import WIDTH, add_up, fill, load, plus, total

_compile = njit(cache=True, nogil=True, error_model="numpy")
_inner = njit(inner=True, nogil=True, error_model="numpy")
_compile_greatest = njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nnan", "nsz"}
)  # eight at a time; the greatest number is the same in any order
TABLE = 64  # rising factorials of smaller counts are looked up
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1 / math.factorial(k) for k in range(2, 14))
SAFE = 12  # factors between 1e-19 and 1e13, and so their product, are far from the ends of what a float can hold
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


@_inner
def _series(z: float) -> float:
    """What Stirling's formula leaves out."""
    r = 1.0 / z
    r2 = r * r
    return r * (1.0 / 12.0 - r2 * (1.0 / 360.0 - r2 * (1.0 / 1260.0 - r2 / 1680.0)))


@_inner
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
    product: Any,  # room for as many numbers as there are magnitudes
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
        elif uniform or c > FEW:
            q = share[0] if uniform else share[i]
            for g in range(len(magnitudes)):
                out[g] += log_rising(magnitudes[g] * q, c)
    if not uniform:
        _add_few(first, last, count, share, magnitudes, product, out)


@_inner
def _add_few(first: int, last: int, count: Any, share: Any, magnitudes: Any, product: Any, out: Any) -> None:
    """Add the rising factorials of small counts: many factors are multiplied out before one logarithm is taken."""
    product[:], factors = 1.0, 0
    for i in range(first, last):
        if count[i] <= FEW:
            for j in range(int(count[i])):
                for g in range(len(magnitudes)):
                    product[g] *= magnitudes[g] * share[i] + j
                factors += 1
                if factors == SAFE:
                    for g in range(len(magnitudes)):
                        out[g] += math.log(product[g])
                        product[g] = 1.0
                    factors = 0
    if factors:
        for g in range(len(magnitudes)):
            out[g] += math.log(product[g])


@_inner
def _contradicted(first: int, last: int, share: Any, uniform: bool) -> bool:
    """Whether a row has an outcome that the target excludes: then no magnitude can explain it."""
    if not uniform:
        for i in range(first, last):
            if share[i] <= 0.0:
                return True
    return False


@_inner
def _exponentials(x: Any) -> None:
    """exp(x) for x ≤ 0, in place: Taylor's polynomial at x/1024, then ten squarings.

    The last digits are 1024 times as uncertain as the library's, but the loop needs no branches and no bits, so the
    compiler does eight at a time. What is below exp(-700) is nothing.
    """
    for g in range(len(x)):
        y = max(x[g], -700.0) / 1024.0
        e = C12 + y * C13
        e = C8 + y * (C9 + y * (C10 + y * (C11 + y * e)))
        e = C4 + y * (C5 + y * (C6 + y * (C7 + y * e)))
        e = 1.0 + y * (1.0 + y * (C2 + y * (C3 + y * e)))
        for _ in range(10):
            e *= e
        x[g] = e


@_compile_greatest
def _largest(x: Any) -> float:
    top = x[0]
    for g in range(len(x)):
        top = max(top, x[g])
    return top


@_inner
def _posterior(likelihood: Any, prior: Any) -> float:
    """Turn log likelihoods over the grid into probabilities in place; return the log evidence."""
    for g in range(len(prior)):
        likelihood[g] += prior[g]
    top = _largest(likelihood)
    for g in range(len(prior)):
        likelihood[g] -= top
    _exponentials(likelihood)
    total = add_up(likelihood)
    share = 1.0 / total
    for g in range(len(prior)):
        likelihood[g] *= share
    return top + math.log(total)


@_inner
def _tables(magnitudes: Any, share: float) -> Any:
    """Look-up tables for small counts: rising factorials of M·share and of M, and M/(M + c)."""
    G = len(magnitudes)
    table, totals, weights = np.zeros((TABLE, G)), np.empty((TABLE, G)), np.empty((TABLE, G))
    for c in range(TABLE):
        for g in range(G):
            if share > 0:
                table[c, g] = log_rising(magnitudes[g] * share, float(c))
            totals[c, g] = log_rising(magnitudes[g], float(c))
            weights[c, g] = magnitudes[g] / (magnitudes[g] + c)
    return table, totals, weights


@_inner
def _average(posterior: Any, visits: float, magnitudes: Any, logs: Any, weights: Any) -> Any:
    """Mean of M/(M + c) and of log M under probabilities of the magnitudes."""
    row, near = visits < TABLE, int(min(visits, TABLE - 1))
    known, blocks, c = weights[near], len(posterior) // WIDTH, fill(visits)
    weight_lanes, center_lanes = fill(0.0), fill(0.0)
    for i in range(blocks):
        p, M = load(posterior, i), load(magnitudes, i)
        weight_lanes = plus(weight_lanes, p, load(known, i) if row else M / (M + c))
        center_lanes = plus(center_lanes, p, load(logs, i))
    weight, center = total(weight_lanes), total(center_lanes)
    for g in range(blocks * WIDTH, len(posterior)):
        weight += posterior[g] * (magnitudes[g] / (magnitudes[g] + visits))
        center += posterior[g] * logs[g]
    return weight, center


@_compile
def gather(
    start: int,
    stop: int,
    blocks: int,  # units of one data set: a unit is a block of states of one data set
    actions: int,
    pointer: Any,  # (D * P + 1,): where the non-zero counts of each pair begin
    count: Any,  # (nonzeros,)
    share: Any,  # (nonzeros,): the target's probability of each, or (1,) if it is uniform
    uniform: bool,
    visits: Any,  # (D, P)
    wide: Any,  # (K, P): the group of each pair under each structure whose groups reach across states
    prior: Any,  # (G,): log prior of each magnitude
    magnitudes: Any,  # (G,)
    by_state: bool,  # whether one magnitude for each state is among the structures
    by_pair: bool,  # whether one for each pair is
    likelihood: Any,  # out (units, groups, G): summed over the rows of each wide group
    evidence: Any,  # out (units, 2): log evidence of the structures by state and by pair
    weight: Any,  # out (D, P, 2): M/(M + c) averaged under each of them
    center: Any,  # out (D, P, 2): log M averaged likewise
) -> None:
    """Read every row once: finish the structures that stay within a state, collect for those that reach further."""
    P = visits.shape[1]
    G, K = len(magnitudes), len(wide)
    S = P // actions
    table, totals, shares = _tables(magnitudes, share[0] if uniform else 0.0)
    logs = np.log(magnitudes)
    row, state, product = np.empty((actions, G)), np.empty(G), np.empty(G)
    for unit in range(start, stop):
        d, block = unit // blocks, unit % blocks
        for s in range(S * block // blocks, S * (block + 1) // blocks):
            state[:] = 0.0
            for a in range(actions):
                p = s * actions + a
                line = d * P + p
                first, last = pointer[line], pointer[line + 1]
                row[a] = 0.0
                if visits[d, p] > 0 and not _contradicted(first, last, share, uniform):
                    _row(first, last, count, share, uniform, visits[d, p], magnitudes, table, totals, product, row[a])
                    for g in range(G):
                        state[g] += row[a, g]
                    for k in range(K):
                        for g in range(G):
                            likelihood[unit, wide[k, p], g] += row[a, g]
            if by_state:
                evidence[unit, 0] += _posterior(state, prior)
            for a in range(actions):
                p = s * actions + a
                if by_state:
                    weight[d, p, 0], center[d, p, 0] = _average(state, visits[d, p], magnitudes, logs, shares)
                if by_pair:
                    evidence[unit, 1] += _posterior(row[a], prior)
                    weight[d, p, 1], center[d, p, 1] = _average(row[a], visits[d, p], magnitudes, logs, shares)


@_compile
def spread(
    start: int,
    stop: int,
    visits: Any,  # (D, P)
    wide: Any,  # (K, P)
    posterior: Any,  # (D, groups, G): of the magnitude of each wide group
    chance: Any,  # (D, K + 2): probability of each structure, those by state and by pair last
    magnitudes: Any,  # (G,)
    weight: Any,  # (D, P, 2), from `gather`
    center: Any,  # (D, P, 2)
    out_weight: Any,  # out (D, P)
    out_center: Any,  # out (D, P)
) -> None:
    """Average the weights and log magnitudes of each pair over the structures."""
    P = visits.shape[1]
    K = len(wide)
    _, _, shares = _tables(magnitudes, 0.0)
    logs = np.log(magnitudes)
    for line in range(start, stop):
        d, p = line // P, line % P
        w, m = 0.0, 0.0
        for k in range(K):
            inner, middle = _average(posterior[d, wide[k, p]], visits[d, p], magnitudes, logs, shares)
            w += chance[d, k] * inner
            m += chance[d, k] * middle
        for k in range(2):
            if chance[d, K + k] > 0:
                w += chance[d, K + k] * weight[d, p, k]
                m += chance[d, K + k] * center[d, p, k]
        out_weight[d, p] = min(w, 1.0)
        out_center[d, p] = m


@_compile
def row_likelihoods(
    start: int,
    stop: int,
    pointer: Any,  # (P + 1,)
    count: Any,
    share: Any,
    uniform: bool,
    visits: Any,  # (P,)
    magnitudes: Any,  # (G,)
    out: Any,  # (P, G)
) -> None:
    """Log marginal likelihood of each row under each magnitude; 0 for one that the target contradicts."""
    table, totals, _ = _tables(magnitudes, share[0] if uniform else 0.0)
    product = np.empty(len(magnitudes))
    for p in range(start, stop):
        first, last = pointer[p], pointer[p + 1]
        out[p] = 0.0
        if visits[p] > 0 and not _contradicted(first, last, share, uniform):
            _row(first, last, count, share, uniform, visits[p], magnitudes, table, totals, product, out[p])
