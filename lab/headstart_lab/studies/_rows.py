"""One row of a study: a published figure or finding beside ours."""

import dataclasses
import math
from typing import Literal

Verdict = Literal["agrees", "differs", "not published"]
VERDICTS: tuple[Verdict, ...] = ("agrees", "differs", "not published")

Basis = Literal["predicted", "calibrated", "input", "identity"]
BASES: tuple[Basis, ...] = ("predicted", "calibrated", "input", "identity")

Input = Literal["paper", "rebuilt", "stand-in"]
INPUTS: tuple[Input, ...] = ("paper", "rebuilt", "stand-in")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A quantity as published and as we find it.

    For a finding, `published` and `ours` are short sentences and the figures stand in `note`.
    """

    item: str = ""
    """The item of the study that the row belongs to, such as "table1"; the runner writes it."""
    quantity: str
    """What was measured, with its unit: "elapsed, 2 disks, fixed horizon (s)"."""
    published: float | str | None = None
    """As printed in the paper; `None` if the paper gives no figure."""
    ours: float | str | None
    """As computed in this run; `None` if it could not be computed (the note says why)."""
    difference: float | None = None
    """(ours - published) / published for numbers; the plain difference where `published` is 0."""
    tolerance: float | str | None = None
    """The greatest |difference| that agrees, or a rule in words."""
    verdict: Verdict = "not published"
    """Whether the two agree."""
    basis: Basis = "predicted"
    """What the row proves: "predicted", nothing in it was fitted to this figure or to others of the study;
    "calibrated", a parameter behind it was found by scanning for this or for other published figures; "input", the
    paper prints it and it was put in; "identity", true by construction."""
    note: str = ""
    """Figures, readings, reasons."""
    input: Input | None = None
    """What was run: "paper", what the paper gives; "rebuilt", a generator made of what the paper tells of a lost trace;
    "stand-in", another program. `None` until the runner writes what the study declares."""
    held: int | None = None
    """In how many cases a finding holds, where it was tried on several."""
    tried: int | None = None
    """The number of these cases."""

    def to_dict(self) -> dict[str, float | str | None]:
        """Return the row as `reproduce --json` prints it."""
        return dataclasses.asdict(self)


def unpublished(quantity: str, ours: float | str | None, *, note: str = "", input: Input | None = None) -> Row:
    """Return the row of a figure that the paper does not print, or of one that could not be computed."""
    return Row(quantity=quantity, ours=ours, note=note, input=input)


def number(
    quantity: str,
    *,
    published: float,
    ours: float,
    tolerance: float = 0.0,
    basis: Basis = "predicted",
    note: str = "",
    input: Input | None = None,
) -> Row:
    """Return the row of a number, with its verdict.

    `tolerance` is relative (0.01 is 1 %), 0 means exactly equal; where `published` is 0 it is absolute.
    """
    difference = ours - published if published == 0 else (ours - published) / published
    # The last digit of a tolerance such as 0.01 must not decide.
    agrees = abs(difference) <= tolerance or math.isclose(abs(difference), tolerance, rel_tol=1e-9)
    return Row(
        quantity=quantity,
        published=published,
        ours=ours,
        difference=difference,
        tolerance=tolerance,
        verdict="agrees" if agrees else "differs",
        basis=basis,
        note=note,
        input=input,
    )


def finding(
    quantity: str,
    *,
    published: str,
    ours: str,
    holds: bool,
    tolerance: str = "",
    basis: Basis = "predicted",
    note: str,
    cases: tuple[int, int] = (0, 0),
    input: Input | None = None,
) -> Row:
    """Return the row of a finding in words; `note` carries the figures on which it rests.

    `cases` are those in which it holds and all that were tried, if there are several.
    """
    held, tried = cases if cases[1] else (None, None)
    return Row(
        quantity=quantity,
        published=published,
        ours=ours,
        tolerance=tolerance or None,
        verdict="agrees" if holds else "differs",
        basis=basis,
        note=note,
        input=input,
        held=held,
        tried=tried,
    )
