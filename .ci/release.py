"""What `release.sh` looks up and writes down: do the versions agree, what is in a release, and what are its hashes."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SUMS = "SHA256SUMS"


def version() -> str:
    """The version that pyproject.toml has."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def agree() -> str:
    """Raise unless package, changelog and citation have that version; tell what a changelog without a date lacks."""
    said = {
        "src/certeq/__init__.py": r'^__version__ = "(.+)"$',
        "CHANGELOG.md": r"^## (\S+)",
        "CITATION.cff": r"^version: (\S+)$",
    }
    for name, pattern in said.items():
        found = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        if found is None or found[1].strip("\"'") != version():
            there = "no version" if found is None else found[1]
            raise SystemExit(f"{name} has {there}, but pyproject.toml has {version()}.")
    unreleased = f"## {version()} (unreleased)" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return f"{version()}" + (", which CHANGELOG.md calls unreleased: date it before the upload" if unreleased else "")


def first_command() -> str:
    """The first command of the README, without what brings certeq: that is installed."""
    block = re.search(r"```sh\n(.+?)\n```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    found = None if block is None else re.search(r"uv run (certeq .+)$", block[1].splitlines()[0])
    if found is None:
        raise SystemExit("The README does not begin with a command that `uv run` runs.")
    return found[1]


def bill() -> dict[str, Any]:
    """All that is installed beside this interpreter, certeq first, as CycloneDX has it."""
    found = {_plain(each.name): each for each in importlib.metadata.distributions()}
    parts = {name: _component(found[name]) for name in sorted(found)}
    needs = {name: sorted(_needed(found[name]) & found.keys()) for name in parts}
    whole = parts.pop("certeq") | {"type": "application"}
    named = json.dumps([whole, parts], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, named)}",
        "version": 1,
        "metadata": {"component": whole},
        "components": list(parts.values()),
        "dependencies": [
            {"ref": ref, "dependsOn": [{**parts, "certeq": whole}[each]["bom-ref"] for each in needs[name]]}
            for name, ref in [("certeq", whole["bom-ref"]), *((name, part["bom-ref"]) for name, part in parts.items())]
        ],
    }


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _component(each: importlib.metadata.Distribution) -> dict[str, Any]:
    address = f"pkg:pypi/{_plain(each.name)}@{each.version}"
    part: dict[str, Any] = {"type": "library", "bom-ref": address, "name": each.name, "version": each.version}
    told, short = each.metadata.get("License-Expression"), each.metadata.get("License") or ""
    classes = [line.rpartition(" :: ")[2] for line in each.metadata.get_all("Classifier") or [] if "License ::" in line]
    if told:
        part["licenses"] = [{"expression": told}]
    elif names := ([short] if short and "\n" not in short and len(short) < 60 else classes):
        part["licenses"] = [{"license": {"name": name}} for name in names]
    return part | {"purl": address}


def _needed(each: importlib.metadata.Distribution) -> set[str]:
    """What it cannot do without; extras are not installed with it."""
    plain = [said for said in each.requires or [] if "extra ==" not in said]
    return {_plain(re.match(r"[\w.-]+", said)[0]) for said in plain}  # type: ignore[index]


def hashes(folder: Path) -> str:
    """Lines as `sha256sum --check` reads them."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def main(verb: str, folder: str = os.curdir) -> None:
    """Do one of these."""
    if verb == "bill":
        place = Path(folder) / f"certeq-{version()}.cdx.json"
        place.write_text(json.dumps(bill(), indent=2) + "\n", encoding="utf-8")
    elif verb == "hashes":
        (Path(folder) / SUMS).write_text(hashes(Path(folder)), encoding="utf-8")
    else:
        print({"agree": agree, "first-command": first_command}[verb]())


if __name__ == "__main__":
    main(*sys.argv[1:])
