"""The `headstart` command: one file per command, mistakes on one line, JSON on stdout and nothing else beside it."""

from headstart.cli.app import main

__all__ = ["main"]
