"""What the samples of a data set read, learned in the first epoch.

The processes of a DataLoader append what they learn to a file, which the process that discloses the order follows. A
line is [index, [[key, start, stop], ...]], the last one of an index counts; or {"run": ..., "samples": n}: so many more
samples were read. A line is written by one call, and several processes may append to a file.
"""

import json
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from operator import index as as_index
from pathlib import Path
from typing import Any

from headstart._core import HeadstartError
from headstart._input import plain
from headstart.live.store.connection import Item
from headstart.live.store.entries import LATER, Later, item_of, noting

_SAMPLES = 32
"""Samples of a process between two lines that count them. A guess: the reader is known to a batch."""
_EPOCHS_AHEAD = 2

Index = int | str


class Learned:
    """A map-style data set that notes what its samples read from a store, for `headstart.torch.disclose`.

    `file` keeps that for later runs, and for other processes and nodes that train on the same data; without it, it is
    forgotten. What a sample's own threads read is not seen. The data set itself is `dataset`.
    """

    def __init__(self, dataset: Any, file: str | os.PathLike[str] | None = None) -> None:
        self.dataset = dataset
        self._run = f"{os.getpid()}.{time.monotonic_ns()}"
        if file is None:
            descriptor, path = tempfile.mkstemp(prefix="headstart-learned-")
            os.close(descriptor)
            weakref.finalize(self, _remove, path, os.getpid())
        else:
            path = os.fspath(file)
        self._path = Path(path)
        self._begin()

    def _begin(self) -> None:
        self._learned: dict[Index, list[Item]] = {}
        self._read_to = 0
        self._samples = 0
        """Samples that the processes of this run have read, as far as the file says."""
        self._target: int | None = None
        self._enter_process()

    def _enter_process(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._uncounted = 0
        self._follow()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what another process needs."""
        return {"dataset": self.dataset, "_run": self._run, "_path": self._path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Continue in another process."""
        self.__dict__.update(state)
        self._begin()

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        """Return a sample, and note what it reads."""
        items: list[Item] = []
        token = noting.set(items)
        try:
            sample = self.dataset[index]
        finally:
            noting.reset(token)
        self._note(index_of(index), items)
        return sample

    def _note(self, index: Index, items: list[Item]) -> None:
        if self._process != os.getpid():
            self._enter_process()  # A forked worker.
        with self._lock:
            self._uncounted += 1
            if items and self._learned.get(index) != items:
                self._learned[index] = items
                self._append([index, items])
            if self._uncounted >= _SAMPLES:
                self._append({"run": self._run, "samples": self._uncounted})
                self._uncounted = 0

    def _append(self, line: object) -> None:
        try:
            if self._target is None:
                self._target = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
                weakref.finalize(self, os.close, self._target)
            os.write(self._target, json.dumps(line, separators=(",", ":")).encode() + b"\n")
        except OSError as error:
            raise HeadstartError(f"{plain(str(self._path))}: cannot be written: {error.strerror}") from error

    def _follow(self) -> None:
        """Take over what the file says beyond what was read before."""
        with self._lock:
            self._take_all()

    def _take_all(self) -> None:
        try:
            with self._path.open("rb") as file:
                file.seek(self._read_to)
                new = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise HeadstartError(f"{plain(str(self._path))}: cannot be read: {error.strerror}") from error
        whole = new[: new.rfind(b"\n") + 1]
        self._read_to += len(whole)
        for line in whole.splitlines():
            try:
                self._take(json.loads(line))
            except (ValueError, TypeError, KeyError, HeadstartError) as error:
                problem = f"{plain(str(self._path))}: {plain(line[:80].decode(errors='replace'))} is no line of a file"
                raise HeadstartError(f"{problem} of headstart.torch.Learned; allowed: such a file, or none") from error

    def _take(self, line: Any) -> None:
        if isinstance(line, dict):
            self._samples += line["samples"] if line["run"] == self._run else 0
        else:
            index, entries = line
            self._learned[index] = [item_of(tuple(entry)) for entry in entries]

    def entries(self, draws: Iterator[Any], length: int) -> Iterator[Item | Later]:
        """Return what the draws of all epochs read, as far as that is known; `length`: draws of an epoch.

        In the first epoch an unknown sample of a later one is waited for. After it, unknown ones are left out.

        Raises:
            HeadstartError: The first epoch is over, and no sample has read from a store.
        """
        return self._entries(draws, length, set(self._learned))

    def _entries(self, draws: Iterator[Any], length: int, known_before: set[Index]) -> Iterator[Item | Later]:
        for position, draw in enumerate(draws):
            index = index_of(draw)
            if position >= length:
                while index not in self._learned and self._samples < length:
                    yield LATER
                    self._follow()
                if not self._learned:
                    raise HeadstartError("no sample of the first epoch has read from a store in its __getitem__")
                # Draws that are left out must not let this run away from the reader.
                while position > self._samples + _EPOCHS_AHEAD * length:
                    yield LATER
                    self._follow()
                yield from self._learned.get(index, [])
            elif index in known_before:
                yield from self._learned[index]


def index_of(index: Any) -> Index:
    """Return an index without its tensor or array.

    Raises:
        HeadstartError: It is neither a whole number nor a string.
    """
    if isinstance(index, str):
        return index
    try:
        return as_index(index)
    except TypeError as error:
        problem = f"index: {plain(repr(index))} cannot be learned"
        raise HeadstartError(f"{problem}; allowed: whole numbers and strings, or a data set with `ranges`") from error


def _remove(path: str, process: int) -> None:
    if os.getpid() == process:
        Path(path).unlink(missing_ok=True)
