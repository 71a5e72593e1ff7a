"""The way to the graphics processor: CuPy, if it is installed and finds one."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from certeq.base.errors import InputError


@cache
def cupy() -> Any:
    """Load CuPy, or say what is missing."""
    try:
        module = importlib.import_module("cupy")
    except ImportError as error:
        raise InputError(
            f"device='gpu' needs CuPy, which cannot be loaded here ({error}). Install certeq[gpu] on a machine with an "
            "NVIDIA graphics processor and CUDA 13, or cupy-cuda12x for CUDA 12; or use device='cpu', which gives the "
            "same policies."
        ) from None
    try:
        found = module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError as error:
        raise InputError(f"{_NO_PROCESSOR} ({error}). {_INSTEAD}") from None
    if not found:
        raise InputError(f"{_NO_PROCESSOR}. {_INSTEAD}")
    return module


_NO_PROCESSOR = "device='gpu' needs an NVIDIA graphics processor; CuPy is installed but finds none"
_INSTEAD = "Use device='cpu', which gives the same policies."
