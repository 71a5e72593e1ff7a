"""A container that takes everything away but a folder for results: certeq learns there, or says why not."""

import pytest

from trust import containers


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not containers.able():
        pytest.skip("only root, with namespaces for mounts, can take away what a container takes away")
    place = tmp_path_factory.mktemp("container") / "case"
    containers.prepare(place)
    return place


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [
        containers.Setting(),  # as docs/how-to/run-in-a-container.md has it
        containers.Setting(home="none", state="none", temporary="read-only", files=64),
        containers.Setting(home="a file", temporary="tmpfs of 1 MB", memory=containers.ENOUGH),
    ],
    ids=["as documented", "nothing at all to write to but the results", "little memory"],
)
def test_a_policy_is_learned_where_nothing_else_can_be_written(folder, setting):
    """With a regularizer for which little is compiled: where no kernels can be kept, that is what takes the time."""
    few = ["learn", "rows.csv", "--ends", "never", "--regularizer", "evidence", "--draws", "0", "--out", "out"]
    assert containers.attempt(folder, setting, None if setting == containers.Setting() else few) == ("a result", "")


@pytest.mark.slow
def test_where_libraries_find_no_room_that_is_said_and_no_file_is_blamed(folder):
    assert containers.attempt(folder, containers.Setting(memory=400 << 20)) == ("too little memory, told", "")


@pytest.mark.slow
def test_results_that_cannot_be_written_are_refused_in_words(folder):
    words = ["learn", "rows.csv", "--ends", "never", "--draws", "0", "--out", "/etc/results"]
    found, why = containers.attempt(folder, containers.Setting(), words)
    assert found == "refused"
    assert "Could not write /etc/results" in why
    assert "Read-only file system" in why
