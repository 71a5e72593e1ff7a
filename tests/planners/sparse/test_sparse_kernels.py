"""The compiled passes over sparse models, one by one, against a few lines of NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from certeq.planners.sparse import kernels
from certeq.planners.sparse.correction import NOBODYS
from certeq.planners.sparse.kernels import BLOCK, Followed, Lines, PerPair, SparseModel

pytestmark = pytest.mark.slow  # kernels are compiled

S, A = 2 * BLOCK + 77, 3
BLOCKS = 3
ALL = PerPair(np.ones(1), 0, 0)


def random_lines(rng, axes=(S, A)):
    """Random rows of up to five entries, some empty, and the same as a matrix."""
    count = axes[0] * axes[1]
    matrix = sp.random_array((count, S), density=2.5 / S, rng=rng, format="csr")
    matrix = sp.csr_array(sp.diags_array(1 / np.maximum(matrix.sum(axis=1), 1)) @ matrix)
    steps = axes[1] if axes[0] > 1 else 0, int(axes[1] > 1)
    return Lines(matrix.indptr.view(np.uint32), matrix.indices.view(np.uint32), matrix.data, *steps), matrix


def full(rng, shape=(S, A)):
    array = rng.random(shape)
    return PerPair(array.ravel(), shape[1] if shape[0] > 1 else 0, int(shape[1] > 1)), array


def run(kernel, *args):
    kernel(0, 1, *args)
    kernel(1, BLOCKS, *args)


def improve(model, pull, values, policy, share=ALL, averaged=False, keep=0.0, near=0.0, settled=(NOBODYS, None)):
    better, lowest = np.zeros(S, dtype=np.uint32), np.zeros(S, dtype=np.uint32)
    best, notes = np.empty(S), np.empty((BLOCKS, 6))
    followed, slack = settled
    reach = np.inf if slack is None else 0.5
    slack = np.zeros(S, dtype=np.float32) if slack is None else slack
    how = share, averaged, keep, near, followed, slack, 0.25, reach
    run(kernels.improve, model, pull, values, policy, *how, better, lowest, best, notes)
    return better, lowest, best, notes


def model_of(data, weight, mixed, reward, allowed=None):
    everything = np.ones((S, A), dtype=bool)
    return SparseModel(
        data, weight, mixed, reward, 0.9, A, everything if allowed is None else allowed, allowed is not None
    )


@pytest.mark.parametrize("weights", [(1, 1), (S, 1), (1, A), (S, A)])
@pytest.mark.parametrize("pulls", [(1, 1), (S, 1), (1, A), (S, A)])
def test_a_full_pass_is_a_backup(weights, pulls):
    rng = np.random.default_rng(0)
    data, matrix = random_lines(rng)
    (weight, w), (reward, r), (pull, x) = full(rng, weights), full(rng), full(rng, pulls)
    values, policy = rng.normal(size=S), rng.integers(A, size=S).astype(np.uint32)
    q = r + 0.9 * ((1 - w) * (matrix @ values).reshape(S, A) + w * x)
    better, lowest, best, notes = improve(model_of(data, weight, True, reward), pull, values, policy)
    np.testing.assert_allclose(best, q.max(axis=1), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(better, q.argmax(axis=1))
    np.testing.assert_array_equal(lowest, q.argmax(axis=1))
    change = q.max(axis=1) - values
    assert notes[:, 0].min() == pytest.approx(change.min())
    assert notes[:, 1].max() == pytest.approx(change.max())
    assert notes[:, 2].min() == pytest.approx(q.max(axis=1).min())
    assert notes[:, 3].max() == pytest.approx(q.max())
    assert notes[:, 4].min() == pytest.approx(q.min())
    assert notes[:, 5].sum() == (q.argmax(axis=1) != policy).sum()


@pytest.fixture
def plain():
    """A model without a target, what it says, and values."""
    rng = np.random.default_rng(1)
    data, matrix = random_lines(rng)
    reward, r = full(rng)
    values = rng.normal(size=S)
    return model_of(data, ALL, False, reward), r + 0.9 * (matrix @ values).reshape(S, A), values


def test_states_with_slack_are_backed_up_by_the_rows_of_their_policy_and_all_others_find_theirs(plain):
    model, q, values = plain
    states, policy = np.arange(S), q.argmax(axis=1).astype(np.uint32)
    near, slack = 1e-9, np.where(states % 3 > 0, 0.6, 0.5).astype(np.float32)
    lines = model.data
    rows = states * A + policy
    lengths = np.diff(lines.starts)[rows]
    slots = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
    entries = np.concatenate([np.arange(lines.starts[row], lines.starts[row + 1]) for row in rows]).astype(np.int64)
    own = lines.columns[entries], 0.9 * lines.chances[entries]
    followed = Followed(slots, lengths.astype(np.uint32), *own, np.empty((0, 0), dtype=np.float32))
    better, lowest, best, notes = improve(model, ALL, values, policy, near=near, settled=(followed, slack))
    np.testing.assert_allclose(best, q.max(axis=1), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(better, policy)
    np.testing.assert_array_equal(lowest, policy)
    second = np.partition(q, -2, axis=1)[:, -2]
    np.testing.assert_allclose(slack, np.where(states % 3 > 0, 0.6, 0.25 + q.max(axis=1) - second), rtol=1e-6)
    assert notes[:, 5].sum() == 0


def test_an_action_is_left_only_for_one_that_is_better_by_enough(plain):
    model, q, values = plain
    policy = np.random.default_rng(2).integers(A, size=S).astype(np.uint32)
    behind = q.max(axis=1) - q[np.arange(S), policy]
    keep = float(np.median(behind))
    better, *_ = improve(model, ALL, values, policy, keep=keep)
    np.testing.assert_array_equal(better, np.where(behind <= keep, policy, q.argmax(axis=1)))


def test_the_lowest_action_that_comes_near_enough_is_found(plain):
    model, q, values = plain
    behind = q.max(axis=1, keepdims=True) - q
    near = float(np.median(behind))
    _, lowest, *_ = improve(model, ALL, values, np.zeros(S, dtype=np.uint32), near=near)
    np.testing.assert_array_equal(lowest, (behind <= near).argmax(axis=1))


def test_a_pair_that_is_not_allowed_is_never_taken(plain):
    model, q, values = plain
    allowed = np.random.default_rng(2).random((S, A)) < 0.6
    allowed[:, 1] = True
    masked, policy = model._replace(allowed=allowed, masked=True), np.zeros(S, dtype=np.uint32)
    better, lowest, best, notes = improve(masked, ALL, values, policy, keep=1e30, near=1e30)
    q = np.where(allowed, q, -np.inf)
    np.testing.assert_allclose(best, q.max(axis=1), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(better, np.where(allowed[:, 0], 0, q.argmax(axis=1)))
    np.testing.assert_array_equal(lowest, allowed.argmax(axis=1))
    assert notes[:, 4].min() == pytest.approx(q[allowed].min())


def test_a_stochastic_policy_is_backed_up_by_its_mean(plain):
    model, q, values = plain
    probabilities = np.random.default_rng(3).dirichlet(np.ones(A), size=S)
    share = PerPair(probabilities.ravel(), A, 1)
    _, _, best, notes = improve(model, ALL, values, np.zeros(S, dtype=np.uint32), share, True)
    np.testing.assert_allclose(best, (probabilities * q).sum(axis=1), rtol=1e-12, atol=1e-12)
    assert notes[:, 1].max() == pytest.approx((best - values).max())


@pytest.mark.parametrize("axes", [(1, 1), (S, 1), (1, A), (S, A)])
def test_expecting_is_multiplying(axes):
    rng = np.random.default_rng(4)
    lines, matrix = random_lines(rng, axes)
    values, out = rng.normal(size=S), np.empty(axes[0] * axes[1])
    kernels.expect(0, -(-out.size // BLOCK), lines, values, out)
    np.testing.assert_allclose(out, matrix @ values, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("axes", [(1, 1), (S, 1), (1, A), (S, A)])
def test_room_is_kept_for_the_longest_row_of_a_state_or_for_all_of_them(axes):
    lines, matrix = random_lines(np.random.default_rng(5), axes)
    length = np.broadcast_to(np.diff(matrix.indptr).reshape(axes), (S, A))
    for together, expected in ((False, length.max(axis=1)), (True, length.sum(axis=1))):
        room = np.full(S, 7, dtype=np.uint64)
        run(kernels.add_room, lines, A, together, room)
        np.testing.assert_array_equal(room, 7 + expected)


def written_out(slots, lengths, columns, chances):
    """What was copied, as a matrix."""
    states = np.repeat(np.arange(S), lengths)
    places = np.concatenate([np.arange(begin, begin + n) for begin, n in zip(slots[:S], lengths, strict=True)])
    places = places.astype(np.int64)
    return sp.coo_array((chances[places], (states, columns[places])), shape=(S, S)).tocsr()


@pytest.mark.parametrize("axes", [(1, 1), (S, 1), (1, A), (S, A)])
def test_rows_of_a_policy_are_copied_with_their_factor_and_only_where_it_changed(axes):
    rng = np.random.default_rng(6)
    lines, matrix = random_lines(rng, axes)
    (weight, w), (share, p) = full(rng), full(rng)
    w[::7] = p[::5] = 0  # the tables share this memory
    states, line_of = np.arange(S), np.broadcast_to(np.arange(axes[0] * axes[1]).reshape(axes), (S, A))

    def expected(policy):
        one, two = 0.9 * (w * p)[states, policy], ((1 - w) * p)[states, policy]
        return sp.diags_array(one + two) @ matrix[line_of[states, policy]]

    length = np.broadcast_to(np.diff(matrix.indptr).reshape(axes), (S, A)).max(axis=1)
    slots = np.concatenate([[0], np.cumsum(2 * length)]).astype(np.uint32)
    columns, chances = np.empty(slots[-1], dtype=np.uint32), np.empty(slots[-1], dtype=np.float32)
    lengths, before = np.zeros(S, dtype=np.uint32), np.full(S, 2**32 - 1, dtype=np.uint32)
    policy = rng.integers(A, size=S).astype(np.uint32)
    for changed in (0, S // 3):
        policy[:changed] = rng.integers(A, size=changed)
        copy = policy, before
        run(kernels.copy_rows, lines, weight, 0.0, 0.9, share, *copy, True, 0.0, slots, lengths, columns, chances)
        run(kernels.copy_rows, lines, weight, 1.0, -1.0, share, *copy, False, 0.0, slots, lengths, columns, chances)
        assert abs(written_out(slots, lengths, columns, chances) - expected(policy)).max() <= 1e-7
        before[:] = policy
    chances[:] = 0.5
    run(kernels.copy_rows, lines, weight, 0.0, 0.9, share, policy, before, True, 0.0, slots, lengths, columns, chances)
    assert (chances == 0.5).all()
    amount = np.ones(S)
    run(kernels.add_amounts, weight, 0.5, share, policy, amount)
    np.testing.assert_allclose(amount, 1 + 0.5 * (w * p)[states, policy])


@pytest.fixture
def followed():
    """Rows in single precision with two shared target rows, and what they do to a vector."""
    rng = np.random.default_rng(7)
    lines, matrix = random_lines(rng, (S, 1))
    amount, extra, pull = rng.random((2, S)).astype(np.float32), rng.random(S), np.array([0.37, 0.2])
    lengths = np.diff(lines.starts)
    rows = Followed(lines.starts, lengths, lines.columns, lines.chances.astype(np.float32), amount)
    return rows, lambda x: matrix @ x + pull @ amount + extra, (pull, extra), rng


def test_what_is_next_to_nothing_is_left_out_of_rows_in_single_precision(followed):
    rows, *_ = followed
    slots, lengths, columns, chances, _ = rows
    least, light = float(np.median(chances)), np.empty(len(chances), dtype=np.float32)
    matrix = written_out(slots, lengths, columns, np.where(chances > least, chances, np.float32(0)))
    run(kernels.lighten, rows, least, light)
    assert lengths.sum() == (chances > least).sum()
    assert abs(written_out(slots, lengths, columns, light) - matrix).max() == 0


def test_shared_rows_pull_block_by_block():
    rng = np.random.default_rng(8)
    rows, x, notes = rng.random((3, S)).astype(np.float32), rng.normal(size=S), np.empty((BLOCKS, 3))
    run(kernels.pull, rows, x, notes)
    np.testing.assert_allclose(notes.sum(axis=0), rows @ x)


def test_a_sweep_adds_the_next_term(followed):
    rows, act, targets, rng = followed
    x, y, total, notes = rng.normal(size=S), np.empty(S), rng.normal(size=S), np.empty((BLOCKS, 3))
    before = total.copy()
    run(kernels.follow, rows, *targets, x, y, total, notes)
    np.testing.assert_allclose(y, act(x), atol=1e-6)
    np.testing.assert_allclose(total, before + y)
    assert (notes[:, 0].min(), notes[:, 1].max()) == (y.min(), y.max())


def test_the_halves_of_a_krylov_step_do_what_their_formulas_say(followed):
    rows, act, targets, rng = followed
    x, r, p, v, t, shadow = (rng.normal(size=S) for _ in range(6))
    notes = np.empty((BLOCKS, 3))
    run(kernels.apply, rows, *targets, p, v, shadow, notes)
    np.testing.assert_allclose(v, p - act(p), atol=1e-6)
    np.testing.assert_allclose(notes.sum(axis=0), [v @ shadow, v @ p, v @ v])
    old = r.copy()
    run(kernels.half, r, 0.3, v)
    np.testing.assert_allclose(r, old - 0.3 * v)
    before = [z.copy() for z in (x, r, p)]
    run(kernels.whole, x, r, p, v, t, 0.3, 0.7, -0.2, notes)
    np.testing.assert_allclose(x, before[0] + 0.3 * before[2] + 0.7 * before[1])
    np.testing.assert_allclose(r, before[1] - 0.7 * t)
    np.testing.assert_allclose(p, r - 0.2 * (before[2] - 0.7 * v))
    assert (notes[:, 0].min(), notes[:, 1].max()) == (r.min(), r.max())
