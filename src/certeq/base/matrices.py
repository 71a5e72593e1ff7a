"""SciPy's sparse matrices, loaded when one is first needed: that takes a tenth of a second, and small cases need none.

Used as ``from certeq.base import matrices as sp``; whatever is not defined here is SciPy's own.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def issparse(table: Any) -> bool:
    """Whether this is a sparse matrix, or array; if SciPy was never loaded for one, nothing is."""
    ask = getattr(sys.modules.get("scipy.sparse"), "issparse", None)
    return ask is not None and bool(ask(table))


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("scipy.sparse"), name)
