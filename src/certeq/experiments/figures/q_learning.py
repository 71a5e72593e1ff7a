"""Q-learning with simulated steps (Algorithm 3): specific, constant, and none, on the three tabular worlds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Floats, Rng, generator
from certeq.experiments.procedure import ENGINE, draw_truth
from certeq.experiments.statistics import bands, difference, interval
from certeq.experiments.sweeps import panels_of
from certeq.experiments.verdict import Verdict, below, strip
from certeq.model.kernel import Rows
from certeq.model.mdp import MDP
from certeq.planners import solve
from certeq.questions.sweep import even, values
from certeq.worlds.model_free import QLearning, q_learning

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "Q-learning with state-action-specific regularization"
CLAIM = (
    "Q-learning with simulated steps, as often as ε* says, beats standard Q-learning on River Swim and on Loop, but "
    "not on the random chain."
)
EPISODES, STEPS = 250, 20
PROBABILITY = 0.1
STEP_SIZE = 0.1
EXPLORATIONS = (0.05, 0.1, 0.2, 0.4)
SHOWN = 0.1  # of these, in the picture
SECTION = "Sec. 8, Appendix"
SAME = 0.01  # "not better": at most this much better, as a share
NOTES = (
    "None of the settings are given in the paper. Here an agent lives for 250 episodes of 20 real steps from uniform "
    "starts, with step size 0.1, discount 0.99 and the uniform matrix as target; the constant probability is 0.1. How "
    "much it explores decides what it finds, so the claims are judged along explorations from 0.05 to 0.4; the picture "
    "has 0.1. ε* is that of the MLE, and a pair that was never tried is tried first. The paper speaks of higher "
    "rewards: judged is the reward per episode over the whole life. The loss of the policy at its end is a question of "
    "ours. The random chain is a new one for each agent, the same for all methods. An agent that finds two actions "
    "equally good takes the first, and in the beginning all are: so each agent meets the actions in an order of its "
    "own, the same for all methods. (In River Swim and Loop the first action is the wrong one.) “Not better” allows "
    "for 1%. The constant probability is a baseline of which the paper claims nothing."
)
ALT = "Mean reward per episode against episodes for each world and method, with 95% bands, at exploration 0.1."
VALUES = ("reward", "loss")
METHODS: dict[str, dict[str, Any]] = {
    "standard": {"variant": "standard"},
    "specific": {"variant": "specific"},
    "constant (0.1)": {"variant": "constant", "probability": PROBABILITY},
}
WORLDS = {"River Swim": "river_swim", "random chain": "random_chain", "Loop": "loop"}
BETTER = {"River Swim": True, "random chain": False, "Loop": True}
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {"data_sets": 100, "chunk": 100, "episodes": 50, "every": 5},
    "paper": {"data_sets": 6000, "chunk": 2000, "episodes": EPISODES, "every": 25},
}


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All worlds in chunks of agents."""
    total, chunk = settings["data_sets"], settings["chunk"]
    return [
        {
            "panel": panel,
            "environment": world,
            "methods": METHODS,
            "life": {
                "episodes": settings["episodes"],
                "steps": STEPS,
                "step_size": STEP_SIZE,
                "exploration": exploration,
            },
            "every": settings["every"],  # episodes from one point of the curve to the next
            "data_sets": min(chunk, total - first),
            "first": first,
        }
        for panel, world in WORLDS.items()
        for exploration in EXPLORATIONS
        for first in range(0, total, chunk)
    ]


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """Let the agents of one chunk live: one line for each method, agent and point of the learning curve."""
    random = generator(rng)
    truth = renamed(draw_truth(cell["environment"], {}, cell["data_sets"], random), cell["data_sets"], random)
    optimal = solve(truth.transition, truth.reward, truth.discount, engine=ENGINE).values.reshape(-1, truth.n_states)
    seed = int(random.integers(2**63))  # the same starts for all methods
    every, R = cell["every"], cell["data_sets"]
    columns: dict[str, list[Any]] = {name: [] for name in ("method", "data_set", "episode", "reward", "loss")}
    for name, settings in cell["methods"].items():
        lived: QLearning = q_learning(
            truth, replications=R, curve_every=every * cell["life"]["steps"], rng=seed, **settings, **cell["life"]
        )
        assert lived.curve is not None
        reward = np.diff(lived.curve, axis=1, prepend=0) / every  # (R, points): per episode
        points = reward.shape[1]
        advice = even(lived.q == lived.q.max(axis=-1, keepdims=True))
        loss = (optimal - values(truth, advice[:, None])[:, 0]).mean(axis=-1)
        columns["method"].append(np.full(R * points, name))
        columns["data_set"].append(np.repeat(np.arange(R), points))
        columns["episode"].append(np.tile(every * np.arange(1, points + 1), R))
        columns["reward"].append(reward.ravel())
        columns["loss"].append(np.repeat(loss, points))
    merged = {name: np.concatenate(parts) for name, parts in columns.items()}
    n = len(merged["reward"])
    return {"panel": np.full(n, cell["panel"]), "exploration": np.full(n, cell["life"]["exploration"]), **merged}


def renamed(truth: MDP, agents: int, random: np.random.Generator) -> MDP:
    """The world as each agent meets it, with its actions in an order of its own, so that no name decides."""
    S, A = truth.n_states, truth.n_actions
    order = random.permuted(np.tile(np.arange(A), (agents, 1)), axis=1)  # (R, A)
    rows = np.broadcast_to(truth.transition.dense(), (agents, S, A, S))
    reward = np.broadcast_to(truth.reward, (agents, S, A))
    return MDP(
        Rows.trusted(np.take_along_axis(rows, order[:, None, :, None], axis=2)),
        np.take_along_axis(reward, order[:, None, :], axis=2),
        truth.discount,
    )


def curves_of(table: pl.DataFrame, panel: str, method: str, column: str = "reward") -> Floats:
    """A measured column as ``(agents, points of the curve)``."""
    import polars as pl

    part = table.filter((pl.col("panel") == panel) & (pl.col("method") == method))
    order = [name for name in ("cell", "data_set", "episode") if name in part.columns]
    return part.sort(order)[column].to_numpy().reshape(-1, part["episode"].n_unique())


def holds(table: pl.DataFrame) -> list[Verdict]:
    """Judge by the reward over the whole life, and by the policy at its end, along how much agents explore."""
    return [verdict for panel in panels_of(table) for verdict in _judge(table, panel)]


def _judge(table: pl.DataFrame, panel: str) -> list[Verdict]:
    parts = {each: part for (each,), part in table.partition_by("exploration", as_dict=True).items()}
    found = {each: _at(part, panel) for each, part in sorted(parts.items())}
    earns, ends = ("earns more", "ends") if BETTER[panel] else ("does not earn more", "does not end")
    claims = {
        f"{panel}: specific Q-learning {earns} than standard Q-learning": SECTION,
        f"{panel}: specific Q-learning {ends} with a policy that loses less than that of standard Q-learning": "",
    }
    return [
        strip(
            claim,
            {each: verdicts[i].outcome for each, verdicts in found.items()},
            "of exploration",
            note=f"At {SHOWN:g}, {found[SHOWN][i].measured}." if SHOWN in found else "",
            paper=paper,
        )
        for i, (claim, paper) in enumerate(claims.items())
    ]


def _at(table: pl.DataFrame, panel: str) -> list[Verdict]:
    """Reward and loss at one rate of exploration."""
    reward = {name: curves_of(table, panel, name).mean(axis=1) for name in METHODS}
    loss = {name: curves_of(table, panel, name, "loss")[:, 0] for name in METHODS}
    earned, lost = (", ".join(f"{name} {interval(x)}" for name, x in of.items()) for of in (reward, loss))
    if BETTER[panel]:
        more, less = difference(reward["standard"], reward["specific"]), difference(loss["specific"], loss["standard"])
        return [
            below("", more, f"reward per episode: {earned}; standard - specific"),
            below("", less, f"loss: {lost}; specific - standard"),
        ]
    more, less = difference(reward["specific"], reward["standard"]), difference(loss["standard"], loss["specific"])
    allowed, room = (SAME * float(each["standard"].mean()) for each in (reward, loss))
    return [
        below("", more, f"reward per episode: {earned}; specific - standard", margin=allowed),
        below("", less, f"loss: {lost}; standard - specific", margin=room),
    ]


def draw(table: pl.DataFrame) -> Figure:
    """Learning curves, one panel for each world."""
    import polars as pl

    from certeq.report import style

    table = table.filter(pl.col("exploration") == SHOWN)
    panels = panels_of(table)
    episodes = np.unique(table["episode"].to_numpy())
    figure: Figure
    with style.style():
        figure, axes = style.canvas(len(panels), 1, width=max(2.3 * len(panels), style.COLUMN), height=2.4)
        for axis, panel in zip(axes[0], panels, strict=True):
            for index, name in enumerate(METHODS):
                mean, half = bands(curves_of(table, panel, name))
                style.line_with_band(axis, episodes, mean, half, label=name, index=index)
            axis.set(title=panel, xlabel="episode")
        axes[0, 0].set_ylabel("reward per episode")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
