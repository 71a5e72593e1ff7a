"""A literal twin for the worlds' known values, so that these tests lean on no planner."""

import numpy as np
import pytest


def _optimal_values(mdp):
    """Best value of each state: try every deterministic policy's improvement until nothing improves."""
    T, R, discount = mdp.transition.dense(), mdp.reward, mdp.discount
    states = np.arange(len(T))
    policy = np.zeros(len(T), dtype=int)
    while True:
        values = np.linalg.solve(np.eye(len(T)) - discount * T[states, policy], R[states, policy])
        q = R + discount * T @ values
        better = np.where(q.max(axis=1) > q[states, policy] + 1e-12, q.argmax(axis=1), policy)
        if (better == policy).all():
            return values, policy
        policy = better


@pytest.fixture
def optimal_values():
    return _optimal_values
