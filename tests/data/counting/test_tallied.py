"""A file of counts: what goes in comes out, and nothing that is not one gets in."""

import io
import json
import zipfile

import numpy as np
import pytest
from counted import rows, same_counts

from certeq import InputError
from certeq.data.counting import Tallied, count
from certeq.data.counting.tallied import ARRAYS

ROLES = {"state": ["ward", "stage"], "next_state": ["next_ward", "next_stage"], "action": ["drug"], "done": "done"}
ROLES |= {"truncated": "cut"}


@pytest.fixture
def tallied(parquet):
    return count(parquet(rows()), **ROLES, reward="reward")


def arrays_of(data):
    with np.load(io.BytesIO(data)) as archive:
        return dict(archive)


def write(path, arrays, **compressed):
    (np.savez_compressed if compressed else np.savez)(path, **arrays)
    return path


def refused(path, words, **more):
    with pytest.raises(InputError, match=words) as caught:
        Tallied.load(path, **more)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reward", ["reward", False])
@pytest.mark.parametrize("done", ["done", False])
def test_what_is_saved_is_loaded_bit_for_bit(parquet, tmp_path, reward, done):
    frame = rows() if done else rows().drop_nulls()
    before = count(parquet(frame), **ROLES | {"done": done}, reward=reward)
    before.save(tmp_path / "counts.npz")
    after = Tallied.load(tmp_path / "counts.npz")
    same_counts(before.counts, after.counts)
    assert after.to_bytes() == before.to_bytes() == (tmp_path / "counts.npz").read_bytes()
    for name in ("recipe", "action_recipe", "rows", "dropped", "notes", "files", "fingerprint", "reward_range"):
        assert getattr(after, name) == getattr(before, name)
    if reward:
        for name in ("size", "number", "earned", "spread", "arrivals", "arrived", "span"):
            assert np.array_equal(getattr(after.rewards, name), getattr(before.rewards, name))


def test_large_counts_come_back_sparse(parquet, tmp_path):
    import polars as pl

    rng = np.random.default_rng(0)
    columns = {"s": rng.integers(0, 1500, 9000), "a": rng.integers(0, 2, 9000), "t": rng.integers(0, 1500, 9000)}
    before = count(parquet(pl.DataFrame(columns), group=3000), state=["s"], action=["a"], next_state=["t"])
    before.save(tmp_path / "counts.npz")
    assert before.counts.sparse
    same_counts(Tallied.load(tmp_path / "counts.npz").counts, before.counts)


def test_a_file_is_not_written_over_unless_asked(tallied, tmp_path):
    path = tmp_path / "counts.npz"
    path.write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        tallied.save(path)
    tallied.save(path, force=True)
    assert len(Tallied.load(path)) == len(tallied)


def test_compressed_files_are_read_too(tallied, tmp_path):
    path = write(tmp_path / "counts.npz", arrays_of(tallied.to_bytes()), compressed=True)
    same_counts(Tallied.load(path).counts, tallied.counts)


def test_what_is_not_a_file_of_counts_is_refused(tallied, tmp_path):
    path = tmp_path / "counts.npz"
    refused(path, "There is no file")
    refused(tmp_path, "is not a file")
    path.write_bytes(b"not an archive")
    refused(path, "damaged, or not a file of counts")
    arrays = arrays_of(tallied.to_bytes())
    refused(write(path, {"x": np.zeros(3)}), "is not a file of counts")
    refused(write(path, arrays | {"more": np.zeros(3)}), "is not a file of counts")
    refused(write(path, {k: v for k, v in arrays.items() if k != "count"}), "damaged")
    about = json.loads(arrays["about"].tobytes())

    def told(**changes):
        text = json.dumps(about | changes).encode()
        return write(path, arrays | {"about": np.frombuffer(text, dtype=np.uint8)})

    refused(told(format="something"), 'does not say "format": "certeq-counts"')
    refused(told(version=3), "has version 3; this certeq reads up to 2")
    refused(told(version="x"), "version must be a whole number")
    refused(told(rows=len(tallied) - 1), f"rows must be between {len(tallied)} and")
    refused(told(rows=2**70), "rows must be between")
    refused(told(dropped=[]), "damaged")
    refused(told(reward={"unit": "x"}), "damaged")
    refused(told(reward=about["reward"] | {"unit": float("inf")}), "damaged")
    refused(told(actions=about["states"]), "entries instead of|do not match|damaged")
    refused(told(states={"version": 1, "axes": [], "cells": []}), "The recipe is damaged at axes: ")


def test_numbers_that_make_no_sense_are_refused(tallied, tmp_path):
    path, arrays = tmp_path / "counts.npz", arrays_of(tallied.to_bytes())

    def with_(name, change):
        array = arrays[name].copy()
        change(array)
        return write(path, arrays | {name: array})

    def put(at, value):
        return lambda array: array.__setitem__(at, value)

    refused(with_("pointer", put(0, 1)), "pointer must rise")
    refused(with_("pointer", put(3, 10**9)), "pointer must rise")
    refused(with_("next_state", put(0, -1)), "next states must rise")
    refused(with_("next_state", put(-1, 10**6)), "next states must rise")
    refused(with_("next_state", lambda array: array.sort()), "next states must rise")
    refused(with_("count", put(0, 0)), "counts be positive")
    refused(with_("ended", put(0, -1)), "ended must not be negative")
    refused(with_("reward_earned", put(0, np.nan)), "sums of rewards must be finite")
    refused(write(path, arrays | {"pointer": arrays["pointer"][:-1]}), "pointer has .* entries instead of")
    refused(write(path, arrays | {"count": arrays["count"].astype(np.int32)}), "count.npy holds int32")
    refused(write(path, arrays | {"count": arrays["count"][None]}), r"count.npy holds int64 \(1, ")


def test_archives_that_unpack_to_more_than_the_limit_are_refused_before_that(tallied, tmp_path):
    arrays = arrays_of(tallied.to_bytes()) | {"count": np.zeros(5_000_000, dtype=np.int64)}
    path = write(tmp_path / "bomb.npz", arrays, compressed=True)
    assert path.stat().st_size < 200_000
    refused(path, "unpacks to more than 10,000,000 bytes", limit_bytes=10_000_000)


def test_a_header_that_asks_for_more_than_there_is_is_refused(tallied, tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (10**12,)})
    path, arrays = tmp_path / "counts.npz", arrays_of(tallied.to_bytes())
    del arrays["count"]
    write(path, arrays)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("count.npy", header.getvalue() + bytes(80))
    refused(path, r"count.npy holds int64 \(1000000000000,\)")


def test_too_little_memory_for_a_file_is_told_in_words(tallied, tmp_path, monkeypatch):
    def lose(*_, **__):
        raise MemoryError

    tallied.save(tmp_path / "counts.npz")
    monkeypatch.setattr(json, "loads", lose)
    refused(tmp_path / "counts.npz", "needs more memory than there is")


def test_objects_that_would_run_code_are_refused(tallied, tmp_path):
    arrays = arrays_of(tallied.to_bytes())
    for name in ARRAYS:
        path = write(tmp_path / "counts.npz", arrays | {name: np.array([print], dtype=object)})
        refused(path, "holds object|damaged")


def test_damage_anywhere_is_refused_or_harmless(tallied, tmp_path):
    good, path, rng = tallied.to_bytes(), tmp_path / "counts.npz", np.random.default_rng(0)
    path.write_bytes(good)
    assert Tallied.load(path).to_bytes() == good
    refused = 0
    for k in range(200):
        data = bytearray(good)
        if k % 4 == 0:
            data = data[: rng.integers(len(data))]
        else:
            for at in rng.integers(len(data), size=3):
                data[at] = rng.integers(256)
        path.write_bytes(data)
        try:
            assert Tallied.load(path).to_bytes() == good
        except InputError:  # and nothing else
            refused += 1
    assert refused > 150


def test_parts_that_do_not_go_together_are_refused(tallied):
    from dataclasses import replace

    with pytest.raises(InputError, match="do not match recipes"):
        replace(tallied, recipe=tallied.action_recipe)
    with pytest.raises(InputError, match="of different rows"):
        replace(tallied, rewards=replace(tallied.rewards, number=tallied.rewards.number + 1))


def version_1(tallied):
    """The arrays of an older file of the same counts."""
    sums, arrays = tallied.rewards, arrays_of(tallied.to_bytes())
    about = json.loads(arrays["about"].tobytes())
    least, greatest = tallied.reward_range
    said = {"unit": sums.size, "scatter": float(sums.scatter), "least": least, "greatest": greatest}
    text = json.dumps(about | {"version": 1, "reward": said}).encode()
    older = arrays | {"reward_total": sums.total.ravel(), "about": np.frombuffer(text, dtype=np.uint8)}
    del older["reward_earned"]
    return older


def test_counts_of_version_1_say_what_endings_paid_as_far_as_they_can(tallied, tmp_path):
    """A pair that only went on, or only ended, earned what it earned; where both are so, endings paid the average."""
    sums, found = tallied.rewards, Tallied.load(write(tmp_path / "older.npz", version_1(tallied))).rewards
    assert np.array_equal(found.number, sums.number)
    np.testing.assert_allclose(found.total, sums.total, atol=1e-12)
    np.testing.assert_allclose(found.scatter, sums.scatter)
    both = (sums.number > 0).all(axis=0)
    assert both.any()
    np.testing.assert_allclose(found.earned[:, ~both], sums.earned[:, ~both], atol=1e-12)
    paid = sums.earned[1][both].sum() / sums.number[1][both].sum()
    np.testing.assert_allclose(found.earned[1][both], paid * sums.number[1][both])
    np.testing.assert_allclose(found.earned[1].sum(), found.arrived[-1])


@pytest.mark.parametrize("spoil", [lambda total: total[:-1], lambda total: total[None], lambda total: total * np.nan])
def test_damaged_rewards_of_version_1_are_refused(tallied, tmp_path, spoil):
    older = version_1(tallied)
    with pytest.raises(InputError, match="damaged"):
        Tallied.load(write(tmp_path / "older.npz", older | {"reward_total": spoil(older["reward_total"])}))
    del older["reward_total"]
    with pytest.raises(InputError, match="damaged"):
        Tallied.load(write(tmp_path / "older.npz", older))
