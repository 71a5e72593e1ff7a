"""certeq learn, and what asks about a policy, on a real cluster: the same bytes, with a worker killed half-way."""

import signal

import numpy as np
import pytest
from counted import rows
from test_cluster import workers_of

import certeq
from certeq.cli.watching import ProgressLines
from certeq.data.counting import count
from certeq.questions import posterior as posterior_room
from certeq.questions.compare import compare
from certeq.questions.draws import draw_models
from clusters import two_workers, wait_for

pytestmark = pytest.mark.slow

STATES = ("--state", "ward,stage", "--next-state", "next_ward,next_stage")
COLUMNS = (*STATES, "--action", "drug", "--reward", "reward", "--done", "done")
RESULTS = ("policy.json", "policy.csv", "summary.json")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Address of a scheduler, and the processes of its two workers."""
    with two_workers(tmp_path_factory.mktemp("cluster")) as found:
        wait_for(lambda: workers_of(found[0]) == 2, "both workers")
        yield found


@pytest.fixture
def learned_here(certeq_main, parquet, tmp_path):
    """A folder of Parquet, and what certeq count and certeq learn make of it on this machine."""
    folder = parquet(rows(8000), "folder", files=40, group=100)
    certeq_main("count", folder, *COLUMNS, "--truncated", "cut", "-o", tmp_path / "counts.npz")
    certeq_main("learn", tmp_path / "counts.npz", "--no-report", "--out", tmp_path / "here")
    return folder, [(tmp_path / "here" / name).read_bytes() for name in RESULTS]


def there(certeq_main, folder, address, out, *more):
    """What certeq learn makes of a folder on the cluster."""
    told = (*COLUMNS, "--truncated", "cut", "--scheduler", address, "--out", out)
    certeq_main("learn", folder, *told, *more)
    return [(out / name).read_bytes() for name in RESULTS]


@pytest.fixture(scope="module")
def learned():
    """A small policy from rows of the bundled trial."""
    from certeq.worlds import examples

    return certeq.learn(certeq.read(examples.path(), bins=4), discount=0.9)


def test_learning_on_a_cluster_writes_the_bytes_that_counting_and_learning_here_write(
    cluster, learned_here, certeq_main, tmp_path
):
    folder, here = learned_here
    assert there(certeq_main, folder, cluster[0], tmp_path / "there", "--no-report") == here
    one = next(folder.iterdir())  # a single file too is counted by the workers and not read here
    told = there(certeq_main, one, cluster[0], tmp_path / "one", "--no-report")
    roles = {"state": ["ward", "stage"], "next_state": ["next_ward", "next_stage"], "action": ["drug"]}
    tallied = count(one, **roles, reward="reward", done="done", truncated="cut")
    assert told[0] == certeq.learn(tallied).policy.to_bytes()


def test_models_drawn_on_a_cluster_are_those_drawn_here(cluster, learned, monkeypatch):
    told = (learned.model, learned.table, 0.9, {"advice": learned.policy.actions})
    how = {"rewards": learned.rewards, "batch": learned.batch, "draws": 60}
    assert len(draw_models(learned.model, learned.table, 60, rewards=learned.rewards, batch=learned.batch).blocks) > 1
    here = posterior_room.posterior(*told, **how, threads=1)
    monkeypatch.setattr(posterior_room, "_in_order", None)  # which is how they are drawn here
    far = posterior_room.posterior(*told, **how, scheduler=cluster[0])
    for part in ("state_values", "claimed", "best", "advised_best"):
        np.testing.assert_array_equal(getattr(here, part), getattr(far, part))


def test_a_comparison_on_a_cluster_is_the_one_made_here(cluster, learned):
    how = {"regularizers": ["evidence", "uniform_prior"], "folds": 2, "draws": 30}
    here, far = (compare(learned, **how, **where).to_json() for where in ({}, {"scheduler": cluster[0]}))
    assert here == far


def test_a_worker_is_killed_half_way_and_the_policy_has_the_same_bytes(
    cluster, learned_here, certeq_main, tmp_path, monkeypatch
):
    address, (first, second) = cluster
    folder, here = learned_here
    told, say = [], ProgressLines.progress

    def kill_one(self, done, total):
        told.append(done)
        if len(told) == 6:
            first.send_signal(signal.SIGKILL)
            first.wait()
        say(self, done, total)

    monkeypatch.setattr(ProgressLines, "progress", kill_one)
    assert there(certeq_main, folder, address, tmp_path / "there", "--no-report") == here
    assert first.returncode == -signal.SIGKILL
    assert second.poll() is None
    assert len(told) > 7, "it was killed before the end"
