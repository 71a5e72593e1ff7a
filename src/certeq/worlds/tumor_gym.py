"""The continuous tumor simulator as a Gymnasium environment, ``certeq/Tumor-v0``.

Importing ``certeq.worlds.gym`` registers it, with episodes of 30 months, so that

    gymnasium.make("certeq.worlds.gym:certeq/Tumor-v0", drug="PCV", dose_penalty=2)

works; its settings are those of ``certeq.worlds.tumor_model.TumorModel``. The table of 256 states is another
environment, ``certeq/TumorTable-v0``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certeq.base.arrays import Floats
from certeq.base.errors import InputError
from certeq.worlds.settings import one_of
from certeq.worlds.tumor_model import LIMIT, Drug, TumorModel

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("certeq.worlds.tumor_gym needs Gymnasium: pip install 'certeq[gym]'.") from error

RENDER_MODES = ["ansi"]


class TumorEnv(gymnasium.Env[Any, Any]):
    """One patient: observations are (C, P, Q, D), action 1 gives a dose, a step is a month.

    Nothing ends the process itself. A patient of whom a number passes ``LIMIT`` (see the model's docstring) is
    truncated; the observation then shows the limit in its place.
    """

    metadata = {"render_modes": RENDER_MODES, "render_fps": 4}  # noqa: RUF012 (declared by the base class)

    def __init__(
        self,
        *,
        drug: str | Drug = "TMZ",
        process_noise: float = 0.25,
        start_noise: float = 0.25,
        dose_penalty: float = 1.0,
        integrator: str = "printed",
        penalty_on: str = "concentration",
        render_mode: str | None = None,
    ) -> None:
        """Take the settings of a ``TumorModel``."""
        if render_mode is not None:
            one_of("render_mode", render_mode, RENDER_MODES)
        self.model = TumorModel(drug, process_noise, start_noise, dose_penalty, integrator, penalty_on)
        self.render_mode = render_mode
        self.observation_space = spaces.Box(-LIMIT, LIMIT, shape=(4,), dtype=np.float64)
        self.action_space = spaces.Discrete(2)
        self._state: Floats = np.zeros(4)
        self._told = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Admit a new patient; ``info["tumor_mm"]`` is the tumor's size."""
        super().reset(seed=seed)
        self._state = self.model.start(1, self.np_random)[0]
        self._told = self._tell()
        return self._state.copy(), self._info()

    def step(self, action: int) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Let a month pass, with a dose if ``action`` is 1."""
        if not self.action_space.contains(action):
            raise InputError(f"action must be 0 (no dose) or 1 (a dose); got {action!r}.")
        after, reward = self.model.step(self._state, int(action), self.np_random)
        lost = not bool((np.abs(after) <= LIMIT).all())
        self._state = np.clip(np.nan_to_num(after, nan=LIMIT), -LIMIT, LIMIT)
        reward = np.nan_to_num(reward)  # the exact equations can reach infinity within a month
        self._told = f"{self.model.rates.name if action else 'no dose'}, reward {reward:.2f}: {self._tell()}"
        return self._state.copy(), float(reward), False, lost, self._info()

    def render(self) -> str | None:
        """Tell the last month in one line, such as ``TMZ, reward 0.85: drug 0.68, tumor 41.7 mm (P 0.8 ...)``."""
        return self._told if self.render_mode == "ansi" else None

    def _info(self) -> dict[str, Any]:
        return {"tumor_mm": float(self._state[1:].sum())}

    def _tell(self) -> str:
        C, P, Q, D = self._state
        return f"drug {C:.2f}, tumor {P + Q + D:.1f} mm (P {P:.1f}, Q {Q:.1f}, D {D:.1f})"
