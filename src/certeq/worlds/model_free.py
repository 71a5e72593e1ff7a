"""Q-learning with simulated updates: regularization for an agent that keeps no model (the paper's Algorithm 3).

Mixing a target into a transition row, ``(1 - w) T + w T_target``, needs a row to mix into. An agent without a model has
none, but it can live as if the mixture were its world: with chance w it draws the next state from the target and learns
from that, otherwise it acts and learns from what really happened. The mean update is the update of the mixture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certeq.base.arrays import ArrayLike, Floats, Integers, Rng, floats, generator, whole, within
from certeq.base.errors import InputError, unknown
from certeq.base.random import words
from certeq.base.threads import run
from certeq.model.kernel import MASS_TOLERANCE, Rows
from certeq.model.mdp import MDP
from certeq.worlds import q_kernel as learning

VARIANTS = {"standard": learning.STANDARD, "constant": learning.CONSTANT, "specific": learning.SPECIFIC}


@dataclass(frozen=True)
class Schedule:
    """A step size or an exploration rate that falls with use: ``max(floor, initial / n**decay)``, n = 1, 2, ...

    For a step size n counts the updates of the pair, real and simulated, this one included. For exploration n is the
    number of the real step that is being decided, counted over all episodes. ``decay=0`` is a constant. Q-learning
    converges with ``0.5 < decay <= 1`` and ``floor=0``; smaller decays forget the early, wrong updates sooner.
    """

    initial: float
    decay: float = 0.0
    floor: float = 0.0


@dataclass(frozen=True)
class QLearning:
    """What R replications of the agent learned, and how they lived."""

    q: Floats  # (R, S, A)
    policy: Integers  # (R, S), the lowest action among ties
    counts: Integers  # (R, S, A, S), real transitions
    ended: Integers  # (R, S, A), real steps after which the episode ended
    reward: Floats  # (R,), total over the real steps
    simulated: Integers  # (R,), number of simulated updates
    curve: Floats | None  # (R, n), reward so far after each ``curve_every`` real steps


def q_learning(
    mdp: MDP,
    *,
    variant: str = "specific",
    probability: float = 0.1,
    target: Rows | ArrayLike | None = None,
    episodes: int = 1,
    steps: int = 5000,
    step_size: float | Schedule = 0.1,
    exploration: float | Schedule = 0.1,
    replications: int = 1,
    discount: float | None = None,
    initial: ArrayLike = 0.0,
    curve_every: int | None = None,
    rng: Rng = None,
) -> QLearning:
    """Let ``replications`` independent agents learn by Q-learning in ``mdp``, each for ``episodes * steps`` real steps.

    ``variant`` says how often an agent learns from a simulated step instead of a real one:

    - ``"standard"``: never. Plain Q-learning.
    - ``"constant"``: with the given ``probability``.
    - ``"specific"``: with ε*(s, a) of Eq. 5, from the agent's own real counts of the pair so far (T = T_MLE). With a
      target other than uniform, the bias is the distance to that target. Ending is an outcome like any other.

    A simulated step draws the next state from the row of ``target`` (uniform over the states unless given; anything
    that broadcasts to ``(S, A, S)``; mass that a row lacks means that the episode ends, worth 0), updates Q, and leaves
    the agent where it is. Only real steps count toward ``steps``.

    **Where Algorithm 3 would run forever.** For a pair that was never tried, and for one whose counts are exactly
    proportional to the target, ε* = 1: as printed, the loop then simulates, and without a real step ε* cannot change.
    Here ε* is at most n / (n + 1), n the real visits of the pair. So a new pair (n = 0) is always tried first, also in
    ``"constant"``, and later a real step comes after n + 1 decisions on average, or sooner. For the uniform target this
    is no new parameter: the least chance of a real step that Eq. 5 can give, other than 0, is n / (n² + n - 1), above
    1 / (n + 1), so the limit acts only where Eq. 5 says exactly 1. For the same reason ``probability`` must be below 1.

    ``mdp`` may be a batch of R MDPs along one leading axis: then replication r lives in MDP r. Rewards are r(s, a) and
    known to the simulation, as in the paper. Each episode starts in a state drawn uniformly, as in Algorithm 3
    (``mdp.start`` is not used); so does the life after an ending, within the same episode's count of steps.
    ``discount`` replaces the MDP's own. ``initial`` is where Q starts, anything that broadcasts to ``(R, S, A)``.
    With ``curve_every`` the result has a learning curve, the real reward so far after each so many real steps.

    **Order of random numbers**, all uniform in [0, 1), each replication with its own stream. At the start of an episode
    the state, ``int(u * S)``. Then for each decision: (1) explore if u < exploration; (2) if so the action,
    ``int(u * A)``, else it is the lowest of the best; (3) unless ``"standard"``, simulate if u < ε; (4) the next state,
    the first whose cumulative probability exceeds u; (5) after an ending the new state. Results depend on the seed and
    not on the number of threads, and replication r stays the same when more replications follow it.
    """
    if variant not in VARIANTS:
        raise unknown("variant of Q-learning", variant, VARIANTS)
    S, A = mdp.n_states, mdp.n_actions
    R = _replications(replications, mdp)
    total = whole("episodes", episodes, 1) * whole("steps", steps, 1)
    every = 0 if curve_every is None else whole("curve_every", curve_every, 1)
    chance = _number("probability", probability, 0, 1)
    if variant == "constant" and chance == 1:
        raise InputError("probability must be below 1: an agent that always simulates never takes a step.")
    rate = _schedule("step_size", step_size)
    if rate[0] == 0:
        raise InputError("step_size must be above 0: with 0 nothing is ever learned.")
    transition = _with_ending(mdp.transition.dense().reshape(-1, S))  # (R or 1, S, A) rows of S + 1 outcomes
    toward, by_state, by_action = _target(target, S, A)  # U rows of S + 1 outcomes
    settings = learning.Settings(
        variant=VARIANTS[variant],
        probability=chance,
        discount=mdp.discount if discount is None else _number("discount", discount, 0, 1),
        episodes=int(episodes),
        steps=int(steps),
        step_size=rate,
        exploration=_schedule("exploration", exploration),
        curve_every=every,
        worlds=len(transition) // (S * A),
    )
    record = learning.Record(
        q=_initial(initial, R, S, A),
        counts=np.zeros((R, S * A, S + 1), dtype=np.int64),
        reward=np.zeros(R),
        simulated=np.zeros(R, dtype=np.int64),
        curve=np.zeros((R, total // every if every else 0)),
    )
    run(
        learning.learn,
        R,
        words(generator(rng), R),
        _table(transition, toward),
        np.array(mdp.reward.reshape(-1, S * A), order="C"),  # a copy: Numba compiles anew for read-only arrays
        learning.Target(toward, np.einsum("ui,ui->u", toward, toward), by_state, by_action),
        settings,
        record,
    )
    q = record.q.reshape(R, S, A)
    counts = record.counts.reshape(R, S, A, S + 1)
    return QLearning(
        q=q,
        policy=np.argmax(q, axis=-1),
        counts=counts[..., :S],
        ended=counts[..., S],
        reward=record.reward,
        simulated=record.simulated,
        curve=record.curve if every else None,
    )


def _replications(replications: int, mdp: MDP) -> int:
    """How many replications: as said, or one for each MDP of a batch."""
    count = whole("replications", replications, 1)
    if len(mdp.batch) > 1:
        raise InputError(f"q_learning takes one MDP or a batch along one axis; this one has the batch {mdp.batch}.")
    size = mdp.batch[0] if mdp.batch else 1
    if count != 1 and size not in (1, count):
        raise InputError(f"replications is {replications}, but the batch has {size} MDPs: leave it out, or say {size}.")
    return max(count, size)


def _number(name: str, value: Any, low: float, high: float) -> float:
    """Read one number in [low, high]."""
    array = within(name, value, low, high)
    if array.ndim:
        raise InputError(f"{name} must be one number; got an array of shape {array.shape}.")
    return float(array)


def _schedule(name: str, value: float | Schedule) -> tuple[float, float, float]:
    """Read a rate in [0, 1], constant or falling, as (initial, decay, floor)."""
    schedule = value if isinstance(value, Schedule) else Schedule(value)
    start = _number(name, schedule.initial, 0, 1)
    decay = _number(f"{name}.decay", schedule.decay, 0, 10)
    return start, decay, _number(f"{name}.floor", schedule.floor, 0, start)


def _initial(initial: ArrayLike, R: int, S: int, A: int) -> Floats:
    """Starting Q, one fresh line for each replication, ``(R, S * A)``."""
    values = floats("initial", initial)
    try:
        return np.broadcast_to(values, (R, S, A)).reshape(R, S * A).copy()
    except ValueError:
        raise InputError(f"initial has shape {values.shape}, which does not broadcast to {(R, S, A)}.") from None


def _with_ending(rows: Floats) -> Floats:
    """Append to each row the mass it lacks: rows over S states become rows over S + 1 outcomes."""
    lacking = 1 - rows.sum(axis=-1, keepdims=True)
    return np.concatenate([rows, np.where(lacking > MASS_TOLERANCE, lacking, 0.0)], axis=-1)


def _target(target: Rows | ArrayLike | None, S: int, A: int) -> tuple[Floats, int, int]:
    """Read the target: its different rows, with ending, and by how many rows one state and one action move on."""
    if target is None:
        target = np.full(S, 1 / S)
    if not isinstance(target, Rows):
        array = floats("target", target)
        try:
            target = Rows(array.reshape((1,) * (3 - array.ndim) + array.shape) if array.ndim < 3 else array)
        except InputError as error:
            raise InputError(f"target does not hold rows of {(S, A, S)}. {error}") from None
    s_axis, a_axis = target.shape[-3:-1]
    if target.batch or target.shape[-1] != S or s_axis not in (1, S) or a_axis not in (1, A):
        raise InputError(f"target has shape {target.shape}, which does not broadcast to {(S, A, S)}.")
    return _with_ending(target.array.reshape(-1, S)), a_axis if s_axis > 1 else 0, 1 if a_axis > 1 else 0


def _table(transition: Floats, target: Floats) -> learning.Lottery:
    """Put all rows into the one table that next states are drawn from."""
    world, toward = _cumulated(transition), _cumulated(target)
    return learning.Lottery(
        cumulative=np.concatenate([world[0].ravel(), toward[0].ravel()]),
        outcome=np.concatenate([world[1].ravel(), toward[1].ravel()]),
        world_length=world[0].shape[1],
        target_length=toward[0].shape[1],
        target_start=world[0].size,
    )


def _cumulated(rows: Floats) -> tuple[Floats, NDArray[np.uint64]]:
    """Cumulative probabilities of the outcomes that can happen, and which they are: a `Lottery`."""
    S = rows.shape[1] - 1
    possible = rows[:, :S] > 0
    line, state = np.nonzero(possible)
    place = (np.cumsum(possible, axis=1) - 1)[line, state]  # how many possible outcomes come before it in its row
    length = int(place.max(initial=-1)) + 2
    cumulative = np.full((len(rows), length), 2.0)
    outcome = np.full((len(rows), length), S, dtype=np.uint64)
    cumulative[line, place] = np.cumsum(rows[:, :S], axis=1)[line, state]
    outcome[line, place] = state
    # A row that lacks nothing must not end through rounding: its last outcome takes every u that is left.
    complete = np.flatnonzero(rows[:, S] == 0)
    cumulative[complete, possible[complete].sum(axis=1) - 1] = 1.0
    return cumulative, outcome
