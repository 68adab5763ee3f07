"""The wheel as users get it: in a fresh environment, without Rust on PATH, each example of --help runs.

`make wheel-test` builds the wheel first. Without a wheel of the present sources in dist/ these tests are skipped.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from headstart import _examples
from tests.conftest import ROOT
from tests.test_help import EXAMPLES

SOURCES = ("pyproject.toml", "Cargo.lock", "crates/**/src/**/*.rs", "python/**/*.py", "examples/**/*")
PYTHONS = ("3.11", "3.13")
NEEDS_A_MACHINE = ("tune", "profile", "emulate", "run", "record", "serve", "play", "hints", "forecast")
"""Commands whose examples read or change a disk of this machine, or need a server."""
DISKSIM = "cheetah9LP"
"""DiskSim's files belong to their authors, and do not ship."""


def newest_wheel() -> Path:
    """The wheel in dist/ that fits this machine and is not older than the sources."""
    machine = os.uname().machine
    wheels = sorted((ROOT / "dist").glob(f"headstart-*{machine}.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        pytest.skip("no wheel in dist/: make wheel-test builds one and runs this test")
    changed = [path for pattern in SOURCES for path in ROOT.glob(pattern) if path.is_file()]
    newer = [path for path in changed if path.stat().st_mtime > wheels[-1].stat().st_mtime]
    if newer:
        pytest.skip(f"{wheels[-1].name} is older than {newer[0].relative_to(ROOT)}: make wheel-test builds it anew")
    return wheels[-1]


def python(version: str) -> str:
    """An interpreter of this version that works."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))]
    for path in map(str, filter(None, found)):
        # pyenv also has shims for versions that are not selected, which fail.
        if subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode == 0:
            return path
    pytest.skip(f"no Python {version} with venv here")


def without_rust() -> str:
    """PATH without the folders that hold cargo or rustc."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(each for each in folders if not {"cargo", "rustc"} & set(_names(each)))


def _names(folder: str) -> list[str]:
    return [path.name for path in Path(folder).iterdir()] if Path(folder).is_dir() else []


@pytest.fixture(scope="module", params=PYTHONS)
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel and its dependencies only."""
    wheel, interpreter = newest_wheel(), python(request.param)
    home = tmp_path_factory.mktemp(f"python-{request.param}")
    environment = {**os.environ, "PATH": without_rust(), "PYTHONPATH": ""}
    assert shutil.which("cargo", path=environment["PATH"]) is None
    subprocess.run([interpreter, "-m", "venv", home / "env"], check=True, env=environment)
    pip = [str(home / "env/bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, str(wheel)], capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0 and re.search("connection|resolve|retr", done.stderr, flags=re.IGNORECASE):
        pytest.skip("the package index cannot be reached: typer, rich and platformdirs come from there")
    assert done.returncode == 0, done.stderr
    return home


def test_each_example_of_the_help_runs(installed: Path) -> None:
    """Those that need no disk, in an empty folder, once `headstart example all` has written the examples there."""
    environment = {"PATH": f"{installed / 'env/bin'}:/usr/bin:/bin", "HOME": str(installed)}
    folder = installed / "work"
    folder.mkdir()

    def run(line: str) -> subprocess.CompletedProcess[str]:
        words = [str(installed / "env/bin/headstart"), *shlex.split(line)[1:]]
        return subprocess.run(words, capture_output=True, text=True, cwd=folder, env=environment, check=False)

    assert len(run("headstart example all").stdout.splitlines()) == sum(
        1 for path in _examples.FOLDER.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    for line in EXAMPLES:
        needs_a_machine = line.split()[1] in NEEDS_A_MACHINE or line.split()[1:3] == ["trace", "record"]
        if not needs_a_machine and DISKSIM not in line:
            done = run(line)
            # It needs an extra, or the laboratory.
            needs_extra = "pip install" in done.stderr
            assert done.returncode == (2 if needs_extra else 0), (line, done.stderr)


def test_the_package_is_whole(installed: Path) -> None:
    """Metadata, the man page and the marker of types are there; nothing lies beside the package."""
    program = (
        "import importlib.metadata as m, json, headstart, pathlib; d = m.metadata('headstart');"
        "print(json.dumps([d['Author'], d['License-Expression'], headstart.__version__ == d['Version'],"
        "(pathlib.Path(headstart.__file__).parent / 'py.typed').exists(),"
        "sorted({str(f).split('/')[0] for f in m.files('headstart')})]))"
    )
    words = [str(installed / "env/bin/python"), "-c", program]
    author, terms, same, typed, parts = json.loads(subprocess.check_output(words, text=True))
    assert (author, terms, same, typed) == ("headstart developers", "Apache-2.0", True, True)
    assert [part for part in parts if not part.startswith("headstart")] == [".."]
    assert (installed / "env/share/man/man1/headstart.1").read_text(encoding="utf-8").startswith(".TH HEADSTART 1")


def test_the_source_distribution_has_what_the_checkout_has() -> None:
    """If it exists, it has docs, examples and tests, and no link that leads out of it."""
    archives = sorted((ROOT / "dist").glob("headstart-*.tar.gz"), key=lambda path: path.stat().st_mtime)
    if not archives:
        pytest.skip("no source distribution in dist/: make sdist builds one")
    with tarfile.open(archives[-1]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    wanted = ["README.md", "docs/scenario.md", "examples/traces/glimpse.csv.xz", "tests/conftest.py", "Makefile"]
    assert [name for name in wanted if name not in names] == []
    assert any(name.startswith("crates/sim/simulator/tests/golden/") for name in names)
