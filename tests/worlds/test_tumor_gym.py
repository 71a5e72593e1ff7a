import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import certeq.worlds.gym  # noqa: F401 (registers the environments)
from certeq.base.errors import InputError
from certeq.worlds.tumor import TumorModel
from certeq.worlds.tumor_gym import TumorEnv
from certeq.worlds.tumor_model import LIMIT

ID = "certeq/Tumor-v0"


@pytest.mark.parametrize(
    "settings", [{}, {"drug": "PCV", "process_noise": 0, "start_noise": 0, "dose_penalty": 10, "integrator": "exact"}]
)
def test_it_passes_gymnasiums_own_check_without_a_warning(settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(ID, **settings).unwrapped)


def test_observations_are_four_numbers_and_actions_two():
    env = gymnasium.make(ID)
    assert env.observation_space == gymnasium.spaces.Box(-LIMIT, LIMIT, (4,), np.float64)
    assert env.action_space == gymnasium.spaces.Discrete(2)


def test_steps_follow_the_model():
    env, model = gymnasium.make(ID, process_noise=0, dose_penalty=2, drug="PCV"), TumorModel("PCV", 0, 0.25, 2)
    state, info = env.reset(seed=1)
    for dose in (1, 0, 1, 1):
        expected, reward = model.step(state, dose)
        state, earned, terminated, truncated, info = env.step(dose)
        np.testing.assert_array_equal(state, expected)
        assert (earned, terminated, truncated) == (reward, False, False)
        assert info["tumor_mm"] == pytest.approx(state[1:].sum())


def test_an_episode_repeats_with_its_seed_and_lasts_thirty_months():
    def follow(seed):
        env = gymnasium.make(ID)
        states = [env.reset(seed=seed)[0]]
        while True:
            state, _, _, truncated, _ = env.step(len(states) % 2)
            states.append(state)
            if truncated:
                return np.array(states)

    np.testing.assert_array_equal(follow(3), follow(3))
    assert follow(3).shape == (31, 4)
    assert (follow(3) != follow(4)).any()


@pytest.mark.parametrize("integrator", ["printed", "exact"])
def test_a_runaway_patient_is_truncated_inside_the_observation_space(integrator):
    env = TumorEnv(process_noise=0, integrator=integrator)
    env.reset(seed=0)
    env._state = np.array([0.0, -LIMIT, 0, 0])
    state, reward, terminated, truncated, _ = env.step(0)
    assert (terminated, truncated) == (False, True)
    assert state in env.observation_space
    assert np.isfinite(reward)


def test_what_is_handed_out_is_not_the_patient():
    env = TumorEnv(process_noise=0, start_noise=0)
    state, _ = env.reset(seed=0)
    state[:] = 0
    assert env.step(0)[0][2] > 40


def test_rendering_tells_the_last_month_in_a_line():
    env = gymnasium.make(ID, render_mode="ansi", process_noise=0, start_noise=0)
    env.reset(seed=0)
    assert env.render() == "drug 0.00, tumor 43.2 mm (P 0.9, Q 42.3, D 0.0)"
    env.step(1)
    assert env.render() == "TMZ, reward 0.85: drug 0.68, tumor 41.7 mm (P 0.8, Q 34.6, D 6.3)"
    env.step(0)
    assert env.render().startswith("no dose, reward ")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TumorEnv(drug="RT"), "drug must be one of 'TMZ', 'PCV'; got 'RT'"),
        (lambda: TumorEnv(render_mode="human"), "render_mode must be one of 'ansi'; got 'human'"),
        (lambda: TumorEnv().step(2), r"action must be 0 \(no dose\) or 1 \(a dose\); got 2"),
    ],
)
def test_bad_input_is_named(build, message):
    with pytest.raises(InputError, match=message):
        build()
