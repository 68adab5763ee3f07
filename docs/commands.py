"""The reference of the command, from the command tree: the same words as `--help` and the man page."""

import re
from typing import Any

import typer
from man import leaves, metavar
from tables import table

from headstart.cli.app import tree

HEAD = """# The command

Written by the build from the words of `headstart COMMAND --help`. `man headstart` has them too.

Every command ends with exit status 0, or with 2 after a mistake in the arguments, a scenario, a trace or a profile: one
line on stderr names the file, line or key, what is wrong and what is allowed. 70 is a fault of headstart itself, 130 an
end by Ctrl-C, 141 an output whose reader has closed it.
"""


def page() -> str:
    """Return the page."""
    root: Any = typer.main.get_command(tree())
    return "\n".join([HEAD, *(_section(path, command) for path, command in leaves(root, "headstart"))])


def _section(path: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name != "argument"]
    usage = " ".join([path, *(metavar(each) for each in arguments), *(["[OPTION...]"] if options else [])])
    lines = [f"## {path.removeprefix('headstart ')}\n", f"```text\n{usage}\n```\n"]
    for paragraph in re.split(r"\n\s*\n", (command.help or "").strip()):
        example = paragraph.removeprefix("Example: ")
        lines.append(f"```sh\n{example}\n```\n" if example != paragraph else f"{_text(paragraph)}\n")
    rows = [(f"`{metavar(each)}`", "", _text(each.help)) for each in arguments if each.help]
    rows += [_option(each) for each in options if each.help and not getattr(each, "hidden", False)]
    return "\n".join([*lines, table(("argument or option", "default", "meaning"), rows)])


def _option(option: Any) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" `{metavar(option)}`"
    shown = isinstance(option.default, str | int | float) and not option.is_flag and option.default != ""
    return f"{names}{value}", f"`{option.default}`" if shown else "", _text(option.help)


def _text(text: str) -> str:
    """Return words as Markdown; what looks like HTML stands for itself."""
    return " ".join(text.replace("[/]", "").split()).replace("<", "&lt;")
