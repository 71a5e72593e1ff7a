"""How much memory there is: that of the machine, or what a control group of either version allows."""

import pytest

from certeq.base.limits import group_limits
from certeq.base.threads import default_threads

V2 = "30 23 0:26 / {at} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "36 32 0:30 / {at} rw,nosuid shared:15 - cgroup cgroup rw,memory"
CPU = "37 32 0:31 / {at}-cpu rw,nosuid shared:15 - cgroup cgroup rw,cpu"
INSIDE = "36 32 0:30 /docker/abc {at} ro,nosuid master:15 - cgroup cgroup rw,memory"


def machine(folder, mounts, groups, files):
    """A process that is in these groups of these mounts; the groups allow what their files say."""
    at, about = folder / "groups", folder / "self"
    about.mkdir()
    (about / "mountinfo").write_text("\n".join(mount.format(at=at) for mount in mounts))
    (about / "cgroup").write_text("\n".join(groups))
    for name, said in files.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(said)
    return about


@pytest.mark.parametrize(
    ("mounts", "groups", "files", "found"),
    [
        ([V2], ["0::/"], {"memory.max": "512\n"}, [512]),
        ([V2], ["0::/user/app"], {"user/app/memory.max": "max\n", "user/memory.max": "700\n"}, [700]),
        ([V2], ["0::/a/b"], {"a/b/memory.max": "9\n", "a/memory.max": "5\n", "memory.max": "7\n"}, [9, 5, 7]),
        ([V2], ["0::/../elsewhere"], {"memory.max": "512\n"}, [512]),
        ([CPU, V1], ["5:cpu:/x", "4:memory:/jobs/1"], {"jobs/1/memory.limit_in_bytes": "512\n"}, [512]),
        ([V1], ["4:cpu,memory:/j"], {"j/memory.limit_in_bytes": "8\n", "memory.limit_in_bytes": "9\n"}, [8, 9]),
        ([INSIDE], ["4:memory:/docker/abc"], {"memory.limit_in_bytes": "512\n"}, [512]),
        ([V2], ["4:memory:/x"], {"memory.max": "512\n"}, []),
        ([V2], ["0::/gone"], {}, []),
    ],
)
def test_what_the_groups_of_a_process_allow_is_seen_in_either_version(tmp_path, mounts, groups, files, found):
    assert group_limits(machine(tmp_path, mounts, groups, files)) == tuple(found)


def test_without_groups_nothing_is_known(tmp_path):
    assert group_limits(tmp_path) == ()


@pytest.mark.parametrize("said", ["²", "٣", "", "0", "-1", "1.5", "two"])
def test_a_number_of_threads_that_is_none_is_as_good_as_unsaid(monkeypatch, said):
    monkeypatch.delenv("CERTEQ_THREADS", raising=False)
    usual = default_threads()
    monkeypatch.setenv("CERTEQ_THREADS", said)
    assert default_threads() == usual
