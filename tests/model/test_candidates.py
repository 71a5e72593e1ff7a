"""Candidate targets: literal twins, leaving one out, impossible outcomes, and what evidence makes of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certeq import Counts, InputError, environment, plan, sampling, shrink, tally
from certeq.learning.equivalence import estimate
from certeq.model.candidates import EDGE, NAMES, candidates
from certeq.model.evidence import learn_magnitudes
from certeq.model.kernel import Rows
from strategies import SEEDS, as_sparse, counts, element, random_counts


def full(table):
    """Counts over all outcomes, ending last."""
    return table.transitions if table.ended is None else np.append(table.transitions, table.ended[..., None], axis=-1)


def written_out(rows, table):
    """Rows over all outcomes, ``(S, A, N)``."""
    S, A = table.n_states, table.n_actions
    dense = np.broadcast_to(rows.dense(), (S, A, S))
    return dense if table.ended is None else np.append(dense, 1 - dense.sum(axis=-1, keepdims=True), axis=-1)


def literal(name, table):
    """Each candidate in plain loops."""
    c = full(table)
    S, A, N = c.shape
    plain = np.full(N, 1 / N)
    rows = np.empty((S, A, N))
    for s in range(S):
        for a in range(A):
            if name == "uniform":
                rows[s, a] = plain
                continue
            if name == "self_loop":
                base = np.eye(N)[s]
            elif name == "state":
                base = sum((c[s, b] for b in range(A) if b != a), np.zeros(N))
            elif name == "marginal":
                base = c.sum(axis=(0, 1)).astype(float)
            else:
                base = (c.sum(axis=(0, 1)) > 0).astype(float)
            rows[s, a] = (1 - EDGE) * base / base.sum() + EDGE * plain if base.sum() > 0 else plain
    return rows


@pytest.mark.parametrize("name", NAMES)
@given(table=counts())
def test_rows_are_those_of_the_plain_loops(name, table):
    made = candidates(table, [name])[name]
    np.testing.assert_allclose(written_out(made.rows, table), literal(name, table), atol=1e-12)
    sparse = candidates(as_sparse(table), [name])[name]
    np.testing.assert_allclose(written_out(sparse.rows, table), literal(name, table), atol=1e-12)


@pytest.mark.parametrize("name", ["marginal", "reachable"])
@given(table=counts(S=st.integers(1, 3), A=st.integers(1, 2), ended=st.just(False)))
def test_what_comes_from_the_data_is_judged_by_the_other_rows(name, table):
    """Evidence under the candidate is evidence under rows that are made, pair by pair, without the pair's own."""
    c = full(table)
    S, A, N = c.shape
    total = c.sum(axis=(0, 1))
    rows = np.empty((S, A, N))
    for s in range(S):
        for a in range(A):
            rest = total - c[s, a]
            base = rest / max(rest.sum(), 1) if name == "marginal" else (rest > 0) / max((total > 0).sum(), 1)
            rows[s, a] = (1 - EDGE) * base + EDGE / N
    made = candidates(table, [name])[name]
    found = learn_magnitudes(table, made.rows, judged=made.judged)
    np.testing.assert_allclose(found.weight, learn_magnitudes(table, Rows(rows)).weight, atol=1e-10)


@given(table=counts(S=st.integers(1, 4)), seed=SEEDS)
def test_averaging_over_targets_is_averaging_the_models(table, seed):
    found = shrink(table, "evidence_targets")
    T = written_out(estimate(table, regularizer="none").data, table)
    rows = {name: written_out(each.rows, table) for name, each in candidates(table).items()}
    expected = np.zeros_like(T)
    for j, name in enumerate(found.details.targets):
        w = found.details.under[name].weight[..., None]
        expected += found.details.probability[j] * ((1 - w) * T + w * rows[name])
    mixed = found.weight[..., None]
    result = (1 - mixed) * T + mixed * written_out(found.target, table)
    np.testing.assert_allclose(result, expected, atol=1e-12)


@given(seed=SEEDS)
def test_impossible_outcomes_have_no_chance_under_any_candidate(seed):
    table = random_counts(seed, 4, 2, ended=True)
    rng = np.random.default_rng(seed)
    possible = (full(table) > 0) | (rng.random((4, 2, 5)) < 0.3)
    possible[..., 0] = True
    for name, made in candidates(table, possible=possible).items():
        rows = written_out(made.rows, table)
        assert (rows[~possible] < 1e-15).all(), name
        assert (rows[possible] > 0).all(), name
        np.testing.assert_allclose(rows.sum(axis=-1), 1)
        sparse = candidates(as_sparse(table), [name], possible=sp.csr_array(possible.reshape(8, 5)))[name]
        np.testing.assert_allclose(written_out(sparse.rows, table), rows, atol=1e-12)
    weight = shrink(table, "evidence_targets", possible=possible).weight
    assert ((weight > 0) & (weight <= 1)).all()


def test_an_outcome_that_happened_cannot_be_impossible():
    table = Counts(np.array([[[1, 2]], [[0, 3]]]))
    with pytest.raises(InputError, match="After state 0, action 0 state 1 followed, which possible= rules out"):
        shrink(table, possible=[[[True, False]], [[True, True]]])
    with pytest.raises(InputError, match="After state 0, action 0 state 1 followed"):
        shrink(as_sparse(table), possible=[[[True, False]], [[True, True]]])
    with pytest.raises(InputError, match="No outcome is possible after state 1, action 0"):
        shrink(table, possible=[[[True, True]], [[False, False]]])
    with pytest.raises(InputError, match="possible needs booleans of shape"):
        shrink(table, possible=[True, False, True])
    with pytest.raises(InputError, match="not both"):
        shrink(table, possible=[True, True], target=np.eye(2)[None, :1])
    with pytest.raises(InputError, match=r"no candidate target named 'marginl'\. Did you mean 'marginal'"):
        shrink(table, target="marginl")
    with pytest.raises(InputError, match="at least one candidate"):
        shrink(table, "evidence_targets", compare=[])


@given(seed=SEEDS)
def test_batches_are_compared_one_by_one(seed):
    table = random_counts(seed, 3, 2, batch=(3,), ended=True)
    together = shrink(table, "evidence_targets")
    for d in range(3):
        alone = shrink(element(table, d), "evidence_targets")
        np.testing.assert_allclose(together.weight[d], alone.weight, atol=1e-12)
        np.testing.assert_allclose(together.target.dense()[d], alone.target.dense(), atol=1e-12)


def test_the_target_that_made_the_data_wins():
    """Rows drawn around the self-loop, around one shared row, and around the state's own average are told apart."""
    rng = np.random.default_rng(5)
    S, A = 12, 3
    means = {
        "self_loop": 0.8 * np.eye(S)[:, None] + 0.2 / S + np.zeros((S, A, S)),
        "marginal": np.broadcast_to(rng.dirichlet(np.full(S, 0.5)), (S, A, S)),
        "state": np.broadcast_to(rng.dirichlet(np.full(S, 0.3), size=(S, 1)), (S, A, S)),
    }
    for name, mean in means.items():
        rows = np.array([[rng.dirichlet(20 * mean[s, a] + 1e-3) for a in range(A)] for s in range(S)])
        few = 4 if name == "self_loop" else 30  # with many rows the other actions tell of the self-loop as well
        table = Counts(np.array([[rng.multinomial(few, rows[s, a]) for a in range(A)] for s in range(S)]))
        found = shrink(table, "evidence_targets").details
        assert found.targets[int(found.probability.argmax())] == name


def test_an_expert_is_one_more_candidate():
    river = environment("river_swim")
    table = tally(sampling.uniform_pairs(river, 60, rng=1))
    found = shrink(table, "evidence_targets", expert=river.transition.dense()).details
    assert found.targets[int(found.probability.argmax())] == "expert"
    advice = plan(table, river.reward, 0.99, regularizer="evidence_targets", expert=river.transition.dense()).policy
    np.testing.assert_array_equal(advice, np.ones(6))
