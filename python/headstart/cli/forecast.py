"""`headstart forecast`: the time that prefetching would save for a recorded command."""

import os
import stat
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from headstart._core import HeadstartError
from headstart.cli import options, output
from headstart.cli.profile import terminated
from headstart.cli.progress import LIVE_TIDY_S, watched
from headstart.cli.shown import plain
from headstart.live import forecast as forecasting
from headstart.live import profile as profiling
from headstart.report.forecast import forecast_shown


@options.of_core("forecast")
def forecast(
    given: options.Given,
    on: Annotated[
        Path | None,
        typer.Option(
            "--on", metavar="PATH", help="Measure the device that holds PATH, or is PATH. Needs root.", readable=False
        ),
    ] = None,
    json: options.Json = None,
) -> None:
    """Predict a recorded command's time from a cold start, plain and with `headstart run`, by policy and budget.

    The recording is replayed on a simulated device, with the files at their current places. The command is not run.
    Only the recording and the places of the files are read.

    Example: headstart forecast git.hints --device seagate-exos-x20
    """
    output.check_targets(json)
    options.check_files("forecast", given, {"--json": json})
    if "device" in given and on is not None:
        raise HeadstartError("--on: cannot be combined with --device; allowed: one of them")
    with tempfile.TemporaryDirectory(prefix="headstart-") as folder:
        if on is not None:
            given["device"], given["device_keys"] = _measured(on, Path(folder))
        found = watched(f"forecasting {given['hints']}", lambda tell: forecasting.forecast(**given, progress=tell))
    if json != "-":
        forecast_shown(output.console(), found)
    if json is not None:
        output.write_json(json, output.as_json(found))


def _measured(path: Path, folder: Path) -> tuple[str, dict[str, object]]:
    """Measure the device that holds `path`, or is `path`; return a profile's name or path, and overriding keys."""
    device = _device_of(path)
    if os.geteuid() != 0:
        raise HeadstartError(f"--on: {plain(device)}: only root may measure a device; allowed: root, or --device")
    with terminated():
        found = watched(f"opening {device}", lambda tell: profiling.profile(device, progress=tell), tidy_s=LIVE_TIDY_S)
    if found.profile is not None:
        target = folder / f"{Path(device).stem}.toml"
        target.write_text(found.profile, encoding="utf-8")
        return str(target), {}
    return "nvme", forecasting.flash_keys(found)


def _device_of(path: Path) -> str:
    """Return the block device that holds `path`, or `path` if it is one."""
    try:
        status = path.stat()
    except OSError as error:
        raise HeadstartError(f"--on: {plain(path)}: {error.strerror}; allowed: a file, folder or device") from None
    number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not link.exists():
        raise HeadstartError(f"--on: {plain(path)} is on no block device; allowed: a path on one, or --device")
    return f"/dev/{link.resolve().name}"
