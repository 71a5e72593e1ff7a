"""Files that mean harm are refused in one paragraph, with exit code 2, in 4 GiB of memory; nothing is written."""

import ast
import contextlib
import io
import struct
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trust.hostile import CASES, HEAVY
from trust.hostile.attempts import attempts

import certeq
from certeq import InputError
from certeq.base.limits import DEFAULTS, memory, most
from certeq.data.reading import read, sizes
from strategies import SEEDS

SOURCE = Path(certeq.__file__).parent
LOADERS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "torch"}


@pytest.fixture(scope="module")
def tried():
    """All cases but the heavy ones, one after the other in one process; it must survive them all."""
    return {attempt.name: attempt for attempt in attempts(name for name in CASES if name not in HEAVY)}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in HEAVY])
def test_it_is_refused_in_one_paragraph_and_leaves_nothing(tried, name):
    found = tried[name]
    assert found.refused, found
    assert len(found.said) < 3100


@pytest.mark.slow
def test_no_file_is_ever_unpickled():
    """Nothing in certeq imports a module that loads pickles, or lets NumPy, pandas or polars do it.

    But for two: what Numba compiled is kept as pickles, in a folder of the user's own, each with a checksum; and what a
    copy of the process has found comes through a pipe that only the two of them hold.
    """
    known = {SOURCE / "base" / name for name in ("compiling.py", "copies.py")}
    for path in set(SOURCE.rglob("*.py")) - known:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not {name.split(".")[0] for name in names} & LOADERS, f"{path.name}, line {node.lineno}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert node.func.attr not in ("read_pickle", "deserialize"), f"{path.name}, line {node.lineno}"
                if node.func.attr == "load" and getattr(node.func.value, "id", "") in ("np", "numpy"):
                    told = {keyword.arg: keyword.value for keyword in node.keywords}
                    assert "allow_pickle" in told, f"{path.name}, line {node.lineno}"
                    assert told["allow_pickle"].value is False
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "__import__"), f"{path.name}, line {node.lineno}"


# ---- limits ----


def test_limits_follow_the_memory_there_is_and_the_environment(monkeypatch):
    assert 0 < most("bytes") <= memory() // 8
    for name, default in DEFAULTS.items():
        assert most(name) == default()
        monkeypatch.setenv(f"CERTEQ_MAX_{name.upper()}", "7")
        assert most(name) == 7
    for said in ("", "0", "-1", "1e9", "seven", "9" * 30, "٣"):
        monkeypatch.setenv("CERTEQ_MAX_ROWS", said)
        with pytest.raises(InputError, match="CERTEQ_MAX_ROWS must be a whole number"):
            most("rows")


@pytest.mark.parametrize(
    ("name", "most_allowed", "words"),
    [
        ("bytes", 20, "more than the limit of 20.*CERTEQ_MAX_BYTES"),
        ("rows", 2, "has 3 rows; certeq takes 2.*CERTEQ_MAX_ROWS"),
        ("columns", 4, "has 5 columns; certeq takes 4.*CERTEQ_MAX_COLUMNS"),
        ("label", 2, "a text of 3 characters; a label may have 2.*CERTEQ_MAX_LABEL"),
        ("pairs", 3, "make 4 pairs, more than 3.*CERTEQ_MAX_PAIRS"),
    ],
)
def test_a_limit_is_held_its_message_says_how_to_raise_it_and_raising_it_helps(
    tmp_path, monkeypatch, name, most_allowed, words
):
    path = tmp_path / "rows.csv"
    path.write_text("episode,time,state,action,reward\n1,0,one,x,1\n1,1,two,y,2\n1,2,one,x,3\n")
    assert read(path).n_states == 2
    variable = f"CERTEQ_MAX_{name.upper()}"
    monkeypatch.setenv(variable, str(most_allowed))
    with pytest.raises(InputError, match=words):
        read(path)
    monkeypatch.setenv(variable, "1000")
    assert read(path).n_states == 2


def test_a_horizon_beyond_memory_is_refused_before_planning():
    with pytest.raises(InputError, match="for each of 1,000,000,000,000 decisions"):
        certeq.solve_finite(np.eye(2)[:, None], np.zeros((2, 1)), 1.0, 10**12)


# ---- the sizes of Parquet and Arrow files ----


def table(seed):
    """Columns of several types with random contents, among them lists, texts and blanks."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 2000))
    lengths = rng.integers(0, 5, size=n)
    lists = pa.array([list(range(k)) for k in lengths.tolist()], pa.list_(pa.int64()))
    texts = pa.array(rng.choice(["", "a", "some longer text", None], size=n).tolist(), pa.string())
    columns = {"list": lists, "text": texts, "flag": rng.random(n) < 0.5, "none": pa.nulls(n), "x": rng.normal(size=n)}
    held = lengths.sum() + 4 * n
    return pa.table(columns), int(held)


@given(SEEDS, st.sampled_from(["none", "zstd", "snappy", "gzip"]), st.booleans(), st.sampled_from(["1.0", "2.0"]))
def test_a_parquet_file_is_never_larger_in_memory_than_its_headers_say(seed, packed, dictionary, version):
    held, values = table(seed)
    file = io.BytesIO()
    pq.write_table(
        held, file, compression=packed, use_dictionary=dictionary, data_page_version=version, row_group_size=500
    )
    said = sizes.parquet(memoryview(file.getvalue()), 2**60)
    assert said >= 8 * values
    assert said >= pl.read_parquet(io.BytesIO(file.getvalue())).select("x", "list").estimated_size()
    assert said < 100 * file.getbuffer().nbytes + 64 * values + 200_000  # and not without reason


@given(SEEDS, st.sampled_from([None, "zstd", "lz4"]), st.booleans())
def test_an_arrow_file_or_stream_is_never_larger_in_memory_than_its_headers_say(seed, packed, stream):
    held, values = table(seed)
    file = io.BytesIO()
    opened = pa.ipc.new_stream if stream else pa.ipc.new_file
    with opened(file, held.schema, options=pa.ipc.IpcWriteOptions(compression=packed)) as writer:
        writer.write_table(held, max_chunksize=700)
    said = sizes.arrow(memoryview(file.getvalue()), 2**60)
    assert said >= 8 * values
    assert said >= held.nbytes
    assert said < 100 * file.getbuffer().nbytes + 64 * values + 200_000


@pytest.mark.parametrize("write", ["write_parquet", "write_ipc", "write_ipc_stream"])
def test_what_polars_writes_is_measured_too(write):
    frame = pl.DataFrame({"x": np.arange(5000), "y": ["text"] * 5000, "z": pl.Series([[1, 2]] * 5000)})
    file = io.BytesIO()
    getattr(frame, write)(file)
    measure = sizes.parquet if write == "write_parquet" else sizes.arrow
    said = measure(memoryview(file.getvalue()), 2**60)
    assert 8 * 4 * 5000 <= said < 3_000_000
    assert measure(memoryview(file.getvalue()), 1000) > 1000  # it stops as soon as that is clear


@given(st.binary(max_size=300), st.sampled_from(["parquet", "arrow"]), SEEDS)
def test_headers_that_make_no_sense_are_damage_and_nothing_else(junk, kind, seed):
    """Random bytes, alone and in the place of the headers of a sound file."""
    measure = getattr(sizes, kind)
    frame, file = pl.DataFrame({"x": [1, 2, 3], "y": ["a", "b", None]}), io.BytesIO()
    frame.write_parquet(file) if kind == "parquet" else frame.write_ipc(file)
    assert measure(memoryview(file.getvalue()), 10**9) > 0
    spoiled, rng = bytearray(file.getvalue()), np.random.default_rng(seed)
    for at in rng.integers(len(spoiled), size=8):
        spoiled[at] = rng.integers(256)
    footer = junk + struct.pack("<I", len(junk)) + b"PAR1"
    for data in (junk, b"PAR1" + footer, b"ARROW1\0\0" + junk, bytes(spoiled)):
        with contextlib.suppress(sizes.Damaged):
            assert measure(memoryview(data), 10**9) >= 0


def test_a_page_that_is_listed_a_thousand_times_counts_a_thousand_times():
    """The footer of a Parquet file may name one column chunk again and again."""
    file = io.BytesIO()
    pq.write_table(pa.table({"x": np.zeros(1000, dtype=np.int8)}), file, row_group_size=1000)
    once = sizes.parquet(memoryview(file.getvalue()), 2**60)
    data = file.getvalue()
    (length,) = struct.unpack("<I", data[-8:-4])
    footer = data[-8 - length : -8]
    group = footer.index(b"\x19\x1c", footer.index(b"\x16"))  # field 4, a list of one structure: the row groups
    inside, end = sizes._struct(memoryview(footer), group + 2)
    assert 1 in inside
    many = footer[:group] + b"\x19\xfc\xe8\x07" + footer[group + 2 : end] * 1000 + footer[end:]
    forged = data[: -8 - length] + many + struct.pack("<I", len(many)) + b"PAR1"
    assert sizes.parquet(memoryview(forged), 2**60) == 1000 * once
