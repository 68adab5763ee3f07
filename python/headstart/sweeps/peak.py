"""The peak memory of a process."""

import re
import resource
from pathlib import Path


def peak_bytes() -> int:
    """Return the peak memory of this process, in bytes.

    `getrusage` includes the memory of the parent process at the start, so on Linux the peak is read from the kernel's
    statistics of this program.
    """
    try:
        found = re.search(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        found = None
    return (int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024
