"""How the command line behaves: here within one process; through real terminals in tests/cli and trust."""

import io
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import typer

from certeq.base import manners
from certeq.cli import _polite

FULL = Path("/dev/full")


@pytest.fixture
def left(monkeypatch):
    """Whoever would leave, stays, and is noted; the threads that listen are gone before anybody can leave again."""
    notes, before = [], set(threading.enumerate())
    monkeypatch.setattr(manners, "leave", lambda code=130: notes.append(code))
    yield notes
    for thread in set(threading.enumerate()) - before:
        thread.join(30)


@pytest.fixture
def usual():
    """Ctrl-C does what it does in a fresh process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_first_interrupt_stops_the_work_and_the_second_ends_the_process(usual, left):
    with manners.interrupts(work=True):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert left == []
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert 130 in left
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_library_makes_of_an_interrupt_is_an_interrupt(usual, capsys):
    """Modules in C++ that are stopped while they load raise an ImportError instead."""

    def verb():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None

    with pytest.raises(typer.Exit) as left:
        _polite(verb)()
    assert left.value.exit_code == 130
    assert capsys.readouterr().err.strip() == manners.STOPPED


def test_a_thread_hears_the_second_interrupt_while_the_first_is_not_yet_answered(usual, left):
    with manners.interrupts(work=False):
        signal.signal(signal.SIGINT, lambda *_: None)  # as if the main thread were too busy to answer
        signal.raise_signal(signal.SIGINT)
        until = time.monotonic() + 30
        while not left and time.monotonic() < until:
            time.sleep(0.01)
    assert left


def test_without_work_the_first_interrupt_ends_the_process(usual, left):
    with manners.interrupts(work=False), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert 130 in left


def test_who_decided_otherwise_about_interrupts_is_left_in_peace(left):
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        with manners.interrupts(work=True):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (heard, left) == ([1], [])


def test_another_thread_does_not_meddle_with_interrupts():
    before, seen = signal.getsignal(signal.SIGINT), []

    def work():
        with manners.interrupts(work=True):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_leaving_says_so_once_and_gives_the_code(monkeypatch):
    said = []
    monkeypatch.setattr(os, "write", lambda stream, text: said.append((stream, text)))
    monkeypatch.setattr(os, "_exit", lambda code: said.append(code))
    manners.leave(7)
    [(stream, text), code] = said
    assert (stream, code) == (2, 7)
    assert manners.STOPPED.encode() in text


@pytest.mark.skipif(not FULL.exists(), reason="there is no full device here")
def test_words_for_a_full_disk_are_lost_and_nothing_else():
    with FULL.open("w") as full:
        stream = manners.Tolerant(full)
        stream.writelines(["one\n", "two\n"])
        stream.flush()
        assert stream.write("three\n") == 6
        stream.flush()
        assert stream.name == "/dev/full"


def test_letters_that_a_stream_lacks_are_written_as_their_numbers():
    inner = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    stream = manners.Tolerant(inner)
    stream.write("γ = .9")
    stream.flush()
    assert inner.buffer.getvalue() == b"\\u03b3 = .9"


def test_the_streams_are_as_before_afterwards(monkeypatch):
    real, other = io.TextIOWrapper(io.BytesIO(), encoding="ascii"), io.StringIO()
    monkeypatch.setattr(sys, "stdout", real)
    monkeypatch.setattr(sys, "stderr", other)
    with manners.streams():
        assert isinstance(sys.stdout, manners.Tolerant)
        assert sys.stderr is other
        print("≥")
    assert sys.stdout is real
    assert real.buffer.getvalue() == b"\\u2265\n"


def test_a_closed_stream_is_opened_onto_nothing(monkeypatch):
    opened = []

    def seen(number):
        if number == 1:
            raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", seen)
        patch.setattr(os, "open", lambda *what: opened.append(what))
        manners.open_streams()
    assert opened == [(os.devnull, os.O_RDWR)]


@pytest.mark.parametrize(("words", "code"), [(["--version"], 0), (["lern"], 2)])
def test_the_module_runs_the_command_line_and_gives_its_exit_code(words, code, usual, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["certeq", *words])
    monkeypatch.setattr(manners, "_own", [])  # this process stays that of the tests
    with pytest.raises(SystemExit) as leaving:
        runpy.run_module("certeq", run_name="__main__")
    assert leaving.value.code == code
    said = capsys.readouterr()
    assert ("certeq" in said.out) == (code == 0)


HUSHED = """
import os, sys
from contextlib import nullcontext
from certeq.base.doors import door
from certeq.base.manners import streams
with streams() if sys.argv[1] == "ours" else nullcontext():
    with door("a file"), door("a column"):
        os.write(2, b"panicked\\n")
        print("we", file=sys.stderr)
    os.write(2, b"later\\n")
os.write(2, b"after\\n")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("whose", "said"), [("ours", "we\nlater\nafter\n"), ("theirs", "panicked\nwe\nlater\nafter\n")]
)
def test_what_a_parser_says_before_it_gives_up_is_heard_in_other_peoples_processes_alone(whose, said):
    done = subprocess.run([sys.executable, "-c", HUSHED, whose], capture_output=True, text=True, check=True)
    assert done.stderr == said


CLOSING = """
import signal, sys, threading
from certeq.base.manners import interrupts, streams

with streams(), interrupts(work=True):
    try:
        if sys.argv[1] == "stopped":
            signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        pass
    one = type("One", (), {"__del__": lambda self: 1 / 0})()
    del one
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("way", "times"), [("stopped", 0), ("going on", 2)])
def test_once_stopped_nothing_is_said_of_what_was_closed_half_way(way, times):
    done = subprocess.run([sys.executable, "-c", CLOSING, way], capture_output=True, text=True, check=True)
    assert done.stderr.count("ZeroDivisionError") == times
