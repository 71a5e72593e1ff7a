"""The command line: one verb per job. Heavy libraries are imported inside the verbs, so that ``--help`` is quick."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import certeq
from certeq.cli.apply import apply
from certeq.cli.learn import learn
from certeq.cli.reproduce import reproduce
from certeq.cli.simulate import simulate
from certeq.errors import InputError

app = typer.Typer(
    name="certeq",
    help="Logged decisions in, a defensible policy out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(learn)
app.command()(apply)
app.command()(simulate)
app.command()(reproduce)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"certeq {certeq.__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and leave.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Logged decisions in, a defensible policy out."""


def main() -> None:
    """Run the command line; what is the input's fault ends with one paragraph and exit code 2."""
    try:
        app()
    except InputError as error:
        typer.echo(f"Error: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:  # whoever was reading has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("Stopped. Nothing was written.", err=True)
        sys.exit(130)
