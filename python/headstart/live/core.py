"""Commands of this machine in the core: options in, a report out. The core's structs name, type and document both."""

import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from headstart import _core
from headstart._input import whole

INT_MAX = 2**63 - 1


class Record(dict[str, Any]):
    """A report of the core. Its fields are keys and attributes; docs describe each of them."""

    def __getattr__(self, name: str) -> Any:
        """Return a field."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the report has no field {name}") from None

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Return the report that `text` holds."""
        report: Record = json.loads(text, object_hook=cls)
        return report

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain dictionaries and lists."""
        plain: dict[str, Any] = json.loads(json.dumps(self))
        return plain


def command(name: str, options: Mapping[str, object], progress: Callable[[Any], object] | None = None) -> Record:
    """Run a command of the core with `options`, without those that are `None`; return its report.

    `progress` receives the command's progress reports. A true return value or an exception ends the command.

    Raises:
        HeadstartError: An option is wrong, or the command fails.
    """
    given = {key: value for key, value in options.items() if value is not None}
    for key, value in given.items():
        # The core checks ranges, but cannot read numbers beyond these.
        if isinstance(value, int) and not -INT_MAX <= value <= INT_MAX:
            whole(key, value, most=INT_MAX)
        if isinstance(value, float) and not math.isfinite(value):
            raise _core.HeadstartError(f"{key}: {value} is out of range; allowed: a finite number")
    tell = None if progress is None else lambda text: progress(json.loads(text, object_hook=Record))
    return Record.from_json(_core.command(name, json.dumps(given, default=_plain), on_progress=tell))


def told(progress: Callable[..., object] | None) -> Callable[[list[object]], None] | None:
    """Return a callback that passes the parts of a report to `progress`; only an exception ends the command."""
    if progress is None:
        return None

    def tell(parts: list[object]) -> None:
        progress(*parts)

    return tell


def _plain(value: Any) -> Any:
    """Return a mapping, a sequence or a path in a form for JSON."""
    if isinstance(value, Mapping):
        return dict(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else list(value)
