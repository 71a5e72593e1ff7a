"""Linear algebra with one thread, and with as many as before once that is over."""

import pytest

from certeq.base import threads


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
