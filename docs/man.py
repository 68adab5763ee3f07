"""The man page, headstart(1), from the command tree: the same words as `--help`."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from headstart.cli.app import tree

HEAD = r""".TH HEADSTART 1 "" "headstart" "User Commands"
.SH NAME
headstart \- prefetching and caching for storage: simulate, compare and explain policies
.SH SYNOPSIS
.B headstart
.I COMMAND
.RI [ OPTION .\|.\|.]
"""
TAIL = r""".SH EXIT STATUS
.TP
.B 0
Success.
.TP
.B 2
An error in the arguments, a scenario, a trace or a profile. One line on stderr names the file, line or key, the problem
and the allowed values.
.TP
.B 70
An internal error of headstart.
.TP
.B 130
Stopped by Ctrl-C.
.TP
.B 141
The output pipe was closed.
.SH ENVIRONMENT
.TP
.B HEADSTART_TRACES
A folder in which
.B headstart reproduce
looks for traces that do not ship with headstart.
.TP
.B NO_COLOR
Disables colours.
"""


def page() -> str:
    """Return the man page."""
    root: Any = typer.main.get_command(tree())
    lines = [HEAD, ".SH DESCRIPTION\n", *_paragraphs(root.help), ".SH OPTIONS\n", *_options(root), ".SH COMMANDS\n"]
    for path, command in leaves(root, "headstart"):
        arguments = " ".join(metavar(each) for each in command.params if each.param_type_name == "argument")
        lines += [f".SS {_text(path)} {_text(arguments)}\n", *_paragraphs(command.help or ""), *_options(command)]
    return "".join([*lines, TAIL])


def leaves(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each command that help shows and that does something, with its words."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from leaves(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _paragraphs(text: str) -> Iterator[str]:
    for index, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        example = paragraph.removeprefix("Example: ")
        if example != paragraph:
            yield f".PP\nExample:\n.PP\n.RS 4\n.nf\n{_text(example)}\n.fi\n.RE\n"
        else:
            yield f"{'.PP' if index else ''}\n{_text(' '.join(paragraph.split()))}\n".lstrip("\n")


def _options(command: Any) -> Iterator[str]:
    for each in command.params:
        if not each.help or getattr(each, "hidden", False):
            continue
        if each.param_type_name == "argument":
            yield f".TP\n\\fI{_text(metavar(each))}\\fR\n{_text(each.help)}\n"
            continue
        names = ", ".join(f"\\fB{_text(name)}\\fR" for name in (*each.opts, *each.secondary_opts))
        value = "" if each.is_flag else f" \\fI{_text(metavar(each))}\\fR"
        default = each.default if isinstance(each.default, str | int | float) and not each.is_flag else None
        shown = "" if default is None or default == "" else f" Default: {_text(str(default))}."
        yield f".TP\n{names}{value}\n{_text(each.help)}{shown}\n"


def metavar(parameter: Any) -> str:
    """Return what stands for the value of an argument or option."""
    if parameter.metavar:
        return str(parameter.metavar)
    kind = {"str": "TEXT", "int": "NUMBER", "int range": "NUMBER", "float": "NUMBER", "float range": "NUMBER"}
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    return kind.get(parameter.type.name, "VALUE")


def _text(text: str) -> str:
    """Return text as roff: a backslash, a dash and a control line's first character stand for themselves."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("[/]", "")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)
