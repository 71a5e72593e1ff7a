"""SciPy's sparse matrices, loaded when one is first needed: that takes a tenth of a second, and small cases need none.

Used as ``from certeq.base import matrices as sp``; what is ``TAKEN`` from SciPy is its own. Who looks for some other
name in every module that is loaded, as pickle does, loads nothing by it.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

TAKEN = ("coo_array", "csr_array", "diags_array", "eye_array", "hstack", "kron", "vstack")  # of SciPy's


def issparse(table: Any) -> bool:
    """Whether this is a sparse matrix, or array; if SciPy was never loaded for one, nothing is."""
    ask = getattr(sys.modules.get("scipy.sparse"), "issparse", None)
    return ask is not None and bool(ask(table))


def __getattr__(name: str) -> Any:
    if name not in TAKEN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("scipy.sparse"), name)
