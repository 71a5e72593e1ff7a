"""Make the files that are kept for ever: ``python tests/trust/keep_policies.py`` adds those that are not there.

Each policy is kept with rows and the advice that the certeq which wrote it gave on them, each file of counts with the
numbers in it. A later certeq must say the same; so a file is never made again, not even when this program would now
make another one.
"""

import datetime
import json
import tempfile
from pathlib import Path

import numpy as np

import certeq
from certeq import Batch, learn, read
from certeq.data.counting import count, tallied
from certeq.learning.policy_file import VERSION

FOLDER = Path(__file__).parents[1] / "data" / "policies"
COUNTS = Path(__file__).parents[1] / "data" / "counts"


def rows(seed, n_episodes=12, length=8):
    """Decisions about patients: columns of every kind a state can be made of."""
    rng = np.random.default_rng(seed)
    n = n_episodes * length
    start = datetime.date(2024, 1, 31)
    return {
        "patient": np.repeat(np.arange(n_episodes), length).tolist(),
        "time": np.tile(np.arange(length), n_episodes).tolist(),
        "ward": rng.choice(["north", "south", 'größe, "x"', "=1+1"], n).tolist(),
        "stage": rng.integers(1, 4, n).tolist(),
        "smoker": (rng.random(n) < 0.4).tolist(),
        "since": [str(start + datetime.timedelta(days=int(d) * 29)) for d in rng.integers(0, 3, n)],
        "grade": rng.choice([0.5, 1.5, 2.5], n).tolist(),
        "age": rng.normal(60, 12, n).round(2).tolist(),
        "pressure": rng.normal(120, 15, n).round(1).tolist(),
        "drug": rng.choice(["none", "low", "high"], n).tolist(),
        "reward": rng.normal(size=n).round(3).tolist(),
    }


def unseen():
    """Rows such as nobody has seen: unknown labels, blanks, values far outside."""
    strange = {"ward": "east", "stage": 9, "smoker": None, "since": "2031-05-05", "grade": 7.5}
    return [
        {name: strange.get(name, 1e9) for name in ("ward", "stage", "smoker", "since", "grade", "age", "pressure")},
        {"ward": "north", "stage": 1, "smoker": True, "since": "2024-01-31", "grade": 0.5, "age": None, "pressure": -5},
    ]


KEPT = {
    "labels": ({"state": "ward"}, {}),
    "integers": ({"state": "stage", "bins": {"stage": "labels"}}, {}),
    "booleans": ({"state": "smoker"}, {}),
    "dates": ({"state": "since"}, {}),
    "fractions": ({"state": "grade", "bins": {"grade": "labels"}}, {}),
    "quantiles": ({"state": "age", "bins": {"age": "quantile:4"}}, {}),
    "edges": ({"state": "age", "bins": {"age": "edges:45,60,72.5"}}, {}),
    "clusters": ({"state": ["age", "pressure"], "bins": {"age": "kmeans:5", "pressure": "kmeans:5"}}, {}),
    "mixed": ({"state": ["ward", "smoker", "age"], "bins": {"age": "quantile:2"}}, {}),
    "horizon": ({"state": ["stage"], "bins": {"stage": "labels"}}, {"horizon": 4, "discount": 1.0}),
    "rarely-tried": ({"state": ["ward", "stage"], "bins": {"stage": "labels"}}, {"min_visits": 5}),
    "two-part-actions": ({"state": "stage", "action": ["drug", "smoker"], "bins": {"stage": "labels"}}, {}),
    "unregularized": ({"state": "ward"}, {"regularizer": "none", "unvisited": "uniform"}),
    "discount": ({"state": "ward"}, {"regularizer": "discount", "planning_discount": 0.5}),
    "expert": ({"state": "smoker"}, {"regularizer": "expert_prior", "magnitude": 3.0, "target": "rows"}),
    "evidence": ({"state": ["ward", "stage"], "bins": {"stage": "labels"}}, {"regularizer": "evidence"}),
}


def make(name):
    """A policy and the table that it was learned from."""
    reading, learning = KEPT[name]
    table = rows(sorted(KEPT).index(name))
    told = {"action": "drug", "reward": "reward", "episode": "patient", "time": "time"} | reading
    batch = read(table, **told)
    learning = dict(learning)
    if learning.get("target") == "rows":
        learning["target"] = np.full((batch.n_states, batch.n_actions, batch.n_states), 1 / batch.n_states)
    return learn(batch, **learning).policy, table


def without_table():
    """A policy of states that never were columns."""
    rng = np.random.default_rng(5)
    state, action, then = rng.integers(3, size=40), rng.integers(2, size=40), rng.integers(3, size=40)
    batch = Batch(state, action, then, 3, 2, reward=rng.normal(size=40))
    return learn(batch).policy, {"state": [0, 1, 2, 1]}


def keep(name, policy, table):
    """Write a policy and its advice, unless they are there."""
    path = FOLDER / f"v{VERSION}-{name}.json"
    if path.exists():
        return
    columns = {column: list(table[column]) for column in policy.recipe.column_names}
    for row in unseen() if "state" not in columns else ():
        for column, values in columns.items():
            values.append(row[column])
    n = len(next(iter(columns.values())))
    step = None if policy.horizon is None else [i % (policy.horizon + 2) for i in range(n)]
    advice = policy.apply(columns, step=step)
    told = {
        "certeq": certeq.__version__,
        "rows": columns,
        "step": step,
        "state": [policy.state_names[s] if s >= 0 else None for s in advice.state],
        "action": policy.act(columns, step=step),
        "visits": advice.visits.tolist(),
    }
    policy.save(path)
    (FOLDER / f"v{VERSION}-{name}.advice.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


COUNTED = {
    "labels": {"state": "ward", "next_state": "next_ward"},
    "mixed": {
        **{"state": ["stage", "smoker", "age"], "next_state": ["next_stage", "next_smoker", "next_age"]},
        **{"done": "done", "bins": {"age": "edges:45,60,72.5"}},
    },
    "dates-without-rewards": {"state": "since", "next_state": "next_since", "reward": False},
}


def counted(name):
    """Counts of rows, each with its own next state; the last of each episode is an end."""
    import polars as pl

    columns = rows(40)
    for column in ("ward", "stage", "smoker", "since", "age"):
        columns[f"next_{column}"] = [*columns[column][1:], columns[column][0]]
    columns["done"] = [time == 7 for time in columns["time"]]
    frame = pl.DataFrame(columns).with_columns(pl.col("since", "next_since").str.to_date())
    with tempfile.TemporaryDirectory() as place:
        frame.write_parquet(Path(place) / "rows.parquet")
        return count(Path(place) / "rows.parquet", **({"action": "drug", "reward": "reward"} | COUNTED[name]))


def numbers(found):
    """All that a file of counts tells, as plain values."""
    rewards = found.rewards
    return {
        "states": list(found.state_names),
        "actions": list(found.action_names),
        "counts": found.counts.transitions.tolist(),
        "ended": None if found.counts.ended is None else found.counts.ended.tolist(),
        "total": None if rewards is None else (rewards.total * rewards.size).tolist(),
        "earned": None if rewards is None else (rewards.earned * rewards.size).tolist(),  # since version 2
        "range": None if rewards is None else list(found.reward_range),
        "rows": found.rows,
        "fingerprint": found.fingerprint,
    }


def keep_counts(name):
    """Write a file of counts and the numbers in it, unless they are there."""
    path = COUNTS / f"v{tallied.VERSION}-{name}.npz"
    if not path.exists():
        found = counted(name)
        found.save(path)
        path.with_suffix(".json").write_text(json.dumps(numbers(found), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kept in COUNTED:
        keep_counts(kept)
    for kept in KEPT:
        keep(kept, *make(kept))
    keep("numbered", *without_table())
