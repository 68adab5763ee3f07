"""The words of rows, on the console, in pages and in docs.

Whether a row agrees with the paper is a question only if the paper's own input was run, or one rebuilt from it. A
finding tried on another program cannot contradict the paper: the question is whether it holds there.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from headstart_lab.studies._rows import Row

Answer = Literal["agrees", "differs", "holds", "holds in part", "does not hold", "not published"]
COUNTED: dict[Answer, str] = {
    "agrees": "agree",
    "differs": "differ",
    "holds": "hold",
    "holds in part": "hold in part",
    "does not hold": "do not hold",
    "not published": "not published",
}
"""The answers, and how rows with each are counted."""
CLASSES: dict[Answer, Literal["good", "bad", "quiet"]] = {
    "agrees": "good",
    "differs": "bad",
    "holds": "good",
    "holds in part": "quiet",
    "does not hold": "bad",
    "not published": "quiet",
}


def answer(row: Row) -> Answer:
    """Return the verdict of a row; for a stand-in, whether the finding holds."""
    if row.input != "stand-in" or row.verdict == "not published":
        return row.verdict
    if row.verdict == "agrees":
        return "holds"
    return "holds in part" if row.held else "does not hold"


def answer_text(row: Row) -> str:
    """Return the answer with the cases in which a finding holds."""
    said = answer(row)
    return f"holds in {row.held} of {row.tried}" if said == "holds in part" else said


def answers(rows: Sequence[Row]) -> Counter[Answer]:
    """Return how many rows have each answer."""
    return Counter(answer(row) for row in rows)


def counts_text(rows: Sequence[Row]) -> dict[Answer, str]:
    """Return how many rows have each answer, in words; always of those that agree and differ."""
    counts = answers(rows)
    return {
        each: f"{counts[each]} {word}" for each, word in COUNTED.items() if counts[each] or word in ("agree", "differ")
    }


def predicted_text(rows: Sequence[Row]) -> str:
    """Return how many of the predicted rows agree and differ, in words."""
    counts = answers([row for row in rows if row.basis == "predicted"])
    return f"of the predicted: {counts['agrees']} agree, {counts['differs']} differ"


def basis_text(row: Row) -> str:
    """Return the basis of a row with a verdict; a dash for other rows."""
    return "-" if row.verdict == "not published" else row.basis


def difference_text(row: Row) -> str:
    """Return the difference, in per cent if it is relative."""
    if row.difference is None:
        return "-"
    text = f"{row.difference:+,.4g}" if row.published == 0 else f"{row.difference:+.2%}"
    # A difference that rounds to zero has no sign.
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
