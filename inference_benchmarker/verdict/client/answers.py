"""The findings on what ``invoke`` made of its answers: these may count as what they are not. Pure."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.words.wording import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from inference_benchmarker.facts.client_use import WorkerUse
    from inference_benchmarker.verdict.client.evidence import Evidence

QUICK_S = 0.001
"""A median latency below this is that of no network but the loopback's."""


def answer_findings(evidence: Evidence) -> Iterator[Finding]:
    """The findings on answers that count as something else than their response, or had none."""
    for check in (_hidden_statuses, _textless_streams, _no_connection):
        yield from check(evidence)


def answer_warnings(waves: Sequence[Evidence]) -> Iterator[str]:
    """Clauses on all that speaks against counting the answers of several waves as a success."""
    workers = [worker for evidence in waves for worker in evidence.workers]
    if hidden := _hidden(workers, sum(evidence.summary.ledger.ok for evidence in waves)):
        yield hidden
    yield from islice((found.measured for evidence in waves for found in _no_connection(evidence)), 1)


def _hidden_statuses(evidence: Evidence) -> Iterator[Finding]:
    if hidden := _hidden(evidence.workers, evidence.summary.ledger.ok):
        yield Finding(
            "hidden_statuses",
            "warning",
            hidden,
            "0",
            "They count as ok because invoke returned no status: call raise_for_status() in it, or return the response "
            "itself, unless such an answer is as good as any.",
        )


def _hidden(workers: Iterable[WorkerUse], ok: int) -> str:
    """The number of requests that count as ok though their response had failed, in words; empty where none did."""
    hidden: Counter[str] = Counter()
    for worker in workers:
        hidden.update(worker.answers.hidden)
    if not hidden:
        return ""
    each = ", ".join(f"{status}: {count:,}" for status, count in hidden.most_common())
    return f"{sum(hidden.values()):,} of {ok:,} ok requests received a response with a status from 400 on ({each})"


def _textless_streams(evidence: Evidence) -> Iterator[Finding]:
    if count := sum(worker.answers.textless for worker in evidence.workers):
        yield Finding(
            "textless_streams",
            "warning",
            f"{count:,} streams had pieces that show no text",
            "0",
            "They have neither TTFT nor a number of tokens: yield the text of each piece.",
        )


def _no_connection(evidence: Evidence) -> Iterator[Finding]:
    """Nothing was sent anywhere, as far as was seen; it may be that a function in this process is measured."""
    latency = evidence.summary.latency
    if latency is None or not evidence.workers or latency.percentile(50) >= QUICK_S:
        return
    if all(worker.connections.seen is False for worker in evidence.workers):
        yield Finding(
            "no_connection",
            "warning",
            f"no worker opened a connection, and the median latency is {duration_text(latency.percentile(50))}",
            "1 connection",
            "If invoke is to send requests, it sends none: `benchmark check` shows what it returns.",
        )
