"""Pictures that the page draws: what lies on a scale, and what boxes add up to."""

import base64
import json
import subprocess
import sys
import zlib

import numpy as np
import pytest

import certeq
from certeq.data.reading.choosing import Chosen
from certeq.learning.learned import learn
from certeq.questions.few_rules import few_rules
from certeq.questions.findings import Findings
from certeq.report import sheets
from certeq.report.drawings import _cuts, pictures
from certeq.report.drawn import Scale, interval
from certeq.report.listing import Teller
from certeq.report.overview import elsewhere, matter_table


@pytest.fixture(scope="module")
def many():
    """States on three columns, too many for boxes of their own: a long one among them."""
    random = np.random.default_rng(5)
    n = 6000
    x, y, age = random.integers(5, size=n), random.integers(4, size=n), random.integers(60, size=n)
    action = random.integers(3, size=n)
    rows = {"x": x, "y": y, "age": age, "action": action, "reward": 1.0 * (action == (x > 2)) + 0.01 * age}
    rows |= {f"next_{name}": np.roll(rows[name], -1) for name in ("x", "y", "age")}
    columns = ["x", "y", "age"]
    following = [f"next_{name}" for name in columns]
    learned = learn(
        certeq.read(rows, state=columns, next_state=following, bins=dict.fromkeys(columns, "labels")),
        regularizer="evidence",
    )
    return Findings(learned, {"few_rules": few_rules(learned.policy)})


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.7, 12.2), (1e-6, 3e-6), (5.0, 5.0), (-1e9, 4e9)])
def test_numbers_lie_on_the_scale_in_proportion_and_ticks_are_round(low, high):
    scale = Scale.of([low, high])
    assert 0 <= scale(low) <= scale(high) <= 100
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 7
    for at, words in ticks:
        assert at == pytest.approx(scale(float(words.replace(",", "").replace("−", "-"))), abs=0.5)


def test_a_short_scale_has_two_numbers_at_least():
    for low, high in ((6.5, 14.7), (0.79, 0.88), (-9.0, -1.2)):
        assert 2 <= len(Scale.of([low, high]).ticks(about=3)) <= 5


def test_long_numbers_have_room_beside_each_other():
    scale = Scale.of([275_000.0, 325_000.0])
    assert [words for _, words in scale.ticks(about=3)] == ["280,000", "300,000", "320,000"]
    assert [words for _, words in scale.ticks(about=3, letters=16)] == ["280,000", "320,000"]
    assert scale.ticks(about=3, letters=24) == scale.ticks(about=3)


def test_columns_that_explain_less_than_nothing_have_their_place_too():
    chosen = Chosen({"x": 4, "y": 1}, (), 300, curve={"x": {1: -0.03, 4: 0.02}, "y": {1: 0.02}})
    (tracks,) = _cuts(chosen).parts
    assert [line.text for line in tracks.lines] == ["4 cells, +5.0%", "not used"]
    assert "−2%" in [words for _, words in tracks.ticks]


def test_an_interval_that_nobody_knows_is_a_dot():
    scale = Scale(0, 10)
    assert [mark.kind for mark in interval(scale, 1, 5, 9, "c0")] == ["span", "dot"]
    assert [(mark.kind, mark.at) for mark in interval(scale, np.nan, 5, np.nan, "c0")] == [("dot", 50)]


def texts(grid):
    return [[None if box is None else box.text for box in line] for line in grid.boxes]


def test_a_few_states_are_a_table_with_every_count_that_may_be_told(found):
    visits = found.learned.policy.visits.tolist()
    for limit in (0, 9):
        ((grid,), _) = sheets.count_map(found, Teller(found, limit))
        told = [[f"<{limit}" if 0 < c < limit else f"{c:,}" if c else "" for c in line] for line in visits]
        assert texts(grid) == told


def test_many_states_are_added_up_along_the_columns_that_matter_to_the_advice(many):
    teller, policy = Teller(many, 0), many.learned.policy
    grids, caption = sheets.count_map(many, teller)
    assert "adds up" in caption
    assert [grid.title for grid in grids] == ["0", "1", "2"]
    cells = policy.recipe.cells
    for a, grid in enumerate(grids):
        assert (grid.down.titles, grid.across.titles) == (("x",), ("y",))
        for i, line in enumerate(grid.boxes):
            for j, box in enumerate(line):
                total = sum(policy.visits[s, a] for s in range(len(cells)) if tuple(cells[s, :2]) == (i, j))
                assert box.text == f"{total:,}"
    weight = np.broadcast_to(many.learned.shrinkage.weight, policy.visits.shape)
    grids, _ = sheets.weight_map(many, teller)
    here = (cells[:, 0] == 1) & (cells[:, 1] == 2)
    mean = (weight * policy.visits)[here, 1].sum() / policy.visits[here, 1].sum()
    assert float(grids[1].boxes[1][2].text) == pytest.approx(mean, abs=0.006)


def test_a_box_of_many_states_has_the_color_of_what_is_advised_for_most_visits(many):
    policy, cells = many.learned.policy, many.learned.policy.recipe.cells
    ((grid,), _) = sheets.policy_map(many, Teller(many, 0))
    often = policy.visits.sum(axis=1)
    for i, line in enumerate(grid.boxes):
        for j, box in enumerate(line):
            here = (cells[:, 0] == i) & (cells[:, 1] == j)
            shares = [often[here & (policy.actions == a)].sum() / often[here].sum() for a in range(3)]
            assert box.look == f"c{int(np.argmax(shares))}"
            assert abs(float(box.text.strip("<>% ")) / 100 - max(shares)) < 0.011


def test_long_columns_with_an_order_are_cut_into_bands_and_states_added_up_in_them():
    random = np.random.default_rng(8)
    n = 9000
    height, weight = random.integers(60, size=n), random.integers(40, size=n)
    rows = {"height": height, "weight": weight, "action": (height + weight) % 2, "reward": 1.0 * (weight > 9)}
    rows |= {f"next_{name}": np.roll(rows[name], -1) for name in ("height", "weight")}
    columns = ["height", "weight"]
    told = {
        "state": columns,
        "next_state": [f"next_{name}" for name in columns],
        "bins": dict.fromkeys(columns, "labels"),
    }
    found = Findings(learn(certeq.read(rows, **told), regularizer="evidence"))
    teller, policy = Teller(found, 0), found.learned.policy
    grids, caption = sheets.count_map(found, teller)
    assert "adds up" in caption
    recipe = policy.recipe
    names = [[int(word) for word in axis.words(alone=True)] for axis in recipe.axes]
    for a, grid in enumerate(grids):
        assert grid.down.inner[:2] == ("up to 7", "8 to 15")
        assert (len(grid.down.inner), grid.across.inner[-1]) == (sheets.BANDS, "35 or more")
        for i, line in enumerate(grid.boxes):
            for j, box in enumerate(line):
                total = 0
                for (h, w), visits in zip(recipe.cells, policy.visits, strict=True):
                    inside = [_within(names[0][h], grid.down.inner[i]), _within(names[1][w], grid.across.inner[j])]
                    total += visits[a] if all(inside) else 0
                assert box.text == (f"{total:,}" if total else "")
    shuffled = Findings(learn(certeq.read(rows, **told, unordered=columns), regularizer="evidence"))
    assert sheets.count_map(shuffled, Teller(shuffled, 0)) == ([], sheets.NO_MAP)  # neighbors only where there are any


def _within(number, words):
    if words.startswith("up to "):
        return number <= int(words.removeprefix("up to "))
    if words.endswith(" or more"):
        return number >= int(words.removesuffix(" or more"))
    low, _, high = words.partition(" to ")
    return int(low) <= number <= int(high)


def test_states_without_a_short_column_have_no_map_but_a_table():
    state = np.arange(4000) % 1500
    batch = certeq.Batch(state, state % 2, np.roll(state, -1), 1500, 2, reward=1.0 * (state > 3))
    found = Findings(learn(batch, discount=0.9))
    drawn = {picture.name: picture for picture in pictures(found, Teller(found, 0))}
    assert drawn["count-map"].parts == drawn["policy-map"].parts == []
    assert drawn["count-map"].caption == sheets.NO_MAP
    assert drawn["count-map"].table.lines


def test_states_to_look_at_first_are_those_visited_most_and_with_most_to_gain(many):
    teller, policy = Teller(many, 0), many.learned.policy
    lines = matter_table(teller).lines
    kinds = [line.cells[0].text for line in lines]
    assert kinds == ["visited most"] * 5 + ["most to gain"] * 5  # nobody asked how sure, so none is open
    often = policy.visits.sum(axis=1)
    gain = often * np.nan_to_num(policy.runner_up()[1])
    assert lines[0].cells[1].text == policy.state_names[int(often.argmax())]
    assert lines[5].cells[1].text == policy.state_names[int(gain.argmax())]


def test_the_page_can_be_searched_for_every_state_where_its_table_has_only_some(many, monkeypatch):
    assert elsewhere(Teller(many, 0)) is None
    monkeypatch.setattr("certeq.report.listing.LONG", 100)
    policy = many.learned.policy
    for limit in (0, 5):
        head, _, numbers = zlib.decompress(base64.b64decode(elsewhere(Teller(many, limit)))).partition(b"\n")
        given, at, columns = json.loads(head), 0, []
        for size in given["bytes"]:
            columns.append(np.frombuffer(numbers, f"<u{size}", len(policy.visits), at))
            at += size * len(policy.visits)
        assert at == len(numbers)
        *cells, advice, tried = columns
        for s in range(len(policy.visits)):
            name = [words[codes[s]] for words, codes in zip(given["words"], cells, strict=True)]
            assert name == list(policy.recipe.parts(np.array([s]))[0])
            assert given["told"][advice[s]] == (next(policy.pieces([s])).told or "no advice")
            often = int(policy.support[s])
            assert tried[s] == (0 if policy.actions[s] < 0 else 1 if 0 < often < limit else often + 2)


@pytest.mark.slow
def test_a_report_is_drawn_without_matplotlib(tmp_path):
    rows = ["state,action,reward,next_state", *(f"{i % 3},{i % 2},{i % 5},{(i + 1) % 3}" for i in range(60))]
    (tmp_path / "rows.csv").write_text("\n".join(rows))
    code = (
        "import sys; from certeq.cli import app\n"
        "try: app(['learn', 'rows.csv', '--draws', '20', '--out', 'out'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('matplotlib', 'PIL') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]"), done.stdout + done.stderr
    assert (tmp_path / "out" / "report.html").exists()
