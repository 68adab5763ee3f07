"""Text from outside, such as names of files and keys, made safe to show: one place for all commands.

A name may hold anything: rich's markup, and control characters, which a terminal obeys.
"""

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.console import ConsoleOptions as Options
from rich.markup import escape
from rich.segment import Segment

from headstart._input import INSIDE, escaped, plain

__all__ = ["SafeConsole", "json_text", "plain", "safe"]


def safe(text: object) -> str:
    """Return the same for a place where rich reads markup: the cells of a table, and what `Console.print` takes."""
    return escape(plain(text))


def json_text(text: str) -> str:
    """Return the same JSON without raw control characters: they stand in strings only."""
    return INSIDE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class SafeConsole(Console):
    """A console that lets no control characters through but its own, whatever it is given to print."""

    def render(self, renderable: RenderableType, options: Options | None = None) -> Iterable[Segment]:
        """Render, and escape control characters of the text."""
        for segment in super().render(renderable, options):
            if segment.control is None and INSIDE.search(segment.text):
                yield Segment(INSIDE.sub(escaped, segment.text), segment.style)
            else:
                yield segment
