"""`--html` and `--figures`: the page of a result, and its figures as files."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from headstart._core import HeadstartError
from headstart.cli import output
from headstart.cli.shown import plain
from headstart.report.charts import altair
from headstart.report.figures import Figure


def check(command: str, html: str | None, figures: str | None) -> None:
    """Refuse pages and figures that cannot be drawn or written, before the work starts.

    Raises:
        HeadstartError: `headstart[report]` is not installed; a file or a folder cannot be written.
    """
    if html is not None:
        altair(f"{command} --html")
        output.check_targets(html)
    if figures is not None:
        altair(f"{command} --figures")
        folder = Path(figures)
        exists = folder.is_dir()
        if not os.access(folder if exists else folder.parent, os.W_OK) or (folder.exists() and not exists):
            problem = f"--figures: {plain(figures)}: no folder that can be written"
            raise HeadstartError(f"{problem}; allowed: a folder, which is made if there is none")


def write(
    html: str | None, figures: str | None, page: Callable[[], str], drawn: Callable[[], Sequence[Figure]]
) -> None:
    """Write the page, and each figure as PNG and SVG."""
    if html is not None:
        output.write_text(Path(html), page())
    if figures is not None:
        folder = Path(figures)
        folder.mkdir(exist_ok=True)
        for figure in drawn():
            for name, content in figure.files().items():
                output.write_bytes(folder / name, content)
