"""`python -m headstart` is the `headstart` command."""

from headstart.cli import main

main()
