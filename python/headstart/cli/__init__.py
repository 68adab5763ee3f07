"""The `headstart` command: one file per command, mistakes on one line, JSON on stdout and nothing else beside it."""

import os
import sys


def main() -> None:
    """Run the command with the process's arguments and exit."""
    try:
        # Here, so that Ctrl-C is as quiet while the libraries load as it is later.
        if sys.argv[1:2] == ["run"]:
            # Its own start is part of what it shall make shorter: without the libraries of all the others.
            from headstart.cli.run import main as run_and_exit
        else:
            from headstart.cli.app import main as run_and_exit
    except KeyboardInterrupt:
        os._exit(130)
    run_and_exit()
