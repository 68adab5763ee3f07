"""Options of the commands of this machine, as keywords. Written by `make docs` from the core; do not edit."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, TypedDict


class Serve(TypedDict, total=False):
    """Options of `headstart serve`."""

    exports: Mapping[str, str | PathLike[str]] | None
    """Further exports: backings by name."""
    listen: str | None
    """The address that clients connect to, or unix:PATH. Default: 127.0.0.1:10809."""
    socket: str | PathLike[str] | None
    """Listen on a Unix socket; the same as --listen unix:PATH."""
    cache: str | None
    """Size of each export's page cache. Default: 64MiB."""
    page: str | int | None
    """Page size: a power of two from 4KiB to 4MiB."""
    readahead: str | None
    """A read-ahead of `headstart list policies`. demand: no read-ahead; auto: measure how far to read ahead."""
    replacement: str | None
    """Replacement policy: a name of `headstart list replacements`. Default: lru."""
    coordinator: str | None
    """Coordinator: a name of `headstart list coordinators`. Default: none."""
    scenario: str | PathLike[str] | None
    """Use the size, policy, coordinator and link of the scenario's lowest level, with their keys."""
    level: str | Mapping[str, object] | None
    """Keys of each export's level, as in a scenario's `[[level]]`. With `scenario`: the name of one of its levels."""
    direct: bool | None
    """Read files and devices with direct I/O, bypassing the kernel's page cache."""
    no_lock: bool | None
    """Do not lock files and devices against other programs. By default they are locked as QEMU locks images."""
    depth: int | None
    """Maximum concurrent reads per backing. Default: 32; for mem: 2."""
    connections: int | None
    """Maximum connected clients; others wait. Default: 256."""
    memory: str | int | None
    """Maximum memory for the caches and all clients' requests and replies. Default: the caches' size plus 256MiB."""
    writable: bool | None
    """Allow writes. They reach the backing before the client gets its reply."""
    record: str | PathLike[str] | None
    """Record the clients' reads and writes as a trace."""
    hints: str | PathLike[str] | None
    """Prefetch the reads of this trace: one written by --record, or any trace of one device."""
    hint_policy: str | None
    """With --hints: the hinted policy, a name of `headstart list policies`. Default: just-in-time."""
    path: str | Sequence[str] | None
    """Globs of file paths (`"*.parquet"`, `["/data/*", "*.bin"]`). `*` also matches "/"."""
    pid: int | Sequence[int] | None
    """Process or thread ids."""
    process: str | Sequence[str] | None
    """Process names, or globs of process names."""
    spill: str | PathLike[str] | None
    """Keep pages that the cache evicts in this file, for this run and later ones."""
    openmetrics: str | None
    """Write metrics to a file, or serve them to collectors at a local address."""
    log: str | PathLike[str] | None
    """Append events to a file, as lines of JSON."""
    allow_remote: bool | None
    """Allow addresses that other machines can reach. Requires TLS or --insecure."""
    insecure: bool | None
    """Allow unencrypted TCP where it would be refused otherwise."""
    tls_cert: str | PathLike[str] | None
    """The server's certificate (PEM). Clients must then use TLS."""
    tls_key: str | PathLike[str] | None
    """The server's private key (PEM)."""
    tls_clients: str | PathLike[str] | None
    """CA certificates (PEM). Clients must then present a certificate issued by one of these CAs."""


class Store(TypedDict, total=False):
    """Options of `headstart store`."""

    s3: str | None
    """Serve the objects over S3 (read-only) at this address."""
    shared: str | PathLike[str] | None
    """Serve Python programs of this machine over this Unix socket, through shared memory."""
    cache: str | int | None
    """Memory for objects."""
    spill: str | None
    """Keep what leaves the memory in a folder of a local disk, also for later runs."""
    requests: int | None
    """Maximum number of requests at a time that read ahead."""
    no_hedge: bool | None
    """Do not send a second request for one whose answer begins later than 99 % of the others."""
    record: str | PathLike[str] | None
    """Write what is read to a trace, which --hints and the simulator read."""
    openmetrics: str | None
    """Write metrics to a file, or serve them to collectors at a local address."""
    hints: str | PathLike[str] | None
    """Read ahead what this trace names, in its order: one of --record, or any that names files."""
    linger: float | None
    """End when no program has been connected to the Unix socket for this many seconds."""
    s3_key: str | PathLike[str] | None
    """The key that S3 clients must sign with: a file with its id and its secret, a line each. Default: none."""
    allow_remote: bool | None
    """Allow addresses that other machines can reach. Requires TLS or --insecure."""
    insecure: bool | None
    """Allow connections without encryption where they are refused otherwise."""
    tls_cert: str | PathLike[str] | None
    """The server's certificate (PEM). S3 clients must then use TLS."""
    tls_key: str | PathLike[str] | None
    """The server's private key (PEM)."""


class Play(TypedDict, total=False):
    """Options of `headstart play`."""

    arrival: Literal["closed", "open"] | None
    """When requests are issued. closed: after the last reply and a think time; open: at the trace's times."""
    compute: str | None
    """Think times with closed arrival: "trace", "gaps", 1ms or exp:1ms."""
    speed: float | None
    """Divide arrival and think times by X."""
    depth: int | None
    """Maximum requests in flight: per process if closed (default 1), in total if open (default 1024)."""
    processes: Literal["merged", "per-pid"] | None
    """per-pid: run the trace's processes concurrently."""
    limit: int | None
    """Play only the first N requests."""
    writable: bool | None
    """Perform the trace's writes. They overwrite the export's data."""
    skip_writes: bool | None
    """Skip writes. Without this and --writable, writes are played as reads."""
    writes: Literal["as-read", "skip", "write"] | None
    """How the trace's writes are played. `write` overwrites the export's data."""
    addresses: Literal["error", "wrap"] | None
    """Addresses beyond the export's end: report an error, or wrap around."""
    connections: int | None
    """Connections to the server."""
    seed: int | None
    """Random seed of think times."""
    format: str | None
    """The trace's format: a name of `headstart list formats`."""
    request_size: str | int | None
    """Request size, for a trace that has offsets but no sizes: 4KiB."""
    path: str | Sequence[str] | None
    """Globs of file paths (`"*.parquet"`, `["/data/*", "*.bin"]`). `*` also matches "/"."""
    pid: int | Sequence[int] | None
    """Process or thread ids."""
    process: str | Sequence[str] | None
    """Process names, or globs of process names."""


class Tune(TypedDict, total=False):
    """Options of `headstart tune`."""

    profile: str | PathLike[str] | None
    """The drive: a name of `headstart list devices`, or the path of a profile."""
    keys: Mapping[str, object] | None
    """Keys of the device that override those of the profile."""
    depth: str | int | None
    """Use this depth instead of the profile's."""
    dry_run: bool | None
    """Show the current and the proposed depth. This is the default and needs no root."""
    apply: bool | None
    """Write the depth. It lasts until --restore or the next boot."""
    restore: bool | None
    """Write the value that was set before the first --apply."""
    watch: bool | None
    """Follow the drive's seeks and adjust the depth. Restores the value at the end."""
    duration: str | None
    """With --watch: stop after this time, for example "10min"."""
    openmetrics: str | PathLike[str] | None
    """With --watch: keep the status in this file, in OpenMetrics format."""
    force: bool | None
    """Allow more than 16 MiB. With --restore: restore even if another program has changed the value."""
    state: str | PathLike[str] | None
    """File that keeps the original values."""


class Emulate(TypedDict, total=False):
    """Options of `headstart emulate`."""

    keys: Mapping[str, object] | None
    """Keys of the device that override those of the profile."""
    scheduler: str | None
    """The scheduler of the drive's queue: a name of `headstart list schedulers`."""


class Profile(TypedDict, total=False):
    """Options of `headstart profile`."""

    time_s: float | None
    """Approximate measuring time in seconds."""
    seed: int | None
    """Random seed of the places that are read."""
    name: str | None
    """The device's name in the profile. Default: the name of the file."""


class Record(TypedDict, total=False):
    """Options of `headstart record`."""

    cold: bool | None
    """Drop the page cache and the dentry and inode caches first. This affects all programs."""
    buffer: str | int | None
    """Size of the kernel's buffer per processor. Default: 4MiB. Increase it if events are lost."""
    to: str | None
    """Format of the file: "hints", or "csv" for a trace."""
    tracing: str | PathLike[str] | None
    """Mount point of tracefs, if it is not the usual one."""


class Forecast(TypedDict, total=False):
    """Options of `headstart forecast`."""

    prefetch: str | PathLike[str] | None
    """Prefetch from this recording, for example an older one or another command's. Default: FILE."""
    device: str | PathLike[str] | None
    """Model of the device that the recorded run waited for most: a name of `headstart list devices`, or a profile.
    Default: chosen by the recorded waits and the system's description of the device."""
    device_keys: Mapping[str, object] | None
    """Keys of the device that override those of its profile."""
    policies: Sequence[str] | None
    """Hinted policies, separated by commas. Default: all that `headstart run` supports."""
    budgets: Sequence[str | int] | None
    """Maxima of prefetched but unused data: sizes, separated by commas. Default: from 8MiB up to the amount that the
    hints need."""
    read_ahead: str | int | None
    """The kernel's read-ahead. Default: the device's current setting."""
    scheduler: str | None
    """Scheduler: a name of `headstart list schedulers`. Default: according to the kernel's setting."""
    trusted: bool | None
    """Forecast `headstart run --trust`."""
    cached: bool | None
    """Start with all data in the page cache."""
