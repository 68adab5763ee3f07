"""The `headstart` command: one file per command, mistakes on one line, JSON on stdout and nothing else beside it."""

import os
import sys


def main() -> None:
    """Run the command with the process's arguments and exit."""
    try:
        # Here, so that Ctrl-C is as quiet while the libraries load as it is later.
        if sys.argv[1:2] == ["run"] and not _asks_for_help(sys.argv[2:]):
            _run(sys.argv[2:])
        from headstart.cli.app import main as run_and_exit
    except KeyboardInterrupt:
        os._exit(130)
    run_and_exit()


def _asks_for_help(words: list[str]) -> bool:
    """Return whether `headstart run` is asked for its help: before the command, if no option takes the word."""
    return words[:1] == ["--help"] or words[:1] == ["-h"]


def _run(words: list[str]) -> None:
    """Run a command with its reads prefetched: as `headstart-run` where that is installed, else in this process.

    Its own start is part of what it shall make shorter: no library is loaded for it.
    """
    for folder in {os.path.dirname(path) for path in (sys.argv[0], sys.executable) if path}:  # noqa: PTH120
        program = os.path.join(folder, "headstart-run")  # noqa: PTH118
        if os.access(program, os.X_OK):
            os.execv(program, [program, *words])
    from headstart._core import HeadstartError, run_command

    try:
        status = run_command(words)
    except HeadstartError as error:
        # A fault of ours.
        sys.stderr.write(f"headstart: {error}\n")
        status = 70
    sys.exit(status)
