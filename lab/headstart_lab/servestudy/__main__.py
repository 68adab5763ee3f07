"""`python -m headstart_lab.servestudy`, which `make serve-study` runs."""

import dataclasses
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart._core import HeadstartError
from headstart._environment import folders
from headstart.cli import exits, output
from headstart_lab import measured
from headstart_lab.livestudy import platform
from headstart_lab.measured import FOUND
from headstart_lab.servestudy.cases import DISKS
from headstart_lab.servestudy.study import SUMMARY, Outcome, cells, columns, findings, study, summary
from headstart_lab.servestudy.workloads import REQUESTS

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def serve_study(
    disk: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(DISKS)}; repeatable. All if none.")] = None,
    workload: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(REQUESTS)}; repeatable. All if none.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Two algorithms, H, L2 as large as L1, none and PFC.")] = False,
    lanes: Annotated[int, typer.Option(min=1, max=8, help="Cases at a time.")] = 1,
    twice: Annotated[
        int, typer.Option(min=0, help="Run each case of every N-th group a second time; 0: none.", metavar="N")
    ] = 0,
    rows: Annotated[
        Path, typer.Option(metavar="FILE", help="Rows as lines of JSON; those that it has are not run again.")
    ] = Path("target/serve-study.jsonl"),
    json: Annotated[str | None, typer.Option(metavar="FILE|-", help="Write rows and findings as JSON.")] = None,
    docs: Annotated[Path | None, typer.Option(metavar="FILE", help="Put the tables between a file's marks.")] = None,
) -> None:
    """Run zhang-pfc's two levels as two servers in a chain before an emulated disk, beside the simulator.

    Linux. A case takes ten to thirty seconds; the matrix has 216 for each disk. As root the servers get real-time
    priority.

    Example: python -m headstart_lab.servestudy --quick --disk seagate-cheetah-9lp
    """
    output.check_targets(json)
    for option, given, known in (("--disk", disk, DISKS), ("--workload", workload, REQUESTS)):
        for each in given or ():
            if each not in known:
                raise HeadstartError(f'{option}: "{each}"; allowed: {", ".join(known)}')
    page = None if docs is None else measured.Page(docs, "serve-study")
    with platform.unwinding_on_signals():
        found = study(
            rows,
            disks=disk or list(DISKS),
            names=workload or list(REQUESTS),
            quick=quick,
            lanes=lanes,
            twice=twice,
            traces=folders().traces,
            tell=lambda text: print(text, file=sys.stderr),
        )
    show(output.console(), found)
    if json is not None:
        judged = [row.to_dict() for row in findings(found)]
        output.write_json(
            json, output.as_json({"rows": [dataclasses.asdict(row) for row in found], "findings": judged})
        )
    if page is not None:
        page.write(markdown(found))


def tables(found: list[Outcome]) -> measured.Tables:
    """Return all tables: title, header, lines."""
    disks = dict.fromkeys(row.case.disk for row in found)
    of = [(disk, columns(), [cells(row) for row in found if row.case.disk == disk]) for disk in disks]
    return [("Findings", FOUND, measured.judged(findings(found))), *of]


def show(console: Console, found: list[Outcome]) -> None:
    """Print the results."""
    measured.show(console, tables(found), columns()[:5])
    console.print(platform.machine(), markup=False)


def markdown(found: list[Outcome]) -> str:
    """Return the findings and a line for each workload and algorithm as Markdown; `--json` has each case."""
    judged = measured.judged(findings(found))
    return measured.markdown(
        f"{platform.machine()}.", [("Findings", FOUND, judged), ("Cases", SUMMARY, summary(found))]
    )


if __name__ == "__main__":
    exits.run_and_exit(app)
