"""Operands: broadcasting without copies says the same as broadcasting with them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq.planners.compiled.operands import operands
from strategies import SEEDS, SHAPES

S, A = 3, 2
TRAILING = {
    "rows": (S, A, S),
    "weight": (S, A),
    "target": (1, 1, S),
    "reward": (S, A),
    "discount": (),
    "allowed": (S, A),
}
LEADS = st.fixed_dictionaries(dict.fromkeys(TRAILING, SHAPES))
FIXED = ("rows", "target", "allowed")


def arrays(leads, seed=0):
    rng = np.random.default_rng(seed)
    made = {name: rng.random((*leads[name], *trailing)) for name, trailing in TRAILING.items()}
    made["allowed"] = made["allowed"] < 0.5
    return made


@given(LEADS, SEEDS)
def test_every_chain_and_step_finds_its_part(leads, seed):
    batch, given_arrays = np.broadcast_shapes(*leads.values()), arrays(leads, seed)
    work = operands(**given_arrays)
    assert work.batch == batch
    assert work.chains * work.steps == np.prod(batch, dtype=int)
    for name, array in given_arrays.items():
        flat, of = getattr(work, name), getattr(work, f"{name}_of")
        index = np.broadcast_to(of[:, None] if name in FIXED else of, (work.chains, work.steps))
        if name not in FIXED:
            np.testing.assert_array_equal(getattr(work.spread(), f"{name}_of"), index)
        expected = np.broadcast_to(array, (*batch, *TRAILING[name])).reshape(-1, *TRAILING[name])
        np.testing.assert_array_equal(flat[index.ravel()], expected)


@given(LEADS)
def test_nothing_is_repeated_in_memory(leads):
    work = operands(**arrays(leads))
    for name, lead in leads.items():
        assert len(getattr(work, name)) == np.prod(lead, dtype=int)


def test_a_path_of_strengths_is_a_chain():
    """Rows of each data set once, weights along the path: one chain per data set, one step per strength."""
    leads = dict.fromkeys(TRAILING, ()) | {"rows": (5, 1), "weight": (5, 4)}
    work = operands(**arrays(leads))
    assert (work.chains, work.steps) == (5, 4)
    assert work.rows_of.tolist() == [0, 1, 2, 3, 4]
    assert work.weight_of.shape == (5, 4)


def test_an_index_is_no_larger_than_what_it_tells_apart():
    leads = dict.fromkeys(TRAILING, ()) | {"rows": (5, 1), "weight": (4,), "reward": (5, 1)}
    work = operands(**arrays(leads))
    assert (work.chains, work.steps) == (5, 4)
    assert [of.shape for of in (work.weight_of, work.reward_of, work.discount_of)] == [(1, 4), (5, 1), (1, 1)]


@pytest.mark.parametrize("fixed", FIXED)
def test_what_a_chain_holds_fast_may_not_change_along_it(fixed):
    work = operands(**arrays(dict.fromkeys(TRAILING, ()) | {fixed: (6,)}))
    assert (work.chains, work.steps) == (6, 1)


def test_the_order_is_that_of_the_kernels_arguments():
    work = operands(**arrays(dict.fromkeys(TRAILING, ())))
    names = [name for part in TRAILING for name in (part, f"{part}_of")]
    assert len(work.arrays) == len(names)
    for array, name in zip(work.arrays, names, strict=True):
        assert array is getattr(work, name)


@given(LEADS, st.booleans())
def test_every_call_looks_alike_to_the_compiler(leads, frozen):
    """A kernel is compiled anew for each combination of writable and read-only arguments: there must be only one."""
    batch, given_arrays = np.broadcast_shapes(*leads.values()), arrays(leads)
    if frozen:
        given_arrays = {name: np.broadcast_to(array, array.shape) for name, array in given_arrays.items()}
    else:  # one view that repeats memory, as `solve` makes of rewards and rows
        given_arrays["reward"] = np.broadcast_to(given_arrays["reward"], (*batch, S, A))
    work = operands(**given_arrays)
    assert {(array.flags.c_contiguous, array.flags.writeable) for array in work.arrays} == {(True, True)}
