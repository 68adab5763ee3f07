"""The `headstart` command."""

from headstart import __version__


def main() -> None:
    """Run the command."""
    print(f"headstart {__version__}")
