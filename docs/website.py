"""The documentation as a site, in target/site/html: `make site`. It needs the extra `docs` and no network.

The pages of docs/ and the notices of the root are copied, the reference of the command and of the Python package is
written from the code, the figure of the start page is drawn from a run, and Zensical (which reads mkdocs.yml) builds
the site strictly: a link to a page or a heading that does not exist is an error. What it does not check is checked
here: each page is in the navigation, each picture exists, and no page loads anything from another machine.
"""

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import commands
import python_reference

from headstart import HeadstartError

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SITE = ROOT / "target" / "site"
PAGES, HTML = SITE / "pages", SITE / "html"
NOTICES = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the root, and their names on the site."""
APART = {"package.md", "README.md"}
"""The page of the package index, and the one of this folder: they are not of the site."""
FIGURE = "headstart advise examples/traces/multi6.csv.xz --limit 4000 --device hdd,nvme --cache 8MiB"
"""The command of the start page, whose figure `devices.png` is."""
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")


def collect() -> None:
    """Write the pages that the site is built from."""
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    for page in sorted(DOCS.glob("*.md")):
        if page.name not in APART:
            _copy(page, page.name)
    for name, to in NOTICES.items():
        _copy(ROOT / name, to)
    for picture in [*DOCS.glob("*.svg"), *DOCS.glob("drawings/*.svg")]:
        to_picture = PAGES / picture.relative_to(DOCS)
        to_picture.parent.mkdir(exist_ok=True)
        shutil.copy(picture, to_picture)
    (PAGES / "commands.md").write_text(commands.page(), encoding="utf-8")
    (PAGES / "python-reference.md").write_text(python_reference.page(), encoding="utf-8")
    figure()


def _copy(page: Path, name: str) -> None:
    """Copy a page; its links out of docs/ lead to the notices, or to a copy of the file."""

    def turned(found: re.Match[str]) -> str:
        target = (page.parent / found[1]).resolve()
        if target.parent == ROOT and target.name in NOTICES:
            return NOTICES[target.name]
        if target.is_relative_to(DOCS) or not target.is_file():
            return str(target.relative_to(DOCS)) if target.is_relative_to(DOCS) else found[1]
        (PAGES / "files").mkdir(exist_ok=True)
        shutil.copy(target, PAGES / "files" / target.name)
        return f"files/{target.name}"

    (PAGES / name).write_text(LINK.sub(turned, page.read_text(encoding="utf-8")), encoding="utf-8")


def figure() -> None:
    """Draw the figure of the start page."""
    folder = SITE / "figures"
    command = [str(Path(sys.executable).with_name("headstart")), *FIGURE.split()[1:], "--figures", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    shutil.copy(folder / "devices.png", PAGES / "advise-devices.png")


def build() -> None:
    """Build the site of the pages, strictly.

    Raises:
        HeadstartError: A link leads nowhere.
    """
    shutil.copy(ROOT / "mkdocs.yml", SITE / "mkdocs.yml")
    shutil.rmtree(HTML, ignore_errors=True)
    words = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(words, cwd=SITE, capture_output=True, text=True, check=False)
    if done.returncode:
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
        raise HeadstartError(f"the site does not build:\n{said.partition('Traceback')[0]}")


class _Page(HTMLParser):
    """What a page loads, where it links to, and what can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses of a tag."""
        given = {key: value for key, value in attrs if value}
        self.ids |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in {"canonical", "next", "prev"}:
            self.loads += [given["href"]] if "href" in given else []
        elif "src" in given:
            self.loads.append(given["src"])


def faults() -> Iterator[str]:
    """Yield what is wrong with the built site, one sentence each."""
    named = set(re.findall(r"([\w./-]+\.md)\b", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    yield from (f"mkdocs.yml: {each.name} is not in nav" for each in PAGES.glob("*.md") if each.name not in named)
    yield from (f"mkdocs.yml: nav names {name}, which is no page" for name in named if not (PAGES / name).is_file())
    pages = {}
    for path in HTML.rglob("*.html"):
        pages[path] = _Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for address in page.loads:
            if re.match(r"(https?:)?//", address):
                yield f"{path.name} loads {address}: a page needs no network"
            elif not address.startswith("data:") and not (path.parent / address.partition("?")[0]).is_file():
                yield f"{path.name} shows {address}, which does not exist"
        for address in page.links:
            file, _, anchor = address.partition("#")
            target = (path.parent / file).resolve() if file else path
            if re.match(r"[a-z]+:", address) or target.is_dir():
                continue
            if not target.is_file():
                yield f"{path.name} links to {address}, which does not exist"
            elif anchor and target in pages and anchor not in pages[target].ids:
                yield f"{path.name} links to {address}, which has no such heading"


def main() -> int:
    """Build the site and check it; return the exit status."""
    if importlib.util.find_spec("zensical") is None or importlib.util.find_spec("vl_convert") is None:
        print("website: Zensical or vl-convert is not installed; allowed: pip install '.[docs]'", file=sys.stderr)
        return 2
    collect()
    try:
        build()
    except HeadstartError as error:
        print(error, file=sys.stderr)
        return 1
    found = sorted(set(faults()))
    for fault in found:
        print(fault, file=sys.stderr)
    if not found:
        print(f"wrote {(HTML / 'index.html').relative_to(ROOT)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
