"""`headstart reproduce`, which another distribution brings: headstart-lab, through an entry point."""

from importlib.metadata import entry_points
from typing import Annotated, Any

import typer

from headstart._core import HeadstartError

GROUP = "headstart.commands"
FOUND = list(entry_points(group=GROUP, name="reproduce"))
SETTINGS: dict[str, Any] = {} if FOUND else {"context_settings": {"ignore_unknown_options": True}}
"""Keywords of `typer.Typer.command`: without the laboratory, all options give the same error."""


def absent(
    words: Annotated[list[str] | None, typer.Argument(metavar="PAPER [ITEM]...", help="A study: kimbrel96.")] = None,
) -> None:
    """Compute a paper's figures and print them beside the published ones. Comes with headstart-lab.

    Example: headstart reproduce kimbrel96 figure1 --json -
    """
    raise HeadstartError("reproduce: needs the laboratory; allowed: pip install headstart-lab")


reproduce = FOUND[0].load() if FOUND else absent
