"""The drawings of docs/concepts.md: boxes and arrows in plain SVG with whole numbers, the same on every machine."""

from collections.abc import Iterator
from html import escape

INK, PAPER, FAINT = "#1c2024", "#ffffff", "#6b7280"
FILLS = {"host": "#dbeafe", "policy": "#dcfce7", "device": "#fef3c7", "plain": "#f3f4f6", "loss": "#fee2e2"}
FONT = 'font-family="Helvetica, Arial, sans-serif" font-size="14"'
ROW = 18

Box = tuple[int, int, int, int, str, str]
"""Left, top, width, height, kind, words; "|" begins a new line."""
Arrow = tuple[int, int, int, int, str]
"""From, to, words beside its middle."""


def drawings() -> dict[str, str]:
    """Return the text of each drawing by its name."""
    return {name: _drawn(*each) for name, each in DRAWINGS.items()} | {"due": _due()}


def _drawn(width: int, height: int, boxes: list[Box], arrows: list[Arrow], texts: list[tuple[int, int, str]]) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {FONT}>',
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L10 5L0 10z" fill="{INK}"/></marker></defs>',
        f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>',
    ]
    for box in boxes:
        lines += _box(*box)
    for from_x, from_y, to_x, to_y, words in arrows:
        ends = f'x1="{from_x}" y1="{from_y}" x2="{to_x}" y2="{to_y}"'
        lines.append(f'<line {ends} stroke="{INK}" stroke-width="1.5" marker-end="url(#head)"/>')
        if words and from_y == to_y:
            lines.append(_text((from_x + to_x) // 2, from_y - 7, words, "middle"))
        elif words:
            lines.append(_text((from_x + to_x) // 2 + 8, (from_y + to_y) // 2 + 5, words, "start"))
    lines += [_text(x, y, words, "start", FAINT) for x, y, words in texts]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _due() -> str:
    """Return the drawing of docs/hints.md: missing blocks in order of use, and the line below which they are due."""
    needed = [10, 20, 26, 44, 62, 66, 96, 104, 112, 150, 165, 190]
    """By missing block: when it is needed, in tenths of a response."""
    left, bottom, step, tenth = 90, 260, 48, 1
    limits = [2 * (10 + 4 * (index + 1)) for index in range(len(needed))]
    last = max(index for index, (time, limit) in enumerate(zip(needed, limits, strict=True)) if time <= limit)
    chunk = last + 3
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 310" width="720" height="310" {FONT}>',
        f'<rect width="720" height="310" rx="8" fill="{PAPER}"/>',
        f'<rect x="{left}" y="40" width="{step * (last + 1)}" height="{bottom - 40}" fill="{FILLS["policy"]}"/>',
        f'<rect x="{left + step * (last + 1)}" y="40" width="{step * 3}" height="{bottom - 40}"'
        f' fill="{FILLS["device"]}"/>',
        f'<line x1="{left}" y1="{bottom}" x2="690" y2="{bottom}" stroke="{INK}"/>',
        f'<line x1="{left}" y1="{bottom}" x2="{left}" y2="30" stroke="{INK}"/>',
        f'<line x1="{left}" y1="{bottom - 24 * tenth}" x2="{left + step * len(needed)}"'
        f' y2="{bottom - (24 + 8 * len(needed)) * tenth}" stroke="{INK}" stroke-dasharray="6 4"/>',
    ]
    for index, time in enumerate(needed):
        fill = INK if time <= limits[index] else "none"
        x, y = left + step * index + step // 2, bottom - time * tenth
        lines.append(f'<circle cx="{x}" cy="{y}" r="6" fill="{fill}" stroke="{INK}" stroke-width="1.5"/>')
    lines += [
        _text(left, 20, "needed in", "middle", FAINT),
        _text(690, bottom + 22, "missing blocks of a disk, in order of use", "end", FAINT),
        _text(left + 8, 58, "fetched: up to the last one due", "start"),
        _text(left + step * (last + 1) + 8, 58, "and a chunk", "start"),
        _text(left + step * chunk + 60, bottom - 60, "2 (response + i * pace)", "start"),
        _text(left, bottom + 42, "filled: due, needed before the dashed line", "start", FAINT),
    ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _box(x: int, y: int, width: int, height: int, kind: str, words: str) -> Iterator[str]:
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{FILLS[kind]}" stroke="{FAINT}"/>'
    rows = words.split("|")
    first = y + (height - ROW * (len(rows) - 1)) // 2 + 5
    for index, row in enumerate(rows):
        yield _text(x + width // 2, first + ROW * index, row, "middle", INK, bold=index == 0 and len(rows) > 1)


def _text(x: int, y: int, words: str, anchor: str, colour: str = INK, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}"{weight}>{escape(words)}</text>'


DRAWINGS: dict[str, tuple[int, int, list[Box], list[Arrow], list[tuple[int, int, str]]]] = {
    "policy": (
        720,
        250,
        [
            (20, 20, 300, 66, "host", "simulator|a calendar, device models"),
            (20, 160, 300, 66, "host", "live hosts|a real clock, threads, real reads"),
            (500, 75, 200, 96, "policy", "policy|a state machine:|no clock, no I/O"),
        ],
        [(320, 40, 498, 95, ""), (498, 125, 320, 70, ""), (320, 185, 498, 145, ""), (498, 165, 320, 212, "")],
        [(345, 22, "event, view of the cache"), (335, 128, "fetch, evict"), (345, 236, "the same code in both")],
    ),
    "level": (
        720,
        300,
        [
            (200, 55, 320, 180, "plain", ""),
            (225, 95, 125, 56, "policy", "read-ahead|what to fetch"),
            (370, 95, 125, 56, "policy", "replacement|what to evict"),
            (225, 170, 270, 50, "host", "residency, fetches under way, counts"),
        ],
        [
            (260, 12, 260, 53, "request"),
            (440, 53, 440, 12, "reply"),
            (260, 237, 260, 288, "fetch"),
            (440, 288, 440, 237, "completion"),
        ],
        [(300, 80, "a level"), (20, 145, "or one hinted policy"), (20, 163, "in place of both")],
    ),
    "instant": (
        720,
        150,
        [
            (20, 45, 200, 66, "device", "1 completions|and messages upward"),
            (260, 45, 200, 66, "policy", "2 decisions|level by level"),
            (500, 45, 200, 66, "host", "3 arrivals|and references"),
        ],
        [(220, 78, 258, 78, ""), (460, 78, 498, 78, "")],
        [(20, 30, "at one instant, always in this order"), (20, 135, "then time moves on to the next event")],
    ),
    "hints": (
        720,
        170,
        [
            *((20 + 40 * index, 60, 36, 36, "plain", name) for index, name in enumerate("abcd")),
            *((180 + 40 * index, 60, 36, 36, "policy", name) for index, name in enumerate("efghij")),
            *((420 + 40 * index, 60, 36, 36, "loss", "?") for index in range(7)),
        ],
        [(178, 20, 178, 56, "cursor: the next reference")],
        [
            (20, 120, "referenced"),
            (180, 120, "disclosed: a window of 6"),
            (420, 120, "not yet disclosed"),
            (180, 150, "a hinted policy fetches these in time, and evicts what is needed last"),
        ],
    ),
    "levels": (
        720,
        330,
        [
            (40, 15, 230, 50, "host", "application"),
            (40, 95, 230, 56, "plain", "level L1: the client|cache, read-ahead"),
            (40, 195, 230, 56, "plain", "level L2: the server|cache, read-ahead"),
            (40, 285, 230, 36, "device", "devices"),
            (420, 145, 270, 56, "policy", "coordinator|changes what L2 sees of a request"),
        ],
        [
            (110, 65, 110, 93, ""),
            (200, 93, 200, 65, ""),
            (110, 151, 110, 193, ""),
            (200, 193, 200, 151, ""),
            (110, 251, 110, 283, ""),
            (200, 283, 200, 251, ""),
            (418, 173, 215, 173, ""),
        ],
        [(290, 130, "a link: alpha + beta a page")],
    ),
    "device": (
        720,
        190,
        [
            (20, 60, 130, 56, "policy", "scheduler|orders the queue"),
            (190, 60, 110, 56, "host", "overhead"),
            (310, 60, 110, 56, "device", "seek"),
            (430, 60, 110, 56, "device", "rotation"),
            (550, 60, 110, 56, "device", "transfer"),
        ],
        [(85, 15, 85, 58, "request"), (150, 88, 188, 88, ""), (660, 88, 712, 88, "")],
        [
            (190, 45, "service time of a drive with an arm"),
            (190, 140, "a read that the drive's buffer holds: overhead and transfer alone"),
            (190, 165, "solid state: a channel and the link; object store: first byte and rate"),
        ],
    ),
    "counts": (
        720,
        300,
        [
            (20, 20, 130, 44, "host", "references"),
            (220, 20, 145, 44, "policy", "hits_ready"),
            (375, 20, 145, 44, "device", "hits_unready"),
            (530, 20, 170, 44, "loss", "misses"),
            (20, 125, 130, 44, "host", "fetches"),
            (220, 125, 300, 44, "policy", "prefetches"),
            (530, 125, 170, 44, "loss", "demand_fetches"),
            (220, 220, 190, 44, "policy", "prefetches_used"),
            (420, 220, 100, 44, "loss", "wasted"),
        ],
        [(150, 42, 218, 42, ""), (150, 147, 218, 147, ""), (315, 169, 315, 218, ""), (470, 169, 470, 218, "")],
        [
            (220, 88, "the block was there, or on its way, or neither"),
            (220, 287, "late: used, but still on its way when referenced"),
        ],
    ),
}
