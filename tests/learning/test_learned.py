"""The main job: rows in, a policy out; what was decided on the way is kept, and what is doubtful is said."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certeq import REGULARIZERS, Batch, InputError, environment, loss, plan, read, sampling, tally
from certeq.base.texts import json_text
from certeq.data.look import FEW
from certeq.learning.learned import learn
from certeq.model.unvisited import CONVENTIONS
from certeq.regularizers import DEFAULT
from strategies import SEEDS

SETTINGS = {
    "none": {},
    "discount": {"planning_discount": 0.7},
    "uniform_prior": {"magnitude": 2.0},
    "uniform_blend": {"strength": 0.3},
    "expert_prior": {"magnitude": 2.0, "target": np.full((3, 2, 3), 1 / 3)},
    "epsilon_greedy": {"strength": 0.3},
    "least_mse": {"plug_in": "mle"},
    "least_mse_epsilon_greedy": {},
}
RIVER = sampling.trajectories(environment("river_swim", n_states=3), 20, 10, rng=1)


def some_batch(seed, n, S, A, ends):
    rng = np.random.default_rng(seed)
    following = rng.integers(-1 if ends else 0, S, size=n)
    return Batch(
        rng.integers(S, size=n), rng.integers(A, size=n), following, S, A, reward=rng.choice([0.0, 1.0, 2.5], size=n)
    )


batches = st.builds(some_batch, SEEDS, st.integers(1, 40), st.integers(1, 5), st.integers(1, 4), st.booleans())


def made_of(rows, S=2, A=2, **more):
    """A batch of (state, action, reward, next state)."""
    state, action, reward, following = zip(*rows, strict=True)
    return Batch(state, action, following, S, A, reward=np.array(reward, float), **more)


# ---- what is advised ----


@given(batches, st.integers(1, 4), st.sampled_from([None, 1, 3]))
def test_an_action_that_was_not_tried_often_enough_is_never_advised(batch, min_visits, horizon):
    found = learn(batch, min_visits=min_visits, min_share=0, horizon=horizon, discount=0.9)
    visits = tally(batch).visits
    tried = (visits >= min_visits).any(axis=1)
    for actions in np.atleast_2d(found.policy.actions):
        np.testing.assert_array_equal(actions >= 0, tried)
        assert (visits[tried, actions[tried]] >= min_visits).all()
    q = np.atleast_3d(found.policy.action_values.T).T
    np.testing.assert_array_equal(np.isneginf(q), np.broadcast_to(visits < min_visits, q.shape))


@pytest.mark.parametrize("regularizer", REGULARIZERS)
@settings(max_examples=15)
@given(SEEDS)
def test_no_regularizer_advises_an_untried_action(regularizer, seed):
    batch = some_batch(seed, 12, 3, 2, ends=True)
    found = learn(batch, regularizer=regularizer, **SETTINGS.get(regularizer, {}))
    visits, actions = tally(batch).visits, found.policy.actions
    assert (visits[actions >= 0, actions[actions >= 0]] > 0).all()


@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("unvisited", CONVENTIONS)
def test_it_is_counting_averaging_and_planning(regularizer, unvisited):
    told = SETTINGS.get(regularizer, {}) | {"regularizer": regularizer, "unvisited": unvisited}
    found = learn(RIVER, discount=0.9, **told)
    by_hand = plan(tally(RIVER), found.rewards.mean, 0.9, **told)
    np.testing.assert_array_equal(found.plan.policy, by_hand.policy)
    np.testing.assert_allclose(found.plan.values, by_hand.values)
    np.testing.assert_array_equal(found.policy.actions, by_hand.policy)
    np.testing.assert_array_equal(found.counts.visits, tally(RIVER).visits)
    assert found.shrinkage.weight.shape[-2:] == (3, 2)


def test_with_many_rows_the_policy_is_nearly_optimal():
    river = environment("river_swim", n_states=4)
    found = learn(sampling.uniform_pairs(river, 4000, rng=0), discount=0.99)
    assert loss(river.transition, river.reward, 0.99, found.policy.actions) < 1e-6


def test_rows_in_order_and_rows_with_their_next_state_give_the_same_policy():
    state, action = list("ABABCABCA"), list("xyyxyxxyx")
    long = {"episode": [1] * 9, "time": range(9), "state": state, "action": action, "reward": range(9)}
    explicit = {"state": state[:-1], "action": action[:-1], "reward": range(8), "next_state": state[1:]}
    one, other = learn(read(long)), learn(read(explicit))
    np.testing.assert_array_equal(one.counts.transitions, other.counts.transitions)
    np.testing.assert_array_equal(one.policy.actions, other.policy.actions)
    np.testing.assert_allclose(one.plan.values, other.plan.values)
    assert one.policy.recipe == other.policy.recipe


def test_simulated_rows_need_no_table():
    found = learn(RIVER)
    assert found.policy.act({"state": [0, 1, 2]}) == ["right"] * 3
    grid = learn(sampling.uniform_pairs(environment("grid", rng=0), 2000, rng=0))
    assert None not in grid.policy.act({"state": ["r0c0", "r3c3"]})


# ---- discount 1 and horizons ----


def test_without_discounting_episodes_that_surely_end_are_learned():
    ends = made_of([(0, 0, 1, 1), (0, 1, 0, 1), (1, 0, 2, -1), (1, 1, 5, -1)])
    found = learn(ends, discount=1, regularizer="none")
    np.testing.assert_allclose(found.plan.values, [6, 5])
    assert found.policy.actions.tolist() == [0, 1]


def test_without_discounting_episodes_that_may_go_on_are_refused_in_the_words_of_the_rows():
    rows = {"episode": [1] * 4, "time": range(4), "state": list("ABAB"), "action": list("xyxy"), "reward": [0] * 4}
    with pytest.raises(InputError, match="discount below 1") as caught:
        learn(read(rows), discount=1)
    assert "'A'" in str(caught.value)  # people know their states by name
    assert "done" in str(caught.value)  # and mark the end in a column


@given(batches, st.integers(1, 4))
def test_a_horizon_plans_each_decision(batch, horizon):
    found = learn(batch, horizon=horizon, discount=1.0, regularizer="none")
    assert found.policy.horizon == horizon
    assert found.policy.actions.shape == (horizon, batch.n_states)
    last = np.where(np.isneginf(found.policy.action_values[-1]), -np.inf, found.reward)
    advised = found.policy.actions[-1] >= 0
    np.testing.assert_allclose(last.max(axis=1)[advised], found.plan.values[-1][advised])


# ---- rewards ----


def test_known_rewards_take_the_place_of_what_was_seen():
    batch = Batch([0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0], 2, 2)
    with pytest.raises(InputError, match="no rewards"):
        learn(batch)
    found = learn(batch, reward=[[0, 5], [0, 5]], discount=0.5)
    assert found.policy.actions.tolist() == [1, 1]
    assert found.rewards is None
    assert found.policy.settings["reward"] == "known"
    with pytest.raises(InputError, match=r"Known rewards need the shape \(2, 2\); got \(3, 2\)"):
        learn(batch, reward=np.zeros((3, 2)))
    with pytest.raises(InputError, match="finite"):
        learn(batch, reward=[[0, np.nan], [0, 1]])


@given(SEEDS, st.booleans(), st.sampled_from(["exclude", "zero"]))
def test_rewards_by_next_state_are_rewards_by_pair_where_only_the_next_state_pays(seed, ends, unvisited):
    batch = some_batch(seed, 60, 3, 2, ends)
    pays = np.array([1.0, -2.0, 5.0, 0.5])  # the last one for an ending
    batch = Batch(batch.state, batch.action, batch.next_state, 3, 2, reward=pays[batch.next_state])
    rules = {"regularizer": "none", "unvisited": unvisited, "reward_pool": "none"}
    one, other = (learn(batch, reward_by=by, **rules) for by in ("pair", "next_state"))
    seen = one.counts.visits > 0
    np.testing.assert_allclose(one.reward[seen], other.reward[seen], atol=1e-12)
    if seen.all():
        np.testing.assert_allclose(one.plan.values, other.plan.values)


def test_rewards_can_be_pooled():
    noisy = sampling.uniform_pairs(environment("grid", rng=0), 200, rng=0)
    shaken = noisy.reward + np.random.default_rng(0).standard_normal(len(noisy))
    batch = Batch(noisy.state, noisy.action, noisy.next_state, 16, 4, reward=shaken)
    plain, pooled = (learn(batch, reward_pool=pool) for pool in ("none", "overall"))
    assert np.nanvar(pooled.reward) < np.nanvar(plain.reward)


def test_pooling_is_not_claimed_where_it_is_not_done():
    batch = some_batch(0, 60, 3, 2, ends=False)
    with pytest.raises(InputError, match="reward_pool pools rewards by pair; with reward_by='next_state' leave it"):
        learn(batch, reward_by="next_state", reward_pool="overall")


# ---- refusals ----


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"regularizer": "least_mes"}, "Did you mean 'least_mse'"),
        ({"regularizer": "uniform_prior", "magnitud": 1}, "Did you mean 'magnitude'"),
        ({"unvisited": "exclud"}, "Did you mean 'exclude'"),
        ({"min_visits": 0}, "min_visits must be at least 1"),
        ({"min_visits": 1.5}, "min_visits must be a whole number"),
        ({"horizon": 0}, "horizon must be at least 1"),
        ({"discount": 1.5}, "discount must lie between 0 and 1"),
        ({"discount": [0.9, 0.99]}, "discount"),
        ({"reward_by": "row"}, "There are: next_state, pair"),
        ({"reward_pool": "stat"}, "Did you mean 'state'"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(told, says):
    with pytest.raises(InputError, match=says):
        learn(RIVER, **told)


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(InputError, match="no transitions"):
        learn(Batch([], [], [], 2, 2, reward=[]))
    with pytest.raises(InputError, match="one data set"):
        learn(sampling.trajectories(environment("loop"), 2, 2, data_sets=2, rng=0))
    with pytest.raises(InputError, match="read"):
        learn({"state": ["A"], "action": ["x"], "reward": [1], "next_state": ["A"]})  # a table is no batch


def test_one_row_is_enough():
    found = learn(made_of([(0, 1, 3, 0)], S=1))
    assert found.policy.actions.tolist() == [1]
    assert found.summary.rows == 1


@pytest.mark.parametrize(("size", "remedy"), [(1e308, "Divide"), (1.01e50, "Divide"), (9.9e-51, "Multiply")])
def test_rewards_too_large_or_too_small_for_their_squares_are_refused_known_or_not(size, remedy):
    rows = [(0, 0, size, 1), (1, 0, -size, 0)]
    for reward in (None, np.full((2, 2), size)):
        with pytest.raises(InputError, match=f"too (large|small) to compute with. {remedy} all of them by a constant"):
            learn(made_of(rows if reward is None else [(0, 0, 1.0, 1), (1, 0, 0.0, 0)]), reward=reward)


# ---- the summary ----


def test_the_summary_counts_what_there_was():
    rows = {"episode": [1, 1, 1, 2, 2], "time": [0, 1, 2, 0, 1], "state": list("ABAAC"), "action": list("xyxxy")}
    found = learn(read(rows | {"reward": range(5), "done": [0, 0, 0, 0, 1]})).summary
    assert (found.rows, found.episodes, found.states, found.actions, found.endings) == (4, 2, 3, 2, 1)
    assert (found.pairs_seen, found.pairs, found.advised) == (3, 6, 3)
    assert found.dropped == {"last row of an episode without a next state": 1}
    assert any("as the action" in note for note in found.notes)
    assert found.seen[0] == "3 states occur."
    plain = json.loads(json_text(found.to_json()))
    assert plain["format"] == "certeq-summary"
    assert plain["settings"]["regularizer"] == DEFAULT
    assert set(plain["versions"]) == {"certeq", "python", "numpy"}


MANY = [(s, a, s + 2 * a, 1 - s) for s in (0, 1) for a in (0, 1) for _ in range(FEW)]


@pytest.mark.parametrize(
    ("alert", "rows", "told"),
    [
        ("no action was tried often enough", [*MANY, (0, 0, 0, 2)], {}),
        ("no action was tried often enough", MANY[:6], {"min_visits": 5}),
        (f"advised action was tried fewer than {FEW} times", MANY[:-1], {}),
        ("only one action was ever tried", [r for r in MANY if r[0] == 0 or r[1] == 1], {}),
        ("Action '0' was tried in one state only", [r for r in MANY if r[0] == 0 or r[1] == 1], {}),
        ("several actions are equally good", [(s, a, s, n) for s, a, _, n in MANY], {}),
        ("Every reward is the same", [(s, a, 7, n) for s, a, _, n in MANY], {}),
    ],
)
def test_what_is_doubtful_is_said(alert, rows, told):
    assert any(alert in line for line in learn(made_of(rows, S=3 if rows[-1][3] == 2 else 2), **told).summary.alerts)


def test_equal_rewards_do_differ_in_value_where_episodes_end():
    """As in CartPole: 1 for each step, until it falls."""
    ends = [(0, 0, 1, 0), (0, 1, 1, -1)] * 10
    learned = learn(made_of(ends, S=1))
    assert not any("Every reward is the same" in alert for alert in learned.summary.alerts)
    assert learned.policy.actions.tolist() == [0]
    nothing = learn(made_of([(0, a, 0, n) for _, a, _, n in ends], S=1))
    assert any("Every reward is the same" in alert for alert in nothing.summary.alerts)


def test_equal_rewards_do_differ_in_value_where_time_counts():
    """Who gets the same sooner has more of it."""
    rows = {"episode": [e for e in range(20) for _ in range(4)], "time": [], "at": [0] * 80, "pay": [1.0] * 80}
    rows["do"] = [("slow", "fast")[(e + t) % 2] for e in range(20) for t in range(4)]
    for e in range(20):
        now = 0
        for t in range(4):
            rows["time"].append(now)
            now += 3 if rows["do"][4 * e + t] == "slow" else 1
    named = {"state": "at", "action": "do", "reward": "pay", "episode": "episode", "time": "time"}
    learned = learn(read(rows, duration="times", bins={"at": "labels"}, ends="never", **named), discount=0.9)
    assert not learned.indifferent
    assert learned.policy.act({"at": [0]}) == ["fast"]
    assert not any("Every reward is the same" in alert for alert in learned.summary.alerts)


def test_equal_rewards_do_differ_in_value_where_what_was_never_tried_pays_nothing():
    rows = [(s, a, -1, 1 - s) for s, a in ((0, 0), (0, 1), (1, 0))] * 10
    assert not learn(made_of(rows, S=2), unvisited="zero").indifferent
    assert learn(made_of(rows, S=2)).indifferent


def test_nothing_is_doubted_without_reason():
    assert learn(made_of(MANY)).summary.alerts == ()
    assert learn(made_of(MANY), horizon=2).summary.alerts == ()


def test_equal_rewards_in_the_rows_do_not_matter_where_rewards_are_known():
    flat = made_of([(s, a, 0, n) for s, a, _, n in MANY])
    assert learn(flat, reward=[[0, 1], [2, 3]]).summary.alerts == ()
