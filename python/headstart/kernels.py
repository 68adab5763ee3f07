"""Maps a kernel to a version of the policy `linux`."""

import os
import re
import sys


def version(release: str) -> str:
    """Return the version of `linux` that corresponds to a kernel release: "6.12", or "6.18" from 6.17 on."""
    found = re.match(r"(\d+)\.(\d+)", release)
    return "6.18" if found and (int(found[1]), int(found[2])) >= (6, 17) else "6.12"


def here() -> str | None:
    """Return the version of this machine's kernel; `None` if it is not Linux."""
    return version(os.uname().release) if sys.platform == "linux" else None
