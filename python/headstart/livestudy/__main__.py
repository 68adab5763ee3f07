"""`python -m headstart.livestudy`: the study as a command. Exit status 0, also where it cannot be done and says so."""

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from headstart._core import HeadstartError
from headstart.cli import app as command
from headstart.cli import options, output
from headstart.livestudy import platform, report
from headstart.livestudy.study import study

MARKED = re.compile(r"(<!-- live-study: begin -->\n).*(<!-- live-study: end -->)", re.DOTALL)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    quick: Annotated[bool, typer.Option("--quick", help="Shorter files, fewer reads, each run once.")] = False,
    repeats: Annotated[int, typer.Option(min=1, max=100, help="Runs of each row.")] = 3,
    json: options.Json = None,
    html: options.Html = None,
    page: Annotated[
        str | None, typer.Option("--docs", metavar="FILE", help="Put the tables between the marks of a Markdown file.")
    ] = None,
) -> None:
    """Measure a stock kernel on an emulated disk beside the simulator's prediction of the same reads.

    Example: python -m headstart.livestudy --html study.html
    """
    output.check_targets(json, html, page)
    if page is not None and not MARKED.search(Path(page).read_text(encoding="utf-8")):
        raise HeadstartError(f"{page}: has no marks; allowed: a file with <!-- live-study: begin --> and end")
    reason = platform.why_not()
    if reason is not None:
        print(f"live-study: skipped: {reason}", file=sys.stderr)
        return
    platform.unwind_on_signals()
    found = study(quick=quick, repeats=repeats, tell=say)
    if json is not None:
        output.write_json(json, output.as_json(found.to_dict()))
    if html is not None:
        output.write_text(Path(html), report.html(found))
    if page is not None:
        text = Path(page).read_text(encoding="utf-8")
        tables = report.markdown(found)
        output.write_text(Path(page), MARKED.sub(lambda marks: f"{marks[1]}{tables}\n{marks[2]}", text))
    if json != "-":
        report.print_study(output.console(), found)


def say(text: str, share: float) -> None:
    """Say how far it has come, where it is in nobody's way."""
    print(f"{share:4.0%} {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(command.run(sys.argv[1:], app, "python -m headstart.livestudy"))
