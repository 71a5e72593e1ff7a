"""Policies as arrays: the same policy, the same answers, and words about whatever is wrong with a file."""

import os
import zipfile

import numpy as np
import pytest

from certeq import InputError, Policy
from certeq.data.recipes import Bins, Labels, OrMissing, Recipe


def policy(horizon=None, chances=True):
    rng = np.random.default_rng(0)
    axes = (OrMissing(Bins("age", (30.0, 60.0))), Labels("ward", "text", ("a", "b, c", "d")))
    recipe = Recipe(axes, np.array([[0, 0], [0, 2], [1, 1], [3, 0]]))
    shape = (4, 2) if horizon is None else (horizon, 4, 2)
    values = rng.normal(size=shape)
    values[..., 1, 0] = -np.inf
    advice = values.argmax(axis=-1)
    advice[..., 3] = -1
    chance = rng.dirichlet(np.ones(2), size=shape[:-1]) if chances else None
    said = {"discount": 0.9, "min_chance": 0.8}, {"rows": 12, "ranges": {"age": [20.0, 70.0]}}
    return Policy(recipe, ("wait", "treat"), advice, rng.integers(0, 9, (4, 2)), values, *said, chance)


ROWS = {"age": [10.0, 25.0, 45.0, 45.0, None], "ward": ["a", "d", "b, c", "x", "a"]}


@pytest.mark.parametrize("horizon", [None, 3])
@pytest.mark.parametrize("chances", [True, False])
def test_arrays_hold_what_the_readable_file_holds(tmp_path, horizon, chances):
    original = policy(horizon, chances)
    original.save(tmp_path / "policy.npz")
    original.save(tmp_path / "policy.json")
    compact, readable = Policy.load(tmp_path / "policy.npz"), Policy.load(tmp_path / "policy.json")
    assert compact.to_json() == readable.to_json() == original.to_json()
    step = None if horizon is None else 1
    one, other = (each.apply(ROWS, step=step) for each in (compact, readable))
    for name in one.__dataclass_fields__:
        np.testing.assert_equal(getattr(one, name), getattr(other, name))
    assert (one.action >= 0).any()


def rewritten(path, **changes):
    """The same archive with some arrays changed, or left out where None is given."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive) | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def told_in_json(path, old, new):
    with np.load(path, allow_pickle=False) as archive:
        text = archive["about"].tobytes().replace(old, new)
    rewritten(path, about=np.frombuffer(text, dtype=np.uint8))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"visits": None}, "visits: it is missing"),
        ({"about": None}, "is not a policy file"),
        ({"more": np.zeros(1)}, "is not a policy file"),
        ({"visits": np.zeros(7, dtype=np.int64)}, "visits has 7 entries instead of 8"),
        ({"visits": np.full(8, -1)}, "visits cannot be negative"),
        ({"visits": np.full(8, 2**60)}, "whole numbers up to"),
        ({"visits": np.zeros(8)}, "holds float64"),
        ({"visits": np.array([None] * 8, dtype=object)}, "holds object"),
        ({"advice": np.full(4, 2, dtype=np.int32)}, "advises action number 2"),
        ({"action_values": np.full(8, np.nan)}, "are numbers"),
        ({"action_values": np.full(8, -np.inf)}, "advises only what has a value"),
        ({"chances": np.full(8, np.nan)}, "between 0 and 1"),
        ({"cells": np.zeros(8, dtype=np.int32)}, "sorted and all different"),
        ({"cells": np.full(8, 99, dtype=np.int32)}, "out of range"),
        ({"cells": np.zeros(0, dtype=np.int32)}, "cells of shape"),
    ],
)
def test_a_damaged_file_is_told_by_its_name(tmp_path, changes, words):
    path = tmp_path / "policy.npz"
    policy().save(path)
    rewritten(path, **changes)
    with pytest.raises(InputError, match=words) as caught:
        Policy.load(path)
    assert "policy.npz" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'"certeq-policy-arrays"', b'"something else"', "does not say"),
        (b'"version":1,"certeq"', b'"version":2,"certeq"', "version 2; this certeq reads 1"),
        (b'"version":1,"certeq"', b'"version":1,"version":1,"certeq"', "twice"),
        (b'["wait","treat"]', b'["wait","wait"]', "more than once"),
        (b'"horizon":null', b'"horizon":2', "advice has 4 entries instead of 8"),
        (b'"actions":', b'"deeds":', "actions"),
        (b"treat", b"tre\xff\xfe", "not UTF-8|not JSON"),
    ],
)
def test_what_the_arrays_are_about_is_checked_as_in_the_readable_file(tmp_path, old, new, words):
    path = tmp_path / "policy.npz"
    policy().save(path)
    told_in_json(path, old, new)
    with pytest.raises(InputError, match=words) as caught:
        Policy.load(path)
    assert "policy.npz" in str(caught.value)


def test_any_flipped_byte_and_any_cut_ends_in_a_policy_or_in_words(tmp_path):
    policy().save(tmp_path / "policy.npz")
    data = (tmp_path / "policy.npz").read_bytes()
    rng = np.random.default_rng(1)
    for at in rng.choice(len(data), 60, replace=False).tolist():
        for changed in (data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :], data[:at]):
            (tmp_path / "bad.npz").write_bytes(changed)
            told = "bad.npz"
            try:
                Policy.load(tmp_path / "bad.npz")
            except InputError as error:
                told = str(error)
            assert "bad.npz" in told


def test_labels_and_sizes_have_the_limits_of_policy_files(tmp_path, monkeypatch):
    policy().save(tmp_path / "policy.npz")
    for limit, words in (
        ("LABEL", "a label may have"),
        ("POLICY_BYTES", "labels without end"),
        ("BYTES", "unpacks to"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(f"CERTEQ_MAX_{limit}", "4")
            with pytest.raises(InputError, match=words):
                Policy.load(tmp_path / "policy.npz")


def test_a_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "policy.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("about.npy", b"\0" * 50_000_000)
    with pytest.raises(InputError, match="policy"):
        Policy.load(path)


def test_a_pipe_is_refused_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "policy.npz")
    with pytest.raises(InputError, match="is not a file"):
        Policy.load(tmp_path / "policy.npz")
