"""A worker of a sweep on this machine: `python -P -m headstart.sweeps.worker`, started by `headstart.sweeps.pool`.

It reads a line of JSON with the scenario, then one line per run. It writes each row to its own part file before it
reports on stdout that the run is done, so finished runs are on disk if the sweep is killed. It ends at once when its
input ends, also if the sweep was killed.
"""

import json
import os
import queue
import signal
import sys
import threading
import time
from typing import Any

from headstart.simulation import Traces
from headstart.sweeps import rows
from headstart.sweeps.folder import Part
from headstart.sweeps.peak import peak_bytes

SHARE_EVERY_S = 0.2


def main() -> None:
    """Perform the runs that the sweep requests, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Private copies, so that nothing else writes into the conversation.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    start = json.loads(sys.stdin.readline())
    cases: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(cases,), daemon=True).start()
    traces = Traces()

    def tell(**what: Any) -> None:
        out.write(json.dumps(what) + "\n")
        out.flush()

    try:
        part = Part(start["part"])
    except OSError as error:
        tell(unwritten=error.strerror)
        return
    while True:
        case = cases.get()
        told = began = time.monotonic()

        def share(done: float, _references: int) -> None:
            nonlocal told
            now = time.monotonic()
            if now > told + SHARE_EVERY_S:
                told = now
                tell(share=done)

        row = rows.run(
            start["scenario"],
            tuple(case["overrides"]),
            trace=case["trace"],
            local=case["local"],
            traces=traces,
            progress=share,
        )
        try:
            part.append(case["index"], row)
        except OSError as error:
            tell(unwritten=error.strerror)
            return
        seconds = time.monotonic() - began
        tell(done=case["index"], failed=row["error"] is not None, seconds=seconds, peak_bytes=peak_bytes())


def _receive(cases: "queue.SimpleQueue[dict[str, Any]]") -> None:
    for line in sys.stdin:
        cases.put(json.loads(line))
    os._exit(0)


if __name__ == "__main__":
    main()
