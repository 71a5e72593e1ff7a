"""How columns become cells: a default and exceptions, numbers that name states, and what was said about it."""

import numpy as np
import pytest

import certeq
from certeq.base.errors import InputError
from certeq.cli.options import bins
from certeq.data.guided import guided, strongest
from certeq.data.reading import read
from certeq.data.reading.choosing import EVENLY, FEWEST, FOLDS, HELD, ROWS_PER_PAIR, THREE, Chosen, Step, _Judge
from certeq.questions.examine import examine
from certeq.report.learned_page import render
from certeq.worlds.numeric import SIMULATORS, luck

N = 40
ROWS = {
    "episode": np.repeat(np.arange(4), 10),
    "time": np.tile(np.arange(10), 4),
    "age": np.linspace(18, 80, N).round(1),
    "sbp": np.linspace(90.5, 180, N),
    "action": np.tile([0, 1], 20),
    "reward": np.arange(N) % 3,
}


def test_a_number_is_for_all_columns_but_those_that_are_named():
    batch = read(ROWS, bins={"*": 3, "age": "edges:40,65"}, ends="always")
    age, sbp = batch.recipe.axes
    assert age.edges == (40.0, 65.0)
    assert sbp.size == 3
    assert read(ROWS, bins={"*": 3}, ends="always").recipe == read(ROWS, bins=3, ends="always").recipe


def test_the_command_line_says_both():
    assert bins(["3", "age=edges:18,40,65"]) == bins(["age=edges:18,40,65", "3"]) == {"*": 3, "age": "edges:18,40,65"}
    assert (bins(["3"]), bins(["age=labels"]), bins([])) == (3, {"age": "labels"}, None)
    with pytest.raises(InputError, match="one number, for all columns; got 3 and 4"):
        bins(["3", "4"])


def test_many_numbers_that_name_states_are_kept_and_that_is_said():
    state = np.arange(200) % 100
    rows = {"state": state, "next_state": np.roll(state, 1), "action": np.arange(200) // 100, "reward": state}
    batch = read(rows)
    assert batch.n_states == 100
    assert any("each of the 100 whole numbers in 'state'" in note and "quantile:4" in note for note in batch.notes)
    assert read(rows, bins=4).n_states == 4


# ---- cells that the rows can carry ----


def walk(n=3000, seed=0, columns=0, step=20):
    """Episodes of 20 rows: what x is decides which action pays, y is noise, and so are further columns."""
    random = np.random.default_rng(seed)
    x, y = random.random(n), random.random(n)
    action = random.integers(0, 2, n)
    rows = {
        "episode": np.arange(n) // step,
        "time": np.arange(n) % step,
        "x": x,
        "y": y,
        "action": action,
        "reward": np.where((x > 0.5) == (action == 1), 1.0, 0.0) + random.normal(size=n) / 2,
    }
    return rows | {f"noise{i}": random.random(n) for i in range(columns)}


def test_what_predicts_is_cut_and_what_does_not_is_not_used_and_both_are_said():
    batch = read(walk(), ends="never")
    (axis,) = batch.recipe.axes
    assert axis.column == "x"
    assert min(abs(edge - 0.5) for edge in axis.edges) < 0.05
    told = " ".join(batch.notes)
    assert "predict rewards and next values better out of sample" in told
    assert f"allow: x {axis.size}." in told
    assert "Not used, since rewards and next values are not clearly better predicted with them: y." in told


def test_one_long_episode_is_judged_by_its_sections():
    rows = walk()
    del rows["episode"]
    batch = read(rows | {"time": np.arange(3000)}, ends="never")
    assert len(np.unique(batch.episode)) == 1
    assert batch.recipe.column_names == ("x",)
    (axis,) = batch.recipe.axes
    assert min(abs(edge - 0.5) for edge in axis.edges) < 0.05


def test_the_curve_tells_what_fewer_or_more_cells_would_explain_and_what_was_left_out():
    chosen = read(walk(), ends="never").chosen
    assert set(chosen.curve) == set(chosen.cells) == {"x", "y"}
    assert (chosen.cells["y"], chosen.unused) == (1, ("y",))
    assert chosen.curve["x"][2] == pytest.approx(chosen.steps[0].explained)
    assert chosen.curve["y"][1] == pytest.approx(chosen.curve["x"][chosen.cells["x"]])
    assert chosen.curve["x"][1] < 0.02 < chosen.curve["x"][2]
    assert max(chosen.curve["y"].values()) < chosen.curve["y"][1] + chosen.steps[-1].error
    assert read(walk(), ends="never", bins=3).chosen is None
    page = render(examine(certeq.learn(read(walk(n=400), ends="never"), draws=0), draws=0))
    assert 'id="cuts"' in page
    assert "not used" in page[page.index('id="cuts-table"') :]


def test_many_columns_that_say_nothing_do_no_harm():
    batch = read(walk(columns=12), ends="never")
    assert batch.recipe.column_names == ("x",)
    assert len(batch) / (batch.n_states * batch.n_actions) >= ROWS_PER_PAIR


def test_there_are_enough_rows_for_each_pair():
    random = np.random.default_rng(1)
    rows = walk(400) | {"reward": 0.0}
    rows["reward"] = rows["x"] + rows["y"] + random.normal(size=400) / 100
    batch = read(rows, ends="never")
    assert batch.n_states > 4
    pairs = len(np.unique(batch.state * 2 + batch.action))
    assert len(batch) >= ROWS_PER_PAIR * pairs


def summed(n, columns=4, seed=1):
    """Rows in which all of some columns pay alike."""
    random = np.random.default_rng(seed)
    numbers = random.random((columns, n))
    rows = walk(n) | {"reward": numbers.sum(axis=0) + random.normal(size=n) / 100}
    del rows["x"], rows["y"]
    return rows | {f"x{i}": each for i, each in enumerate(numbers)}


def test_columns_that_join_are_cut_alike():
    assert set(read(summed(1800), ends="never").chosen.cells.values()) == {3}
    assert set(read(summed(6000, seed=2), ends="never").chosen.cells.values()) == {4}


def test_three_cells_are_worth_fewer_rows():
    batch = read(summed(400), ends="never")
    assert max(batch.chosen.cells.values()) == THREE
    pairs = len(np.unique(batch.state * 2 + batch.action))
    assert FEWEST * pairs <= len(batch) < ROWS_PER_PAIR * pairs


def doses(seed, episodes=30, steps=20):
    """What a drug does to severity depends on tolerance; given by chance."""
    world, random = SIMULATORS["dose"], np.random.default_rng(seed)
    point, rows = random.random((episodes, 2)), []
    for time in range(steps):
        action = random.integers(0, 3, episodes)
        after, reward = world.step(point, action, luck(episodes, random))
        rows.append(np.column_stack([np.arange(episodes), np.full(episodes, time), point, action, reward]))
        point = after
    names = ("episode", "time", *world.columns, "action", "reward")
    return dict(zip(names, np.concatenate(rows).T, strict=True)) | {"noise": random.random(episodes * steps)}


@pytest.mark.parametrize("seed", range(8))
def test_a_column_joins_that_tells_how_far_another_one_moves(seed):
    batch = read(doses(seed), ends="never", state=["severity", "tolerance", "noise"])
    assert batch.recipe.column_names == ("severity", "tolerance")


def test_what_was_said_stays_as_it_was_said():
    rows = walk()
    assert [axis.size for axis in read(rows, ends="never", bins=4).recipe.axes] == [4, 4]
    x, y = read(rows, ends="never", bins={"y": "edges:0.3"}).recipe.axes
    assert y.edges == (0.3,)
    assert x.size > 1
    few = {name: values[:150] for name, values in rows.items()}
    assert [axis.size for axis in read(few, ends="never").recipe.axes] == [4, 4]  # too few rows to choose


def test_labels_that_say_nothing_are_left_out_only_if_nobody_named_them():
    rows = walk()
    rows["ward"] = np.array(["a", "b", "c"])[np.arange(3000) % 3].tolist()
    assert read(rows, ends="never").recipe.column_names == ("x",)
    named = read(rows, ends="never", state=["x", "ward"])
    assert named.recipe.column_names == ("x", "ward")


def test_what_is_used_with_all_its_values_is_not_said_to_be_cut():
    steps = (Step("mood", 10, 0.379, 0.01), Step("x", 20, 0.412, 0.01))
    told = Chosen({"mood": 10, "x": 2}, steps, 1000, labels=("mood",)).lines()[0]
    assert told.endswith("Explained: mood (all values) 37.9%, with x (cut in two) 41.2%.")
    assert "Explained, each cut in two: x " in " ".join(read(walk(), ends="never").notes)


def test_if_nothing_predicts_all_rows_are_one_state():
    rows = walk() | {"reward": np.random.default_rng(5).normal(size=3000)}
    batch = read(rows, ends="never")
    assert batch.n_states == 1
    assert any("none is used" in note for note in batch.notes)


def test_predictions_come_from_other_episodes_alone():
    random = np.random.default_rng(2)
    episode, action = np.sort(random.integers(0, 12, 60)), random.integers(0, 2, 60)
    episode = np.unique(episode, return_inverse=True)[1]
    state, target = random.integers(0, 3, 60), random.normal(size=60)
    judge = _Judge(action, episode, target[None], np.ones(1))
    (found,) = judge.predict(state * 2 + action)
    for i in range(60):  # the literal twin
        others = episode % FOLDS != episode[i] % FOLDS
        usual = target[others & (action == action[i])].mean()
        here = target[others & (action == action[i]) & (state == state[i])]
        assert found[i] == pytest.approx((here.sum() + HELD * usual) / (len(here) + HELD), abs=1e-6)


def labeled(names, n=1200, seed=3):
    """Rows that stand alone: a label and a number decide what is paid, and the label what comes next."""
    random = np.random.default_rng(seed)
    x, kind, action = random.random((2, n)), random.integers(0, 4, n), random.integers(0, 2, n)
    following = np.where(random.random(n) < 0.6, kind, random.integers(0, 4, n))
    return {
        "x": x[0],
        "kind": np.array(names)[kind],
        "action": action,
        "reward": (x[0] > 0.5) * action + 0.4 * (kind == 2) + random.normal(size=n),
        "next_x": x[1],
        "next_kind": np.array(names)[following],
    }


def chosen(rows):
    words = ("Columns are part", "They are cut", "Not used")
    return [line for line in read(rows).notes if any(each in line for each in words)]


@pytest.mark.parametrize("seed", range(4))
def test_neither_the_names_of_labels_nor_the_order_of_rows_decide_how_finely_to_cut(seed):
    rows = labeled(["a", "b", "c", "d"], seed=seed)
    told = chosen(rows)
    assert told
    assert chosen(labeled(["d", "a", "b", "c"], seed=seed)) == told
    order = np.random.default_rng(seed).permutation(len(rows["x"]))
    assert chosen({name: column[order] for name, column in rows.items()}) == told
    together = walk(seed=seed)
    order = np.random.default_rng(seed).permutation(len(together["x"]))
    assert chosen({name: column[order] for name, column in together.items()}) == chosen(together)


# ---- what people acted on ----


def ward(errs, seed=0, n=2000, step=20):
    """Dosing pays in a narrow band of x; people who err seldom dose there, and nowhere else."""
    random = np.random.default_rng(seed)
    x, y = random.random(n), random.random(n)
    band = (x > 0.44) & (x < 0.5)
    action = np.where(random.random(n) < errs, random.integers(0, 2, n), band)
    when = {"episode": np.arange(n) // step, "time": np.arange(n) % step}
    paid = np.where(band, 2.0 * action, -0.5 * action) + x + random.normal(size=n) / 4
    return when | {"x": x, "y": y, "action": action, "reward": paid}


def test_what_people_acted_on_is_cut_until_the_cells_hold_it_and_that_is_said():
    batch = read(ward(0.1), ends="never")
    assert batch.chosen.people
    assert batch.chosen.cells["x"] > EVENLY
    assert batch.chosen.cells["y"] == 1
    assert any(
        "They are cut until they hold what people acted on, or as finely as 2.5 rows" in note for note in batch.notes
    )
    visits = certeq.tally(batch).visits
    assert len(batch) >= FEWEST * (visits > 0).sum()
    coarse, fine = (strongest(guided(read(ward(0.1), ends="never", bins={"x": n, "y": 1}))) for n in (8, 16))
    assert coarse.column == "x"
    assert fine is None or fine.share < coarse.share


def test_people_who_toss_coins_change_no_cells():
    batch = read(ward(1.0), ends="never")
    assert not batch.chosen.people
    assert max(batch.chosen.cells.values()) <= EVENLY


def test_a_column_that_predicts_nothing_joins_where_people_acted_on_it():
    rows = ward(1.0)
    random = np.random.default_rng(1)
    rows["y"] = np.where(random.random(len(rows["y"])) < 0.2, random.random(len(rows["y"])), rows["action"] * 0.5 + 0.2)
    batch = read(rows, ends="never")
    assert batch.chosen.people
    assert batch.chosen.cells["y"] > 1
    assert "y" not in {step.column for step in batch.chosen.steps}
    assert "Part of the state because people acted on them: y." in batch.notes


def test_neither_names_of_actions_nor_the_order_of_episodes_change_what_is_cut_on():
    rows = ward(0.1)
    other = {name: column[::-1] for name, column in rows.items()}
    other["action"] = np.where(other["action"] == 1, "a", "b")
    assert read(rows, ends="never").chosen.cells == read(other, ends="never").chosen.cells
