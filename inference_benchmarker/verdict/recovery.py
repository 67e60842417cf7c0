"""The finding on an endpoint that did not recover after the load fell. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.summary.recovery import FACTOR
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.words.wording import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.summary.summary import StageRow, Summary


def recovery_findings(summary: Summary) -> Iterator[Finding]:
    """One for each stage over capacity after which the endpoint was not as before while the wave lasted."""
    for place, row in enumerate(summary.stages):
        if row.recovery is None or row.recovery.recovery_s is not None:
            continue
        found = row.recovery
        now = "most users still got no answer"
        if found.after_s is not None:
            now = f"the median response time was still {duration_text(found.after_s)}"
        yield Finding(
            "not_recovered",
            "warning",
            f"in the {found.watched_s:g} s after stage {row.name}, {now}",
            f"{FACTOR:g} x the {duration_text(found.before_s)} of stage {found.before_stage}",
            _advice(summary.stages[place + 1 :]),
        )


def _advice(later: tuple[StageRow, ...]) -> str:
    """The cause is named where clients sent more than arrived: then the load did not fall when arrivals did."""
    repeats = [row.summary.repeats for row in later if row.summary.repeats is not None]
    arrivals, requests = sum(each.arrivals for each in repeats), sum(each.requests for each in repeats)
    if requests > arrivals:
        return (
            f"Clients that retry kept the load up ({requests / arrivals:.1f} requests per arrival afterwards): a "
            "longer --backoff, fewer --client-retries, or an endpoint that refuses what it cannot answer in time."
        )
    return "The backlog outlasts the load: observe it for longer, or limit the endpoint's queue."
