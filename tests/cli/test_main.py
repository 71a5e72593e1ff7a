"""The program itself: its exit codes in a process of its own, and labels that want to do harm."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

import certeq as package
from certeq.base.errors import InputError
from certeq.cli.options import harmless, paragraph

HOSTILE = {
    "a closing tag": "[/bold]",
    "an opening tag": "[red]",
    "a backslash": "\\[red]\\",
    "a formula": "=1+1",
    "a script": "<script>alert(1)</script>",
    "a formula of another kind": "$\\frac{1}{2}$",
    "right to left": "\u202egnp.exe",
    "an emoji's name": ":pill:",
    "quotes and commas": "a\"b,c;d'e",
    "a format": "%s {0} {x}",
    "two lines": "one\ntwo",
    "a carriage return": "one\r=2",
    "blanks around": "  spaced  ",
    "a zero": "a\x00b",
}


def process(*words, **told):
    return subprocess.run([sys.executable, "-m", "certeq", *map(str, words)], capture_output=True, text=True, **told)


@pytest.mark.slow
def test_the_version_is_told():
    done = process("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"certeq {package.__version__}\n", "")


@pytest.mark.slow
def test_bad_input_ends_with_code_2_and_one_paragraph(tmp_path):
    done = process("learn", "nowhere.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: There is no file")
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_name_with_blank_lines_is_told_in_one_paragraph():
    told = paragraph(InputError("a\n\nx.parquet cannot be read."))
    assert "\n\n" not in told
    assert told.endswith("x.parquet cannot be read.")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="head")
def test_whoever_reads_only_the_first_line_meets_no_traceback(tmp_path):
    command = f"'{sys.executable}' -m certeq learn --no-report | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.startswith("The bundled example")
    assert "Traceback" not in done.stderr
    assert (tmp_path / "certeq-out" / "policy.json").exists()


def test_stopping_it_is_told_and_leaves_nothing(certeq, monkeypatch, tmp_path):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("certeq.learning.case.tally", stop)
    done = certeq("learn")
    assert done.code == 130
    assert "No partial results were written" in done.err
    assert list(tmp_path.iterdir()) == []


def test_whoever_stops_it_once_all_is_written_is_told_that_the_results_are_complete(certeq, monkeypatch, tmp_path):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("certeq.cli.show.written", stop)
    done = certeq("learn", "--no-report")
    assert (done.code, done.err.strip()) == (130, "Stopped. The results in certeq-out are complete.")
    assert len(list((tmp_path / "certeq-out").iterdir())) == 3
    done = certeq("apply", "certeq-out/policy.json", "certeq-out/policy.csv", "--out", "advice.csv")
    assert (done.code, done.err.strip()) == (130, "Stopped. The results in advice.csv are complete.")
    monkeypatch.setattr("certeq.learning.case.tally", stop)
    assert "No partial results were written" in certeq("learn", "--force").err


def test_help_is_for_newcomers(certeq):
    for words in ([], ["learn"], ["apply"], ["simulate"]):
        done = certeq(*words, "--help")
        assert done.code == 0
        assert done.out.startswith("Usage: certeq")
    assert "certeq learn" in certeq("learn", "-h").out


def test_the_default_regularizer_is_told(certeq):
    from certeq.regularizers import DEFAULT

    assert DEFAULT in certeq("learn", "--help").out


@pytest.mark.parametrize("words", [["lern"], ["learn", "--nonsense"], ["apply"], ["learn", "--discount", "much"]])
def test_what_is_no_command_is_refused(certeq, words):
    done = certeq(*words)
    assert done.code == 2
    assert "Error" in done.err
    assert "Traceback" not in done.err


# ---- hostile labels ----


def rows_with(label, path):
    """Rows in which the label is a state, an action and a column."""
    name = label.strip()
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["episode", "time", name, "action", "reward"])
        for t in range(12):
            writer.writerow([1, t, label if t % 2 else "tame", label if t % 3 else "other", t])
    return name


def cells(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return [cell for line in csv.reader(file) for cell in line]


@pytest.mark.parametrize("label", HOSTILE.values(), ids=HOSTILE)
def test_hostile_labels_pass_unharmed(certeq, label):
    rows_with(label, "rows.csv")
    learned = certeq("learn", "rows.csv")  # all other columns have names that are known
    if "\0" in label:  # no text file can keep it
        assert learned.code == 2
        assert learned.err.startswith("Error: rows.csv is not plain UTF-8 text")
        return
    applied = certeq("apply", "certeq-out/policy.json", "rows.csv", "-o", "actions.csv")
    assert (learned.code, applied.code) == (0, 0)
    kept = {label, f"'{label}", label.strip()}
    assert kept & set(cells("certeq-out/policy.csv"))
    assert kept & set(cells("actions.csv"))
    assert len(cells("actions.csv")) == 12 * 13
    for line in label.strip().splitlines():
        assert harmless(line) in learned.out


def test_a_label_of_ten_thousand_letters_passes(certeq):
    label = "x" * 10_000
    rows_with(label, "rows.csv")
    done = certeq("learn", "rows.csv", "--state", label)
    assert done.code == 0
    assert certeq("apply", "certeq-out/policy.json", "rows.csv").code == 0
    assert label in cells("certeq-out/policy.csv")
    assert label not in cells("actions.csv")
    assert f"{label[:399]}…" in cells("actions.csv")  # where it would stand in every row


@pytest.mark.parametrize("label", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m"])
def test_a_label_does_not_command_the_terminal(certeq, label):
    rows_with(label, "rows.csv")
    done = certeq("learn", "rows.csv", "--state", label)
    applied = certeq("apply", "certeq-out/policy.json", "rows.csv")
    wrong = certeq("learn", "rows.csv", "--reward", "nothing", "--out", "elsewhere")
    for said in (done.out, done.err, applied.out, applied.err, wrong.out, wrong.err):
        assert not {"\x1b", "\x07", "\x9b"} & set(said)


@pytest.mark.slow
def test_a_copy_of_the_process_reads_the_same_rows_and_what_it_cannot_read_is_told_all_the_same(tmp_path):
    learn = ("learn", "--no-report", "--draws", "0", "--out")
    for threads in ("1", "4"):  # with one thread there is no copy
        process(*learn, tmp_path / threads, env=os.environ | {"CERTEQ_THREADS": threads}, check=True)
    one, other = ({path.name: path.read_bytes() for path in (tmp_path / each).iterdir()} for each in ("1", "4"))
    assert one == other
    rows = tmp_path / "rows.csv"
    rows.write_text("state,action,reward,next_state\n1,a,much,2\n")
    told = [process("learn", rows, env=os.environ | {"CERTEQ_THREADS": each}) for each in ("1", "4")]
    assert told[0].returncode == told[1].returncode == 2
    assert told[0].stderr == told[1].stderr != ""
