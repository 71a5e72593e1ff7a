"""Random models and counts for the tests. Hypothesis draws sizes and a seed, NumPy fills the arrays: quick to draw."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from certeq.counts import Counts

SEEDS = st.integers(0, 2**32 - 1)
WEIGHTS = st.sampled_from([0.0, 1.0]) | st.floats(1e-6, 1)
SHAPES = st.sampled_from([(), (1,), (3,), (2, 3)])


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
    """Small counts: unvisited pairs, pairs visited once and pairs that look certain are all common."""
    rng = np.random.default_rng(seed)
    visits = rng.choice([0, 1, 2, 5, 20], size=(*batch, S, A))
    outcomes = rng.multinomial(visits, random_rows(rng, (*batch, S, A, S + ended)))
    return Counts(outcomes[..., :S], outcomes[..., S] if ended else None)


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
    return Counts(sp.csr_array(counts.transitions.reshape(S * A, S)), counts.ended, A)


def element(counts: Counts, index: tuple[int, ...]) -> Counts:
    """One data set of a batch."""
    return Counts(counts.transitions[index], None if counts.ended is None else counts.ended[index])


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
