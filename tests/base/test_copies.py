"""A copy of a process answers as the process itself would, and whatever happens to it, somebody answers."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import certeq
from certeq.base import copies, threads
from certeq.questions import examine
from certeq.worlds import examples

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux alone")

BEGIN = """
import os, signal, sys, time
from certeq.base import copies, manners, threads
manners.own(said=True)
known = [1, 2, 3]
"""


def run(script, **variables):
    place = os.environ | {"CERTEQ_THREADS": "4"} | variables
    command = [sys.executable, "-c", BEGIN + script]
    return subprocess.run(command, env=place, capture_output=True, text=True, check=True).stdout.split("\n")


def test_a_copy_knows_what_the_process_knows_and_tells_what_it_does():
    assert run("""
def work(say):
    say("adding")
    print("nobody reads this")
    say(threads.default_threads())
    return sum(known), os.getpid() != other
other = os.getpid()
with copies.copy(work) as made:
    print(made.result(print), threads.default_threads())
print(threads.default_threads())
""") == ["adding", "2", "(6, True) 2", "4", ""]  # fmt: skip


@pytest.mark.parametrize("work", ["1 / 0", "os.kill(os.getpid(), signal.SIGKILL)", "(x for x in known)"])
def test_a_copy_that_fails_is_lost_and_says_so(work):
    assert run(f"""
with copies.copy(lambda say: {work}) as made:
    try:
        made.result(print)
    except copies.LostError:
        print("lost")
""") == ["lost", ""]


def test_no_copy_is_made_with_one_thread_nor_of_a_process_that_is_somebody_elses():
    assert run("with copies.copy(lambda say: 1) as made: print(made)", CERTEQ_THREADS="1") == ["None", ""]
    with copies.copy(lambda say: 1) as made:
        assert made is None


def test_where_the_system_makes_no_more_processes_the_work_stays_here():
    assert run("""
def fork():
    raise BlockingIOError
os.fork = fork
opened = len(os.listdir("/proc/self/fd"))
with copies.copy(lambda say: 1) as made:
    print(made)
print(len(os.listdir("/proc/self/fd")) - opened)
""") == ["None", "0", ""]


@pytest.mark.parametrize("leaving", ["made.end()", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_copy_ends_with_whoever_made_it(leaving):
    script = f"""
with copies.copy(lambda say: time.sleep(3600)) as made:
    print(made._process, flush=True)
    {leaving}
"""
    command = [sys.executable, "-c", BEGIN + script]
    found = subprocess.run(command, env=os.environ | {"CERTEQ_THREADS": "2"}, stdout=subprocess.PIPE, text=True)
    while _runs(int(found.stdout)):
        time.sleep(0.01)


def _runs(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_who_is_free_takes_the_next_of_a_queue_and_nobody_takes_one_twice():
    assert run("""
queue = copies.Queue(["a", "b", "c"])
with copies.copy(lambda say: list(queue)) as made:
    print(sorted([*queue, *made.result(print)]))
queue.close()
""") == ["['a', 'b', 'c']", ""]


@pytest.mark.parametrize("lost", [False, True])
def test_a_report_finds_the_same_with_a_copy_without_one_and_where_one_is_lost(monkeypatch, lost):
    learned = certeq.learn(certeq.read(examples.path(), bins=2), draws=0)
    usual = examine.examine(learned, draws=20)
    told = []

    @contextmanager
    def copy(work):
        class Made:
            def result(self, notice):
                if lost:
                    raise copies.LostError
                told.append(work(notice))
                return told[0]

        yield Made()

    monkeypatch.setattr(copies, "copy", copy)
    found = examine.examine(learned, draws=20)
    assert bool(told) != lost
    assert found.fragility.to_json() == usual.fragility.to_json()
    assert found.collect.to_json() == usual.collect.to_json()
    assert found.posterior.to_json() == usual.posterior.to_json()
    assert list(found.found) == list(usual.found)
    assert found.missing == usual.missing


def test_processes_that_work_together_share_the_threads(monkeypatch):
    monkeypatch.setenv("CERTEQ_THREADS", "5")
    with threads.shared(2):
        assert threads.default_threads() == 2
    assert threads.default_threads() == 5


def test_rows_that_a_copy_reads_arrive_and_polars_is_loaded_there_alone(tmp_path):
    assert run("""
from rich.console import Console
from certeq.cli.source import read_rows
from certeq.data.request import Request
batch = read_rows(Console(quiet=True), None, Request(), 0, lambda: None)
print(len(batch), "polars" in sys.modules)
""")[:1] == ["1450 False"]
