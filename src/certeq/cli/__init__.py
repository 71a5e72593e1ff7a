"""The command line: one verb per job. Heavy libraries are imported inside the verbs, so that ``--help`` is quick."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError
from typing import Annotated, Any

import typer

import certeq
from certeq.base.doors import short_of_threads
from certeq.base.errors import InputError
from certeq.base.limits import ROOM, cramped
from certeq.base.manners import farewell, interrupts, say
from certeq.cli.apply import apply
from certeq.cli.audit import audit
from certeq.cli.check import check
from certeq.cli.compare import compare
from certeq.cli.count import count
from certeq.cli.export import export
from certeq.cli.learn import learn
from certeq.cli.options import Verb, Verbs, first_sentence, listing, paragraph
from certeq.cli.reproduce import reproduce
from certeq.cli.simulate import simulate

GONE = (
    "A process that worked for this one, or the cluster, is gone, probably because it had too little memory. No "
    "partial results were written. Try again, with fewer --workers if there are several."
)
CROWDED = (
    "This machine does not let the process start more threads or processes, or open more files. No partial results "
    "were written. Raise the "
    "limit (ulimit -u, ulimit -n), or take fewer threads with CERTEQ_THREADS and POLARS_MAX_THREADS."
)
NARROW = (
    f"There is not enough memory for this: libraries take {ROOM >> 30} GiB of addresses, of which they use little, and "
    "the limit is lower (ulimit -v). No partial results were written. Raise it, or limit the memory by a control group."
)
# Linear systems here are small: threads inside the linear algebra would wait for one another, and change last digits.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

app = typer.Typer(
    name="certeq",
    cls=Verbs,
    help="Logged decisions in, a defensible policy out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _polite(verb: Callable[..., None]) -> Callable[..., None]:
    """Let a verb end with a paragraph and exit code 2 where the input is at fault, with 130 where it is stopped."""

    @functools.wraps(verb)
    def run(*words: Any, **options: Any) -> None:
        try:
            with interrupts(work=True) as stopped:
                try:
                    verb(*words, **options)
                except Exception as error:  # a library may have made it of a Ctrl-C
                    if stopped() and not isinstance(error, typer.Exit):
                        raise KeyboardInterrupt from None
                    raise
        except InputError as error:
            say(f"Error: {paragraph(error)}")
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            say(farewell())
            raise typer.Exit(130) from None
        except MemoryError as error:
            say(f"Error: There is not enough memory for this. {paragraph(error)}".rstrip())
            raise typer.Exit(1) from None
        except (BrokenExecutor, CancelledError):
            say(f"Error: {GONE}")
            raise typer.Exit(1) from None
        except BaseException as error:
            if not short_of_threads(error) and not cramped():
                raise
            say(f"Error: {NARROW if cramped() else CROWDED}")
            raise typer.Exit(1) from None

    return run


def _regularizers() -> dict[str, str]:
    from certeq.regularizers import REGULARIZERS

    return {name: first_sentence(function) for name, function in REGULARIZERS.items()}


def _environments() -> dict[str, str]:
    from certeq.worlds import ENVIRONMENTS

    return {name: first_sentence(inspect.getmodule(build)) for name, build in ENVIRONMENTS.items()}


app.command(cls=Verb)(_polite(check))
app.command(cls=listing("Regularizers", _regularizers))(_polite(learn))
app.command(cls=Verb)(_polite(apply))
app.command(cls=Verb)(_polite(export))
app.command(cls=Verb)(_polite(count))
app.command(cls=Verb)(_polite(audit))
app.command(cls=listing("Regularizers", _regularizers))(_polite(compare))
app.command(cls=listing("Environments", _environments))(_polite(simulate))
app.command(cls=Verb)(_polite(reproduce))


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"certeq {certeq.__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Logged decisions in, a defensible policy out."""


@functools.cache
def _command() -> Any:
    """All verbs with their options, put together once: that takes longer than many a verb, where several are run."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line."""
    try:
        _command()()
    except KeyboardInterrupt:  # before or after a verb
        say(farewell())
        sys.exit(130)
