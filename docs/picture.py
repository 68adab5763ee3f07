"""The picture of README.md: its example as bars. Plain SVG with whole numbers, the same on every machine."""

from html import escape

import headstart

TRACE = "examples/traces/cscope2.csv.xz"
DEVICE, CACHE = "seagate-exos-x20", "10MiB"
POLICIES = ("demand", "linux", "competitive", "demand:min", "forestall")
"""As in the example of README.md."""
WORDS = {
    "demand": "no prefetching, LRU",
    "linux": "Linux's read-ahead",
    "competitive": "competitive depth",
    "demand:min": "no prefetching, Belady's MIN",
    "forestall": "hints disclosed: forestall",
}
PARTS = {"compute": "#0072B2", "driver": "#E69F00", "stall": "#c9ccd1"}
LEFT, WIDTH, ROW, BAR, TOP = 220, 460, 34, 22, 64
FONT = 'font-family="Helvetica, Arial, sans-serif"'


def drawn(root: str) -> str:
    """Return the picture; the trace lies below the folder `root`."""
    frame = headstart.compare(f"{root}/{TRACE}", policies=list(POLICIES), disks=[1], device=DEVICE, cache=CACHE)
    rows = {row["policy"]: row for row in frame.to_dict("records")}
    longest = max(row["elapsed_ns"] for row in rows.values())
    height = TOP + ROW * len(rows) + 14
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" width="760" height="{height}" {FONT}>',
        f'<rect width="760" height="{height}" fill="#ffffff"/>',
        text(
            16, 24, f"Elapsed time of a code search on one {DEVICE}, by policy (s)", 'font-size="15" font-weight="bold"'
        ),
    ]
    for index, (part, colour) in enumerate(PARTS.items()):
        at = LEFT + 90 * index
        lines += [f'<rect x="{at}" y="38" width="12" height="12" fill="{colour}"/>', text(at + 18, 49, part)]
    for index, policy in enumerate(POLICIES):
        row, y, x = rows[policy], TOP + ROW * index, LEFT
        lines.append(text(LEFT - 10, y + 16, WORDS[policy], 'text-anchor="end"'))
        end = 0
        for part, colour in PARTS.items():
            end += row[f"{part}_ns"]
            to = LEFT + WIDTH * end // longest
            lines.append(f'<rect x="{x}" y="{y}" width="{to - x}" height="{BAR}" fill="{colour}"/>')
            x = to
        lines.append(text(x + 8, y + 16, f"{row['elapsed_ns'] / 1e9:.2f}"))
    return "\n".join([*lines, "</svg>"]) + "\n"


def text(x: int, y: int, words: str, more: str = "") -> str:
    """Return a line of text; 13 points where `more` does not say otherwise."""
    size = "" if "font-size" in more else 'font-size="13" '
    return f'<text x="{x}" y="{y}" fill="#1c2024" {size}{more}>{escape(words)}</text>'
