"""Whatever is given, the answer is a result or an InputError; `python -m trust` tries far more values."""

import pytest

from trust import fuzzing


@pytest.mark.slow
@pytest.mark.parametrize("name", fuzzing.TARGETS)
def test_it_is_a_result_or_an_error_in_words(name):
    found = fuzzing.fuzz(name, 50)
    assert found.failure == ""
    assert found.tried >= 50
    assert found.refused < found.tried  # or nothing but the refusals would be tried


def test_a_fault_is_found_and_shown():
    def broken(value):
        if value > 100:
            raise ZeroDivisionError("here")

    fuzzing.TARGETS["broken"] = (fuzzing.st.integers(), broken)
    try:
        found = fuzzing.fuzz("broken", 200)
    finally:
        del fuzzing.TARGETS["broken"]
    assert found.failure.startswith("ZeroDivisionError: here")
    assert "101" in found.failure  # the smallest one
