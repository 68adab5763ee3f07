"""The examples that ship with the package: scenarios, recorded traces, and their other files.

`FOLDER` is `examples/` of a checkout, to which the package has a link. An installed package has the folder itself.
A file belongs to the example that its name begins with: `cscope1.csv.xz` and `cscope1.files.csv.xz` to `cscope1`.
"""

import dataclasses
import itertools
import tomllib
from pathlib import Path

from headstart._core import HeadstartError

FOLDER = (Path(__file__).parent / "examples").resolve()
TRACES = FOLDER / "traces"

ABOUT = {
    "app": "trace: strace's log of a small script",
    "cscope1": "trace: cscope answers queries from its index of a source tree, one after another",
    "cscope2": "trace: cscope searches a source tree for text",
    "cscope3": "trace: cscope searches a larger source tree for text",
    "device": "trace: a made-up sample of lookups during a backup, as blkparse prints it",
    "fio": "trace: fio's log of random and sequential reads",
    "first-comparison": "notebook: policies and disks on a code search, as a frame and as charts",
    "glimpse": "trace: a full-text search through a folder of many files",
    "headstart-tune": "unit for systemd: set a disk's read-ahead at boot",
    "headstart-tune-watch": "unit for systemd: follow a disk's load and set its read-ahead by it",
    "hints_grid": "script: judges a hinted policy on a grid of traces, devices and think times",
    "ld": "trace: a linker reads object files",
    "ml_folder": "trace: a data loader reads a folder of images in the order of its sampler",
    "ml_slice": "trace: slices through a large three-dimensional array",
    "multi6": "trace: several programs at the same time",
    "objects": "trace: three epochs of shuffled images, as headstart store --record writes it",
    "offsets": "trace: bare offsets, one a line, which need --request-size",
    "own_policies": "script: a replacement and read-aheads written in Python, for --policies FILE.py:CLASS",
    "pg_join": "trace: PostgreSQL joins two tables through an index",
    "pg_select": "trace: PostgreSQL selects rows through an index",
    "python": "trace: strace's log of a Python script that reads logs and looks records up",
    "sqlite": "trace: strace's log of sqlite3, which scans a table and an index",
    "trace-from-memory": "notebook: a list of offsets as a trace, and how deep to read ahead for it",
}
"""A description of each example that is not a scenario. A scenario is described by its own first sentence."""


@dataclasses.dataclass(frozen=True)
class Example:
    """An example and its files, relative to `FOLDER`, including those that its scenario reads."""

    name: str
    about: str
    files: tuple[Path, ...]

    @property
    def command(self) -> str:
        """A command to try once the example is in the working folder."""
        first = next((path for path in self.files if path.name.startswith(f"{self.name}.toml")), self.files[0])
        shown = Path("examples") / first
        if first.suffix == ".toml" and "grid" in tomllib.loads((FOLDER / first).read_text(encoding="utf-8")):
            return f"headstart sweep {shown} --out {self.name}"
        if first.suffix == ".toml":
            return f"headstart simulate {shown}"
        return f"headstart compare {shown}" if first.parent.name == "traces" else f"less {shown}"


def examples() -> dict[str, Example]:
    """Return all examples by name, in alphabetical order."""
    by_name: dict[str, list[Path]] = {}
    for path in sorted(path for path in FOLDER.rglob("*") if path.is_file()):
        if "__pycache__" not in path.parts and not path.name.startswith("."):
            by_name.setdefault(_name(path), []).append(path.relative_to(FOLDER))
    return {name: _example(name, by_name) for name in sorted(by_name)}


def _name(path: Path) -> str:
    return path.name.split(".")[0].rstrip("@")


def _example(name: str, by_name: dict[str, list[Path]]) -> Example:
    files = list(by_name[name])
    about = ABOUT.get(name, "")
    for path in by_name[name]:
        if path.suffix == ".toml":
            text = (FOLDER / path).read_text(encoding="utf-8")
            about = _first_sentence(text)
            scenario = tomllib.loads(text)
            traces = [scenario.get("workload", {}).get("trace"), *scenario.get("grid", {}).get("workload.trace", [])]
            files += [file for trace in traces if trace for file in by_name[_name(Path(trace))]]
    return Example(name, about, tuple(dict.fromkeys(files)))


def _first_sentence(scenario: str) -> str:
    comment = itertools.takewhile(lambda line: line.startswith("# "), scenario.splitlines())
    return " ".join(line.removeprefix("# ") for line in comment).split(". ")[0].rstrip(".:")


def write(name: str, out: Path) -> list[Path]:
    """Write the files of an example, or of "all", into `out/examples`; return their paths. Existing files are kept.

    Raises:
        HeadstartError: There is no such example, or a file of that name has different content.
    """
    found = examples()
    if name != "all" and name not in found:
        raise HeadstartError(f'example: no example "{name}"; allowed: all, {", ".join(found)}')
    chosen = found.values() if name == "all" else [found[name]]
    files = list(dict.fromkeys(path for example in chosen for path in example.files))
    wanted = {out / "examples" / path: (FOLDER / path).read_bytes() for path in files}
    for path, content in wanted.items():
        if path.exists() and not (path.is_file() and path.read_bytes() == content):
            raise HeadstartError(f"{path}: exists and differs from the example; allowed: another folder by --out")
    for path, content in wanted.items():
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return list(wanted)
