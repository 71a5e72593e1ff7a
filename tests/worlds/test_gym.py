import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from certeq.base.errors import InputError
from certeq.model.kernel import Mixture, Rows
from certeq.model.mdp import MDP
from certeq.worlds import ENVIRONMENTS, environment, from_table, random_chain, river_swim
from certeq.worlds.gym import REGISTERED, TabularEnv, register

ENDING = MDP(np.array([[[0.5, 0.25]], [[0.0, 1.0]]]), np.array([[2.0], [0.0]]), 0.9, start=[1, 0])


@pytest.mark.parametrize("id", REGISTERED)
def test_every_registered_world_passes_gymnasiums_own_check_without_a_warning(id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(f"certeq.worlds.gym:{id}").unwrapped)


def test_the_whole_catalogue_is_registered():
    assert set(REGISTERED.values()) == set(ENVIRONMENTS)


def test_names_steps_and_seeds_stay_what_they_were():
    specs = {id: gymnasium.spec(id) for id in REGISTERED}
    assert {id: (spec.max_episode_steps, spec.kwargs) for id, spec in specs.items()} == {
        "certeq/RandomChain-v0": (100, {"mdp": "random_chain", "rng": 0}),
        "certeq/RiverSwim-v0": (20, {"mdp": "river_swim"}),
        "certeq/Loop-v0": (100, {"mdp": "loop"}),
        "certeq/StayOrLeave-v0": (100, {"mdp": "stay_or_leave"}),
        "certeq/Grid-v0": (100, {"mdp": "grid", "rng": 0}),
        "certeq/TumorTable-v0": (30, {"mdp": "tumor", "rng": 0}),
    }


def test_registering_twice_does_no_harm():
    register()


@pytest.mark.slow
def test_make_imports_the_module_by_itself():
    code = "import gymnasium; print(gymnasium.make('certeq.worlds.gym:certeq/RiverSwim-v0').unwrapped.mdp.n_states)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "6"


@pytest.mark.slow
def test_gymnasium_is_not_imported_until_it_is_used():
    code = "import sys, certeq.worlds.sampling; print('gymnasium' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_settings_are_passed_on():
    env = gymnasium.make("certeq/RiverSwim-v0", n_states=9)
    assert env.observation_space.n == 9
    assert env.action_space.n == 2


def test_a_registered_random_world_is_always_the_same_unless_told_otherwise():
    worlds = [gymnasium.make("certeq/RandomChain-v0", **s).unwrapped.mdp.reward for s in ({}, {}, {"rng": 1})]
    np.testing.assert_array_equal(worlds[0], worlds[1])
    assert (worlds[0] != worlds[2]).any()


def test_an_episode_is_truncated_at_its_time_limit():
    env = gymnasium.make("certeq/RiverSwim-v0")
    env.reset(seed=0)
    ends = [env.step(1)[2:4] for _ in range(20)]
    assert ends == [(False, False)] * 19 + [(False, True)]


@pytest.mark.slow
@pytest.mark.parametrize("name", [None, *ENVIRONMENTS])
def test_the_table_reads_back_as_the_same_mdp(name):
    mdp = environment(name) if name else ENDING
    back = from_table(TabularEnv(mdp), discount=mdp.discount)
    np.testing.assert_allclose(back.transition.dense(), mdp.transition.dense(), atol=1e-12)
    np.testing.assert_allclose(back.reward, mdp.reward, atol=1e-12)
    np.testing.assert_array_equal(back.start, mdp.start)


def test_missing_mass_is_a_terminated_outcome_in_the_same_state():
    assert TabularEnv(ENDING).P == {
        0: {0: [(0.5, 0, 2.0, False), (0.25, 1, 2.0, False), (0.25, 0, 2.0, True)]},
        1: {0: [(1.0, 1, 0.0, False)]},
    }


def test_steps_follow_the_table():
    env = TabularEnv(ENDING)
    env.reset(seed=0)
    seen = {}
    for _ in range(4000):
        env.reset()
        state, reward, terminated, truncated, info = env.step(0)
        assert (reward, truncated) == (2.0, False)
        seen.setdefault((state, terminated), []).append(info["prob"])
    assert set(seen) == {(0, False), (1, False), (0, True)}
    for probs in seen.values():
        assert len(probs) / 4000 == pytest.approx(probs[0], abs=4 * np.sqrt(0.25 / 4000))


def test_the_start_follows_its_distribution():
    env = TabularEnv(river_swim(variant="strehl"))
    env.reset(seed=0)
    starts = [env.reset()[0] for _ in range(1000)]
    assert set(starts) == {1, 2}
    assert starts.count(1) / 1000 == pytest.approx(0.5, abs=0.07)


@pytest.mark.slow
def test_sparse_worlds_are_stepped_without_being_written_out():
    S = 100_000
    ring = from_table({s: {0: [(1.0, (s + 1) % S, 0.0, False)]} for s in range(S)}, start=np.eye(1, S)[0])
    env = TabularEnv(ring)
    env.reset(seed=0)
    assert [env.step(0)[0] for _ in range(3)] == [1, 2, 3]


def test_a_mixture_is_stepped_as_the_rows_it_stands_for():
    mixture = Mixture(Rows(np.array([[[1.0, 0]], [[0, 1.0]]])), np.full((2, 1), 0.5), Rows(np.full((1, 1, 2), 0.5)))
    env = TabularEnv(MDP(mixture, np.zeros((2, 1)), 0.9))
    assert env.P[0][0] == [(0.75, 0, 0.0, False), (0.25, 1, 0.0, False)]


def test_rendering_tells_the_last_step_in_a_line():
    env = gymnasium.make("certeq/RiverSwim-v0", render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "0"
    env.step(0)
    assert env.render() == "0 --left--> 0, reward 0.005"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TabularEnv(random_chain(size=2)), "one MDP; got a batch"),
        (lambda: TabularEnv(ENDING, n_states=3), "Settings go with a name"),
        (lambda: TabularEnv("river"), "no environment named 'river'"),
        (lambda: TabularEnv(ENDING, render_mode="human"), "render_mode"),
        (lambda: TabularEnv(ENDING).step(1), "action must be a whole number between 0 and 0; got 1"),
    ],
)
def test_bad_input_is_named(build, message):
    with pytest.raises(InputError, match=message):
        build()
