"""What to type on the real machine."""

from collections.abc import Mapping
from typing import Any

from headstart.advice.runs import linux_depth
from headstart.sizes import size_text

TUNE_MAX = 16 << 20
"""`headstart tune` asks for --force above."""
MOUNT_POINT = "/mnt/bucket"

SYSTEMS = {
    "mountpoint-s3": (f"mount-s3 BUCKET {MOUNT_POINT}   # it reads ahead by itself; --read-part-size sets its parts",),
    "fsspec-readahead": ('fsspec.open(URL, cache_type="readahead", block_size=BYTES)   # in a Python program',),
}
"""Read-aheads that come with a program of their own."""


def is_remote(model: Mapping[str, Any]) -> bool:
    """Return whether a device's model is a store behind a network: it has connections."""
    return "connections" in model


def commands(policy: str, model: Mapping[str, Any], *, unchanged: bool) -> tuple[str, ...]:
    """Return what sets `policy` on a device of this model; `unchanged`: it is as the machine comes."""
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
            lines = (f"headstart tune /dev/DEVICE --depth {size_text(depth)} --apply{force}", *lines)
        per_file = "posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL)   # in the program: doubles the depth for this file"
        return (*lines, per_file)
    for name, lines in SYSTEMS.items():
        if policy.partition(":")[0] == name:
            return lines
    return ()


def _read_ahead_kb(kib: int, model: Mapping[str, Any]) -> tuple[str, ...]:
    if is_remote(model):
        where = f"/sys/class/bdi/$(mountpoint -d {MOUNT_POINT})/read_ahead_kb"
        return (
            f"echo {kib} | sudo tee {where}   # a file system over the network or FUSE, which may set a lower limit",
        )
    return (f"echo {kib} | sudo tee /sys/block/DEVICE/queue/read_ahead_kb",)
