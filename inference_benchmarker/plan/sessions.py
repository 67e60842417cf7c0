"""The parts of a plan that do not go with sessions, or go with nothing else. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import ClosedLoop

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan


def session_problem(plan: WavePlan, *, has_sessions: bool) -> tuple[str, str] | None:
    """The first thing in a plan that does not go with a file that has sessions, or has none; and what to try."""
    load, closed = plan.load, isinstance(plan.load, ClosedLoop)
    if plan.conversations is not None and not has_sessions:
        return (
            "--conversations is for an address of OpenAI's chat API, or a file with a session_factory.",
            "For rows that a payload_factory sends give --replay.",
        )
    if not has_sessions:
        if load.think is not None and not closed:
            return (
                "--think-time is for --concurrency, and for a file with a session_factory: in the open loop requests "
                "arrive whether or not users think.",
                "",
            )
        return None
    if plan.counts_requests:
        return (
            "--records none only counts requests; the result of a session is computed from the records of its turns.",
            "Leave --records out.",
        )
    if closed and load.steered:
        return (
            "--interactive changes a number of users, and the arrivals of this file are sessions.",
            "Give --client-rps with it, or leave it out.",
        )
    return None
