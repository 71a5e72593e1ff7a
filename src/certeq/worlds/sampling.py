"""Draw logged decisions from a known MDP: MDP -> Batch.

Three ways to collect data, all of them for many data sets at once: independent pairs, the same number of each pair, or
episodes under a behavior policy. With ``data_sets=D`` the rows of D data sets come in one batch, labeled by
``data_set``; where the MDP is itself a batch of D worlds, data set d is drawn from world d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, Integers, Rng, first, floats, generator, whole
from certeq.base.errors import InputError
from certeq.data.batch import ENDED, Batch
from certeq.model.kernel import MASS_TOLERANCE, Kernel, Mixture, Operator, Rows, SparseRows
from certeq.model.mdp import MDP

Drawer: TypeAlias = Callable[[Integers, Integers, Integers, np.random.Generator], Integers]
"""``(world, state, action, random) -> next state``, arrays of one length."""


def uniform_pairs(mdp: MDP, size: int, *, data_sets: int | None = None, rng: Rng = None) -> Batch:
    """Draw ``size`` independent rows per data set, their pairs uniform over all (s, a)."""
    n, worlds, random = whole("size", size, 0), _worlds(mdp, data_sets), generator(rng)
    pair = random.integers(mdp.n_states * mdp.n_actions, size=worlds * n)
    return _one_step(mdp, pair, np.repeat(np.arange(worlds), n), data_sets, random)


def equal_pairs(mdp: MDP, each: int, *, data_sets: int | None = None, rng: Rng = None) -> Batch:
    """Draw exactly ``each`` rows of every pair, in each data set."""
    n, worlds, random = whole("each", each, 0), _worlds(mdp, data_sets), generator(rng)
    pairs = np.repeat(np.arange(mdp.n_states * mdp.n_actions), n)
    return _one_step(mdp, np.tile(pairs, worlds), np.repeat(np.arange(worlds), len(pairs)), data_sets, random)


def trajectories(
    mdp: MDP,
    episodes: int,
    length: int,
    *,
    behavior: ArrayLike | None = None,
    random_length: bool = False,
    data_sets: int | None = None,
    start: ArrayLike | None = None,
    rng: Rng = None,
) -> Batch:
    """Follow ``episodes`` episodes per data set, each of at most ``length`` transitions.

    ``behavior`` chooses the actions: uniformly at random unless given, by the probabilities of an ``(S, A)`` array, or
    by the one action per state of an ``(S,)`` array of whole numbers. ``start`` is a distribution ``(S,)`` that
    replaces the MDP's own. With ``random_length`` each episode draws its longest length uniformly from 0, 1, ...,
    ``length``; one of length 0 leaves no row. Episodes are numbered through all data sets: a number means one episode.
    """
    n, T = whole("episodes", episodes, 0), whole("length", length, 0)
    worlds, random = _worlds(mdp, data_sets), generator(rng)
    policy = _Urns.of_table(_behavior(mdp, behavior))
    episode = np.arange(worlds * n)
    limit = random.integers(T + 1, size=len(episode)) if random_length else np.full(len(episode), T)
    state = _Urns.of_table(_start(mdp, start)[None]).draw(np.zeros_like(episode), random)
    rows = _follow(drawer(mdp.transition), policy, episode // max(n, 1), limit, state, random)
    order = np.argsort(rows[0], kind="stable")  # rows came in order of time; people expect whole episodes
    episode, time, state, action, following = (column[order] for column in rows)
    return _batch(mdp, state, action, following, episode // max(n, 1), data_sets, episode=episode, time=time)


def _follow(
    next_state: Drawer, policy: _Urns, world: Integers, limit: Integers, state: Integers, random: np.random.Generator
) -> list[Integers]:
    """Step all episodes together until each has ended or reached its limit.

    Gives the columns episode, time, state, action and next state, in order of time.
    """
    going = np.arange(len(state))
    steps = [(going[:0],) * 5]  # no rows yet
    for t in range(int(limit.max(initial=0))):
        keep = (limit[going] > t) & (state != ENDED)
        going, state = going[keep], state[keep]
        if not len(going):
            break
        action = policy.draw(state, random)
        following = next_state(world[going], state, action, random)
        steps.append((going, np.full_like(going, t), state, action, following))
        state = following
    return [np.concatenate(column) for column in zip(*steps, strict=True)]


def draw(
    kernel: Kernel, state: Integers, action: Integers, *, world: Integers | None = None, rng: Rng = None
) -> Integers:
    """Draw a next state for each (state, action), ENDED where the episode ends; ``world`` is the index in a batch."""
    at = np.zeros_like(state) if world is None else world
    return drawer(kernel)(at, state, action, generator(rng))


def drawer(kernel: Kernel) -> Drawer:
    """Prepare a kernel once for drawing many times."""
    if len(kernel.batch) > 1:
        raise InputError(f"Drawing takes one kernel or a batch with one leading axis; got the axes {kernel.batch}.")
    if isinstance(kernel, Mixture):
        return _mixed(kernel)
    rows = Rows.trusted(kernel.dense()) if isinstance(kernel, Operator) else kernel
    lines, shape = _Urns.of(rows), kernel.shape[:-1]

    def draw_next(world: Integers, state: Integers, action: Integers, random: np.random.Generator) -> Integers:
        return lines.draw(_line(shape, world, state, action), random)

    return draw_next


def _mixed(mixture: Mixture) -> Drawer:
    """A draw from a mixture is a draw from the target with probability ``weight``, else from the data."""
    data, target, shape = drawer(mixture.data), drawer(mixture.target), mixture.shape[:-1]
    weight = np.broadcast_to(mixture.weight, shape).reshape(-1)

    def draw_next(world: Integers, state: Integers, action: Integers, random: np.random.Generator) -> Integers:
        to_target = random.random(len(state)) < weight[_line(shape, world, state, action)]
        following = np.empty_like(state)
        for part, chosen in ((data, ~to_target), (target, to_target)):
            following[chosen] = part(world[chosen], state[chosen], action[chosen], random)
        return following

    return draw_next


@dataclass(frozen=True)
class _Urns:
    """The rows of a kernel end to end, ready for drawing by inverse distribution function.

    One running sum over all entries serves every row: a row's own part of it rises from ``before`` to ``after``.
    """

    running: Floats  # (entries,)
    column: Integers | None  # (entries,), next state of each entry; None where entry i is next state i % S
    begin: Integers  # (lines + 1,)
    mass: Floats  # (lines,), exactly 1 where it is 1 up to rounding
    n_states: int

    @classmethod
    def of(cls, kernel: Rows | SparseRows) -> _Urns:
        """Lay out a kernel."""
        S, mass = kernel.shape[-1], kernel.mass().reshape(-1)
        mass = np.where(np.abs(mass - 1) <= MASS_TOLERANCE, 1.0, mass)
        if isinstance(kernel, SparseRows):
            matrix = kernel.matrix
            return cls(np.cumsum(matrix.data), matrix.indices, matrix.indptr, mass, S)
        return cls(np.cumsum(kernel.array), None, np.arange(len(mass) + 1) * S, mass, S)

    @classmethod
    def of_table(cls, probabilities: Floats) -> _Urns:
        """Lay out plain distributions, ``(lines, outcomes)``, each of which sums to one."""
        lines, k = probabilities.shape
        return cls(np.cumsum(probabilities), None, np.arange(lines + 1) * k, np.ones(lines), k)

    def draw(self, line: Integers, random: np.random.Generator) -> Integers:
        """Draw one next state from each of the given rows."""
        u = random.random(len(line))
        following = np.full(len(line), ENDED, dtype=np.int64)
        goes_on = u < self.mass[line]  # past the row's mass the episode ends
        entry = self._entry(line[goes_on], u[goes_on])
        following[goes_on] = entry % self.n_states if self.column is None else self.column[entry]
        return following

    def _entry(self, line: Integers, u: Floats) -> Integers:
        """First entry of the row at which its running sum exceeds u."""
        begin, end = self.begin[line], self.begin[line + 1]
        before, after = np.where(begin > 0, self.running[begin - 1], 0), self.running[end - 1]
        level = before + u / self.mass[line] * (after - before)
        level = np.minimum(level, np.nextafter(after, before))  # rounding must not reach past the last possible entry
        entry = np.searchsorted(self.running, level, side="right")
        return np.clip(entry, begin, end - 1)  # a row may be lighter than the last digit of the running sum


def _line(shape: tuple[int, ...], world: Integers, state: Integers, action: Integers) -> Integers:
    """Number of the pair's row among rows of this shape; along an axis of length 1 all share index 0."""
    *batch, S, A = shape
    W = batch[0] if batch else 1
    return (world % W * S + state % S) * A + action % A


def _one_step(mdp: MDP, pair: Integers, world: Integers, data_sets: int | None, random: np.random.Generator) -> Batch:
    state, action = np.divmod(pair, mdp.n_actions)
    return _batch(mdp, state, action, drawer(mdp.transition)(world, state, action, random), world, data_sets)


def _batch(
    mdp: MDP,
    state: Integers,
    action: Integers,
    next_state: Integers,
    world: Integers,
    data_sets: int | None,
    **columns: Any,
) -> Batch:
    """Dress drawn rows: rewards are the MDP's own, known and without noise."""
    S, A, worlds = mdp.n_states, mdp.n_actions, _worlds(mdp, data_sets)
    labeled = data_sets is not None or bool(mdp.batch)
    return Batch(
        state,
        action,
        next_state,
        n_states=S,
        n_actions=A,
        reward=np.broadcast_to(mdp.reward, (worlds, S, A))[world, state, action],
        data_set=world if labeled else None,
        n_data_sets=worlds if labeled else None,
        state_names=mdp.state_names,
        action_names=mdp.action_names,
        positions=mdp.positions,
        **columns,
    )


def _worlds(mdp: MDP, data_sets: int | None) -> int:
    """How many data sets there will be: as many as asked for, one for each MDP of a batch, or one."""
    if len(mdp.batch) > 1:
        raise InputError(f"Sampling takes one MDP or a batch with one leading axis; got the axes {mdp.batch}.")
    given = None if data_sets is None else whole("data_sets", data_sets, 0)
    if mdp.batch and given not in (None, *mdp.batch):
        raise InputError(f"data_sets is {given}, but the batch holds {mdp.batch[0]} MDPs, one for each data set.")
    return mdp.batch[0] if mdp.batch else 1 if given is None else given


def _behavior(mdp: MDP, behavior: ArrayLike | None) -> Floats:
    """Read a behavior policy as probabilities, (S, A)."""
    S, A = mdp.n_states, mdp.n_actions
    if behavior is None:
        return np.full((S, A), 1 / A)
    policy = floats("behavior", behavior)
    if policy.shape == (S,):
        return _chosen(policy, A)
    if policy.shape != (S, A):
        raise InputError(f"behavior needs the shape ({S}, {A}) or ({S},); got {policy.shape}.")
    bad = (policy < 0).any(axis=1) | (np.abs(policy.sum(axis=1) - 1) > MASS_TOLERANCE)
    _refuse(bad, lambda s: f"has the probabilities {policy[s].tolist()}; expected none below 0 and a sum of 1")
    return policy


def _chosen(actions: Floats, A: int) -> Floats:
    """Write one action per state as probabilities, (S, A)."""
    _refuse(~np.isin(actions, np.arange(A)), lambda s: f"has the action {actions[s]:g}; expected one of 0..{A - 1}")
    return np.eye(A)[actions.astype(np.int64)]


def _refuse(bad: Booleans, complaint: Callable[[int], str]) -> None:
    if bad.any():
        (state,) = first(bad)
        raise InputError(f"behavior: state {state} {complaint(state)}.")


def _start(mdp: MDP, start: ArrayLike | None) -> Floats:
    """Read the distribution of the first state, (S,)."""
    probabilities = floats("start", mdp.start if start is None else start)
    S, total = mdp.n_states, probabilities.sum()
    if probabilities.shape != (S,):
        raise InputError(
            f"start needs one probability for each of the {S} states; got the shape {probabilities.shape}."
        )
    if (probabilities < 0).any() or abs(total - 1) > MASS_TOLERANCE:
        raise InputError(f"start needs probabilities, none below 0, that sum to 1; the sum is {total:.9g}.")
    return probabilities
