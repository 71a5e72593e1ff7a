"""Data sets written by Minari itself, offline, and read without it; and some that point where they should not."""

import json
import sys
import warnings

import numpy as np
import pytest

from certeq.base.errors import InputError
from certeq.data.batch import ENDED
from certeq.data.counts import tally
from certeq.data.reading import read

spaces = pytest.importorskip("gymnasium").spaces
h5py = pytest.importorskip("h5py")
FORMATS = ("hdf5", "arrow", "parquet")
LENGTHS = (4, 3, 1)  # the first episode terminates, the others are cut


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Write a data set with Minari and give its folder."""
    root = tmp_path_factory.mktemp("minari")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("MINARI_DATASETS_PATH", str(root))
        minari = pytest.importorskip("minari")
        from minari.data_collector.episode_buffer import EpisodeBuffer

        def write(name, kind, observation_space, action_space, observe, act):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                buffers = [
                    EpisodeBuffer(
                        id=i,
                        observations=observe(i, n + 1),
                        actions=act(i, n),
                        rewards=[float(t + 10 * i) for t in range(n)],
                        terminations=[i == 0 and t == n - 1 for t in range(n)],
                        truncations=[i != 0 and t == n - 1 for t in range(n)],
                        infos={},
                    )
                    for i, n in enumerate(LENGTHS)
                ]
                name = f"toy/{name}{kind}-v0"
                minari.create_dataset_from_buffers(
                    name, buffers, observation_space=observation_space, action_space=action_space, data_format=kind
                )
            return root / name

        yield write


def states(i, n):
    return (np.arange(n) * (i + 1)) % 5


def actions(i, n):
    return (np.arange(n) + i) % 2


@pytest.fixture(scope="module", params=FORMATS)
def discrete(request, make):
    return make("discrete", request.param, spaces.Discrete(6), spaces.Discrete(2), states, actions)


def test_the_transitions_are_those_of_the_episodes_and_no_padding(discrete):
    batch = read(discrete)
    expected = []
    for i, n in enumerate(LENGTHS):
        s, a = states(i, n + 1), actions(i, n)
        expected += [(s[t], a[t], ENDED if i == 0 and t == n - 1 else s[t + 1], t + 10.0 * i, i, t) for t in range(n)]
    names = np.array([int(name) for name in batch.state_names] + [ENDED])
    found = zip(
        names[batch.state], batch.action, names[batch.next_state], batch.reward, batch.episode, batch.time, strict=True
    )
    assert list(found) == expected
    assert len(batch) == sum(LENGTHS)
    assert tally(batch, sparse=False).ended.sum() == 1
    assert batch.dropped == {}
    assert len(batch.fingerprint) == 64
    assert "3 episodes" in batch.notes[0]


def test_the_data_folder_itself_will_do(discrete):
    np.testing.assert_array_equal(read(discrete / "data").state, read(discrete).state)


@pytest.mark.parametrize("kind", FORMATS)
def test_boxes_become_columns_and_are_binned(kind, make):
    def observe(i, n):
        return np.stack([np.arange(n) / 8 + i, np.full(n, 0.5)], axis=1).astype(np.float32)

    folder = make("box", kind, spaces.Box(-9, 9, (2,)), spaces.Discrete(2), observe, actions)
    batch = read(folder, bins={"obs_0": "edges:1,2", "obs_1": "edges:0"})
    assert batch.state_names == (
        "obs_0 below 1, obs_1 0 or more",
        "obs_0 1 to 2, obs_1 0 or more",
        "obs_0 2 or more, obs_1 0 or more",
    )
    np.testing.assert_array_equal(batch.state, batch.episode)
    assert read(folder, state=["obs_0"], bins={"obs_0": "edges:1,2"}).state_names == ("below 1", "1 to 2", "2 or more")


@pytest.mark.parametrize("kind", FORMATS)
def test_nested_spaces_are_flattened_by_name(kind, make):
    space = spaces.Dict(
        {"where": spaces.Box(-9, 9, (2,)), "what": spaces.Tuple((spaces.Discrete(3), spaces.MultiDiscrete([2, 3])))}
    )

    def observe(i, n):
        return {
            "where": np.ones((n, 2), dtype=np.float32) * i,
            "what": (np.arange(n) % 3, np.stack([np.arange(n) % 2, np.arange(n) % 3], axis=1)),
        }

    act = spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2)))
    folder = make("nested", kind, space, act, observe, lambda i, n: (actions(i, n), np.zeros(n, dtype=int)))
    batch = read(folder)
    assert batch.recipe.column_names == ("obs_what_0", "obs_what_1_0", "obs_what_1_1", "obs_where_0", "obs_where_1")
    assert batch.action_names == ("action_0=0, action_1=0", "action_0=1, action_1=0")
    assert batch.n_states == 10  # 4 and 4 and 2: what is seen after the end is no state


@pytest.mark.parametrize("kind", FORMATS)
def test_text_observations_are_labels(kind, make):
    folder = make(
        "text", kind, spaces.Text(5), spaces.Discrete(2), lambda i, n: ["a", "bc", "a", "d", "e"][:n], actions
    )
    assert read(folder).state_names == ("a", "bc", "d")


@pytest.mark.parametrize("kind", FORMATS)
def test_continuous_actions_need_bins(kind, make):
    def act(i, n):
        return np.linspace(0, 1, n)[:, None].astype(np.float32)

    folder = make("amounts", kind, spaces.Discrete(6), spaces.Box(0, 1, (1,)), states, act)
    assert read(folder, bins={"action_0": "edges:0.5"}).action_names == ("below 0.5", "0.5 or more")


def test_pictures_are_refused(make):
    def observe(_, n):
        return np.zeros((n, 16, 16), dtype=np.float32)

    folder = make("picture", "arrow", spaces.Box(0, 1, (16, 16)), spaces.Discrete(2), observe, actions)
    with pytest.raises(InputError, match=r"256 numbers in each step.*Pictures are not states"):
        read(folder)


# ---- damage and ill will ----


@pytest.fixture
def copied(make, tmp_path):
    import shutil

    def copy(kind):
        folder = make("victim", kind, spaces.Discrete(6), spaces.Discrete(2), states, actions)
        shutil.copytree(folder, tmp_path / folder.name)
        shutil.rmtree(folder)
        return tmp_path / folder.name

    return copy


def hdf5(folder):
    return folder / "data" / "main_data.hdf5"


def refused(folder, words, **told):
    with pytest.raises(InputError, match=words) as caught:
        read(folder, **told)
    assert "\n" not in str(caught.value)


def test_links_into_other_files_are_refused(copied, tmp_path):
    folder = copied("hdf5")
    with h5py.File(tmp_path / "other.hdf5", "w") as other:
        other["secret"] = np.arange(5)
    with h5py.File(hdf5(folder), "a") as file:
        del file["episode_0/observations"]
        file["episode_0/observations"] = h5py.ExternalLink(str(tmp_path / "other.hdf5"), "/secret")
    refused(folder, "episode_0/observations points to another place")
    with h5py.File(hdf5(folder), "a") as file:
        del file["episode_0/observations"]
        file["episode_0/observations"] = h5py.SoftLink("/episode_1/observations")
    refused(folder, "points to another place")
    with h5py.File(hdf5(folder), "a") as file:
        del file["episode_0"]
        file["episode_0"] = h5py.ExternalLink(str(tmp_path / "other.hdf5"), "/")
    refused(folder, "episode_0 points to another place")


def test_data_kept_in_other_files_are_refused(copied, tmp_path):
    folder = copied("hdf5")
    (tmp_path / "secret.txt").write_bytes(b"0123456789" * 4)
    with h5py.File(hdf5(folder), "a") as file:
        del file["episode_0/observations"]
        file.create_dataset("episode_0/observations", (5,), "i8", external=[(str(tmp_path / "secret.txt"), 0, 40)])
    refused(folder, "episode_0/observations is kept in another file")
    with h5py.File(hdf5(folder), "a") as file:
        del file["episode_0/observations"]
        layout = h5py.VirtualLayout((5,), "i8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.hdf5"), "x", (5,))
        file.create_virtual_dataset("episode_0/observations", layout)
    refused(folder, "is kept in another file")


def test_a_small_file_that_claims_to_be_huge_is_refused(copied):
    folder = copied("hdf5")
    with h5py.File(hdf5(folder), "a") as file:
        del file["episode_0/observations"]
        file.create_dataset("episode_0/observations", (2_500_000_000,), "i8", chunks=(1000,))
    refused(folder, "unpacks to more than")


@pytest.mark.parametrize("kind", FORMATS)
def test_symbolic_links_that_leave_the_folder_are_refused(kind, copied, tmp_path):
    folder = copied(kind)
    victim = hdf5(folder) if kind == "hdf5" else folder / "data" / "0" / f"part-0.{kind}"
    victim.rename(tmp_path / "elsewhere")
    victim.symlink_to(tmp_path / "elsewhere")
    refused(folder, "lies elsewhere")
    victim.unlink()
    refused(folder, "It is not a whole Minari data set")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_damaged_data_set_is_refused(kind, copied):
    folder = copied(kind)
    victim = hdf5(folder) if kind == "hdf5" else folder / "data" / "0" / f"part-0.{kind}"
    victim.write_bytes(victim.read_bytes()[:200])
    refused(folder, "cannot be read: .*[Ii]t is damaged")


def test_episodes_that_do_not_fit_together_are_refused(copied):
    folder = copied("hdf5")
    with h5py.File(hdf5(folder), "a") as file:
        del file["episode_0/rewards"]
        file["episode_0/rewards"] = np.zeros(2)
    refused(folder, "Episode 0 of .* has 2 rewards but")
    with h5py.File(hdf5(folder), "a") as file:
        del file["episode_0/rewards"]
    refused(folder, "has no 'rewards'")
    with h5py.File(hdf5(folder), "a") as file:
        for name in list(file):
            del file[name]
    refused(folder, "has no episodes")


def test_a_row_too_few_in_arrow_is_noticed(copied):
    folder = copied("arrow")
    about = folder / "data" / "0" / "metadata.json"
    about.write_text(json.dumps({"id": 0, "total_steps": 5}))
    refused(folder, "has 5 rows for 5 steps; expected one more")


def test_metadata_that_make_no_sense_are_refused(copied):
    folder = copied("hdf5")
    about = folder / "data" / "metadata.json"
    known = json.loads(about.read_text())
    for text, words in [
        ("not json", "is not the metadata"),
        ("[]", "is not the metadata"),
        (json.dumps(known | {"data_format": "zarr"}), "kept as 'zarr'"),
        (json.dumps(known | {"observation_space": "{"}), "observation space .* cannot be understood"),
        (json.dumps(known | {"action_space": '{"type": "Graph"}'}), "a part of type Graph"),
    ]:
        about.write_text(text)
        refused(folder, words)


def test_without_h5py_the_extra_is_named(copied, monkeypatch):
    folder = copied("hdf5")
    monkeypatch.setitem(sys.modules, "h5py", None)
    refused(folder, r"pip install 'certeq\[minari\]'")
