"""The `headstart` command: one file per command, one-line errors, and only JSON on stdout with `--json -`."""

import os
import sys


def main() -> None:
    """Run the command with the process's arguments and exit."""
    try:
        # Imported inside the block: Ctrl-C during the import must not print a traceback.
        if sys.argv[1:2] == ["run"] and not _asks_for_help(sys.argv[2:]):
            _run(sys.argv[2:])
        from headstart.cli.app import main as run_and_exit
    except KeyboardInterrupt:
        os._exit(130)
    run_and_exit()


def _asks_for_help(words: list[str]) -> bool:
    """Return whether the first argument of `headstart run` asks for its own help."""
    return words[:1] == ["--help"] or words[:1] == ["-h"]


def _run(words: list[str]) -> None:
    """Run a command with its reads prefetched: through `headstart-run` if installed, else in this process.

    No further library is loaded, because start-up time counts against the time saved.
    """
    for folder in {os.path.dirname(path) for path in (sys.argv[0], sys.executable) if path}:  # noqa: PTH120
        program = os.path.join(folder, "headstart-run")  # noqa: PTH118
        if os.access(program, os.X_OK):
            os.execv(program, [program, *words])
    from headstart._core import HeadstartError, run_command

    try:
        status = run_command(words)
    except HeadstartError as error:
        # An internal error.
        sys.stderr.write(f"headstart: {error}\n")
        status = 70
    sys.exit(status)
