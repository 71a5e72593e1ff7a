"""What a pair borrows from others: compiled kernels against the literal twin, and the laws they obey."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from certeq import Counts
from certeq.data.positions import Positions
from certeq.model.believed import borrow
from certeq.model.kernel import Operator, entries
from certeq.model.mixing import harmonic
from certeq.model.nonzeros import places
from certeq.planners.backup import policy_operator

few = settings(max_examples=25, deadline=None)

LATTICES = {
    "line": (np.array([[2], [0], [1], [4], [3], [5]]), ("line",)),
    "line with a gap": (np.array([[0], [1], [4], [5], [7], [8]]), ("line",)),
    "ring": (np.arange(6)[:, None], ("ring",)),
    "plane": (np.stack(np.divmod(np.arange(6), 3), axis=1), ("line", "line")),
    "plane with a hole": (np.array([[0, 0], [0, 1], [0, 2], [1, 0], [1, 2], [2, 1]]), ("line", "line")),
    "labels": (np.array([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [2, 1]]), ("label", "line")),
    "some nowhere": (np.array([[0.0], [1], [2], [np.nan], [3], [np.nan]]), ("line",)),
    "far apart": (np.array([[0, 0], [0, 3000], [3000, 0], [3000, 1], [1, 0], [2999, 1]]), ("line", "line")),
}
each_lattice = pytest.mark.parametrize("name", [*LATTICES, "none"])


def positions_of(name):
    return None if name == "none" else Positions(*LATTICES[name])


def plain(name):
    """Positions as the twin wants them."""
    if name == "none":
        return None, ()
    given, axes = LATTICES[name]
    return [None if np.isnan(place).any() else tuple(int(x) for x in place) for place in np.asarray(given, float)], axes


def random_table(seed, S=6, A=2, ended=True, scale=1.0):
    rng = np.random.default_rng(seed)
    table = rng.poisson(scale * rng.gamma(0.3, 3, size=(S, A, S + ended)))
    table[rng.random((S, A)) < 0.3] = 0
    return table


def counts_of(table, positions=None):
    S = len(table)
    return Counts(table[..., :S], table[..., S] if table.shape[2] > S else None, positions=positions)


def as_sparse(counts):
    S, A = counts.n_states, counts.n_actions
    return Counts(sp.csr_array(counts.transitions.reshape(S * A, S)), counts.ended, A, counts.positions)


def twin(table, name, left_out):
    where, axes = plain(name)
    S, A, _ = table.shape
    closed = set() if where is None else naive.walls(table, where, axes)
    rows = [[naive.borrowed_rows(table, where, axes, s, a, left_out, closed) for a in range(A)] for s in range(S)]
    return np.array([[list(each.values()) for each in line] for line in rows]), tuple(rows[0][0])  # (S, A, J, N)


@each_lattice
@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("scale", [0.3, 2, 40])
def test_shares_and_rows_are_those_of_the_literal_twin(name, ended, scale):
    table = random_table(len(name) + ended, ended=ended, scale=scale)
    found = borrow(counts_of(table, positions_of(name)))
    judged, names = twin(table, name, left_out=True)
    share = naive.target_shares(table, judged)
    assert found.names == names
    np.testing.assert_allclose(found.share, share, rtol=1e-9)
    at = places(found.table)
    chance = np.einsum("saj,sajn->san", np.broadcast_to(share, (len(table), *share.shape)), judged)
    np.testing.assert_allclose(found.judged, chance[at[1], at[2], found.table.outcome], rtol=1e-9)
    planned, _ = twin(table, name, left_out=False)
    rows = np.einsum("aj,sajn->san", share, planned)
    np.testing.assert_allclose(found.rows.dense(), rows[..., : len(table)], atol=1e-12)


def walled(each, wide=6, high=4):
    """Counts of steps north, south, east and west on a plane; a wall east of column 2 leaves its last row open."""
    places = [(x, y) for x in range(wide) for y in range(high)]
    table = np.zeros((len(places), 4, len(places)), dtype=int)
    for s, (x, y) in enumerate(places):
        for a, (dx, dy) in enumerate([(0, 1), (0, -1), (1, 0), (-1, 0)]):
            there = min(max(x + dx, 0), wide - 1), min(max(y + dy, 0), high - 1)
            blocked = y < high - 1 and {x, there[0]} == {2, 3}
            table[s, a, s if blocked else places.index(there)] = each
    return table, places


@pytest.mark.slow
def test_a_wall_is_found_and_no_move_is_carried_through():
    from certeq.model.believed import _prepare

    table, places_ = walled(6)
    dense = Counts(table, positions=np.array(places_))
    expected = {(s, 0, 1) for s, (x, y) in enumerate(places_) if x == 2 and y < 3}
    expected |= {(s, 0, -1) for s, (x, y) in enumerate(places_) if x == 3 and y < 3}
    assert naive.walls(table, places_, ("line", "line")) == expected
    judged = np.array([[list(naive.borrowed_rows(table, places_, ("line", "line"), s, a, True, expected).values())
                        for a in range(4)] for s in range(len(table))])  # fmt: skip
    share = naive.target_shares(table, judged)
    east = np.array([x > 2 for x, _ in places_])
    for counts in (dense, as_sparse(dense)):
        closed = _prepare(counts, None)[1].grid.closed[0]  # (S, 4)
        assert {(int(s), int(side) // 2, 2 * (int(side) % 2) - 1) for s, side in np.argwhere(closed)} == expected
        target = borrow(counts)
        rows = target.rows.dense()
        for s, (x, y) in enumerate(places_):
            if x == 2:
                assert rows[s, 2, east].sum() > 0.7 if y == 3 else rows[s, 2, east].sum() < 0.01
        assert target.share[2, target.names.index("moves") : target.names.index("near")].sum() > 0.5
        np.testing.assert_allclose(target.share, share, rtol=1e-9)


@pytest.mark.slow
@each_lattice
@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("most", [1000, 0])
def test_sparse_counts_borrow_what_dense_ones_borrow(name, ended, most, monkeypatch):
    monkeypatch.setattr("certeq.model.believed.MOST_WRITTEN", most)  # entries; beyond, rows are not written out
    counts = counts_of(random_table(7, ended=ended), positions_of(name))
    dense, sparse = borrow(counts), borrow(as_sparse(counts))
    np.testing.assert_allclose(sparse.share, dense.share, rtol=1e-12)
    np.testing.assert_allclose(sparse.judged, dense.judged, rtol=1e-12)
    np.testing.assert_allclose(sparse.rows.dense(), dense.rows.dense(), atol=1e-14)
    np.testing.assert_allclose(sparse.rows.mass(), dense.rows.mass(), atol=1e-14)
    values, policy = np.random.default_rng(1).normal(size=6), np.array([0, 1, 1, 0, 1, 0])
    expected = dense.rows.expect(values)
    np.testing.assert_allclose(sparse.rows.expect(values), expected, atol=1e-13)
    followed = policy_operator(sparse.rows, policy)(values)
    np.testing.assert_allclose(followed, expected[np.arange(6), policy], atol=1e-13)
    np.testing.assert_allclose(entries(sparse.rows, *np.indices((6, 2, 6))), dense.rows.dense(), atol=1e-14)
    assert isinstance(sparse.rows, Operator) == (most == 0)


@pytest.mark.slow
def test_an_expert_is_one_more_candidate_for_dense_and_sparse_counts():
    rng = np.random.default_rng(5)
    right = np.eye(6)[np.minimum(np.arange(6) + 1, 5)]
    rows = np.stack([right, np.eye(6)], axis=1)
    table = np.array([[rng.multinomial(4, 0.9 * rows[s, a] + 0.1 / 6) for a in range(2)] for s in range(6)])
    dense, sparse = borrow(Counts(table), expert=rows), borrow(as_sparse(Counts(table)), expert=rows)
    assert dense.names[-1] == "expert"
    assert dense.share[0, -1] > 0.5
    np.testing.assert_allclose(sparse.share, dense.share, rtol=1e-12)
    np.testing.assert_allclose(sparse.judged, dense.judged, rtol=1e-12)
    np.testing.assert_allclose(sparse.rows.dense(), dense.rows.dense(), atol=1e-14)
    np.testing.assert_allclose(dense.rows.mass(), 1, atol=1e-14)


@each_lattice
def test_a_batch_is_a_loop(name):
    tables = np.stack([random_table(seed, ended=False) for seed in range(6)]).reshape(2, 3, 6, 2, 6)
    together = borrow(Counts(tables, positions=positions_of(name)))
    for i in np.ndindex(2, 3):
        alone = borrow(Counts(tables[i], positions=positions_of(name)))
        np.testing.assert_array_equal(together.share[i], alone.share)
        np.testing.assert_array_equal(together.rows.array[i], alone.rows.array)


@each_lattice
@few
@given(seed=st.integers(0, 2**32 - 1))
def test_renaming_states_and_actions_renames_the_rows(name, seed):
    rng = np.random.default_rng(seed)
    table, states, actions = random_table(seed), rng.permutation(6), rng.permutation(2)
    renamed = table[states][:, actions][:, :, np.append(states, 6)]
    where = positions_of(name)
    if where is not None:
        given_places, axes = LATTICES[name]
        where = Positions(np.asarray(given_places, float)[states], axes)
    one, two = borrow(counts_of(table, positions_of(name))), borrow(counts_of(renamed, where))
    np.testing.assert_allclose(two.share, one.share[actions], rtol=1e-9)
    expected = one.rows.dense()[states][:, actions][:, :, states]
    np.testing.assert_allclose(two.rows.dense(), expected, atol=1e-12)


def test_a_large_sparse_lattice_learns_its_shares_from_an_even_selection(monkeypatch):
    from certeq.model import believed

    rng = np.random.default_rng(0)
    S = 300
    table = np.zeros((S, 2, S), dtype=int)
    for s in range(S):
        table[s, 0, min(s + 1, S - 1)] = rng.integers(1, 4)
        table[s, 1, max(s - 1, 0)] = rng.integers(1, 4)
    counts = as_sparse(Counts(table, positions=np.arange(S)))
    every = borrow(counts)
    monkeypatch.setattr(believed, "BLOCK", 16)
    monkeypatch.setattr(believed, "ENOUGH", 200)
    some = borrow(counts)
    assert len(some.judged) == len(every.judged)
    assert some.share[0, every.names.index("action_moves") :].sum() > 0.8
    np.testing.assert_allclose(some.share, every.share, atol=0.1)


@pytest.mark.parametrize("x", [1e-3, 0.7, 20.0, 3e4])
@pytest.mark.parametrize("c", [0, 1, 16, 17, 400])
def test_a_sum_of_reciprocals_is_exact(x, c):
    assert harmonic(x, float(c)) == pytest.approx(sum(1 / (x + i) for i in range(c)), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("moves", "placed"), [(60, True), (1, False)])
def test_a_large_data_set_with_moves_without_end_borrows_as_if_there_were_no_positions(monkeypatch, moves, placed):
    """On a line of 30 states, each of which leads to its two neighbors; 59 moves are possible."""
    table = np.zeros((30, 1, 30), dtype=int)
    for s in range(30):
        table[s, 0, max(s - 1, 0)] = table[s, 0, min(s + 1, 29)] = 3
    counts = as_sparse(Counts(table, positions=np.arange(30)))
    monkeypatch.setattr("certeq.model.believed.FEW_MOVES", moves)
    monkeypatch.setattr("certeq.model.believed.MOST_FOLLOWED", 30)
    found = borrow(counts)
    wanted = borrow(as_sparse(Counts(table)))
    assert (found.names == wanted.names) == (not placed)
    if not placed:
        np.testing.assert_array_equal(found.judged, wanted.judged)
        np.testing.assert_array_equal(found.rows.dense(), wanted.rows.dense())
