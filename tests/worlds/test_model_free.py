import itertools

import numpy as np
import pytest

import naive
from certeq.base.errors import InputError
from certeq.base.random import stream, words
from certeq.model.kernel import Rows
from certeq.model.mdp import MDP
from certeq.worlds.model_free import QLearning, Schedule, q_learning
from certeq.worlds.q_kernel import learn, simulation_chance

SEED = 20230711


def random_mdp(seed=0, S=5, A=3, support=3, mass=1.0, discount=0.9, batch=()):
    rng = np.random.default_rng(seed)
    T = rng.random((*batch, S, A, S))
    T *= np.argsort(np.argsort(rng.random(T.shape), axis=-1), axis=-1) < support
    T *= mass / T.sum(axis=-1, keepdims=True)
    return MDP(Rows(T), rng.random((*batch, S, A)), discount)


RIVER_SWIM = MDP(*naive.river_swim(), 0.99)
WORLDS = {
    "river swim": RIVER_SWIM,
    "random": random_mdp(),
    "wide rows": random_mdp(seed=2, S=40, A=2, support=40),
    "ends": random_mdp(seed=1, mass=0.8),
    "one action": random_mdp(seed=3, A=1),
}
FALLING = Schedule(0.8, 0.6, 0.05)
PERIODIC = MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [0.0]], 0.9)  # two states, one action, back and forth


def numbers_of(replication, count=400_000, seed=SEED):
    """The random numbers of one replication, one by one, as the literal twin takes them."""
    return iter(stream(words(np.random.default_rng(seed), replication + 1)[replication], count).tolist()).__next__


def twin(mdp, target, *, replication=0, step_size=0.1, exploration=0.1, **settings):
    S, A = mdp.n_states, mdp.n_actions
    rate = step_size
    if isinstance(rate, Schedule):
        rate = lambda n: max(step_size.floor, step_size.initial / n**step_size.decay)  # noqa: E731
    return naive.q_learning(
        mdp.transition.dense(),
        mdp.reward,
        mdp.discount,
        np.broadcast_to(target, (S, A, S)),
        step_size=rate,
        exploration=exploration,
        uniform=numbers_of(replication),
        **{"variant": "standard", "probability": 0.1, "steps": 700, "episodes": 3, **settings},
    )


def assert_same_life(ours, r, theirs):
    q, counts, reward, simulated = theirs
    assert np.allclose(ours.q[r], q, rtol=0, atol=1e-12)
    assert np.array_equal(ours.counts[r], counts)
    assert ours.reward[r] == pytest.approx(reward, rel=1e-12)
    assert ours.simulated[r] == simulated


VARIANTS = ("standard", "constant", "specific")


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("world", WORLDS)
def test_the_literal_twin_lives_the_same_life(world, variant):
    mdp = WORLDS[world]
    step_size = (0.1, FALLING)[(list(WORLDS).index(world) + VARIANTS.index(variant)) % 2]  # each meets both
    # Eq. 5 counts ending as an outcome where there is any, so there the uniform target ends with the same chance
    target = np.full(mdp.n_states, 1 / (mdp.n_states + (world == "ends")))
    same = {"variant": variant, "probability": 0.3, "steps": 700, "episodes": 3, "step_size": step_size}
    ours = q_learning(mdp, **same, target=target, exploration=0.2, replications=3, rng=SEED)
    for r in range(3):
        assert_same_life(ours, r, twin(mdp, target, replication=r, exploration=0.2, **same))


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["constant", "specific"])
def test_some_updates_are_simulated_and_some_pairs_are_shrunk(variant):
    ours = q_learning(WORLDS["random"], variant=variant, replications=20, steps=2000, rng=SEED)
    assert (ours.simulated > 0).all()


@pytest.mark.parametrize("shape", [(5,), (3, 5), (5, 1, 5), (5, 3, 5)])
def test_simulated_steps_are_drawn_from_the_target(shape):
    target = np.random.default_rng(8).random(shape)
    target /= 1.1 * target.sum(axis=-1, keepdims=True)  # each row ends with chance 1/11
    same = {"variant": "constant", "probability": 0.5, "steps": 500, "episodes": 2}
    theirs = twin(WORLDS["random"], target, **same)
    kernel = Rows(target.reshape((1,) * (3 - len(shape)) + shape))
    for given in (target, kernel):
        assert_same_life(q_learning(WORLDS["random"], target=given, rng=SEED, **same), 0, theirs)


def test_the_specific_chance_is_measured_from_the_target_that_is_given(monkeypatch):
    # The twin's Eq. 5 speaks of the uniform row only; facts 6.1 has the bias toward any row q: sum (q - T)^2.
    target = np.array([0.5, 0.2, 0.15, 0.1, 0.05])
    formula = naive.epsilon_star
    monkeypatch.setattr(naive, "epsilon_star", lambda T_row, _, c: formula(T_row, target, c))
    theirs = twin(WORLDS["random"], target, variant="specific")
    assert_same_life(q_learning(WORLDS["random"], target=target, steps=700, episodes=3, rng=SEED), 0, theirs)


@pytest.mark.parametrize("target", [[1 / 3] * 3, [0.5, 0.25, 0.25], [0.2, 0.2, 0.6]])
def test_the_chance_of_simulating_is_eq_5_with_a_limit(target):
    for counts in itertools.product(range(5), repeat=3):
        n = sum(counts)
        if n == 0:
            continue
        chance = simulation_chance(
            float(n), float(np.dot(counts, counts)), float(np.dot(counts, target)), float(np.dot(target, target))
        )
        printed = naive.epsilon_star(np.array(counts) / n, target, n)
        assert chance == pytest.approx(min(printed, n / (n + 1)), abs=1e-12)


def test_toward_the_uniform_row_the_limit_acts_only_where_eq_5_says_one():
    for counts in itertools.product(range(6), repeat=3):
        n = sum(counts)
        printed = naive.epsilon_star(np.array(counts) / max(n, 1), [1 / 3] * 3, n)
        assert printed <= n / (n + 1) + 1e-12 or len(set(counts)) == 1


def test_it_never_hangs_where_the_printed_algorithm_does():
    coin = MDP(np.full((2, 1, 2), 0.5), np.ones((2, 1)), 0.9)
    with pytest.raises(RuntimeError):
        twin(coin, np.full(2, 0.5), variant="specific", steps=1000, episodes=1)
    ours = q_learning(coin, steps=1000, replications=50, rng=1)
    assert (ours.counts.sum(axis=(1, 2, 3)) == 1000).all()
    assert (ours.simulated > 0).all()


def test_it_never_hangs_where_a_sure_outcome_is_also_the_target():
    ours = q_learning(PERIODIC, target=PERIODIC.transition, steps=200, rng=1)
    assert ours.simulated == 0
    one = MDP(np.ones((1, 1, 1)), np.ones((1, 1)), 0.5)
    assert q_learning(one, steps=100).counts.sum() == 100


@pytest.mark.parametrize("probability", [0.0, 0.999])
def test_a_pair_that_was_never_tried_is_tried_first(probability):
    ours = q_learning(RIVER_SWIM, variant="constant", probability=probability, steps=1, replications=200, rng=4)
    assert (ours.simulated == 0).all()


def test_a_constant_probability_of_zero_is_standard_but_for_the_extra_draw():
    assert (q_learning(RIVER_SWIM, variant="constant", probability=0, replications=4, rng=0).simulated == 0).all()


def test_the_number_of_threads_changes_nothing(monkeypatch):
    lives = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("CERTEQ_THREADS", threads)
        lives.append(q_learning(RIVER_SWIM, replications=11, steps=300, curve_every=50, rng=9))
    for life in lives[1:]:
        for name in QLearning.__dataclass_fields__:
            assert np.array_equal(getattr(life, name), getattr(lives[0], name)), name


def test_more_replications_do_not_change_the_first_ones():
    few, many = (q_learning(RIVER_SWIM, replications=n, steps=300, rng=9) for n in (2, 7))
    assert np.array_equal(few.q, many.q[:2])
    assert len(np.unique(many.counts.reshape(7, -1), axis=0)) == 7  # and each lives its own life


def test_a_generator_moves_on_and_a_seed_does_not():
    rng = np.random.default_rng(3)
    one, two = (q_learning(RIVER_SWIM, steps=300, rng=rng).counts for _ in range(2))
    assert not np.array_equal(one, two)
    assert np.array_equal(one, q_learning(RIVER_SWIM, steps=300, rng=3).counts)


def optimal_q(mdp, discount):
    T, R = mdp.transition.dense(), mdp.reward
    Q = np.zeros_like(R)
    for _ in range(2000):
        Q = R + discount * (T @ Q.max(axis=-1))
    return Q


@pytest.mark.parametrize("world", ["random", "ends"])
def test_standard_q_learning_finds_the_optimal_values(world):
    mdp = WORLDS[world]
    ours = q_learning(
        mdp, variant="standard", steps=400_000, step_size=Schedule(1.0, 0.75), exploration=1.0, discount=0.7,
        replications=4, rng=0,
    )  # fmt: skip
    best = optimal_q(mdp, 0.7)
    assert np.abs(ours.q - best).max() < 0.03
    assert np.abs(ours.q.mean(axis=0) - best).max() < 0.02
    assert np.array_equal(ours.policy[0], np.argmax(ours.q[0], axis=-1))


def test_a_constant_probability_learns_the_values_of_the_mixture():
    # the point of Algorithm 3: updates drawn from target with chance w learn in (1 - w) T + w target
    mdp, w = random_mdp(seed=6, S=4, A=2), 0.4
    mixed = MDP((1 - w) * mdp.transition.dense() + w / 4, mdp.reward, 0.7)
    ours = q_learning(
        mdp, variant="constant", probability=w, steps=400_000, step_size=Schedule(1.0, 0.75), exploration=1.0,
        discount=0.7, replications=4, rng=0,
    )  # fmt: skip
    assert np.abs(ours.q - optimal_q(mixed, 0.7)).max() < 0.03
    assert np.allclose(ours.simulated / (ours.simulated + 400_000), w, atol=0.01)


def test_rewards_visits_and_curve_add_up():
    mdp = WORLDS["ends"]
    ours = q_learning(mdp, episodes=4, steps=250, replications=6, curve_every=90, rng=2)
    assert ours.counts.shape == (6, 5, 3, 5)
    visits = ours.counts.sum(axis=-1) + ours.ended
    assert (visits.sum(axis=(1, 2)) == 1000).all()
    assert (ours.ended.sum(axis=(1, 2)) > 100).all()
    assert np.allclose(ours.reward, (visits * mdp.reward).sum(axis=(1, 2)))
    assert ours.curve.shape == (6, 11)
    assert (np.diff(ours.curve, axis=1) > 0).all()
    shorter = q_learning(mdp, episodes=1, steps=90, replications=6, rng=2)
    assert np.allclose(ours.curve[:, 0], shorter.reward)
    every = q_learning(mdp, episodes=4, steps=250, replications=6, curve_every=1000, rng=2)
    assert np.allclose(every.curve[:, 0], ours.reward)
    assert q_learning(mdp, steps=10).curve is None
    assert q_learning(mdp, steps=10, curve_every=11).curve.shape == (1, 0)


def test_an_ending_is_worth_nothing_and_life_goes_on_elsewhere():
    mdp = MDP(np.zeros((3, 1, 3)), np.array([[1.0], [2.0], [3.0]]), 0.99)
    ours = q_learning(mdp, variant="standard", steps=2000, step_size=1.0, replications=2, rng=0)
    assert np.array_equal(ours.q, np.broadcast_to(mdp.reward, (2, 3, 1)))
    assert (ours.counts == 0).all()
    assert (ours.ended > 500).all()


def test_a_batch_gives_each_replication_its_own_world():
    batch = random_mdp(seed=5, batch=(4,))
    ours = q_learning(batch, steps=400, rng=SEED)
    assert np.array_equal(ours.q, q_learning(batch, steps=400, replications=4, rng=SEED).q)
    for r in range(4):
        alone = MDP(Rows(batch.transition.dense()[r]), batch.reward[r], 0.9)
        assert_same_life(
            ours, r, twin(alone, np.full(5, 1 / 5), replication=r, variant="specific", steps=400, episodes=1)
        )


def test_transitions_and_rewards_may_be_batched_apart():
    batch, one = random_mdp(seed=5, batch=(3,)), random_mdp(seed=5)
    for mdp in (MDP(batch.transition, one.reward, 0.9), MDP(one.transition, batch.reward, 0.9)):
        full = MDP(
            Rows(np.broadcast_to(mdp.transition.dense(), (3, 5, 3, 5))), np.broadcast_to(mdp.reward, (3, 5, 3)), 0.9
        )
        assert np.array_equal(q_learning(mdp, steps=200, rng=1).q, q_learning(full, steps=200, rng=1).q)


def test_one_compiled_kernel_serves_all_calls():
    reward = RIVER_SWIM.reward.copy()
    reward.flags.writeable = False
    q_learning(MDP(RIVER_SWIM.transition, reward, 1), steps=5, step_size=Schedule(1, 1), initial=1, discount=0)
    q_learning(random_mdp(batch=(2,)), steps=5, target=np.full((5, 3, 5), 0.2), curve_every=2)
    assert len(learn.signatures) == 1


def test_a_sparse_world_is_the_same_world():
    import scipy.sparse as sp

    dense = WORLDS["random"]
    sparse = MDP(sp.csr_array(dense.transition.dense().reshape(-1, 5)), dense.reward, dense.discount)
    assert np.array_equal(q_learning(sparse, steps=300, rng=1).q, q_learning(dense, steps=300, rng=1).q)


def test_ties_go_to_the_lowest_action_and_q_starts_where_it_is_told():
    mdp = random_mdp(A=3)
    still = q_learning(mdp, steps=1, exploration=0, replications=30, initial=5.0, rng=0)
    assert (still.counts.sum(axis=(1, 3))[:, 1:] == 0).all()
    assert (still.q == 5.0).sum() == 30 * 14
    start = np.zeros((5, 3))
    start[:, 2] = 1.0
    led = q_learning(mdp, steps=1, exploration=0, replications=30, initial=start, rng=0)
    assert (led.counts.sum(axis=(1, 3))[:, :2] == 0).all()
    assert (start == [0, 0, 1]).all()  # the caller's array stays as it was


class Falling:
    """Exploration that falls with the real steps, in the shape that the twin can take: it is compared once a step."""

    def __init__(self, schedule):
        self.schedule, self.n = schedule, 0

    def __gt__(self, u):
        self.n += 1
        return max(self.schedule.floor, self.schedule.initial / self.n**self.schedule.decay) > u


def test_exploration_falls_with_the_real_steps_of_all_episodes():
    schedule = Schedule(1.0, 0.5, 0.1)
    ours = q_learning(RIVER_SWIM, variant="standard", steps=100, episodes=4, exploration=schedule, rng=SEED)
    theirs = twin(RIVER_SWIM, np.full(6, 1 / 6), steps=100, episodes=4, exploration=Falling(schedule))
    assert_same_life(ours, 0, theirs)


def test_without_exploration_and_without_reward_nothing_is_learned():
    mdp = MDP(RIVER_SWIM.transition, np.zeros((6, 2)), 0.9)
    assert (q_learning(mdp, exploration=0.0, steps=100).q == 0).all()


@pytest.mark.parametrize(
    ("settings", "words_"),
    [
        ({"variant": "specifc"}, "Did you mean 'specific'"),
        ({"variant": "constant", "probability": 1.0}, "probability must be below 1"),
        ({"probability": -0.1}, "probability"),
        ({"probability": [0.1, 0.2]}, "probability must be one number"),
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"episodes": -1}, "episodes"),
        ({"replications": 0}, "replications"),
        ({"curve_every": 0}, "curve_every"),
        ({"step_size": 0.0}, "step_size"),
        ({"step_size": 1.5}, "step_size"),
        ({"step_size": Schedule(0.5, -1)}, "step_size.decay"),
        ({"step_size": Schedule(0.5, 1, 0.6)}, "step_size.floor"),
        ({"exploration": 1.1}, "exploration"),
        ({"exploration": float("nan")}, "exploration"),
        ({"exploration": Schedule(0.5, 1, -0.1)}, "exploration.floor"),
        ({"exploration": "often"}, "exploration"),
        ({"discount": 1.01}, "discount"),
        ({"initial": np.zeros(7)}, "initial"),
        ({"initial": np.inf}, "initial"),
        ({"target": np.full(5, 0.2)}, "target"),
        ({"target": np.full(6, 0.2)}, "target"),
        ({"target": np.full((3, 6), 1 / 6)}, "target"),
        ({"target": np.full((2, 6, 2, 6), 1 / 6)}, "target"),
        ({"target": "uniform"}, "target"),
    ],
)
def test_a_bad_setting_is_named(settings, words_):
    with pytest.raises(InputError, match=words_):
        q_learning(RIVER_SWIM, **{"steps": 5, **settings})


def test_replications_must_fit_a_batch():
    with pytest.raises(InputError, match="replications is 3, but the batch has 4"):
        q_learning(random_mdp(batch=(4,)), replications=3)
    with pytest.raises(InputError, match="one axis"):
        q_learning(random_mdp(batch=(2, 2)))


def splits(n, parts, most):
    """All ways to write n as a sum of so many numbers, none above ``most`` and falling."""
    if parts == 1:
        return [(n,)] if n <= most else []
    return [(k, *rest) for k in range(min(n, most), -1, -1) for rest in splits(n - k, parts - 1, k)]


@pytest.mark.parametrize("n", range(1, 8))
def test_the_limit_on_simulating_acts_only_where_equation_5_says_1(n):
    """Of all counts over up to nine states, the least chance of a real step other than 0 is n / (n² + n - 1)."""
    least = 1.0
    for N in range(2, 10):
        for counts in splits(n, N, n):
            real = 1 - naive.epsilon_star(np.array(counts) / n, np.full(N, 1 / N), n)
            if real > 1e-12:
                least = min(least, real)
    assert least == pytest.approx(n / (n**2 + n - 1))
    assert least > 1 / (n + 1)
