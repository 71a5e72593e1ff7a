"""The page as a file: what it tells, what it keeps to itself, how large it is."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from hostile_labels import HOSTILE

import certeq
from certeq.base.display import between, harmless, number
from certeq.questions.alerts import alerts
from certeq.questions.examine import examine
from certeq.questions.findings import Findings
from certeq.report import checked_page, embed, html
from certeq.report import listing as tables
from certeq.report.learned_page import render
from certeq.report.tell import advice, in_short, next_steps
from certeq.worlds.examples import path


@pytest.mark.parametrize("damage", [b"", b"nothing that was compiled", None])
def test_pages_are_the_same_from_templates_that_were_kept_damaged_or_not_kept(tmp_path, monkeypatch, damage):
    found = certeq.check(path())

    def page(place):
        monkeypatch.setattr(html, "private", lambda kind: place)
        return checked_page.render(found)

    assert page(None) == page(tmp_path)
    files = list(tmp_path.iterdir())
    assert files
    for file in files if damage is not None else ():
        file.write_bytes(damage)
    assert page(tmp_path) == page(None)


class Page(HTMLParser):
    """Tags with their attributes, and the text of each element by its id."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts, self.inside = [], {}, []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "img", "input", "rect", "wbr", "line", "circle", "path", "polyline"):
            self.inside.append(dict(attributes).get("id"))

    def handle_endtag(self, tag):
        if tag not in ("meta", "img", "input", "rect", "wbr", "line", "circle", "path", "polyline"):
            self.inside.pop()

    def handle_data(self, data):
        for name in self.inside:
            self.texts[name] = self.texts.get(name, "") + data


@pytest.fixture(scope="module")
def page(found):
    return render(found)


def test_all_sections_are_there_in_order(page):
    ids = [attributes["id"] for tag, attributes in Page(page).tags if tag == "section"]
    folded = ["alerts", "policy", "sure", "why", "data", "regularization", "collect", "limits", "methods"]
    assert ids == ["summary", *folded]
    assert page.count('<details class="fold">') == len(folded) == page.count('<span class="finding">')


def test_one_page_comes_first_and_tells_what_is_advised_on_what_what_it_is_worth_and_what_limits_it(found, page):
    first = page[page.index("<h1>") : page.index('<section id="alerts"')]
    gain = found.posterior.difference("the advice", "what was recorded")
    for words in (
        "Advice in all 5 states",
        f"{found.learned.summary.rows} logged decisions in 60 episodes",
        "Larger rewards are better",
        f"following the advice over {found.posterior.watched} decisions is worth {number(gain.mean)} more",
        f"(90% interval of the difference: {between(gain.low, gain.high)})",
        "Whatever the unseen rows",
        found.few_rules.lines()[0],
    ):
        assert words in unescape(first), words
    told = re.findall(r"<li>(.*?)</li>", first[first.index('<ul class="alerts">') :])
    assert [unescape(line) for line in told[:3]] == [
        f"{alert.partition('. ')[0].rstrip('.')}." for alert in alerts(found)[:3]
    ]
    best = found.collect.action_names[found.collect.action[0]], found.collect.state_names[found.collect.state[0]]
    assert "<li>“{}” in state {}</li>".format(*best) in first


def test_rules_are_a_table_with_their_agreement_in_visits():
    cells = np.arange(6)
    state = np.repeat(cells, 40)
    action = np.tile([0, 1], 120)
    reward = np.where((state < 2) == (action == 0), 1.0, 0.0)
    rows = {"x": state, "action": action, "reward": reward, "next_x": np.roll(state, 7)}
    page = render(examine(certeq.learn(certeq.read(rows, state="x", next_state="next_x"), draws=0), draws=0))
    table = page[page.index('<table class="rules') : page.index("</table>")]
    assert "Rules that agree with the advice in 100% of visits" in table
    line = r"<td data-label=\"x\"><bdi>(.*?)</bdi>.*?<b><bdi>(.*?)</bdi></b>.*?<span>(.*?)</span></td>"
    told = re.findall(line, table, re.DOTALL)
    assert told == [("up to 1", "0", "33%, agrees in 100%"), ("2 or more", "1", "67%, agrees in 100%")]


def test_that_the_next_reward_alone_would_advise_the_same_is_told_first_where_it_is_so():
    random = np.random.default_rng(2)
    state, action = random.integers(3, size=300), random.integers(2, size=300)
    found = examine(certeq.learn(certeq.Batch(state, action, np.roll(state, -1), 3, 2, reward=1.0 * action)), draws=20)
    page = render(found)
    first = page[page.index("<h1>") : page.index('<section id="alerts"')]
    assert "Looking at immediate reward alone would give the same advice in 3 of 3 states" in first
    assert "One rule, “1” everywhere, agrees with the advice in 100% of visits." in first


def test_a_state_without_a_choice_is_not_called_clear():
    """Three states; only in the first was a second action tried, and there it is an even bet."""
    state, action = [0] * 8 + [1, 1, 2, 2], [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0]
    reward = [1.0, 0.0, 1.0, 0.0] * 2 + [1.0] * 4
    found = examine(certeq.learn(certeq.Batch(state, action, [1] * 12, 3, 2, reward=reward)), draws=200)
    assert found.posterior.undecided().tolist() == [0]
    page = render(found)
    assert "in 1 of 1 state with a choice no action is the best one in 80% of the models" in page
    assert "One action is clearly best in 0 of 1 state with a choice." in page
    table = page[page.index('id="policy-table"') :]
    assert table[: table.index("</table>")].count('class="bar"') == 1


def test_where_the_advice_only_repeats_what_was_usual_the_first_page_says_so():
    random = np.random.default_rng(0)
    stock = random.integers(4, size=800)
    action = (random.random(800) < np.where(stock == 3, 0.5, 0.04)).astype(int)
    rows = {"stock": stock, "action": action, "reward": random.normal(size=800), "next_stock": np.roll(stock, -1)}
    found = examine(certeq.learn(certeq.read(rows, state="stock", next_state="next_stock")), draws=50)
    assert (int(found.choice.sum()), found.usual) == (1, 3)
    assert "In 3 states that only repeats what was usual: all else was tried too seldom to be advised." in advice(found)
    assert dict(in_short(found, 0, 0))["policy"].endswith("with a choice; in 3 more, only the usual one may be advised")
    assert next(next_steps(found)).partition("” where stock is ")[2] in {"0", "1", "2", "3"}


def test_the_table_tells_what_was_learned(found, page):
    table = page[page.index('id="policy-table"') :]
    rows = re.findall(r"<tr.*?</tr>", table[: table.index("</table>")], re.DOTALL)[1:]
    policy = found.learned.policy
    order = np.argsort(-policy.visits.sum(axis=1), kind="stable")
    runner, gap = policy.runner_up()
    for row, s in zip(rows, order, strict=True):
        cells = re.findall(r"<t[dh].*?</t[dh]>", row, re.DOTALL)
        state, advice, chance, stake, tried, second, less, *_ = (re.sub(r"<[^>]+>", "", cell).strip() for cell in cells)
        (piece,) = policy.pieces([s])
        assert state == policy.state_names[s]
        assert advice == piece.told
        assert (stake == "–") == (piece.stake is None)
        assert tried == str(policy.visits[s, policy.actions[s]])
        assert second == policy.action_names[runner[s]]
        assert float(less) == pytest.approx(gap[s], rel=0.01)
        likely = f"{min(max(found.posterior.advised_best[s], 0.01), 0.99):.0%}".rstrip("%")
        assert unescape(chance).strip("<>% ") == likely


def test_the_lead_is_split_into_now_and_later_as_the_definition_says(found):
    learned = found.learned
    runner, gap = learned.policy.runner_up()
    T, R, V = learned.model.transition.dense(), learned.reward, learned.plan.values
    for s, (a, b) in enumerate(zip(learned.policy.actions, runner, strict=True)):
        now = R[s, a] - R[s, b]
        later = 0.99 * sum((T[s, a, n] - T[s, b, n]) * V[n] for n in range(5))
        assert found.now[s] == pytest.approx(now)
        assert found.later[s] == pytest.approx(later)
        assert now + later == pytest.approx(gap[s])


@pytest.mark.slow
def test_the_same_findings_make_the_same_page(found, page):
    assert render(found) == page


def test_only_our_style_and_script_are_allowed_and_nothing_else(page):
    policy = next(a["content"] for tag, a in Page(page).tags if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    style, script = (
        re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1],
        re.findall(r"<script>(.*?)</script>", page, re.DOTALL),
    )
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, *script)]
    assert rules == {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": f"'sha256-{hashes[0]}'",
        "script-src": f"'sha256-{hashes[1]}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert not [a for _, a in Page(page).tags if "style" in a or any(name.startswith("on") for name in a)]
    assert not re.search(r"https?://", re.sub(r"data:[^\"]*", "", page).replace("http://www.w3.org/2000/svg", ""))


def test_what_the_page_plans_with_is_what_was_counted(found, page):
    given = json.loads(re.search(r'id="model">(.*?)</script>', page, re.DOTALL)[1])["model"]
    counts = found.learned.counts
    table = np.zeros((15, 5), dtype=int)
    for line in range(15):
        part = slice(given["counts"]["begin"][line], given["counts"]["begin"][line + 1])
        table[line, given["counts"]["next"][part]] = given["counts"]["count"][part]
    np.testing.assert_array_equal(table.reshape(5, 3, 5), counts.transitions)
    np.testing.assert_array_equal(given["visits"], counts.visits.ravel())
    np.testing.assert_array_equal(given["reward"], found.learned.reward.ravel())
    np.testing.assert_array_equal(given["weight"], found.learned.shrinkage.weight.ravel())


# ---- what it keeps to itself ----


@pytest.mark.slow
def test_no_row_and_no_identifier_is_in_the_page(tmp_path):
    rows = tmp_path / "rows.csv"
    lines = [f"secret-{i // 6},{i % 6},{'ab'[i % 2]},{'xy'[i // 2 % 2]},{(i * 0.7391) ** 1.7:.4f}" for i in range(60)]
    rows.write_text("patient,month,state,action,reward\n" + "\n".join(lines))
    page = render(examine(certeq.learn(certeq.read(rows)), draws=20))
    assert "secret" not in page
    text = re.sub(r"data:[^\"]*", "", page)
    assert not [line for line in lines if re.search(rf"(?<![\d.]){line.split(',')[-1]}(?!\d)", text)]


def test_a_gap_in_an_episode_is_told_without_naming_the_episode():
    episode, time = [1234, 1234, 1234, 77, 77], [0, 1, 3, 0, 1]
    batch = certeq.Batch([0] * 5, [0, 1] * 2 + [0], [0] * 5, 1, 2, reward=[1.0] * 5, episode=episode, time=time)
    page = render(examine(certeq.learn(batch), draws=20))
    assert "Rows 1 and 2 have times 1 and 3 of an episode" in page
    assert "1234" not in re.sub(r"data:[^\"]*", "", page)


@pytest.mark.slow
def test_small_counts_are_told_nowhere(trial):
    limit = 5
    page = render(Findings(trial), suppress_below=limit)
    visits = trial.policy.visits
    small = int(((visits > 0) & (visits < limit)).sum())
    assert 'id="model"' not in page
    assert "without them the page cannot replan" in page
    table = page[page.index('id="visits-table"') :]
    cells = re.findall(r'<td class="n[^>]*>([^<]*)</td>', table[: table.index("</table>")])
    assert sorted(int(cell) for cell in cells if cell.isdecimal()) == sorted(
        c for c in visits.ravel() if c == 0 or c >= limit
    )
    assert cells.count(f"&lt;{limit}") == small
    lines = page[page.index('id="policy-table"') :].split("<tr ")[2:]  # without what stands before them, and the head
    tried = [re.findall(r'<td class="n[^>]*>([^<]*)', line)[2] for line in lines]  # after chance and stake
    assert any(each.isdecimal() for each in tried)
    assert all(int(each) >= limit for each in tried if each.isdecimal())
    counted = page[page.index('<figure id="count-map">') :]
    drawn = re.findall(r"<span>([^<]*)</span></td>", counted[: counted.index("</figure>")])
    assert sorted(map(int, filter(str.isdecimal, drawn))) == sorted(visits[visits >= limit].tolist())
    assert drawn.count(f"&lt;{limit}") == small


def test_an_audit_says_so_in_its_title_and_begins_with_what_the_discount_assumes(found):
    page = render(found, audited=True)
    discount = f"{found.audit.planning_discount:g}"
    assert f"<h1>Audit: what planning with discount {discount} assumes</h1>" in page
    first = unescape(page[page.index('<section id="summary"') : page.index("What is advised")])
    assert found.audit.lines()[0] in first
    assert '<details class="fold" open>' in page[page.index('<section id="regularization"') :]
    assert page.count('<details class="fold" open>') == 1
    assert '<details class="fold" open>' not in render(found)


@pytest.mark.slow
def test_an_audit_of_single_pairs_is_left_out_where_small_counts_are(found):
    few = int(found.learned.policy.visits[found.learned.policy.visits > 0].min()) + 1
    assert "treats your best-observed pair" in render(found)
    page = render(found, suppress_below=few)
    assert "treats your best-observed pair" not in page
    assert "which this report hides" in page


@pytest.mark.slow
def test_hostile_labels_are_text_and_nothing_else(hostile):
    html = render(Findings(hostile))
    page = Page(html)
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert not [a for _, a in page.tags if {"onerror", "onmouseover", "onload"} & set(a)]
    assert "\u202e" not in html
    for label in HOSTILE.values():
        assert harmless(label) in page.texts["policy-table"]
    json.loads(re.search(r'id="model">(.*?)</script>', html, re.DOTALL)[1])
    drawn = re.findall(r'<span class="label"><bdi>(.*?)</bdi>|<th scope="row"><bdi>(.*?)</bdi></th><td class="s', html)
    assert drawn
    assert max(len(unescape(text)) for pair in drawn for text in pair) <= 160


def test_pictures_take_their_colors_from_the_page_so_that_it_can_be_dark(page):
    drawn = [attributes for tag, attributes in Page(page).tags if tag in ("rect", "circle", "path", "polyline", "line")]
    assert drawn
    assert not [each for each in drawn if {"fill", "stroke", "style"} & set(each)]
    assert "prefers-color-scheme: dark" in page


# ---- size ----


@pytest.mark.slow
def test_on_the_bundled_trial_the_page_is_under_a_megabyte(trial):
    assert len(render(examine(trial, draws=50)).encode()) < 1_000_000


def line_of(states, actions=2, rows=4000):
    """A long line of states, walked at random."""
    random = np.random.default_rng(0)
    state, action = random.integers(states, size=rows), random.integers(actions, size=rows)
    following = np.clip(state + np.where(action == 0, -1, 1), 0, states - 1)
    return certeq.learn(
        certeq.Batch(state, action, following, states, actions, reward=random.random(rows)), discount=0.9
    )


@pytest.mark.slow
def test_with_more_than_three_hundred_states_there_is_no_slider_and_the_page_says_why():
    assert embed.why_not(line_of(300), 0) == ""
    page = render(Findings(line_of(301)))
    assert 'id="slider"' not in page
    assert "The page replans for up to 300 states; here there are 301 states" in page


@pytest.mark.slow
def test_with_very_many_states_tables_show_the_most_visited_and_the_file_stays_small():
    learned = line_of(3000)
    page = render(Findings(learned))
    table = page[page.index('id="policy-table"') :]
    rows = re.findall(r"<tr.*?</tr>", table[: table.index("</table>")], re.DOTALL)[1:]
    assert len(rows) == tables.SHOWN
    assert "The 500 most visited of 3,000 states; policy.csv has all of them." in page
    assert len(page.encode()) < 1_000_000


@pytest.mark.slow
def test_a_large_sparse_model_is_reported_too():
    learned = line_of(2500, actions=3, rows=3000)
    assert learned.counts.sparse
    findings = examine(learned)
    assert set(findings.missing) >= {"path", "fragility", "collect"}
    assert findings.audit is not None
    assert findings.posterior.draws == 40
    assert findings.outer is not None
    assert "draws as many as you say" in render(findings)
    assert len(render(findings).encode()) < 1_000_000


# ---- odd data ----


@pytest.mark.slow
def test_a_horizon_is_told_at_its_first_decision(walk):
    findings = examine(certeq.learn(walk, horizon=3), draws=20)
    assert "At the first of 3 decisions, the advice is" in render(findings)
    assert "collect" in findings.missing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("state", "action"),
    [([0], [0]), ([0, 1], [0, 0]), ([0, 0, 0], [0, 1, 2])],
    ids=["one row", "one action", "one state"],
)
def test_the_smallest_data_have_a_page(state, action):
    n = len(state)
    batch = certeq.Batch(state, action, [0] * n, max(state) + 1, max(action) + 1, reward=[1.0] * n)
    page = render(examine(certeq.learn(batch), draws=20))
    assert "How sure" in page


def test_nothing_advised_is_said_in_words(walk):
    page = render(examine(certeq.learn(walk, min_visits=1000), draws=20))
    assert "Advice in 0 of 5 states" in page
    assert "no state has an action that may be advised" in page


@pytest.mark.slow
def test_a_title_and_more_for_the_manifest_can_be_given(found):
    bare = replace(found, found={**found.found, "posterior": None})
    said = {"title": "Ward <7>", "author": "Ann & Bo", "date": "2026-11-16", "source": "rows.csv"}
    page = render(bare, **said, manifest={"seed": 5})
    assert "<h1>Ward &lt;7&gt;</h1>" in page
    for told in ("Ann &amp; Bo", "2026-11-16", "rows.csv: "):
        assert f"<dd><bdi>{told}" in page
    assert "<dt>seed</dt><dd><bdi>5</bdi></dd>" in page


def test_a_negative_limit_is_refused(found):
    with pytest.raises(certeq.InputError, match="suppress_below must be at least 0"):
        render(found, suppress_below=-1)
