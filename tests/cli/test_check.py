"""``certeq check``: in a terminal and on a page, with the command that works."""

import shlex
from pathlib import Path

import numpy as np
import polars as pl


def write(path="rows.csv", n=400):
    random = np.random.default_rng(0)
    rows = {
        "patient": np.repeat(np.arange(40), 10),
        "day": np.tile(np.arange(10), 40),
        "sbp": [
            None if u < 0.1 else float(x) for u, x in zip(random.random(n), random.normal(120, 15, n), strict=True)
        ],
        "drug": random.choice(["a", "b"], n).tolist(),
        "deaths": (np.arange(n) % 10 == 9) * random.integers(0, 2, n),
    }
    pl.DataFrame(rows).write_csv(path)


def test_the_command_that_is_told_works(certeq):
    write()
    done = certeq("check", "rows.csv", "--reward", "deaths")
    assert done.code == 2
    assert done.out.count("✗") == 2
    (line,) = [line for line in done.out.splitlines() if line.startswith("This would be accepted: ")]
    command = shlex.split(line.partition(": ")[2])
    assert command == ["certeq", "learn", "rows.csv", "--cost", "deaths", "--missing", "sbp=category"]
    assert certeq(*command[1:], "--out", "found").code == 0
    assert "Smaller 'deaths' is better" in done.out


def test_a_table_that_would_be_taken_is_said_to_be_and_written_as_a_page(certeq):
    write()
    words = ("--cost", "deaths", "--missing", "category", "--page", "page.html")
    done = certeq("check", "rows.csv", *words)
    assert done.code == 0, done
    assert "Next: certeq learn rows.csv --cost deaths --missing category" in done.out
    page = Path("page.html").read_text(encoding="utf-8")
    assert "These rows can be learned from as they are." in page
    assert "taken to be over at its last row" in page
    assert certeq("check", "rows.csv", *words).code == 2  # the page is there


def test_a_hostile_name_is_shown_and_not_obeyed(certeq):
    pl.DataFrame({"<script>x": [1, 2], "\x1b[31mred": [1, 2]}).write_csv("rows.csv")
    done = certeq("check", "rows.csv", "--page", "page.html")
    assert done.code == 2
    assert "\x1b" not in done.out
    assert "<script>x" not in Path("page.html").read_text(encoding="utf-8")
