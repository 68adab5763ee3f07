"""Formats a usage error on one line: the problem, and the allowed values.

typer prints usage, a box and a hint on several lines. Its error classes are private, so errors are distinguished by
their attributes.
"""

import re
from typing import Any


def usage_line(error: Exception) -> str | None:
    """Return the line for a usage error, or `None` if it is something else."""
    message_of = getattr(error, "format_message", None)
    if message_of is None:
        return None
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "headstart"
    message = " ".join(str(message_of()).split()).rstrip(".")
    # An error about one parameter already lists the allowed values.
    allowed = None if getattr(error, "param", None) is not None else _allowed(context, hasattr(error, "option_name"))
    # If an argument is missing, an example of the command helps most.
    example = re.search(r"Example: (headstart .*)", (context and context.command.help) or "")
    if example is not None and message.startswith("Missing"):
        allowed = f"example: {example[1]}"
    return "; ".join(part for part in (f"{command}: {message}", allowed, f"see {command} --help") if part)


def _allowed(context: Any, option: bool) -> str | None:
    """Return the allowed options for a wrong option, or the allowed commands; options if there are no commands."""
    if context is None:
        return None
    commands = {} if option else getattr(context.command, "commands", {})
    names = [name for name, each in commands.items() if not each.hidden]
    if not names:
        options = (each for each in context.command.params if each.param_type_name == "option")
        names = [max(each.opts, key=len) for each in options]
    return f"allowed: {', '.join(names)}" if names else None
