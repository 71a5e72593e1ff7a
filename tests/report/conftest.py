"""Learned policies of several kinds, what was found out about them, and a browser to look at pages with."""

import numpy as np
import pytest
from browser import CHROMIUM, Browser
from hostile_labels import HOSTILE, learn_hostile

import certeq
from certeq.questions.examine import examine
from certeq.worlds import examples


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Chromium without a window."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    one = Browser(tmp_path_factory.mktemp("profile"))
    yield one
    one.close()


@pytest.fixture(scope="session")
def trial():
    """The bundled trial, learned in quartiles of all its columns: many states, and few rows in most."""
    return certeq.learn(certeq.read(examples.path(), bins=4))


@pytest.fixture(scope="session")
def walk():
    """A walk on a line of five cells that ends beyond its right end; one of three actions is tried only at the left."""
    random = np.random.default_rng(3)
    rows = []
    for episode in range(60):
        state = int(random.integers(5))
        for time in range(6):
            action = int(random.integers(3) if state < 2 else random.random() < 0.3)
            after = min(max(state + (-1, 1, 2)[action] * int(random.random() < 0.8), 0), 5)
            reward = (after == 5) + 0.1 * random.normal()
            rows.append((state, action, -1 if after == 5 else after, reward, episode, time))
            state = after
            if state == 5:
                break
    state, action, after, reward, episode, time = map(np.array, zip(*rows, strict=True))
    order = {"episode": episode, "time": time}
    return certeq.Batch(state, action, after, 5, 3, reward=reward, action_names=("back", "on", "jump"), **order)


@pytest.fixture(scope="session")
def found(walk):
    """Everything about the walk, where whatever was tried may be advised, so that every state has a second choice."""
    return examine(certeq.learn(walk, min_share=0.0), draws=80)


@pytest.fixture(scope="session")
def hostile():
    """A policy in which everything has a hostile label."""
    return learn_hostile(list(HOSTILE.values()), HOSTILE["closing"])
