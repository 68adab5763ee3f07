"""`headstart run`: a command whose reads are prefetched."""

import os
import resource
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from headstart import hinting
from headstart._core import HeadstartError
from headstart._input import plain
from headstart.cli import exits

NOT_FOUND, NOT_STARTED = 127, 126
"""Exit statuses of a command that cannot be run, as a shell has them."""


def run(
    command: Annotated[list[str], typer.Argument(metavar="CMD...", help="The command and its arguments, behind --.")],
    hints: Annotated[
        Path, typer.Option(metavar="FILE", readable=False, help="What it reads: from `headstart record`.")
    ],
    policy: Annotated[
        str, typer.Option(metavar="NAME", help="What is prefetched when: a hinted policy of `headstart list policies`.")
    ] = hinting.POLICY,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A key of the policy. Repeatable.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Prefetched and not yet used, at most; a quarter of free memory by default."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE", help="The drive's profile, where the system is wrong about whether it has an arm."
        ),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Use the whole budget at once, before the first hints have proved right.")
    ] = False,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="Write what prefetching has come to as JSON, or to stdout with -."),
    ] = None,
    openmetrics: Annotated[str | None, typer.Option(metavar="FILE", help="Write the same as OpenMetrics.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say it in one line on stderr.")] = False,
) -> None:
    """Run CMD while what it is going to read is prefetched into the page cache.

    Exit status, signals, streams and environment are CMD's: 127 if there is no such program, 126 if it cannot be run.
    Without root the reads of CMD are not seen: prefetching then goes by the hints alone.

    Example: headstart run --hints status.hints -v -- git status
    """
    keys = None
    if report is not None or openmetrics is not None or settings is not None:
        # What few runs need is loaded for those.
        from headstart.cli import output
        from headstart.cli.device import keys_of
        from headstart.cli.targets import check_distinct

        output.check_targets(report, openmetrics)
        check_distinct({"--hints": hints, "--report": report, "--openmetrics": openmetrics})
        keys = keys_of(settings)
    try:
        outcome = hinting.run(
            command,
            hints=hints,
            policy=policy,
            keys=keys,
            budget=budget,
            device=device,
            trusted=trust,
        )
    except hinting.NotStarted as problem:
        print(f"headstart: {plain(str(problem))}", file=sys.stderr)
        raise typer.Exit(NOT_FOUND if problem.missing else NOT_STARTED) from None
    try:
        if report is not None:
            output.write_json(report, output.as_json(outcome.report.to_dict()))
        if openmetrics is not None:
            output.write_text(Path(openmetrics), outcome.openmetrics)
    except (HeadstartError, OSError) as problem:
        # The exit status is the command's all the same.
        print(f"headstart: {plain(str(problem))}", file=sys.stderr)
    if verbose:
        for line in [outcome.report.line(), *outcome.report.notes]:
            print(f"headstart: {plain(line)}", file=sys.stderr)
    if outcome.signal is not None:
        die_of(outcome.signal)
    raise typer.Exit(outcome.code or exits.DONE)


def add_to(app: typer.Typer) -> None:
    """Make it a command of `app`: options behind the command's name are the command's."""
    app.command("run", context_settings={"allow_interspersed_args": False})(run)


def main() -> None:
    """Run this command alone with the process's arguments and exit."""
    app = typer.Typer(
        name="headstart", pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
    )
    add_to(app)
    # With a callback it is a command of a group: its name is one of the arguments.
    app.callback()(lambda: None)
    exits.run_and_exit(app)


def die_of(number: int) -> None:
    """End this process as the command has ended."""
    sys.stdout.flush()
    sys.stderr.flush()
    # The command has left what there is to leave.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
