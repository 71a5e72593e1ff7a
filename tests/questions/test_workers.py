"""Whoever works, and however many: the same numbers, bit for bit. Here with two real processes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from certeq import InputError, learn, read
from certeq.base import places
from certeq.questions import draws as draws_room
from certeq.questions.compare import compare
from certeq.questions.examine import examine
from certeq.questions.posterior import posterior
from certeq.worlds import examples
from logbook import logged

HOW = {"regularizers": ["evidence", "uniform_prior", "discount", "uniform_blend", "none"], "folds": 2, "draws": 30}


@pytest.fixture(scope="module")
def processes():
    with places.executor(2) as pool:
        yield pool


def small_blocks(monkeypatch):
    """Cut work that would be one block into several, here as there."""
    monkeypatch.setattr(draws_room, "BLOCK", 7 * 18)


def same(one, other, *parts):
    for part in parts:
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))


def advice(learned):
    return {"advice": learned.policy.actions}


@pytest.mark.slow
@pytest.mark.parametrize("way", [{}, {"reward_by": "next_state"}, {"horizon": 3}], ids=str)
def test_models_are_drawn_alike_here_and_in_other_processes(processes, monkeypatch, way):
    small_blocks(monkeypatch)
    learned = learn(logged(3), discount=0.9, **way)
    told = {"rewards": learned.rewards, "batch": learned.batch, "draws": 40, "horizon": way.get("horizon")}
    found = [
        posterior(learned.model, learned.table, 0.9, advice(learned), **told, **where)
        for where in ({"threads": 1}, {"threads": 3}, {"executor": processes})
    ]
    for other in found[1:]:
        same(found[0], other, "state_values", "claimed", "best", "advised_best")


@pytest.mark.slow
def test_models_of_a_real_file_are_drawn_alike_in_processes_of_their_own():
    learned = learn(read(examples.path()), discount=0.95)
    told = {"rewards": learned.rewards, "batch": learned.batch, "draws": 60}
    here, there = (
        posterior(learned.model, learned.table, 0.95, advice(learned), **told, workers=workers) for workers in (1, 2)
    )
    same(here, there, "state_values", "claimed", "best", "advised_best")


@pytest.mark.slow
def test_a_comparison_is_alike_here_and_in_other_processes(processes):
    learned = learn(logged(5, episodes=20), discount=0.9)
    heard = {None: [], processes: []}
    here, there = (
        compare(learned, **HOW, executor=pool, notice=words.append).to_json() for pool, words in heard.items()
    )
    assert here == there
    assert heard[None] == heard[processes]
    assert heard[None].count("Choosing a strength for uniform_blend") == 1  # discount gets the same


@pytest.mark.slow
def test_a_report_asks_the_same_wherever_models_are_drawn(processes, monkeypatch):
    small_blocks(monkeypatch)
    learned = learn(logged(6), discount=0.9)
    here, there = (examine(learned, draws=40, executor=pool) for pool in (None, processes))
    same(here.posterior, there.posterior, "state_values", "best")


def test_an_executor_that_is_given_is_left_open():
    learned = learn(logged(5), discount=0.9)
    with ThreadPoolExecutor(2) as pool:
        compare(learned, **HOW, executor=pool)
        assert pool.submit(int).result() == 0


def test_processes_and_a_cluster_at_once_are_refused():
    learned = learn(logged(5), discount=0.9)
    with pytest.raises(InputError, match=r"workers= .* is for local processes"):
        compare(learned, workers=2, scheduler="tcp://127.0.0.1:1")
