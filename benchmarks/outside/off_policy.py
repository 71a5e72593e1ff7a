"""What a policy would be worth, told from logs of another one: certeq beside SCOPE-RL and offline-rl-ope.

Two worlds of `spibb_worlds`, cut after so many decisions; two policies, near to what was done and far from it, fixed
before any data. Everybody gets the same episodes and the true chances of the logged actions, certeq also without them
(its default). Estimators that start from action values get those of the fitted table, computed here, the same for all
others; an action that was never tried is worth there what the others of its state are. Intervals are meant to hold the
truth in 90% of the data sets; offline-rl-ope has none with two ends.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.opponents import known
from benchmarks.outside import spibb_suite
from benchmarks.outside.contest import World
from benchmarks.outside.spibb_worlds import WORLDS
from certeq.data.batch import Batch
from certeq.learning.case import Case, Data
from certeq.learning.rules import Rules
from certeq.questions.off_policy import off_policy
from certeq.questions.posterior import drawn_values

LEVEL, AGAIN, DRAWS = 0.9, 200, 100
HORIZON = {"wet chicken": 20, "gridworld": 30}
POLICIES = {"near": 0.5, "far": 0.9}  # share of the optimum's actions, the rest as was done
PROFILES = {"smoke": (("gridworld",), (50,), 2), "paper": (tuple(HORIZON), (50, 200), 25)}
Found = tuple[float, float, float, float]  # value, low, high, and whether certeq itself says that it can be trusted


class Rectangle(NamedTuple):
    """Episodes of one length each; what comes after an end is worth nothing, and weighs nothing."""

    state: np.ndarray  # (E, H), 0 after the end
    action: np.ndarray  # (E, H), 0 after the end
    reward: np.ndarray  # (E, H)
    there: np.ndarray  # (E, H): whether it was logged
    behavior: np.ndarray  # (S, A)
    policy: np.ndarray  # (S, A)
    values: np.ndarray  # (H, S, A): of the fitted table
    discount: float

    @property
    def ratio(self) -> np.ndarray:
        """Chance of each logged action under the policy over that under the behavior; 1 after the end."""
        chance = self.policy[self.state, self.action] / self.behavior[self.state, self.action]
        return np.where(self.there, chance, 1.0)


def backward(
    rows: Any, reward: np.ndarray, policy: np.ndarray, discount: float, horizon: int, visits: np.ndarray | None = None
) -> np.ndarray:
    """Q of a policy with so many decisions left, ``(H, S, A)``, the first decision first.

    Where ``visits`` are given, an action that was never tried is worth what the state's tried ones are on average, and
    in a state that was never seen what everything is.
    """
    q, found = np.zeros_like(reward), []
    for _ in range(horizon):
        q = reward + discount * (rows @ (policy * q).sum(axis=1)).reshape(reward.shape)
        if visits is not None:
            seen = visits.sum(axis=1, keepdims=True)
            usual = (visits * q).sum(axis=1, keepdims=True) / np.maximum(seen, 1)
            usual = np.where(seen > 0, usual, (visits * q).sum() / visits.sum())
            q = np.where(visits > 0, q, usual)
        found.append(q)
    return np.array(found[::-1])


def rectangle(batch: Batch, world: World, policy: np.ndarray, horizon: int) -> Rectangle:
    """Write the rows as SCOPE-RL wants them."""
    number = np.unique(batch.episode, return_inverse=True)[1]
    shape = (int(number.max()) + 1, horizon)
    place = number, batch.time
    state, action = np.zeros(shape, dtype=int), np.zeros(shape, dtype=int)
    reward, there = np.zeros(shape), np.zeros(shape, dtype=bool)
    state[place], action[place], reward[place], there[place] = batch.state, batch.action, batch.reward, True
    given = known(batch, world.discounts[0])
    values = backward(given.rows, given.reward, policy, given.discount, horizon, given.visits)
    return Rectangle(state, action, reward, there, world.behavior, policy, values, given.discount)


def ours(batch: Batch, of: Rectangle, seed: int) -> Iterator[tuple[str, Found]]:
    """certeq's estimates."""
    horizon = of.state.shape[1]
    for name, behavior in (("behavior estimated", None), ("behavior given", of.behavior)):
        told = off_policy(
            batch, of.policy, of.discount, behavior=behavior, horizon=horizon, bootstrap=AGAIN, level=LEVEL, rng=seed
        )
        for each in told.estimates:
            if behavior is None or each.name != "fqe":
                yield f"certeq, {each.words}, {name}", (each.value, each.low, each.high, each.trusted)
    case = Case(Data.of(batch), Rules(discount=of.discount))
    drawn = drawn_values(case, [of.policy], batch.starts, draws=DRAWS, rng=seed, watched=horizon)[0]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    yield "certeq, the model itself", (float(drawn.mean()), float(low), float(high), np.nan)


def scope(of: Rectangle, seed: int) -> Iterator[tuple[str, Found]]:
    """SCOPE-RL's basic estimators with its bootstrap."""
    from scope_rl.ope import discrete

    E, H = of.state.shape
    chances = np.where(of.there[..., None], of.policy[of.state], np.eye(of.policy.shape[1])[0])
    values = np.where(of.there[..., None], of.values[np.arange(H)[None], of.state], 0.0)
    rows = {
        "step_per_trajectory": H,
        "action": of.action.ravel(),
        "reward": of.reward.ravel(),
        "pscore": np.where(of.there, of.behavior[of.state, of.action], 1.0).ravel(),
        "evaluation_policy_action_dist": chances.reshape(E * H, -1),
        "state_action_value_prediction": values.reshape(E * H, -1),
        "gamma": of.discount,
    }
    names = {
        "direct method": "DirectMethod",
        "trajectory-wise": "TrajectoryWiseImportanceSampling",
        "per decision": "PerDecisionImportanceSampling",
        "doubly robust": "DoublyRobust",
        "self-normalized trajectory-wise": "SelfNormalizedTIS",
        "self-normalized per decision": "SelfNormalizedPDIS",
        "self-normalized doubly robust": "SelfNormalizedDR",
    }
    for words, name in names.items():
        each = getattr(discrete, name)()
        value = float(each.estimate_policy_value(**rows))
        ends = each.estimate_interval(
            **rows, alpha=1 - LEVEL, ci="bootstrap", n_bootstrap_samples=AGAIN, random_state=seed
        )
        low, high = (float(end) for key, end in ends.items() if "CI" in key)
        yield f"SCOPE-RL, {words}", (value, low, high, np.nan)


def offline(of: Rectangle) -> Iterator[tuple[str, Found]]:
    """offline-rl-ope's estimators; its bounds have one end."""
    import torch
    from offline_rl_ope.OPEEstimators import (
        EmpiricalMeanDenom,
        ISEstimator,
        PassWeightDenom,
        PiTWeightDenom,
        WeightedEmpiricalMeanDenom,
    )

    running = np.cumprod(of.ratio, axis=1)
    lists = {
        name: [torch.tensor(row[:, None], dtype=torch.float32) for row in part]
        for name, part in (("rewards", of.reward), ("states", of.state), ("actions", of.action))
    }
    whole = np.repeat(running[:, -1:], running.shape[1], axis=1)
    for words, weights, denominator, scale in (
        ("trajectory-wise", whole, EmpiricalMeanDenom(), PassWeightDenom()),
        ("weighted trajectory-wise", whole, WeightedEmpiricalMeanDenom(), PassWeightDenom()),
        ("per decision", running, EmpiricalMeanDenom(), PassWeightDenom()),
        ("weighted per decision", running, EmpiricalMeanDenom(), PiTWeightDenom()),
    ):
        found = ISEstimator(empirical_denom=denominator, weight_denom=scale).predict(
            **lists,
            weights=torch.tensor(weights, dtype=torch.float32),
            discount=of.discount,
            is_msk=torch.ones(running.shape),
        )
        yield f"offline-rl-ope, {words}", (float(found), np.nan, np.nan, np.nan)


def run(profile: str, seed: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Value both policies in both worlds from many logs."""
    names, sizes, sets = PROFILES[profile]
    cells = []
    for name in names:
        world = spibb_suite.world(name, np.random.default_rng([seed, 0]))
        best = np.eye(world.truth.n_actions)[_best(world)]
        for kind, share in POLICIES.items():
            policy = share * best + (1 - share) * world.behavior
            for size in sizes:
                cells.append(_cell(world, kind, policy, size, sets, seed))
                tell(f"{name}, {kind}, {size} episodes")
    return {"sets": sets, "level": LEVEL, "cells": cells}


def _best(world: World) -> np.ndarray:
    import certeq

    return np.asarray(certeq.solve(world.truth.transition, world.truth.reward, world.truth.discount).policy)


def _cell(world: World, kind: str, policy: np.ndarray, size: int, sets: int, seed: int) -> dict[str, Any]:
    """All estimators on so many logs of one size, beside the truth."""
    horizon, truth, tables = HORIZON[world.name], world.truth, WORLDS[world.name](np.random.default_rng(0))
    exact = backward(world.rows, truth.reward, policy, truth.discount, horizon)[0]
    value = float(truth.start @ (policy * exact).sum(axis=1))
    found: dict[str, list[Found]] = {}
    for d in range(sets):
        rng = np.random.default_rng([seed, size, d])
        batch = spibb_suite.log_episodes(tables, truth, world.behavior, size, horizon, rng)
        of = rectangle(batch, world, policy, horizon)
        with contextlib.redirect_stdout(io.StringIO()):
            for part in (ours(batch, of, d), scope(of, d), offline(of)):
                for name, told in part:
                    found.setdefault(name, []).append(told)
    about = {"world": world.name, "policy": kind, "size": size, "horizon": horizon, "truth": round(value, 6)}
    return about | {"estimators": {name: _summary(np.array(told), value) for name, told in found.items()}}


def _summary(told: np.ndarray, truth: float) -> dict[str, float | None]:
    """Bias and error as shares of the truth, coverage, and width; None where there are no intervals."""
    value, low, high, trusted = told.T
    off = (value - truth) / truth
    ends = np.isfinite(low) & np.isfinite(high)
    covered = float(((low <= truth) & (truth <= high)).mean()) if ends.any() else None
    width = float(np.mean((high - low)[ends]) / truth) if ends.any() else None
    defined = off[np.isfinite(off)]
    plain = {"bias": float(defined.mean()), "error": float(np.sqrt((defined**2).mean()))}
    plain |= {"trusted": None if np.isnan(trusted).any() else float(trusted.mean())}
    plain |= {"undefined": float(1 - len(defined) / len(off)), "covered": covered, "width": width}
    return {name: None if each is None else round(each, 4) for name, each in plain.items()}
