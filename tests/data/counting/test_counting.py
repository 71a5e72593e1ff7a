"""Counting in pieces gives what counting in memory gives, bit for bit, whatever the pieces, files and threads."""

import datetime

import numpy as np
import polars as pl
import pytest
from counted import ROLES, in_memory, rows, same_counts
from hypothesis import given
from hypothesis import strategies as st

from certeq import InputError
from certeq.data.counting import coding, count, pieces


def check(path, told, **how):
    """Count a file in both ways and compare everything."""
    tallied = count(path, **told, **how)
    batch, counts, sums = in_memory(path, **told)
    same_counts(tallied.counts, counts)
    assert tallied.recipe == batch.recipe
    assert tallied.action_recipe == batch.action_recipe
    assert dict(tallied.dropped) == dict(batch.dropped)
    assert (len(tallied), tallied.rows, tallied.endings) == (len(batch), batch.n_rows_read, int(batch.ended.sum()))
    assert tallied.fingerprint == batch.fingerprint
    if sums is not None:
        mine, size = tallied.rewards, tallied.rewards.size / sums.size
        assert np.array_equal(mine.visits, sums.visits)
        assert np.array_equal(mine.arrivals, sums.arrivals)
        np.testing.assert_allclose(mine.total * size, sums.total, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(mine.arrived * size, sums.arrived, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(mine.scatter * size**2, sums.scatter, rtol=1e-10)
        assert tallied.reward_range == (batch.reward.min(), batch.reward.max())
    return tallied


@pytest.mark.parametrize("piece_rows", [1, 64, 299, 900, 10_000])
def test_pieces_of_any_size_give_the_counts_of_the_whole(parquet, piece_rows):
    path = parquet(rows(60 if piece_rows == 1 else 900))
    check(path, ROLES, piece_rows=piece_rows)


def test_a_folder_counts_like_one_file_with_the_same_rows(parquet):
    frame = rows()
    one, several = parquet(frame), parquet(frame, "folder", files=5)
    (several / "_SUCCESS").touch()
    (several / ".part-000.parquet.crc").write_bytes(b"x")
    alone, together = count(one, **ROLES), count(several, **ROLES, piece_rows=128)
    same_counts(alone.counts, together.counts)
    assert alone.recipe == together.recipe
    assert together.files == tuple(f"part-{i:03}.parquet" for i in range(5))


def test_the_fingerprint_of_a_folder_is_that_of_its_list_of_sums(parquet):
    import hashlib

    folder = parquet(rows(), "folder", files=2)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())]
    assert count(folder, **ROLES).fingerprint == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert count(folder, **ROLES, fingerprint=False).fingerprint is None


def test_the_number_of_threads_changes_no_bit(parquet):
    folder = parquet(rows(), "folder", files=3)
    results = {count(folder, **ROLES, piece_rows=100, threads=threads).to_bytes() for threads in (1, 2, 5)}
    assert len(results) == 1


TOGETHER = (  # kinds of a state and of its next state
    *("text text", "category text", "integer integer", "integer whole", "small float"),
    *("flag integer", "date date", "date moment", "unsigned unsigned", "float whole"),
)


@st.composite
def tables(draw):
    """Small tables of a state, an action and a next state, of any kind that a column may have."""
    n = draw(st.integers(1, 40))
    kinds = {
        "text": (st.sampled_from(["a", "b", " b", "ü", "Z", "10", "", "  "]), pl.String),
        "category": (st.sampled_from(["a", "b", "c"]), pl.Categorical),
        "integer": (st.integers(-5, 5) | st.sampled_from([2**40, -(2**62)]), pl.Int64),
        "small": (st.integers(-128, 127), pl.Int8),
        "unsigned": (st.integers(0, 3), pl.UInt64),
        "whole": (st.integers(-3, 3).map(float) | st.just(float("nan")) | st.just(-0.0), pl.Float64),
        "float": (st.sampled_from([0.5, -0.0, 0.0, 1.0, 2.0**60]), pl.Float32),
        "flag": (st.booleans(), pl.Boolean),
        "date": (st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 1, 9)), pl.Date),
        "moment": (st.datetimes(datetime.datetime(1999, 1, 1), datetime.datetime(2001, 1, 1)), pl.Datetime("ms")),
    }
    blank = draw(st.sampled_from([0, 3]))  # whether values may be missing

    def column(kind):
        values, dtype = kinds[kind]
        some = st.none() | values if blank else values
        return pl.Series(draw(st.lists(some, min_size=n, max_size=n)), dtype=dtype, strict=False)

    together = draw(st.sampled_from([words.split() for words in TOGETHER]))
    frame = {"s": column(together[0]), "t": column(together[1]), "a": column(draw(st.sampled_from(list(kinds))))}
    if draw(st.booleans()):
        frame["end"] = pl.Series(draw(st.lists(st.none() | st.booleans(), min_size=n, max_size=n)), dtype=pl.Boolean)
    if draw(st.booleans()):
        frame["r"] = pl.Series(draw(st.lists(st.integers(-9, 9), min_size=n, max_size=n)), dtype=pl.Float64)
    return pl.DataFrame(frame)


def complaint(path, told):
    """What the reader says about a file that it refuses."""
    try:
        in_memory(path, **told)
    except InputError as error:
        return str(error)
    return None


@pytest.mark.slow
def test_columns_of_every_kind_are_read_as_the_reader_reads_them(tmp_path, monkeypatch):
    refused, seen = [], coding.views

    @given(tables(), st.integers(1, 50), st.booleans())
    def law(frame, piece_rows, pyarrow):
        monkeypatch.setattr(coding, "views", seen if pyarrow else lambda series: None)
        refused.append(read_alike(frame, piece_rows, tmp_path / "rows.parquet"))

    law()
    assert {True, False} == set(refused)


def test_a_piece_of_large_whole_numbers_that_has_none_is_no_damage(tmp_path):
    path, kinds = tmp_path / "rows.parquet", {"s": pl.UInt64, "a": pl.String, "t": pl.UInt64}
    pl.DataFrame({"s": [None, 1, 2], "a": [None, "x", "x"], "t": [None, 2, 1]}, schema=kinds).write_parquet(path)
    assert count(path, state=["s"], action=["a"], next_state=["t"], piece_rows=1).counts.n_states == 2


def test_rewards_that_stand_in_rows_that_do_not_count_are_not_lost_without_a_word(tmp_path):
    """Deaths stand on a row without an action: a reader refuses, and so does whoever counts, whatever the pieces."""
    n = 40
    frame = pl.DataFrame(
        {
            "s": [i % 3 for i in range(n)],
            "a": [None if i % 5 == 4 else "x" for i in range(n)],
            "r": [1.0 if i % 10 == 4 else 0.01 * (i % 2) for i in range(n)],
            "t": [(i + 1) % 3 for i in range(n)],
        }
    )
    path = tmp_path / "rows.parquet"
    frame.write_parquet(path)
    told = {"state": ["s"], "next_state": ["t"], "action": ["a"], "reward": "r"}
    share = complaint(path, told).split(",")[0]
    for piece_rows in (1, 7, n):
        with pytest.raises(InputError, match=r"--done outcome=death,discharge") as mine:
            count(path, **told, piece_rows=piece_rows)
        assert str(mine.value).startswith(share)
        assert "row without an action: 8" in str(mine.value)
    assert count(path, **told | {"reward": False}, piece_rows=7).dropped == {"row without an action": 8}
    harmless = frame.with_columns(r=pl.when(pl.col("a").is_null()).then(0.0).otherwise(pl.col("r")))
    harmless.write_parquet(path)
    assert count(path, **told, piece_rows=7).dropped == {"row without an action": 8}


def read_alike(frame, piece_rows, path):
    """See that counting says what reading says, and tell whether that was a refusal."""
    frame.write_parquet(path)
    told = {"state": ["s"], "next_state": ["t"], "action": ["a"]}
    told |= {"done": "end" if "end" in frame else False, "reward": "r" if "r" in frame else False, "truncated": False}
    labels = {"bins": {"s": "labels", "a": "labels"}}
    said = complaint(path, told)
    if said is not None:
        with pytest.raises(InputError) as mine:
            count(path, **told, **labels, piece_rows=piece_rows)
        if said.startswith("Row"):
            assert str(mine.value).startswith("rows.parquet: Row")
            if piece_rows >= len(frame):  # then the same row is found first; how many there are like it is not told
                assert str(mine.value).startswith(f"rows.parquet: {said.split(' is missing')[0]}")
        return True
    tallied = count(path, **told, **labels, piece_rows=piece_rows)
    batch, counts, _ = in_memory(path, **told)
    same_counts(tallied.counts, counts)
    assert tallied.recipe == batch.recipe
    assert tallied.action_recipe == batch.action_recipe
    assert dict(tallied.dropped) == dict(batch.dropped)
    return False


@pytest.mark.parametrize("S", [3, 300])  # blocks have all labels, or each its own
def test_pieces_that_are_coded_in_blocks_give_the_same_bytes(parquet, monkeypatch, S):
    frame = rows(S=S).with_columns(ward=pl.col("ward").str.len_chars(), next_ward=pl.lit(1), drug=pl.col("done"))
    path = parquet(frame, group=70)
    for told in (ROLES, ROLES | {"reward": False}):
        monkeypatch.setattr(pieces, "BLOCK", 1 << 18)
        whole = count(path, **told, piece_rows=400).to_bytes()
        monkeypatch.setattr(pieces, "BLOCK", 1)
        assert count(path, **told, piece_rows=400).to_bytes() == whole


def test_text_is_read_alike_with_pyarrow_and_without(parquet, monkeypatch):
    long = pl.when(pl.col("done")).then(None).otherwise(pl.col("drug") + " of more than twelve letters")
    path, told = parquet(rows().with_columns(drug=long), group=75), ROLES | {"piece_rows": 270}
    with_pyarrow = count(path, **told).to_bytes()
    by_view = coding.words(pl.Series(["A", None, "", "A"] * 9))
    assert [by_view.labels[int(code)] for code in by_view.codes[:4]] == ["A", "", "", "A"]  # blank is missing
    monkeypatch.setattr(coding, "OFTEN", 10**9)
    assert count(path, **told).to_bytes() == with_pyarrow
    monkeypatch.setattr(coding, "views", lambda series: None)
    assert count(path, **told).to_bytes() == with_pyarrow


def test_texts_with_one_hash_are_told_apart(parquet, monkeypatch):
    path = parquet(rows())
    monkeypatch.setattr(coding, "views", lambda series: None)
    monkeypatch.setattr(coding, "hashes", lambda series: np.zeros(len(series), dtype=np.uint64))
    check(path, ROLES, piece_rows=300)


def test_edges_cut_numbers_as_the_reader_cuts_them(parquet):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "x": rng.normal(size=500),
            "dose": rng.random(500),
            "reward": rng.random(500),
            "next_x": rng.normal(size=500),
        }
    )
    told = {"state": ["x"], "next_state": ["next_x"], "action": ["dose"], "reward": "reward"}
    told |= {"done": False, "truncated": False, "bins": {"x": "edges:-1,0,0.5", "dose": "edges:0.5"}}
    tallied = check(parquet(frame), told, piece_rows=64)
    assert tallied.counts.n_states == 4
    assert tallied.counts.n_actions == 2


def test_wide_ranges_and_many_combinations_are_listed_instead_of_laid_out(parquet, monkeypatch):
    path, expected = parquet(rows()), count(parquet(rows(), "again.parquet"), **ROLES)
    monkeypatch.setattr(coding, "RANGE", 4)
    monkeypatch.setattr("certeq.data.counting.spaces.RANGE", 4)
    monkeypatch.setattr("certeq.data.counting.pieces.SPACIOUS", 4)
    assert count(path, **ROLES, piece_rows=150).recipe == expected.recipe
    same_counts(count(path, **ROLES, piece_rows=150).counts, expected.counts)


def test_rewards_of_any_size_are_added_in_units_that_do_not_round(parquet):
    frame = pl.DataFrame({"s": [0, 0, 0, 1], "a": [0] * 4, "t": [1, 1, 0, 0], "r": [1e50, -1e50, 5e49, 2.0**-1060]})
    told = {"state": ["s"], "next_state": ["t"], "action": ["a"], "reward": "r", "done": False, "truncated": False}
    tallied = count(parquet(frame), **told, piece_rows=1)
    assert tallied.rewards.total[0, 0] * tallied.rewards.size == 5e49
    assert np.isfinite(tallied.rewards.scatter)
    small = count(parquet(frame[3:], "small.parquet"), **told)
    assert small.rewards.total[1 if len(small.state_names) > 1 and small.state_names[0] == "0" else 0, 0] > 0


def test_a_blank_partner_of_another_size_is_no_obstacle(parquet):
    large = pl.Series([2**40, 2**40 + 1, 2**40], dtype=pl.Int64)
    frame = pl.DataFrame({"s": large, "a": [1, 1, 1], "t": pl.Series([None] * 3, dtype=pl.Int8), "end": [True] * 3})
    told = {"state": ["s"], "next_state": ["t"], "action": ["a"], "reward": False, "done": "end", "truncated": False}
    assert check(parquet(frame), told).endings == 3


def test_large_counts_stay_sparse_as_tally_keeps_them(parquet):
    rng = np.random.default_rng(0)
    n, S = 20_000, 2000
    frame = pl.DataFrame(
        {"state": rng.integers(0, S, n), "action": rng.integers(0, 3, n), "next_state": rng.integers(0, S, n)}
    )
    told = {"state": ["state"], "next_state": ["next_state"], "action": ["action"], "reward": False}
    tallied = check(parquet(frame, group=3000), told | {"done": False, "truncated": False}, piece_rows=6000)
    assert tallied.counts.sparse


def test_columns_are_found_by_their_names_and_what_is_not_used_is_told(parquet):
    frame = rows().select(state="stage", action=pl.lit(1), next_state=pl.col("next_stage").fill_null(0), patient="ward")
    tallied = count(parquet(frame))
    assert tallied.rewards is None
    assert any("Not used: patient" in note for note in tallied.notes)
