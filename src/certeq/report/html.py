"""Pages that are one HTML file and need nothing else: no network, and no style or script but their own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import certeq
from certeq.base.errors import no_number
from certeq.base.private import private

Filters = Mapping[str, Callable[..., Any]]


def write(template: str, *, style: str, script: str | None = None, filters: Filters | None = None, **told: Any) -> str:
    """Fill in a template of ours; style and script are named by their files."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader, kept = PackageLoader("certeq.report"), _kept()
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, finalize=sound, bytecode_cache=kept
    )
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters |= filters or {}
    ours = {
        kind: loader.get_source(environment, name)[0]
        for kind, name in (("style", style), ("script", script))
        if name is not None
    }
    trusted = {kind: Markup(text) for kind, text in ours.items()}  # what is not ours stays escaped
    return environment.get_template(template).render(**told, **trusted, policy=content_policy(**ours))


def _kept() -> Any:
    """Templates as they were compiled before, which takes as long as filling them in; None where there is no place."""
    from jinja2 import FileSystemBytecodeCache

    folder = private("templates")
    return None if folder is None else FileSystemBytecodeCache(str(folder), f"{certeq.__version__}-%s")


def sound(value: Any) -> Any:
    """Let everything out onto the page but numbers that are none."""
    if isinstance(value, float) and not isfinite(value):
        raise no_number("The report")
    return value


def content_policy(**ours: str) -> str:
    """Allow exactly these texts, as ``style`` and ``script``, and the pictures inside the page; nothing else."""
    allowed = "".join(f" {kind}-src 'sha256-{_digest(text)}';" for kind, text in ours.items())
    return f"default-src 'none'; img-src data:;{allowed} base-uri 'none'; form-action 'none'"


def data_uri(svg: bytes) -> str:
    """An SVG image as an address that contains it."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
