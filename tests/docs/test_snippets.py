"""What the documentation shows is what runs, and what it says comes out is what comes out."""

import importlib
import re
import subprocess
import tomllib

import docs_pages
import docs_runs
import pytest
import typer

from certeq.cli import app

PAGES = [path for path in docs_pages.pages() if docs_pages.runnable(path)]
GROUPS = tomllib.loads((docs_pages.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
NOT_RUN = {  # which snippets of which page are not run, and why; the options of their commands are looked up instead
    ("README.md", "installs"),
    ("README.md", "runs the whole suite"),
    ("CONTRIBUTING.md", "runs the whole suite"),
    ("docs/tutorial.md", "installs"),
    ("docs/how-to/average-reward.md", "needs your file"),
    ("docs/how-to/elapsed-time.md", "needs your file"),
    ("docs/how-to/keep-limits.md", "needs your file"),
    ("docs/how-to/run-in-a-container.md", "needs Docker"),
    ("docs/how-to/sweep-on-a-cluster.md", "installs"),
    ("docs/how-to/sweep-on-a-cluster.md", "needs a cluster"),
}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=docs_pages.name_of)
def test_every_snippet_runs_and_says_what_the_page_says(page, tmp_path, monkeypatch):
    with docs_runs.workplace(tmp_path, monkeypatch):
        docs_runs.run_page(page)


def test_snippets_that_are_not_run_are_those_listed_here():
    found = [(path, block) for path in docs_pages.everything() for block in docs_pages.blocks(path)]
    code = [(path, block) for path, block in found if block.kind in docs_pages.RUN]
    assert len(code) > 30
    assert {(docs_pages.name_of(path), block.skip) for path, block in code if block.skip} == NOT_RUN
    for path, block in found:
        assert block.kind in (*docs_pages.RUN, *docs_pages.SHOWN), f"{path}, line {block.line}: what is {block.kind!r}?"


def shell(page):
    """All shell code of a page, run or not: in fences, files, indented blocks and sentences."""
    for block in docs_pages.blocks(page):
        if block.kind == "sh" or (block.file and block.code.startswith("#!/bin/bash")):
            yield block.code
    yield from docs_pages.indented(page)
    yield from (span for span in docs_pages.spans(page) if re.match(r"(uv run|certeq|dask) [\w-]", span))


def parser_of(program, verb):
    """What reads the words after a verb."""
    if program == "dask":
        command = importlib.import_module(f"distributed.cli.dask_{verb}").main
    else:
        command = typer.main.get_command(app).commands[verb]
    return command.make_parser(command.context_class(command))


@pytest.mark.parametrize("page", docs_pages.everything(), ids=docs_pages.name_of)
def test_every_command_anywhere_has_a_verb_and_options_that_exist(page):
    for code in shell(page):
        for program, *words in docs_pages.calls(code):
            if words and words[0] not in ("VERB", "--version"):
                verb, *rest = words
                parser_of(program, verb).parse_args([*rest, "value"])  # in a sentence an option may lack its value


@pytest.mark.parametrize("page", docs_pages.everything(), ids=docs_pages.name_of)
def test_every_file_module_and_group_that_uv_runs_is_there(page):
    for line in (line for code in shell(page) for line in docs_pages.commands(code) if "uv run" in line):
        assert set(re.findall(r"--group (\w+)", line)) <= set(GROUPS), line
        for name in re.findall(r"(?<= )(?:docs|tests|src)/\S+", line.split("#")[0]):
            assert (docs_pages.ROOT / name).exists(), line
        for module in re.findall(r"python -m ([\w.]+)", line):
            path = docs_pages.ROOT / module.replace(".", "/")
            inside = docs_pages.ROOT / "src" / module.replace(".", "/")
            assert any(each.is_dir() or each.with_suffix(".py").exists() for each in (path, inside)), line


def test_every_script_for_a_cluster_is_a_script():
    scripts = [block for page in PAGES for block in docs_pages.blocks(page) if block.code.startswith("#!/bin/bash")]
    assert scripts
    for block in scripts:
        done = subprocess.run(["bash", "-n"], input=block.code, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_a_line_that_was_not_said_is_found():
    assert docs_pages.missing_line("a  b\n...\nd e ...", "a b\nc\nd e f") is None
    assert docs_pages.missing_line("a b\nd", "a b\nc") == "d"
    assert docs_pages.missing_line("c\na", "a\nc") == "a"


def test_a_call_is_found_wherever_it_stands():
    code = """
    net="--port 0"
    ssh one 'dask scheduler --host one' &
    dask worker $net --nthreads 1 &
    srun dask worker x && uv run certeq learn rows.csv \\
        --out there  # and so on
    echo certeq
    """
    assert docs_pages.calls(code) == [
        ["dask", "scheduler", "--host", "one"],
        ["dask", "worker", "--port", "0", "--nthreads", "1"],
        ["dask", "worker", "x"],
        ["certeq", "learn", "rows.csv", "--out", "there"],
    ]


@pytest.mark.parametrize("command", ["pip install certeq", "uv sync", "certeq lern"])
def test_a_command_that_nobody_knows_how_to_run_is_an_error(command):
    with pytest.raises(AssertionError, match=command):
        docs_runs.run_command(command, 0, "a page")


def test_an_option_that_is_not_there_is_found():
    with pytest.raises(Exception, match=r"No such option:? '?--bin"):
        parser_of("certeq", "learn").parse_args(["rows.csv", "--bin", "3"])
