import csv
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import certeq
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


def test_in_the_bundled_trial_it_pays_to_plan_ahead():
    """In the simulator the advice earns more than the toss of a coin and more than looking one month ahead."""
    batch = certeq.read(examples.path())

    def advised(discount):
        policy = certeq.learn(batch, discount=discount, draws=0).policy
        dose = np.append(policy.first.actions == policy.action_names.index("TMZ"), False)  # none where nothing is known
        return lambda measured: dose[policy.recipe.encode(pl.DataFrame(measured))]

    def earned(treat):
        return examples.tumor_value(treat, 150, patients=100, rng=1)

    ahead, shortsighted = earned(advised(0.99)), earned(advised(0))
    assert ahead > earned(lambda measured: 0.5) + 10
    assert ahead > shortsighted + 20
