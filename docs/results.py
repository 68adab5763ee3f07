"""The tables of results in the docs, and the files that hold their figures.

    python docs/results.py [STUDY]...

runs the studies (all if none is named) and writes the rows that have a verdict to docs/results/STUDY.json.
`docs/generate.py` then writes every table between two marks anew from these files, and checks them with `--check`:

    <!-- results: li07 -->                  the verdicts of a study
    <!-- results: li07 figure6 figure7 -->  those of some items
    <!-- figures: li07 sensitivity -->      rows without a verdict, of the items that are named
    <!-- results: summary -->               how many rows of each study agree, by basis; those of stand-ins left out
    <!-- results: stand-ins -->             how many findings of each study hold on stand-ins
    <!-- results: predicted -->             how many predicted rows agree, by input, with the papers' titles
    <!-- rows: li07 -->                     all that is known of each row with a verdict, and its notes below
    <!-- end of results -->

A row without a verdict is kept only if a mark names its item.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tables import table

import headstart
from headstart import HeadstartError, _environment
from headstart.cli.output import write_text
from headstart.cli.progress import watched
from headstart.report.text import value_text
from headstart_lab import studies
from headstart_lab.studies._rows import BASES, Row
from headstart_lab.text import Answer, answer, answer_text, answers, difference_text, tolerance_text

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "results"
MARK = re.compile(r"<!-- (results|figures|rows): ([^>\n]*) -->\n(.*?)<!-- end of results -->\n", re.DOTALL)
BEGIN = re.compile(r"<!-- (?:results|figures|rows):")
SUMMARY, STAND_INS, PREDICTED = "summary", "stand-ins", "predicted"
HELD: tuple[Answer, ...] = ("holds", "holds in part", "does not hold")
SKIPPED = "SKIPPED"
"""How the note of a row begins that needs a trace that is absent."""


def pages() -> list[Path]:
    """Return the pages that may hold tables of results."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def rendered(page: Path, text: str) -> str:
    """Return the text of a page with its tables of results as docs/results has them.

    Raises:
        HeadstartError: A mark is wrong, or names what docs/results does not have.
    """
    if len(BEGIN.findall(text)) != len(MARK.findall(text)):
        raise HeadstartError(f"{page.name}: a mark of results has no end; allowed: <!-- end of results --> below it")

    def written(found: re.Match[str]) -> str:
        kind, words, _ = found.groups()
        try:
            whole = {SUMMARY: _summary, STAND_INS: _stand_ins, PREDICTED: _predicted}
            body = whole[words]() if words in whole else _block(kind, *words.split())
        except HeadstartError as error:
            raise HeadstartError(f"{page.name}: {kind}: {error}") from None
        return f"<!-- {kind}: {words} -->\n{body}<!-- end of results -->\n"

    return MARK.sub(written, text)


def load(study: str) -> dict[str, Any]:
    """Return what docs/results holds of a study."""
    path = FOLDER / f"{study}.json"
    if study not in studies.names() or not path.is_file():
        known = ", ".join(name for name in studies.names() if (FOLDER / f"{name}.json").is_file())
        raise HeadstartError(f'no results of "{study}"; allowed: {known or "none yet: run make results"}')
    held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    held["rows"] = [Row(**row) for row in held["rows"]]
    return held


def _block(kind: str, study: str, *items: str) -> str:
    held = load(study)
    for item in items:
        if item not in held["items"]:
            raise HeadstartError(f'{study} has no item "{item}"; allowed: {", ".join(held["items"])}')
    rows = [row for row in held["rows"] if not items or row.item in items]
    judged = [row for row in rows if row.verdict != "not published"]
    if kind == "figures":
        unjudged = [row for row in rows if row.verdict == "not published"]
        if not items or {row.item for row in unjudged} != set(items):
            what = " ".join((study, *items))
            raise HeadstartError(
                f"{what}: no rows; allowed: items that have rows without a verdict, after make results"
            )
        body = table(("quantity", "ours"), ((row.quantity, value_text(row.ours)) for row in unjudged))
    elif kind == "rows":
        body = _whole(judged)
    else:
        header = ("item", "quantity", "published", "ours", "verdict", "basis", "input")
        body = table(header, (_cells(row) for row in judged))
    return f"{body}\nWritten by `make results` with headstart {held['headstart']}; seed {held['seeds']}.\n"


def _whole(rows: list[Row]) -> str:
    """Return the rows, numbered, with every column; the notes are a list below, and equal ones stand once."""
    header = ("", "item", "quantity", "published", "ours", "difference", "tolerance", "verdict", "basis", "input")
    cells, notes = [], dict[str, list[int]]()
    for number, row in enumerate(rows, start=1):
        item, quantity, published, _, *judged = _cells(row)
        ours, difference = value_text(row.ours), difference_text(row)
        cells.append((str(number), item, quantity, published, ours, difference, tolerance_text(row), *judged))
        if row.note:
            notes.setdefault(row.note, []).append(number)
    told = (f"- **{', '.join(map(str, numbers))}**: {_plain(note)}\n" for note, numbers in notes.items())
    return f"{table(header, cells)}\nNotes, by the number of the row:\n\n{''.join(told)}"


def _plain(text: str) -> str:
    """Return words as Markdown in which nothing is markup."""
    return re.sub(r"([*_<\[`])", r"\\\1", text)


def _cells(row: Row) -> tuple[str, ...]:
    ours = value_text(row.ours)
    if row.difference is not None:
        ours = f"{ours} ({difference_text(row)})"
    verdict = f"**{answer_text(row)}**" if answer(row) in ("differs", "does not hold") else answer_text(row)
    return row.item, row.quantity, value_text(row.published), ours, verdict, row.basis, row.input or ""


def _summary() -> str:
    header = ("study", *(f"{basis}: agree, differ" for basis in BASES), "without a published figure")
    return table(header, (_counted(name) for name in studies.names()))


def _predicted() -> str:
    """Return what README.md says of all studies: predicted rows on inputs of the papers, and those of stand-ins."""
    rows, stand_ins = [], list[Row]()
    for name in studies.names():
        held = load(name)
        predicted = [row for row in held["rows"] if row.basis == "predicted"]
        counts = [_agreeing([row for row in predicted if row.input == given]) for given in ("paper", "rebuilt")]
        stand_ins += [row for row in predicted if answer(row) in HELD]
        if set(counts) != {"-"}:
            rows.append((f"[{name}](docs/reproduction.md#{name})", held["title"], *counts))
    header = ("study", "paper", "as the paper gives it: agree, differ", "rebuilt: agree, differ")
    counted = answers(stand_ins)
    holding, in_part, failing = (counted[each] for each in HELD)
    said = (
        f"On other programs than the papers', most of them of today, {holding} of {len(stand_ins)} findings hold, "
        f"{in_part} hold in a part of the cases and {failing} do not: [what that means for the choice of a policy]"
        "(docs/reproduction.md#findings-on-programs-of-today)."
    )
    return f"{table(header, rows)}\n{said}\n"


def _stand_ins() -> str:
    """Return how many findings of each study hold on programs that stand in for the paper's."""
    rows = []
    for name in studies.names():
        counted = answers([row for row in load(name)["rows"] if answer(row) in HELD])
        if counted:
            rows.append((f"[{name}](#{name})", *(str(counted[each]) for each in HELD)))
    return table(("study", *HELD), rows)


def _agreeing(rows: list[Row]) -> str:
    """Return how many of these rows agree and differ; a dash if none has a verdict."""
    counted = answers(rows)
    return f"{counted['agrees']}, {counted['differs']}" if counted["agrees"] or counted["differs"] else "-"


def _counted(study: str) -> tuple[str, ...]:
    held = load(study)
    counts = (_agreeing([row for row in held["rows"] if row.basis == basis]) for basis in BASES)
    return f"[{study}](#{study})", *counts, f"{held['unpublished']:,}"


def named_figures() -> set[tuple[str, str]]:
    """Return study and item of all rows without a verdict that the docs show."""
    return {
        (study, item)
        for page in pages()
        for kind, words, _ in MARK.findall(page.read_text(encoding="utf-8"))
        if kind == "figures"
        for study, *items in [words.split()]
        for item in items
    }


def kept(study: str, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows that docs/results holds."""
    shown = named_figures()
    return (row for row in rows if row.verdict != "not published" or (study, row.item) in shown)


def compute(name: str) -> str:
    """Run a study and return the text of its file.

    Raises:
        HeadstartError: A trace that it needs is absent: its file would lose rows.
    """
    study = studies.load(name)
    folders = _environment.folders()
    rows = watched(
        f"reproducing {name}",
        lambda tell: study.run([], lambda text, share: tell(share, f"{name}: {text}"), folders=folders),
    )
    absent = list(dict.fromkeys(row.quantity for row in rows if row.note.startswith(SKIPPED)))
    if absent:
        few = ", ".join(absent[:5]) + (f" and {len(absent) - 5} others" if len(absent) > 5 else "")
        raise HeadstartError(
            f"{name}: traces are absent for {few}; allowed: all of them in the folder $HEADSTART_TRACES"
        )
    return file_text(name, rows)


def file_text(name: str, rows: list[Row]) -> str:
    """Return the text of a study's file, one row a line."""
    study = studies.load(name)
    head = {
        "study": name,
        "title": study.title,
        "headstart": headstart.__version__,
        "seeds": study.seeds,
        "items": study.items,
        "unpublished": sum(row.verdict == "not published" for row in rows),
    }
    lines = ",\n".join(json.dumps(row.to_dict(), ensure_ascii=False, allow_nan=False) for row in kept(name, rows))
    return f'{json.dumps(head, ensure_ascii=False)[:-1]}, "rows": [\n{lines}\n]}}\n'


def main() -> int:
    """Run the studies named, or all; a study that fails leaves its file alone and the others run."""
    failed = False
    for name in sys.argv[1:] or studies.names():
        try:
            text = compute(name)
        except HeadstartError as error:
            print(f"docs/results/{name}.json is left as it was: {error}", file=sys.stderr)
            failed = True
            continue
        FOLDER.mkdir(exist_ok=True)
        write_text(FOLDER / f"{name}.json", text)
        print(f"wrote docs/results/{name}.json")
    return 2 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
