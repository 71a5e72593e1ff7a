"""What a release says of itself: versions that agree, all that is in it, and hashes that anybody can compare."""

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

import certeq

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
release = importlib.util.module_from_spec(spec)
spec.loader.exec_module(release)


def test_versions_of_package_changelog_and_citation_agree(monkeypatch):
    assert release.agree().startswith(certeq.__version__)
    monkeypatch.setattr(release, "version", lambda: "9.9.9")
    with pytest.raises(SystemExit, match=r"src/certeq/__init__\.py has 0.*, but pyproject\.toml has 9\.9\.9"):
        release.agree()


def test_the_first_command_of_the_readme_is_what_is_tried():
    assert release.first_command() == "certeq learn"


def test_the_bill_names_everything_that_is_installed_and_what_needs_what():
    bill = release.bill()
    whole, parts = bill["metadata"]["component"], bill["components"]
    assert (bill["bomFormat"], whole["name"], whole["version"]) == ("CycloneDX", "certeq", certeq.__version__)
    known = {part["bom-ref"] for part in [whole, *parts]}
    assert len(known) == len(parts) + 1
    needs = {line["ref"]: line["dependsOn"] for line in bill["dependencies"]}
    assert needs.keys() == known
    assert set().union(*needs.values()) <= known
    direct = {re.match(r"pkg:pypi/(.+)@", ref)[1] for ref in needs[whole["bom-ref"]]}
    assert {"numpy", "scipy", "numba", "polars", "typer", "msgspec"} <= direct
    assert "pytest" not in direct
    assert any("llvmlite" in ref for ref in needs[next(ref for ref in known if ref.startswith("pkg:pypi/numba@"))])
    assert next(part for part in parts if part["name"] == "numpy")["licenses"]
    assert release.bill() == bill


def test_hashes_are_those_of_the_files_as_sha256sum_reads_them(tmp_path):
    (tmp_path / "a.whl").write_bytes(b"wheel")
    (tmp_path / "b.json").write_bytes(b"{}")
    release.main("hashes", str(tmp_path))
    assert f"{hashlib.sha256(b'wheel').hexdigest()}  a.whl" in (tmp_path / release.SUMS).read_text().splitlines()
    if tool := shutil.which("sha256sum"):
        assert subprocess.run([tool, "--check", "--quiet", release.SUMS], cwd=tmp_path).returncode == 0
        (tmp_path / "a.whl").write_bytes(b"another")
        assert subprocess.run([tool, "--check", "--status", release.SUMS], cwd=tmp_path).returncode == 1


def test_the_script_names_no_registry_and_no_place_of_one_machine():
    for name in ("release.sh", ".ci/release.py"):
        assert not re.search(r"https?://|/(home|root|Users|work)/", (ROOT / name).read_text())


def test_the_script_does_not_touch_a_folder_that_is_there(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    done = subprocess.run([ROOT / "release.sh", tmp_path], capture_output=True, text=True)
    assert (done.returncode, "already exists" in done.stdout) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("address", ["", "https://example.org/us/certeq/blob/v1"])
def test_links_of_the_package_are_absolute_or_not_there(monkeypatch, address):
    hook = types.ModuleType("hatchling.metadata.plugin.interface")
    hook.MetadataHookInterface = type(
        "MetadataHookInterface", (), {"root": str(ROOT)}
    )  # the builder's, which is not here
    monkeypatch.setitem(sys.modules, hook.__name__, hook)
    monkeypatch.setenv("CERTEQ_ADDRESS", address)
    at = importlib.util.spec_from_file_location("describe", ROOT / ".ci" / "describe.py")
    describe = importlib.util.module_from_spec(at)
    at.loader.exec_module(describe)
    metadata = {}
    describe.Description().update(metadata)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    places = re.findall(r"\]\(([^)]+)\)", metadata["readme"]["text"])
    assert len(re.findall(r"\]\(([^)]+)\)", readme)) > 15
    assert "The tutorial" in metadata["readme"]["text"]
    if not address:
        assert (places, metadata["urls"]) == ([], {})
        return
    assert len(places) == len(re.findall(r"\]\(([^)]+)\)", readme))
    assert all(place.startswith("https://example.org/us/certeq/") for place in places)
    assert "https://example.org/us/certeq/raw/v1/docs/images/report.png" in places
    assert metadata["urls"]["Changelog"] == f"{address}/CHANGELOG.md"
