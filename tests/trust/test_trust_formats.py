"""Files of every format with flipped bits and types end in a result or in words; what differs stays apart."""

import datetime
import json
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from trust.fuzzing import policy_json

from certeq import Counts, InputError, Policy, read
from certeq.base.doors import door
from certeq.data.counting import count
from certeq.data.recipes.containers import column
from trust import distinct, formats


@pytest.mark.slow
@pytest.mark.parametrize("kind", formats.KINDS)
def test_files_with_flipped_bits_and_types_are_read_or_refused_in_words(kind):
    found, failures = formats.campaign(kind, 100_000, 150)
    assert failures == []
    assert sum(found.values()) == 150


@pytest.mark.slow
def test_whatever_the_container_values_that_differ_stay_apart_or_are_refused():
    found, failures = distinct.campaign(np.random.default_rng(0), 1_500)
    assert failures == []
    assert found["kept apart"] > 300


class Panic(BaseException):
    """What a library in Rust raises."""


@pytest.mark.parametrize("trouble", [Panic("inside"), KeyError("x"), RecursionError(), AssertionError(), TypeError()])
def test_whatever_a_library_raises_over_a_file_is_told_with_its_name(trouble):
    with pytest.raises(InputError, match=r"rows\.x cannot be read: .*Write it again"), door("rows.x"):
        raise trouble


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), SystemExit(3), RuntimeError("can't start new thread")])
def test_what_is_not_about_the_file_goes_through_the_door(trouble):
    with pytest.raises(type(trouble)), door("rows.x"):
        raise trouble


def test_a_policy_that_is_nested_without_end_is_refused(tmp_path):
    said = policy_json()
    deep = 1
    for _ in range(40):
        deep = [deep]
    (tmp_path / "policy.json").write_text(json.dumps(said | {"action_values": deep}))
    with pytest.raises(InputError, match=r"policy\.json: The policy file is damaged at action_values"):
        Policy.load(tmp_path / "policy.json")


@pytest.mark.parametrize("day", [2**31 - 1, -(2**31), -719_163])
def test_days_that_no_calendar_has_are_refused_by_column(tmp_path, day):
    days = pl.Series([day, 0, 1], dtype=pl.Int32).cast(pl.Date)
    frame = pl.DataFrame({"state": days, "action": [0, 1, 0], "reward": [0.0, 1, 2], "next_state": days})
    frame.write_parquet(tmp_path / "rows.parquet")
    for reader in (read, count):
        with pytest.raises(InputError, match="'state' holds times outside of the years 1 to 9999"):
            reader(tmp_path / "rows.parquet")


SAME = (
    pl.Series([Decimal("0.12345678901234567890"), Decimal("0.12345678901234567891")]),
    [Decimal("0.12345678901234567890"), Decimal("0.12345678901234567891")],
    [2**53, 2**53 + 1, 0.5],
    [10**400, 1.5],
    np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64),
)
FINER = (
    pl.Series([1, 2], dtype=pl.Datetime("ns")),
    np.array([1, 2], dtype="M8[ns]"),
    np.array([1, 2], dtype="m8[ps]"),
    np.array([b"\xff", b"\xfe"]),
    [b"\xff", b"\xfe"],
    np.array([1, 1 + np.finfo(np.longdouble).eps], dtype=np.longdouble),
    pl.Series([2**62, 1], dtype=pl.Datetime("ms")),
)


@pytest.mark.parametrize("values", SAME)
def test_numbers_that_are_one_float_stay_different_labels(values):
    assert len(column(values, "x").distinct.labels) == len(values)


@pytest.mark.parametrize("values", FINER)
def test_what_cannot_be_kept_apart_is_refused(values):
    with pytest.raises(InputError, match="Column 'x'"):
        column(values, "x")


def test_moments_of_any_zone_are_kept_to_the_microsecond():
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    moment = datetime.datetime(2020, 1, 1, 5, 30, 0, 1, tzinfo=zone)
    for values in ([moment], pl.Series([moment]), pl.Series([moment]).dt.convert_time_zone("Europe/Paris")):
        assert column(values, "x").distinct.labels == ("2020-01-01T00:00:00.000001",)


def test_masked_entries_are_missing_or_refused():
    found = column(np.ma.array([1, 2, 3], mask=[0, 1, 0]), "x")
    assert found.missing.tolist() == [False, True, False]
    with pytest.raises(InputError, match="counts has masked entries"):
        Counts(np.ma.array(np.ones((2, 1, 2), dtype=int), mask=np.eye(2)[:, None, :]))


def test_counts_that_would_wrap_around_are_refused():
    with pytest.raises(InputError, match=r"add up to more than 2\^62"):
        Counts(np.full((2, 1, 2), 2**63 + 5, dtype=np.uint64))
    with pytest.raises(InputError, match=r"add up to more than 2\^62"):
        Counts(np.full((2, 1, 2), 2**61))


ROWS = "state,action,reward,next_state,x_duplicated_0\nA,x,1,B,1\nB,y,0,A,2\n"


def test_lines_may_end_as_they_like(tmp_path):
    found = []
    for end in ("\n", "\r\n", "\r"):
        (tmp_path / "rows.csv").write_bytes(ROWS.replace("\n", end).encode())
        found.append(read(tmp_path / "rows.csv", state="state", next_state="next_state"))
    assert found[0].state_names == found[1].state_names == found[2].state_names == ("A", "B")


def test_a_name_that_looks_like_a_copy_is_a_name_and_a_copy_is_refused(tmp_path):
    (tmp_path / "rows.csv").write_text(ROWS)
    assert read(tmp_path / "rows.csv", state="x_duplicated_0", next_state=False, layout="long").n_states == 2
    (tmp_path / "rows.csv").write_text(ROWS.replace("x_duplicated_0", "action"))
    with pytest.raises(InputError, match="two columns named 'action'"):
        read(tmp_path / "rows.csv")
