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
from headstart.cli.targets import check_distinct
from headstart.live import forecast as forecasting
from headstart.live import profile as profiling
from headstart.report.forecast import forecast_shown

OPTIONS = {
    "device.model": "--device",
    "device.scheduler": "--scheduler",
    "policy.name": "--policies",
    "budgets": "--budget",
    "read_ahead": "--read-ahead",
}
"""The option that sets each key of the request."""


def forecast(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recording of `headstart record`.", readable=False)],
    hints: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Prefetch from this recording: an older one, or another command's. Default: FILE.",
            readable=False,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="The device that the recorded run waited for most: a name of `headstart list devices`, or a profile. "
            "Default: by its waits and what the system says.",
        ),
    ] = None,
    on: Annotated[
        Path | None,
        typer.Option(
            "--on", metavar="PATH", help="Measure the device that holds PATH, or is PATH. Needs root.", readable=False
        ),
    ] = None,
    policies: Annotated[
        str | None,
        typer.Option(help="Hinted policies, separated by commas. Default: all that `headstart run` supports."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="SIZES",
            help="Limits of prefetched but unused data: sizes, separated by commas. Default: from 8MiB up to the "
            "amount that the hints need.",
        ),
    ] = None,
    read_ahead: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The kernel's read-ahead. Default: the device's current setting.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A name of `headstart list schedulers`. Default: by the kernel's setting."),
    ] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Forecast `headstart run --trust`.")] = False,
    json: options.Json = None,
) -> None:
    """Predict a recorded command's time from a cold start, plain and with `headstart run`, by policy and budget.

    The recording is replayed on a simulated device, with the files at their current places. The command is not run.
    Only the recording and the places of the files are read.

    Example: headstart forecast git.hints --device seagate-exos-x20
    """
    output.check_targets(json)
    check_distinct({"FILE": file, "--hints": hints, "--device": device, "--json": json})
    if device is not None and on is not None:
        raise HeadstartError("--on: cannot be combined with --device; allowed: one of them")
    with options.named(OPTIONS), tempfile.TemporaryDirectory(prefix="headstart-") as folder:
        profile, keys = (device, {}) if on is None else _measured(on, Path(folder))
        found = watched(
            f"forecasting {file}",
            lambda tell: forecasting.forecast(
                file,
                prefetch=hints,
                device=profile,
                device_keys=keys,
                scheduler=scheduler,
                policies=None if policies is None else options.names("--policies", policies),
                budgets=None if budget is None else options.names("--budget", budget),
                read_ahead=read_ahead,
                trusted=trust,
                progress=tell,
            ),
        )
    if json != "-":
        forecast_shown(output.console(), found)
    if json is not None:
        output.write_json(json, output.as_json(found.to_dict()))


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
