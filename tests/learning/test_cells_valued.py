"""Cells that the rows choose are worth as much as the best cut in hindsight, valued in the simulator of the tumor."""

import numpy as np
import pytest

import certeq
from certeq.worlds.tumor_model import TumorModel

MODEL, COLUMNS, MONTHS = TumorModel(), ("C", "P", "Q", "D"), 30


def trial(patients, seed):
    """Patients who are treated at random, as a table in the long layout."""
    random = np.random.default_rng(seed)
    now, rows = MODEL.start(patients, random), []
    for month in range(MONTHS):
        action = random.integers(0, 2, patients)
        after, reward = MODEL.step(now, action, random)
        rows.append(np.column_stack([np.arange(patients), np.full(patients, month), now, action, reward]))
        now = after
    names = ("patient", "month", *COLUMNS, "action", "reward")
    table = dict(zip(names, np.concatenate(rows).T, strict=True))
    return table | {name: table[name].astype(int) for name in ("patient", "month", "action")}


def worth(table, **said):
    """What following the advice is worth to new patients; where there is none, a coin decides."""
    policy = certeq.learn(certeq.read(table, ends="never", **said)).policy
    random, total = np.random.default_rng(123), 0.0
    now = MODEL.start(2000, random)
    for month in range(MONTHS):
        advised = policy.apply(dict(zip(COLUMNS, now.T, strict=True))).action
        coin = random.integers(0, 2, 2000)
        action = np.where(advised < 0, coin, np.array([*map(int, policy.action_names), 0])[advised])
        now, reward = MODEL.step(now, action, random)
        total += 0.99**month * float(reward.mean())
    return total


@pytest.mark.slow
@pytest.mark.parametrize("patients", [50, 200])
def test_the_default_is_within_5_percent_of_the_best_number_of_cells_in_hindsight(patients):
    trials = [trial(patients, seed) for seed in range(3)]
    chosen = np.mean([worth(table) for table in trials])
    fixed = {cells: np.mean([worth(table, bins=cells) for table in trials]) for cells in (2, 3, 4, 5)}
    assert chosen >= 0.95 * max(fixed.values()), (chosen, fixed)
    assert chosen > fixed[2]  # or there would be nothing to choose
