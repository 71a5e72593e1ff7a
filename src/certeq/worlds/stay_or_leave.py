"""Stay or leave: the paper's controlled world, a ring whose dynamics are turned by two knobs.

Two basic motions, U being the jump to a state drawn uniformly from all of them:

    leave = κ · (s → s + 1) + (1 − κ) · U
    stay  = 0.75 · (s → s) + 0.25 · U

and two actions that mix them:

    "stay"  = (1 − λ) · stay  + λ · leave
    "leave" = (1 − λ) · leave + λ · stay

κ = 0 makes leaving uniform, κ = 1 deterministic; λ = 0 keeps the actions apart, λ = 0.5 makes them the same. A region
of three neighboring states pays, by either action. The paper does not say how much nor which: here 1, in states 0 to 2.
"""

from __future__ import annotations

import numpy as np

from certeq.base.arrays import whole
from certeq.data.positions import SMALLEST_RING, Positions
from certeq.model.kernel import Rows
from certeq.model.mdp import MDP
from certeq.worlds.settings import number

STAYS = 0.75  # share of "stay" that truly stays
REGION = 3  # neighboring states that pay


def stay_or_leave(*, kappa: float = 0.5, lam: float = 0.0, n_states: int = 10, discount: float = 0.99) -> MDP:
    """Build the ring; ``kappa`` in [0, 1] makes leaving predictable, ``lam`` (λ) in [0, 0.5] the actions alike."""
    κ, λ = number("kappa", kappa, 0, 1), number("lam", lam, 0, 0.5)
    S = whole("n_states", n_states, REGION)
    uniform, identity = np.full((S, S), 1 / S), np.eye(S)
    shift = np.roll(identity, 1, axis=1)  # s -> s + 1, round the ring
    leave = κ * shift + (1 - κ) * uniform
    stay = STAYS * identity + (1 - STAYS) * uniform
    transition = np.stack([(1 - λ) * stay + λ * leave, (1 - λ) * leave + λ * stay], axis=1)  # (S, A, S)
    reward = np.zeros((S, 2))
    reward[:REGION] = 1
    ring = Positions(np.arange(S), ("ring",)) if S >= SMALLEST_RING else None
    return MDP(Rows(transition), reward, discount, action_names=("stay", "leave"), positions=ring)
