"""Random models and counts for the tests. Hypothesis draws sizes and a seed, NumPy fills the arrays: quick to draw."""

import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from certeq.data.counts import Counts

SEEDS = st.integers(0, 2**32 - 1)
WEIGHTS = st.sampled_from([0.0, 1.0]) | st.floats(1e-6, 1)
SHAPES = st.sampled_from([(), (1,), (3,), (2, 3)])  # all of these broadcast with one another


class Model(NamedTuple):
    """A known decision problem as plain arrays."""

    transition: np.ndarray  # (..., S, A, S)
    reward: np.ndarray  # (..., S, A)
    discount: float


def random_rows(rng: np.random.Generator, shape: tuple[int, ...], *, ends: bool = False) -> np.ndarray:
    """Distributions along the last axis, some entries zero, some rows deterministic; with ``ends`` some lack mass."""
    draws = rng.random(shape) * (rng.random(shape) < rng.choice([0.3, 0.7, 1.0]))
    certain = np.eye(shape[-1])[rng.integers(shape[-1], size=shape[:-1])]
    total = draws.sum(axis=-1, keepdims=True)
    rows = np.where(total > 0, draws / np.where(total > 0, total, 1), certain)
    if ends:
        rows = rows * np.where(rng.random(shape[:-1]) < 0.5, rng.choice([0.0, 0.5, 0.9], size=shape[:-1]), 1)[..., None]
    return rows


def random_model(
    seed: Any, S: int, A: int, *, batch: tuple[int, ...] = (), ends: bool = False, discount: float = 0.9
) -> Model:
    """A model with rewards from U(-1, 1)."""
    rng = np.random.default_rng(seed)
    return Model(random_rows(rng, (*batch, S, A, S), ends=ends), rng.uniform(-1, 1, (*batch, S, A)), discount)


def random_counts(seed: Any, S: int, A: int, *, batch: tuple[int, ...] = (), ended: bool = False) -> Counts:
    """Small counts: unvisited pairs, pairs visited once and pairs that look certain are all common.

    Half of them have positions, on a line or in a plane, in any order and perhaps with gaps.
    """
    rng = np.random.default_rng(seed)
    visits = rng.choice([0, 1, 2, 5, 20], size=(*batch, S, A))
    outcomes = rng.multinomial(visits, random_rows(rng, (*batch, S, A, S + ended)))
    place = rng.permutation(S + 1)[:S]
    positions = [None, None, place, np.stack(np.divmod(place, 2), axis=1)][rng.integers(4)]
    return Counts(outcomes[..., :S], outcomes[..., S] if ended else None, positions=positions)


def models(**given: st.SearchStrategy[Any]) -> st.SearchStrategy[Model]:
    """Models of up to five states and four actions; ``given`` replaces what is drawn."""
    drawn = {"S": st.integers(1, 5), "A": st.integers(1, 4), "discount": st.floats(0, 0.99)}
    return st.builds(random_model, SEEDS, **(drawn | given))


def counts(**given: st.SearchStrategy[Any]) -> st.SearchStrategy[Counts]:
    """Counts of up to five states and four actions, with and without endings; ``given`` replaces what is drawn."""
    drawn = {"S": st.integers(1, 5), "A": st.integers(1, 4), "ended": st.booleans()}
    return st.builds(random_counts, SEEDS, **(drawn | given))


def as_sparse(counts: Counts) -> Counts:
    """The same counts of one data set as a CSR matrix."""
    S, A = counts.n_states, counts.n_actions
    return Counts(sp.csr_array(counts.transitions.reshape(S * A, S)), counts.ended, A, counts.positions)


def element(counts: Counts, index: tuple[int, ...]) -> Counts:
    """One data set of a batch."""
    ended = None if counts.ended is None else counts.ended[index]
    return Counts(counts.transitions[index], ended, positions=counts.positions)


def all_outcomes(counts: Counts) -> np.ndarray:
    """Counts with ending as a last outcome where the data have it, ``(..., S, A, N)``."""
    if counts.ended is None:
        return counts.transitions
    return np.concatenate([counts.transitions, counts.ended[..., None]], axis=-1)


def full_rows(rows: np.ndarray, N: int) -> np.ndarray:
    """Rows over the states with the chance of ending appended where N says that there is one more outcome."""
    if rows.shape[-1] == N:
        return rows
    return np.concatenate([rows, 1 - rows.sum(axis=-1, keepdims=True)], axis=-1)


# ---- whatever people might give, sensible or not ----

NUMBERS = st.integers(-3, 10) | st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(2**70), 2**70)
SCALARS = NUMBERS | st.none() | st.booleans() | st.text(max_size=6) | st.sampled_from(["A", "B", "1", "NA", "", " "])
WORDS = ("state", "action", "reward", "next_state", "episode", "time", "done", "truncated")
COLUMN_NAMES = st.sampled_from([*WORDS, "age", "id", "", "next_age"])


def columns(n: int) -> st.SearchStrategy[Any]:
    """A column of n values: of one kind, as most are, or of any."""
    kinds = [
        st.sampled_from(["A", "B", "C"]),
        st.integers(0, 3),
        st.floats(-5, 5),
        st.booleans(),
        st.dates(),
        st.datetimes(),
        SCALARS,
    ]
    return st.sampled_from(kinds).flatmap(lambda kind: st.lists(kind, min_size=n, max_size=n))


@st.composite
def tables(draw: Any) -> dict[str, Any]:
    """A dict of columns, often with the names that are looked for, now and then of several lengths."""
    n = draw(st.integers(0, 8))
    names = draw(st.lists(COLUMN_NAMES | st.text(max_size=4), max_size=7, unique=True))
    sizes = {name: n if draw(st.integers(0, 9)) else draw(st.integers(0, 8)) for name in names}
    table = {name: draw(columns(size)) for name, size in sizes.items()}
    if n and draw(st.integers(0, 3)):  # then most of it is sound
        table = {name: column for name, column in table.items() if name not in WORDS and len(column) == n}
        table |= {"state": draw(columns(n)), "action": draw(columns(n)), "time": list(range(n))}
        table["reward"] = draw(st.lists(st.floats(-5, 5), min_size=n, max_size=n))
    return table


def csv_texts() -> st.SearchStrategy[bytes]:
    """Bytes that look like CSV to some degree."""
    plain = st.sampled_from(",;\t|\"'\n\r AB01.-eé\0=")
    signs = plain | st.sampled_from(["NA", "nan", "1,", "\n1,0,A,x,1", '"', "\ufeff", "1e400"])
    body = st.lists(signs, max_size=60).map("".join)
    header = st.sampled_from(["", "episode,time,state,action,reward\n", "state;action;reward;next_state\n", "a,a\n"])
    text = st.tuples(header, body).map(lambda parts: "".join(parts).encode())
    labels = st.sampled_from(["A", "B", '"A, B"', "é", " C "])
    odd = st.sampled_from(["0", "1.5", "NA", "", "2024-01-31", "true"])
    rewards = st.sampled_from(["0", "1", "-1.5", " 3 ", "1e300"])
    rows = st.lists(st.tuples(labels, labels, rewards), min_size=2, max_size=8)
    rows = rows | st.lists(st.tuples(labels | odd, labels | odd, rewards | odd), min_size=2, max_size=8)
    lines = rows.map(lambda rows: "".join(f"1,{t},{','.join(row)}\n" for t, row in enumerate(rows)))
    sound = lines.map(lambda lines: f"episode,time,state,action,reward\n{lines}".encode())
    return text | sound | st.binary(max_size=200)


def learning_settings() -> st.SearchStrategy[dict[str, Any]]:
    """Settings of `certeq.learn`, of which some make no sense."""
    drawn = {
        "discount": st.floats(0, 1) | SCALARS,
        "regularizer": st.sampled_from(
            ["none", "discount", "uniform_prior", "evidence", "least_mse", "epsilon_greedy", ""]
        ),
        "unvisited": st.sampled_from(["exclude", "target", "uniform", "zero", "self_loop", "average", "never"]),
        "min_visits": st.integers(-1, 5) | SCALARS,
        "horizon": st.none() | st.integers(-1, 4) | SCALARS,
        "reward_by": st.sampled_from(["pair", "next_state", "row"]),
        "reward_pool": st.sampled_from(["none", "state", "overall", "all"]),
        "strength": SCALARS,
        "magnitude": SCALARS,
        "planning_discount": SCALARS,
    }
    return st.lists(st.sampled_from(sorted(drawn)), max_size=4, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: drawn[name] for name in names})
    )


@st.composite
def spoiled(draw: Any, value: Any) -> Any:
    """The same plain value (of lists, dicts and scalars) with a few places replaced, removed, repeated or added."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        parent, key = value, None
        while isinstance(parent, dict | list) and parent:
            keys = sorted(parent) if isinstance(parent, dict) else range(len(parent))
            key = draw(st.sampled_from(list(keys)))
            if not isinstance(parent[key], dict | list) or not parent[key] or draw(st.integers(0, 3)) == 0:
                break
            parent = parent[key]
        if key is None:
            return value
        how = draw(st.sampled_from(["replace", "remove", "repeat", "wrap"]))
        if how == "remove":
            del parent[key]
        elif how == "repeat" and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif how == "wrap":
            parent[key] = [parent[key]]
        else:
            parent[key] = draw(
                SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=4), SCALARS, max_size=2)
            )
    return value


@st.composite
def arrays_of_any_kind(draw: Any, *axes: int) -> Any:
    """Arrays as somebody might give them for counts, transitions or rewards: any shape, any type, any numbers.

    ``axes`` are the lengths that would be right, which are drawn half of the time.
    """
    shape = axes if axes and draw(st.booleans()) else tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
    rng = np.random.default_rng(draw(SEEDS))
    kind = draw(st.sampled_from(["counts", "rows", "floats", "strange", "text", "objects", "zeros"]))
    if kind == "counts":
        return rng.integers(-1 if draw(st.booleans()) else 0, 5, size=shape)
    if kind == "rows" and shape:
        return random_rows(rng, shape) if shape[-1] else np.zeros(shape)
    if kind == "strange":
        return rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, 1.0], size=shape)
    if kind == "text":
        return np.full(shape, "a")
    if kind == "zeros":
        return np.zeros(shape)
    return np.full(shape, None) if kind == "objects" else rng.normal(size=shape)
