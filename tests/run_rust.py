"""Runs the Rust test programs: those that mount, serve and wait beside the compiler and beside those that compute.

`cargo test` compiles all test programs, and then runs one after another. About half of the time goes to programs that
wait for disks, sockets and clocks and leave the processors idle. Here such programs run one after another, because
they share the machine, from the moment the first of them is compiled. When all is compiled, the others and the
examples in the documentation run beside them; when those of the machine are done, two of the others at a time, since
many use one processor only. Each program's output is shown when it has ended, as `cargo test` shows it. All programs
run even if one fails; the exit status is 1 then. `make test-rust` runs this.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
CARGO = ["cargo", "test", "--workspace", "--locked"]
ON_THE_MACHINE = {ROOT / "crates" / "live", ROOT / "crates" / "py"}
"""The building, and the crate, whose tests use disks, sockets, tracefs and clocks."""


@dataclass(frozen=True)
class Program:
    """A test program: its command, the folder of its crate, and what it was compiled from."""

    command: tuple[str, ...]
    folder: Path
    source: str

    @property
    def name(self) -> str:
        """What is said of it."""
        return f"{self.folder.name}: {self.source}"

    @property
    def on_the_machine(self) -> bool:
        """Whether its tests share the machine."""
        return bool(ON_THE_MACHINE & {self.folder, self.folder.parent})

    def run(self) -> tuple[bool, str]:
        """Whether it has passed, and what it has printed."""
        started = time.monotonic()
        done = subprocess.run(
            self.command,
            cwd=self.folder,
            env={**os.environ, "CARGO_MANIFEST_DIR": str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        passed = done.returncode == 0
        ending = "" if passed else f"error: {self.command[0]}: exit status {done.returncode}\n"
        seconds = time.monotonic() - started
        return passed, f"     Running {self.name} ({seconds:.1f} s)\n{done.stdout}{ending}"


EXAMPLES = Program((*CARGO, "--doc"), ROOT, "examples in the documentation")


def programs() -> Iterator[Program]:
    """Compiles the tests; gives each program when it is ready.

    Raises:
        CalledProcessError: They do not compile; cargo has said why.
    """
    command = [*CARGO, "--no-run", "--message-format=json-render-diagnostics"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as cargo:
        assert cargo.stdout is not None
        for line in cargo.stdout:
            message = json.loads(line)
            if message.get("executable") and message["profile"]["test"]:
                folder = Path(message["manifest_path"]).parent
                source = Path(message["target"]["src_path"]).relative_to(folder)
                yield Program((message["executable"],), folder, str(source))
    if cargo.returncode:
        raise subprocess.CalledProcessError(cargo.returncode, command)


class Suite:
    """The programs that have yet to run, and what has failed."""

    def __init__(self) -> None:
        self.machine: SimpleQueue[Program | None] = SimpleQueue()
        """What shares the machine, in the order in which it is compiled, then None."""
        self.others = deque([EXAMPLES])
        self.count = 0
        self.failed: list[str] = []
        self._showing = threading.Lock()

    def compile(self) -> None:
        """Compile all."""
        try:
            for program in programs():
                self.count += 1
                (self.machine.put if program.on_the_machine else self.others.append)(program)
        except subprocess.CalledProcessError:
            self.others.clear()
            raise
        finally:
            self.machine.put(None)

    def run_machine(self) -> None:
        """Run what shares the machine while it is compiled, then what is left of the others."""
        while program := self.machine.get():
            self._run(program)
        self.run_others()

    def run_others(self) -> None:
        """Run the others until none is left."""
        while True:
            try:
                program = self.others.popleft()
            except IndexError:
                return
            self._run(program)

    def _run(self, program: Program) -> None:
        passed, output = program.run()
        with self._showing:
            print(output, flush=True)
            if not passed:
                self.failed.append(program.name)


def main() -> int:
    """Runs all test programs, and the examples in the documentation."""
    started = time.monotonic()
    suite = Suite()
    with ThreadPoolExecutor(max_workers=2) as pool:
        lanes = [pool.submit(suite.run_machine)]
        try:
            suite.compile()
        except subprocess.CalledProcessError as error:
            return error.returncode
        lanes.append(pool.submit(suite.run_others))
        for lane in lanes:
            lane.result()
    seconds = time.monotonic() - started
    print(f"Rust: {suite.count} test programs in {seconds:.0f} s, {len(suite.failed)} failed", flush=True)
    for name in sorted(suite.failed):
        print(f"failed: {name}", file=sys.stderr)
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main())
