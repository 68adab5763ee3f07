"""Closed-form models: a million results a second, without a simulation.

from headstart import model

found = model.file_system(drive="seagate-cheetah-4lp", streams=8, file_size="128KiB")
found.response_ns, found.seek_ns, found.rotation_ns, found.transfer_ns, found.busy

sizes = numpy.arange(1, 1001) * 65536
found = model.file_system(drive="seagate-cheetah-4lp", file_size=sizes[:, None], streams=numpy.arange(1, 9))
found.response_ns.shape == (1000, 8)

model.of_scenario("examples/file-system.toml", advise=True).advice
model.check("examples/file-system.toml").relative_error["response_ns"]

model.open_arrivals("examples/open-arrivals.toml").wait_ns

model.of_trace("examples/file-system-trace.toml").response_ns

found = model.competitive("ibm-36gb-10k")
found.average.mean.depth_bytes, found.guarantees[0].bound
"""

from headstart.model.competitive import Competitive, Defeat, Depth, Guarantee, Switch, competitive, defeat
from headstart.model.file_system import Drive, Response, file_system
from headstart.model.open_arrivals import OpenArrivals, check_open, open_arrivals
from headstart.model.scenarios import Advice, Check, ScenarioModel, check, of_scenario
from headstart.model.shriver99 import PLATFORMS
from headstart.model.traced import TraceModel, TraceParameters, check_trace, of_trace

__all__ = [
    "PLATFORMS",
    "Advice",
    "Check",
    "Competitive",
    "Defeat",
    "Depth",
    "Drive",
    "Guarantee",
    "OpenArrivals",
    "Response",
    "ScenarioModel",
    "Switch",
    "TraceModel",
    "TraceParameters",
    "check",
    "check_open",
    "check_trace",
    "competitive",
    "defeat",
    "file_system",
    "of_scenario",
    "of_trace",
    "open_arrivals",
]
