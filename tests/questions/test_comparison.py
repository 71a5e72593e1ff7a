"""Compare: held-out scores and expected errors against plain loops, choices that follow the numbers, bad input."""

from dataclasses import replace

import numpy as np
import pytest

from certeq import REGULARIZERS, InputError, environment, learn, sampling
from certeq.data.batch import Batch
from certeq.data.order import unit_of
from certeq.learning.case import Case
from certeq.learning.equivalence import estimate
from certeq.questions.compare import _expected_error, _split, compare
from certeq.questions.comparison import RECORDED, Comparison, Entry
from certeq.questions.credible import Posterior
from certeq.regularizers import DEFAULT
from certeq.report.comparing import table
from logbook import logged
from strategies import as_sparse

WHICH = ["evidence", "none", "discount", "uniform_prior", "learned_target"]


@pytest.fixture(scope="module")
def river():
    world = environment("river_swim")
    return learn(sampling.trajectories(world, episodes=12, length=15, rng=3), discount=0.95)


@pytest.fixture(scope="module")
def found(river):
    return compare(river, regularizers=WHICH, folds=3, draws=200, rng=1)


def test_every_regularizer_that_needs_nothing_takes_part(river):
    whole = compare(river, folds=2, draws=20, rng=1)
    assert {each.name for each in whole.entries} == set(REGULARIZERS) - {"expert_prior"}
    assert whole.entries[0].name == DEFAULT


def test_a_single_episode_is_held_out_by_its_sections():
    rows = sampling.trajectories(environment("river_swim"), episodes=1, length=120, rng=3)
    mixed = rows.take(np.random.default_rng(0).permutation(120))  # time tells who neighbors are, not the table's order
    parts = _split(mixed, 4, np.random.default_rng(0))
    assert (parts.units, parts.number) == ("sections of long episodes", 6)
    order = np.argsort(np.asarray(mixed.time))
    assert unit_of(mixed)[order].tolist() == np.repeat(np.arange(6), 20).tolist()
    found = compare(learn(rows, discount=0.95), regularizers=["evidence", "none"], folds=4, draws=8)
    assert found.entry("evidence").held_out.shape == (6,)
    with pytest.raises(InputError, match=r"20 folds need at least as many sections .* only 6\. Lower folds="):
        _split(mixed, 20, np.random.default_rng(0))
    with pytest.raises(InputError, match=r"only 1\. Collect more, or name the column that tells them apart"):
        _split(mixed.take(np.arange(12)), 5, np.random.default_rng(0))


@pytest.mark.parametrize("ends", [False, True])
def test_counts_that_are_kept_sparse_are_compared_as_others_are(ends):
    learned = learn(logged(4, episodes=20, ends=ends), discount=0.9)
    kept = Case(replace(learned.case.data, counts=as_sparse(learned.counts)), learned.rules)
    names = ["evidence", "least_mse", "none"]
    one, other = (
        compare(each, regularizers=names, folds=2, draws=8) for each in (learned, replace(learned, case=kept))
    )
    for dense, sparse in zip(one.entries, other.entries, strict=True):
        np.testing.assert_allclose(sparse.held_out, dense.held_out)
        assert sparse.expected_error == pytest.approx(dense.expected_error)
        np.testing.assert_array_equal(sparse.policy, dense.policy)


def test_held_out_scores_are_those_of_a_plain_loop(river, found):
    batch = river.batch
    parts = _split(batch, 3, np.random.default_rng(1))
    score = np.zeros(parts.number)
    brier = []
    for counts, (unit, state, action, outcome) in zip(parts.training, parts.rows, strict=True):
        rows = estimate(counts, 0.95, regularizer="evidence").transition.dense()
        for u, s, a, n in zip(unit, state, action, outcome, strict=True):
            score[u] += np.log(rows[s, a, n])
            brier.append(((rows[s, a] - np.eye(6)[n]) ** 2).sum())
    np.testing.assert_allclose(found.entry("evidence").held_out, score)
    assert found.entry("evidence").brier == pytest.approx(np.mean(brier))
    assert found.score("evidence") == pytest.approx(score.sum() / len(batch))


def test_folds_keep_episodes_whole_and_cover_every_row(river):
    parts = _split(river.batch, 4, np.random.default_rng(0))
    units = [set(rows[0]) for rows in parts.rows]
    assert sum(map(len, units)) == len(set.union(*units)) == 12
    for counts, rows in zip(parts.training, parts.rows, strict=True):
        assert counts.visits.sum() + len(rows[0]) == len(river.batch)
    loose = Batch(river.batch.state, river.batch.action, river.batch.next_state, 6, 2)
    assert _split(loose, 4, np.random.default_rng(0)).units == "rows"


def test_the_expected_error_is_that_of_draws_from_the_posterior(river):
    """Monte Carlo: rows drawn from Dirichlet(c + M/N) are on average that far from the model's."""
    counts, model = river.counts, estimate(river.counts, 0.95, regularizer="uniform_blend", strength=0.3)
    magnitude = np.array([np.full((6, 2), 2.0), np.full((6, 2), 0.5)])
    rng = np.random.default_rng(0)
    rows, away = model.transition.dense(), []
    for M in (2.0, 0.5):
        for s in range(6):
            for a in range(2):
                if counts.visits[s, a]:
                    T = rng.dirichlet(counts.transitions[s, a] + M / 6, size=20_000)
                    away.append(((T - rows[s, a]) ** 2).sum(axis=1).mean())
    assert _expected_error(counts, model, magnitude) == pytest.approx(np.mean(away), rel=0.01)


def test_a_method_that_rules_out_what_happened_says_how_often(found):
    none = found.entry("none")
    assert none.impossible > 0
    assert found.score("none") == -np.inf
    listed = {each["name"]: each for each in found.to_json()["regularizers"]}
    assert listed["none"]["log_probability"] is None


def test_the_discount_predicts_nothing_but_is_planned_at_a_strength(found):
    entry = found.entry("discount")
    assert not entry.predicts
    assert entry.settings["strength"] in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
    assert found.best != "discount"


def test_values_are_paired_and_equal_policies_have_equal_values(found):
    gap = found.values.difference("evidence", "evidence")
    assert gap[:3] == (0, 0, 0)
    alike = [each for each in found.entries if (each.policy == found.entry("evidence").policy).all()]
    assert len(alike) > 1
    assert all(found.values.difference(each.name, "evidence").mean == 0 for each in alike)
    assert set(found.values.names) == {*WHICH, RECORDED}


def test_agreement_counts_decisions_on_record(found, river):
    visits = river.counts.visits.sum(axis=1)
    one, two = found.entry("evidence").policy, found.entry("none").policy
    assert found.agreement("evidence", "none") == pytest.approx(visits[one == two].sum() / visits.sum())
    assert found.agreement("evidence", "evidence") == 1


def made_up(scores, worth=None):
    """A comparison in which each method scores as given, on 50 episodes of 10 rows, and is worth 1 unless given."""
    noise = np.sin(np.arange(50.0))
    entries = tuple(
        Entry(name, {}, 10 * mean + spread * noise, 0.5, int(mean == -np.inf), 0.1, 0.1, np.full(2, i))
        for i, (name, (mean, spread)) in enumerate(scores.items())
    )
    names = (*scores, RECORDED)
    drawn = np.ones((len(names), 200, 2))
    for name, (mean, spread) in (worth or {}).items():
        drawn[names.index(name)] = np.random.default_rng(names.index(name)).normal(mean, spread, (200, 1))
    values = Posterior(names, drawn, np.array([0.5, 0.5]), np.ones(len(names)), np.ones((2, 2)), np.ones(2))
    return Comparison(entries, 500, "episodes", 5, values, {"all": 1.0}, {"uniform": 1.0}, np.ones(2, dtype=np.int64))


def test_the_default_is_recommended_unless_another_is_clearly_better():
    assert made_up({DEFAULT: (-1.0, 0.1), "none": (-2.0, 0.1)}).recommended == DEFAULT
    close = made_up({DEFAULT: (-1.01, 0.0), "uniform_prior": (-1.0, 5.0)})
    assert close.best == "uniform_prior"
    assert close.recommended == DEFAULT
    assert close.lines()[0].startswith(f"Use {DEFAULT}, the default. uniform_prior predicts")
    assert "a tie" in close.lines()[0]
    clear = made_up({DEFAULT: (-1.5, 0.0), "uniform_prior": (-1.0, 0.1)})
    assert clear.recommended == "uniform_prior"
    assert "Use uniform_prior" in clear.lines()[0]
    assert made_up({"none": (-2.0, 0.1), "least_mse": (-1.0, 0.1)}).recommended == "least_mse"
    assert made_up({DEFAULT: (-np.inf, 0.1), "least_mse": (-1.0, 0.1)}).recommended == "least_mse"


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (
            {DEFAULT: (-1.0, 0.1), "none": (-2.0, 0.2)},
            "Next comes none, 1 behind in log probability per transition, st",
        ),
        ({DEFAULT: (-1.0, 0.1), "none": (-1.01, 5.0)}, ": a tie."),
        ({DEFAULT: (-1.0, 0.1), "none": (-np.inf, 0.0)}, "all others gave something that happened no chance."),
        (
            {DEFAULT: (-np.inf, 0.1), "none": (-np.inf, 0.0)},
            "all of them gave something that happened no chance",
        ),
        ({DEFAULT: (-1.0, 0.1)}, "it is the only one here that predicts."),
    ],
)
def test_the_first_sentence_gives_the_recommendation_its_reason_and_its_error(scores, said):
    first = made_up(scores).lines()[0]
    assert first.startswith(f"Use {DEFAULT}: ")
    assert said in first


def test_the_standard_error_is_that_of_a_mean_over_episodes():
    found = made_up({DEFAULT: (-1.0, 0.1), "none": (-2.0, 0.7)})
    apart = [(-10 + 0.1 * np.sin(i)) - (-20 + 0.7 * np.sin(i)) for i in range(50)]
    middle = sum(apart) / 50
    error = (sum((each - middle) ** 2 for each in apart) / 49 / 50) ** 0.5 / 10  # 10 transitions in each
    assert found.lead(DEFAULT, "none") == pytest.approx((middle / 10, error))


def test_a_difference_is_a_tie_just_where_its_interval_includes_zero():
    """Against a literal count: 90% of the sorted differences of paired draws, and two standard errors of leads."""
    scores = {DEFAULT: (-1.0, 0.1), "none": (-1.01, 3.0), "evidence": (-1.3, 0.1), "discount": (np.nan, 0.0)}
    worth = {DEFAULT: (1.0, 0.3), "none": (0.9, 0.3), "evidence": (-3.0, 0.3), "discount": (4.0, 0.3)}
    found = made_up(scores, worth | {RECORDED: (1.1, 0.3)})
    words = {"none": "a tie", "evidence": "worth less", "discount": "worth more", RECORDED: "a tie"}
    for name, word in words.items():
        one, two = (found.values.state_values[found.values.names.index(each)] for each in (name, DEFAULT))
        apart = sorted(float(a - b) for a, b in zip(one[:, 0], two[:, 0], strict=True))
        includes = apart[9] <= 0 <= apart[190]  # of 200: 5% on either side
        assert includes == (word == "a tie")
        assert found.worth(name)[0] == word
    assert [found.prediction(name)[0] for name in scores] == [
        "recommended",
        "a tie",
        "worse",
        "does not say what comes next",
    ]
    told = " ".join(found.lines())
    assert "the advice of discount is worth more than that of learned_target: by" in told
    assert "The advice of learned_target is worth more than that of evidence; it ties with that of none" in told
    assert "To see whether it beats what was recorded, run certeq learn" in told
    assert "chance" not in told
    against = {each["name"]: each["against_recommended"] for each in found.to_json()["regularizers"]}
    assert against["none"]["value"]["verdict"] == against["none"]["prediction"]["verdict"] == "a tie"
    header, *lines = table(found)[0], *table(found)[1]
    assert {line[0]: line[header.index("worth")] for line in lines} | {RECORDED: "a tie", DEFAULT: "recommended"} == (
        words | {DEFAULT: "recommended"}
    )


def test_the_command_learns_with_what_is_recommended():
    clear = made_up({DEFAULT: (-1.5, 0.0), "uniform_prior": (-1.0, 0.1)})
    entry = replace(clear.entries[1], settings={"strength": 0.3})
    told = replace(clear, entries=(clear.entries[0], entry)).command
    assert told == "certeq learn --regularizer uniform_prior --setting strength=0.3"
    assert made_up({DEFAULT: (-1.0, 0.1)}).command == "certeq learn"


def test_the_same_seed_gives_the_same_comparison_on_any_number_of_threads(river, found):
    again = compare(river, regularizers=WHICH, folds=3, draws=200, rng=1, threads=1)
    assert again.to_json() == found.to_json()


def test_words_speak_of_the_choice_its_stakes_and_the_structure(found):
    words = " ".join(found.lines())
    for part in ("held-out transitions", "what was recorded", "How strongly to regularize"):
        assert part in words


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"regularizers": ["evidense"]}, r"no regularizer named 'evidense'\. Did you mean 'evidence'"),
        ({"regularizers": ["expert_prior"]}, "expert_prior needs your target"),
        ({"regularizers": []}, "at least one regularizer"),
        ({"regularizers": ["discount"]}, "discount does not predict which state"),
        ({"folds": 1}, "folds must be at least 2"),
        ({"folds": 13}, "13 folds need at least as many episodes; there are only 12"),
    ],
)
def test_bad_settings_are_named(river, settings, message):
    with pytest.raises(InputError, match=message):
        compare(river, draws=10, **settings)


def test_a_plan_with_a_horizon_is_refused():
    world = environment("river_swim")
    short = learn(sampling.trajectories(world, episodes=5, length=9, rng=1), horizon=4)
    with pytest.raises(InputError, match="without a horizon"):
        compare(short)
