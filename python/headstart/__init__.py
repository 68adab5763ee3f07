"""headstart: prefetching and caching for storage, simulated on real traces and disks.

    result = headstart.simulate("scenario.toml")
    result.elapsed_ns, result.stall_ns, result.to_dict()
    advice = headstart.advise("trace.csv.xz", device="nvme")
    frame = headstart.compare("trace.csv.xz", policies=["demand", "forestall"], disks=[1, 4])

Every mistake of the caller is a `HeadstartError` (a `ValueError`) whose text is one line. A fault of headstart itself
is an `InternalError`, which is one too.
"""

from headstart import model, plot, results, tuning
from headstart._core import HeadstartError, InternalError, __version__
from headstart.advice import Advice, advise
from headstart.comparison import compare
from headstart.devices import Device, device
from headstart.emulation import emulate
from headstart.live import play
from headstart.memory import Trace
from headstart.profiling import profile
from headstart.registry import catalog, schema
from headstart.simulation import Result, Traces, explain, lower_bound, simulate
from headstart.traces import trace_convert, trace_generate, trace_info

__all__ = [
    "Advice",
    "Device",
    "HeadstartError",
    "InternalError",
    "Result",
    "Trace",
    "Traces",
    "__version__",
    "advise",
    "catalog",
    "compare",
    "device",
    "emulate",
    "explain",
    "lower_bound",
    "model",
    "play",
    "plot",
    "profile",
    "results",
    "schema",
    "simulate",
    "trace_convert",
    "trace_generate",
    "trace_info",
    "tuning",
]
