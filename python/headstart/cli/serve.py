"""`headstart serve`: a block server with the simulator's caches and read-aheads."""

import signal
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headstart._core import HeadstartError
from headstart.cli import options, output, store
from headstart.cli.following import ENDING, Following
from headstart.cli.shown import plain, safe
from headstart.live import serve as serving
from headstart.live.core import Record
from headstart.sizes import bytes_text

UNSTABLE = 1
"""The exit status if acknowledged writes may be lost."""


def beginning(now: Record) -> list[str]:
    """Return the first lines: the addresses that clients can connect to."""
    return [f"ready: {uri}" for uri in now["uris"]]


def totals(report: Record, *keys: str) -> int:
    """Return a sum over all exports and the given counts."""
    counts = [{**export["level"], **export} for export in report["exports"]]
    return sum(int(each[key]) for each in counts for key in keys)


class Watch(Following[Record]):
    """A running server: also prints a line once writes of an export may be lost."""

    def __init__(self) -> None:
        super().__init__(ENDING, beginning, status, kills=(signal.SIGINT, signal.SIGTERM))
        self.told: set[str] = set()

    def show(self, now: Record) -> None:
        """Show `now`, and exports that have become unstable."""
        super().show(now)
        for export in now["exports"]:
            if export["unstable"] and export["name"] not in self.told:
                self.told.add(export["name"])
                print(plain(f"headstart: {export['unstable']['summary']}"), file=sys.stderr, flush=True)


def status(then: Record, now: Record) -> str:
    """Return the status line for the time from `then` to `now`."""
    passed = max(now["elapsed_ns"] - then["elapsed_ns"], 1) / 1e9

    def rate(*keys: str) -> float:
        return float((totals(now, *keys) - totals(then, *keys)) / passed)

    requests = rate("read_requests", "write_requests", "trim_requests", "flush_requests")
    references = rate("references")
    hits = rate("hits_ready") / references if references else 0.0
    clients = "1 client" if now["connections"] == 1 else f"{now['connections']:,} clients"
    return (
        f"{clients}, {requests:,.0f} requests/s, {rate('read_bytes') / 1e6:,.1f} MB/s read, {hits:.0%} of pages in the "
        f"cache, {rate('write_bytes') / 1e6:,.1f} MB/s written"
    )


@options.of_core("serve")
def serve(
    given: options.Given,
    backing_option: Annotated[str | None, typer.Option("--backing", hidden=True)] = None,
    s3: Annotated[
        str | None,
        typer.Option(
            "--s3", metavar="HOST:PORT", help="Serve the objects of a bucket or a folder over S3: as `headstart store`."
        ),
    ] = None,
    json: options.Json = None,
) -> None:
    """Serve BACKING to NBD clients (QEMU, nbdcopy, fio, the kernel) through a cache with read-ahead.

    The server applies the simulator's caches and read-ahead policies to real requests. Clients connect to the URL that
    is printed on stderr after "ready:". Ctrl-C, SIGTERM and SIGHUP stop the server after it has answered all pending
    requests and made all writes stable, within 30 seconds. The exit status is 0, or 1 if writes that were acknowledged
    may not be stable. A second Ctrl-C or SIGTERM ends the process at once. At the end, --json writes the counts under
    the names used by `simulate`. Sockets passed by systemd replace --listen.

    Example: headstart serve disk.img --cache 256MiB --readahead amp --socket /tmp/disk.sock
    """
    if s3 is not None:
        store.under_serve(given, s3, json)
        return
    output.check_targets(json)
    options.check_files("serve", given, {"--json": json})
    if backing_option is not None and given.setdefault("backing", backing_option) is not backing_option:
        raise HeadstartError("--backing: given beside BACKING; allowed: one of the two")
    watch = Watch()
    with watch.signals():
        ended = serving.serve(**given, progress=watch.look)
    if json is not None:
        output.write_json(json, output.as_json(ended))
    if json != "-":
        print_report(output.console(), ended)
    if any(export["unstable"] for export in ended["exports"]):
        raise typer.Exit(UNSTABLE)


def print_report(console: Console, report: Record) -> None:
    """Print the counts as text."""
    clients = report["connections_total"]
    counted = "1 client" if clients == 1 else f"{clients:,} clients"
    console.print(f"{counted} in {output.seconds(report['elapsed_ns'])}", markup=False)
    for export in report["exports"]:
        level = export["level"]
        references = max(level["references"], 1)
        prefetches = level["prefetches"]
        rows = {
            "read": f"{export['read_requests']:,} requests, {bytes_text(export['read_bytes'])}",
            "written": f"{export['write_requests']:,} requests, {bytes_text(export['write_bytes'])}",
            "pages": f"{level['references']:,}: {level['hits_ready'] / references:.1%} in the cache, "
            f"{level['hits_unready'] / references:.1%} on their way, {level['misses'] / references:.1%} missed",
            "prefetched": f"{prefetches:,}: {level['accuracy']:.1%} read, {level['prefetches_late']:,} late",
            "backing": f"{export['backing_demand_reads']:,} reads on demand, {export['backing_prefetch_reads']:,} "
            f"ahead, {bytes_text(export['backing_read_bytes'])}",
            "response": f"mean {output.duration(export['response_ns']['mean'])}, 99 % at most "
            f"{output.duration(export['response_ns']['p99'])}, at most {output.duration(export['response_ns']['max'])}",
        }
        if "hints" in export:
            hints = export["hints"]
            stopped = f"; stopped: {hints['stopped']}" if hints["stopped"] else ""
            rows["hints"] = (
                f"{bytes_text(hints['prefetched_bytes'])} read ahead, {bytes_text(hints['used_bytes'])} used{stopped}"
            )
        if export["failed_requests"]:
            rows["failed"] = f"{export['failed_requests']:,} requests"
        table = Table(box=None, show_header=False, pad_edge=False, title=None)
        table.add_column(style="dim", no_wrap=True)
        table.add_column()
        for name, value in rows.items():
            table.add_row(name, safe(value))
        title = f"{export['name']}: {export['backing']}" if export["name"] else export["backing"]
        console.print(plain(title), markup=False)
        console.print(table)
