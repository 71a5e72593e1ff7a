"""What the last row of an episode means is said, decided from the data and told, or asked for; never lost silently."""

import numpy as np
import pytest

from certeq.base.errors import InputError
from certeq.data.batch import ENDED
from certeq.data.reading import read, related
from certeq.data.reading.endings import MOST, lost
from naive import share_of_variance_lost


def clinic(episodes=40, seed=0, **more):
    """Patients with 2 to 6 rows; what happened stands on the last row only."""
    random = np.random.default_rng(seed)
    length = random.integers(2, 7, episodes)
    n = int(length.sum())
    last = np.zeros(n, dtype=bool)
    last[np.cumsum(length) - 1] = True
    died = last & (random.random(n) < 0.3)
    return {
        "patient": np.repeat(np.arange(episodes), length),
        "time": np.concatenate([np.arange(k) for k in length]),
        "state": random.integers(0, 3, n),
        "action": random.integers(0, 2, n),
        "reward": np.where(died, -1.0, np.where(last, 1.0, 0.0)),
        "outcome": np.where(died, "death", np.where(last, "discharge", "")).tolist(),
    } | more


def noisy(**more):
    """The same patients with a reward in every row, none of them special."""
    rows = clinic(**more)
    return rows | {"reward": np.random.default_rng(1).normal(size=len(rows["time"]))}


def test_outcomes_on_last_rows_are_kept_and_said():
    rows = clinic()
    batch = read(rows, state="state")
    assert len(batch) == len(rows["time"])
    assert batch.ended.sum() == 40
    assert sorted(batch.reward) == sorted(rows["reward"])
    assert batch.dropped == {}
    assert batch.ends == "always"
    (said,) = batch.decisions
    assert said.startswith("Each episode is taken to be over at its last row")
    assert "100% of the variation of 'reward'" in said


def test_episodes_whose_last_reward_is_as_everywhere_else_are_counted():
    rows = clinic()
    rows["reward"] = np.minimum(rows["reward"], 0)  # only deaths count
    (said,) = read(rows, state="state").decisions
    assert f"In {sum(word == 'discharge' for word in rows['outcome'])} of 40 episodes it is 0 there" in said


def test_rewards_in_every_row_leave_episodes_cut_off_and_say_so():
    rows = noisy()
    batch = read(rows, state="state")
    assert batch.ends == "never"
    assert batch.dropped == {"last row of an episode without a next state": 40}
    assert batch.decisions[0].startswith("All 40 episodes are taken to be cut off at their last rows, since nothing")


def test_episodes_of_one_length_were_cut_off_by_the_end_of_the_study():
    rows = {
        "episode": np.repeat(np.arange(10), 4),
        "time": np.tile(np.arange(4), 10),
        "state": np.arange(40) % 3,
        "action": np.arange(40) % 2,
        "reward": np.sin(np.arange(40)),
    }
    assert "since all have 4 rows" in read(rows).decisions[0]


@pytest.mark.parametrize("ends", ["always", "never"])
def test_what_is_said_about_ends_is_done_without_a_word(ends):
    rows = noisy()
    batch = read(rows, state="state", ends=ends)
    assert batch.decisions == ()
    assert batch.ended.sum() == (40 if ends == "always" else 0)
    assert len(batch) == len(rows["time"]) - (0 if ends == "always" else 40)


@pytest.mark.parametrize("done", ["outcome=death,discharge", {"outcome": ["Death", "discharge"]}])
def test_done_may_be_said_by_what_a_column_says(done):
    rows = clinic()
    batch = read(rows, state="state", done=done)
    assert batch.ended.sum() == 40
    assert batch.decisions == ()
    only = read(noisy(), state="state", done={"outcome": "death"})
    assert only.ended.sum() == sum(word == "death" for word in rows["outcome"])


def test_a_value_that_never_occurs_is_refused_with_those_that_do():
    with pytest.raises(
        InputError, match=r"'outcome' never says 'deth'.*Did you mean 'death'.*It says: death, discharge"
    ):
        read(clinic(), state="state", done="outcome=deth")
    with pytest.raises(InputError, match="Say which values mark it"):
        read(clinic(), state="state", done="outcome=")
    with pytest.raises(InputError, match=r"'outcome' is 'dis.*--done outcome=discharge"):
        read(clinic(), state="state", done="outcome")


def test_a_column_that_tells_the_outcome_in_every_row_is_read_at_the_last_one():
    rows = noisy()
    fate = np.arange(40) % 4 == 0
    rows["fatal"] = fate[rows["patient"]]
    assert read(rows, state="state", ends="fatal").ended.sum() == 10
    with pytest.raises(InputError, match=r"goes on after its end.*ends='fatal' \(--ends fatal\)"):
        read(rows, state="state", done="fatal")
    assert (
        read(rows, state="state", ends={"outcome": ["death"]}).ended.sum()
        == (np.array(rows["outcome"]) == "death").sum()
    )


def test_it_is_refused_to_lose_most_of_what_the_rewards_tell():
    rows = clinic() | {"dead": np.zeros(len(clinic()["time"]), dtype=int)}
    with pytest.raises(
        InputError, match="100% of the variation of the reward 'reward' stands in rows that make no"
    ) as told:
        read(rows, state="state")
    assert "delete" not in str(told.value)
    assert len(read(rows, state="state", ends="never")) == len(rows["time"]) - 40  # if somebody means it
    assert read(rows, state="state", ends="always").ended.sum() == 40


def test_rewards_on_rows_without_an_action_are_not_lost_in_silence():
    rows = clinic()
    rows["action"] = [None if word else int(a) for a, word in zip(rows["action"], rows["outcome"], strict=True)]
    with pytest.raises(InputError, match="row without an action: 40"):
        read(rows, state="state")


def test_episodes_of_one_row_are_whole_ones_only_if_somebody_says_so():
    rows = {"episode": [1, 2, 3, 4], "state": list("AABB"), "action": list("xyxy"), "reward": [0, 1, 0, 1]}
    with pytest.raises(InputError, match=r"Each row is an episode of its own.*ends='always'"):
        read(rows)
    assert (read(rows, ends="always").next_state == ENDED).all()


def test_a_blank_next_state_is_an_end_or_a_cut_as_said():
    rows = {"episode": [1, 1, 2], "state": list("ABA"), "action": list("xyx"), "reward": [0, 1, 1]}
    rows["next_state"] = ["B", None, None]
    with pytest.raises(InputError, match="ends='always', or 'never'"):
        read(rows)
    assert read(rows, ends="always").ended.tolist() == [False, True, True]
    assert read(rows, ends="never").dropped == {"last row of an episode without a next state": 2}


def test_other_rows_are_read_as_the_first_ones_were():
    batch = read(clinic(), state="state")
    other = noisy(seed=3) | {"reward": np.zeros(len(clinic(seed=3)["time"]))}
    assert (related(other, batch, state="state")[2] == ENDED).sum() == 40


def test_the_share_lost_is_that_of_its_literal_twin():
    random = np.random.default_rng(5)
    for _ in range(50):
        reward, kept = random.normal(size=30) * random.integers(0, 2, 30), random.random(30) < 0.7
        assert lost(reward, kept) == pytest.approx(share_of_variance_lost(reward.tolist(), kept.tolist()))
    assert lost(np.array([1.0, 2, 3]), np.array([True, True, False])) == 0  # one row proves nothing
    assert 0 < MOST < 1
