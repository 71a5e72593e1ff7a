"""What can be said of a policy that was learned from counts is what is said of one learned from the rows."""

import numpy as np
import polars as pl
import pytest

from certeq import InputError, learn, read
from certeq.data.counting import count
from certeq.questions.compare import compare
from certeq.questions.examine import examine
from certeq.report.learned_page import render

NEEDS_ROWS = {"off_policy", "fragility"}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pl.DataFrame(
        {
            "state": rng.choice(["a", "b", "c", "d"], 400),
            "action": rng.choice(["x", "y"], 400),
            "reward": rng.normal(size=400).round(2),
            "next_state": rng.choice(["a", "b", "c", "d"], 400),
            "done": rng.random(400) < 0.1,
        }
    ).write_parquet(path)
    return path


def both(path, **settings):
    from_rows = learn(read(path, episode=False), discount=0.9, **settings)
    return from_rows, learn(count(path), discount=0.9, **settings)


@pytest.mark.parametrize("settings", [{}, {"horizon": 3}, {"regularizer": "uniform_prior", "strength": 0.4}], ids=str)
def test_counts_answer_what_rows_answer_and_say_what_they_cannot(path, settings):
    rows, counts = (examine(learned, draws=40, rng=2) for learned in both(path, **settings))
    assert set(counts.missing) - set(rows.missing) <= NEEDS_ROWS
    for part in NEEDS_ROWS:
        assert "here there are only counts of rows. Learn from the rows to see it" in counts.missing[part]
    assert rows.posterior.again  # rows can be drawn again, and counts of them cannot
    assert not counts.posterior.again
    np.testing.assert_allclose(counts.posterior.claimed, rows.posterior.claimed)
    np.testing.assert_allclose(counts.posterior.start, rows.posterior.start)
    np.testing.assert_array_equal(counts.plain, rows.plain)
    assert counts.audit.to_json() == rows.audit.to_json()
    assert counts.conventions.to_json() == rows.conventions.to_json()
    np.testing.assert_allclose(counts.path.knots, rows.path.knots, atol=1e-5)
    np.testing.assert_array_equal(counts.path.policies, rows.path.policies)
    if "horizon" not in settings:
        np.testing.assert_allclose(counts.collect.gain, rows.collect.gain, rtol=1e-6, atol=1e-9)
        assert counts.collect.state_names == rows.collect.state_names


def test_how_sure_rewards_by_next_state_are_needs_the_rows(path):
    rows, counts = (examine(learned, draws=40) for learned in both(path, reward_by="next_state"))
    assert rows.posterior is not None
    assert counts.posterior is None
    assert "estimate rewards by pair" in counts.missing["posterior"]


def test_the_page_of_counts_says_what_is_not_in_it_and_why(path):
    _, learned = both(path)
    page = render(examine(learned, draws=40))
    assert page.count("Not in this report: This part") == 2
    assert learned.policy.data["fingerprint"] in page
    assert "models drawn from the posterior" in page


def test_a_comparison_needs_rows_and_says_so(path):
    _, learned = both(path)
    with pytest.raises(InputError, match="Learn from the rows"):
        compare(learned)
