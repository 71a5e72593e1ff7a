import datetime

import numpy as np
import pytest

from certeq.base.errors import InputError
from certeq.data.batch import ENDED
from certeq.data.reading import read

NAN = float("nan")


def table(text):
    """A small table from text: names, then rows; - is missing."""
    names, *rows = [line.split() for line in text.strip().splitlines()]

    def value(word):
        if word == "-":
            return None
        try:
            return int(word)
        except ValueError:
            return word

    return {name: [value(row[i]) for row in rows] for i, name in enumerate(names)}


def links(batch):
    names = (*batch.state_names, "END")
    return [
        f"{names[s]}{batch.action_names[a]}{names[n]}"
        for s, a, n in zip(batch.state, batch.action, batch.next_state, strict=True)
    ]


LONG = """
    episode time state action reward
    1 0 A x 1
    1 1 B y 2
    1 2 C x 3
    2 0 B x 4
    2 1 A y 5
"""


def test_the_next_state_is_that_of_the_next_row_of_the_episode():
    batch = read(table(LONG))
    assert links(batch) == ["AxB", "ByC", "BxA"]
    assert batch.reward.tolist() == [1, 2, 4]
    assert batch.episode.tolist() == [0, 0, 1]
    assert batch.time.tolist() == [0, 1, 0]
    assert batch.dropped == {"last row of an episode without a next state": 2}
    assert batch.n_rows_read == 5


def test_after_termination_there_is_no_next_state():
    rows = table(LONG) | {"done": [0, 0, 1, 0, 0]}
    batch = read(rows)
    assert links(batch) == ["AxB", "ByC", "CxEND", "BxA"]
    assert batch.next_state[2] == ENDED
    assert batch.dropped == {"last row of an episode without a next state": 1}


@pytest.mark.parametrize(
    "flags",
    [["no", "No", "YES"], ["false", "f", "true"], [0, 0, 1], [0.0, NAN, 1.0], [False, None, True], ["n", "", "y"]],
)
def test_many_ways_to_say_that_it_is_over(flags):
    rows = table(LONG) | {"terminated": [*flags, *flags[:2]]}
    assert links(read(rows))[2] == "CxEND"


def test_a_mark_that_says_neither_yes_nor_no_is_refused():
    for value in ("maybe", 2):
        rows = table(LONG) | {"done": [value, None, None, None, None]}
        with pytest.raises(
            InputError, match=r"Row 1 .*'done' is '?(maybe|2)'?, but.*yes or no.*done=False \(--done none\)"
        ):
            read(rows)
    assert len(read(rows, done=False)) == 3


def test_the_last_row_of_a_truncated_episode_is_dropped_and_counted():
    rows = table(LONG) | {"truncated": [0, 0, 1, 0, 1]}
    batch = read(rows)
    assert links(batch) == ["AxB", "ByC", "BxA"]
    assert batch.dropped == {"last row of an episode without a next state": 2}


def test_a_final_row_without_an_action_only_tells_where_the_episode_ended_up():
    batch = read(table(LONG.replace("1 2 C x 3", "1 2 C - -").replace("2 1 A y 5", "2 1 A - 5")))
    assert links(batch) == ["AxB", "ByC", "BxA"]
    assert batch.dropped == {"row without an action": 2}
    truncated = table(LONG.replace("1 2 C x 3", "1 2 C - -")) | {"truncated": [0, 1, 0, 0, 0]}
    assert links(read(truncated)) == ["AxB", "ByC", "BxA"]


def test_a_final_row_without_an_action_that_says_done_ends_the_row_before_it():
    for done in ([0, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 1, 1, 0, 0]):
        batch = read(table(LONG.replace("1 2 C x 3", "1 2 C - -")) | {"done": done})
        assert links(batch) == ["AxB", "ByEND", "BxA"]
        assert batch.state_names == ("A", "B")  # C was never a state: it only stood after the end


def test_a_row_without_an_action_in_the_middle_is_a_next_state_but_no_transition():
    batch = read(table(LONG.replace("1 1 B y 2", "1 1 B - -")))
    assert links(batch) == ["AxB", "BxA"]
    assert batch.dropped == {"row without an action": 1, "last row of an episode without a next state": 2}


@pytest.mark.parametrize("role", ["done", "truncated"])
def test_an_episode_that_goes_on_after_its_end_is_refused(role):
    rows = table(LONG) | {role: [0, 1, 0, 0, 0]}
    with pytest.raises(
        InputError, match=rf"Episode 1 goes on after its end: '{role}' is true at time 1.*say {role}=False"
    ):
        read(rows)
    assert len(read(rows, **{role: False})) == 3
    with pytest.raises(InputError, match="Episode 1 goes on"):
        read(table(LONG.replace("1 1 B y 2", "1 1 B - -")) | {role: [0, 1, 0, 0, 0]})


def test_without_an_episode_column_marks_of_the_end_tell_episodes_apart():
    rows = table(LONG) | {"done": [0, 0, 1, 0, 0]}
    del rows["episode"]
    batch = read(rows)
    assert links(batch) == ["AxB", "ByC", "CxEND", "BxA"]
    assert any("a new episode begins after each" in note for note in batch.notes)
    rows |= {"done": [0, 0, 0, 0, 0], "timeout": [0, 0, 1, 0, 0]}
    assert links(read(rows)) == ["AxB", "ByC", "BxA"]
    final = table(LONG.replace("1 2 C x 3", "1 2 C - -")) | {"done": [0, 1, 0, 0, 0]}
    del final["episode"]
    assert links(read(final)) == ["AxB", "ByEND", "BxA"]


def test_without_episode_and_time_all_rows_are_one_episode_in_order():
    rows = table(LONG)
    del rows["episode"], rows["time"]
    batch = read(rows, layout="long")
    assert links(batch) == ["AxB", "ByC", "CxB", "BxA"]
    assert any("all rows are one episode" in note for note in batch.notes)
    assert any("no time column" in note for note in batch.notes)


def test_rows_are_sorted_by_time_within_their_episode():
    rows = {name: values[::-1] for name, values in table(LONG).items()}
    assert links(read(rows)) == ["BxA", "AxB", "ByC"]  # episodes in the order in which they first occur
    assert links(read(rows, time=False)) == ["AyB", "CxB", "ByA"]


def test_two_rows_at_one_time_are_refused():
    with pytest.raises(
        InputError, match=r"Episode 2 has two rows where 'time' is 0\. .*episode= \(--time, --episode\)"
    ):
        read(table(LONG.replace("2 1 A", "2 0 A")))
    rows = table(LONG)
    del rows["episode"]
    more = r"The table has two rows where 'time' is 0 \(\d+ more such rows? follow"
    with pytest.raises(InputError, match=more):
        read(rows)


def test_a_gap_is_refused_allowed_or_cut():
    rows = table(LONG.replace("1 2 C", "1 4 C"))
    with pytest.raises(
        InputError, match=r"Episode 1 has a gap: time goes from 1 to 4, .*gaps='allow' \(--gaps allow\)"
    ):
        read(rows)
    assert links(read(rows, gaps="allow")) == ["AxB", "ByC", "BxA"]
    cut = read(rows, gaps="cut")
    assert links(cut) == ["AxB", "BxA"]
    assert cut.dropped["row before a gap in time"] == 1
    with pytest.raises(InputError, match="no way to treat gaps named 'ignore'"):
        read(rows, gaps="ignore")


def test_a_word_about_gaps_is_checked_in_the_explicit_layout_too():
    rows = {"state": ["A", "B"], "action": ["x", "y"], "reward": [0, 1], "next_state": ["B", "A"]}
    with pytest.raises(InputError, match=r"no way to treat gaps named 'alow'\. Did you mean 'allow'"):
        read(rows, gaps="alow")
    assert len(read(rows, gaps="cut")) == 2


@pytest.mark.parametrize(
    "times",
    [
        [0, 7, 14, 0, 7],
        [0.1, 0.2, 0.30000000000000004, 0.7, 0.7999999999999999],
        [datetime.date(2024, m, d) for m, d in ((1, 31), (2, 29), (3, 31), (4, 30), (5, 31))],
        [datetime.date(2024, m, 15) for m in (1, 2, 3, 7, 8)],
        ["2024-01", "2024-02", "2024-03", "2023-12", "2024-01"],
        ["2024-02-28", "2024-02-29", "2024-03-01", "2023-12-31", "2024-01-01"],
        [datetime.datetime(2024, 1, 1, h) for h in (0, 4, 8, 12, 16)],
        [np.timedelta64(h, "h") for h in (0, 4, 8, 12, 16)],
        ["1", "2", "3", "9", "10"],
    ],
)
def test_times_may_be_numbers_dates_or_months(times):
    rows = table(LONG) | {"time": np.array(times) if isinstance(times[0], np.timedelta64) else times}
    assert links(read(rows)) == ["AxB", "ByC", "BxA"]


def test_times_that_are_no_times_are_refused():
    rows = table(LONG) | {"time": ["Monday", "Tuesday", "Wednesday", "Monday", "Tuesday"]}
    with pytest.raises(InputError, match=r"Row 1 .*'time' is 'Monday', which is not a time.*\(--time none\)"):
        read(rows)
    assert len(read(rows, time=False)) == 3


@pytest.mark.parametrize(
    "times", [[0, 1, 2, 0.5, np.inf], [-np.inf, 1, 2, 0, 1], ["0", "1", "inf", "0", "1"], [0, 1, 2, 1e300, 2e300]]
)
@pytest.mark.filterwarnings("error")
def test_times_beyond_all_others_are_refused(times):
    with pytest.raises(InputError, match=r"Row \d .*'time' is .*, which is not a time"):
        read(table(LONG) | {"time": times})


@pytest.mark.parametrize("role", ["episode", "time"])
def test_a_row_that_belongs_nowhere_is_refused(role):
    rows = table(LONG)
    rows[role][3] = None
    with pytest.raises(InputError, match=rf"Row 4 .*'{role}' is missing, so the row belongs nowhere"):
        read(rows)


def test_when_every_row_is_an_episode_of_its_own_the_column_is_doubted():
    rows = table(LONG) | {"episode": [1, 2, 3, 4, 5]}
    with pytest.raises(InputError, match=r"No transition is left of 5 rows.*is 'episode' the episode"):
        read(rows)
    with pytest.raises(InputError, match="No transition is left of 1 row "):
        read(table("episode time state action reward\n1 0 A x 1"))


# ---- explicit ----

WIDE = """
    state action reward next_state
    A x 1 B
    B y 2 C
    C x 3 A
"""


def test_explicit_rows_hold_their_next_state():
    batch = read(table(WIDE))
    assert links(batch) == ["AxB", "ByC", "CxA"]
    assert batch.episode is None
    assert batch.dropped == {}
    one = read(table("state action reward next_state\nA x 1 B"))
    assert links(one) == ["AxB"]


def test_the_next_state_of_an_ended_row_does_not_count():
    rows = table(WIDE.replace("C x 3 A", "C x 3 -")) | {"done": [0, 1, 1]}
    batch = read(rows)
    assert links(batch) == ["AxB", "ByEND", "CxEND"]
    numbers = table("state action reward next_state done\n1 0 0 2 0\n2 0 0 dead 1")
    assert links(read(numbers)) == ["102", "20END"]


def test_a_blank_next_state_without_an_end_is_refused():
    rows = table(WIDE.replace("B y 2 C", "B y 2 -"))
    with pytest.raises(InputError, match=r"Row 2 .*'next_state' is missing.*done=.*\(--done"):
        read(rows)
    with pytest.raises(InputError, match=r"Row 2 .*'next_state' is missing.*blank only where 'done' says"):
        read(rows | {"done": [1, 0, 0]})


def test_a_truncated_row_is_a_real_transition_if_it_has_a_next_state():
    batch = read(table(WIDE) | {"truncated": [0, 1, 0]})
    assert links(batch) == ["AxB", "ByC", "CxA"]
    cut = read(table(WIDE.replace("B y 2 C", "B y 2 -")) | {"truncated": [0, 1, 0]})
    assert links(cut) == ["AxB", "CxA"]
    assert cut.dropped == {"last row of an episode without a next state": 1}


def test_explicit_rows_with_episodes_stand_together_in_order():
    rows = table(WIDE) | {"patient": [2, 1, 2], "day": [5, 0, 3]}
    batch = read(rows)
    assert links(batch) == ["CxA", "AxB", "ByC"]
    assert batch.episode.tolist() == [0, 0, 1]
    assert batch.time.tolist() == [0, 1, 0]


def test_an_explicit_row_without_an_action_is_dropped_and_counted():
    batch = read(table(WIDE.replace("B y 2 C", "B - 2 C")))
    assert links(batch) == ["AxB", "CxA"]
    assert batch.dropped == {"row without an action": 1}


# ---- rewards and actions ----


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            "good",
            r"Row 2 \(counting from 1, header not counted\): the reward 'reward' is 'good', but must be a finite",
        ),
        (None, "Row 2 .* is missing"),
        (NAN, "Row 2 .* is missing"),
        (float("inf"), "Row 2 .* is inf"),
        (datetime.date(2024, 1, 1), "Row 2 .* is '?2024-01-01'?"),
    ],
)
def test_a_reward_that_is_no_number_is_refused_with_its_row(value, words):
    with pytest.raises(InputError, match=words):
        read(table(WIDE) | {"reward": [1.0, value, 3.0]})


def test_a_reward_on_a_row_that_is_dropped_may_be_anything():
    rows = table(LONG) | {"reward": [1.0, 2.0, NAN, 4.0, float("inf")]}
    assert read(rows).reward.tolist() == [1, 2, 4]


def test_rewards_may_be_left_for_later_but_only_if_that_is_said():
    rows = table(WIDE)
    del rows["reward"]
    assert read(rows, reward=False).reward is None
    with pytest.raises(InputError, match="reward=False"):
        read(rows)
    assert read(table(WIDE) | {"reward": [True, False, True]}).reward.tolist() == [1, 0, 1]


def test_amounts_are_no_actions_unless_they_are_binned():
    dose = np.linspace(0.5, 30.1, 60)
    rows = {"state": ["A", "B"] * 30, "dose": dose, "reward": np.zeros(60), "next_state": ["B", "A"] * 30}
    with pytest.raises(
        InputError, match=r"'dose' has 60 different values.*bins=\{'dose': 'quantile:4'\} \(--bins dose=quantile:4\)"
    ):
        read(rows)
    batch = read(rows, bins={"dose": "edges:10,20"})
    assert batch.action_names == ("below 10", "10 to 20", "20 or more")
    assert batch.action_recipe.encode({"dose": [5.0, 99.0]}).tolist() == [0, 2]
    assert read(rows | {"dose": np.repeat([0.5, 1.0], 30)}).action_names == ("0.5", "1")
    assert read(rows | {"dose": np.arange(60)}).n_actions == 60


def test_several_action_columns_make_one_action():
    rows = table(WIDE) | {"iv": [0, 1, 1], "vaso": ["no", "no", "yes"]}
    batch = read(rows, action=["iv", "vaso"])
    assert batch.action_names == ("iv=0, vaso=no", "iv=1, vaso=no", "iv=1, vaso=yes")


# ---- states ----


def test_a_missing_state_is_refused_with_its_row_but_only_where_it_is_used():
    rows = table(LONG)
    rows["state"][1] = None
    with pytest.raises(InputError, match=r"Row 2 \(counting from 1.*'state' is missing"):
        read(rows)
    rows = table(LONG.replace("2 1 A y 5", "2 1 - - -")) | {"done": [0, 0, 0, 1, 0]}
    assert links(read(rows)) == ["AxB", "ByC", "BxEND"]


def test_row_numbers_are_those_of_the_file_whatever_was_sorted_or_blank():
    rows = {name: [None, *values[::-1]] for name, values in table(LONG).items()}
    rows["state"][4] = None
    with pytest.raises(InputError, match=r"Row 5 .*'state' is missing"):
        read(rows)
    rows["state"][4], rows["reward"][4] = "B", "bad"
    with pytest.raises(InputError, match=r"Row 5 .*'reward' is 'bad'"):
        read(rows)


def test_binning_is_by_number_or_by_column_and_unknown_columns_are_refused():
    rng = np.random.default_rng(0)
    rows = {
        "id": np.repeat([1, 2], 50),
        "t": np.tile(np.arange(50), 2),
        "bp": rng.normal(size=100),
        "a": np.arange(100) % 2,
    }
    rows |= {"r": rng.normal(size=100)}
    assert read(rows).n_states == 4
    assert read(rows, bins=6).n_states == 6
    assert read(rows, bins={"bp": "edges:0"}).state_names == ("below 0", "0 or more")
    with pytest.raises(InputError, match=r"no state or action column 'pb' to bin.*mean 'bp'"):
        read(rows, bins={"pb": "edges:0"})
    with pytest.raises(InputError, match="more than 3 states"):
        read(rows, max_states=3)


def test_mixed_types_are_refused_unless_they_are_called_labels():
    rows = table(WIDE) | {"state": ["1", "2", "x"], "next_state": ["2", "1", "2"]}
    with pytest.raises(InputError, match=r"Row 3 .*'state' is 'x', but most of this column are numbers"):
        read(rows)
    assert read(rows, bins={"state": "labels"}).state_names == ("1", "2", "x")
    rows = table(WIDE) | {"action": ["1", "2", "O"]}
    with pytest.raises(InputError, match=r"Row 3 .*'action' is 'O'"):
        read(rows)
    assert read(rows, bins={"action": "labels"}).n_actions == 3


def test_lists_of_one_length_are_several_columns():
    rows = {"obs": np.arange(8.0).reshape(4, 2), "a": [0, 1, 0, 1], "r": [0, 0, 0, 0], "t": [0, 1, 2, 3]}
    batch = read(rows)
    assert batch.recipe.column_names == ("obs_0", "obs_1")
    assert batch.state.tolist() == [0, 1, 2]
