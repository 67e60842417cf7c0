"""The finding on a wave that was ended before its plan's end, by itself. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.plan.abort_on import AbortOn
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import duration_text, length_text, percent_text, pluralize, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.aborted import Aborted
    from inference_benchmarker.facts.wave_facts import WaveFacts

DEAD_S = 3
"""An endpoint is dead where for at least so long each request failed before a connection stood."""
LEAST_MEMORY = 0.1
"""The wave ends where less is left of the memory that was free when its processes started: the kernel kills at 0."""


def abort_findings(facts: WaveFacts) -> Iterator[Finding]:
    """A threshold that was missed while the wave ran, so that it was not worth its time; or no memory was left."""
    aborted, stopped = facts.aborted, facts.window.stopped_at_ns
    if aborted is None or stopped is None:
        return
    if aborted.worker is not None:
        yield Finding(
            "worker_memory",
            "invalid",
            f"the wave was ended after {length_text(stopped / NS)}: {aborted_text(aborted)}",
            f"{percent_text(LEAST_MEMORY)} of the memory that was free at the start",
            "The kernel would have killed it and its records. Check what invoke keeps in memory: whole answers, "
            "payloads, sessions. Read large answers piece by piece, or use a machine with more memory.",
        )
        return
    dead = aborted.by_dead_endpoint
    yield Finding(
        "aborted",
        "missed",
        f"after {length_text(stopped / NS)}: {aborted_text(aborted)}",
        f"{DEAD_S} s" if dead else aborted.condition,
        "Is the endpoint running, and is this its URL? Use --no-abort to continue regardless."
        if dead
        else "All numbers cover the time until then: check the errors and latencies, or relax --abort-on.",
    )


def aborted_text(aborted: Aborted) -> str:
    """The last seconds of the wave in a few words."""
    if aborted.worker is not None:
        return f"worker {aborted.worker} took {size_text(int(aborted.measured or 0))}, and almost no memory was left"
    requests = pluralize(aborted.requests, "request", "requests")
    if aborted.measured is None:
        return f"{requests} without a connection, over {aborted.over_s} s"
    condition = AbortOn.parse(aborted.condition).condition
    if condition.metric == "success":
        name, value = "success", percent_text(aborted.measured, condition.limit)
    else:
        name = condition.stat if condition.metric == "default" else f"{condition.metric}.{condition.stat}"
        value = duration_text(aborted.measured, condition.limit)
    return f"{name} {value} of {requests} over {aborted.over_s} s"
