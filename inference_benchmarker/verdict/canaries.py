"""The findings on canaries: answers under load that are not those given alone. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.plan.expectation import canary_share
from inference_benchmarker.records.user_metrics import CANARY_DIFFERS, CANARY_SWAPPED, PREFIX
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.words.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts

_WHERE = "metric.{} in requests.parquet marks them, and the workers' logs show the first ones."


def canary_findings(facts: WaveFacts) -> Iterator[Finding]:
    """Requests that got another one's answer, and canaries that got another answer than alone."""
    if not canary_share(facts.plan.expect):
        return
    _, swapped = _reported_counts(facts, CANARY_SWAPPED)
    asked, differ = _reported_counts(facts, CANARY_DIFFERS)
    if swapped:
        yield Finding(
            "canary_swapped",
            "missed",
            f"{pluralize(swapped, 'request', 'requests')} got the answer to another request",
            "0",
            "The server, or a proxy in front of it, mixes up requests under this load. "
            f"{_WHERE.format(CANARY_SWAPPED)}",
        )
    if differ > swapped:
        yield Finding(
            "canary_differs",
            "warning",
            f"{differ:,} of {asked:,} canaries got another answer under load than alone",
            "0",
            "A few may come from rounding, which depends on the batch. Otherwise the load changes the server's "
            f"answers. {_WHERE.format(CANARY_DIFFERS)}",
        )


def _reported_counts(facts: WaveFacts, name: str) -> tuple[int, int]:
    """The number of requests that tell a metric, and of those where it is 1."""
    if name not in facts.records.metrics:
        return 0, 0
    number = ones = 0
    for part in facts.records.parts(PREFIX + name):
        values = part.metric(name)
        number += int(np.count_nonzero(~np.isnan(values)))
        ones += int(np.count_nonzero(values == 1))
    return number, ones
