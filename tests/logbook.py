"""Small batches of logged episodes, and rows added to them by hand."""

from dataclasses import replace

import numpy as np

from certeq import Batch
from strategies import random_rows


def logged(seed, *, S=3, A=2, episodes=8, length=5, ends=True, noise=1.0):
    """Episodes of random actions in a random world; with ``ends``, some of them end."""
    rng = np.random.default_rng(seed)
    world, pay = random_rows(rng, (S, A, S), ends=ends), rng.normal(size=(S, A))
    rows = []
    for episode in range(episodes):
        s = int(rng.integers(S))
        for _ in range(length):
            a = int(rng.integers(A))
            row = np.append(world[s, a], 1 - world[s, a].sum()).clip(0)
            after = int(rng.choice(S + 1, p=row / row.sum()))
            rows.append((s, a, -1 if after == S else after, pay[s, a] + noise * rng.normal(), episode))
            if after == S:
                break
            s = after
    state, action, next_state, reward, episode = map(np.array, zip(*rows, strict=True))
    return Batch(state, action, next_state, S, A, reward=reward, episode=episode)


def taken(batch, rows):
    """The batch with only these rows, in this order and as often as they are named."""
    parts = {name: getattr(batch, name) for name in ("state", "action", "next_state", "reward", "episode")}
    return replace(batch, **{name: part[rows] for name, part in parts.items() if part is not None})


def with_copies(batch, state, action, source, times):
    """The batch with some more rows of a pair, all with the reward and the next state of one of its rows."""
    longer = taken(batch, np.append(np.arange(len(batch)), np.full(times, source)))
    longer.state[len(batch) :] = state
    longer.action[len(batch) :] = action
    return longer
