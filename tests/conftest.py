"""What the tests share: the repository's files, and the command as its users run it."""

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headstart._environment import CACHE_VARIABLE
from tests.warm import Warm

ROOT = Path(__file__).resolve().parent.parent


def docs_module(name: str) -> Any:
    """Load a program of the documentation, which is not a package."""
    sys.path.insert(0, str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


FIGURE_1 = ROOT / "examples" / "figure1.toml"
TWO_LEVELS = ROOT / "examples" / "two-levels.toml"
CSCOPE_1 = ROOT / "examples" / "traces" / "cscope1.csv.xz"
GLIMPSE = ROOT / "examples" / "traces" / "glimpse.csv.xz"
COMMAND = Path(sys.executable).with_name("headstart")

DRAWING = {"--html", "--png", "--figures", "--plot"}
"""Options that need the extra `report`."""

Run = Callable[..., subprocess.CompletedProcess[str]]

with contextlib.suppress(ImportError):
    from hypothesis import HealthCheck, settings

    # No example is timed. If the Rust tests draw the same inputs each time, as in CI, so do these.
    settings.register_profile(
        "untimed",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize="PROPTEST_RNG_SEED" in os.environ,
        database=None,
    )
    settings.load_profile("untimed")


def pytest_configure() -> None:
    """Let signals end the commands that tests start, even if the whole run ignores them.

    A shell makes background jobs ignore SIGINT, nohup SIGHUP, and children inherit that; signals that the parent
    handles have their default action in children.
    """
    for each in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(each) is signal.SIG_IGN:
            signal.signal(each, signal.default_int_handler)


ON_THE_MACHINE = re.compile("test_(emulate|forecast|hints_study|kernel_pages|live|play|profile|record|run|tune|units)")
"""Files whose tests mount, trace, set read-aheads or measure time: they run one after another.

Tests of other files that do so are marked one by one."""
SHARING = re.compile("test_(answers|pages|plausibility|study|wheel)")
"""Files whose tests share an expensive fixture: each runs on one worker."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests that must stay together on several workers, before pytest-xdist reads the groups."""
    for item in items:
        if item.get_closest_marker("xdist_group"):
            continue
        if ON_THE_MACHINE.match(item.path.name):
            item.add_marker(pytest.mark.xdist_group("machine"))
        elif SHARING.match(item.path.name):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep cells of studies and fetched traces separate from those of other workers, and of the user."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Fail a test that leaves another handler of a signal: later tests' commands may inherit that they ignore it."""
    handled = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    before = {each: signal.getsignal(each) for each in handled}
    yield
    left = {each.name: each for each in handled if signal.getsignal(each) != before[each]}
    for each in left.values():
        signal.signal(each, before[each])
    assert not left, f"the test leaves another handler of {', '.join(left)}"


def needs_report() -> None:
    """Skip the test where the extra `report` is not installed."""
    for library in ("altair", "vl_convert"):
        pytest.importorskip(library, reason="it draws: pip install '.[report]'")


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """The process that forks for each command."""
    warm = Warm()
    yield warm
    warm.end()


@pytest.fixture
def run(tmp_path: Path, warm: Warm) -> Run:
    """Run the command in a separate process, in an empty folder. Tests that draw are skipped without the extra."""

    def run_command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        if DRAWING & {str(each) for each in arguments}:
            needs_report()
        return warm.run([str(COMMAND), *map(str, arguments)], tmp_path)

    return run_command
