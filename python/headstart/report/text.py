"""How figures of a study are written, on the console and in a page."""

from headstart.studies._rows import Row


def value_text(value: float | str | None) -> str:
    """Return a figure or a sentence; a dash where there is none."""
    match value:
        case None:
            return "-"
        case str():
            return value
        case int():
            return f"{value:,}"
        case _:
            return f"{value:,.6g}"


def difference_text(row: Row) -> str:
    """Return the difference, in per cent where it is relative."""
    if row.difference is None:
        return "-"
    return f"{row.difference:+,.4g}" if row.published == 0 else f"{row.difference:+.2%}"


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
