"""Usage errors in one line: what is wrong, and what is allowed.

typer's own errors print usage, a box and a hint on several lines. Its error classes are private, so that errors
are told apart by what they offer.
"""

from typing import Any


def usage_line(error: Exception) -> str | None:
    """Return the line for a usage error, or `None` if it is something else."""
    message_of = getattr(error, "format_message", None)
    if message_of is None:
        return None
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "headstart"
    message = " ".join(str(message_of()).split()).replace("Value error, ", "").rstrip(".")
    # An error of one parameter says itself what it takes.
    allowed = None if getattr(error, "param", None) is not None else _allowed(context)
    return "; ".join(part for part in (f"{command}: {message}", allowed, f"see {command} --help") if part)


def _allowed(context: Any) -> str | None:
    if context is None:
        return None
    names = getattr(context.command, "commands", None)
    if not names:
        options = (each for each in context.command.params if each.param_type_name == "option")
        names = [max(each.opts, key=len) for each in options]
    return f"allowed: {', '.join(names)}"
