"""Every MDP as a Gymnasium environment, and the catalogue's worlds under Gymnasium names.

Importing this module registers them, and Gymnasium imports it by itself when asked for

    gymnasium.make("certeq.worlds.gym:certeq/RiverSwim-v0")

Settings of the world are passed on: ``gymnasium.make(..., n_states=12)``. A registered name should mean one world, so
those that are drawn at random are drawn with ``rng=0`` unless told otherwise. All are tables but one: the tumor
simulator is there as a table and, continuous, as ``certeq/Tumor-v0`` (see ``certeq.worlds.tumor_gym``).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from certeq.base import matrices as sp
from certeq.base.arrays import Floats
from certeq.base.errors import InputError
from certeq.model.kernel import MASS_TOLERANCE, Kernel, Mixture, SparseRows, is_sparse
from certeq.model.mdp import MDP
from certeq.worlds import ENVIRONMENTS, environment, settings_of

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("certeq.worlds.gym needs Gymnasium: pip install 'certeq[gym]'.") from error

Outcome = tuple[float, int, float, bool]  # probability, next state, reward, terminated

STEPS = {"river_swim": 20, "tumor": 30}  # of an episode, else 100: as in Osband's experiments, and the paper's months
NAMES = {"tumor": "TumorTable"}  # "Tumor" is the continuous one
REGISTERED = {  # Gymnasium's name -> the catalogue's
    f"certeq/{NAMES.get(name, name.title().replace('_', ''))}-v0": name for name in ENVIRONMENTS
}


class TabularEnv(gymnasium.Env[Any, Any]):
    """An MDP that can be stepped through: observations are states, and the discount plays no role.

    ``P`` and ``initial_state_distrib`` are as in Gymnasium's toy-text environments. Where a row of the MDP sums to less
    than one, what is missing is the chance that the episode ends: an outcome that is ``terminated`` and stays in the
    same state, because an MDP has no name for what comes after the end.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 (declared by the base class)

    def __init__(self, mdp: MDP | str, *, render_mode: str | None = None, **settings: Any) -> None:
        """Take an MDP, or a name of the catalogue with the settings of that world."""
        if isinstance(mdp, str):
            mdp = environment(mdp, **settings)
        elif settings:
            raise InputError(f"Settings go with a name, not with a finished MDP; got {', '.join(settings)}.")
        if mdp.batch:
            raise InputError(f"One environment needs one MDP; got a batch of shape {mdp.batch}.")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise InputError(f"render_mode must be 'ansi' or None; got {render_mode!r}.")
        self.mdp = mdp
        self.render_mode = render_mode
        self.observation_space = spaces.Discrete(mdp.n_states)
        self.action_space = spaces.Discrete(mdp.n_actions)
        self.initial_state_distrib: Floats = np.array(mdp.start)
        self._lines = _lines(mdp.transition)
        self._state = 0
        self._told = ""

    @cached_property
    def P(self) -> dict[int, dict[int, list[Outcome]]]:
        """The whole table, ``P[s][a] = [(probability, next_state, reward, terminated), ...]``; built when asked for."""
        return {s: {a: self.outcomes(s, a) for a in range(self.mdp.n_actions)} for s in range(self.mdp.n_states)}

    def outcomes(self, state: int, action: int) -> list[Outcome]:
        """What may follow a pair: one entry of ``P``."""
        lines, line = self._lines, state * self.mdp.n_actions + action
        entries = slice(lines.indptr[line], lines.indptr[line + 1])
        reward = float(self.mdp.reward[state, action])
        listed = [
            (float(p), int(s), reward, False)
            for p, s in zip(lines.data[entries], lines.indices[entries], strict=True)
            if p > 0
        ]
        missing = 1 - sum(p for p, *_ in listed)
        return [*listed, (missing, state, reward, True)] if missing > MASS_TOLERANCE else listed

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start an episode in a state drawn from the start distribution."""
        super().reset(seed=seed)
        self._state = int(self.np_random.choice(self.mdp.n_states, p=self.initial_state_distrib))
        self._told = self.mdp.state_names[self._state]
        return self._state, {"prob": float(self.initial_state_distrib[self._state])}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Draw one of the pair's outcomes; ``info["prob"]`` is its probability."""
        if not self.action_space.contains(action):
            raise InputError(f"action must be a whole number between 0 and {self.mdp.n_actions - 1}; got {action!r}.")
        outcomes = self.outcomes(self._state, int(action))
        drawn = self.np_random.choice(len(outcomes), p=[p for p, *_ in outcomes])
        prob, state, reward, terminated = outcomes[drawn]
        self._told = self._tell(int(action), state, reward, terminated)
        self._state = state
        return state, reward, terminated, False, {"prob": prob}

    def render(self) -> str | None:
        """Tell the last step in one line of text, such as ``0 --right--> 1, reward 0``."""
        return self._told if self.render_mode == "ansi" else None

    def _tell(self, action: int, state: int, reward: float, terminated: bool) -> str:
        names = self.mdp.state_names
        then = "the end" if terminated else names[state]
        return f"{names[self._state]} --{self.mdp.action_names[action]}--> {then}, reward {reward:g}"


def _lines(kernel: Kernel) -> Any:
    """The rows as a CSR matrix, (S * A, S)."""
    if isinstance(kernel, SparseRows):
        return kernel.matrix
    if isinstance(kernel, Mixture) and is_sparse(kernel):
        raise InputError("A mixture of sparse rows cannot be stepped through: give its data or its target.")
    return sp.csr_array(kernel.dense().reshape(-1, kernel.shape[-1]))


def register() -> None:
    """Give the catalogue's worlds their Gymnasium names; doing so twice does no harm."""
    for id, name in REGISTERED.items():
        if id not in gymnasium.registry:
            gymnasium.register(
                id,
                entry_point="certeq.worlds.gym:TabularEnv",
                max_episode_steps=STEPS.get(name, 100),
                kwargs={"mdp": name} | ({"rng": 0} if "rng" in settings_of(name) else {}),
            )
    if "certeq/Tumor-v0" not in gymnasium.registry:
        gymnasium.register("certeq/Tumor-v0", entry_point="certeq.worlds.tumor_gym:TumorEnv", max_episode_steps=30)


register()
