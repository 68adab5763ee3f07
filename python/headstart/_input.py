"""External input: checks names before they are passed on, and escapes strings before they are shown.

The core reads text files, with a size limit: `headstart_types::read_text`.
"""

import difflib
import re
from collections.abc import Iterable
from os import PathLike, fspath
from typing import Any

from headstart._core import HeadstartError, without_credentials

# Control characters (including C1, which some terminals treat as escape sequences), Unicode's separators of lines and
# paragraphs, characters that change the direction of text, and bytes that are not UTF-8.
_CONTROLS = "\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
OUTSIDE = re.compile(f"[{_CONTROLS}]")
INSIDE = re.compile(f"[{_CONTROLS}]".replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))
"""The same without the line feed, for text whose line ends are the program's own."""


def name(value: str | PathLike[str], what: str) -> str:
    """Return a name or path as text; `what` describes it in errors.

    Raises:
        HeadstartError: It is not UTF-8, the encoding of profiles, JSON results and pictures.
    """
    text = fspath(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problem = f"{plain(text)}: the name of the {what} is not in UTF-8"
        raise HeadstartError(f"{problem}; allowed: a name in UTF-8, or a link of such a name to the file") from error
    return text


def whole(what: str, number: int | None, least: int = 0, *, most: int = 2**64 - 1) -> None:
    """Refuse a number that the core cannot take; it refuses the others that are of no use.

    Raises:
        HeadstartError: It is out of range.
    """
    if number is not None and not least <= number <= most:
        raise HeadstartError(f"{what}: {number} is out of range; allowed: a whole number from {least} to {most}")


def listed(values: Any) -> list[Any]:
    """Return a list of values, from a list or a single value; paths as text."""
    if isinstance(values, str | PathLike) or not isinstance(values, Iterable):
        values = [values]
    return [fspath(value) if isinstance(value, PathLike) else value for value in values]


def meant(name: str, names: Iterable[str]) -> str:
    """Return the name that was probably meant, as ' (did you mean "lru"?)', or nothing if none is near."""
    # Two names of four letters that differ in one are near (0.75), two of three letters are not (0.67).
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.7)
    return f' (did you mean "{near[0]}"?)' if near else ""


def plain(text: object) -> str:
    r"""Return an external text on one line; characters with an effect in terminals or plots are escaped (\x1b).

    The URLs in it are without passwords and queries, which may be signatures.
    """
    escaped_text = OUTSIDE.sub(escaped, str(text))
    return without_credentials(escaped_text) if "://" in escaped_text else escaped_text


def escaped(found: re.Match[str]) -> str:
    """Return the escape of a character that `OUTSIDE` or `INSIDE` has found."""
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:
        # Python's substitute for a byte that is not UTF-8.
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
