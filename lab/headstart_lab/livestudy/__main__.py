"""`make live-study`, first part: the kernel's read-ahead page by page."""

import argparse
import shutil
import sys
from pathlib import Path

from headstart._core import HeadstartError
from headstart_lab.livestudy import pages, platform

SHOWN = 3
"""Maximum differences printed for each size of read-ahead."""


def main(words: list[str] | None = None) -> int:
    """Record, compare, and print a line for each file system and size; return 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m headstart_lab.livestudy", description=pages.__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the patterns")
    parser.add_argument("--fs", default=",".join(pages.FILE_SYSTEMS), help="file systems")
    sizes = ",".join(map(str, pages.READ_AHEADS_KB))
    parser.add_argument("--read-ahead-kb", default=sizes, help="sizes of read-ahead")
    parser.add_argument("--quick", action="store_true", help="a quarter of the patterns")
    parser.add_argument("--out", type=Path, help="a folder for the recordings")
    given = parser.parse_args(words)
    file_systems = given.fs.split(",")
    unknown = [each for each in file_systems if each not in pages.FILE_SYSTEMS]
    bad = [each for each in given.read_ahead_kb.split(",") if not each.isdecimal() or int(each) % 4]
    if unknown or bad:
        allowed = " and ".join(pages.FILE_SYSTEMS) if unknown else "multiples of 4"
        key = "fs" if unknown else "read-ahead-kb"
        print(f"headstart: --{key}: {(unknown or bad)[0]} is not one; allowed: {allowed}", file=sys.stderr)
        return 2
    missing = [each for each in file_systems if shutil.which(pages.FILE_SYSTEMS[each][0]) is None]
    for each in missing:
        print(f"SKIPPED: {each}: {pages.FILE_SYSTEMS[each][0]} is not installed")
    kept = [each for each in file_systems if each not in missing]
    sizes_kb = [int(each) for each in given.read_ahead_kb.split(",")]
    differ = 0
    try:
        if (reason := platform.why_not()) is not None:
            raise HeadstartError(reason)
        if given.out is not None:
            given.out.mkdir(parents=True, exist_ok=True)
        with platform.unwinding_on_signals():
            for info, count, found in pages.study(kept, sizes_kb, seed=given.seed, quick=given.quick, out=given.out):
                differ += len(found)
                name = f"Linux {info['kernel']}, {info['fs']}, read_ahead_kb {info['read_ahead_kb']}"
                print(f"{name}: the same pages in {count - len(found)} of {count} patterns", flush=True)
                for each in found[:SHOWN]:
                    where = f"  {each.pattern}, operation {each.operation}"
                    print(f"{where}: the kernel {_pages(each.kernel)}, the simulator {_pages(each.simulator)}")
    except (HeadstartError, OSError) as error:
        print(f"headstart: {error}", file=sys.stderr)
        return 2
    return 1 if differ else 0


def _pages(pages_: list[int]) -> str:
    return f"{len(pages_)} pages {pages_[0]} to {pages_[-1]}" if pages_ else "none"


if __name__ == "__main__":
    sys.exit(main())
