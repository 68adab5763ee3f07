"""The JSON Schema of a scenario: everything that runs passes, misspelt keys do not."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

import headstart
from tests.conftest import COMMAND, ROOT

jsonschema = pytest.importorskip("jsonschema", reason="schemas are checked by a library: pip install '.[report]'")
VALIDATOR = jsonschema.Draft7Validator(headstart.schema())
GRIDS = {ROOT / "examples" / "sweep.toml"}
EXAMPLES = sorted(set((ROOT / "examples").glob("*.toml")) - GRIDS)
GOLDEN = sorted((ROOT / "crates" / "sim" / "simulator" / "tests" / "golden").glob("*.json"))


def problems(scenario: Any) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(scenario)]


def test_the_schema_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(headstart.schema())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_and_what_they_resolve_to_pass(path: Path) -> None:
    assert problems(tomllib.loads(path.read_text(encoding="utf-8"))) == []
    assert problems(tomllib.loads(headstart.explain(path))) == []


def test_golden_scenarios_pass() -> None:
    assert len(GOLDEN) > 50
    for path in GOLDEN:
        assert problems(json.loads(path.read_text(encoding="utf-8"))["scenario"]) == [], path.name


def test_every_row_of_the_registries_passes_with_all_its_keys() -> None:
    catalog = headstart.catalog()
    base = {"workload": {"references": ["A"]}}
    for row in catalog["policies"]:
        assert problems({**base, "policy": row["name"]}) == []
        assert problems({**base, "policy": {"name": row["name"], **row["keys"]}}) == [], row["name"]
        assert problems({**base, "policy": {"name": row["name"], "nonsense": 1}}) != []
    for row in catalog["replacements"]:
        policy = {"name": "demand", "replacement": {"name": row["name"], **row["keys"]}}
        assert problems({**base, "policy": policy}) == [], row["name"]
    for row in catalog["coordinators"]:
        level = {"blocks": 4, "coordinator": {"name": row["name"], **row["keys"]}}
        assert problems({**base, "level": [{"blocks": 2}, level]}) == [], row["name"]
    for row in catalog["devices"]:
        keys = {key: value for key, value in row["keys"].items() if key != "name"}
        own = {"fetch_time": "2ms"} if row["name"] == "uniform" else keys
        assert problems({**base, "device": {"model": row["name"], **own}}) == [], row["name"]
        assert problems({**base, "device": {"model": {"name": row["name"], **own}}}) == [], row["name"]
        assert problems({**base, "device": {"model": row["name"], "nonsense": 1, **own}}) != []
    for row in catalog["schedulers"]:
        device = {"scheduler": {"name": row["name"], **row["keys"]}}
        assert problems({**base, "device": device}) == [], row["name"]
    for row in catalog["workloads"]:
        assert problems({"workload": {"generator": row["name"], **row["keys"]}}) == [], row["name"]
        assert problems({"workload": {"generator": row["name"], "nonsense": 1}}) != []


WRONG: list[tuple[Any, ...]] = [
    ("sed", 2),
    ("seed", -1),
    ("seed", "one"),
    ("workload", "comput", "1ms"),
    ("workload", "writes", "trough"),
    ("workload", "limit", 0),
    ("workload", "compute_total", "20"),
    ("cache", "block", 3),
    ("cache", "size", "10"),
    ("policy", {"name": "forestall", "horizn": 1}),
    ("policy", {"name": "linux", "files": 0}),
    ("policy", {"name": "2q"}),
    ("policy", {"name": "demand", "replacement": {"name": "2q", "kin": 2.0}}),
    ("device", "cout", 4),
    ("device", "count", 0),
    ("device", "array", "strip"),
    ("host", "hit_tme", "1us"),
    ("host", "hit_time", 1),
    ("process", "barrier", "some"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_is_misspelt_or_out_of_range_fails(wrong: tuple[Any, ...]) -> None:
    *path, value = wrong
    scenario: dict[str, Any] = {"workload": {"references": ["A", "B"]}, "device": {"model": "hp97560"}}
    at = scenario
    for key in path[:-1]:
        at = at.setdefault(key, {})
    assert problems(scenario) == []
    at[path[-1]] = value
    assert problems(scenario) != []


def test_the_command_prints_it(tmp_path: Path) -> None:
    bare, dash, filed = (
        subprocess.run([COMMAND, "schema", *more], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
        for more in ([], ["--json", "-"], ["--json", "scenario.schema.json"])
    )
    assert bare == dash and filed == ""
    assert json.loads(bare) == json.loads((tmp_path / "scenario.schema.json").read_text()) == headstart.schema()
