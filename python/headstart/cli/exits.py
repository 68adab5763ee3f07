"""Maps every outcome to an exit status.

0: success; 2: a user error, with one line on stderr; 70: an internal error, with one line on stderr;
130: stopped by Ctrl-C; 141: the output pipe was closed. `headstart run` returns the status of its command.
"""

import functools
import inspect
import io
import os
import sys
from typing import Any

import typer

from headstart._core import HeadstartError, InternalError
from headstart._input import plain
from headstart.cli import mistaken
from headstart.cli.usage import usage_line

DONE, MISTAKE, FAULT, STOPPED, PIPE_CLOSED = 0, 2, 70, 130, 141


def run(arguments: list[str], commands: typer.Typer, name: str = "headstart") -> int:
    """Run `commands`, called `name`, with `arguments`; return its exit status."""
    for argument in arguments:
        if not _is_text(argument):
            shown = os.fsencode(argument).decode("utf-8", "backslashreplace")
            return _mistake(f'headstart: "{shown}" is not UTF-8; allowed: arguments and names of files in UTF-8')
    try:
        status = _tree(commands)(arguments, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except InternalError as error:
        _mistake(f"headstart: {error}")
        return FAULT
    except HeadstartError as error:
        return _mistake(f"headstart: {mistaken.line(arguments) or error}")
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not error.code:
            # Shell completion has finished.
            return DONE
        # typer raises SystemExit(1) for a closed pipe only. Python flushes stdout again at exit, so redirect it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
        return PIPE_CLOSED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _mistake(f"headstart: {where}{error.strerror or error}; allowed: files that can be read and written")
    except (KeyboardInterrupt, typer.Abort):
        return STOPPED
    except Exception as error:
        line = usage_line(error)
        if line is None:
            raise
        return _mistake(line)
    return status if isinstance(status, int) else DONE


@functools.cache
def _tree(commands: typer.Typer) -> Any:
    """Return the typer command object, cached for callers that run many command lines."""
    tree: Any = typer.main.get_command(commands)
    _join_lines(tree)
    return tree


def _join_lines(command: Any) -> None:
    """Let the help's paragraphs fill the terminal: typer joins the lines of the first one only."""
    if command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    for each in getattr(command, "commands", {}).values():
        _join_lines(each)


def _is_text(argument: str) -> bool:
    """Return whether an argument is UTF-8; other bytes can neither be printed nor written to a result."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


def _mistake(line: str) -> int:
    print(plain(" ".join(line.split())), file=sys.stderr)
    return MISTAKE


class Stdout(io.FileIO):
    """Stdout whose reader may close it: further output is dropped, and the command still writes its files."""

    closed_by_reader = False

    def write(self, data: Any, /) -> int:
        """Write to the pipe, or to nothing."""
        try:
            return super().write(data)
        except BrokenPipeError:
            self.closed_by_reader = True
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return len(memoryview(data))


def run_and_exit(commands: typer.Typer) -> None:
    """Run `commands` with the process's arguments and exit."""
    pipe = None
    # `None` if the process was started with stdout closed.
    if sys.stdout is not None and not sys.stdout.isatty():
        pipe = Stdout(sys.stdout.fileno(), "w", closefd=False)
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(pipe), encoding=sys.stdout.encoding, errors=sys.stdout.errors)
    status = run(sys.argv[1:], commands)
    if status == DONE and pipe is not None and pipe.closed_by_reader:
        status = PIPE_CLOSED
    if status == STOPPED:
        # Do not wait for a run on another thread.
        os._exit(STOPPED)
    sys.exit(status)
