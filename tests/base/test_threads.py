"""Pieces of a range, shared among threads that stay; and linear algebra with one thread."""

import functools
import os
import signal
import subprocess
import sys
from itertools import pairwise
from threading import Event, get_ident

import pytest

from certeq.base import threads
from certeq.base.threads import helpers, run


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("count", "grain"), [(0, 1), (1, 1), (7, 1), (100, 1), (100, 60), (100, 7), (3, 8)])
def test_pieces_cover_everything_once_and_answer_in_order(threads, count, grain):
    found = run(lambda start, stop: list(range(start, stop)), count, grain=grain, threads=threads)
    assert [number for piece in found for number in piece] == list(range(count))


def test_pieces_begin_at_multiples_of_the_grain_and_are_no_smaller():
    found = run(lambda start, stop: (start, stop), 1000, grain=64, threads=2)
    assert all(start % 64 == 0 and (stop - start >= 64 or stop == 1000) for start, stop in found)


def test_each_share_is_cut_into_pieces_that_become_smaller_and_who_asks_has_a_little_more():
    sizes = [stop - start for start, stop in run(lambda *piece: piece, 10_000, threads=2)]
    asks = sizes[: next(i for i, (one, after) in enumerate(pairwise(sizes), 1) if after > one)]
    other = sizes[len(asks) :]
    for share in (asks, other):
        assert share == sorted(share, reverse=True)
        assert share[0] == 3 * sum(share) // 4
        assert share[-1] <= sum(share) // 32
    assert sum(asks) == 5000 + 10_000 // 32


def test_who_is_done_goes_on_with_the_share_of_another():
    asked, came, done = get_ident(), Event(), Event()

    def work(start, stop):
        if get_ident() != asked:
            came.set()
            assert done.wait(60)
        else:
            assert came.wait(60)
            if stop == 100:
                done.set()
        return get_ident()

    found = run(work, 100, threads=2)
    assert len(found) - found.count(asked) == 1


def test_nobody_waits_for_helpers_who_come_late():
    seen, arrive = [], Event()
    for _ in range(max(len(helpers().threads), 1)):
        helpers().call(arrive.wait, 1)
    run(lambda start, stop: seen.extend(range(start, stop)), 100, threads=2)
    assert sorted(seen) == list(range(100))
    arrive.set()


def test_nothing_is_left_running_behind_an_error():
    finished = []

    def work(start, stop):
        if start == 0:
            raise KeyboardInterrupt
        for _ in range(1000):
            pass
        finished.append(start)

    with pytest.raises(KeyboardInterrupt):
        run(work, 100, threads=2)
    ended = len(finished)
    run(lambda start, stop: None, 100, threads=2)
    assert len(finished) == ended


def test_an_error_of_a_helper_is_heard():
    asked, came = get_ident(), Event()

    def work(start, stop):
        if get_ident() == asked:
            assert came.wait(60)
        else:
            came.set()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        run(work, 100, threads=2)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that interrupt")
def test_interrupts_at_any_moment_are_heard_and_nothing_hangs():
    """Thousands of them, in a process of its own: one that hangs is a failure, and not a suite that never ends."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


INTERRUPTED = """
import random, signal, time
from certeq.base.threads import run

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
end, heard = time.time() + 2, 0

while time.time() < end:
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-5, 4e-4))
        try:
            for _ in range(20):
                assert sum(run(lambda start, stop: stop - start, 100, threads=2)) == 100
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        heard += 1
print(heard)
"""


def test_threads_that_cannot_be_started_are_done_without(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "helpers", functools.cache(threads.Helpers))
    monkeypatch.setattr(threads.Thread, "start", refuse)
    found = run(lambda start, stop: list(range(start, stop)), 100, threads=3)
    assert [number for piece in found for number in piece] == list(range(100))
    assert threads.helpers().threads == []


def test_no_more_helpers_are_started_than_are_needed(monkeypatch):
    monkeypatch.setattr(threads, "helpers", functools.cache(threads.Helpers))
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    for several in (2, 3, 2):
        run(lambda start, stop: None, 100, threads=several)
    assert len(threads.helpers().threads) == 2


def test_a_piece_may_share_its_own_work():
    found = run(lambda start, stop: sum(run(lambda a, b: b - a, 20, threads=3)), 12, threads=3)
    assert found == [20] * len(found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_helpers_of_its_own():
    run(lambda start, stop: None, 100, threads=2)
    here, (reading, writing) = helpers(), os.pipe()
    if not (child := os.fork()):
        os.write(writing, bytes([helpers() is not here, sum(run(lambda start, stop: stop - start, 16, threads=2))]))
        os._exit(0)
    os.waitpid(child, 0)
    assert list(os.read(reading, 100)) == [True, 16]


def test_linear_algebra_has_one_thread_meanwhile_and_then_as_many_as_before():
    blas = threads._openblas()
    if blas is None:
        pytest.skip("this NumPy brings no OpenBLAS of its own")
    ask, tell = blas
    before = ask()
    try:
        tell(2)
        with threads.plain_algebra():
            with threads.plain_algebra():
                assert ask() == 1
            assert ask() == 1
        assert ask() == 2
    finally:
        tell(before)


def test_who_has_another_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(threads, "_openblas", lambda: None)
    with threads.plain_algebra():
        pass
