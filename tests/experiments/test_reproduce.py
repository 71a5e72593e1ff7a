"""``certeq reproduce``: every figure with its files and verdicts, one page over all, and nothing lost or mixed up."""

import json
import platform
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import certeq
from certeq import InputError
from certeq.cli import app
from certeq.experiments import figures, shards
from certeq.experiments import reproduce as driver
from certeq.experiments.figures import FIGURES, figure
from certeq.experiments.verdict import OUTCOMES, exactly
from certeq.report import reproduction as page
from certeq.report import style

FILES = {"table.parquet", "table.csv", "picture.svg", "picture.png", "verdicts.json", "shards"}


class Silence:
    """A watch that only remembers."""

    def __init__(self):
        self.ended, self.troubles, self.told = [], {}, []

    def begin(self, name, unit):
        self.unit = unit

    def progress(self, done, total):
        self.told.append((done, total))

    def end(self, record, seconds):
        self.ended.append(record["figure"])

    def failed(self, name, error):
        self.troubles[name] = error


class Tags(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def command(*options):
    """Run the command line in this process; bad input is an exception here."""
    return CliRunner().invoke(app, ["reproduce", *map(str, options)])


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """What CI must be able to do: all figures at the scale of a smoke test."""
    out = tmp_path_factory.mktemp("all")
    options = ("reproduce", "all", "--profile", "smoke", "--out", str(out))
    ran = subprocess.run([sys.executable, "-m", "certeq", *options], capture_output=True, text=True, encoding="utf-8")
    assert ran.returncode == 0, ran.stderr
    return SimpleNamespace(out=out, said=ran.stdout, verdicts=json.loads((out / "verdicts.json").read_text("utf-8")))


@pytest.mark.slow
def test_every_figure_has_its_files(everything):
    for name in FIGURES:
        there = {path.name for path in (everything.out / name).iterdir()}
        assert there - {"summary.csv"} in (FILES, FILES - {"table.csv"})
        assert len(there & {"table.csv", "summary.csv"}) == 1
        assert (everything.out / name / "picture.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (everything.out / name / "picture.svg").read_bytes()[:1000]


@pytest.mark.slow
def test_every_figure_has_verdicts_that_say_what_was_measured(everything):
    assert [record["figure"] for record in everything.verdicts["figures"]] == list(FIGURES)
    for record in everything.verdicts["figures"]:
        assert record["verdicts"]
        assert record["claim"] == figure(record["figure"]).CLAIM
        assert (record["profile"], record["seed"], record["certeq"]) == ("smoke", 0, certeq.__version__)
        for verdict in record["verdicts"]:
            assert verdict["outcome"] in OUTCOMES
            assert re.search(r"\d", verdict["measured"])
    assert sum(record["seconds"] for record in everything.verdicts["figures"]) > 1
    counts = everything.verdicts["counts"]
    verdicts = [verdict for record in everything.verdicts["figures"] for verdict in record["verdicts"]]
    assert sum(counts["paper"].values()) == sum(bool(verdict["paper"]) for verdict in verdicts) > 30
    assert sum(counts["paper"].values()) + sum(counts["ours"].values()) == len(verdicts)


@pytest.mark.slow
def test_the_table_on_disk_gives_the_same_verdicts_again(everything):
    for record in everything.verdicts["figures"]:
        table = pl.read_parquet(everything.out / record["figure"] / "table.parquet")
        again = [verdict.to_json() for verdict in figure(record["figure"]).holds(table)]
        assert json.loads(json.dumps(again)) == record["verdicts"]
        assert len(table) == record["rows"]


@pytest.mark.slow
def test_a_picture_is_the_same_bytes_every_time(everything):
    table = pl.read_parquet(everything.out / "heat_map" / "table.parquet")
    again = style.to_svg(figure("heat_map").draw(table))
    assert again == (everything.out / "heat_map" / "picture.svg").read_bytes()


@pytest.mark.slow
def test_the_page_needs_nothing_else_and_allows_nothing_else(everything):
    text = (everything.out / "index.html").read_text("utf-8")
    tags = Tags(text)
    (policy,) = [meta["content"] for meta in tags.of("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not tags.of("script")
    assert not tags.of("link")
    assert not any(name.startswith("on") or name == "style" for _, attributes in tags.tags for name in attributes)
    images = tags.of("img")
    assert len(images) == len(FIGURES)
    assert all(image["src"].startswith("data:image/svg+xml;base64,") and len(image["alt"]) > 40 for image in images)
    for link in tags.of("a"):
        assert link["href"].startswith("#") or (everything.out / link["href"]).exists()
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) == set()


@pytest.mark.slow
def test_the_page_has_every_claim_and_every_verdict_in_words(everything):
    text = (everything.out / "index.html").read_text("utf-8")
    counts = everything.verdicts["counts"]
    for outcome, (_, sign) in page.LOOKS.items():
        number = counts["paper"][outcome] + counts["ours"][outcome]
        assert text.count(f'<span aria-hidden="true">{sign} </span>{outcome}</span>') == number
        assert f'<b>{counts["paper"][outcome]}</b><span aria-hidden="true">{sign} </span>{outcome}</li>' in text
    for name in FIGURES:
        assert f'<section id="{name}">' in text


@pytest.mark.slow
def test_the_terminal_gets_counts_lines_and_the_place(everything):
    assert re.search(r"\d+ verdicts on what the paper says: \d+ hold, ", everything.said)
    assert re.search(r"\d+ verdicts on what we ask beyond it: \d+ hold, ", everything.said)
    assert f"Written: {everything.out / 'index.html'}" in everything.said
    for name in FIGURES:
        assert re.search(rf"^{name}: .*\((.* (s|min)|less than a second)\)$", everything.said, re.MULTILINE)


@pytest.mark.slow
def test_nothing_written_says_whose_machine_it_was(everything):
    for path in everything.out.rglob("*"):
        if path.suffix in (".json", ".html", ".csv", ".svg"):
            text = path.read_text("utf-8")
            assert str(everything.out) not in text
            assert sys.prefix not in text
            if len(platform.node()) > 3:  # shorter names turn up by chance in pictures
                assert not re.search(rf"\b{re.escape(platform.node())}\b", text)


def test_the_list_has_names_titles_and_claims():
    said = " ".join(command("--list").output.split())
    for name in FIGURES:
        assert f"{name} {figure(name).TITLE}" in said
        assert figure(name).CLAIM in said


def test_figures_come_in_the_papers_order_and_once():
    assert driver.chosen(("diagrams", "heat_map", "diagrams")) == ("heat_map", "diagrams")
    assert driver.chosen(("all", "diagrams")) == driver.chosen(()) == tuple(FIGURES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("heat_mop",), "There is no figure named 'heat_mop'. Did you mean 'heat_map'"),
        (("--profile", "quick"), "There is no profile named 'quick'"),
        (("--data-sets", "1"), "--data-sets must be at least 2"),
        (("--workers", "0"), "--workers must be at least 1"),
        (("--seed", "-1"), "--seed must be at least 0"),
        (("--workers", "2", "--scheduler", "tcp://127.0.0.1:1"), "choose one"),
        (("--scheduler", "nowhere"), "takes an address such as tcp://host:8786"),
    ],
)
def test_bad_input_is_told(options, message, tmp_path):
    done = command(*options, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_bad_input_ends_with_code_2(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-m", "certeq", "reproduce", "heat_mop"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("Error: There is no figure named 'heat_mop'.")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with the results of one quick figure."""
    place = tmp_path_factory.mktemp("small")
    driver.reproduce(driver.Order(("equal_counts",), place, data_sets=20, seed=1), Silence())
    return place


@pytest.fixture
def small(finished, tmp_path):
    """The order of one quick figure, and a copy of its results."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return driver.Order(("equal_counts",), tmp_path, data_sets=20, seed=1)


def table_of(out, name="equal_counts"):
    return (out / name / "table.parquet").read_bytes()


@pytest.mark.slow
def test_the_same_order_resumes_and_ends_the_same(small, monkeypatch):
    before, watch = table_of(small.out), Silence()
    monkeypatch.setattr(figure("equal_counts"), "work", None)  # nothing is left to do
    outcome = driver.reproduce(small, watch)
    assert not outcome.failures
    assert watch.told == [(20, 20)]
    assert table_of(small.out) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [({"seed": 2}, "seed 1; asked for was seed 2"), ({"data_sets": 30}, '"data_sets": 20.*"data_sets": 30')],
)
def test_results_of_another_order_are_refused_unless_forced(small, change, message):
    before = table_of(small.out)
    asked = {"figures": ("heat_map", "equal_counts"), "out": small.out, "data_sets": 20, "seed": 1}
    other = driver.Order(**(asked | change))
    watch = Silence()
    with pytest.raises(InputError, match=message):
        driver.reproduce(other, watch)
    assert not watch.told  # refused before any work, that of other figures included
    assert table_of(small.out) == before
    driver.reproduce(other, Silence(), force=True)
    assert table_of(small.out) != before


@pytest.mark.slow
def test_one_process_and_two_write_the_same_table(small, tmp_path):
    two = driver.Order(("equal_counts",), tmp_path / "two", data_sets=20, seed=1)
    driver.reproduce(two, Silence(), workers=2)
    assert table_of(two.out) == table_of(small.out)


@pytest.mark.slow
def test_the_page_keeps_what_other_runs_have_finished(small):
    driver.reproduce(driver.Order(("heat_map",), small.out), Silence())
    verdicts = json.loads((small.out / "verdicts.json").read_text("utf-8"))
    assert [record["figure"] for record in verdicts["figures"]] == ["heat_map", "equal_counts"]
    assert [record["seed"] for record in verdicts["figures"]] == [0, 1]


def test_a_page_of_somebody_else_is_not_overwritten(tmp_path):
    (tmp_path / "index.html").write_text("mine")
    order = driver.Order(("heat_map",), tmp_path)
    with pytest.raises(InputError, match="was not written by certeq reproduce"):
        driver.reproduce(order, Silence())
    assert (tmp_path / "index.html").read_text() == "mine"
    driver.reproduce(order, Silence(), force=True)
    assert (tmp_path / "index.html").read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.slow
def test_a_large_table_is_summarized_and_that_is_said(small, monkeypatch):
    monkeypatch.setattr(driver, "LARGE", 1000)
    driver.reproduce(small, Silence())
    folder = small.out / "equal_counts"
    assert not (folder / "table.csv").exists()
    summary = pl.read_csv(folder / "summary.csv")
    assert summary["strength"].len() == 12
    assert (summary["data_sets"] == 20).all()
    table = pl.read_parquet(folder / "table.parquet")
    assert len(table) == 20 * 12
    mean = table.filter(pl.col("strength") == 0.5)["discount"].mean()
    assert summary.filter(pl.col("strength") == 0.5)["discount"].item() == pytest.approx(mean)
    assert "the Parquet table has every row" in (small.out / "index.html").read_text("utf-8")


HOSTILE = '<script>alert("x")</script>'


def hostile_work(cell, rng):
    if cell["data_sets"] == 13:
        raise ValueError("this cell is unlucky")
    return {"loss": np.zeros(cell["data_sets"])}


@pytest.fixture
def hostile(monkeypatch):
    """A figure whose words are not harmless and whose cells may fail."""
    module = SimpleNamespace(
        TITLE=HOSTILE,
        CLAIM=HOSTILE,
        SETTINGS={"smoke": {"data_sets": 12}},
        cells=lambda settings: [{"data_sets": 11}, {"data_sets": settings["data_sets"]}],
        work=hostile_work,
        holds=lambda table: [exactly(HOSTILE, True, HOSTILE)],
        draw=lambda table: style.canvas()[0],
    )
    monkeypatch.setitem(sys.modules, "hostile", module)
    monkeypatch.setitem(figures.FIGURES, "hostile", "hostile")


def test_words_on_the_page_stay_words(hostile, tmp_path):
    driver.reproduce(driver.Order(("hostile",), tmp_path), Silence())
    text = (tmp_path / "index.html").read_text("utf-8")
    assert not Tags(text).of("script")
    assert "&lt;script&gt;" in text


@pytest.mark.slow
def test_a_figure_that_fails_keeps_no_other_from_being_done(hostile, tmp_path):
    watch = Silence()
    outcome = driver.reproduce(driver.Order(("heat_map", "hostile"), tmp_path, data_sets=13), watch)
    assert watch.ended == ["heat_map"]
    assert isinstance(outcome.failures["hostile"], shards.Unfinished)
    assert "1 of 2 cells failed. The first: ValueError: this cell is unlucky" in str(watch.troubles["hostile"])
    ran = command("heat_map", "hostile", "--data-sets", 13, "--out", tmp_path)
    assert ran.exit_code == 1
    assert "hostile could not be finished" in ran.output
    assert "The same command tries what is missing again." in ran.output


def test_an_interrupt_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(figure("heat_map"), "work", interrupted)
    ran = command("heat_map", "--out", tmp_path)
    assert ran.exit_code == 130
    assert "the same command picks up from there" in ran.output
