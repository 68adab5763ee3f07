"""The fuzz target is a workspace of its own: its lock file has what our crates need, and it reaches every parser."""

import tomllib
from pathlib import Path

from tests.conftest import ROOT


def locked(path: Path) -> dict[str, dict[str, object]]:
    """Return the packages of a lock file."""
    return {package["name"]: package for package in tomllib.loads(path.read_text())["package"]}


def test_the_lock_file_of_the_fuzz_target_is_up_to_date() -> None:
    packages, ours = locked(ROOT / "fuzz" / "Cargo.lock"), locked(ROOT / "Cargo.lock")
    own = [name for name in packages if name.startswith("headstart-") and name != "headstart-fuzz"]
    assert "headstart-trace" in own
    for name in own:
        (path,) = (ROOT / "crates").glob(f"*/{name.removeprefix('headstart-')}/Cargo.toml")
        manifest = tomllib.loads(path.read_text())
        needed = set(manifest["dependencies"])
        found = packages[name].get("dependencies", [])
        assert isinstance(found, list)
        assert {str(each).partition(" ")[0] for each in found} == needed, name
        for each in needed:
            assert packages[each]["version"] == ours[each]["version"], each


def test_one_fuzz_target_selects_among_all_parsers() -> None:
    targets = list((ROOT / "fuzz" / "fuzz_targets").iterdir())
    bins = tomllib.loads((ROOT / "fuzz" / "Cargo.toml").read_text())["bin"]
    assert [ROOT / "fuzz" / each["path"] for each in bins] == targets
    (text,) = (target.read_text() for target in targets)
    # The trace formats come from their registry; the only parser without a row there is the importer of drives.
    assert "fuzz_formats()" in text
    assert "fuzz_import(" in text
