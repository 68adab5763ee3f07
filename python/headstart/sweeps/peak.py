"""The most memory that a process has had."""

import re
import resource
from pathlib import Path


def peak_bytes() -> int:
    """Return it of this process, in bytes.

    What `getrusage` says begins with the memory of the process that started this one, so that Linux is asked for
    the peak of this program.
    """
    try:
        found = re.search(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        found = None
    return (int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024
