"""The estimator in the manner of scikit-learn: it clones, is searched with groups, and needs no scikit-learn."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.utils.validation import check_is_fitted

from certeq import CertaintyEquivalence, InputError, environment, learn, read, sampling
from certeq.data.reading import related


def logged(seed=0, episodes=12, length=8, ends=False, successors=2):
    """A log of a random chain as a dict of columns."""
    world = environment("random_chain", n_states=5, successors=successors, rng=3)
    batch = sampling.trajectories(world, episodes, length, rng=seed)
    return {
        "patient": batch.episode,
        "state": batch.state,
        "action": np.array(["stop", "go"])[batch.action],
        "reward": batch.reward,
        "next_state": batch.next_state,
        "done": (batch.time == length - 1) & ends,
    }


LOG = logged()
GRID = {"regularizer": ["uniform_prior"], "settings": [{"magnitude": 0.0}, {"magnitude": 1.0}, {"magnitude": 1e4}]}


# ---- parameters ----


def test_parameters_can_be_read_and_set():
    model = CertaintyEquivalence(discount=0.5, settings={"magnitude": 1.0})
    assert model.get_params()["discount"] == 0.5
    assert model.set_params(discount=0.7, bins={"x": "quantile:3"}) is model
    assert (model.discount, model.bins) == (0.7, {"x": "quantile:3"})
    assert repr(CertaintyEquivalence(min_visits=3)) == "CertaintyEquivalence(min_visits=3)"
    assert CertaintyEquivalence(**model.get_params()).get_params() == model.get_params()


def test_an_unknown_parameter_is_refused_with_those_there_are():
    with pytest.raises(InputError, match=r"no parameter 'discuont'.*discount"):
        CertaintyEquivalence().set_params(discuont=1)
    with pytest.raises(TypeError):
        CertaintyEquivalence(discuont=1)


def test_a_clone_has_the_parameters_and_not_the_data():
    model = CertaintyEquivalence(discount=0.8, regularizer="uniform_prior", settings={"magnitude": 2.0}).fit(LOG)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "policy_")
    check_is_fitted(model)
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)


# ---- fitting ----


def test_fitting_is_reading_and_learning():
    model = CertaintyEquivalence(discount=0.9, min_visits=2).fit(LOG)
    by_hand = learn(read(LOG), discount=0.9, min_visits=2)
    np.testing.assert_array_equal(model.policy_.actions, by_hand.policy.actions)
    np.testing.assert_array_equal(model.value_, by_hand.plan.values)
    np.testing.assert_array_equal(model.weight_, by_hand.shrinkage.weight)
    assert model.actions_ == ("go", "stop")
    assert model.states_ == by_hand.policy.state_names


def test_predictions_are_the_policys_actions_and_none_where_there_is_no_advice():
    model = CertaintyEquivalence().fit(LOG)
    found = model.predict(LOG)
    assert found.dtype == object
    assert found.tolist() == model.policy_.act(LOG)
    assert model.predict({"state": [0, 77]})[1] is None


def test_fitting_again_forgets():
    model = CertaintyEquivalence().fit(LOG)
    model.fit({"state": ["A", "B"], "action": ["x", "x"], "reward": [0, 1], "next_state": ["B", "A"]})
    assert model.states_ == ("A", "B")
    assert model.actions_ == ("x",)


def test_before_fitting_nothing_is_predicted():
    for ask in ("predict", "score"):
        with pytest.raises(InputError, match="not fitted yet: call fit first"):
            getattr(CertaintyEquivalence(), ask)(LOG)


def test_columns_of_an_array_go_by_number():
    array = np.column_stack([LOG["patient"], LOG["state"], LOG["action"] == "go", LOG["reward"], LOG["next_state"]])
    model = CertaintyEquivalence(episode=0, state=1, action=2, reward=3, next_state=4).fit(array)
    named = CertaintyEquivalence().fit(LOG)
    np.testing.assert_allclose(np.sort(model.value_), np.sort(named.value_))
    assert len(model.predict(array)) == len(array)
    assert model.score(array) == pytest.approx(named.score(LOG))
    with pytest.raises(InputError, match="two dimensions"):
        model.predict(array[0])


def test_negative_column_numbers_or_missing_ones_are_refused_in_words():
    array = np.zeros((4, 3))
    with pytest.raises(InputError, match="no column '9' to be the action"):
        CertaintyEquivalence(state=0, action=9, reward=2, next_state=1).fit(array)


# ---- scores ----


def sizes(table, recipe):
    """How large each cell is on the ranks: for each column, the share of values, now and next, that have its code."""
    now = recipe.encode(table)
    then = recipe.encode({"state": table["next_state"]})[~np.asarray(table["done"])]
    codes = recipe.cells[np.concatenate([now, then])]
    return [np.prod([np.mean(codes[:, k] == own) for k, own in enumerate(cell)]) for cell in recipe.cells]


def test_the_score_is_the_mean_log_density_of_the_next_values():
    model = CertaintyEquivalence(regularizer="uniform_prior", settings={"magnitude": 2.0}).fit(LOG)
    other = logged(seed=5)
    state, action, following = related(other, model.learned_.batch)
    rows, size = model.transition_.dense(), sizes(LOG, model.policy_.recipe)
    by_hand = [
        np.log(0.999 * rows[s, a, n] / size[n] + 0.001) for s, a, n in zip(state, action, following, strict=True)
    ]
    assert model.score(other) == pytest.approx(np.mean(by_hand))


def test_what_was_never_seen_scores_as_a_guess_and_nothing_is_infinite():
    model = CertaintyEquivalence(regularizer="none").fit(LOG)
    strange = {"state": [77], "action": ["go"], "reward": [0.0], "next_state": [0]}
    assert model.score(strange) == pytest.approx(np.log(0.001))


def numbers(n=4000, seed=0):
    """A log of two columns: x steps up or down a stair of four, y is noise."""
    random = np.random.default_rng(seed)
    stair, action = random.integers(4, size=n), random.integers(2, size=n)
    after = np.clip(stair + np.where(action == 1, 1, -1), 0, 3)
    place = lambda step: (step + random.random(n)) / 4  # noqa: E731
    return {
        "x": place(stair),
        "y": random.random(n),
        "action": action,
        "reward": after / 3,
        "next_x": place(after),
        "next_y": random.random(n),
    }


def test_a_cut_that_tells_nothing_scores_0_and_finer_ones_of_what_matters_score_more():
    train, test = numbers(), numbers(seed=1)

    def score(**bins):
        said = {"state": list(bins), "next_state": [f"next_{name}" for name in bins]}
        ways = {name: f"quantile:{cells}" for name, cells in bins.items()}
        return CertaintyEquivalence(bins=ways, **said).fit(train).score(test)

    nothing = {cells: score(y=cells) for cells in (1, 2, 8)}
    assert nothing == pytest.approx({1: 0, 2: 0, 8: 0}, abs=0.03)
    found = {cells: score(x=cells) for cells in (1, 2, 4, 8)}
    assert found[4] == pytest.approx(np.log(4), abs=0.15)  # one of four steps is all but known for sure
    assert found[1] < found[2] < found[4]
    assert found[8] == pytest.approx(found[4], abs=0.05)
    assert score(x=4, y=2) == pytest.approx(found[4], abs=0.05)


def test_endings_are_predicted_too():
    model = CertaintyEquivalence(regularizer="none").fit(logged(ends=True))
    assert model.counts_.ended is not None
    assert np.isfinite(model.score(logged(seed=4, ends=True)))


@pytest.mark.parametrize("regularizer", ["discount", "uniform_blend"])
def test_a_planning_discount_of_zero_is_scored_without_trouble(regularizer):
    model = CertaintyEquivalence(regularizer=regularizer, settings={"strength": 1.0}).fit(LOG)
    assert np.isfinite(model.score(LOG))


def test_few_rows_score_best_with_some_regularization_and_not_too_much():
    few, many = (logged(seed=seed, episodes=n, successors=4) for seed, n in ((0, 6), (9, 200)))
    score = {
        M: CertaintyEquivalence(regularizer="uniform_prior", settings={"magnitude": M}).fit(few).score(many)
        for M in (0.0, 4.0, 1e4)
    }
    assert score[4.0] > max(score[0.0], score[1e4])
    assert score[1e4] == pytest.approx(0, abs=0.2)
    assert CertaintyEquivalence().fit(few).score(many) > score[0.0]  # the default helps, too


def test_scoring_many_states_does_not_build_the_whole_table():
    S = 2000
    ring = {"state": np.arange(S), "action": ["a"] * S, "reward": np.zeros(S), "next_state": (np.arange(S) + 1) % S}
    model = CertaintyEquivalence(regularizer="none", bins={"state": "labels"}).fit(ring)
    assert model.counts_.sparse
    tracemalloc.start()
    model.score(ring)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < S * S  # bytes; the table would take eight times that


@pytest.mark.parametrize("regularizer", ["none", "uniform_prior", "discount"])
@pytest.mark.parametrize("ends", [False, True])
def test_the_score_is_that_of_the_model_written_out(regularizer, ends):
    settings = {} if regularizer == "none" else {"strength": 0.3}
    model = CertaintyEquivalence(regularizer=regularizer, settings=settings).fit(logged(ends=ends))
    other = logged(seed=5, ends=ends)
    rows, size = model.transition_.dense(), [*sizes(logged(ends=ends), model.policy_.recipe), 1.0]
    left = 1 - rows.sum(axis=-1, keepdims=True)
    chances = np.concatenate([rows, left] if ends else [rows / (1 - left), np.zeros_like(left)], axis=-1)
    by_hand = [
        0.0 if min(s, a) < 0 else chances[s, a, n] / size[n]  # n of -1, an ending, is the last one
        for s, a, n in zip(*related(other, model.learned_.batch), strict=True)
    ]
    guess = 0.5 if ends else 1
    assert model.score(other) == pytest.approx(np.log(0.999 * np.array(by_hand) + 0.001 * guess).mean())


# ---- searching ----


@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_settings_are_searched_with_patients_kept_together(kind):
    model = CertaintyEquivalence()
    rows = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(kind, lambda log: None)(LOG)
    if kind == "array":
        rows = np.column_stack([LOG["patient"], LOG["state"], LOG["action"] == "go", LOG["reward"], LOG["next_state"]])
        model = CertaintyEquivalence(episode=0, state=1, action=2, reward=3, next_state=4)
    search = GridSearchCV(model, GRID, cv=GroupKFold(3), error_score="raise").fit(rows, groups=LOG["patient"])
    assert search.best_params_["settings"] == {"magnitude": 1.0}
    assert len(search.predict(rows)) == len(LOG["state"])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_how_finely_to_cut_is_searched():
    rows = pd.DataFrame(numbers(600))
    model = CertaintyEquivalence(state=["x", "y"], next_state=["next_x", "next_y"])
    ways = [{"x": f"quantile:{x}", "y": f"quantile:{y}"} for x in (2, 4) for y in (1, 8)]
    search = GridSearchCV(model, {"bins": ways}, cv=3, error_score="raise").fit(rows)
    assert search.best_params_ == {"bins": {"x": "quantile:4", "y": "quantile:1"}}


def test_everything_that_read_takes_is_a_parameter(tmp_path):
    import inspect

    taken = set(inspect.signature(read).parameters) - {"source", "request", "said"}
    assert taken <= set(CertaintyEquivalence().get_params())
    assert taken <= set(inspect.signature(CertaintyEquivalence.__init__).parameters)
    pd.DataFrame(LOG).to_csv(tmp_path / "rows.csv")
    with pytest.raises(InputError, match="bytes"):
        CertaintyEquivalence(limit_bytes=10).fit(tmp_path / "rows.csv")


def test_cross_validation_scores_each_fold():
    scores = cross_val_score(CertaintyEquivalence(), pd.DataFrame(LOG), groups=LOG["patient"], cv=GroupKFold(3))
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()


# ---- without scikit-learn ----


@pytest.mark.slow
def test_it_needs_no_scikit_learn():
    code = """
import sys
sys.modules["sklearn"] = None  # importing it fails
from certeq import CertaintyEquivalence
rows = {"state": [0, 1, 0], "action": ["a", "b", "b"], "reward": [0, 1, 0], "next_state": [1, 0, 1]}
model = CertaintyEquivalence(discount=0.5).fit(rows)
print(model.predict(rows).tolist(), model.get_params()["discount"], abs(model.score(rows)) < 9, model)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("0.5 True CertaintyEquivalence(discount=0.5)")
