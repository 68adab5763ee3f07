"""`headstart reproduce li07-live`: the read-ahead depths of li07 on a stock kernel, beside the simulation."""

import sys
from pathlib import Path

from headstart._core import HeadstartError
from headstart.cli import output
from headstart_lab.livestudy import platform, report
from headstart_lab.livestudy.study import Timings, study
from headstart_lab.measured import Page

NAME = "li07-live"


def compute(quick: bool, repeats: int, json: str | None, html: str | None, docs: str | None) -> Timings:
    """Measure and predict; write the tables into the Markdown file `docs`, if given.

    Raises:
        HeadstartError: This machine cannot run it, a file cannot be written, or `docs` has no marks.
    """
    output.check_targets(json, html, docs)
    page = None if docs is None else Page(Path(docs), "live-study")
    reason = platform.why_not()
    if reason is not None:
        raise HeadstartError(f"{NAME}: cannot run here: {reason}; allowed: Linux, as root, with FUSE and loop devices")
    with platform.unwinding_on_signals():
        found = study(quick=quick, repeats=repeats, tell=_say)
    if page is not None:
        page.write(report.markdown(found))
    return found


def _say(text: str, share: float) -> None:
    print(f"{share:4.0%} {text}", file=sys.stderr)
