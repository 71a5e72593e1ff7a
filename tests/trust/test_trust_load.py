"""Many calls in one process use no more memory than a few; many processes at once do not disturb one another."""

import sys
from pathlib import Path

import pytest

from certeq import learn, read
from certeq.worlds import examples
from trust import load


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_learning_again_and_again_takes_no_more_memory():
    """60 calls here, 1,000 in `python -m trust`; a copy of the table kept at each call would be 100 KB."""
    used = load.learn_often(60)
    assert len(used.bytes) == 60
    assert used.growth() < 50_000
    assert used.later() < 8_000_000


def test_a_process_that_keeps_what_it_made_would_be_noticed():
    leaking = load.Memory(list(range(1, 61)), [10**8 + 100_000 * call for call in range(60)])
    assert leaking.growth() == 100_000
    assert leaking.later() > 4_000_000


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are waited for as on Unix")
def test_processes_that_apply_one_policy_at_once_write_the_same_bytes(tmp_path):
    learn(read(examples.path())).policy.save(tmp_path / "policy.json")
    (tmp_path / "rows.csv").write_bytes(Path(examples.path()).read_bytes())
    assert load.apply_at_once(tmp_path, 4) == []
