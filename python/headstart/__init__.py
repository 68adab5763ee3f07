"""headstart: prefetching and caching for storage, simulated on real traces and disks.

    result = headstart.simulate("scenario.toml")
    result.elapsed_ns, result.stall_ns, result.to_dict()
    advice = headstart.advise("trace.csv.xz", device="nvme")
    frame = headstart.compare("trace.csv.xz", policies=["demand", "forestall"], disks=[1, 4])

Names that end in `_ns` are times in whole nanoseconds, `_bytes` are sizes in bytes, and shares and ratios are 0 to 1. A
size that a function takes is a number with a unit ("10MiB") or a number of bytes or blocks, as its text says.

Errors of the caller raise `HeadstartError` (a `ValueError`) with a one-line message. Internal errors of headstart raise
`InternalError`, a subclass of it.
"""

# `headstart run` loads this file, and `typing` takes half as long as Python itself.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headstart import devices, fsspec, model, parquet, plot, results, timelines, torch, zarr
    from headstart._core import HeadstartError, InternalError, __version__
    from headstart.advice import Advice, advise
    from headstart.advice.order import OrderAdvice, advise_order
    from headstart.custom import Cache, Hints, Policy, Readahead, Replacement, Request, conformance
    from headstart.devices import Device, device
    from headstart.live import forecast as forecasting
    from headstart.live import play as playing
    from headstart.live import record as recording
    from headstart.live import tune as tuning
    from headstart.live.emulate import emulate
    from headstart.live.parallel import play
    from headstart.live.profile import profile
    from headstart.live.serve import serve
    from headstart.live.store import Store, store
    from headstart.memory import Trace
    from headstart.registry import catalog, schema
    from headstart.runs.compare import compare
    from headstart.runs.curve import Curve, curve
    from headstart.simulation import Result, Traces, explain, lower_bound, simulate
    from headstart.sweeps import sweep
    from headstart.trace import trace_convert, trace_filter, trace_generate, trace_info

_MODULE_OF = {
    "HeadstartError": "headstart._core",
    "InternalError": "headstart._core",
    "__version__": "headstart._core",
    "Advice": "headstart.advice",
    "advise": "headstart.advice",
    "OrderAdvice": "headstart.advice.order",
    "advise_order": "headstart.advice.order",
    "compare": "headstart.runs.compare",
    "Cache": "headstart.custom",
    "Hints": "headstart.custom",
    "Policy": "headstart.custom",
    "Readahead": "headstart.custom",
    "Replacement": "headstart.custom",
    "Request": "headstart.custom",
    "conformance": "headstart.custom",
    "Curve": "headstart.runs.curve",
    "curve": "headstart.runs.curve",
    "Device": "headstart.devices",
    "device": "headstart.devices",
    "emulate": "headstart.live.emulate",
    "play": "headstart.live.parallel",
    "Trace": "headstart.memory",
    "Traces": "headstart.simulation",
    "profile": "headstart.live.profile",
    "catalog": "headstart.registry",
    "schema": "headstart.registry",
    "serve": "headstart.live.serve",
    "Store": "headstart.live.store",
    "store": "headstart.live.store",
    "Result": "headstart.simulation",
    "explain": "headstart.simulation",
    "lower_bound": "headstart.simulation",
    "simulate": "headstart.simulation",
    "sweep": "headstart.sweeps",
    "trace_convert": "headstart.trace",
    "trace_filter": "headstart.trace",
    "trace_generate": "headstart.trace",
    "trace_info": "headstart.trace",
}
"""The module of each public name. Modules are loaded on first use: loading all of them takes a third of a
second, and `headstart run` needs none."""
_MODULES = {
    "devices": "devices",
    "forecasting": "live.forecast",
    "fsspec": "fsspec",
    "model": "model",
    "parquet": "parquet",
    "playing": "live.play",
    "plot": "plot",
    "recording": "live.record",
    "results": "results",
    "timelines": "timelines",
    "torch": "torch",
    "tuning": "live.tune",
    "zarr": "zarr",
}
"""The public modules, and their places in the package."""


def __getattr__(name: str) -> "Any":
    """Load a public name on its first use."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"headstart.{_MODULES[name]}")
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'headstart' has no attribute '{name}'")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__


__all__ = [
    "Advice",
    "Cache",
    "Curve",
    "Device",
    "HeadstartError",
    "Hints",
    "InternalError",
    "OrderAdvice",
    "Policy",
    "Readahead",
    "Replacement",
    "Request",
    "Result",
    "Store",
    "Trace",
    "Traces",
    "__version__",
    "advise",
    "advise_order",
    "catalog",
    "compare",
    "conformance",
    "curve",
    "device",
    "devices",
    "emulate",
    "explain",
    "forecasting",
    "fsspec",
    "lower_bound",
    "model",
    "parquet",
    "play",
    "playing",
    "plot",
    "profile",
    "recording",
    "results",
    "schema",
    "serve",
    "simulate",
    "store",
    "sweep",
    "timelines",
    "torch",
    "trace_convert",
    "trace_filter",
    "trace_generate",
    "trace_info",
    "tuning",
    "zarr",
]
