"""The two machines of Shriver, Small and Smith (USENIX 1999), in the model's terms.

    model.file_system(**model.PLATFORMS["slow"], file_size="64KiB", overhead="1.2ms")

Section 4.2 and Table 1; "1 MB/s" is 1024 bytes a millisecond there, as the printed tables show. The slow machine's
overhead is 1.8 ms with one file, 1.2 ms with several; Table 5, without prefetching, takes 1.2 ms for one file too.
"""

from types import MappingProxyType
from typing import Any

from headstart.model.file_system import Drive

MB_PER_S = 1024.0 * 1000.0


def _cheetah(overhead: str, bus_mb_per_s: float) -> Drive:
    return Drive(
        a_ms=0.002,
        b_ms=0.173,
        c_ms=3.597,
        d_ms=0.002,
        e=801,
        cylinders=6526,
        rpm=10_000,
        disk_rate=18.0 * MB_PER_S,
        bus_rate=bus_mb_per_s * MB_PER_S,
        overhead=overhead,
        cache_segments=3,
    )


PLATFORMS: MappingProxyType[str, dict[str, Any]] = MappingProxyType(
    {
        "slow": {"drive": _cheetah("1.8ms", 9.3), "system_call": "10us", "copy_per_kib": "10us"},
        "fast": {"drive": _cheetah("0.34ms", 18.2), "system_call": "5us", "copy_per_kib": "5us"},
    }
)
"""Arguments of `file_system`: the drive and the file system's costs."""
