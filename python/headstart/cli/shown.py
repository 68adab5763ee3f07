"""Text from outside, such as names of files and keys, made safe to show: one place for all commands.

A name may hold anything: rich's markup, and control characters, which a terminal obeys.
"""

import re
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.console import ConsoleOptions as Options
from rich.markup import escape
from rich.segment import Segment

# Control characters (the C1 ones among them, which some terminals take for the start of a sequence), the ends of lines
# and paragraphs of Unicode, what turns the direction of text round, and bytes of a name that are no UTF-8.
_CONTROLS = "\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_OUTSIDE = re.compile(f"[{_CONTROLS}]")
_INSIDE = re.compile(f"[{_CONTROLS}]".replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))
"""The same where the ends of lines are the program's own."""


def plain(text: object) -> str:
    """Return a text from outside on one line, without anything that a terminal would obey."""
    return _OUTSIDE.sub(_escaped, str(text))


def safe(text: object) -> str:
    """Return the same for a place where rich reads markup: the cells of a table, and what `Console.print` takes."""
    return escape(plain(text))


def json_text(text: str) -> str:
    """Return the same JSON without raw control characters: they stand in strings only."""
    return _INSIDE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:
        # Python's stand-in for a byte that is no UTF-8.
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class SafeConsole(Console):
    """A console that lets no control characters through but its own, whatever it is given to print."""

    def render(self, renderable: RenderableType, options: Options | None = None) -> Iterable[Segment]:
        """Render, and escape what has come in with the text."""
        for segment in super().render(renderable, options):
            if segment.control is None and _INSIDE.search(segment.text):
                yield Segment(_INSIDE.sub(_escaped, segment.text), segment.style)
            else:
                yield segment
