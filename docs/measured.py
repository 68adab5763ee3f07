"""Published measurements beside the model: the table in docs/devices.md, from docs/measured.toml."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headstart import devices

FILE: Final = Path(__file__).with_name("measured.toml")
OFF: Final = 0.25
"""A difference beyond this needs a reason."""
UNITS: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
WARM_UP_BYTES: Final = 256 << 20
"""Written before writes count, so that buffers are full."""
ADMITTED: Final = 12_000
"""Requests before those that count where the rate of requests is the question: beyond the burst that a store admits."""
REQUESTS: Final = 20_000
REQUESTS_LARGE: Final = 200
"""Of more than a MiB each."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One published figure and the model's."""

    device: str
    load: str
    quantity: str
    published: tuple[float, float]
    """Least and most; the same where one figure is printed."""
    ours: float
    source: str
    why: str

    @property
    def error(self) -> float:
        """The model's distance from the published figure, as a share of it; 0 within a range."""
        least, most = self.published
        nearest = min(max(self.ours, least), most)
        return self.ours / nearest - 1


def read() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the sources and the points of docs/measured.toml."""
    found = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return found["source"], found["point"]


def rows() -> list[Row]:
    """Return all points beside the model, the worst first."""
    sources, points = read()
    found = [_row(point, sources[point["source"]]) for point in points]
    return sorted(found, key=lambda row: -abs(row.error))


def _row(point: dict[str, Any], source: dict[str, Any]) -> Row:
    published = tuple(point["range"]) if "range" in point else (point["value"], point["value"])
    load = f"{point['order']} {point['operation']}s of {point['size']}, {point['depth']} at a time"
    return Row(
        device=point["device"],
        load=load,
        quantity=point["quantity"],
        published=published,
        ours=_ours(point),
        source=f"{source['publisher']}, {source['title']}, {source['year']}: {point['where']}",
        why=point.get("why", ""),
    )


def _ours(point: dict[str, Any]) -> float:
    size = _bytes(point["size"])
    write, depth, quantity = point["operation"] == "write", point["depth"], point["quantity"]
    warm_up = WARM_UP_BYTES // size if write else 0
    requests = REQUESTS if size <= 1 << 20 else REQUESTS_LARGE
    if quantity == "requests/s":
        warm_up, requests = max(warm_up, ADMITTED), max(requests, 8 * depth)
    found = devices.probe(
        point["device"],
        keys=point.get("keys"),
        requests=requests,
        warm_up=warm_up,
        request_bytes=size,
        depth=depth,
        write=write,
        sequential=point["order"] == "sequential",
    )
    return {
        "requests/s": found.requests_per_s,
        "MB/s": found.bytes_per_s / 1e6,
        "mean us": found.response_ns_mean / 1e3,
        "p50 ms": found.response_ns_p50 / 1e6,
        "p90 ms": found.response_ns_p90 / 1e6,
        "p99 ms": found.response_ns_p99 / 1e6,
    }[quantity]


def _bytes(text: str) -> int:
    unit = text.lstrip("0123456789")
    return int(text.removesuffix(unit)) * UNITS[unit]


def cells(row: Row) -> tuple[str, ...]:
    """Return the row as the docs show it."""
    least, most = row.published
    published = _number(least) if least == most else f"{_number(least)} to {_number(most)}"
    error = f"{100 * row.error:+.0f} %" if abs(row.error) >= 0.005 else "0 %"
    return (f"`{row.device}`", row.load, row.quantity, published, _number(row.ours), error, row.source, row.why)


def _number(value: float) -> str:
    return f"{value:,.3g}" if value < 1_000 else f"{value:,.0f}"


HEADER = ("device", "load", "quantity", "published", "model", "error", "source", "reason")
