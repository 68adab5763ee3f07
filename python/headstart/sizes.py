"""Sizes as scenarios write them: "128KiB", "10M"."""

from headstart import _core

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def size_bytes(text: str) -> int:
    """Return the bytes of "128KiB", or of a plain number.

    Raises:
        HeadstartError: The text is not a size.
    """
    return int(text) if text.isdecimal() else _core.size_bytes(text)


def size_text(count: int) -> str:
    """Return the exact size in the largest unit that divides it: "1MiB"."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if count and count % UNITS[unit] == 0:
            return f"{count // UNITS[unit]}{unit}"
    return f"{count}B"


def bytes_text(count: int) -> str:
    """Return a number of bytes with three digits, in a suitable unit."""
    if abs(count) < 1024:
        return f"{count} B" if count else "0"
    size = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        size /= 1024
        if abs(size) < 999.5 or unit == "TiB":
            break
    return (
        f"{size:.2f} {unit}"
        if abs(size) < 9.995
        else f"{size:.1f} {unit}"
        if abs(size) < 99.95
        else f"{size:.0f} {unit}"
    )
