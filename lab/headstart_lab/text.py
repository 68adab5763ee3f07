"""The words of rows, on the console, in pages and in docs."""

from collections.abc import Sequence

from headstart_lab.studies._rows import Row, Verdict


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
