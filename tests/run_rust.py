"""Runs the Rust test programs: those that mount, serve and wait beside those that compute.

`cargo test` runs one test program after another. About half of the time goes to programs that wait for disks, sockets
and clocks and leave the processors idle. Here such programs run one after another, because they share the machine,
in parallel to all others. When they are done, two of the others run at a time, since many of those use one processor
only. Each program's output is shown when it has ended, as `cargo test` shows it. All programs run even if one fails;
the
exit status is 1 then. `make test-rust` runs this.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CARGO = ["cargo", "test", "--workspace", "--locked"]
ON_THE_MACHINE = {ROOT / "crates" / "live", ROOT / "crates" / "py"}
"""The building, and the crate, whose tests use disks, sockets, tracefs and clocks."""


@dataclass(frozen=True)
class Program:
    """A test program, the folder of its crate, and what it was compiled from."""

    executable: str
    folder: Path
    source: str

    def run(self) -> tuple[bool, str]:
        """Whether it has passed, and what it has printed."""
        environment = {**os.environ, "CARGO_MANIFEST_DIR": str(self.folder)}
        done = subprocess.run(
            [self.executable],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        passed = done.returncode == 0
        ending = "" if passed else f"error: {self.executable}: exit status {done.returncode}\n"
        return passed, f"     Running {self.folder.name}: {self.source}\n{done.stdout}{ending}"


def programs() -> list[Program]:
    """Compiles the tests; gives the programs in the order in which cargo names them.

    Raises:
        CalledProcessError: They do not compile; cargo has said why.
    """
    command = [*CARGO, "--no-run", "--message-format=json-render-diagnostics"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["profile"]["test"]:
            folder = Path(message["manifest_path"]).parent
            source = Path(message["target"]["src_path"]).relative_to(folder)
            found.append(Program(message["executable"], folder, str(source)))
    return found


def main() -> int:
    """Runs all test programs, then the examples in the documentation."""
    started = time.monotonic()
    try:
        all_programs = programs()
    except subprocess.CalledProcessError as error:
        return error.returncode
    failed: list[str] = []
    showing = threading.Lock()

    def run(queue: deque[Program]) -> None:
        while True:
            try:
                program = queue.popleft()
            except IndexError:
                return
            passed, output = program.run()
            with showing:
                print(output, flush=True)
                if not passed:
                    failed.append(f"{program.folder.name}: {program.source}")

    machine: deque[Program] = deque()
    others: deque[Program] = deque()
    for program in all_programs:
        (machine if ON_THE_MACHINE & {program.folder, program.folder.parent} else others).append(program)

    def run_machine_then_others() -> None:
        run(machine)
        run(others)

    with ThreadPoolExecutor(max_workers=2) as pool:
        lanes = [pool.submit(run, others), pool.submit(run_machine_then_others)]
        for lane in lanes:
            lane.result()
    if subprocess.run([*CARGO, "--doc"], cwd=ROOT, check=False).returncode:
        failed.append("examples in the documentation")
    seconds = time.monotonic() - started
    print(f"Rust: {len(all_programs)} test programs in {seconds:.0f} s, {len(failed)} failed", flush=True)
    for name in sorted(failed):
        print(f"failed: {name}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
