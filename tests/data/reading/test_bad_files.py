"""Files as people really have them: each a one-paragraph error that says what to do, never a traceback of a library."""

import contextlib
import gzip
import hashlib
import os
import sys
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from certeq.base.errors import InputError
from certeq.base.limits import most
from certeq.data.check import check
from certeq.data.counting import count
from certeq.data.reading import columns, read

HEADER = "episode,time,state,action,reward\n"
ROWS = HEADER + "1,0,A,x,1\n1,1,B,x,2\n1,2,A,y,3\n"


@pytest.fixture
def file(tmp_path):
    def write(content, name="rows.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def frame():
    return pl.read_csv(ROWS.encode())


def refused(source, words, **told):
    with pytest.raises(InputError, match=words) as caught:
        read(source, **told)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    assert caught.value.__cause__ is None
    return message


def test_a_good_file_is_read(file):
    batch = read(file(ROWS))
    assert len(batch) == 2
    assert batch.fingerprint == hashlib.sha256(ROWS.encode()).hexdigest()
    assert read(str(file(ROWS))).fingerprint == batch.fingerprint


def test_a_file_that_is_not_there_is_named_with_its_nearest_neighbor(file, tmp_path):
    file(ROWS, "patients.csv")
    refused(tmp_path / "patient.csv", r"There is no file .*patient\.csv\. Did you mean 'patients\.csv'")
    refused(tmp_path / "nowhere" / "x.csv", "There is no folder .*nowhere either")
    refused("\0bad", "cannot be opened")


@pytest.mark.parametrize(
    "address", ["https://example.org/x.csv", "s3://bucket/x.parquet", "file:///etc/passwd", "HTTP://x/y.csv"]
)
def test_an_address_is_not_a_file(address):
    refused(address, "is an address.*Download it first")


def test_a_pattern_is_not_expanded(file, tmp_path):
    file(ROWS, "a.csv")
    refused(tmp_path / "*.csv", "There is no file")
    read(file(ROWS, "[a].csv"))


def test_a_folder_is_not_a_file(tmp_path):
    refused(tmp_path, "is a folder, and not a Minari data set, which has a file data/metadata.json")
    with pytest.raises(InputError, match=f"{tmp_path.name} is a folder. Give the name of a table file inside it"):
        columns(tmp_path)


def test_a_pipe_is_not_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    refused(tmp_path / "pipe.csv", "not a regular file")
    refused("/dev/null", "not a kind of file that certeq reads")


def test_a_file_one_may_not_read_is_refused(file, monkeypatch):
    path = file(ROWS)
    if os.geteuid() == 0:  # for root no file is closed

        def denied(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(type(path), "open", denied)
    else:
        path.chmod(0)
    refused(path, r"cannot be opened: you are not allowed to read it \(permission denied\)")


@pytest.mark.parametrize("content", ["", "\n", "  \n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(content, file):
    refused(file(content), "is empty|no rows|cannot be read")


@pytest.mark.parametrize("content", [HEADER, HEADER.strip()])
def test_only_a_header_is_refused(content, file):
    refused(file(content), r"rows\.csv has a header but no rows")


def test_no_rows_are_refused_in_every_format(tmp_path):
    empty = frame().head(0)
    empty.write_parquet(tmp_path / "x.parquet")
    empty.write_ipc(tmp_path / "x.arrow")
    for source in (
        tmp_path / "x.parquet",
        tmp_path / "x.arrow",
        empty,
        empty.lazy(),
        empty.to_pandas(),
        {"state": []},
        {},
    ):
        refused(source, "no rows")
    (tmp_path / "x.jsonl").touch()
    refused(tmp_path / "x.jsonl", "is empty")


def test_one_row_makes_no_transition_in_the_long_form(file):
    refused(file(HEADER + "1,0,A,x,1\n"), r"No transition is left of 1 row .*last row of an episode")


def test_a_missing_column_is_refused_with_its_nearest_names(file):
    refused(
        file(ROWS),
        r"no column 'Reward' to be the reward\. Did you mean 'reward'\? The columns are: episode, time",
        reward="Reward",
    )
    refused(
        file(ROWS.replace("action", "xyz")),
        r"which column is the action\..*--action.*columns are: episode, time, state, xyz",
    )


def test_mixed_types_are_refused_with_row_and_value(file):
    many = HEADER + "".join(f"1,{t},{t % 7},x,1\n" for t in range(3000)) + "1,3000,oops,x,1\n1,3001,1,x,1\n"
    refused(file(many), r"Row 3001 .*'state' is 'oops', but most of this column are numbers.*--bins state=labels")
    rewards = HEADER + "".join(f"1,{t},A,x,1\n" for t in range(3000)) + "1,3000,A,x,n/k\n1,3001,A,x,1\n"
    refused(file(rewards), r"Row 3001 .*the reward 'reward' is 'n/k'")


@pytest.mark.parametrize(
    ("values", "said", "words"),
    [
        (
            ["255", "3,144", "10,469"],
            {},
            "Row 2 .*'3,144'.* Write 3144, or 3.144 if the comma is a decimal mark.*=labels",
        ),
        (["255", "1,003,144", "5"], {}, "Row 2 .*commas between thousands. Write 1003144. If these are labels"),
        (["1,234.5", "1,000.25", ""], {"missing": "category"}, "Row 1 .*thousands. Write 1234.5. If"),
        (["3,144", "3,145", "2"], {"bins": {"x": "quantile:2"}}, "Row 1 .*'3,144'"),
        (["36,8", "37,25", "38"], {}, "Row 1 .*a decimal comma. Write 36.8, or separate the columns by ; instead"),
        (["0,125", "1,125", "2,250"], {}, "Row 1 .*a decimal comma. Write 0.125"),
    ],
)
def test_numbers_with_commas_are_refused_and_not_taken_for_labels(file, values, said, words):
    lines = [f'1,{t},"{value}",x,1\n' for t, value in enumerate(values)]
    path = file(HEADER.replace("state", "x") + "".join(lines))
    refused(path, words, **said)
    if "" not in values:
        assert {*read(path, bins={"x": "labels"}, ends="always").state_names} == {*values}


@pytest.mark.parametrize("values", ["A B,5 3,144", "1,2,3 2,1,3 3,3,3", "1,23,456 2,10,000 3,00,000", "-5,x 3,1 2"])
def test_labels_with_commas_are_labels(file, values):
    lines = [f'1,{t},"{value}",x,1\n' for t, value in enumerate(values.split())]
    assert read(file(HEADER + "".join(lines)), ends="always").n_states == 3


def test_decimal_commas_in_rewards_are_refused_as_such(file):
    rows = HEADER + '1,0,A,x,"8,2"\n1,1,B,x,"17,8"\n1,2,A,y,3\n'
    refused(file(rows), "Row 1 .*'reward' is '8,2', .*a decimal comma. Write 8.2, or separate the columns by ; instead")
    assert read(file(rows.replace(",", ";").replace('"8;2"', "8,2").replace('"17;8"', "17,8"))).reward.tolist() == [
        8.2,
        17.8,
    ]


def test_a_missing_state_is_refused(file):
    for blank in ("", "NA", "NaN", " nan ", "null"):
        refused(file(ROWS.replace("1,1,B", f"1,1,{blank}")), r"Row 2 .*'state' is missing")
    numbers = ROWS.replace("A", "1.5").replace("B", "NA")
    refused(file(numbers), r"Row 2 .*'state' is missing")


@pytest.mark.parametrize("value", ["inf", "-inf", "Infinity"])
def test_an_infinite_state_is_refused(value, file):
    numbers = ROWS.replace("A", "1.5").replace("1,1,B", f"1,1,{value}").replace("B", "2.5")
    refused(file(numbers), r"Row 2 .*'state' is -?inf, but must be a finite number where it is part of the state")
    seen = {column.name: column.span for column in check(file(numbers)).columns}
    assert "inf" in seen["state"]


def test_rewards_on_last_rows_alone_are_refused_with_how_many_and_what_to_fill_in(file):
    lines = "\n".join(f"{i // 4},{i % 4},s{i % 3},a,{'1' if i % 4 == 3 else ''}" for i in range(40))
    path = file(f"episode,time,state,action,reward\n{lines}\n")
    refused(path, r"Row 1 .* is missing \(and in 29 further rows\), .* Fill in 0 where nothing was earned")


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/63"])
def test_a_pipe_is_refused_as_such(name):
    refused(name, "is a pipe, and certeq reads only files")


@pytest.mark.parametrize("value", ["inf", "-inf", "Infinity", "NaN", ""])
def test_an_infinite_or_missing_reward_is_refused(value, file):
    refused(
        file(ROWS.replace("B,x,2", f"B,x,{value}")),
        r"Row 2 .*the reward 'reward' is (-?inf|missing), but must be a finite",
    )


def test_a_hundred_thousand_labels_are_refused_with_the_remedy(tmp_path):
    n = 100_000
    rows = pl.DataFrame(
        {"t": np.arange(n), "name": pl.Series(np.arange(n)).cast(pl.String) + "x", "a": np.zeros(n, dtype=int)}
    )
    rows = rows.with_columns(r=0.0)
    rows.write_parquet(tmp_path / "rows.parquet")
    refused(tmp_path / "rows.parquet", r"more than 50,000 states .*'name'.*100,000.*Group its labels")
    numbers = rows.with_columns(name=pl.int_range(n))
    refused(numbers, r"'name' has the most.*--bins name=quantile:8", bins={"name": "labels"})
    assert read(numbers, bins=4).n_states == 4


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.feather", "x.csv.gz"])
def test_a_truncated_file_is_refused(name, tmp_path):
    path = tmp_path / name
    big = pl.concat([frame()] * 500)
    if name.endswith("parquet"):
        big.write_parquet(path)
    elif name.endswith("gz"):
        path.write_bytes(gzip.compress(big.write_csv().encode()))
    else:
        big.write_ipc(path)
    whole = path.read_bytes()
    for size in (1, 9, len(whole) // 2, len(whole) - 4):
        path.write_bytes(whole[:size])
        refused(path, r"x\.\w+(\.gz)? (cannot be read|is damaged or cut off).*Write it again|not plain UTF-8")


def test_damage_anywhere_is_refused_or_harmless(tmp_path):
    path = tmp_path / "x.parquet"
    rng = np.random.default_rng(0)
    long = pl.concat([frame().with_columns(episode=pl.lit(i), reward=rng.random(3)) for i in range(300)])
    long.write_parquet(path, compression="uncompressed")
    whole, known = path.read_bytes(), 0
    for _ in range(60):
        data = bytearray(whole)
        for at in rng.integers(len(data), size=2):
            data[at] = rng.integers(256)
        path.write_bytes(data)
        with contextlib.suppress(InputError):  # and nothing else
            known += read(path).n_states
    assert 0 < known < 120  # 2 where it was read


def test_a_file_that_is_not_what_its_name_says_is_refused(file):
    refused(file(ROWS, "x.parquet"), r"x\.parquet cannot be read.*not what its name says")
    refused(file(ROWS, "x.arrow"), r"x\.arrow cannot be read")
    refused(file(ROWS, "x.jsonl"), r"x\.jsonl cannot be read")
    refused(file('[{"a": 1}]', "x.json"), "holds one list. Write JSON lines")
    refused(file('{"state": 1}\n{"state":', "x.jsonl"), r"x\.jsonl cannot be read")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x.xlsx", "Save the sheet as CSV"),
        ("x.pkl", "may hold code"),
        ("x.npz", "may hold code"),
        ("x.h5", "give its folder"),
        ("x", "It reads CSV"),
        ("x.gz", "It reads CSV"),
        ("x.dta", "It reads CSV"),
    ],
)
def test_other_formats_are_refused_with_a_way_out(name, words, file):
    refused(file(ROWS, name), words)


def test_text_that_is_not_utf8_is_refused(file):
    refused(file(ROWS.encode("utf-16")), "not plain UTF-8 text. Save it as 'CSV UTF-8'")
    refused(file((ROWS + "1,3,Bé,x,1\n").encode("latin-1")), "not plain UTF-8 text")
    refused(file(b"\x89PNG\r\n\x1a\n" + bytes(range(256))), "not plain UTF-8 text")


def test_lines_that_are_too_long_are_refused_and_short_ones_have_blanks(file):
    refused(file(ROWS + "1,3,A,x,1,extra\n"), r"Line 5 of rows\.csv has 6 values, and the header has 5 names")
    refused(file(ROWS + '1,3,"A\nB",x,1\n\n1,4,A,x,1,"an, extra"\n'), r"Line 8 of rows\.csv has 6 values")
    refused(file((ROWS + "1,3,A,x,much\n" * 1500 + "1,4,A,x,1,extra\n").replace(",", ";")), "Line 1505 of rows.csv")
    refused(file(ROWS + "1,3\n1,4,A,x,1\n"), "Row 4 .*'state' is missing")


def test_two_columns_of_one_name_are_refused(file):
    refused(file(ROWS.replace("time", "state")), "two columns named 'state'")


def test_a_file_beyond_the_limit_is_refused(file, tmp_path):
    refused(file(ROWS), r"more than the limit of 20\. Split it", limit_bytes=20)
    bomb = file(gzip.compress(ROWS.encode() + b"1,9,A,x,1\n" * 100_000), "x.csv.gz")
    refused(bomb, "unpacks to more than 10,000 bytes", limit_bytes=10_000)
    disguised = file(bomb.read_bytes(), "x.csv")
    refused(disguised, "unpacks to more than 10,000 bytes", limit_bytes=10_000)
    pl.DataFrame({"state": np.zeros(1_000_000, dtype=int)}).write_parquet(tmp_path / "x.parquet")
    refused(tmp_path / "x.parquet", "unpacks to more than 1,000,000 bytes", limit_bytes=1_000_000)
    refused(file(b"\x28\xb5\x2f\xfd" + bytes(50)), "compressed in a way|not plain UTF-8")


@pytest.mark.slow
def test_too_many_columns_and_labels_like_documents_are_refused(file):
    wide = {f"x{i}": [1] for i in range(most("columns") + 1)}
    refused(wide, "has 10,001 columns; certeq takes 10,000")
    refused(pl.DataFrame(wide), "has 10,001 columns")
    refused(pl.DataFrame({"x": [[0] * 6000, [1] * 6000], "y": [[0] * 6000] * 2}), "has 12,000 columns")
    refused(file(ROWS.replace("B", "B" * 10_001)), "holds a text of 10,001 characters")


def test_what_is_no_table_is_refused():
    for source in (3, None, object(), [1, 2], np.zeros(3)):
        refused(source, "certeq cannot read a")
    refused({"state": 3}, "must be an array or a list")
    refused({"state": [1, 2], "action": [1]}, "one length; got state: 2, action: 1")
    refused(
        {"state": [{}, {}], "action": [1, 2], "reward": [0, 0], "time": [0, 1]},
        "Column 'state' holds values of type dict",
    )


def test_odd_but_honest_files_are_read(file):
    quoted = ROWS.replace("A", '"A, or so"')
    assert read(file(quoted)).state_names == ("A, or so", "B")
    assert len(read(file(ROWS.replace("\n", "\r\n") + "\r\n\r\n"))) == 2
    german = ROWS.replace(",", ";").replace("x;1", "x;1,5").replace("x;2", "x;2,5")
    assert read(file(german)).reward.tolist() == [1.5, 2.5]
    assert read(file(ROWS.replace(",", "|"), "x.txt")).n_states == 2
    late = HEADER + "".join(f"1,{t},{t % 3},x,1\n" for t in range(2000)) + "1,2000,2,x,0.5\n1,2001,1,x,0\n"
    batch = read(file(late))
    assert batch.reward[-1] == 0.5
    assert batch.state_names == ("0", "1", "2")
    blank_first = HEADER + "".join(f"1,{t},A,,\n" for t in range(2000)) + "1,2000,A,3,0.5\n1,2001,A,3,\n"
    assert read(file(blank_first)).action_names == ("3",)
    gaps = HEADER + "1,0,A,x,NA\n1,1,A,,2\n1,2,A,x,3.5\n1,3,A,x,NA\n"
    with pytest.raises(InputError, match=r"Row 1 .*'reward' is missing"):
        read(file(gaps))


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ('"the ""state"""', 'the "state"'),
        ('"""a"", or ""b"""', '"a", or "b"'),
        ('"two ""lines""\nof it"', 'two "lines"\nof it'),
        ('""""', '"'),
    ],
)
def test_a_quotation_mark_that_is_doubled_in_the_header_is_one(file, written, name):
    assert list(columns(file(ROWS.replace("state", written, 1)))) == ["episode", "time", name, "action", "reward"]
    assert read(file(ROWS.replace("state", written, 1)), state=name).state_names == ("A", "B")
    german = ROWS.replace("state", written.replace(",", ";"), 1).replace(",", ";")
    assert name.replace(",", ";") in columns(file("\ufeff" + german))


def test_columns_opens_a_table_as_it_is(file):
    table = columns(file(ROWS))
    assert list(table) == ["episode", "time", "state", "action", "reward"]
    assert "state" in table
    assert "nothing" not in table
    assert np.asarray(table["time"]).tolist() == [0, 1, 2]
    assert np.asarray(table["state"]).tolist() == ["A", "B", "A"]


def test_reading_is_light_where_it_can_be():
    import subprocess

    code = "import sys, certeq.data.reading; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"polars", "narwhals", "pandas", "pyarrow", "gymnasium", "minari", "h5py", "scipy", "numba"}
    assert not heavy & set(done.stdout.split())


@pytest.mark.parametrize("verb", ["read", "count"])
@pytest.mark.parametrize("within", ["itself", "a list", "a struct"])
def test_decimals_of_too_many_digits_are_refused_before_the_library_sees_them(tmp_path, verb, within):
    """A list of them once ended the process, where other files had been read before."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    long = pa.decimal256(65, 49)
    kind, value = {
        "itself": (long, Decimal(1)),
        "a list": (pa.list_(long), [Decimal(1)]),
        "a struct": (pa.struct([("x", long)]), {"x": Decimal(1)}),
    }[within]
    rows = {"state": ["a", "b"], "action": [0, 1], "reward": [1.0, 2.0], "next_state": ["b", "a"]}
    pq.write_table(pa.table({**rows, "much": pa.array([value] * 2, kind)}), tmp_path / "rows.parquet")
    polars = tuple(map(int, pytest.importorskip("polars").__version__.split(".")[:2]))
    refused = "column 'much' holds decimals of 65 digits, and at most 38"
    if polars < (1, 40):  # which refuses the schema itself, before we see it
        refused += r"|Decimal256\(65, 49\)"
    with pytest.raises(InputError, match=refused):
        (read if verb == "read" else count)(tmp_path / "rows.parquet")
