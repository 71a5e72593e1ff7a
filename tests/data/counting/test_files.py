"""What cannot be counted is refused with the file and the row, and what to do."""

import contextlib

import numpy as np
import polars as pl
import pytest
from counted import rows

from certeq import InputError
from certeq.data.counting import count
from certeq.data.counting import parquet as files

TOLD = {"state": ["s"], "next_state": ["t"], "action": ["a"]}


def plain(n=20, **more):
    return pl.DataFrame({"s": np.arange(n) % 3, "a": np.zeros(n, int), "t": np.arange(n) % 2} | more)


def refused(path, words, **told):
    with pytest.raises(InputError, match=words) as caught:
        count(path, **told)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "?"))
    return str(caught.value)


def test_what_is_not_there_or_not_parquet_is_refused(tmp_path, parquet):
    refused(tmp_path / "none", "There is no file")
    refused("s3://bucket/rows.parquet", "is an address")
    (tmp_path / "rows.csv").write_text("s,a,t\n1,2,3\n")
    refused(tmp_path / "rows.csv", r"rows\.csv is not Parquet.*let certeq learn read it")
    refused(tmp_path, "There is no Parquet file .* Folders inside it are not looked into")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 this is not one PAR1")
    refused(tmp_path / "bad.parquet", r"bad\.parquet cannot be read")
    refused(parquet(plain(0), "empty", files=2), "have no rows")


def test_a_folder_may_hold_files_without_rows(parquet, tmp_path):
    folder = parquet(plain(), "folder", files=2)
    plain(0).write_parquet(folder / "part-000a.parquet")
    assert count(folder, **TOLD).rows == 20
    assert count(folder, **TOLD).files == ("part-000.parquet", "part-001.parquet")


def test_damage_anywhere_is_refused_or_harmless(parquet, tmp_path):
    path = parquet(rows(400))
    good, rng = path.read_bytes(), np.random.default_rng(0)
    counted = 0
    for _ in range(40):
        data = bytearray(good)
        for at in rng.integers(len(data), size=4):
            data[at] = rng.integers(256)
        path.write_bytes(data)
        with contextlib.suppress(InputError):  # and nothing else
            count(path, state=["ward"], next_state=["next_ward"], action=["drug"], done="done", piece_rows=100)
            counted += 1
    assert 0 < counted < 20  # where a value is another one, nobody can tell


def test_files_of_a_folder_must_have_the_same_columns_of_the_same_kind(parquet):
    folder = parquet(plain(), "folder", files=2)
    plain().rename({"t": "T"}).write_parquet(folder / "part-001.parquet")
    refused(folder, r"part-001\.parquet has no column 't', as part-000\.parquet has", **TOLD)
    plain().with_columns(pl.col("t").cast(pl.String)).write_parquet(folder / "part-001.parquet")
    refused(folder, "Column 't' of part-001.parquet holds text, but 's' of part-000.parquet holds numbers", **TOLD)
    plain().with_columns(t=pl.lit(None), a=pl.col("a") > 0).write_parquet(folder / "part-001.parquet")
    refused(folder, "'t' is missing", **TOLD)


def test_kinds_of_number_may_differ_between_files(parquet):
    folder = parquet(plain(), "folder", files=2)
    changed = plain().with_columns(
        pl.col("s").cast(pl.Float32), pl.col("t").cast(pl.UInt8), pl.col("a").cast(pl.Boolean)
    )
    changed.write_parquet(folder / "part-001.parquet")
    tallied = count(folder, **TOLD)
    assert tallied.state_names == ("0", "1", "2")
    assert tallied.action_names == ("0",)
    assert len(tallied) == 30


def test_a_bad_row_is_named_with_its_file_whatever_the_piece(parquet):
    reward = np.zeros(20)
    reward[13] = np.nan
    folder = parquet(plain(20, r=reward), "folder", files=2)
    words = r"part-001\.parquet: Row 4 \(counting from 1, header not counted\): the reward 'r' is missing"
    for piece_rows in (1, 2, 3, 100):
        refused(folder, words, **TOLD, reward="r", piece_rows=piece_rows)
    refused(
        parquet(plain(20, r=[1e301] * 20), "large.parquet"),
        "the reward 'r' is 1e.301, beyond 1e.50",
        **TOLD,
        reward="r",
    )


def test_the_first_of_several_bad_rows_is_named_whatever_the_threads(parquet):
    state = pl.Series([i % 3 if i not in (11, 12, 17) else None for i in range(20)])
    path = parquet(plain(20, s=state))
    for threads in (1, 2, 4):
        refused(path, r"Row 12 .*'s' is missing. A state needs every value", **TOLD, piece_rows=1, threads=threads)


def test_after_an_error_nothing_more_is_begun(parquet, monkeypatch):
    path = parquet(plain(200, s=pl.Series([None] * 200, dtype=pl.Int64)), group=200)
    begun, read = [], files.read
    monkeypatch.setattr(files, "read", lambda piece, *columns: begun.append(piece.start) or read(piece, *columns))
    refused(path, "'s' is missing", **TOLD, piece_rows=1, threads=1)
    assert len(begun) < 100


def test_a_mark_of_the_end_that_says_something_else_is_refused(parquet):
    path = parquet(plain(20, done=["maybe"] * 20))
    refused(path, r"rows\.parquet: Row 1 .*'done' is 'maybe', but .*must say yes or no", **TOLD, done="done")


def test_a_missing_next_state_is_refused_unless_the_row_is_an_end(parquet):
    blank = pl.Series([None if i == 5 else 0 for i in range(20)])
    refused(
        parquet(plain(20, t=blank)),
        "Row 6 .*'t' is missing. Mark the rows after which an episode ended.*--done",
        **TOLD,
    )
    ends = [i == 5 for i in range(20)]
    assert count(parquet(plain(20, t=blank, end=ends), "ends.parquet"), **TOLD, done="end").endings == 1
    cut = count(parquet(plain(20, t=blank, cut=ends), "cut.parquet"), **TOLD, truncated="cut")
    assert cut.dropped == {"last row of an episode without a next state": 1}


def test_rows_whose_next_state_is_in_the_next_row_are_refused_with_the_remedy(parquet):
    long = plain().drop("t").rename({"s": "state", "a": "action"})
    refused(parquet(long), r"cannot tell which column is the next state.*pl\.col\('state'\)\.shift\(-1\)\.over")
    refused(
        parquet(plain(), "again.parquet"), "Counting needs a column for the next state", **TOLD | {"next_state": False}
    )


def test_bins_that_need_all_rows_are_refused(parquet):
    path = parquet(plain(20, s=np.linspace(0, 1, 20)))
    for bins in ("quantile:4", "kmeans:3"):
        refused(path, "cannot bin 's' by (quantile|kmeans).*--bins s=edges", **TOLD, bins={"s": bins})
    refused(path, "cannot cut all columns alike", **TOLD, bins=4)
    refused(path, "no state or action column 'x' to bin", **TOLD, bins={"x": "labels"})
    refused(path, "'s' is 0.0526316, a fraction.*edges", **TOLD)
    refused(parquet(plain(20, s=["a"] * 20), "t.parquet"), "'t' of t.parquet holds numbers, but 's'", **TOLD)
    words = parquet(plain(20, s=["a"] * 20, t=["1"] * 20), "w.parquet")
    refused(words, "Row 1 .*'s' is 'a', but edges needs numbers", **TOLD, bins={"s": "edges:1"})


def test_values_that_cannot_be_labels_are_refused(parquet):
    refused(
        parquet(plain(20, s=[np.inf] * 20)), "Row 1 .*'s' is inf, which cannot be a label", **TOLD, bins={"s": "labels"}
    )
    large = pl.Series([2**63] * 20, dtype=pl.UInt64)
    refused(parquet(plain(20, s=large), "u.parquet"), "'s' holds whole numbers beyond 2.63", **TOLD)
    refused(parquet(plain(20, a=["x" * 10_001] * 20), "l.parquet"), "'a' holds a text of 10,001 characters", **TOLD)
    refused(parquet(plain(20, a=[[1]] * 20), "v.parquet"), "Column 'a' has the type", **TOLD)


def test_more_states_than_were_meant_are_refused_in_one_piece_and_over_all(parquet):
    path = parquet(plain(20, s=np.arange(20)))
    for piece_rows in (2, 100):
        refused(
            path,
            "more than 5 states .*Column 's' has the most different values",
            **TOLD,
            max_states=5,
            piece_rows=piece_rows,
        )


def test_more_pairs_than_fit_into_memory_are_refused(parquet, monkeypatch):
    path = parquet(plain(20, s=np.arange(20), a=np.arange(20)))
    monkeypatch.setenv("CERTEQ_MAX_PAIRS", "100")
    refused(path, "make 400 pairs, more than 100", **TOLD)
    refused(path, "pairs, more than 100", **TOLD, piece_rows=5)


def test_rows_that_tell_nothing_leave_nothing(parquet):
    path = parquet(plain(20, a=pl.Series([None] * 20, dtype=pl.Int64)))
    refused(path, r"No transition is left of 20 rows \(row without an action: 20\)", **TOLD)
    some = plain(20, a=pl.Series([None] * 15 + [1] * 5))
    assert len(count(parquet(some, "some.parquet"), **TOLD, piece_rows=4)) == 5


def test_a_file_that_changes_meanwhile_is_noticed(parquet):
    (file,) = files.find(parquet(plain()))
    plain(300).write_parquet(file.path)
    with pytest.raises(InputError, match="it is another file, or it has changed"):
        files.read(files.Piece(file, 0, 5), ["s"])
    with pytest.raises(InputError, match=r"There is no file .* here. All workers must see the files"):
        files.digest(files.File("/nowhere/rows.parquet", 1, 1, {}))


def test_workers_and_a_scheduler_are_not_asked_for_together(parquet):
    refused(parquet(plain()), "workers= .* is for local processes and scheduler=", workers=2, scheduler="tcp://x:1")
