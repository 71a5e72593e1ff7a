"""Loop: two loops of five states that share their first state, 0.

From state 0, action a enters the near loop 1, 2, 3, 4 and action b the far loop 5, 6, 7, 8. In the near loop either
action goes on; leaving state 4 leads back to 0 and pays 1. In the far loop only b goes on, a falls back to 0; leaving
state 8 leads back to 0 by either action and pays 2. So b everywhere is best, and one must persist to find out.

Strens (2000) made it deterministic. The paper lets the agent slip: with some chance the action that takes effect is
drawn uniformly from both.
"""

from __future__ import annotations

import numpy as np

from certeq.data.positions import Positions
from certeq.model.kernel import Rows
from certeq.model.mdp import MDP
from certeq.worlds.settings import number

NEXT = np.array(  # state reached by a and by b, (S, A)
    [[1, 5], [2, 2], [3, 3], [4, 4], [0, 0], [0, 6], [0, 7], [0, 8], [0, 0]]
)
PLACES = Positions(  # which loop, and how far along it; state 0 is on both
    np.array([[0, 0], [1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [2, 3], [2, 4]]), ("label", "line")
)
PAYS = {4: 1.0, 8: 2.0}  # reward for leaving the state, whatever the action


def loop(*, slip: float = 0.5, discount: float = 0.99) -> MDP:
    """Build the loops; ``slip`` is the chance that the action is drawn uniformly (0: the deterministic original)."""
    chance = number("slip", slip, 0, 1)
    S, A = NEXT.shape
    intended = np.eye(S)[NEXT]  # (S, A, S)
    transition = (1 - chance) * intended + chance * intended.mean(axis=1, keepdims=True)
    reward = np.zeros((S, A))
    for state, pay in PAYS.items():
        reward[state] = pay
    return MDP(Rows(transition), reward, discount, start=np.eye(S)[0], action_names=("a", "b"), positions=PLACES)
