"""The commands of the study and the files that they need: copies of the machine's installation, and generated data.

A command whose program is not installed is left out, with the reason.
"""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from headstart._core import HeadstartError
from headstart_lab.livestudy.platform import run

SOURCE_FILES, FOLDERS, SOURCE_LINES = 9000, 300, 120
"""Of the repository: about as many files as in a large project, of some 4 KiB each."""
ROWS, VALUE_BYTES, SERVER_ROWS = 60_000, 700, 6000
"""Of the databases: about 50 MB and 5 MB."""
NOBODY = 65534
"""PostgreSQL does not run as root."""
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
DISTRIBUTIONS = ("pandas", "numpy", "dateutil", "pytz", "tzdata", "six.py", "numpy.libs", "pandas.libs")
NOT_COPIED = shutil.ignore_patterns("site-packages", "test", "tests", "__pycache__", "config-*", "idlelib", "tkinter")


@dataclass(frozen=True)
class Command:
    """A command on the files below a folder."""

    name: str
    words: Callable[[Path], list[str]]
    """Its program and arguments, given the folder."""
    environment: Callable[[Path], dict[str, str]] = field(default=lambda root: {})
    needs: tuple[str, ...] = ()
    """The parts that `Tree.make` must have made."""
    codes: tuple[int, ...] = (0,)
    """Exit statuses of success."""


def commands() -> list[Command]:
    """Return all commands."""

    def python(root: Path) -> dict[str, str]:
        libraries = {"LD_LIBRARY_PATH": str(root / "py/lib")}
        return {"PYTHONHOME": str(root / "py"), "PYTHONPATH": str(root / "site"), **NO_CODE, **libraries}

    def program(code: str) -> Callable[[Path], list[str]]:
        return lambda root: [str(root / "py/bin" / PYTHON), "-c", code]

    def sqlite(query: str) -> Callable[[Path], list[str]]:
        return lambda root: ["sqlite3", "-readonly", str(root / "db.sqlite"), query]

    def git(*words: str) -> Callable[[Path], list[str]]:
        return lambda root: ["git", "--no-optional-locks", "-c", "safe.directory=*", "-C", str(root / "src"), *words]

    def rust(name: str) -> Callable[[Path], list[str]]:
        return lambda root: [str(root / "rust/bin" / name), "--version"]

    return [
        Command("import pandas", program("import pandas"), python, ("python", "pandas")),
        Command("python stdlib", program("import json, asyncio, http.client"), python, ("python",)),
        Command("git status", git("status", "--porcelain"), needs=("git",)),
        Command("sqlite range", sqlite(RANGE), needs=("sqlite",)),
        Command("sqlite join", sqlite(JOIN), needs=("sqlite",)),
        Command("rustc --version", rust("rustc"), needs=("rust",)),
        Command("cargo --version", rust("cargo"), needs=("rust",)),
        Command(
            "grep -r", lambda root: ["grep", "-r", "not_there_at_all", str(root / "src")], needs=("git",), codes=(0, 1)
        ),
        Command("postgres start", postgres, needs=("postgres",)),
    ]


NO_CODE = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
RANGE = "select sum(length(v)) from t where k between '10' and '102'"
JOIN = "select sum(u.x) from t join u on u.tid = t.id where t.k between '10' and '101'"
WRITTEN = "pg/data"
"""The folder that a command writes to."""
SERVER = """
set -e
export PGDATA="$2" PGHOST="$2"
rm -f "$2/said"
mkfifo "$2/said"
"$1/postgres" -k "$2" -c listen_addresses= -c shared_buffers=64MB >/dev/null 2>"$2/said" &
exec 3<"$2/said"
while read -r line <&3; do
    case "$line" in *"ready to accept connections"*) break ;; esac
done
"$1/psql" -X -q -A -t -d postgres -c "select count(*), sum(length(v)) from t where k between '10' and '19'" </dev/null
kill -INT $!
wait $!
"""
"""Start a server, query it, and stop it. `pg_ctl` would poll ten times a second for readiness."""


def postgres(root: Path) -> list[str]:
    """Return the command that starts PostgreSQL on the database below `root`, queries it and stops it."""
    (version,) = (path for path in (root / "usr/lib/postgresql").iterdir())
    return [*as_nobody(), "sh", "-c", SERVER, "sh", str(version / "bin"), str(written(root))]


def written(root: Path) -> Path:
    """Return the folder that a command writes to: beside the files if these are read-only."""
    beside = root.with_name("written")
    return beside if beside.exists() else root / WRITTEN


def as_nobody() -> list[str]:
    """Return the prefix that runs a program without root's rights."""
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


class Tree:
    """The files of all commands below a folder, created by `make`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.missing: dict[str, str] = {}
        """By part: why it could not be made."""

    def make(self, tell: Callable[[str], None] = lambda text: None) -> None:
        """Copy and create everything that is available."""
        parts = {
            "python": self._python,
            "pandas": self._pandas,
            "git": self._git,
            "sqlite": self._sqlite,
            "rust": self._rust,
            "postgres": self._postgres,
        }
        for name, make in parts.items():
            tell(f"files: {name}")
            try:
                make()
            except (HeadstartError, OSError, LookupError, ImportError) as problem:
                self.missing[name] = str(problem)

    def why_not(self, command: Command) -> str | None:
        """Return why the command is unavailable here, if it is."""
        return next((f"{part}: {self.missing[part]}" for part in command.needs if part in self.missing), None)

    def _python(self) -> None:
        home = self.root / "py"
        (home / "bin").mkdir(parents=True)
        shutil.copy2(Path(sys.executable).resolve(), home / "bin" / PYTHON)
        library = sysconfig.get_path("stdlib")
        shutil.copytree(library, home / "lib" / PYTHON, ignore=NOT_COPIED, symlinks=True)
        shared = Path(sysconfig.get_config_var("LIBDIR") or "/") / str(sysconfig.get_config_var("INSTSONAME"))
        if shared.is_file() and ".so" in shared.name:
            shutil.copy2(shared, home / "lib" / shared.name)
        variables = [f"PYTHONHOME={home}", f"LD_LIBRARY_PATH={home / 'lib'}"]
        # As in an installation: with compiled modules.
        compile_all = [str(home / "bin" / PYTHON), "-m", "compileall", "-q", str(home / "lib")]
        subprocess.run(["env", *variables, *compile_all], check=False, timeout=600)

    def _pandas(self) -> None:
        import pandas

        packages = Path(pandas.__file__).parents[1]
        target = self.root / "site"
        target.mkdir()
        for name in DISTRIBUTIONS:
            found = packages / name
            if found.is_dir():
                shutil.copytree(found, target / name, ignore=shutil.ignore_patterns("tests"))
            elif found.is_file():
                shutil.copy2(found, target / name)

    def _git(self) -> None:
        needs("git")
        chance, source = random.Random(1), self.root / "src"
        for number in range(SOURCE_FILES):
            folder = source / f"lib{number % FOLDERS:03}" / f"part{number % 7}"
            folder.mkdir(parents=True, exist_ok=True)
            lines = (f"int f{chance.randrange(10**6)}(int a) {{ return a; }}\n" for _ in range(SOURCE_LINES))
            (folder / f"file{number:05}.c").write_text("".join(lines), encoding="ascii")
        git = ["git", "-C", str(source), "-c", "user.name=study", "-c", "user.email=study@example.invalid"]
        run("git", "init", "-q", str(source))
        # Packed like an old repository; otherwise git packs by itself, while the study runs its next step.
        run(*git, "config", "gc.auto", "0")
        run(*git, "add", "-A")
        run(*git, "commit", "-q", "-m", "files")
        run(*git, "gc", "-q")

    def _sqlite(self) -> None:
        needs("sqlite3")
        chance = random.Random(2)
        base = sqlite3.connect(self.root / "db.sqlite")
        with base:
            base.execute("create table t (id integer primary key, k text, v blob)")
            base.execute("create table u (tid integer, x integer)")
            # Digits in random order: neighbours in the index lie anywhere in the table.
            rows = ((f"{chance.random():.12f}"[2:], chance.randbytes(VALUE_BYTES)) for _ in range(ROWS))
            base.executemany("insert into t (k, v) values (?, ?)", rows)
            base.executemany("insert into u values (?, ?)", ((chance.randrange(ROWS), 1) for _ in range(2 * ROWS)))
            base.execute("create index t_k on t (k)")
            base.execute("create index u_t on u (tid)")
        base.close()

    def _rust(self) -> None:
        needs("rustc")
        root = Path(run("rustc", "--print", "sysroot"))
        target = self.root / "rust"
        for name in ("bin/rustc", "bin/cargo"):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)
        (target / "lib").mkdir()
        for library in (root / "lib").glob("*.so*"):
            shutil.copy2(library, target / "lib" / library.name)

    def _postgres(self) -> None:
        needs("setpriv")
        versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        if not versions:
            raise HeadstartError("not installed: postgresql")
        home = versions[-1].parents[1]
        for folder in (home, Path("/usr/share/postgresql") / home.name):
            shutil.copytree(folder, self.root / folder.relative_to("/"), symlinks=True)
        place = self.root / "pg"
        place.mkdir()
        os.chown(place, NOBODY, NOBODY)
        binaries = self.root / home.relative_to("/") / "bin"
        nobody = as_nobody()
        run(*nobody, str(binaries / "initdb"), "-D", str(place / "data"), "--auth=trust", "-N", "--wal-segsize=1")
        rows = "select lpad((random() * 1e9)::int::text, 9, '0'), repeat(md5(random()::text), 20) from"
        made = f"create table t as {rows} generate_series(1, {SERVER_ROWS}) as r(n); alter table t rename lpad to k;"
        made += " alter table t rename repeat to v; create index t_k on t (k);"
        done = subprocess.run(
            [*nobody, str(binaries / "postgres"), "--single", "-D", str(place / "data"), "postgres"],
            input=made.replace(";", "\n"),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        if done.returncode != 0:
            raise HeadstartError(f"postgres: {done.stderr.strip()}")


def needs(program: str) -> None:
    """Check that a program is installed.

    Raises:
            HeadstartError: The program is not installed.
    """
    if shutil.which(program) is None:
        raise HeadstartError(f"not installed: {program}")
