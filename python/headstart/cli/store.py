"""`headstart store`: a cache of objects in front of an object store, a folder or a web server."""

import signal
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from headstart._core import HeadstartError
from headstart.cli import options, output, pages
from headstart.cli.following import ENDING, Following
from headstart.cli.shown import plain, safe
from headstart.live.core import Record, command
from headstart.report.store import store_figures, store_page
from headstart.sizes import bytes_text


def beginning(now: Record) -> list[str]:
    """Return the first lines: the addresses that clients can connect to."""
    return [f"ready: {url}" for url in now["urls"]]


def status(then: Record, now: Record) -> str:
    """Return the status line for the time from `then` to `now`."""
    passed = max(now["elapsed_ns"] - then["elapsed_ns"], 1) / 1e9

    def grown(key: str) -> int:
        return int(now[key] - then[key])

    read = grown("read_bytes")
    hits = grown("memory_hit_bytes") / read if read else 0.0
    return (
        f"{grown('read_requests') / passed:,.0f} reads/s, {read / passed / 1e6:,.1f} MB/s, {hits:.0%} in memory, "
        f"{grown('fetched_bytes') / passed / 1e6:,.1f} MB/s fetched, "
        f"{grown('waited_ns') / passed / 1e9:.2f} readers waiting"
    )


@options.of_core("store")
def store(given: options.Given, json: options.Json = None, html: options.Html = None) -> None:
    """Cache the objects of SOURCE in memory and on a local disk, for programs that read them again or say what is next.

    Programs read over S3 (--s3: DuckDB, polars, pyarrow, s3fs, boto3, the AWS CLI), or from Python through shared
    memory (--shared; headstart.store() starts that by itself). What they disclose is read ahead in their order, and
    what they need last is evicted first. Credentials for SOURCE come from the environment (AWS_ACCESS_KEY_ID,
    AWS_ENDPOINT, ...). Ctrl-C, SIGTERM and SIGHUP stop the store; --json then writes the counts,
    --html a page with waits and bytes over time.

    Example: headstart store s3://bucket/table/ --s3 127.0.0.1:9005 --cache 4GiB --spill /var/tmp/store:100GiB
    """
    served(given, json, html)


def served(given: Mapping[str, Any], json: str | None, html: str | None = None) -> None:
    """Run a store until a signal arrives, and show what it has done."""
    output.check_targets(json)
    pages.check("store", html, None)
    options.check_files("store", given, {"--json": json, "--html": html})
    watch: Following[Record] = Following(ENDING, beginning, status, kills=(signal.SIGINT, signal.SIGTERM))
    with watch.signals():
        ended = command("store", given, watch.look)
    if json is not None:
        output.write_json(json, output.as_json(ended))
    pages.write(html, None, lambda: store_page(ended), lambda: store_figures(ended))
    if json != "-":
        print_report(output.console(), ended)


def under_serve(given: Mapping[str, Any], s3: str, json: str | None) -> None:
    """Run `headstart serve SOURCE --s3 ADDRESS`, which is `headstart store` under another name."""
    rows, of_serve = options.table("store"), options.table("serve")
    asked = {key: value for key, value in given.items() if value != of_serve[key].get("default")}
    for key in asked:
        if key != "backing" and key not in rows:
            name = options.option_of(key, of_serve[key])
            raise HeadstartError(f"{name}: given beside --s3; allowed: the options of `headstart store`")
    if "backing" in asked:
        asked["source"] = asked.pop("backing")
    served({**asked, "s3": s3}, json)


def print_report(console: Console, report: Record) -> None:
    """Print the counts as text."""
    read = max(report["read_bytes"], 1)
    table = Table(box=None, show_header=False, pad_edge=False, title=None)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    fetched = f"{bytes_text(report['fetched_bytes'])} in {report['get_requests']:,} requests"
    if report["optimum_bytes"] is not None:
        fetched += f"; the least possible with this cache: {bytes_text(report['optimum_bytes'])}"
    rows = {
        "read": f"{report['read_requests']:,} requests, {bytes_text(report['read_bytes'])}",
        "found": f"{report['memory_hit_bytes'] / read:.1%} in memory, {report['coming_bytes'] / read:.1%} on its way, "
        f"{report['spill_hit_bytes'] / read:.1%} on the local disk, {report['missed_bytes'] / read:.1%} missed",
        "fetched": fetched,
        "ahead": f"{bytes_text(report['prefetched_bytes'])}, of which {bytes_text(report['wasted_bytes'])} unused",
        "waited": f"{output.seconds(report['waited_ns'])}: mean {output.duration(report['wait_ns']['mean'])}, 99 % at "
        f"most {output.duration(report['wait_ns']['p99'])}",
    }
    if report["next_gib_saves_bytes"]:
        rows["1 GiB more"] = f"could save {bytes_text(report['next_gib_saves_bytes'])} of what was fetched"
    if report["failed_requests"]:
        rows["failed"] = f"{report['failed_requests']:,} requests"
    for name, value in rows.items():
        table.add_row(name, safe(value))
    console.print(plain(f"{report['source']}: {output.seconds(report['elapsed_ns'])}"), markup=False)
    console.print(table)
