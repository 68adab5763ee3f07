"""A page in a real headless browser: what it draws, what it reports when probed, and pictures of it.

Chromium is driven by its own command line. The page is in a frame of the given width; a script beside the frame
inspects it and writes its findings into the document, which Chromium prints.
"""

import json
import os
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WIDTHS = (390, 820, 1400)
"""A telephone, a tablet, a desk."""

WATCH = """<script>
window.faults = [];
addEventListener("error", event => faults.push(String(event.message)));
addEventListener("unhandledrejection", event => faults.push(String(event.reason)));
for (const kind of ["error", "warn"]) console[kind] = (...words) => faults.push(kind + ": " + words.join(" "));
</script>"""

PROBE = """
const frame = document.querySelector("iframe"), pause = ms => new Promise(done => setTimeout(done, ms));
async function probe() {
  const page = frame.contentWindow, inside = page.document;
  for (let turn = 0; turn < 100 && inside.documentElement.dataset.drawn !== "yes"; turn++) await pause(50);
  const texts = [...inside.querySelectorAll(".chart svg text")].filter(text => text.textContent);
  const sizes = texts.map(text => parseFloat(page.getComputedStyle(text).fontSize));
  const places = [...inside.querySelectorAll(".chart")];
  const tooltips = [];
  for (const place of places) {
    const kinds = [".mark-rect.role-mark path", ".mark-symbol.role-mark path", ".mark-line.role-mark path"];
    const mark = kinds.map(kind => place.querySelector(kind)).find(found => found);
    const box = mark?.getBoundingClientRect();
    if (!box) { tooltips.push(null); continue; }
    const at = {clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, bubbles: true};
    for (const kind of ["pointerover", "mouseover", "pointermove", "mousemove"]) {
      const Kind = kind.startsWith("pointer") ? page.PointerEvent : page.MouseEvent;
      mark.dispatchEvent(new Kind(kind, at));
    }
    await pause(20);
    const tooltip = inside.querySelector("#vg-tooltip-element");
    tooltips.push(tooltip?.classList.contains("visible") ? tooltip.textContent : null);
  }
  const table = inside.querySelector("table");
  const column = () => [...table.tBodies[0].rows].map(row => row.cells[1].textContent);
  const orders = [column()];
  for (let turn = 0; turn < 2; turn++) {
    table.querySelectorAll("th")[1].querySelector("button").click();
    orders.push(column());
  }
  return {
    faults: page.faults, figures: places.length,
    drawn: places.filter(each => each.querySelector("svg .mark-group")).length,
    overflow: inside.documentElement.scrollWidth - inside.documentElement.clientWidth,
    cut: places.filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.dataset.figure),
    smallest: Math.min(...sizes), tooltips, orders,
    loaded: page.performance.getEntriesByType("resource").map(each => each.name),
    ink: page.getComputedStyle(inside.body).color, label: page.getComputedStyle(texts[0]).fill,
  };
}
addEventListener("load", async () => {
  let found;
  try { found = await probe(); } catch (error) { found = {faults: [String(error)]}; }
  const place = document.createElement("pre");
  place.id = "found";
  place.textContent = JSON.stringify(found);
  document.body.append(place);
});
"""


def browser() -> str:
    """The browser's command; without one the test is skipped."""
    named = os.environ.get("HEADSTART_BROWSER")
    found = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium here: install one, or name it in HEADSTART_BROWSER, to test pages in a browser")
    return found


def look(page: Path, width: int, *, dark: bool = False, picture: Path | None = None, height: int = 1600) -> Any:
    """Open `page` at `width`; return what the probe found. `picture` is where a screenshot goes."""
    text = page.read_text(encoding="utf-8").replace("<head>", f"<head>{WATCH}", 1)
    frame = f'<iframe style="border:0;width:{width}px;height:{height}px" srcdoc="{escape(text)}"></iframe>'
    outer = page.with_name(f"{page.stem}-{width}.html")
    outer.write_text(f'<body style="margin:0">{frame}<script>{PROBE}</script>', encoding="utf-8")
    # A separate profile folder: otherwise a running browser would take over the page.
    words = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    words += [
        f"--user-data-dir={page.parent / 'browser'}",
        "--virtual-time-budget=20000",
        f"--window-size={width},{height}",
    ]
    words += ["--blink-settings=preferredColorScheme=0"] if dark else []
    shown = subprocess.run(
        [*words, "--dump-dom", outer.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    if picture is not None:
        subprocess.run(
            [*words, f"--screenshot={picture}", outer.as_uri()], capture_output=True, timeout=120, check=True
        )
    found = re.search(r'<pre id="found">(.*?)</pre>', shown.stdout, flags=re.DOTALL)
    assert found is not None, shown.stderr[-2000:]
    return json.loads(unescape(found[1]))
