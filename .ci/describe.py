"""The long description of the package: the README with links that lead somewhere from wherever it is shown.

Links of the README are relative, as a clone needs them. In a package they begin with the address of the repository's
files, which CERTEQ_ADDRESS names when a release is built (https://HOST/OWNER/certeq/blob/v0.1.0); without one there is
nothing to link to, so words stay and pictures go.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://)([^)]+)\)")


class Description(MetadataHookInterface):
    """Sets the description, and the addresses of the project where they are known."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in what pyproject.toml calls dynamic."""
        address = os.environ.get("CERTEQ_ADDRESS", "").rstrip("/")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": LINK.sub(lambda link: _led(link, address), text)}
        pages = {"Source": "", "Documentation": "/docs/index.md", "Changelog": "/CHANGELOG.md"}
        metadata["urls"] = {name: address + page for name, page in pages.items()} if address else {}


def _led(link: re.Match[str], address: str) -> str:
    picture, words, place = link.groups()
    if not address:
        return "" if picture else words
    whole = address.replace("/blob/", "/raw/") if picture else address
    return f"{picture}[{words}]({whole}/{place})"
