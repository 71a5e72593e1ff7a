"""What the README shows is what runs."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from certeq import REGULARIZERS
from certeq.cli import app

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.S)
COMMANDS = re.findall(r"uv run certeq ([^\n`]+)", README)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_python_in_the_readme_runs(snippet, capsys):
    exec(compile(snippet, "README.md", "exec"), {})
    assert "loses" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_in_the_readme_name_verbs_and_options_that_exist(command):
    verb, *words = shlex.split(command)
    told = CliRunner().invoke(app, [verb, "--help"])
    assert told.exit_code == 0
    for word in words:
        if word.startswith("-"):
            assert word in told.output


def test_the_readme_lists_every_regularizer():
    assert set(re.findall(r"^\| `(\w+)`", README, re.M)) == set(REGULARIZERS)
