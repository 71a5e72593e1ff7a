"""Slow, literal twins of the formulas and algorithms of the paper, used as oracles in the tests.

Everything is written straight from the mathematics: plain loops over states, actions and outcomes, numpy only to hold
arrays, nothing imported from certeq. Where the printed paper slips, the docstring says so and the twin is the corrected
formula (the printed one has a name of its own if a test needs it). It is one file, longer than others here, so that the
paper's mathematics can be read from top to bottom in one place.

Conventions
    T        (S, A, S) transition probabilities. A row may sum to less than 1: the missing mass is "the episode ends".
    R        (S, A) rewards.
    counts   (S, A, S) integers; `ended` (S, A) integers, how often the episode ended after the pair. When `ended` is
             given, ending is one more outcome: N = S + 1 outcomes instead of N = S.
    row      In the functions of one row, a full distribution over all its N outcomes (ending included, if any).
    eps      the weight of the target, ε in the paper.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

Row = Sequence[Any] | np.ndarray
Array = np.ndarray


# ----------------------------------------------------------------------------------------------------------------------
# From data to a transition matrix
# ----------------------------------------------------------------------------------------------------------------------


def tally(states: Row, actions: Row, next_states: Row, S: int, A: int) -> tuple[Array, Array]:
    """Count c(s, a, s') and, for next state -1, how often the episode ended after (s, a). Sec. 4."""
    counts = np.zeros((S, A, S), dtype=int)
    ended = np.zeros((S, A), dtype=int)
    for t in range(len(states)):
        s, a, after = int(states[t]), int(actions[t]), int(next_states[t])
        if after == -1:
            ended[s, a] += 1
        else:
            counts[s, a, after] += 1
    return counts, ended


def mle(counts: Array, ended: Array | None = None, unvisited: str = "uniform") -> Array:
    """Maximum likelihood T: c(s, a, s') / c(s, a), and a stated row where c(s, a) = 0. Sec. 3.

    unvisited: "uniform" (1/N each), "zero" (the episode ends), "self_loop" (stays in s), "average" (the mean of the
    rows of the visited actions of that state; uniform if there is none).
    """
    if unvisited not in ("uniform", "zero", "self_loop", "average"):
        raise ValueError(unvisited)
    S, A = len(counts), len(counts[0])
    N = S if ended is None else S + 1
    visits = np.zeros((S, A), dtype=int)
    for s in range(S):
        for a in range(A):
            for after in range(S):
                visits[s, a] += int(counts[s][a][after])
            if ended is not None:
                visits[s, a] += int(ended[s][a])

    T = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            if visits[s, a] > 0:
                for after in range(S):
                    T[s, a, after] = int(counts[s][a][after]) / int(visits[s, a])

    for s in range(S):
        visited_actions = [a for a in range(A) if visits[s, a] > 0]
        for a in range(A):
            if visits[s, a] > 0 or unvisited == "zero":
                continue
            if unvisited == "self_loop":
                T[s, a, s] = 1.0
            elif unvisited == "average" and len(visited_actions) > 0:
                for after in range(S):
                    total = 0.0
                    for b in visited_actions:
                        total += T[s, b, after]
                    T[s, a, after] = total / len(visited_actions)
            else:
                for after in range(S):
                    T[s, a, after] = 1.0 / N
    return T


def mix(T_data: Array, weight: Any, T_target: Array) -> Array:
    """(1 − w) T_data + w T_target, the common form of Sec. 4. `weight` is one number or one per (s, a)."""
    S, A = len(T_data), len(T_data[0])
    w = np.broadcast_to(weight, (S, A))
    target = np.broadcast_to(T_target, (S, A, S))
    mixed = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            for after in range(S):
                mixed[s, a, after] = (1 - w[s, a]) * T_data[s][a][after] + w[s, a] * target[s, a, after]
    return mixed


# ----------------------------------------------------------------------------------------------------------------------
# Eqs. 1, 2, 3: what each method's weight is
# ----------------------------------------------------------------------------------------------------------------------


def dirichlet_weight(visits: float, alpha_row: Row) -> float:
    """Eq. 1: ε = Σα / (Σc + Σα). Undefined (ZeroDivisionError) without visits and without a prior."""
    magnitude = 0.0
    for alpha in alpha_row:
        magnitude += float(alpha)
    return magnitude / (float(visits) + magnitude)


def posterior_mean(counts_row: Row, alpha_row: Row) -> Array:
    """Posterior mean under a Dirichlet prior, directly: (c_i + α_i) / Σ_j (c_j + α_j). Appendix, before Eq. 1."""
    N = len(counts_row)
    total = 0.0
    for i in range(N):
        total += float(counts_row[i]) + float(alpha_row[i])
    mean = np.zeros(N)
    for i in range(N):
        mean[i] = (float(counts_row[i]) + float(alpha_row[i])) / total
    return mean


def discount_weight(gamma: float, gamma_p: float) -> float:
    """Eq. 2: ε = (γ − γ_p) / γ."""
    return (gamma - gamma_p) / gamma


def implied_magnitude(visits: float, gamma: float, gamma_p: float) -> float:
    """Eq. 3: Σα = (γ − γ_p) / γ_p · Σc. Infinite for γ_p = 0, but 0 for a pair without data whatever γ_p is."""
    if visits == 0:
        return 0.0
    if gamma_p == 0:
        return math.inf
    return (gamma - gamma_p) / gamma_p * visits


# ----------------------------------------------------------------------------------------------------------------------
# Eqs. 4, 5: mean squared error of one regularized row, and the weight that makes it least
# ----------------------------------------------------------------------------------------------------------------------


def row_variance(T_row: Row, c: float, eps: float) -> float:
    """Eq. 4, variance: Σ_i (1 − ε)² T_i (1 − T_i) / c. Needs c > 0."""
    if c <= 0:
        raise ValueError("the variance of a row without visits is not defined")
    total = 0.0
    for i in range(len(T_row)):
        total += (1 - eps) ** 2 * T_row[i] * (1 - T_row[i]) / c
    return total


def row_bias_squared(T_row: Row, target_row: Row, eps: float) -> float:
    """Eq. 4, bias: Σ_i ε² (q_i − T_i)². The main text prints ε for ε²; the appendix has it right."""
    total = 0.0
    for i in range(len(T_row)):
        total += eps**2 * (target_row[i] - T_row[i]) ** 2
    return total


def row_mse(T_row: Row, target_row: Row, c: float, eps: float) -> float:
    """Eq. 4 corrected: Σ_i (1 − ε)² T_i (1 − T_i) / c + ε² (q_i − T_i)²."""
    if c <= 0:
        raise ValueError("the error of a row without visits is not defined")
    total = 0.0
    for i in range(len(T_row)):
        variance = (1 - eps) ** 2 * T_row[i] * (1 - T_row[i]) / c
        bias = eps * (target_row[i] - T_row[i])
        total += variance + bias**2
    return total


def epsilon_star(T_row: Row, target_row: Row, c: float) -> float:
    """Eq. 5: ε* = K / (K + c), K = Σ T_i (1 − T_i) / Σ (q_i − T_i)², written V / (V + c B) so that B = 0 gives 1.

    No data: 1. Denominator 0 (a deterministic row that is its own target; every ε is as good): 1.
    """
    if c == 0:
        return 1.0
    V = 0.0
    B = 0.0
    for i in range(len(T_row)):
        V += T_row[i] * (1 - T_row[i])
        B += (target_row[i] - T_row[i]) ** 2
    if V + c * B == 0:
        return 1.0
    return float(V / (V + c * B))


def epsilon_star_by_grid(T_row: Row, target_row: Row, c: float, points: int = 100001) -> float:
    """Minimize row_mse over an even grid of [0, 1]; the largest of equally good weights. No data: 1."""
    if c == 0:
        return 1.0
    best_eps, best_error = 0.0, math.inf
    for n in range(points):
        eps = n / (points - 1)
        error = row_mse(T_row, target_row, c, eps)
        if error <= best_error:
            best_eps, best_error = eps, error
    return best_eps


def posterior_epsilon_star(counts_row: Row, pseudo_count: float, target_row: Row) -> float:
    """The ε that minimizes the posterior mean of Eq. 4, in closed form; T ~ Dirichlet(c_i + pseudo_count).

    E Σ T_i (1 − T_i) = 1 − S2 and E Σ (q_i − T_i)² = S2 − 2 Σ q_i m_i + Σ q_i², with m the posterior mean and
    S2 = E Σ T_i² = Σ a_i (a_i + 1) / (a (a + 1)). No data: 1.
    """
    N = len(counts_row)
    c = 0
    for i in range(N):
        c += int(counts_row[i])
    if c == 0:
        return 1.0
    a = [float(counts_row[i]) + pseudo_count for i in range(N)]
    a_total = 0.0
    for i in range(N):
        a_total += a[i]
    V = 0.0
    B = 0.0
    for i in range(N):
        mean = a[i] / a_total
        mean_of_square = a[i] * (a[i] + 1) / (a_total * (a_total + 1))
        V += mean - mean_of_square
        B += mean_of_square - 2 * target_row[i] * mean + target_row[i] ** 2
    if V + c * B == 0:
        return 1.0
    return float(V / (V + c * B))


def posterior_epsilon_star_monte_carlo(
    counts_row: Row, pseudo_count: float, target_row: Row, draws: int, rng: np.random.Generator
) -> float:
    """The paper's own way (appendix, after Algorithm 2): average the MSE over draws of T from the posterior, minimize.

    The average is a parabola in ε: it is measured at 0, 1/2 and 1, and its vertex is exact. No data: 1.
    """
    N = len(counts_row)
    c = 0
    for i in range(N):
        c += int(counts_row[i])
    if c == 0:
        return 1.0
    at_zero = at_half = at_one = 0.0
    for _ in range(draws):
        T_row = rng.dirichlet([float(counts_row[i]) + pseudo_count for i in range(N)])
        at_zero += row_mse(T_row, target_row, c, 0.0) / draws
        at_half += row_mse(T_row, target_row, c, 0.5) / draws
        at_one += row_mse(T_row, target_row, c, 1.0) / draws
    slope = -3 * at_zero + 4 * at_half - at_one
    curvature = 2 * at_zero - 4 * at_half + 2 * at_one
    if curvature == 0:
        return 1.0
    return float(min(1.0, max(0.0, -slope / (2 * curvature))))


def hausser_strimmer(counts_row: Row) -> float:
    """Shrinkage intensity toward uniform of Hausser & Strimmer (2009), clipped to [0, 1].

    λ = [(1 − Σ p_i²) / (c − 1)] / Σ (1/N − p_i)², p the MLE. Fewer than two observations or p uniform: 1.
    """
    N = len(counts_row)
    c = 0
    for i in range(N):
        c += int(counts_row[i])
    if c <= 1:
        return 1.0
    V = 1.0
    B = 0.0
    for i in range(N):
        p = int(counts_row[i]) / c
        V -= p**2
        B += (1 / N - p) ** 2
    if B == 0:
        return 1.0
    return min(1.0, max(0.0, V / (c - 1) / B))


# ----------------------------------------------------------------------------------------------------------------------
# Appendix: epsilon-greedy regularization
# ----------------------------------------------------------------------------------------------------------------------


def epsilon_greedy_mse(T_rows: Array, counts_per_action: Row, k: int, eps: float) -> float:
    """MSE of row k when it is mixed with the action average (appendix; right as printed in the MSE display).

    Σ_i (1 − ε + ε/A)² T_ki (1 − T_ki) / c_k + (ε/A)² Σ_{m≠k} T_mi (1 − T_mi) / c_m + (ε/A)² (Σ_{m≠k} (T_mi − T_ki))²

    An unvisited action m ≠ k has a fixed row, the one given, without variance. Needs c_k > 0.
    """
    if counts_per_action[k] <= 0:
        raise ValueError("the error of a row without visits is not defined")
    A, N = len(T_rows), len(T_rows[0])
    total = 0.0
    for i in range(N):
        total += (1 - eps + eps / A) ** 2 * T_rows[k][i] * (1 - T_rows[k][i]) / counts_per_action[k]
        for m in range(A):
            if m != k and counts_per_action[m] > 0:
                total += (eps / A) ** 2 * T_rows[m][i] * (1 - T_rows[m][i]) / counts_per_action[m]
        difference = 0.0
        for m in range(A):
            if m != k:
                difference += T_rows[m][i] - T_rows[k][i]
        total += (eps / A) ** 2 * difference**2
    return float(total)


def epsilon_greedy_star(T_rows: Array, counts_per_action: Row, k: int) -> float:
    """The ε in [0, 1] that minimizes epsilon_greedy_mse.

    ε* = r v_k / (r² v_k + Σ_{m≠k} v_m / A² + D), r = (A − 1)/A, v_m = Σ_i T_mi (1 − T_mi) / c_m,
    D = Σ_i (Σ_{m≠k} (T_mi − T_ki))² / A²; clipped, since it may exceed 1. Unvisited m ≠ k: its row as given, v_m = 0.
    c_k = 0: 1. Denominator 0 (every ε is as good): 1.
    """
    if counts_per_action[k] == 0:
        return 1.0
    A, N = len(T_rows), len(T_rows[0])
    v = [0.0] * A
    for m in range(A):
        if counts_per_action[m] > 0:
            for i in range(N):
                v[m] += T_rows[m][i] * (1 - T_rows[m][i]) / counts_per_action[m]
    D = 0.0
    for i in range(N):
        difference = 0.0
        for m in range(A):
            if m != k:
                difference += T_rows[m][i] - T_rows[k][i]
        D += difference**2 / A**2
    r = (A - 1) / A
    denominator = r**2 * v[k] + D
    for m in range(A):
        if m != k:
            denominator += v[m] / A**2
    if denominator == 0:
        return 1.0
    return float(min(1.0, max(0.0, r * v[k] / denominator)))


def epsilon_greedy_star_printed(T_rows: Array, counts_per_action: Row, k: int) -> float:
    """The appendix's ε as printed: Σ_{m≠k} (T_ki − T_mi)² where the square of the sum belongs, and no clipping.

    Equal to the unclipped corrected form for two actions. The count printed c_{n,m,k} is read as c_{n,m,j}. Edge cases
    as in epsilon_greedy_star.
    """
    if counts_per_action[k] == 0:
        return 1.0
    A, N = len(T_rows), len(T_rows[0])
    numerator = 0.0
    denominator = 0.0
    for i in range(N):
        variance_k = T_rows[k][i] * (1 - T_rows[k][i]) / counts_per_action[k]
        numerator += (1 - 1 / A) * variance_k
        denominator += (1 / A - 1) ** 2 * variance_k
        for m in range(A):
            if m != k:
                if counts_per_action[m] > 0:
                    denominator += T_rows[m][i] * (1 - T_rows[m][i]) / counts_per_action[m] / A**2
                denominator += (T_rows[k][i] - T_rows[m][i]) ** 2 / A**2
    if denominator == 0:
        return 1.0
    return float(numerator / denominator)


def epsilon_greedy_star_posterior(counts_rows: Array, pseudo_count: float, k: int) -> float:
    """epsilon_greedy_star with v_m and D replaced by their posterior means, T_m ~ Dirichlet(c_m + pseudo_count).

    E v_m = (1 − S2_m) / c_m;  E D = Σ_i [(Σ_m w_m μ_mi)² + Σ_m w_m² Var(T_mi)], w_k = 1/A − 1 and w_m = 1/A.
    An unvisited m ≠ k is the fixed row 1/N: μ = 1/N, no variance of either kind. c_k = 0: 1. Denominator 0: 1.
    """
    A, N = len(counts_rows), len(counts_rows[0])
    visits = [0] * A
    for m in range(A):
        for i in range(N):
            visits[m] += int(counts_rows[m][i])
    if visits[k] == 0:
        return 1.0

    mean = np.zeros((A, N))
    mean_of_square = np.zeros((A, N))
    v = [0.0] * A
    for m in range(A):
        if visits[m] == 0:
            for i in range(N):
                mean[m, i] = 1 / N
                mean_of_square[m, i] = (1 / N) ** 2
            continue
        a_total = visits[m] + N * pseudo_count
        for i in range(N):
            a = int(counts_rows[m][i]) + pseudo_count
            mean[m, i] = a / a_total
            mean_of_square[m, i] = a * (a + 1) / (a_total * (a_total + 1))
            v[m] += (mean[m, i] - mean_of_square[m, i]) / visits[m]

    D = 0.0
    for i in range(N):
        bias = 0.0
        for m in range(A):
            w = 1 / A - 1 if m == k else 1 / A
            bias += w * mean[m, i]
            D += w**2 * (mean_of_square[m, i] - mean[m, i] ** 2)
        D += bias**2
    r = (A - 1) / A
    denominator = r**2 * v[k] + D
    for m in range(A):
        if m != k:
            denominator += v[m] / A**2
    if denominator == 0:
        return 1.0
    return float(min(1.0, max(0.0, r * v[k] / denominator)))


def epsilon_greedy_transition(T: Array, weight: Any) -> Array:
    """(1 − ε) T(s, a, s') + ε/A Σ_a' T(s, a', s'). Appendix. `weight` is one number or one per (s, a)."""
    S, A = len(T), len(T[0])
    w = np.broadcast_to(weight, (S, A))
    mixed = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            for after in range(S):
                total = 0.0
                for b in range(A):
                    total += T[s][b][after]
                mixed[s, a, after] = (1 - w[s, a]) * T[s][a][after] + w[s, a] / A * total
    return mixed


def epsilon_greedy_reward(R: Array, weight: Any) -> Array:
    """(1 − ε) R(s, a) + ε/A Σ_a' R(s, a'): what the appendix leaves out by taking the reward to depend on s only."""
    S, A = len(R), len(R[0])
    w = np.broadcast_to(weight, (S, A))
    mixed = np.zeros((S, A))
    for s in range(S):
        for a in range(A):
            total = 0.0
            for b in range(A):
                total += R[s][b]
            mixed[s, a] = (1 - w[s, a]) * R[s][a] + w[s, a] / A * total
    return mixed


# ----------------------------------------------------------------------------------------------------------------------
# Values, policies, loss
# ----------------------------------------------------------------------------------------------------------------------


def value_of_policy(T: Array, R: Array, gamma: float, policy: Row, sweeps: int) -> Array:
    """V^π by repeated backups V(s) ← R(s, π(s)) + γ Σ_s' T(s, π(s), s') V(s'), from V = 0. Sec. 4."""
    S = len(T)
    V = np.zeros(S)
    for _ in range(sweeps):
        backed_up = np.zeros(S)
        for s in range(S):
            a = int(policy[s])
            total = 0.0
            for after in range(S):
                total += T[s][a][after] * V[after]
            backed_up[s] = R[s][a] + gamma * total
        V = backed_up
    return V


def exact_value_of_policy(T: Any, R: Any, gamma: Any, policy: Row) -> Array:
    """V^π from (I − γ T_π) V = R_π by Gaussian elimination; exact if the inputs are Fractions (then dtype object)."""
    S = len(T)
    matrix = []
    for s in range(S):
        a = int(policy[s])
        line = []
        for after in range(S):
            line.append((1 if s == after else 0) - gamma * T[s][a][after])
        line.append(R[s][a])
        matrix.append(line)

    for column in range(S):
        pivot = column
        for s in range(column + 1, S):
            if abs(matrix[s][column]) > abs(matrix[pivot][column]):
                pivot = s
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        if matrix[column][column] == 0:
            raise ZeroDivisionError("I − γ T_π is singular: this policy has no finite value")
        for s in range(column + 1, S):
            factor = matrix[s][column] / matrix[column][column]
            for j in range(column, S + 1):
                matrix[s][j] = matrix[s][j] - factor * matrix[column][j]

    V: list[Any] = [0] * S
    for s in range(S - 1, -1, -1):
        rest = matrix[s][S]
        for j in range(s + 1, S):
            rest = rest - matrix[s][j] * V[j]
        V[s] = rest / matrix[s][s]
    return np.array(V)


def value_iteration(T: Array, R: Array, gamma: float, sweeps: int) -> tuple[Array, Array]:
    """Bellman's optimality backups from V = 0: Q(s, a) = R(s, a) + γ Σ T V, V(s) = max_a Q(s, a). Returns V and Q."""
    S, A = len(T), len(T[0])
    V = np.zeros(S)
    Q = np.zeros((S, A))
    for _ in range(sweeps):
        Q = np.zeros((S, A))
        for s in range(S):
            for a in range(A):
                total = 0.0
                for after in range(S):
                    total += T[s][a][after] * V[after]
                Q[s, a] = R[s][a] + gamma * total
        V = np.zeros(S)
        for s in range(S):
            V[s] = max(Q[s, a] for a in range(A))
    return V, Q


def best_policy_by_enumeration(T: Any, R: Any, gamma: Any) -> Array:
    """Of all A**S deterministic policies, the one with the largest sum of values; within 1e-9 the lexicographic first.

    Needs every policy to have a finite value (γ < 1, or every policy ends).
    """
    S, A = len(T), len(T[0])
    policies = list(itertools.product(range(A), repeat=S))
    totals = []
    for policy in policies:
        V = exact_value_of_policy(T, R, gamma, policy)
        total = V[0]
        for s in range(1, S):
            total = total + V[s]
        totals.append(total)
    best = max(totals)
    for n in range(len(policies)):
        if totals[n] >= best - 1e-9:
            return np.array(policies[n])
    raise AssertionError("unreachable")


def loss(T: Any, R: Any, gamma: Any, policy: Row) -> Any:
    """Mean over states of V*(s) − V^π(s), V* the largest value of any deterministic policy. Appendix, Algorithm 1."""
    S, A = len(T), len(T[0])
    V_policy = exact_value_of_policy(T, R, gamma, policy)
    V_best = list(V_policy)
    for other in itertools.product(range(A), repeat=S):
        V_other = exact_value_of_policy(T, R, gamma, other)
        for s in range(S):
            if V_other[s] > V_best[s]:
                V_best[s] = V_other[s]
    total = V_best[0] - V_policy[0]
    for s in range(1, S):
        total = total + (V_best[s] - V_policy[s])
    return total / S


# ----------------------------------------------------------------------------------------------------------------------
# Algorithm 3: Q-learning with state-action-specific regularization
# ----------------------------------------------------------------------------------------------------------------------


def q_learning(
    transition: Array,
    reward: Array,
    discount: float,
    target: Array,
    *,
    variant: str,
    probability: float,
    steps: int,
    episodes: int,
    step_size: float | Callable[[int], float],
    exploration: float,
    uniform: Callable[[], float],
) -> tuple[Array, Array, float, int]:
    """Algorithm 3, literally. Returns Q, counts of real transitions (S, A, S), real reward, number of simulations.

    variant "standard" never simulates; "constant" simulates with chance `probability`; "specific" with ε*(s, a) of
    Eq. 5, the MLE of the agent's own real transitions standing for T, toward the uniform row. A pair never really tried
    takes a real step. If some row of `transition` lacks mass, ending is one more outcome for ε* (N = S + 1).

    step_size is a number, or a function of how many updates (real or simulated) the pair has had, this one included.

    Draws, in this order. Per episode: start state. Per turn: explore? (then: which action); simulate? (not in
    "standard"); next state. After a real step that ended: a new start state, even if it was the last step.

    Where every action of a state has ε = 1 the algorithm as printed can never leave it: RuntimeError.
    """
    if variant not in ("standard", "constant", "specific"):
        raise ValueError(variant)
    S, A = len(transition), len(transition[0])
    N = S
    for s in range(S):
        for a in range(A):
            mass = 0.0
            for after in range(S):
                mass += transition[s][a][after]
            if mass < 1 - 1e-9:
                N = S + 1

    Q = np.zeros((S, A))
    counts = np.zeros((S, A, S), dtype=int)
    ended = np.zeros((S, A), dtype=int)
    updates = np.zeros((S, A), dtype=int)
    real_reward = 0.0
    simulated_updates = 0

    def draw_next(row: Row) -> int:
        """Invert the cumulative sum of the row; -1 past its mass."""
        u = uniform()
        cumulative = 0.0
        for after in range(S):
            cumulative += row[after]
            if cumulative > u:
                return after
        return -1

    def chance_of_simulating(s: int, a: int) -> float:
        visits = int(ended[s, a])
        for after in range(S):
            visits += int(counts[s, a, after])
        if variant == "standard" or visits == 0:
            return 0.0
        if variant == "constant":
            return probability
        T_row = [int(counts[s, a, after]) / visits for after in range(S)]
        if N == S + 1:
            T_row.append(int(ended[s, a]) / visits)
        return epsilon_star(T_row, [1 / N] * N, visits)

    def update(s: int, a: int, after: int) -> None:
        updates[s, a] += 1
        alpha = step_size(int(updates[s, a])) if callable(step_size) else step_size
        future = 0.0 if after == -1 else max(Q[after, b] for b in range(A))
        Q[s, a] += alpha * (reward[s][a] + discount * future - Q[s, a])

    for _ in range(episodes):
        s = int(uniform() * S)
        steps_taken = 0
        while steps_taken < steps:
            if uniform() < exploration:
                a = int(uniform() * A)
            else:
                a = 0
                for b in range(A):
                    if Q[s, b] > Q[s, a]:
                        a = b
            simulate = False
            if variant != "standard":
                eps = chance_of_simulating(s, a)
                simulate = uniform() < eps
                if eps >= 1 and all(chance_of_simulating(s, b) >= 1 for b in range(A)):
                    raise RuntimeError(f"every action of state {s} is always simulated: no real step can follow")
            if simulate:
                update(s, a, draw_next(target[s][a]))
                simulated_updates += 1
            else:
                after = draw_next(transition[s][a])
                update(s, a, after)
                real_reward += float(reward[s][a])
                steps_taken += 1
                if after == -1:
                    ended[s, a] += 1
                    s = int(uniform() * S)
                else:
                    counts[s, a, after] += 1
                    s = after
    return Q, counts, real_reward, simulated_updates


# ----------------------------------------------------------------------------------------------------------------------
# The worlds, written out, so that the numbers below can be checked without certeq
# ----------------------------------------------------------------------------------------------------------------------


def river_swim() -> tuple[Array, Array]:
    """River Swim of Osband, Russo & Van Roy (2013): T and R. Action 0 is left, 1 is right."""
    T = np.zeros((6, 2, 6))
    T[0, 0, 0] = 1.0
    for s in range(1, 6):
        T[s, 0, s - 1] = 1.0
    T[0, 1, 0], T[0, 1, 1] = 0.4, 0.6
    for s in range(1, 5):
        T[s, 1, s - 1], T[s, 1, s], T[s, 1, s + 1] = 0.05, 0.6, 0.35
    T[5, 1, 5], T[5, 1, 4] = 0.6, 0.4
    R = np.zeros((6, 2))
    R[0, 0] = 0.005
    R[5, 1] = 1.0
    return T, R


def loop(obey: float = 0.5) -> tuple[Array, Array]:
    """Loop of Strens (2000): T and R. Action 0 is a, 1 is b.

    The wished action is taken with chance `obey`, else one of the two at random: 0.5 is the paper's version, 1 the
    deterministic original.
    """
    goes = {  # state: (after a, after b)
        0: (1, 5),
        1: (2, 2),
        2: (3, 3),
        3: (4, 4),
        4: (0, 0),
        5: (0, 6),
        6: (0, 7),
        7: (0, 8),
        8: (0, 0),
    }
    T = np.zeros((9, 2, 9))
    for s in range(9):
        for wished in range(2):
            for done in range(2):
                chance = (1 - obey) / 2
                if done == wished:
                    chance += obey
                T[s, wished, goes[s][done]] += chance
    R = np.zeros((9, 2))
    for a in range(2):
        R[4, a] = 1.0
        R[8, a] = 2.0
    return T, R


def stay_or_leave(kappa: float, similarity: float) -> Array:
    """The controlled environment of the appendix: T on a ring of 10 states. Action 0 probably stays, 1 leaves."""
    T = np.zeros((10, 2, 10))
    for s in range(10):
        for after in range(10):
            leave = (1 - kappa) * 0.1
            if after == (s + 1) % 10:
                leave += kappa
            stay = 0.25 * 0.1
            if after == s:
                stay += 0.75
            T[s, 0, after] = (1 - similarity) * stay + similarity * leave
            T[s, 1, after] = (1 - similarity) * leave + similarity * stay
    return T


def tumor_step(
    state: Row, treat: int, parameters: dict[str, float], dose_penalty: float = 0.0
) -> tuple[tuple[float, float, float, float], float]:
    """One month of the tumor simulator without noise, as the authors' code does it: each line sees the lines above.

    state is (C, P, Q, Qp). Returns the next state and the reward (shrinkage less penalty times concentration).
    """
    C, P, Q, Qp = (float(x) for x in state)
    KDE, gamma = parameters["KDE"], parameters["gamma"]
    size = P + Q + Qp
    if treat == 1:
        C = C + 1
    C = (1 - KDE) * C
    growth = parameters["lambda_P"] * P * (1 - size / parameters["K"])
    P = P + growth + parameters["k_QpP"] * Qp - parameters["k_PQ"] * P - gamma * C * KDE * P
    Q = Q + parameters["k_PQ"] * P - gamma * C * KDE * Q
    Qp = Qp + gamma * C * KDE * Q - parameters["k_QpP"] * Qp - parameters["delta_Qp"] * Qp
    reward = size - (P + Q + Qp) - dose_penalty * C
    return (C, P, Q, Qp), reward


# ----------------------------------------------------------------------------------------------------------------------
# Numbers that do not come from this code: from the paper, its authors' notebooks, or independent computation.
# Good to the digits written. Entries marked "worked by hand" were derived on paper for this file.
# ----------------------------------------------------------------------------------------------------------------------

VECTORS: dict[str, Any] = {
    "river_swim": {
        # keyed by discount; optimal policy at 0.99: right everywhere
        "optimal_value": {
            0.99: [37.855, 38.492, 39.694, 41.011, 42.383, 43.802],
            0.95: [4.669, 5.079, 5.901, 6.906, 8.088, 9.473],
        },
        "optimal_value_mean": {0.99: 40.539},
        "optimal_policy": {0.99: [1, 1, 1, 1, 1, 1]},
    },
    "heat_map": {
        # the figure of Theorem 1: River Swim, same policy from a lower discount and from a blended transition matrix
        "gamma": 0.999,
        "weight": 0.5,
        "planning_discount": 0.4995,
        "optimal_policy": [0, 1, 1, 1, 1, 1],
        "value_lower_discount": [0.00999, 0.00650, 0.02460, 0.09763, 0.38757, 1.53853],
        "value_uniform_blend": [171.907, 171.903, 171.921, 171.994, 172.284, 173.435],
        # the authors blended with rows of 0.10 (mass 0.6): other values, same policy
        "authors_target_cell": 0.10,
        "value_authors_blend": [0.52363, 0.52013, 0.53824, 0.61127, 0.90120, 2.05217],
    },
    "loop": {
        "gamma": 0.99,
        "optimal_value": [21.295, 21.426, 21.642, 21.861, 22.082, 21.538, 21.909, 22.409, 23.082],
        "optimal_value_mean": 21.916,
        "takes_b_in": [0, 5, 6, 7],  # the actions of the other states are ties
        "deterministic_value_of_start": 39.2000,  # 2 γ⁴ / (1 − γ⁵)
    },
    "row_mse": {
        # Eq. 4 by simulation. The row was not recorded; only Σ T_i² matters, and these numbers imply it.
        "outcomes": 10,
        "visits": 7,
        "weight": 0.5,
        "sum_of_squares": 0.2636,
        "simulated": 0.0673,
        "corrected": 0.0672,
        "as_printed": 0.108,  # with ε where ε² belongs
    },
    "posterior_epsilon_star": {
        "counts": [1, 1, 0, 0, 1, 0, 0, 0, 4, 0],
        "pseudo_count": 0.5,
        "closed_form": 0.39855,
        "monte_carlo": 0.39849,
    },
    "epsilon_star": [
        # worked by hand: V / (V + c B)
        {"row": [1 / 2, 1 / 4, 1 / 4], "target": [1 / 3, 1 / 3, 1 / 3], "visits": 5, "weight": 3 / 4},
        {"row": [1 / 2, 1 / 2], "target": [1.0, 0.0], "visits": 4, "weight": 1 / 5},
        {"row": [1.0, 0.0, 0.0], "target": [1 / 3, 1 / 3, 1 / 3], "visits": 3, "weight": 0.0},
        {"row": [1 / 4, 1 / 4, 1 / 4, 1 / 4], "target": [1 / 4, 1 / 4, 1 / 4, 1 / 4], "visits": 9, "weight": 1.0},
    ],
    "epsilon_greedy_star": [
        # worked by hand, action 0: the other two alike (the printed form is too large) ...
        {
            "rows": [[1 / 3, 2 / 3], [2 / 3, 1 / 3], [2 / 3, 1 / 3]],
            "visits": [6, 6, 6],
            "unclipped": 1 / 3,
            "corrected": 1 / 3,
            "as_printed": 1 / 2,
        },
        # ... and the other two opposite (the printed form is too small)
        {
            "rows": [[1 / 2, 1 / 2], [1.0, 0.0], [0.0, 1.0]],
            "visits": [4, 4, 4],
            "unclipped": 3 / 2,
            "corrected": 1.0,
            "as_printed": 1 / 2,
        },
    ],
    "hausser_strimmer": [
        # worked by hand; plug_in is Eq. 5 with the MLE for T
        {"counts": [3, 1], "intensity": 1.0, "plug_in": 3 / 7},
        {"counts": [4, 0], "intensity": 0.0, "plug_in": 0.0},
        {"counts": [1, 0, 0], "intensity": 1.0, "plug_in": 0.0},
        {"counts": [2, 2], "intensity": 1.0, "plug_in": 1.0},
        {"counts": [6, 2, 0], "intensity": 9 / 49, "plug_in": 9 / 65},
    ],
    "implied_prior_figure": {
        # α_i = 2 (0.99 − γ_p) / γ_p; keyed by planning discount
        "states": 10,
        "visits": 20,
        "gamma": 0.99,
        "alpha_per_state": {0.11: 16.0, 0.33: 4.0, 0.5: 1.96, 0.66: 1.0, 0.9: 0.2, 0.99: 0.0},
    },
    "authors_weights": [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99],
    "tumor": {
        "parameters": {
            "TMZ": {
                "KDE": 0.32,
                "lambda_P": 0.114,
                "k_QpP": 0.0045,
                "k_PQ": 0.0226,
                "gamma": 0.842,
                "delta_Qp": 0.0214,
                "K": 100.0,
            },
            "PCV": {
                "KDE": 0.24,
                "lambda_P": 0.121,
                "k_QpP": 0.0031,
                "k_PQ": 0.0295,
                "gamma": 0.729,
                "delta_Qp": 0.00867,
                "K": 100.0,
            },
        },
        "start": {"TMZ": [0.0, 0.924, 42.3, 0.0], "PCV": [0.0, 7.13, 41.2, 0.0]},
        # without noise: actions from the start, and the state (C, P, Q, Qp) after each
        "steps": [
            {
                "drug": "TMZ",
                "actions": [1, 1, 0],
                "states": [
                    [0.68, 0.793629, 34.567764, 6.333478],
                    [1.1424, 0.612659, 23.941367, 13.538791],
                    [0.776832, 0.574740, 18.943198, 17.153130],
                ],
            },
            {"drug": "TMZ", "actions": [0], "states": [[0.0, 0.962923, 42.321762, 0.0]]},
            {
                "drug": "PCV",
                "actions": [1, 1],
                "states": [[0.76, 6.417364, 35.910965, 4.775067], [1.3376, 5.151764, 27.658825, 11.191762]],
            },
        ],
        # mean tumor diameter of TMZ (mm) without noise, after these months
        "months": [0, 1, 5, 10, 15, 20, 30],
        "diameter": {
            "sequential": {
                "never": [43.22, 43.28, 43.55, 43.95, 44.44, 45.03, 46.59],
                "every_month": [43.22, 41.69, 27.86, 22.64, 19.83, 17.41, 13.43],
                "six_doses": [43.22, 41.69, 27.86, 23.63, 21.55, 20.16, 19.73],
            },
            "simultaneous": {
                "never": [43.22, 43.28, 43.55, 43.94, 44.43, 45.01, 46.55],
                "every_month": [43.22, 43.11, 40.52, 35.76, 31.40, 27.57, 21.26],
                "six_doses": [43.22, 43.11, 40.52, 36.21, 32.88, 30.50, 28.68],
            },
            "ode": {
                "never": [43.22, 43.29, 43.56, 43.96, 44.46, 45.06, 46.65],
                "every_month": [43.22, 42.98, 39.85, 35.10, 30.85, 27.12, 20.96],
                "six_doses": [43.22, 42.98, 39.85, 35.44, 31.97, 29.43, 27.23],
            },
        },
    },
}


# ----------------------------------------------------------------------------------------------------------------------
# Borrowing rows from other pairs (learned_target; not in the paper)
# ----------------------------------------------------------------------------------------------------------------------


def made_from(
    places: Any, axes: Sequence[str], here: int, source: int, outcome: int, walls: Collection[tuple[int, int, int]] = ()
) -> int:
    """Where the move from ``source`` to ``outcome`` leads when it is made from ``here``.

    ``places`` holds a tuple for each state, or None for a state without a place. An outcome without one is the same
    from everywhere. A move is held at the ends of a line; where no state has the place it leads to, or where it would
    cross a wall, one stays.
    """
    if outcome >= len(places) or places[outcome] is None:
        return outcome
    if any(border in walls for border in borders_crossed(places, axes, here, source, outcome)):
        return here
    landed = []
    for k, axis in enumerate(axes):
        taken = [place[k] for place in places if place is not None]
        low, high = min(taken), max(taken)
        was, then, now = places[source][k], places[outcome][k], places[here][k]
        if axis == "label":
            landed.append(now if was == then else then)
        elif axis == "ring":
            landed.append(low + (now + then - was - low) % (high - low + 1))
        else:
            landed.append(min(max(now + then - was, low), high))
    found = [s for s, place in enumerate(places) if place == tuple(landed)]
    return found[0] if found else here


def borders_crossed(
    places: Any, axes: Sequence[str], here: int, source: int, outcome: int
) -> list[tuple[int, int, int]]:
    """Borders (state in front, axis, direction) that a move crosses when it is made from ``here``, axis by axis."""
    crossed = []
    if outcome >= len(places) or places[outcome] is None or places[here] is None:
        return []
    for k, axis in enumerate(axes):
        if axis == "label":
            continue
        taken = [place[k] for place in places if place is not None]
        low, size = min(taken), max(taken) - min(taken) + 1
        apart = places[outcome][k] - places[source][k]
        if axis == "ring":
            apart = min((apart % size, apart % size - size), key=lambda x: (abs(x), -x))
        direction = 1 if apart > 0 else -1
        place = list(places[here])
        for _ in range(abs(apart)):
            at = places.index(tuple(place))
            place[k] += direction
            if axis == "ring":
                place[k] = low + (place[k] - low) % size
            if tuple(place) not in places:
                break
            crossed.append((at, k, direction))
    return crossed


def walls(table: Array, places: Any, axes: Sequence[str]) -> set[tuple[int, int, int]]:
    """Borders that hardly any row crosses though the usual moves of the actions would.

    A border that X moves would cross and O do has evidence .98 X + O log .02. It must be positive; and more than 10,
    with what speaks for it seen from the other side and for its pieces on its sides, or one of these is closed.
    """
    S, A, N = table.shape
    evidence: dict[tuple[int, int, int], float] = {}
    placed = [s for s in range(S) if places[s] is not None]
    for s, a, n in itertools.product(placed, range(A), range(N)):
        for border in borders_crossed(places, axes, s, s, n):
            evidence[border] = evidence.get(border, 0.0) + float(table[s, a, n]) * math.log(0.02)
        moved = table[placed, a].sum()
        for source in placed:
            for border in borders_crossed(places, axes, s, source, n):
                would = table[s, a].sum() * table[source, a, n] / moved if moved else 0.0
                evidence[border] = evidence.get(border, 0.0) + 0.98 * would
    positive = {border: amount for border, amount in evidence.items() if amount > 0}
    beside = {
        (s, k, direction): [(o, k, direction) for o in placed if steps_apart(places, axes, s, o) == 1
                            and places[o][k] == places[s][k]]
        for s, k, direction in positive
    }  # fmt: skip
    found: set[tuple[int, int, int]] = set()
    for s, k, direction in positive:
        opposite = [(o, j, way) for o, j, way in positive if (j, way) == (k, -direction)
                    and borders_crossed(places, axes, o, o, s) == [(o, k, way)]]  # fmt: skip
        pieces = [(s, k, direction), *beside[s, k, direction], *opposite]
        if sum(positive.get(border, 0.0) for border in pieces) > 10:
            found.add((s, k, direction))
    while more := {border for border in positive if found & set(beside[border])} - found:
        found |= more
    return found


def steps_apart(places: Any, axes: Sequence[str], one: int, other: int) -> float:
    """How many steps along lines and rings lie between two states; infinitely many between different labels."""
    if places[one] is None or places[other] is None:
        return math.inf
    total = 0.0
    for k, axis in enumerate(axes):
        apart = abs(places[one][k] - places[other][k])
        if axis == "label":
            total += math.inf if apart else 0
        elif axis == "ring":
            taken = [place[k] for place in places if place is not None]
            total += min(apart, max(taken) - min(taken) + 1 - apart)
        else:
            total += apart
    return total


def across(places: Any, axes: Sequence[str], s: int, first: int, second: int) -> bool:
    """Whether two states lie one step from s on opposite sides of it."""
    here = places[s]
    for k, axis in enumerate(axes):
        taken = [place[k] for place in places if place is not None]
        size = max(taken) - min(taken) + 1
        ahead, back = places[first][k] - here[k], here[k] - places[second][k]
        if (ahead - back) % size if axis == "ring" else ahead != back:
            return False
    return True


def borrowed_rows(
    table: Array, places: Any, axes: Sequence[str], s: int, a: int, left_out: bool, closed: Any = None
) -> dict[str, Array]:
    """Candidate targets of the pair (s, a), from counts ``(S, A, N)`` over all outcomes.

    Each is (f + k·base)/(m + k), where f adds up rows of other pairs, m of them in all, and base is the candidate that
    it looks on at. With ``left_out`` the pair's own rows have no say, nor those of its action in moves of any action.
    ``closed`` are the walls, where they were found already.
    """
    S, A, N = table.shape
    counts = table.astype(float).copy()
    if left_out:
        counts[s, a] = 0.0
    uniform = np.full(N, 1 / N)
    if closed is None:
        closed = set() if places is None else walls(table, places, axes)

    def look(pairs: list[tuple[int, int]], base: Array, moving: bool = False, k: float = 1) -> Array:
        field = np.zeros(N)
        for source, b in pairs:
            for n in range(N):
                field[made_from(places, axes, s, source, n, closed) if moving else n] += counts[source, b, n]
        return (field + k * base) / (field.sum() + k)

    everything = [(source, b) for source in range(S) for b in range(A)]
    rows = {"uniform": uniform, "arrivals": look(everything, uniform)}
    rows["action"] = look([(source, a) for source in range(S)], rows["arrivals"])
    rows["state"] = look([(s, b) for b in range(A)], rows["arrivals"])
    rows["stay"] = 0.1 * uniform
    rows["stay"][s] += 0.9
    if places is None:
        return rows
    placed = [source for source in range(S) if places[source] is not None and places[s] is not None]
    rows["moves"] = look([(source, b) for source in placed for b in range(A) if b != a or not left_out], uniform, True)
    rows["action_moves"] = look([(source, a) for source in placed], rows["moves"], True)
    around = {h: [(o, a) for o in placed if steps_apart(places, axes, s, o) <= h] for h in (1, 2)}
    rows["wider_moves"] = look(around[2], rows["action_moves"], True, 6)
    rows["near_moves"] = look(around[1], rows["wider_moves"], True, 6)
    tried = [o for o, _ in around[1] if counts[o, a].sum() > 0]
    between = [(o, a) for o in tried if o == s or any(across(places, axes, s, o, other) for other in tried)]
    rows["near"] = look(between, rows["action"], False, 6)
    return rows


def target_shares(table: Array, judged: Array, rounds: int = 10) -> Array:
    """Shares ``(A, J)`` of candidates in the target, by EM; ``judged`` is ``(S, A, J, N)``, own rows left out."""
    S, A, N = table.shape
    J = judged.shape[2]
    prior = np.array([1.0] + [0.3] * (J - 1))
    share = np.tile(prior / prior.sum(), (A, 1))
    M = float(N)
    for _ in range(rounds):
        gained = np.zeros((A, J))
        held = 1 / N
        for s, a in itertools.product(range(S), range(A)):
            held += sum(1 / (M + i) for i in range(int(table[s, a].sum())))
            for n in range(N):
                q = judged[s, a, :, n]
                mean = float(share[a] @ q)
                draws = sum(M * mean / (M * mean + i) for i in range(int(table[s, a, n])))
                gained[a] += draws * share[a] * q / mean
        M = (1 + gained.sum()) / held
        total = prior + gained.sum(axis=0)
        total /= total.sum()
        share = gained + 5 * total
        share /= share.sum(axis=1, keepdims=True)
    return share


def share_of_variance_lost(reward, kept):
    """1 - variance of the rewards that are kept / variance of all; 0 where too few are left out to tell."""

    def variance(values):
        mean = sum(values) / len(values)
        return sum((value - mean) ** 2 for value in values) / len(values)

    rest = [value for value, keep in zip(reward, kept, strict=True) if keep]
    out = len(reward) - len(rest)
    remains = variance(rest) if rest else 0.0
    if variance(reward) == 0 or not (out >= 5 or (out > 1 and remains == 0)):
        return 0.0
    return 1 - remains / variance(reward)


# ---- rewards ----


def pooled_reward(rows: Sequence[tuple[int, int, float]], groups: Sequence[Any], strengths: Sequence[float]) -> float:
    """Mean reward along a chain of groups, each a set of pairs; the last is never drawn toward anything.

    From the widest to the narrowest: the group's rows and so many made-up rows that earn the wider group's mean.
    """
    mean = 0.0
    for group, strength in zip(reversed(groups), (0.0, *reversed(strengths)), strict=True):
        earned = [r for s, a, r in rows if (s, a) in group]
        if len(earned) + strength > 0:
            mean = (sum(earned) + strength * mean) / (len(earned) + strength)
    return mean


def left_out_error(rows: Sequence[tuple[int, int, float]], chains: Any, strengths: Sequence[float]) -> float:
    """Squared errors of all rows, each predicted from the others, added up; ``chains`` has the groups of a pair."""
    total = 0.0
    for i, (s, a, r) in enumerate(rows):
        others = [row for j, row in enumerate(rows) if j != i]
        total += (r - pooled_reward(others, chains[s, a], strengths)) ** 2
    return total


def outcome_reward(
    rows: Sequence[tuple[int, int, int, float]], row: Row, weight: float, target: Row, s: int, a: int
) -> float:
    """What a pair earns in the plan, with own means: over the outcomes of (1 - w)·data + w·target, each paid as seen.

    ``rows`` are (state, action, next state or -1, reward); ``row`` and ``target`` leave out the chance of ending.
    """
    on = [r for t, b, n, r in rows if (t, b) == (s, a) and n >= 0]
    end = [r for t, b, n, r in rows if (t, b) == (s, a) and n < 0]
    total = 0.0
    for share, law in ((1 - weight, row), (weight, target)):
        for chance, paid in ((sum(law), on), (1 - sum(law), end)):
            total += share * chance * (sum(paid) / len(paid) if paid else 0.0)
    return total


def likely_set(chances, action, min_chance):
    """The actions that are advised in one state: the planned one if it is likely enough, else as many as it takes.

    Actions are added from the likeliest on, those that are equally likely together, until chances reach the limit.
    """
    if action < 0:
        return set()
    if chances[action] >= min_chance - 1e-9:
        return {action}
    found, total = {action}, 0.0
    for level in sorted({chance for chance in chances if chance > 0}, reverse=True):
        if total >= min_chance - 1e-9:
            break
        same = [a for a, chance in enumerate(chances) if chance == level]
        found.update(same)
        total += level * len(same)
    return found


def best_average(T: Any, R: Any) -> float:
    """The most reward per decision: every policy is followed, from its own share of the time in each state."""
    S, A = len(R), len(R[0])
    best = -np.inf
    for policy in itertools.product(range(A), repeat=S):
        chain = np.array([T[s][policy[s]] for s in range(S)])
        system = np.vstack([chain.T - np.eye(S), np.ones(S)])  # shares stay as they are, and sum to 1
        often = np.linalg.lstsq(system, np.append(np.zeros(S), 1.0), rcond=None)[0]
        best = max(best, sum(often[s] * R[s][policy[s]] for s in range(S)))
    return float(best)


def semi_markov_rows(rows: Sequence[tuple[int, int, int, float]], gamma: float, S: int, A: int) -> Array:
    """What the next value counts for: Σ γ^Δt over the rows of (s, a, s'), over all rows of (s, a); -1 is an ending."""
    found = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            tried = [row for row in rows if row[0] == s and row[1] == a]
            for _, _, then, lasted in tried:
                if then >= 0:
                    found[s, a, then] += gamma**lasted / len(tried)
    return found


def few_rules(agree: Sequence[Sequence[int]], ways: Sequence[Collection[int]], leaves: int, least: float) -> list[set]:
    """Grow a small tree by trying everything: the states of its leaves, in order.

    `agree[s][a]` are the visits of state s that a leaf would agree with if it named action a; each of `ways` is the set
    of states on the first side of a cut. Each time, every leaf is cut by every way, or by every two (one of the two
    sides again), and what adds most agreement for each leaf added is kept: of equals the one in the first leaf, one cut
    before two.
    """

    def agreed(states):
        return max((sum(agree[s][a] for s in states) for a in range(len(agree[0]))), default=0)

    def cut(states, way):
        return [states & set(way), states - set(way)]

    best_of_all = sum(max(row) for row in agree)
    tree = [set(range(len(agree)))]
    while True:
        best = None
        for place, leaf in enumerate(tree):
            singles = [cut(leaf, way) for way in ways]
            doubles = [
                [*cut(inside, second), outside] if side == 0 else [inside, *cut(outside, second)]
                for inside, outside in singles
                for side in (0, 1)
                for second in ways
            ]
            for options in (singles, doubles):
                for parts in options:
                    if len(tree) + len(parts) - 1 > leaves:
                        continue
                    gain = (sum(map(agreed, parts)) - agreed(leaf)) / (len(parts) - 1)
                    if best is None or gain > best[0]:
                        best = (gain, place, parts)
        if best is None or best[0] < max(least * best_of_all, 1):
            return tree
        tree[best[1] : best[1] + 1] = best[2]


def dirichlet_row(alpha: Any, uniform: Any) -> list[float]:
    """A Dirichlet row from uniform numbers: gamma variates by Best (from 1 on) and by Ahrens and Dieter (below)."""

    def large(a: float) -> float:
        if a == 1.0:
            return -math.log(1 - next(uniform))
        while True:
            u, v = next(uniform), next(uniform)
            w = u * (1 - u)
            y = math.sqrt((3 * a - 0.75) / w) * (u - 0.5)
            x = a - 1 + y
            if x > 0 and math.log(64 * w**3 * v**2) <= 2 * ((a - 1) * math.log(x / (a - 1)) - y):
                return x

    def small(a: float, least: float) -> float:
        while True:
            u = next(uniform)
            y = 0.0
            if u <= 1 - a:
                log_x = math.log(u) / a
                if log_x < least:
                    return 0.0
            else:
                y = -math.log((1 - u) / a)
                log_x = math.log(1 - a + a * y) / a
            if math.exp(log_x) <= y - math.log(1 - next(uniform)):
                return math.exp(log_x)

    row = [large(a) if a >= 1 else 0.0 for a in alpha]
    least = math.log(1e-18 * sum(row)) if sum(row) > 0 else -700.0
    row = [small(a, least) if 0 < a < 1 else x for a, x in zip(alpha, row, strict=True)]
    if sum(row) == 0:
        level, u = 0.0, next(uniform) * sum(alpha)
        for i, a in enumerate(alpha):
            level += a
            if u < level:
                return [float(j == i) for j in range(len(alpha))]
    return [x / sum(row) for x in row]


def habits(visits: Row, leans: Row, sizes: Row, apart: float, own: float) -> Array:
    """How likely people were to take each action in each state, by the best of a grid of priors around a usual action.

    The chances of a state are drawn from Dirichlet(b + (a - b)·[action = u]) with a usual action u, any with the same
    chance, or, with chance ``apart``, from Dirichlet(own). A lean of 0 makes a = b, one of 1 would make b = 0.
    """
    S, A = len(visits), len(visits[0])

    def chance(row: Row, given: Row) -> float:
        """Dirichlet-multinomial chance of rows in a given order."""
        logs = math.lgamma(sum(given)) - math.lgamma(sum(given) + sum(row))
        return math.exp(logs + sum(math.lgamma(g + n) - math.lgamma(g) for g, n in zip(given, row, strict=True)))

    def priors(lean: float, size: float) -> list[list[float]]:
        top = 1 / A + lean * (1 - 1 / A)
        return [[size * (top if a == u else (1 - top) / (A - 1)) for a in range(A)] for u in range(A)]

    def state(row: Row, lean: float, size: float) -> float:
        usual = sum(chance(row, prior) for prior in priors(lean, size)) / A
        return (1 - apart) * usual + apart * chance(row, [own] * A)

    fits = {
        (size, lean): sum(math.log(state(row, lean, size)) for row in visits)
        for size, lean in itertools.product(sizes, leans)
    }
    best = next(each for each, fit in fits.items() if fit >= max(fits.values()) - 1e-9)
    found = np.zeros((S, A))
    for s, row in enumerate(visits):
        weighed = [((1 - apart) / A * chance(row, prior), prior) for prior in priors(best[1], best[0])]
        weighed.append((apart * chance(row, [own] * A), [own] * A))
        for weight, prior in weighed:
            for a in range(A):
                mean = (row[a] + prior[a]) / (sum(row) + sum(prior))
                found[s, a] += weight / sum(w for w, _ in weighed) * mean
    return found


def shortfall(rows: Any, advised: Any, values: Any, discount: float) -> float:
    """How much less rows that took the advice after one that did were worth than all that took it, beside the values.

    Rows are (episode, state, action, reward, next state), in the order in which they came.
    """
    every, later, before = [], [], {}
    for episode, s, a, r, after in rows:
        if advised[s][a]:
            off = r + discount * (values[after] if after >= 0 else 0.0) - values[s]
            every.append((episode, off))
            if before.get(episode) == s:
                later.append((episode, off))
        before[episode] = after if advised[s][a] else None
    if len(later) < 10:
        return 0.0
    mean, late = (statistics.fmean(off for _, off in part) for part in (every, later))
    error = 0.0
    for one in {episode for episode, _ in every}:
        mine = sum(off - mean for episode, off in every if episode == one) / len(every)
        error += (sum(off - late for episode, off in later if episode == one) / len(later) - mine) ** 2
    return max(0.0, (mean - late) * (1 - error / (mean - late) ** 2)) if late < mean else 0.0


def overstated(rows: Any, chain: Any, gain: Any, discount: float, decisions: int) -> float:
    """How much more a model says that people earned than they did, episode by episode; 0 if no more.

    Rows are (episode, state, action, reward, next state), in the order in which they came; an episode ends at -1.
    """
    gaps = []
    for one in sorted({row[0] for row in rows}):
        own = [row for row in rows if row[0] == one]
        ended = own[-1][4] == -1 and len(own) <= decisions
        told = decisions if ended else min(len(own), decisions)

        def worth(s: int, k: int) -> float:
            return 0.0 if k == 0 else gain[s] + discount * sum(p * worth(t, k - 1) for t, p in enumerate(chain[s]))

        earned = sum(discount**step * row[3] for step, row in enumerate(own[:decisions]))
        gaps.append(worth(own[0][1], told) - earned)
    return max(0.0, statistics.fmean(gaps))


def resting(rows: Any, often: Any, values: Any, discount: float) -> float:
    """How many rows a value rests on: the square of the sum of squares over the sum of fourth powers."""
    worth = [r + discount * (values[after] if after >= 0 else 0.0) for _, _, _, r, after in rows]
    moved = []
    for (_, s, a, *_), own in zip(rows, worth, strict=True):
        alike = [w for (_, t, b, *_), w in zip(rows, worth, strict=True) if (t, b) == (s, a)]
        moved.append(often[s][a] / len(alike) * (own - statistics.fmean(alike)))
    return sum(x**2 for x in moved) ** 2 / sum(x**4 for x in moved)


def ends(draws: Any, each: int, claimed: float, flattery: float, further: float, rests: float, exact: bool) -> Any:
    """Ends of a 90% interval of draws, so many from each data set: one number at a time."""
    low, center, high = (_weibull(sorted(draws), share) for share in (0.05, 0.5, 0.95))
    kept = math.sqrt(0.5 + 0.5 * 3 / (3 + rests))
    sets = [draws[i : i + each] for i in range(0, len(draws) - each + 1, each)]
    means, spreads = [statistics.fmean(one) for one in sets], [statistics.stdev(one) for one in sets]
    middle = statistics.fmean(means)
    slope = sum((m - middle) * s for m, s in zip(means, spreads, strict=True)) / sum((m - middle) ** 2 for m in means)
    farther = 1 / (1 - statistics.NormalDist().inv_cdf(0.95) * min(max(slope, 0.0), 0.5) / 3)
    below = math.sqrt((kept * (center - low)) ** 2 + flattery**2) if exact else center - low + flattery
    return center - below - further, max(center, claimed) + kept * farther * (high - center)


def better(gains: Any, flattery: float, further: float, rests: float, exact: bool) -> tuple[float, float]:
    """Chance that something is gained, with what is promised too much taken off and without: one draw at a time."""
    low, center = (_weibull(sorted(gains), share) for share in (0.05, 0.5))
    kept = math.sqrt(0.5 + 0.5 * 3 / (3 + rests))
    kept = kept if exact else 1.0
    wide, off = kept, flattery + further
    if exact:
        below = center - low
        wide, off = math.sqrt((kept * below) ** 2 + flattery**2) / below if below > 0 else 1.0, further

    def share(times: float, less: float) -> float:
        won = [0.5 if gain == 0 else float(center + times * (gain - center) > less) for gain in gains]
        return statistics.fmean(won)

    return share(wide, off), share(kept, 0.0)


def _weibull(ordered: Any, share: float) -> float:
    """The number with so much below it: of n in order, the i-th has i / (n + 1) below it."""
    place = share * (len(ordered) + 1)
    i = min(max(int(place), 1), len(ordered))
    then = min(i + 1, len(ordered))
    return float(ordered[i - 1] + (place - i) * (ordered[then - 1] - ordered[i - 1]))


def leads(q: Any, near: float) -> list[float]:
    """How far each action is ahead of the best other one; 0 for those that are best together."""
    found = []
    for a, own in enumerate(q):
        other = max((x for b, x in enumerate(q) if b != a), default=-math.inf)
        found.append(0.0 if abs(own - other) <= near and own >= max(q) - near else own - other)
    return found


def best_chances(ahead: Any, each: int, enough: int) -> list[float]:
    """Chance of each action to be best, from its lead in each draw, so many draws from each of some data sets."""
    D, A = len(ahead), len(ahead[0])
    found = [0.0] * A
    ties = any(x == 0 for draw in ahead for x in draw)
    for a in range(A):
        lead = [draw[a] if math.isfinite(draw[a]) else math.copysign(1.0, draw[a]) for draw in ahead]
        sets, kept = [lead[i : i + each] for i in range(0, D - each + 1, each)], 1.0
        if each > 1 and len(sets) >= enough and not ties:
            within = statistics.fmean(statistics.variance(one) for one in sets)
            between = max(statistics.variance([statistics.fmean(one) for one in sets]) - within / each, 0.0)
            kept = math.sqrt(max(within, between) / (within + between)) if within + between > 0 else 1.0
        center = statistics.median(lead)
        for draw, x in zip(ahead, lead, strict=True):
            alike = sum(1 for y in draw if y == 0)
            found[a] += 1 / alike / D if draw[a] == 0 else (center + kept * (x - center) > 0) / D
    total = max(sum(found), 1.0)
    return [share / total for share in found]


def worth_ahead(episode: Any, values: Any, discount: float, ahead: int) -> list[float]:
    """What each row (paid, next state or -1) of an episode was worth over so many decisions, and what lies beyond."""
    found = []
    for i in range(len(episode)):
        part, total = episode[i : i + ahead], 0.0
        for k, (paid, _) in enumerate(part):
            total += discount**k * paid
        then = part[-1][1]
        found.append(total + (discount ** len(part) * values[then] if then >= 0 else 0.0))
    return found


def bolder(rows: Any) -> float:
    """Standard errors by which bold rows were worth more than usual ones of their state: (episode, state, kind, x)."""
    weight, low, gap = {}, {}, {}
    for s in {state for _, state, _, _ in rows}:
        of = {kind: [x for _, state, own, x in rows if state == s and own == kind] for kind in ("bold", "usual")}
        n, m = len(of["bold"]), len(of["usual"])
        if n and m:
            weight[s], low[s] = (n * m / (n + m), n, m), statistics.fmean(of["usual"])
            gap[s] = statistics.fmean(of["bold"]) - low[s]
    total = sum(weight[s][0] for s in weight)
    mean = sum(weight[s][0] * gap[s] for s in weight) / total
    by_episode: dict[Any, float] = {}
    for episode, s, kind, x in rows:
        if s in weight:
            w, n, m = weight[s]
            own = {"bold": w / n * (x - low[s] - mean), "usual": -w / m * (x - low[s])}.get(kind, 0.0)
            by_episode[episode] = by_episode.get(episode, 0.0) + own
    return mean * total / math.sqrt(sum(each**2 for each in by_episode.values()))


def swept(
    near: Any, far: Any, R: Any, discount: float, values: Any, seen_far: Any, pieces: int, backward: bool
) -> list[float]:
    """Values backed up in place, by what those of the state's own piece have become before it; far rows see others."""
    S, A = len(R), len(R[0])
    found = list(values)
    for piece in range(pieces):
        own = range(S * piece // pieces, S * (piece + 1) // pieces)
        for s in reversed(own) if backward else own:
            seen = [found[t] if t in own else values[t] for t in range(S)]
            ahead = [sum(near[s][a][t] * seen[t] + far[s][a][t] * seen_far[t] for t in range(S)) for a in range(A)]
            found[s] = max(R[s][a] + discount * ahead[a] for a in range(A))
    return found


def stick_row(counts: Row, magnitude: float, target: Row, draw: Any, left_at: float, smooth: float, few: int) -> Array:
    """A row of `certeq.questions.sparse_draws`, one outcome at a time; counts and target end with ending."""
    states = len(counts) - 1
    goes_on = float(sum(target[:states]))
    M, row = magnitude * goes_on, np.zeros(states + 1)
    grown = [draw.gamma(c) if c > 0 else 0.0 for c in counts[:states]]
    unseen, ended = draw.gamma(M), draw.gamma(counts[states] + magnitude - M) if counts[states] + magnitude > M else 0.0
    total = sum(grown) + unseen + ended
    for i, grain in enumerate(grown):
        row[i] = grain / total
    row[states], left = ended / total, unseen / total
    given = [q / goes_on for q in target[:states]]
    while smooth > M and left > left_at:
        stick = draw.beta(1, M)
        row[draw.choice(states, p=given)] += left * stick
        left *= 1 - stick
    k = 1 if smooth > M else min(few, math.floor(M) + 1)
    for _ in range(k):
        row[draw.choice(states, p=given)] += left / math.sqrt(k * (M + 1))
    for i in range(states):
        row[i] += left * (1 - math.sqrt(k / (M + 1))) * given[i]
    return row
