"""The report in a real browser: nothing complains, nothing is asked for, and its planner agrees with ours."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import certeq
from certeq.questions.compare import compare
from certeq.questions.examine import examine
from certeq.questions.findings import Findings
from certeq.report import compared_page
from certeq.report.learned_page import STEPS, render
from certeq.worlds import examples
from certeq.worlds.messy import MESSY

pytestmark = pytest.mark.slow

SETTINGS = (0, 7, 25, 40, 55, 70, 82, 90, 97, 100)  # steps of the slider

# ---- what is learned, in many ways ----

KINDS = {
    "as usual": {},
    "without regularization": {"regularizer": "none"},
    "the target for pairs without data": {"unvisited": "target", "min_visits": 12},
    "zero rows": {"unvisited": "zero", "min_visits": 12},
    "self-loops": {"unvisited": "self_loop", "min_visits": 12},
    "the average of other actions": {"unvisited": "average", "min_visits": 12},
    "states without advice": {"min_visits": 70},
    "rewards by next state": {"reward_by": "next_state"},
    "pooled rewards": {"reward_pool": "state"},
    "known rewards": {"reward": np.arange(15.0).reshape(5, 3) % 4},
    "a horizon": {"horizon": 4},
    "one decision": {"horizon": 1},
    "random actions": {"regularizer": "epsilon_greedy", "strength": 0.3},
    "least error": {"regularizer": "least_mse"},
    "an expert": {"regularizer": "expert_prior", "magnitude": 3.0, "target": np.eye(5)[[1, 2, 3, 4, 4]][:, None]},
    "a lower discount": {"regularizer": "discount", "planning_discount": 0.8},
    "no discount": {"discount": 1.0, "regularizer": "uniform_prior", "magnitude": 2.0},
    "every reward alike": {"reward": np.ones((5, 3))},
}


bare = Findings  # without the parts that take time
TRAPPED = np.full(5, -1)  # what the page says where a plan would have no values


@pytest.fixture(scope="session")
def bare_trial(trial):
    return bare(trial)


@pytest.fixture(scope="session")
def trial_found(trial):
    return examine(trial, draws=40)


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Pages that were written: findings and the file."""
    return tmp_path_factory.mktemp("pages"), []


@pytest.fixture
def show(browser, pages):
    """Write a page unless it is there, open it, and see that nothing complained and nothing was asked for."""

    def open_page(findings, *, unfolded=True):
        folder, written = pages
        path = next((file for made, file in written if made is findings), None)
        if path is None:
            path = folder / f"{len(written)}.html"
            path.write_text(render(findings), encoding="utf-8")
            written.append((findings, path))
        browser.open(path)
        if unfolded:
            browser.js("document.querySelectorAll('.fold').forEach(fold => { fold.open = true; })")
        assert browser.console == []
        assert [url for url in browser.requests if not url.startswith("data:")] == [path.as_uri()[:100]]
        return browser

    return open_page


SLIDE = """new Promise(done => {
    const range = document.querySelector('#planning-range'), root = document.querySelector('#slider');
    range.value = %d;
    range.dispatchEvent(new Event('input'));
    const boxes = () => [...document.querySelectorAll('#maps .panel:first-child rect')];
    const look = () => root.dataset.step === range.value
        ? done(boxes().map(box => [+box.dataset.advice, +box.dataset.even])) : setTimeout(look, 5);
    look();
})"""


def slide(browser, step):
    """Move the slider and read off what the page plans: at that discount, and with the same amount spread evenly."""
    return np.array(browser.js(SLIDE % step)).T


def advice(case, regularizer, planning):
    """What certeq advises; where a plan might never end it refuses, and the page advises nothing.

    What people avoided is what it is for the advice, on the page as here; certeq alone would ask anew at each setting.
    """
    other = replace(case.under(regularizer, planning_discount=planning), usual=case.model.allowed)
    try:
        return other.advise().policy
    except certeq.InputError:
        return TRAPPED


def check_slider(browser, learned):
    case, gamma = learned.case, learned.rules.discount
    policies = set()
    for step in SETTINGS if gamma < 1 else (*SETTINGS[:-1], STEPS - 1):
        planning = gamma * step / STEPS
        lower, even = slide(browser, step)
        np.testing.assert_array_equal(lower, advice(case, "discount", planning))
        np.testing.assert_array_equal(even, advice(case, "uniform_prior", planning))
        policies.add(tuple(lower))
    return policies


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_the_page_plans_as_certeq_does_at_ten_settings(show, walk, options):
    learned = certeq.learn(walk, **options)
    browser = show(bare(learned))
    assert browser.js("document.querySelector('#slider').dataset.agrees") == "true"
    check_slider(browser, learned)
    assert browser.console == []


@pytest.mark.parametrize(("bins", "agrees"), [(None, "true"), (4, "unknown")])  # the target of many states is not there
def test_on_the_bundled_trial_the_slider_changes_the_advice_and_agrees_with_certeq(show, bins, agrees):
    trial = bare(certeq.learn(certeq.read(examples.path(), bins=bins)))
    browser = show(trial)
    assert browser.js("document.querySelector('#slider').dataset.agrees") == agrees
    assert len(check_slider(browser, trial.learned)) > 3


def test_the_slider_is_moved_by_keys_and_tells_what_it_does(show, found):
    browser = show(found)
    before = browser.js("document.querySelector('#facts').textContent")
    browser.js("document.querySelector('#planning-range').focus()")
    for _ in range(30):
        browser.press("ArrowLeft")
    browser.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
    assert browser.js("document.querySelector('#planning-range').value") == "60"
    assert browser.js("document.querySelector('#planning-range').getAttribute('aria-valuetext')") == "0.594"
    assert browser.js("document.querySelector('#facts').textContent") != before


# ---- the whole page ----


def test_a_script_that_is_not_ours_does_not_run(show, found):
    browser = show(found)
    inject = "(s => { s.textContent = 'window.hacked = 1'; document.body.append(s); return window.hacked; })"
    assert browser.js(f"{inject}(document.createElement('script'))") is None
    browser.js("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked = 1\">')")
    browser.js("new Promise(done => setTimeout(done, 50))")
    assert browser.js("window.hacked") is None
    assert any("Content Security Policy" in line for line in browser.console)


@pytest.mark.parametrize(("width", "mobile"), [(1280, False), (820, False), (360, True)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_width_makes_the_page_scroll_sideways(show, browser, found, width, mobile, scheme):
    browser.size(width, mobile=mobile)
    browser.media(scheme=scheme)
    show(found)
    assert browser.js("document.documentElement.scrollWidth") <= width
    paper, ink = (browser.js(f"getComputedStyle(document.body).{what}") for what in ("backgroundColor", "color"))
    bright = [sum(map(float, color[4:-1].split(","))) / 765 for color in (paper, ink)]
    assert (bright[0] < 0.2 < 0.8 < bright[1]) if scheme == "dark" else (bright[1] < 0.2 < 0.8 < bright[0])
    browser.size(1280)
    browser.media()


def test_pictures_have_words_controls_have_names_and_places_are_unique(show, found):
    browser = show(found)
    drawn = "[...document.querySelectorAll('svg')].filter(s => !s.parentElement.closest('svg'))"
    assert browser.js(f"{drawn}.length") > 20
    assert browser.js(f"{drawn}.every(s => s.ariaHidden === 'true' || s.ariaLabel.length > 30)")
    assert browser.js("document.images.length") == 0
    assert browser.js("[...document.querySelectorAll('input, select')].every(c => c.labels.length === 1)")
    assert browser.js(
        "(ids => new Set(ids).size === ids.length)([...document.querySelectorAll('[id]')].map(e => e.id))"
    )
    assert browser.js("[...document.querySelectorAll('nav a, .skip')].every(a => document.querySelector(a.hash))")
    assert browser.js("[...document.querySelectorAll('#maps svg')].every(s => s.getAttribute('aria-label'))")
    assert browser.js("document.querySelectorAll('h1').length") == 1
    levels = browser.js("[...document.querySelectorAll('h1, h2, h3, h4')].map(h => +h.tagName[1])")
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert browser.js("document.documentElement.lang") == "en"


def test_the_first_tab_offers_to_skip_to_the_content(show, found):
    browser = show(found)
    browser.press("Tab")
    assert browser.js("document.activeElement.className") == "skip"
    assert browser.js("document.activeElement.getBoundingClientRect().left") >= 0


def test_the_table_is_searched_filtered_and_sorted_by_keys(show, found):
    browser = show(found)
    rows = "[...document.querySelectorAll('#policy-table tbody tr')]"
    shown = f"{rows}.filter(r => r.offsetHeight).map(r => r.cells[0].textContent)"
    assert len(browser.js(shown)) == 5
    browser.js("document.querySelector('#policy input[type=search]').focus()")
    browser.press("3", "Digit3", text="3")
    kept = browser.js(shown)
    assert len(kept) == sum("3" in row for row in browser.js(f"{rows}.map(r => r.textContent)")) < 5
    assert browser.js("document.querySelector('#policy output').textContent") == f"{len(kept)} of 5 shown"
    empty = "(box => { box.value = ''; box.dispatchEvent(new Event('input')); })"
    browser.js(f"{empty}(document.querySelector('#policy input[type=search]'))")
    browser.js("document.querySelector('#policy-table thead button').focus()")
    browser.press("Enter", text="\r")
    down = browser.js(shown)
    browser.press("Enter", text="\r")
    up = browser.js(shown)
    assert (down, up) == (["4", "3", "2", "1", "0"], ["0", "1", "2", "3", "4"])
    assert browser.js("document.querySelector('#policy-table th').getAttribute('aria-sort')") == "ascending"


def test_in_print_every_line_of_the_advice_is_there_and_no_control(show, browser, bare_trial):
    show(bare_trial, unfolded=False)
    assert (
        browser.js("document.querySelector('#policy-table').checkVisibility({ contentVisibilityAuto: true })") is False
    )
    browser.media(media="print")
    rows = "[...document.querySelectorAll('#policy-table tbody tr')].filter(r => r.offsetHeight).length"
    assert browser.js(rows) == len(bare_trial.learned.policy.first.actions)
    box = "document.querySelector('#policy-table').parentElement"
    assert browser.js(f"{box}.scrollHeight <= {box}.clientHeight")
    assert browser.js("['.tools', '.slider', 'nav', '.save'].every(s => document.querySelector(s).offsetHeight === 0)")
    browser.media()


def examine_messy(name):
    world = MESSY[name]
    return examine(certeq.learn(certeq.read(world.table(501), **world.said), discount=world.discount), draws=80)


PAPER = 688, 1017  # what A4 leaves within margins of 14 mm, in pixels


@pytest.mark.parametrize("which", ["found", "trial_found", "clinic", "machine"])
def test_the_summary_fits_on_one_printed_page_and_two_screens_of_a_phone(show, browser, which, request):
    found = request.getfixturevalue(which) if which not in MESSY else examine_messy(which)
    end = "document.querySelector('#summary').getBoundingClientRect().bottom"
    browser.size(PAPER[0])
    browser.media(media="print")
    show(found, unfolded=False)
    assert browser.js(end) <= PAPER[1]
    browser.media()
    browser.size(390, 844, mobile=True)
    show(found, unfolded=False)
    assert browser.js(end) <= 2 * 844
    browser.size(1280)


@pytest.mark.parametrize("which", ["found", "trial_found"])
def test_in_print_nothing_is_wider_than_the_paper(show, browser, which, request):
    browser.size(PAPER[0])
    browser.media(media="print")
    show(request.getfixturevalue(which))
    assert browser.js("document.documentElement.scrollWidth") <= PAPER[0]
    browser.media()
    browser.size(1280)


def test_in_print_heads_of_tables_can_be_repeated(show, browser, found):
    show(found, unfolded=False)
    browser.media(media="print")
    head = "document.querySelector('#policy-table thead')"
    assert browser.js(f"getComputedStyle({head}).display") == "table-header-group"
    button = f"getComputedStyle({head}.querySelector('button')).display"
    assert browser.js(button) == "contents", "a head with controls in it is printed once"
    browser.media()


def test_folds_open_by_key_by_link_and_all_at_once(show, found):
    browser = show(found, unfolded=False)
    opened = "[...document.querySelectorAll('.fold')].filter(f => f.open).map(f => f.parentElement.id)"
    assert browser.js(opened) == []
    browser.js("document.querySelector('#why summary').focus()")
    browser.press("Enter", text="\r")
    assert browser.js(opened) == ["why"]
    browser.js("document.querySelector('nav a[href=\"#data\"]').click()")
    browser.js("new Promise(done => setTimeout(done, 50))")
    assert browser.js(opened) == ["why", "data"]
    browser.js("document.querySelector('#unfold').click()")
    assert len(browser.js(opened)) == 9


def test_every_state_is_found_by_searching_where_the_table_has_only_some(show, monkeypatch, bare_trial):
    monkeypatch.setattr("certeq.report.listing.LONG", 50)
    monkeypatch.setattr("certeq.report.listing.SHOWN", 10)
    browser = show(replace(bare_trial))
    assert len(browser.js("[...document.querySelectorAll('#policy-table tbody tr')].map(r => 1)")) == 10
    words = bare_trial.learned.policy.recipe.parts(np.array([7]))[0]
    enter = "(box => { box.value = %r; box.dispatchEvent(new Event('input')); })"
    browser.js(f"{enter % ' '.join(words)}(document.querySelector('#policy input[type=search]'))")
    listed = "[...document.querySelectorAll('#elsewhere tbody th')].map(r => r.textContent)"
    told = browser.js(f"new Promise(done => setTimeout(() => done({listed}), 200))")
    axes = bare_trial.learned.policy.recipe.axis_names
    assert ", ".join(f"{axis} {word}" for axis, word in zip(axes, words, strict=True)) in told
    assert browser.js("document.querySelector('#elsewhere p').textContent").startswith(f"{len(told)} state")
    browser.js(f"{enter % 'nowhere'}(document.querySelector('#policy input[type=search]'))")
    none = f"0 states of {len(bare_trial.learned.policy.visits)} found."
    assert browser.js("document.querySelector('#elsewhere p').textContent") == none


AXE = Path(__file__).parent / "axe" / "axe.min.js"
BROKEN = "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => [v.id, v.nodes[0].html]))"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
@pytest.mark.parametrize("which", ["found", "trial_found"])
def test_no_rule_of_axe_is_broken(show, browser, which, width, scheme, request):
    browser.size(width, mobile=width < 500)
    browser.media(scheme=scheme)
    show(request.getfixturevalue(which))
    browser.js("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    browser.js(f"{AXE.read_text(encoding='utf-8')}; 0")
    assert browser.js(BROKEN) == []
    browser.size(1280)
    browser.media()


def test_the_page_on_a_comparison_breaks_no_rule_of_axe_either(browser, walk, tmp_path):
    learned = certeq.learn(walk, draws=0)
    compared = compare(learned, regularizers=["learned_target", "none", "evidence"], folds=2, draws=20)
    path = tmp_path / "compared.html"
    path.write_text(compared_page.render(compared, learned), encoding="utf-8")
    for width, scheme in ((1280, "light"), (390, "dark")):
        browser.size(width, mobile=width < 500)
        browser.media(scheme=scheme)
        browser.open(path)
        assert browser.console == []
        browser.js(f"document.querySelector('details').open = true; {AXE.read_text(encoding='utf-8')}; 0")
        assert browser.js(BROKEN) == []
        assert browser.js("document.documentElement.scrollWidth <= window.innerWidth")
    browser.size(1280)
    browser.media()


def test_tables_are_saved_as_they_are_shown(show, found):
    browser = show(found)
    browser.js(
        "window.saved = []; URL.createObjectURL = blob => { blob.text().then(t => window.saved.push(t)); return '#'; }"
    )
    browser.js("document.querySelector('#policy .save').click()")
    text = browser.js("new Promise(done => setTimeout(() => done(window.saved[0]), 50))")
    lines = text.strip().splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("state,Advised,Chance it is best,At stake,Tried,Runner-up,Gap")


def test_hostile_labels_do_nothing_in_the_page(show, hostile):
    browser = show(bare(hostile))
    slide(browser, 30)
    browser.js("document.querySelector('#policy-table thead button').click()")
    assert browser.js("window.hacked") is None
    assert browser.js("document.querySelectorAll('script').length") == 2
    assert browser.js("document.querySelectorAll('main img:not([alt])').length") == 0
    assert browser.js("document.documentElement.scrollWidth") <= 1280
    assert browser.console == []


def test_a_page_with_everything_missing_still_opens(show, walk):
    findings = examine(certeq.learn(walk), draws=0)
    assert set(findings.missing) >= {"posterior", "collect"}
    browser = show(findings)
    assert "No draws from the posterior were asked for." in browser.js("document.querySelector('#sure').textContent")
