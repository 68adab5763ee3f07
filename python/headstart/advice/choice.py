"""The choice among policies that were measured."""

from collections.abc import Iterable, Mapping

from headstart.advice.result import BENEFIT_MIN
from headstart.advice.runs import LINUX, Measured, linux_depth

NEAR = 0.01
"""Costs and times within this share of the least count as equal."""


def eligible(measured: Mapping[str, Measured], settable: Iterable[str], *, streams: bool) -> list[str]:
    """Return the policies that may be recommended: not slower than demand, and wasting no more than they use.

    The caller guarantees that "demand" is measured. Without `streams` these are demand and Linux's default.
    """
    demand = measured["demand"].elapsed_ns
    plain = ("demand", LINUX)
    return [
        policy
        for policy in settable
        if policy in measured
        and measured[policy].elapsed_ns <= demand
        and (policy in plain or (streams and measured[policy].accurate))
    ]


def choose(measured: Mapping[str, Measured], settable: Iterable[str], *, streams: bool) -> str:
    """Return the policy to recommend: of those that can be set, the simplest within 1 % of the least cost.

    If no policy gains 5 %, it is Linux's default, or demand if that is faster.
    """
    usable = eligible(measured, settable, streams=streams)
    least = min(measured[policy].cost_ns for policy in usable)
    if not streams or least > (1 - BENEFIT_MIN) * measured["demand"].cost_ns:
        return LINUX if LINUX in usable else "demand"
    near = [policy for policy in usable if measured[policy].cost_ns <= (1 + NEAR) * least]
    return min(near, key=lambda policy: (_complexity(policy), measured[policy].cost_ns, policy))


def _complexity(policy: str) -> tuple[int, int]:
    """Return the order in which policies of the same speed are preferred: demand, Linux by depth, others."""
    depth = linux_depth(policy)
    return (1, policy.count(":")) if depth is None else (0, depth)


def ranked(measured: Mapping[str, Measured], policies: Iterable[str]) -> list[str]:
    """Return the policies that were measured, fastest first."""
    return sorted(
        (policy for policy in policies if policy in measured), key=lambda policy: (measured[policy].elapsed_ns, policy)
    )
