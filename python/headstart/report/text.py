"""The formats of figures on the console and in pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    # A page of one run needs no studies.
    from headstart.studies._rows import Row, Verdict


def time_text(nanoseconds: float) -> str:
    """Return a time in ms, with enough digits to distinguish it from others."""
    ms = nanoseconds / 1e6
    return f"{ms:,.3f}" if ms >= 0.1 or not ms else f"{ms:,.5f}"


def duration_text(nanoseconds: float, digits: int = 3) -> str:
    """Return a time with at least so many digits, in the unit in which it is below 1,000 after rounding."""
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


def counts_text(rows: Sequence[Row]) -> dict[Verdict, str]:
    """Return how many rows have each verdict, in words."""
    words: dict[Verdict, str] = {"agrees": "agree", "differs": "differ", "not published": "not published"}
    return {verdict: f"{sum(row.verdict == verdict for row in rows)} {word}" for verdict, word in words.items()}


def predicted_text(rows: Sequence[Row]) -> str:
    """Return how many of the predicted rows agree and differ, in words."""
    predicted = counts_text([row for row in rows if row.basis == "predicted"])
    return f"of the predicted: {predicted['agrees']}, {predicted['differs']}"


def basis_text(row: Row) -> str:
    """Return the basis of a row with a verdict; a dash for other rows."""
    return "-" if row.verdict == "not published" else row.basis


def difference_text(row: Row) -> str:
    """Return the difference, in per cent where it is relative."""
    if row.difference is None:
        return "-"
    text = f"{row.difference:+,.4g}" if row.published == 0 else f"{row.difference:+.2%}"
    # A difference that rounds to nothing has no sign.
    return text if any(digit in text for digit in "123456789") else text.lstrip("+-")


def tolerance_text(row: Row) -> str:
    """Return the tolerance in per cent, or its rule."""
    match row.tolerance:
        case None:
            return "-"
        case str():
            return row.tolerance
        case 0:
            return "exact"
        case tolerance:
            return f"{tolerance:g}" if row.published == 0 else f"{tolerance:.2%}"
