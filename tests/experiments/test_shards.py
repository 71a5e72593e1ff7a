"""The table is the same, bit for bit: killed or not, on one process or two, in whatever order."""

import json
import os
import platform
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import plain_cells
import pytest
from polars.testing import assert_frame_equal

import certeq
from certeq import InputError
from certeq.base import places
from certeq.experiments import shards

HERE = Path(__file__).parent
KILLED = """
import os, signal, sys
from pathlib import Path
import plain_cells
from certeq.base import places
from certeq.experiments import shards

folder, fatal, workers = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
renamed, replace = 0, Path.replace

def replace_or_die(self, target):
    global renamed
    if renamed + 0.5 > fatal:  # a whole number: before that rename; half more: after it
        if fatal % 1:
            replace(self, target)
        os.kill(os.getpid(), signal.SIGKILL)
    renamed += 1
    return replace(self, target)

if __name__ == "__main__":
    Path.replace = replace_or_die
    with places.executor(workers) as executor:
        shards.run(plain_cells.work, plain_cells.cells(), folder, seed=5, executor=executor)
"""


@pytest.fixture
def whole(tmp_path):
    """The table of an uninterrupted run in one process."""
    return shards.run(plain_cells.work, plain_cells.cells(), tmp_path / "whole", seed=5)


def bytes_of(folder):
    """The shards without their labels, which tell how long each took."""
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def run_until_killed(folder, fatal, workers=1, **environment):
    command = [sys.executable, "-c", KILLED, folder, str(fatal), str(workers)]
    if workers > 1:  # other processes import the main module, which must then be a file
        script = folder.parent / "killed.py"
        script.write_text(KILLED)
        command = [sys.executable, script, *command[3:]]
    paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": paths} | environment).returncode


def test_the_table_has_all_cells_in_order(whole):
    assert whole["cell"].to_list() == [i for i in range(6) for _ in range(3 + i)]
    assert whole["loss"].n_unique() == len(whole)  # every cell has a stream of its own


@pytest.mark.slow
def test_killed_at_any_write_it_resumes_to_the_same_bytes(whole, tmp_path):
    """14 renames make a run: the manifest, a shard and its label for each of 6 cells, the manifest again."""
    folder = tmp_path / "killed"
    for fatal in (0, 1, 2, 2.5, 3.5, 4):
        assert run_until_killed(folder, fatal) == -signal.SIGKILL
        assert not (shards.manifest(folder) or {}).get("complete")
    assert list(folder.glob(".*"))  # it was killed with files half written
    assert_frame_equal(shards.run(plain_cells.work, plain_cells.cells(), folder, seed=5), whole)
    assert bytes_of(folder) == bytes_of(tmp_path / "whole")
    assert not list(folder.glob(".*"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks processes up in /proc")
def test_killed_with_two_workers_it_resumes_and_leaves_no_process_behind(whole, tmp_path):
    folder, trace = tmp_path / "killed", tmp_path / "trace"
    trace.mkdir()
    assert run_until_killed(folder, 5, workers=2, TRACE=str(trace)) == -signal.SIGKILL
    workers = [int(path.name) for path in trace.iterdir()]
    assert workers
    waited = time.monotonic()
    while any(map(alive, workers)) and time.monotonic() < waited + 60:
        time.sleep(0.05)
    assert not any(map(alive, workers))
    assert_frame_equal(shards.run(plain_cells.work, plain_cells.cells(), folder, seed=5), whole)


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_two_processes_give_the_same_table_as_one(whole, tmp_path):
    with places.executor(2) as executor:
        table = shards.run(plain_cells.work, plain_cells.cells(), tmp_path / "two", seed=5, executor=executor)
    assert_frame_equal(table, whole)
    assert bytes_of(tmp_path / "two") == bytes_of(tmp_path / "whole")


def test_a_cell_does_not_depend_on_the_others(whole, tmp_path):
    backward = plain_cells.cells()[::-1]
    table = shards.run(plain_cells.work, backward, tmp_path / "backward", seed=5)
    assert bytes_of(tmp_path / "backward") == bytes_of(tmp_path / "whole")
    np.testing.assert_array_equal(table.filter(table["cell"] == 0)["loss"], whole.filter(whole["cell"] == 5)["loss"])


def test_another_seed_gives_another_table(whole, tmp_path):
    other = shards.run(plain_cells.work, plain_cells.cells(), tmp_path / "other", seed=6)
    assert (other["loss"] != whole["loss"]).all()


def test_what_is_done_is_not_done_again(whole, tmp_path):
    told = []
    again = shards.run(
        plain_cells.forbidden, plain_cells.cells(), tmp_path / "whole", seed=5, progress=lambda *now: told.append(now)
    )
    assert_frame_equal(again, whole)
    assert told == [(33, 33)]  # data sets


def truncate(shard):
    shard.write_bytes(shard.read_bytes()[:-40])


def flip(shard):
    data = bytearray(shard.read_bytes())
    data[len(data) // 3] ^= 1
    shard.write_bytes(bytes(data))


def exchange(shard):
    other = next(path for path in shard.parent.glob("*.parquet") if path != shard)
    shard.write_bytes(other.read_bytes())


def relabel(shard):
    label = json.loads(shard.with_suffix(".json").read_text())
    shard.with_suffix(".json").write_text(json.dumps(label | {"seed": 6}))


DAMAGE = {
    "truncated": truncate,
    "one bit": flip,
    "another cell's": exchange,
    "another seed's": relabel,
    "emptied": lambda shard: shard.write_bytes(b""),
    "removed": lambda shard: shard.unlink(),
    "no label": lambda shard: shard.with_suffix(".json").unlink(),
    "torn label": lambda shard: shard.with_suffix(".json").write_text('{"seed": 5, "seco'),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_shard_is_done_again(whole, tmp_path, damage):
    before = bytes_of(tmp_path / "whole")
    damage(tmp_path / "whole" / f"{shards.key_of(plain_cells.cells()[3])}.parquet")
    done = []

    def work(cell, rng):
        done.append(cell["place"])
        return plain_cells.work(cell, rng)

    assert_frame_equal(shards.run(work, plain_cells.cells(), tmp_path / "whole", seed=5), whole)
    assert done == [3]
    assert bytes_of(tmp_path / "whole") == before


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_cell_that_fails_is_named_and_loses_no_other(whole, tmp_path, workers):
    with places.executor(workers) as executor, pytest.raises(shards.Unfinished) as raised:
        shards.run(plain_cells.work_with_trouble, plain_cells.cells(), tmp_path / "f", seed=5, executor=executor)
    assert "1 of 6 cells failed" in str(raised.value)
    assert "ArithmeticError: the river is dry" in str(raised.value)
    assert '"place": 2' in str(raised.value)
    assert len(bytes_of(tmp_path / "f")) == 5
    assert_frame_equal(shards.run(plain_cells.work, plain_cells.cells(), tmp_path / "f", seed=5), whole)


@pytest.mark.slow
def test_a_process_that_dies_is_told_and_the_rest_goes_on_later(whole, tmp_path):
    with places.executor(2) as executor:
        for _ in range(2):  # the second time the executor is known to be broken from the start
            with pytest.raises(shards.Unfinished, match="The first: BrokenProcessPool"):
                shards.run(plain_cells.work_that_dies, plain_cells.cells(), tmp_path / "d", seed=5, executor=executor)
    assert_frame_equal(shards.run(plain_cells.work, plain_cells.cells(), tmp_path / "d", seed=5), whole)


def test_any_executor_will_do(whole, tmp_path):
    with ThreadPoolExecutor(3) as executor:
        table = shards.run(plain_cells.work, plain_cells.cells(), tmp_path / "threads", seed=5, executor=executor)
    assert_frame_equal(table, whole)


def test_an_interrupt_does_not_wait_for_what_has_not_begun(tmp_path):
    cells, told = plain_cells.cells(50, seconds=0.05), []

    def interrupt(done, total):
        told.append(done)
        if len(told) == 2:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as executor, pytest.raises(KeyboardInterrupt):
        shards.run(plain_cells.work, cells, tmp_path, executor=executor, progress=interrupt)
    assert len(bytes_of(tmp_path)) == 1


def test_a_worker_with_another_version_is_refused():
    with pytest.raises(InputError, match=r"has certeq .*, but 9\.9 was asked for"):
        shards.perform(plain_cells.work, plain_cells.cells()[0], 0, "9.9")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 6}, "holds results of seed 5; asked for was seed 6"),
        ({"about": {"profile": "paper"}}, "holds results of profile smoke; asked for was profile paper"),
    ],
)
def test_results_of_something_else_are_refused(tmp_path, change, message):
    asked = {"seed": 5, "about": {"profile": "smoke"}}
    shards.run(plain_cells.work, plain_cells.cells(1), tmp_path, **asked)
    with pytest.raises(InputError, match=message):
        shards.run(plain_cells.work, plain_cells.cells(1), tmp_path, **(asked | change))


def test_results_of_another_version_are_refused(tmp_path, monkeypatch):
    shards.run(plain_cells.work, plain_cells.cells(1), tmp_path)
    monkeypatch.setattr(certeq, "__version__", "9.9")
    with pytest.raises(InputError, match=r"asked for was certeq 9\.9.*--out.*--force"):
        shards.run(plain_cells.work, plain_cells.cells(1), tmp_path)


def test_the_manifest_tells_what_made_the_table_and_not_whose_machine_it_was(tmp_path):
    shards.run(plain_cells.work, plain_cells.cells(2), tmp_path, seed=5, about={"settings": {"data_sets": 7}})
    manifest = shards.manifest(tmp_path)
    assert manifest["complete"]
    assert manifest["seed"] == 5
    assert manifest["certeq"] == certeq.__version__
    assert manifest["settings"] == {"data_sets": 7}
    assert [cell["cell"]["place"] for cell in manifest["cells"]] == [0, 1]
    assert tuple(manifest["cells"][1]["spawn_key"]) == shards.seed_of(plain_cells.cells(2)[1], 5).spawn_key
    (machine,) = manifest["machines"]
    assert {"python", "numpy", "numba", "processor", "cores", "system"} <= set(machine)
    text = "".join(path.read_text() for path in tmp_path.glob("*.json"))
    assert str(tmp_path) not in text
    assert not platform.node() or platform.node() not in text


def test_the_same_cell_twice_is_refused(tmp_path):
    with pytest.raises(InputError, match="A cell is there twice"):
        shards.run(plain_cells.work, plain_cells.cells(1) * 2, tmp_path)


def test_clearing_removes_results_and_nothing_else(tmp_path):
    shards.run(plain_cells.work, plain_cells.cells(2), tmp_path)
    (tmp_path / "mine.parquet").write_text("mine")
    shards.clear(tmp_path)
    shards.clear(tmp_path / "nowhere")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.parquet"]
