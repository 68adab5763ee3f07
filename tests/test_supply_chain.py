"""Digests of tools, licences, sources and duplicates of crates, and the list of crates in the package."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import tomllib
from typing import Any

import pytest

from tests.conftest import ROOT

DENY = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
LOCK = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="SKIPPED: no cargo")


def cargo(*words: str) -> str:
    command = ["cargo", *words, "--locked", "--offline"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_every_tool_has_digests() -> None:
    lines = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
    tools = [line for line in lines if not line.startswith("#")]
    assert len(tools) > 90
    for line in tools:
        assert re.fullmatch(r"[\w.-]+==[\w.]+( --hash=sha256:[0-9a-f]{64})+", line), line[:60]
    # Compiled packages have a digest for each Python and machine.
    numpy = next(line for line in tools if line.startswith("numpy=="))
    assert numpy.count("--hash") > 30


def is_allowed(licence: str) -> bool:
    """Whether one of the alternatives of a licence expression has only licences of deny.toml."""
    allowed = DENY["licenses"]["allow"]
    alternatives = re.split(r" OR |\s*/\s*", licence.replace("(", "").replace(")", ""))
    if " AND " in licence:
        # "(A OR B) AND C": each part on its own.
        return all(is_allowed(part.strip("()")) for part in licence.split(" AND "))
    return any(each.strip() in allowed for each in alternatives)


@needs_cargo
def test_every_crate_has_an_allowed_licence() -> None:
    packages = json.loads(cargo("metadata", "--format-version", "1"))["packages"]
    assert {package["name"] for package in packages if not is_allowed(package["license"] or "none")} == set()
    assert not is_allowed("GPL-3.0-only")
    assert not is_allowed("(MIT OR Apache-2.0) AND GPL-3.0-only")


def test_every_crate_comes_from_the_usual_registry() -> None:
    others = [package for package in LOCK if not package["name"].startswith("headstart-")]
    assert len({package.get("source") for package in others}) == 1
    assert all(re.fullmatch("[0-9a-f]{64}", package["checksum"]) for package in others)
    assert DENY["sources"] == {"unknown-git": "deny", "unknown-registry": "deny"}


@needs_cargo
def test_no_crate_is_there_twice_without_a_reason() -> None:
    tree = cargo("tree", "--workspace", "--edges", "normal,build", "--prefix", "none", "--format", "{p}")
    versions: dict[str, set[str]] = {}
    for name, version in re.findall(r"^(\S+) v([\w.+-]+)", tree, flags=re.M):
        versions.setdefault(name, set()).add(version)
    twice = {name: found for name, found in versions.items() if len(found) > 1}
    skipped = dict(each["crate"].split("@") for each in DENY["bans"]["skip"])
    assert twice.keys() == skipped.keys()
    for name, older in skipped.items():
        assert sum(version.startswith(f"{older}.") for version in twice[name]) == 1, name


def test_the_package_lists_its_crates() -> None:
    files = importlib.metadata.files("headstart") or []
    listed = [file for file in files if file.parts[-2:-1] == ("sboms",)]
    if not listed:
        pytest.skip("SKIPPED: headstart was installed by a maturin before 1.13")
    (bom,) = [json.loads(file.locate().read_text(encoding="utf-8")) for file in listed]  # type: ignore[attr-defined]
    assert bom["bomFormat"] == "CycloneDX"
    components: list[dict[str, Any]] = bom["components"]
    named = {(each["name"], each["version"]) for each in components}
    locked = {(package["name"], package["version"]) for package in LOCK}
    assert {"headstart-serve", "rustls", "object_store", "pyo3"} <= {name for name, _ in named}
    # A part of the lock file: no libraries for tests or other systems.
    assert len(named & locked) > 150
