"""Pictures: what they draw is what was found, whatever the labels and the number of states."""

import itertools
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hostile_labels import HOSTILE, learn_hostile
from matplotlib.figure import Figure

import certeq
from certeq import pictures, weights
from certeq.data.recipes import Bins, Labels, Recipe
from certeq.learning.learned import learn
from certeq.questions.compare import compare
from certeq.questions.findings import Findings, drift
from certeq.questions.frontier import frontier
from certeq.questions.risk import risk
from certeq.report import maps
from certeq.report.sheet import sheet
from certeq.report.style import to_svg
from certeq.worlds import examples


def words(figure):
    """All text in a picture."""
    return re.findall(r">([^<>]+)</text>", pictures.to_svg(figure).decode())


def in_cells(figure):
    """Numbers written into cells."""
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def on_grid(rows, columns, n=400, seed=0):
    """Decisions on a grid of two columns of numbers."""
    random = np.random.default_rng(seed)
    at = np.stack([random.integers(rows, size=n + 1), random.integers(columns, size=n + 1)])
    table = {
        "row": at[0, :-1].tolist(),
        "column": at[1, :-1].tolist(),
        "next_row": np.minimum(at[0, :-1] + 1, rows - 1).tolist(),
        "next_column": at[1, :-1].tolist(),
        "action": random.integers(2, size=n).tolist(),
        "reward": random.random(n).tolist(),
    }
    batch = certeq.read(table, state=["row", "column"], next_state=["next_row", "next_column"])
    return certeq.learn(batch, draws=0)


@pytest.mark.slow
def test_importing_the_pictures_does_not_load_matplotlib():
    code = "import sys, certeq; certeq.pictures.count_map; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.slow
def test_every_picture_is_a_figure_and_the_same_every_time(found):
    learned = found.learned
    costly = learn(replace(learned.batch, beside={"cost": learned.batch.action.astype(float)}))
    compared = compare(learned, regularizers=["none", "evidence"], folds=2, draws=20)
    draw = {
        "count_map": lambda: pictures.count_map(learned),
        "weight_map": lambda: pictures.weight_map(learned),
        "implied_prior_map": lambda: pictures.implied_prior_map(learned, 0.9),
        "policy_map": lambda: pictures.policy_map(learned),
        "value_densities": lambda: pictures.value_densities(found.posterior),
        "chances": lambda: pictures.chances(found.posterior),
        "estimates": lambda: pictures.estimates(found.off_policy, found.posterior.interval("the advice")),
        "departures": lambda: pictures.departures(found.path),
        "reasons": lambda: pictures.reasons(found),
        "comparison": lambda: pictures.comparison(compared),
        "origin": lambda: pictures.origin(found.origin),
        "frontier": lambda: pictures.frontier(frontier(costly)),
        "trade_off": lambda: pictures.trade_off(risk(learned, found.posterior, 0.2, draws=40)),
        "cuts": lambda: pictures.cuts(certeq.read(examples.path()).chosen),
    }
    assert set(draw) | {"to_png", "to_svg"} == set(pictures.__all__)
    for make in draw.values():
        picture = make()
        assert isinstance(picture, Figure)
        assert to_svg(picture) == to_svg(make())
        assert pictures.to_png(picture).startswith(b"\x89PNG")


def test_a_small_count_map_is_a_table_of_states_and_actions(found):
    learned = found.learned
    figure = pictures.count_map(learned)
    assert sorted(map(int, in_cells(figure))) == sorted(c for c in learned.policy.visits.ravel() if c)
    assert set(learned.policy.action_names) <= set(words(figure))


@pytest.mark.slow
def test_a_large_count_map_has_a_sheet_for_each_action(trial):
    figure = pictures.count_map(trial)
    assert [axis.get_title() for axis in figure.axes[:2]] == ["TMZ", "none"]
    for a, axis in enumerate(figure.axes[:2]):
        drawn = {(int(t.get_position()[1]), int(t.get_position()[0])): int(t.get_text()) for t in axis.texts}
        paper, visits = sheet(trial.policy.recipe), trial.policy.visits[:, a]
        assert drawn == {(int(paper.row[s]), int(paper.column[s])): int(visits[s]) for s in np.flatnonzero(visits)}


def test_the_implied_prior_map_tells_equation_3(found):
    learned = found.learned
    figure = pictures.implied_prior_map(learned, 0.8)
    expected = learned.policy.visits * (0.99 - 0.8) / 0.8
    np.testing.assert_allclose(
        sorted(map(float, in_cells(figure))), np.sort(expected[expected > 0]), rtol=0.01, atol=0.005
    )
    assert (weights.implied_magnitude(learned.policy.visits, 0.99, 0.0)[learned.policy.visits > 0] == np.inf).all()
    assert isinstance(pictures.implied_prior_map(learned, 0.0), Figure)


def test_the_policy_map_signs_each_state_with_its_action(trial):
    (axis,) = pictures.policy_map(trial).axes
    paper, actions, undecided = sheet(trial.policy.recipe), trial.policy.actions, trial.policy.open
    assert undecided.any()
    signs = {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in axis.texts}
    assert signs == {
        (int(paper.row[s]), int(paper.column[s])): "T/N" if undecided[s] else "TN"[actions[s]]
        for s in range(len(actions))
        if actions[s] >= 0
    }


@pytest.mark.parametrize("shape", [(4, 6), (1, 9)])
def test_on_a_line_or_a_grid_arrows_lead_where_the_advised_action_does(shape):
    learned = on_grid(*shape)
    ahead = drift(learned)
    model, cells = learned.model.transition.dense(), learned.policy.recipe.cells
    for s, a in enumerate(learned.policy.actions):
        row = model[s, a]
        np.testing.assert_allclose(ahead[s], (row @ cells) / row.sum() - cells[s], atol=1e-12)
    (axis,) = pictures.policy_map(learned).axes
    (arrows,) = (c for c in axis.collections if hasattr(c, "U"))
    moving = np.hypot(*ahead.T) > 0.05
    length = np.maximum(np.hypot(*ahead.T), 0.8)
    np.testing.assert_allclose(arrows.U, (0.8 * ahead[:, 1] / length)[moving])
    np.testing.assert_allclose(arrows.V, (0.8 * ahead[:, 0] / length)[moving])


def test_states_of_words_have_no_arrows(found):
    assert not sheet(Recipe((Labels("ward", "text", ("a", "b")),), np.array([[0], [1]]))).ordered
    (axis,) = pictures.policy_map(found.learned).axes[:1]
    assert sheet(found.learned.policy.recipe).ordered == any(hasattr(c, "U") for c in axis.collections)


def test_a_nested_sheet_has_a_place_for_every_combination():
    axes = tuple(Bins(name, (0.0, 1.0)) for name in "abcd")
    cells = np.array(np.meshgrid(*[range(3)] * 4, indexing="ij")).reshape(4, -1).T
    paper = sheet(Recipe(axes, cells))
    assert (paper.rows, paper.columns, paper.ordered) == (9, 9, False)
    places = set(zip(paper.row.tolist(), paper.column.tolist(), strict=True))
    assert len(places) == 81
    for s, (a, b, c, d) in enumerate(cells):
        assert (paper.row[s], paper.column[s]) == (3 * a + b, 3 * c + d)
    assert paper.down.outer == ("below 0", "0 to 1", "1 or more")


@pytest.mark.parametrize("states", [1, 7, 211, 5000])
def test_states_without_order_lie_row_by_row(states):
    recipe = Recipe((Labels("s", "text", tuple(f"{i:05}" for i in range(states))),), np.arange(states)[:, None])
    paper = sheet(recipe)
    places = paper.row * paper.columns + paper.column
    assert len(set(places.tolist())) == states
    assert paper.row.max() < paper.rows
    assert paper.column.max() < paper.columns
    assert len(paper.down.inner) in (0, paper.rows)  # few states are one row, which needs no number
    assert sum(map(bool, paper.down.inner)) <= 40  # numbers that do not overlap


@pytest.mark.slow
def test_many_states_and_many_actions_are_drawn_too():
    random = np.random.default_rng(1)
    state, action = random.integers(400, size=3000), random.integers(30, size=3000)
    learned = certeq.learn(certeq.Batch(state, action, np.roll(state, 1), 400, 30, reward=random.random(3000)))
    for draw in (pictures.count_map, pictures.weight_map, pictures.policy_map):
        assert len(to_svg(draw(learned))) < 200_000
    assert len(pictures.to_png(pictures.reasons(Findings(learned)))) > 1000


DRAWN = (pictures.count_map, pictures.policy_map, lambda learned: pictures.reasons(Findings(learned)))


def check_harmless(figure):
    svg = to_svg(figure).decode()
    assert "<script" not in svg
    assert "onerror" not in re.sub(r"<text.*?</text>", "", svg)
    assert "\u202e" not in svg
    assert max(map(len, re.findall(r">([^<>]+)</text>", svg))) < 100
    assert pictures.to_png(figure).startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWN)
def test_hostile_labels_of_states_are_drawn_short_and_without_harm(hostile, draw):
    check_harmless(draw(hostile))


@pytest.mark.slow
@pytest.mark.parametrize(("label", "draw"), list(zip(HOSTILE.values(), itertools.cycle(DRAWN))), ids=HOSTILE)
def test_hostile_labels_of_everything_are_drawn_short_and_without_harm(label, draw):
    check_harmless(draw(learn_hostile([label, "tame", f"{label[:9_000]}, twice"], label)))


def test_letters_stand_for_actions_only_where_they_tell_them_apart():
    assert maps.action_signs(("stay", "go")) == ["S", "G"]
    assert maps.action_signs(("stay", "stop")) == ["1", "2"]
    assert maps.action_signs((" ", "x")) == ["1", "2"]
