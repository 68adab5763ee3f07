"""The `headstart` command: one file per command, mistakes on one line, JSON on stdout and nothing else beside it."""

import os


def main() -> None:
    """Run the command with the process's arguments and exit."""
    try:
        # Here, so that Ctrl-C is as quiet while the libraries load as it is later.
        from headstart.cli.app import main as run_and_exit
    except KeyboardInterrupt:
        os._exit(130)
    run_and_exit()
