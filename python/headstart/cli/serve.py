"""`headstart serve`: a block server with the simulator's caches and read-aheads."""

import signal
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headstart._core import HeadstartError
from headstart.cli import options, output
from headstart.cli.following import ENDING, Following
from headstart.cli.shown import plain, safe
from headstart.cli.targets import check_distinct
from headstart.live import serve as serving
from headstart.sizes import bytes_text

LEVEL_KEYS = ("size", "blocks", "policy", "replacement", "coordinator", "separate_prefetch", "link")
"""The keys of a scenario's level that a server uses."""


UNSTABLE = 1
"""The exit status if acknowledged writes may be lost."""


def beginning(now: serving.Report) -> list[str]:
    """Return the first lines: the addresses that clients can connect to."""
    return [f"ready: {uri}" for uri in now["uris"]]


def totals(report: serving.Report, *keys: str) -> int:
    """Return a sum over all exports and the given counts."""
    counts = [{**export["level"], **export} for export in report["exports"]]
    return sum(int(each[key]) for each in counts for key in keys)


class Watch(Following[serving.Report]):
    """A running server: also prints a line once writes of an export may be lost."""

    def __init__(self) -> None:
        super().__init__(ENDING, beginning, status, kills=(signal.SIGINT, signal.SIGTERM))
        self.told: set[str] = set()

    def show(self, now: serving.Report) -> None:
        """Show `now`, and exports that have become unstable."""
        super().show(now)
        for export in now["exports"]:
            if export["unstable"] and export["name"] not in self.told:
                self.told.add(export["name"])
                print(plain(f"headstart: {export['unstable']['summary']}"), file=sys.stderr, flush=True)


def status(then: serving.Report, now: serving.Report) -> str:
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


def named_exports(texts: list[str]) -> dict[str, str]:
    """Return backings by name, from NAME=BACKING."""
    exports: dict[str, str] = {}
    for text in texts:
        name, equals, backing = text.partition("=")
        if not (name and equals and backing):
            raise HeadstartError(f'--export: "{plain(text)}"; allowed: NAME=BACKING')
        if name in exports:
            raise HeadstartError(f'--export: "{plain(name)}" is given twice; allowed: different names')
        exports[name] = backing
    return exports


def level_of_scenario(path: Path, name: str | None) -> dict[str, Any]:
    """Return the keys of a scenario's level by its name; without a name, of the lowest level, which a server models."""
    try:
        scenario = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise HeadstartError(f"{plain(path)}: {error.strerror}; allowed: a scenario") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise HeadstartError(f"{plain(path)}: {plain(error)}; allowed: TOML") from None
    levels = scenario.get("level")
    tables = [each for each in levels if isinstance(each, dict)] if isinstance(levels, list) else []
    if name is not None:
        named = {str(each.get("name", f"L{at}")): each for at, each in enumerate(tables, start=1)}
        if name not in named:
            raise HeadstartError(f'--level: "{plain(name)}"; allowed: {", ".join(map(plain, named)) or "no level"}')
        section = named[name]
    elif tables:
        section = tables[-1]
    else:
        section = {key: scenario[key] for key in ("policy",) if key in scenario} | scenario.get("cache", {})
    # As the simulator has it: without the key a prefetch joins the request of the demand before it.
    return {"separate_prefetch": False} | {key: section[key] for key in LEVEL_KEYS if key in section}


@options.selecting
def serve(
    backing: Annotated[
        str | None,
        typer.Argument(
            metavar="BACKING",
            help="The default export: a file, a block device, mem:SIZE, or a URL (nbd, https, s3, gs, az).",
        ),
    ] = None,
    backing_option: Annotated[str | None, typer.Option("--backing", hidden=True)] = None,
    export: Annotated[
        list[str] | None,
        typer.Option("--export", metavar="NAME=BACKING", help="A named export. Repeatable."),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help=f"The address that clients connect to, or unix:PATH. Default: {serving.LISTEN}."
        ),
    ] = None,
    socket: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Listen on a Unix socket; the same as --listen unix:PATH.")
    ] = None,
    cache: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Size of each export's page cache. Default: 64MiB.")
    ] = None,
    page: Annotated[str, typer.Option(metavar="SIZE", help="Page size: a power of two from 4KiB to 4MiB.")] = "4KiB",
    readahead: Annotated[
        str | None,
        typer.Option(
            "--readahead",
            "--policy",
            metavar="NAME",
            help="A read-ahead of `headstart list policies`, or demand for none; auto measures how far to read ahead.",
        ),
    ] = None,
    replacement: Annotated[
        str | None, typer.Option(metavar="NAME", help="A name of `headstart list replacements`. Default: lru.")
    ] = None,
    coordinator: Annotated[
        str | None, typer.Option(metavar="NAME", help="A name of `headstart list coordinators`. Default: none.")
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Use the size, policy, coordinator and link of the scenario's lowest level, with their keys.",
        ),
    ] = None,
    level_name: Annotated[
        str | None,
        typer.Option("--level", metavar="NAME", help="With --scenario: use this level instead of the lowest."),
    ] = None,
    direct: Annotated[
        bool,
        typer.Option("--direct", help="Read files and devices with direct I/O, bypassing the kernel's page cache."),
    ] = False,
    no_lock: Annotated[
        bool,
        typer.Option("--no-lock", help="Do not lock files and devices against other programs, as QEMU locks images."),
    ] = False,
    depth: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum concurrent reads per backing. Default: 32; for mem: 2.")
    ] = None,
    connections: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum connected clients; others wait. Default: 256.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Maximum memory of the caches and all clients' requests and replies. Default: the caches and 256MiB.",
        ),
    ] = None,
    writable: Annotated[
        bool, typer.Option("--writable", help="Allow writes. They reach the backing before the client gets its reply.")
    ] = False,
    record: Annotated[
        Path | None, typer.Option(metavar="TRACE.csv", help="Record the clients' reads and writes as a trace.")
    ] = None,
    hints: Annotated[
        Path | None,
        typer.Option(
            metavar="TRACE", help="Prefetch the reads of this trace: one from --record, or any trace of one device."
        ),
    ] = None,
    hint_policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="With --hints: a hinted policy of `headstart list policies`. Default: just-in-time."
        ),
    ] = None,
    select: options.Selection = options.ALL,
    spill: Annotated[
        str | None,
        typer.Option(metavar="FILE:SIZE", help="Keep pages evicted from the cache in this file, also for later runs."),
    ] = None,
    openmetrics: Annotated[
        str | None,
        typer.Option(
            "--openmetrics",
            "--metrics",
            metavar="FILE|HOST:PORT",
            help="Write metrics to a file, or serve them to collectors at a local address.",
        ),
    ] = None,
    log: Annotated[Path | None, typer.Option(metavar="FILE", help="Append events to a file, as lines of JSON.")] = None,
    allow_remote: Annotated[
        bool,
        typer.Option(
            "--allow-remote", help="Allow addresses that other machines can reach. Requires TLS or --insecure."
        ),
    ] = False,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow TCP without encryption where it is refused otherwise.")
    ] = False,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The server's certificate (PEM). Clients must then use TLS.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="The server's private key (PEM).")] = None,
    tls_clients: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CA certificates (PEM). Clients must then present a certificate issued by one of these CAs.",
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
    output.check_targets(json)
    check_distinct(
        {
            "BACKING": backing,
            "--record": record,
            "--log": log,
            "--json": json,
            "--scenario": scenario,
            "--spill": spill and spill.rpartition(":")[0],
            "--hints": hints,
        }
    )
    if backing is not None and backing_option is not None:
        raise HeadstartError("--backing: given beside BACKING; allowed: one of the two")
    if listen is not None and socket is not None:
        raise HeadstartError("--socket: given beside --listen; allowed: one of the two")
    exports, backing = named_exports(export or []), backing_option if backing is None else backing
    if level_name is not None and scenario is None:
        raise HeadstartError("--level: needs --scenario; allowed: both or neither")
    level = dict(serving.LEVEL) if scenario is None else level_of_scenario(scenario, level_name)
    if cache is not None:
        level.pop("blocks", None)
    given = {"size": cache, "policy": readahead, "replacement": replacement, "coordinator": coordinator}
    level |= {key: value for key, value in given.items() if value is not None}
    watch = Watch()
    names = {"size": "--cache", "policy": "--readahead", "replacement": "--replacement", "page": "--page"}
    names |= {"coordinator": "--coordinator", "listen": "--listen", "openmetrics": "--openmetrics"}
    names |= {"connections": "--connections", "memory": "--memory"}
    names |= {"depth": "--depth", "hints": "--hints", "hint_policy": "--hint-policy", "spill": "--spill"}
    names |= {key: f"--{key}" for key in options.SELECTED}
    names |= {"tls_cert": "--tls-cert", "tls_key": "--tls-key", "tls_clients": "--tls-clients"}
    with watch.signals(), options.named(names):
        ended = serving.serve(
            backing,
            exports=exports,
            listen=f"unix:{socket}" if socket is not None else listen or serving.LISTEN,
            level=level,
            page=page,
            allow_remote=allow_remote,
            insecure=insecure,
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_clients=tls_clients,
            writable=writable,
            direct=direct,
            no_lock=no_lock,
            depth=depth,
            connections=connections,
            memory=memory,
            record=record,
            hints=hints,
            hint_policy=hint_policy,
            **select,
            spill=spill,
            openmetrics=openmetrics,
            log=log,
            progress=watch.look,
        )
    if json is not None:
        output.write_json(json, output.as_json(ended))
    if json != "-":
        print_report(output.console(), ended)
    if any(export["unstable"] for export in ended["exports"]):
        raise typer.Exit(UNSTABLE)


def print_report(console: Console, report: serving.Report) -> None:
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
