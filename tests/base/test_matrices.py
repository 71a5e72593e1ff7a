"""SciPy's matrices are loaded when one is needed, and by nothing else."""

import subprocess
import sys

import pytest

from certeq.base import matrices as sp


def test_whoever_looks_for_a_name_in_every_module_loads_no_scipy():
    script = """
import sys
from certeq.base import matrices as sp
print(hasattr(sp, "UNSET"), "scipy" in sys.modules, sp.csr_array.__name__, "scipy.sparse" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert told == "False False csr_array True\n"


@pytest.mark.parametrize("name", sp.TAKEN)
def test_what_is_taken_is_scipys_own(name):
    assert getattr(sp, name).__module__.startswith("scipy.sparse")
