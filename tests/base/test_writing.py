"""Writing results: everything or nothing, never over something that is there, and nothing a spreadsheet would run."""

import csv
import io
import json
import os
import stat
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certeq import InputError
from certeq.base.keeping import fingerprint, keep, recall
from certeq.base.texts import csv_text, json_text
from certeq.base.writing import check_free, write_files


def everything(folder):
    """All that lies in a folder, with what is in the files."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_files_are_written_with_the_folders_they_need(tmp_path):
    write_files({tmp_path / "a" / "b" / "x.txt": "größe\n", tmp_path / "y.bin": b"\x00\xff"})
    assert (tmp_path / "a" / "b" / "x.txt").read_bytes() == "größe\n".encode()
    assert (tmp_path / "y.bin").read_bytes() == b"\x00\xff"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "x.txt", "y.bin"]


def test_what_is_there_is_not_overwritten_unless_that_is_asked_for(tmp_path):
    (tmp_path / "b.txt").write_text("old")
    files = {tmp_path / "a.txt": "new", tmp_path / "b.txt": "new"}
    with pytest.raises(InputError, match=r"b\.txt already exists\. Choose another place with --out, or .*--force"):
        write_files(files)
    assert everything(tmp_path) == {"b.txt": b"old"}
    write_files(files, force=True)
    assert everything(tmp_path) == {"a.txt": b"new", "b.txt": b"new"}


def test_being_in_the_way_is_noticed_before_any_work(tmp_path):
    check_free([tmp_path / "x"], force=False)
    with pytest.raises(InputError, match="already exists"):
        check_free([tmp_path], force=True)  # a folder is never overwritten
    (tmp_path / "y").write_text("old")
    with pytest.raises(InputError, match="already exists"):
        check_free([tmp_path / "y"], force=False)
    check_free([tmp_path / "y"], force=True)


def test_a_name_that_is_too_long_is_an_error_in_words(tmp_path):
    with pytest.raises(InputError, match=r"long|write"):
        write_files({tmp_path / ("x" * 300): "new"})


def test_a_folder_in_the_way_of_one_file_keeps_all_from_being_written(tmp_path):
    (tmp_path / "b.txt").mkdir()
    (tmp_path / "a.txt").write_text("old")
    before = everything(tmp_path)
    with pytest.raises(InputError, match=r"b\.txt"):
        write_files({tmp_path / "a.txt": "new", tmp_path / "b.txt": "new", tmp_path / "c.txt": "new"}, force=True)
    assert everything(tmp_path) == before


def test_a_file_where_a_folder_should_be_keeps_all_from_being_written(tmp_path):
    (tmp_path / "file").write_text("I am not a folder")
    before = everything(tmp_path)
    with pytest.raises(
        InputError, match=r"Could not write .*b\.txt: .*/file is a file and not a folder\..* another place"
    ):
        write_files({tmp_path / "a.txt": "new", tmp_path / "file" / "b.txt": "new"})
    for below in (("x", "y"), ("deep/x", "deep/y"), ("x",)):
        with pytest.raises(InputError, match=r"Could not write .*/file is a file and not a folder\..* another place"):
            check_free([tmp_path / "file" / name for name in below], force=True)
    assert everything(tmp_path) == before


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"No space left on device\. Nothing was kept"):
        write_files({tmp_path / "a.txt": "new", tmp_path / "b.txt": "new"})
    assert everything(tmp_path) == {}


def test_a_rename_that_fails_half_way_leaves_nothing_new_behind(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("old")
    rename = Path.replace

    def once(self, target):
        if Path(target).name == "b.txt":
            raise OSError(1, "Operation not permitted", str(target))
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", once)
    with pytest.raises(InputError, match=r"Could not write .*b\.txt"):
        write_files({tmp_path / "a.txt": "new", tmp_path / "b.txt": "new"}, force=True)
    assert everything(tmp_path) == {"a.txt": b"old"}


def test_a_folder_that_another_run_takes_away_is_made_again(tmp_path, monkeypatch):
    """Many runs that begin at once try whether the folder can be written to, and take it away again if they made it."""
    make, taken = tempfile.mkdtemp, []

    def late(**given):
        if len(taken) < 3:
            taken.append(given["dir"])
            Path(given["dir"]).rmdir()
        return make(**given)

    monkeypatch.setattr(tempfile, "mkdtemp", late)
    write_files({tmp_path / "deep" / "out" / "a.txt": "new"})
    assert len(taken) == 3
    assert (tmp_path / "deep" / "out" / "a.txt").read_text() == "new"


def test_a_folder_that_is_always_taken_away_is_an_error_in_words(tmp_path, monkeypatch):
    def never(**given):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(tempfile, "mkdtemp", never)
    with pytest.raises(InputError, match="other runs keep removing the folder"):
        write_files({tmp_path / "out" / "a.txt": "new"})


def test_where_no_folder_can_be_made_no_other_run_is_blamed(tmp_path, monkeypatch):
    """Not in /proc, for one, whoever asks."""

    def never(self, *_, **__):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(Path, "mkdir", never)
    with pytest.raises(InputError, match=r"no folder can be made there\. Nothing was kept\. Choose another place"):
        check_free([tmp_path / "out" / "a.txt", tmp_path / "out" / "b.txt"], force=False)


def test_a_place_that_is_read_only_is_named_with_the_file_and_what_to_do(tmp_path, monkeypatch):
    def refuse(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(InputError, match=r"write .*/q\.csv: Read-only file system\. Nothing was kept\. Choose another"):
        check_free([tmp_path / "q.csv"], force=False)


@pytest.mark.parametrize("header", ["{'descr': (", "{'descr': '''", "{'shape': (3,\0", "nothing"])
def test_what_was_kept_with_a_damaged_header_counts_as_not_kept(tmp_path, header):
    """NumPy reads headers by way of Python's tokenizer, whose complaints are of a kind of their own."""
    keep(tmp_path, {"task": "t"}, {"x": np.arange(3.0)})
    assert recall(tmp_path, {"task": "t"})["x"].tolist() == [0, 1, 2]
    (place,) = tmp_path.iterdir()
    with zipfile.ZipFile(place) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    end = len(members["x.npy"]) - 3 * 8
    members["x.npy"] = members["x.npy"][:10] + header.encode().ljust(end - 11) + b"\n" + members["x.npy"][end:]
    with zipfile.ZipFile(place, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert recall(tmp_path, {"task": "t"}) is None


def test_text_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    with pytest.raises(InputError):
        write_files({tmp_path / "a.txt": "fine", tmp_path / "b.txt": "half a pair \ud800"})
    assert everything(tmp_path) == {}


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_those_who_keep_their_files_to_themselves_keep_these_too(tmp_path):
    before = os.umask(0o077)
    try:
        write_files({tmp_path / "a.txt": "patients"})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o600


# ---- CSV ----


def read_back(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_any_text_comes_back_from_csv_marked_where_a_spreadsheet_would_run_it(rows):
    found = read_back(csv_text(("a", "b"), rows))
    assert found[0] == ["a", "b"]
    for line, row in zip(found[1:], rows, strict=True):
        for cell, text in zip(line, row, strict=True):
            assert cell in (text, f"'{text}")
            assert not cell.startswith(("=", "@", "\t", "\r"))


@pytest.mark.parametrize("label", ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")', "-1+2"])
def test_a_formula_is_quoted(label):
    assert read_back(csv_text([label], [[label]])) == [[f"'{label}"]] * 2


@pytest.mark.parametrize("label", ["x\r=1+1", "x\n=1+1", 'x"\r\n=1+1'])
def test_a_formula_on_a_second_line_of_a_label_does_not_become_a_cell_of_its_own(label):
    assert read_back(csv_text(["a"], [[label]])) == [["a"], [label]]


@pytest.mark.parametrize("label", [" =1+1", "\u00a0=1", "＝1+1", "\n=1"])
def test_a_formula_behind_a_blank_is_no_formula_but_stays_itself(label):
    assert read_back(csv_text(["a"], [[label]]))[1][0].lstrip("'") == label


@pytest.mark.parametrize("label", ["-1", "+1", "-0.5", "-3e5"])
def test_a_label_that_is_a_number_is_no_formula(label):
    """Actions -1, 0 and +1 are common; whoever looks for them in the file must find them."""
    assert read_back(csv_text(["dose"], [[label]])) == [["dose"], [label]]


def test_numbers_and_blanks_are_written_plainly():
    assert csv_text(("a", "b", "c", "d"), [(-1.5, None, True, np.int64(3))]) == "a,b,c,d\n-1.5,,True,3\n"


# ---- JSON ----


def test_json_is_for_people_and_has_only_numbers_that_json_has():
    assert json_text({"größe": [1, 2]}).startswith('{\n  "größe"')
    assert json.loads(json_text({"a": [1, None]})) == {"a": [1, None]}
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="a result is infinite or not a number"):
            json_text({"x": number})


# ---- work that goes on where it was stopped ----

ARRAYS = {"whole": np.arange(6).reshape(2, 3), "none": np.zeros((0, 4)), "odd": np.array([np.nan, -0.0, 1e-320])}


def test_what_is_kept_comes_back_to_the_bit_and_only_for_the_same_task(tmp_path):
    about = {"task": "x", "rows": [1, 2], "name": "größe"}
    assert recall(tmp_path, about) is None
    keep(tmp_path, about, ARRAYS)
    found = recall(tmp_path, about)
    assert set(found) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()
    for other in ({"task": "y"}, about | {"rows": [1, 3]}, about | {"more": 1}):
        assert recall(tmp_path, other) is None
    keep(tmp_path, about, {"whole": np.ones(2)})
    assert recall(tmp_path, about)["whole"].tolist() == [1, 1]


def test_what_another_version_kept_is_not_taken(tmp_path, monkeypatch):
    keep(tmp_path, {"task": 1}, ARRAYS)
    monkeypatch.setattr("certeq.__version__", "99")
    assert recall(tmp_path, {"task": 1}) is None


def test_no_single_byte_that_changes_goes_unnoticed(tmp_path):
    keep(tmp_path, {"task": 1}, {"x": np.arange(10.0)})
    (path,) = tmp_path.iterdir()
    data, rng = path.read_bytes(), np.random.default_rng(0)
    noticed = 0
    assert recall(tmp_path, {"task": 1})["x"].tolist() == list(range(10))
    for at in rng.choice(len(data), size=150, replace=False):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x5A]) + data[at + 1 :])
        found = recall(tmp_path, {"task": 1})
        noticed += found is None
        assert found is None or found["x"].tolist() == list(range(10))  # a date in the archive may be another
    assert noticed > 100
    for length in rng.choice(len(data), size=50, replace=False):
        path.write_bytes(data[:length])
        assert recall(tmp_path, {"task": 1}) is None


def test_objects_are_neither_kept_nor_taken(tmp_path):
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        keep(tmp_path, {"task": 1}, {"x": np.array([print], dtype=object)})
    keep(tmp_path, {"task": 1}, {})
    (path,) = tmp_path.iterdir()
    with zipfile.ZipFile(path, "a") as archive:
        held = io.BytesIO()
        np.save(held, np.array([{}], dtype=object), allow_pickle=True)
        archive.writestr("x.npy", held.getvalue())
    assert recall(tmp_path, {"task": 1}) is None


@dataclass(frozen=True)
class Thing:
    one: object
    two: object = None


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
NESTED = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(NESTED, NESTED)
def test_different_things_have_different_fingerprints(one, other):
    alike = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (fingerprint(one) == fingerprint(other)) == alike
    assert fingerprint(Thing(one)) != fingerprint(Thing(None, one)) or one is None


def test_arrays_are_told_apart_by_numbers_shapes_and_types():
    table = np.arange(6)
    things = [
        *(table, table.reshape(2, 3), table.reshape(3, 2), table.astype(np.int32), table.astype(float), table + 1),
        *(sp.csr_array(table.reshape(2, 3)), sp.csr_array(table.reshape(3, 2)), table.tolist(), [table], [1, [2]]),
        *([[1], 2], {"a": [1], "b": [2]}, {"a": [1, 2], "b": []}, np.array(["a", None], dtype=object)),
        *("1", 1, 1.0, True, None, b"".decode()),
    ]
    assert len({fingerprint(thing) for thing in things}) == len(things)
    assert fingerprint(table[::2]) == fingerprint(table[::2].copy())
    assert fingerprint(np.float64(0.5)) == fingerprint(0.5)
    with pytest.raises(InputError, match="a setting of the kind builtin_function_or_method cannot be kept"):
        fingerprint([print])
