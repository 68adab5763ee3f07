"""Escapes external text, such as names of files and keys, before it is shown. All commands use this module.

A name may contain rich's markup, or control characters that a terminal would act on.
"""

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.console import ConsoleOptions as Options
from rich.markup import escape
from rich.segment import Segment

from headstart._input import INSIDE, escaped, plain

__all__ = ["SafeConsole", "json_text", "plain", "safe"]


def safe(text: object) -> str:
    """Return the same with markup escaped, for table cells and arguments of `Console.print`."""
    return escape(plain(text))


def json_text(text: str) -> str:
    """Return the same JSON without raw control characters, which occur only inside strings."""
    return INSIDE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class SafeConsole(Console):
    """A console that escapes all control characters except its own."""

    def render(self, renderable: RenderableType, options: Options | None = None) -> Iterable[Segment]:
        """Render, and escape control characters of the text."""
        for segment in super().render(renderable, options):
            if segment.control is None and INSIDE.search(segment.text):
                yield Segment(INSIDE.sub(escaped, segment.text), segment.style)
            else:
                yield segment
