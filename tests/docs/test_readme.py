"""What the README shows is what runs: every command and every snippet, from top to bottom, in a new folder."""

import csv
import random
import re
from pathlib import Path

import docs_pages
import docs_runs
import polars as pl
import pytest

from certeq import REGULARIZERS

PAGE = docs_pages.ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")
LIGHTER = {  # run in place of what takes long: the same, with less work (.ci/run runs the main job as it is)
    "pip install uv && uv run certeq learn": "certeq learn --bins 2 --draws 50",
    "uv run certeq audit --discount .99 --planning-discount .9 --out audited": (
        "certeq audit --discount .99 --planning-discount .9 --out audited --bins 2 --draws 50"
    ),
    "uv run certeq compare --out compared": "certeq compare --out compared --bins 2 --draws 50 --folds 2",
    "uv run certeq reproduce all": "certeq reproduce all --data-sets 2",
}
WRITTEN = (  # what the README says will be there
    *(f"certeq-out/{name}" for name in ("policy.json", "policy.csv", "summary.json", "report.html")),
    *(f"my-policy/{name}" for name in ("policy.json", "policy.csv", "summary.json", "report.html")),
    "actions.csv",
    "audited/report.html",
    "compared/report.html",
    "counts.npz",
    "counted/report.html",
    "rows.csv",
    "certeq-out/reproduction-smoke/index.html",
)


def make_files():
    """What the README takes for granted: somebody's rows, new rows, and a folder of Parquet files."""
    rng = random.Random(4)
    with Path("my_rows.csv").open("w", newline="") as file:
        write = csv.writer(file)
        write.writerow(["patient", "month", "age", "pain", "treatment", "benefit"])
        for patient in range(40):
            age, pain = rng.randint(18, 80), rng.choice(["none", "some", "much"])
            for month in range(6):
                write.writerow([patient, month, age, pain, rng.choice(["rest", "exercise"]), round(rng.gauss(0, 1), 2)])
                pain = rng.choice([pain, "none", "some", "much"])
    Path("new_rows.csv").write_text("age,pain\n30,some\n71,none\n,much\n")
    Path("folder-of-parquet").mkdir()
    rows = pl.DataFrame(
        {"state": [0, 1, 1], "action": ["a", "b", "a"], "reward": [0.0, 1.0, 0.5], "next_state": [1, 0, 1]}
    )
    for name in ("one", "two"):
        rows.write_parquet(f"folder-of-parquet/{name}.parquet")


@pytest.mark.slow
def test_everything_in_the_readme_runs_and_leaves_what_it_says(tmp_path, monkeypatch):
    with docs_runs.workplace(tmp_path, monkeypatch):
        make_files()
        docs_runs.run_page(PAGE, LIGHTER)
        for name in WRITTEN:
            assert Path(name).stat().st_size, name


def test_lighter_commands_are_those_of_the_readme_with_less_work():
    shown = [line for block in docs_pages.blocks(PAGE) for line in docs_pages.commands(block.code)]
    for command, lighter in LIGHTER.items():
        assert command in shown
        assert lighter.startswith(command.removeprefix("pip install uv && ").removeprefix("uv run "))


def test_no_command_of_the_readme_hides_in_an_indented_block():
    assert [code.strip() for code in docs_pages.indented(PAGE)] == ["T_plan = (1 - w) * T_data + w * T_target"]


def test_the_readme_shows_the_two_commands_a_report_and_a_figure():
    assert "\npip install uv && uv run certeq learn\n" in README
    assert "\npip install uv && uv run --group test pytest\n" in README
    assert re.findall(r"!\[.+\]\((.+)\)", README) == [
        "docs/images/report.png",
        "docs/reproduction/loss_by_strength.svg",
    ]


def test_the_readme_lists_every_regularizer():
    assert set(re.findall(r"^\| `(\w+)`", README, re.M)) == set(REGULARIZERS)


@pytest.mark.parametrize("place", ["docs/tutorial.md", "docs/paper-map.md"])
def test_the_readme_says_where_to_go_next(place):
    assert f"({place})" in README.split("## Where to go next")[1]
