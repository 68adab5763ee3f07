"""Writes what docs and package repeat: registries, keys, counts, results, what devices give, pictures, the man page.

`python docs/generate.py` writes them anew, `--check` only says whether they are up to date (exit status 1 if not).
"""

import sys
from pathlib import Path
from typing import Any

import answers
import drawings
import keys
import man
import measured
import metrics
import options
import picture
import plausibility
import results
from tables import table

import headstart
from headstart.cli.listing import keys_text

ROOT = Path(__file__).resolve().parent.parent
BEGIN_READS, END_READS = "<!-- reads: written by make docs -->\n", "<!-- end of reads -->\n"
BEGIN_MEASURED, END_MEASURED = "<!-- measured: written by make docs -->\n", "<!-- end of measured -->\n"
BEGIN_ANSWERS, END_ANSWERS = "<!-- answers: written by make docs -->\n", "<!-- end of answers -->\n"
TITLES = {
    "policies": "Policies",
    "replacements": "Replacement, where a policy leaves it open",
    "coordinators": "Coordinators between levels",
    "devices": "Devices",
    "arrays": "Arrays of devices",
    "schedulers": "Schedulers",
    "formats": "Trace formats",
    "workloads": "Workload generators",
    "backings": "Backings of `headstart serve`",
}


def section(name: str, entries: list[dict[str, Any]]) -> str:
    """Return the section of one registry."""
    if not entries:
        return f"## {TITLES[name]}\n\nNone in this version.\n"
    last = "carries" if "carries" in entries[0] else "keys and defaults"
    rows = []
    for entry in entries:
        carried = ", ".join(key for key, value in entry.get("carries", {}).items() if value)
        family = [entry["family"]] if "family" in entry else []
        cells = (entry["summary"], entry["source"], carried or keys_text(entry["keys"]))
        rows.append((f"`{entry['name']}`", *family, *cells))
    family = ["family"] if "family" in entries[0] else []
    return f"## {TITLES[name]}\n\n{table(('name', *family, 'what it does', 'source', last), rows)}"


def registry(catalog: dict[str, list[dict[str, Any]]]) -> str:
    """Return docs/registry.md."""
    head = "# Policies, devices, formats and other choices\n\nWritten by `make docs` from the registries; do not edit. "
    head += "`headstart list` prints the same.\n"
    return "\n".join([head, *(section(name, catalog[name]) for name in TITLES)])


def devices(text: str) -> str:
    """Return docs/devices.md with its tables of plain reads and of published measurements."""
    rows = (plausibility.cells(row) for row in plausibility.measured())
    text = _between(text, BEGIN_READS, table(plausibility.HEADER, rows), END_READS)
    found = (measured.cells(row) for row in measured.rows())
    return _between(text, BEGIN_MEASURED, table(measured.HEADER, found), END_MEASURED)


def own_trace(text: str) -> str:
    """Return docs/your-own-trace.md with its table of answers."""
    rows = (answers.cells(answer) for answer in answers.measured(str(ROOT)))
    return _between(text, BEGIN_ANSWERS, table(answers.HEADER, rows), END_ANSWERS)


def _between(text: str, begin: str, what: str, end: str) -> str:
    before, rest = text.split(begin)
    return f"{before}{begin}{what}{end}{rest.split(end)[1]}"


def main() -> int:
    """Write or check the files; return the exit status."""
    catalog = headstart.catalog()
    reads, own = ROOT / "docs" / "devices.md", ROOT / "docs" / "your-own-trace.md"
    scenario, levels = ROOT / "docs" / "scenario.md", ROOT / "docs" / "levels.md"
    shapes, result = (ROOT / "python" / "headstart" / name for name in ("results.py", "simulation.py"))
    try:
        wanted = {page: results.rendered(page, page.read_text(encoding="utf-8")) for page in results.pages()}
    except headstart.HeadstartError as error:
        print(error, file=sys.stderr)
        return 2
    wanted |= {
        ROOT / "docs" / "registry.md": registry(catalog),
        scenario: metrics.page(keys.rendered(wanted.get(scenario, scenario.read_text(encoding="utf-8")))),
        **{path: metrics.module(path.read_text(encoding="utf-8")) for path in (shapes, result)},
        levels: keys.rendered(wanted.get(levels, levels.read_text(encoding="utf-8"))),
        reads: devices(wanted[reads]),
        own: own_trace(wanted.get(own, own.read_text(encoding="utf-8"))),
        ROOT / "docs" / "compare.svg": picture.drawn(str(ROOT)),
        **{ROOT / "docs" / "drawings" / f"{name}.svg": text for name, text in drawings.drawings().items()},
        ROOT / "packaging" / "data" / "share" / "man" / "man1" / "headstart.1": man.page(),
    }
    for page in (ROOT / "docs").glob("*.md"):
        wanted[page] = options.rendered(wanted.get(page, page.read_text(encoding="utf-8")))
    wanted[ROOT / "python" / "headstart" / "live" / "options.py"] = options.module()
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: run make docs", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
