"""Where a row comes from: the parts add up to it, and are what the regularizer mixed."""

import numpy as np
import pytest

from certeq import InputError, environment, learn, sampling
from certeq.questions.origin import OWN, origin
from certeq.regularizers.learned_target import WORDS


@pytest.fixture(scope="module")
def learned():
    truth = environment("river_swim")
    return learn(sampling.trajectories(truth, 6, 12, rng=4), discount=0.95)


def test_the_parts_of_every_row_add_up_to_it(learned):
    weight = np.broadcast_to(learned.shrinkage.weight, learned.policy.visits.shape)
    for state, action in np.ndindex(weight.shape):
        found = origin(learned, state, action)
        assert found.parts[0] == (OWN, pytest.approx(1 - weight[state, action]))
        assert sum(share for _, share in found.parts) == pytest.approx(1, abs=0.011)


def test_parts_are_the_shares_of_the_target_and_of_the_uniform_row(learned):
    believed, s, a = learned.shrinkage.details, 1, 0
    pull = float(believed.probability) * believed.borrowed.weight[s, a]
    plain = (1 - float(believed.probability)) * believed.plain.weight[s, a]
    expected = dict(zip(believed.candidates, pull * believed.share[a], strict=True))
    expected["uniform"] += plain
    said = dict(origin(learned, s, a).parts)
    for name, share in expected.items():
        if share >= 0.02:
            assert said[WORDS[name]] == pytest.approx(share, rel=1e-6)


def test_it_tells_of_a_state_of_its_own_choice_in_words(learned):
    (line,) = origin(learned).lines()
    assert line.startswith("Of what the plan expects after '")
    assert f"% comes {OWN}" in line


def test_other_regularizers_borrow_nothing(learned):
    plain = learn(learned.batch, discount=0.95, regularizer="evidence")
    with pytest.raises(InputError, match="Only learned_target borrows rows"):
        origin(plain)
