"""The documentation builds as a site: strictly, without the network, with each page in the navigation."""

from pathlib import Path
from types import ModuleType

import pytest

from headstart import HeadstartError
from tests.conftest import ROOT

pytest.importorskip("zensical", reason="the site is not built: pip install '.[docs]'")
pytest.importorskip("vl_convert", reason="the site is not built: pip install '.[docs]'")


@pytest.fixture
def website(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The module that builds the site, into a folder of the test's."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    import website

    for name, path in {"SITE": tmp_path, "PAGES": tmp_path / "pages", "HTML": tmp_path / "html"}.items():
        monkeypatch.setattr(website, name, path)
    return website


def test_the_site_builds_and_faults_are_found(website: ModuleType, tmp_path: Path) -> None:
    website.collect()
    website.build()
    assert set(website.faults()) == set()
    pages = {path.name for path in website.HTML.glob("*.html")}
    assert pages >= {"index.html", "commands.html", "python-reference.html", "scenario.html", "contributing.html"}
    commands = (website.PAGES / "commands.md").read_text(encoding="utf-8")
    assert "\n## device replay\n" in commands and "--policies" in commands
    python = (website.PAGES / "python-reference.md").read_text(encoding="utf-8")
    assert (
        "### headstart.compare\n" in python
        and "- `policies`: Names of `headstart list policies`, or one name" in python
    )

    index = website.HTML / "index.html"
    whole = index.read_text(encoding="utf-8")
    wrong = '<img src="gone.png"><script src="https://example.org/x.js"></script><a href="concepts.html#gone">x</a>'
    index.write_text(whole + wrong, encoding="utf-8")
    assert set(website.faults()) == {
        "index.html shows gone.png, which does not exist",
        "index.html loads https://example.org/x.js: a page needs no network",
        "index.html links to concepts.html#gone, which has no such heading",
    }
    (website.PAGES / "index.md").write_text("[gone](gone.md) [gone](concepts.md#gone)\n", encoding="utf-8")
    with pytest.raises(HeadstartError, match=r"page does not exist(.|\n)*anchor does not exist"):
        website.build()
    (website.PAGES / "extra.md").write_text("# Extra\n", encoding="utf-8")
    assert "mkdocs.yml: extra.md is not in nav" in set(website.faults())
