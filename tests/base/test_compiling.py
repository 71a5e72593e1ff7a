"""A process that compiles the kernels and one that finds them compiled give the same numbers, to the last bit."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib
import numpy as np
import scipy.sparse as sp
from certeq import MDP, Counts, Mixture, Rows, SparseRows, evaluate, shrink, solve, sweep
from certeq.planners import compiled

compiled.WORTH_MORE = 0  # so that all kernels take part
rng = np.random.default_rng(0)


def tell(name, numbers):
    print(name, hashlib.sha256(np.ascontiguousarray(numbers).tobytes()).hexdigest())


for S, n in ((10, 2000), (60, 40)):
    counts = rng.multinomial(5, np.full(S, 1 / S), size=(n, S, 2))
    rows, reward = counts / 5, rng.normal(size=(n, S, 2))
    mixed = Mixture(Rows(rows), rng.random((n, S, 2)), Rows(np.full((1, 1, S), 1 / S)))
    plan = solve(mixed, reward, 0.97, engine="numba")
    tell(f"plans of {S} states", plan.values)
    tell(f"values of {S} states", evaluate(rows, reward, 0.97, plan.policy))
    tell(f"weights of {S} states", shrink(Counts(counts), "evidence").weight)
    path = {"regularizer": "uniform_prior", "strength": [0, 0.1, 0.2, 0.6, 0.9]}
    swept = sweep(counts, reward, 0.97, truth=MDP(rows, reward, 0.97), **path)
    tell(f"losses of {S} states", swept.loss)
S = 12_000
near = (np.arange(3 * S)[:, None] // 3 + np.arange(-2, 3)) % S
chances = rng.random(near.shape)
chances /= chances.sum(axis=1, keepdims=True)
matrix = sp.csr_array((chances.ravel(), near.ravel(), np.arange(0, near.size + 1, 5)), shape=(3 * S, S))
mixed = Mixture(SparseRows(matrix, S, 3), rng.random((S, 3)), Rows(np.full((1, 1, S), 1 / S)))
tell("a sparse plan", solve(mixed, rng.random((S, 3)), 0.99).values)
"""


@pytest.mark.slow
def test_who_compiles_and_who_loads_find_the_same_numbers(tmp_path):
    """They did not while the compiler was free to reorder sums, which it did differently for what it had inlined."""
    place = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT]
    told = [subprocess.run(command, env=place, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert told[0].count("\n") == 9
    assert told[0] == told[1]


KERNEL = """
import sys
import numpy as np
from certeq.base.compiling import njit
sys.path.insert(0, sys.argv[1])
import kernels
print(kernels.double(21))
"""
SOURCE = "from certeq.base.compiling import njit\n\n\n@njit(cache=True)\ndef double(x):\n    return 2 * x\n"


SUMS = """
import numpy as np
from certeq.base.compiling import njit


@njit(cache=True)
def add_up(n):
    x = np.zeros(n)
    x[:] = 2.0
    return x.sum()
"""
LOADED = """
import sys
sys.path.insert(0, sys.argv[1])
import sums
print(sums.add_up(3), "numba.np.arraymath" in sys.modules)
"""


def test_kernels_that_were_kept_are_loaded_without_the_compiler_and_it_is_there_when_it_is_needed(tmp_path):
    (tmp_path / "sums.py").write_text(SUMS)
    place = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}

    def run(more=""):
        command = [sys.executable, "-c", LOADED + more, str(tmp_path)]
        return subprocess.run(command, env=place, capture_output=True, text=True, check=True).stdout.split()

    assert run() == ["6.0", "True"]
    assert run() == ["6.0", "False"]
    assert run("print(sums.add_up(sums.np.int32(4)))") == ["6.0", "False", "8.0"]


def test_what_all_kernels_need_is_kept_too_and_compiled_again_where_it_is_damaged(tmp_path):
    (tmp_path / "sums.py").write_text(SUMS)
    place = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    more = """
from numba.core.runtime.nrt import rtsys
print(rtsys.library._compiled_object is None)
"""
    command = [sys.executable, "-c", LOADED + more, str(tmp_path)]

    def run():
        return subprocess.run(command, env=place, capture_output=True, text=True, check=True).stdout.split()[0::2]

    assert run() == ["6.0", "False"]  # compiled
    assert run() == ["6.0", "True"]  # loaded
    (kept,) = (tmp_path / "kernels").rglob("runtime.*.nbc")
    size = kept.stat().st_size
    kept.write_bytes(b"damaged")
    assert run() == ["6.0", "False"]
    assert kept.stat().st_size == size
    assert run() == ["6.0", "True"]


def compiled(folder, **environment):
    """Compile and call a kernel of a package in this folder; what came of it."""
    (folder / "kernels.py").write_text(SOURCE)
    variables = os.environ | {"XDG_STATE_HOME": str(folder / "state"), "PYTHONDONTWRITEBYTECODE": "1"} | environment
    command = [sys.executable, "-c", KERNEL, str(folder)]
    return subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True)


def kept(folder):
    """Files of kernels below a folder."""
    return sorted(path for path in folder.rglob("*") if path.suffix in (".nbi", ".nbc"))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["emptied", "cut", "flipped", "forged"])
def test_kernels_that_are_damaged_are_compiled_again_and_nothing_forged_is_run(tmp_path, way):
    assert compiled(tmp_path).stdout == "42\n"
    before = kept(tmp_path)
    assert len(before) == 2
    for path in before:
        data = path.read_bytes()
        path.write_bytes({
            "emptied": b"",
            "cut": data[: len(data) // 2],
            "flipped": data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
            "forged": b"cos\nsystem\n(S'touch canary'\ntR.",
        }[way])  # fmt: skip
    again = compiled(tmp_path)
    assert (again.stdout, again.stderr) == ("42\n", "")
    assert not (tmp_path / "canary").exists()
    assert [path.stat().st_size for path in kept(tmp_path)] == [path.stat().st_size for path in before]
    assert compiled(tmp_path).stdout == "42\n"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_kernels_are_not_kept_where_others_can_write(tmp_path):
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__").chmod(0o777)
    assert compiled(tmp_path).stdout == "42\n"
    assert kept(tmp_path / "__pycache__") == []
    assert len(kept(tmp_path / "state")) == 2


@pytest.mark.slow
def test_without_a_place_for_kernels_they_are_compiled_and_that_is_said_in_one_line(tmp_path):
    (tmp_path / "__pycache__").write_text("in the way")
    places = dict.fromkeys(("XDG_STATE_HOME", "HOME", "TMPDIR"), str(tmp_path / "kernels.py" / "x"))
    (tmp_path / "kernels.py").write_text(SOURCE)
    code = f"import certeq.base.private as p; p._roots = lambda: iter(()); exec({KERNEL!r})"
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=os.environ | places, capture_output=True, text=True
    )
    assert found.stdout == "42\n"
    assert found.stderr.count("\n") == 1
    assert "no private folder to keep compiled kernels" in found.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("planted", "environment", "words"),
    [
        (".numba_config.yaml", {}, "There is a file .numba_config.yaml in this folder"),
        ("other.yaml", {"NUMBA_DISABLE_JIT": "1"}, "NUMBA_DISABLE_JIT is set"),
    ],
)
def test_what_would_decide_how_to_compile_is_refused_in_words(tmp_path, planted, environment, words):
    (tmp_path / planted).write_text("cache_dir: evil\n")
    found = compiled(tmp_path, **environment)
    assert found.returncode == 1
    assert f"InputError: {words}" in found.stderr
