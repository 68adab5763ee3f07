"""User-defined policies in Python: three base classes, and the names by which runs find them.

A class is named by its file, "mine.py:Mine", wherever a policy or a replacement can be named: in a scenario, after
`--policies`, in a grid. The arguments of its constructor are its keys: "mine.py:Mine:depth=8". An object supplies only
its class and constructor arguments; each run creates its own object. docs/python-policies.md is the tutorial.
"""

import importlib.util
import inspect
import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from headstart import _core
from headstart._core import Cache, HeadstartError, Hints, Request

__all__ = ["Cache", "Hints", "Policy", "Readahead", "Replacement", "Request", "conformance"]

Fetch = tuple[int, int | None]
"""A block, and the block that it replaces; `None` while a frame is free."""


class _Custom:
    """Common base of all policies."""

    _keys: dict[str, Any]

    def __new__(cls, *args: Any, **keys: Any) -> Self:
        """Record the constructor arguments, from which each run creates its own object."""
        made = super().__new__(cls)
        try:
            made._keys = dict(inspect.signature(cls).bind(*args, **keys).arguments)
        except TypeError:
            # The constructor will raise the same error.
            made._keys = {}
        return made

    def start(self, frames: int, block_bytes: int | None) -> None:
        """Receive the size of the cache, once, before the first event.

        Args:
            frames: Frames of the cache, at least 1.
            block_bytes: Bytes of a block; `None` for a class that does not read ahead.
        """


class Replacement(_Custom):
    """Chooses which block leaves the cache when a frame is needed. Blocks are whole numbers from 0.

    An arrival is not a reference: a prefetched block arrives, and may be evicted without a reference.
    """

    def inserted(self, block: int) -> None:
        """Note that `block` has arrived in the cache; before the first event, that it is there from the start."""

    def referenced(self, block: int, hit: bool) -> None:
        """Note that `block`, which is in the cache, has been referenced; `hit`: it was there or on its way."""

    def candidates(self, incoming: int) -> Iterable[int]:
        """Return or yield candidates for eviction, the best first, to make room for block `incoming`.

        The first block that no process waits for is evicted and reported with `forget`. If necessary, the candidates
        must include all blocks in the cache.
        """
        raise NotImplementedError("a replacement names candidates")

    def forget(self, block: int, evicted: bool) -> None:
        """Note that `block` has left; `evicted`: as the victim, else a coordinator has taken it out."""


class Readahead(_Custom):
    """Chooses blocks to fetch in addition to the requested ones.

    With `Replacement` as a second base class, the same object chooses the victims too.
    """

    by_position = True
    """Whether it takes neighbouring blocks for neighbours on the device: such a class needs a trace with addresses."""

    def requested(self, request: Request) -> Iterable[int | range] | None:
        """Return or yield the blocks of the request's file to prefetch, in the order in which they are issued.

        They are counted from the start of the file, like `request.first`: numbers, or ranges of step 1. Blocks that are
        cached, being fetched or beyond the end are skipped. Blocks for which there is no frame are dropped.
        """
        raise NotImplementedError("a read-ahead answers requests")

    def evicted(self, file: int, index: int, unused: bool) -> None:
        """Note that the block at `index` of `file` has left; `unused`: it was prefetched and not requested."""

    def placed(self, block: int, file: int, index: int) -> None:
        """Note that the replacement's `block` is the block at `index` of `file`. For classes that are both."""


class Policy(_Custom):
    """Decides on fetches and victims together from hints about future references. For one process."""

    def hinted(self, hints: Hints) -> None:
        """Receive the hints, once, after `start`.

        `hints[p]` is the block of the reference at position p, `None` if it is not (yet) disclosed. `len(hints)` is the
        number of all references. `hints.next_use(block)` is the position of the block's next reference, `None` if there
        is none. Hints may be wrong (`policy.hints.wrong` and `reordered`); `served` reports the referenced blocks.
        """

    def decide(self, cache: Cache) -> Iterable[Fetch] | None:
        """Return or yield the fetches to issue now: a block that is absent, and the block that it replaces.

        Called whenever a reference has been served or a fetch has ended. While `cache.free` frames are left, the
        victim is `None`. `cache` shows the state before any of these fetches.
        """

    def victim(self, block: int, cache: Cache) -> int | None:
        """Return the victim for `block`, which the process waits for, when no frame is free.

        `None` if no block is evictable; the method is then called again later.
        """
        raise NotImplementedError("a policy chooses a victim for a block that is missing")

    def served(self, position: int, block: int, hit: bool) -> None:
        """Note that the reference at `position` has been served; `hit`: its block was there or on its way."""

    def arrived(self, block: int, disk: int) -> None:
        """Note that a fetch has ended."""


class MistakeError(HeadstartError):
    """An error in a name or a key, split into the parts of the core's errors."""

    def __init__(self, key: str, problem: str, allowed: str) -> None:
        super().__init__(f"{problem}; allowed: {allowed}")
        self.key, self.problem, self.allowed = key, problem, allowed


_lock = threading.RLock()
_modules: dict[str, tuple[int, ModuleType]] = {}
"""By path: the modification time of the file, and its definitions."""
_named: dict[str, type[_Custom]] = {}
"""Classes passed to runs by this program, by the names that runs use."""
ALLOWED = 'a class of a file, such as "mine.py:Mine"'


def is_custom(name: str) -> bool:
    """Return whether a name refers to a Python class."""
    return ".py:" in name


def resolve(name: str, beside: str | os.PathLike[str] | None = None) -> tuple[type[_Custom], str, str, str]:
    """Return the class that "FILE.py:CLASS" names, its kind, its keys with their defaults in JSON, and its summary.

    A relative file is looked up in the working folder, then in `beside`.
    """
    with _lock:
        found = _named.get(name) or _load(name, beside)
        for base, method in ((Readahead, "requested"), (Replacement, "candidates"), (Policy, "victim")):
            if issubclass(found, base) and getattr(found, method) is getattr(base, method):
                raise MistakeError("name", f"{name} has no method {method}", f"a class that defines {method}")
        return found, kind_of(found), json.dumps(_defaults(found)), (found.__doc__ or "").strip().partition("\n")[0]


def kind_of(found: type[_Custom]) -> str:
    """Return the kind of a class: "policy", "replacement", or "read-ahead" or "predictor", with " with replacement"."""
    if issubclass(found, Policy):
        return "policy"
    if issubclass(found, Readahead):
        family = "read-ahead" if found.by_position else "predictor"
        return f"{family} with replacement" if issubclass(found, Replacement) else family
    return "replacement"


def _load(name: str, beside: str | os.PathLike[str] | None) -> type[_Custom]:
    path, _, class_name = name.rpartition(":")
    found = Path(path)
    if beside is not None and not found.is_absolute() and not found.exists() and (Path(beside) / found).exists():
        found = Path(beside) / found
    if not found.is_file():
        raise MistakeError("name", f"{path}: no such file", ALLOWED)
    module = _import(found)
    value = getattr(module, class_name, None)
    if not (isinstance(value, type) and issubclass(value, _Custom)):
        names = [each for each, value in vars(module).items() if _is_own(value, module)]
        problem = f'{path} has no policy "{class_name}"'
        raise MistakeError(
            "name", problem, ", ".join(names) or "a class derived from headstart.Policy, Readahead or Replacement"
        )
    return value


def _is_own(value: Any, module: ModuleType) -> bool:
    return isinstance(value, type) and issubclass(value, _Custom) and value.__module__ == module.__name__


def _import(path: Path) -> ModuleType:
    """Return the definitions of a file, which is executed once, and again if it has changed.

    It may import other files of its folder.
    """
    key, changed = str(path.resolve()), path.stat().st_mtime_ns
    if key in _modules and _modules[key][0] == changed:
        return _modules[key][1]
    spec = importlib.util.spec_from_file_location(f"headstart_custom_{abs(hash(key)):x}_{path.stem}", key)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = " ".join(f"{path}: {type(error).__name__}: {error}".split())
        raise MistakeError("name", line, "a file that Python can import") from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    _modules[key] = (changed, module)
    return module


def _parameters(found: type[_Custom]) -> dict[str, inspect.Parameter]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(found).parameters
    return {name: each for name, each in parameters.items() if each.kind in named}


def _defaults(found: type[_Custom]) -> dict[str, Any]:
    """Return the keys that have a default which a scenario can hold."""
    values = {name: each.default for name, each in _parameters(found).items()}
    return {name: value for name, value in values.items() if isinstance(value, bool | int | float | str)}


def make(found: type[_Custom], keys: str, name: str) -> _Custom:
    """Return an object of the class for one run, made of keys in JSON."""
    given, parameters = json.loads(keys), _parameters(found)
    allowed = ", ".join(parameters) or "no keys"
    for key in given:
        if key not in parameters:
            raise MistakeError(key, f"unknown key of {name}", allowed)
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in given:
            raise MistakeError(key, f"missing, and {name} has no default for it", f"{name}:{key}=VALUE")
    return found(**given)


def name_of(found: type[_Custom]) -> str:
    """Return the name by which runs find a class, from its file, or else from its module."""
    try:
        source = inspect.getsourcefile(found)
    except (OSError, TypeError):
        source = None
    path = Path(source) if source and source.endswith(".py") else Path(f"{found.__module__}.py")
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    base = name = f"{path}:{found.__name__}"
    with _lock:
        local, count = "<locals>" in found.__qualname__, 1
        while local and _named.get(name, found) is not found:
            count += 1
            name = f"{base}_{count}"
        _named[name] = found
    return name


def keys_of(policy: Any) -> Any:
    """Return the scenario value of a class (its name) or an object (its name and keys); otherwise `policy`."""
    if isinstance(policy, type) and issubclass(policy, _Custom):
        return name_of(policy)
    if isinstance(policy, _Custom):
        return {"name": name_of(type(policy)), **policy._keys}
    return policy


def text_of(policy: Any) -> Any:
    """Return the `--policies` text of a class or an object, such as "mine.py:Mine:depth=8"; otherwise `policy`."""
    keys = keys_of(policy)
    if keys is policy or isinstance(keys, str):
        return keys
    rest = {key: value for key, value in keys.items() if key != "name"}
    return ":".join([keys["name"], *(f"{key}={json.dumps(value)}" for key, value in rest.items())])


def section_of(policy: Any) -> Any:
    """Return the [policy] section of a policy; a replacement means demand fetching with it."""
    keys = keys_of(policy)
    name = keys.get("name") if isinstance(keys, Mapping) else keys
    if isinstance(name, str) and is_custom(name) and kind_of(resolve(name)[0]) == "replacement":
        return {"name": "demand", "replacement": name if isinstance(keys, str) or len(keys) == 1 else keys}
    return keys


def split(text: str) -> Iterator[str]:
    """Yield the parts of "NAME:REPLACEMENT:key=value", the name of a class as one part."""
    parts = iter(text.split(":"))
    for part in parts:
        if part.endswith(".py") and "=" not in part:
            yield f"{part}:{next(parts, '')}"
        else:
            yield part


def conformance(policy: Any) -> None:
    """Check that a policy meets the guarantees of its kind.

    The class runs in hundreds of small systems with fixed seeds. Victims must be in the cache with no process waiting
    for them, and a victim must be found whenever there is one. A read-ahead must name blocks of the requested file and
    accept any request. Every reference must be served. The same events must lead to the same decisions.

    Args:
        policy: A class derived from `Policy`, `Readahead` or `Replacement`, an object of one, or the name of one, such
            as "mine.py:Mine". Keys have their defaults.

    Raises:
        AssertionError: A guarantee is violated. The message gives the seed and the step.
        HeadstartError: There is no such class.
    """
    if isinstance(policy, _Custom):
        policy = type(policy)
    name = policy if isinstance(policy, str) else name_of(policy)
    resolve(name)
    try:
        _core.conformance(name)
    except HeadstartError as error:
        raise AssertionError(str(error)) from error
