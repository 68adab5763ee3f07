"""`headstart reproduce li07-live`: the read-ahead depths of li07 on a stock kernel, beside the simulation."""

import re
import sys
from pathlib import Path

from headstart._core import HeadstartError
from headstart.cli import output
from headstart_lab.livestudy import platform, report
from headstart_lab.livestudy.study import Study, study

NAME = "li07-live"
MARKED = re.compile(r"(<!-- live-study: begin -->\n).*(<!-- live-study: end -->)", re.DOTALL)


def compute(quick: bool, repeats: int, json: str | None, html: str | None, docs: str | None) -> Study:
    """Measure and predict; write the tables into the Markdown file `docs`, if given.

    Raises:
        HeadstartError: This machine cannot run it, a file cannot be written, or `docs` has no marks.
    """
    output.check_targets(json, html, docs)
    if docs is not None and not MARKED.search(Path(docs).read_text(encoding="utf-8")):
        raise HeadstartError(f"{docs}: has no marks; allowed: a file with <!-- live-study: begin --> and end")
    reason = platform.why_not()
    if reason is not None:
        raise HeadstartError(f"{NAME}: cannot run here: {reason}; allowed: Linux, as root, with FUSE and loop devices")
    platform.unwind_on_signals()
    found = study(quick=quick, repeats=repeats, tell=_say)
    if docs is not None:
        text = Path(docs).read_text(encoding="utf-8")
        tables = report.markdown(found)
        output.write_text(Path(docs), MARKED.sub(lambda marks: f"{marks[1]}{tables}\n{marks[2]}", text))
    return found


def _say(text: str, share: float) -> None:
    print(f"{share:4.0%} {text}", file=sys.stderr)
