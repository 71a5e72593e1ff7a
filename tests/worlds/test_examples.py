import csv
import subprocess
import sys

import pytest

from certeq.base.errors import InputError
from certeq.worlds import examples


@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_every_example_is_the_one_that_would_be_made_anew(name):
    assert examples.path(name).read_bytes() == examples.EXAMPLES[name]().encode()


def test_the_examples_are_small():
    assert sum(examples.path(name).stat().st_size for name in examples.EXAMPLES) < 150_000


def test_the_tumor_trial_has_fifty_patients_and_thirty_months_of_decisions():
    with examples.path().open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "patient",
        "month",
        "drug_concentration",
        "proliferative_mm",
        "quiescent_mm",
        "damaged_mm",
        "treatment",
        "reward",
    ]
    assert [(int(row["patient"]), int(row["month"])) for row in rows] == [
        (p, m) for p in range(1, 51) for m in range(30)
    ]
    assert {row["treatment"] for row in rows} == {"none", "TMZ"}
    assert "-0.0" not in {value for row in rows for value in row.values()}


@pytest.mark.slow
def test_they_can_be_made_anew_from_the_command_line(tmp_path):
    command = [sys.executable, "-m", "certeq.worlds.examples", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(tmp_path / name) for name in examples.EXAMPLES]
    assert (tmp_path / "tumor_trial.csv").read_bytes() == examples.path().read_bytes()


def test_an_unknown_example_is_answered_with_the_nearest_name():
    with pytest.raises(InputError, match=r"no example named 'tumor.csv'. Did you mean 'tumor_trial.csv'"):
        examples.path("tumor.csv")
