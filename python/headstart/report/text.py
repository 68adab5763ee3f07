"""The formats of figures on the console and in pages."""

from __future__ import annotations


def time_text(nanoseconds: float) -> str:
    """Return a time in ms, with enough digits to distinguish it from others."""
    ms = nanoseconds / 1e6
    return f"{ms:,.3f}" if ms >= 0.1 or not ms else f"{ms:,.5f}"


def duration_text(nanoseconds: float, digits: int = 3) -> str:
    """Return a time with at least `digits` digits, in the unit in which it is below 1,000 after rounding."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        rounded = float(f"{nanoseconds / size:.{digits}g}")
        if abs(rounded) >= 1:
            whole = len(str(int(abs(rounded))))
            return f"{nanoseconds / size:,.{max(digits - whole, 0)}f} {unit}"
    return f"{nanoseconds:.0f} ns" if nanoseconds else "0 s"


def value_text(value: float | str | None) -> str:
    """Return a figure or a sentence, or a dash."""
    match value:
        case None:
            return "-"
        case str():
            return value
        case int():
            return f"{value:,}"
        case _:
            return f"{value:,.6g}"
