"""The commands that apply the advice on the real machine."""

from collections.abc import Mapping
from typing import Any

from headstart.advice.runs import linux_depth
from headstart.policies import policy_keys, rows
from headstart.sizes import size_bytes, size_text

TUNE_MAX = 16 << 20
"""`headstart tune` requires --force above this size."""
SHARED = "device-wide: for all programs that read the device"
MOUNT_POINT = "/mnt/bucket"


def is_remote(model: Mapping[str, Any]) -> bool:
    """Return whether a device's model is a store behind a network: it has connections."""
    return "connections" in model


def commands(policy: str, model: Mapping[str, Any], *, unchanged: bool) -> tuple[str, ...]:
    """Return the command that sets `policy` on a device of this model; `unchanged`: it is the machine's default."""
    if unchanged:
        return ()
    depth = linux_depth(policy)
    if depth == 0:
        per_file = "posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM)   # in the program: no read-ahead for this file"
        return (per_file, *_read_ahead_kb(0, model))
    if depth is not None:
        lines = _read_ahead_kb(depth >> 10, model)
        if not is_remote(model):
            force = " --force" if depth > TUNE_MAX else ""
            lines = (f"headstart tune /dev/DEVICE --depth {size_text(depth)} --apply{force}   # {SHARED}", *lines)
        per_file = "posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL)   # in the program: doubles the depth for this file"
        return (per_file, *lines)
    return _systems(policy)


def disclosures(model: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ways for a program to disclose its reads, starting with the one that needs no change to it."""
    if is_remote(model):
        return (
            "headstart serve s3://BUCKET/KEY --socket PATH --hints TRACE   # for reads that repeat (TRACE: --record)",
            "in the program: larger requests, and more requests at a time (threads, asyncio, a prefetching loader)",
        )
    return (
        "headstart run -- COMMAND   # for a command that is run again: recorded the first time, then read ahead",
        "posix_fadvise(fd, OFFSET, LENGTH, POSIX_FADV_WILLNEED)   # in the program, ahead of each read that it knows",
        "in the program: larger requests, and more requests at a time (threads, io_uring, a prefetching loader)",
    )


def _systems(policy: str) -> tuple[str, ...]:
    """Return the setting of a read-ahead that is part of a program."""
    keys = policy_keys(policy)
    if keys["name"] == "mountpoint-s3":
        # An environment variable of Mountpoint for Amazon S3, in bytes (doc/CONFIGURATION.md there).
        window = f"UNSTABLE_MOUNTPOINT_MAX_PREFETCH_WINDOW_SIZE={size_bytes(keys['max'])} " if "max" in keys else ""
        return (f"{window}mount-s3 BUCKET {MOUNT_POINT}   # it reads ahead by itself",)
    if keys["name"] == "fsspec-readahead":
        depth = size_bytes(str(keys.get("block_size", rows()[keys["name"]]["keys"]["block_size"])))
        return (f'fsspec.open(URL, cache_type="readahead", block_size={depth})   # in a Python program',)
    return ()


def _read_ahead_kb(kib: int, model: Mapping[str, Any]) -> tuple[str, ...]:
    if is_remote(model):
        where = f"/sys/class/bdi/$(mountpoint -d {MOUNT_POINT})/read_ahead_kb"
        return (f"echo {kib} | sudo tee {where}   # for all programs on that mount, which may set a lower limit",)
    return (f"echo {kib} | sudo tee /sys/block/DEVICE/queue/read_ahead_kb   # {SHARED}",)
