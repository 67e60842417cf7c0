"""The requests at the server: errors, queues, models to load, cold starts, other callers. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from inference_benchmarker.verdict.error_kinds import REFUSAL, SERVER_ERROR
from inference_benchmarker.verdict.server.cold_start import ColdStart, cold_start
from inference_benchmarker.verdict.server.hardware_use import PLANNED
from inference_benchmarker.verdict.server.known_metrics import (
    BALANCER,
    BEDROCK,
    INSTANCES,
    LAMBDA,
    SAGEMAKER,
    log_groups,
)
from inference_benchmarker.verdict.server.platform_metrics import MOST_ERRORS, PlatformMetrics, Remark
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import duration_text, percent_text, rate_text

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.server_metric import ServerLog, ServerMetric
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.verdict.server.platform_metrics import Place

LEAST_HITS = 0.95
CROWDED = 2.0
LEAST_WAITING = 0.5

_SERVER_ERRORS = (
    (SAGEMAKER, "Invocation5XXErrors"),
    (BALANCER, "HTTPCode_Target_5XX_Count"),
    (LAMBDA, "Errors"),
    (BEDROCK, "InvocationServerErrors"),
)
_REFUSALS = (
    (SAGEMAKER, "Invocation4XXErrors"),
    (BALANCER, "HTTPCode_Target_4XX_Count"),
    (LAMBDA, "Throttles"),
    (BEDROCK, "InvocationClientErrors"),
)
_MOST_OF_A_REASON, _MOST_OF_A_LINE = 600, 160
_BEFORE_S = 5.0
"""A log is read from so long before the first server error on."""


def failing_since(platform: PlatformMetrics) -> float | None:
    """The seconds after the wave's start at which the log gets interesting; None: no server error ended a request."""
    seen = [row.first_s for row in platform.summary.errors if SERVER_ERROR.search(row.key)]
    if seen:
        return max(0.0, min(seen) - _BEFORE_S)
    return 0.0 if _error_count(platform, _SERVER_ERRORS, SERVER_ERROR)[0] else None


def error_remarks(platform: PlatformMetrics) -> Iterator[Remark]:
    """Errors, whose fault they are, and where to look."""
    for rule in (_errors, _logs, _refusals):
        yield from rule(platform)


def request_remarks(platform: PlatformMetrics) -> Iterator[Remark]:
    """Each of these that was seen."""
    for rule in (_crowded, _waiting, _models, _cold, _foreign):
        yield from rule(platform)


def _errors(platform: PlatformMetrics) -> Iterator[Remark]:
    errors, whose, counted = _error_count(platform, _SERVER_ERRORS, SERVER_ERROR)
    if not errors or not counted:
        return
    advice = [] if platform.facts.server_logs else [_where_to_look(platform)]
    used = max(platform.shares, default=None)
    if used is not None and used < PLANNED and errors >= MOST_ERRORS * counted:
        advice.append(
            f"The hardware was not saturated ({used:.0%}): check the container's settings: workers, queue sizes, "
            "timeouts and memory limits."
        )
    share = percent_text(errors / counted)
    yield Remark(
        "server_errors",
        f"{errors:,.0f} of {counted:,.0f} requests ended in a server error ({share}, {whose})",
        " ".join(advice),
    )


def _refusals(platform: PlatformMetrics) -> Iterator[Remark]:
    refused, whose, counted = _error_count(platform, _REFUSALS, REFUSAL)
    if refused and counted:
        share = percent_text(refused / counted)
        yield Remark(
            "refused",
            f"{refused:,.0f} of {counted:,.0f} requests were refused ({share}, {whose})",
            "The errors above say why: throttling (429) needs more capacity or fewer concurrent requests; the "
            "others need another payload, a smaller one, or permissions.",
        )


def _error_count(platform: PlatformMetrics, places: Sequence[Place], key: re.Pattern[str]) -> tuple[float, str, float]:
    """The number by the server's count, else by the client's; whose count it is; and of how many requests."""
    sent = float(platform.facts.ledger.sent)
    for place in places:
        if (total := platform.total(*place)) is not None:
            return total, f"by {place[1]}", platform.invocations or sent
    keyed = sum(row.count for row in platform.summary.errors if key.search(row.key))
    return float(keyed), "by the client's count", sent


def _where_to_look(platform: PlatformMetrics) -> str:
    groups = dict.fromkeys(group for row in platform.metrics for group in log_groups(row.dimensions))
    return f"CloudWatch's log group {' or '.join(groups)} says why." if groups else "The server's log says why."


def _logs(platform: PlatformMetrics) -> Iterator[Remark]:
    """The remarks on the lines that the endpoint wrote while requests failed."""
    for log in platform.facts.server_logs or ():
        group = one_line(log.group, _MOST_OF_A_REASON)
        lines = tuple(f"{line.count:,} x {one_line(line.text, _MOST_OF_A_LINE)}" for line in log.lines)
        yield Remark(
            "server_log", f"CloudWatch's log group {group} {_reading(log, platform.facts)}", _kind_of_lines(log), lines
        )


def _reading(log: ServerLog, facts: WaveFacts) -> str:
    """The number of lines read, of which time, and why not all, if so."""
    count = f"{log.events:,}" if log.events else "no"
    after_s = log.start - facts.window.start_unix_ns / NS
    since = f"from second {after_s:.0f} of the wave on" if after_s >= 1 else "of the wave's window"
    events = f"{count} event{'s' * (log.events > 1)} {since}"
    if log.reason is None:
        return f"has {events}"
    why = one_line(log.reason, _MOST_OF_A_REASON)
    return f"was read in part, its first {events}: {why}" if log.events else f"was not read: {why}"


def _kind_of_lines(log: ServerLog) -> str:
    if log.errors:
        return "The most frequent lines that look like errors:"
    if log.lines:
        return "No line looks like an error. The most frequent:"
    return "" if log.reason else "Log lines may arrive late: `benchmark report DIR --endpoint-config FILE` asks again."


def _waiting(platform: PlatformMetrics) -> Iterator[Remark]:
    """Queues that inference servers report of themselves."""
    queues = [row for row in platform.metrics if row.stream == "prometheus" and row.name == "queue_length"]
    for row in queues:
        waiting, most = row.statistics.get("Average"), row.statistics.get("Maximum")
        if (waiting or 0) > LEAST_WAITING:
            top = "" if most is None else f", peak {most:,.4g}"
            yield Remark(
                "queueing",
                f"{waiting:,.3g} requests waited at the server on average{top}{_which(row, queues)}",
                "More requests arrive than it serves at once: use more replicas or larger batches, or send less.",
            )


def _which(row: ServerMetric, rows: Sequence[ServerMetric]) -> str:
    """The labels that tell a row from the others."""
    common = set.intersection(*(set(each.dimensions.items()) for each in rows))
    own = [f"{name}={value}" for name, value in row.dimensions.items() if (name, value) not in common]
    return f" ({', '.join(own)})" if own else ""


def _crowded(platform: PlatformMetrics) -> Iterator[Remark]:
    """Little's law: rate x time at the model are at work at a time; Poisson arrivals vary by the root of that."""
    most = platform.largest(SAGEMAKER, "ConcurrentRequestsPerModel")
    model = platform.mean_s(SAGEMAKER, "ModelLatency")
    if most is None or model is None or not platform.is_request_per_record:
        return
    at_work = platform.summary.rates.sent * model
    if most <= CROWDED * at_work + 3 * math.sqrt(at_work) + 1:
        return
    yield Remark(
        "queueing",
        f"Up to {most:,.0f} requests were in the endpoint at once, but about {at_work:,.3g} are expected "
        f"({rate_text(platform.summary.rates.sent)} x ModelLatency {duration_text(model)})",
        "Requests queued for the model at times: check latency over time (timeline.csv) for pauses or bursts, or add "
        "model workers.",
    )


def _models(platform: PlatformMetrics) -> Iterator[Remark]:
    """Multi-model endpoints: whether models were in memory when they were asked."""
    hits = platform.average(SAGEMAKER, "ModelCacheHit")
    if hits is None:
        return
    waits = platform.mean_s(SAGEMAKER, "ModelLoadingWaitTime")
    loaded = platform.largest(INSTANCES, "LoadedModelCount")
    lines = [f"{percent_text(hits)} of the requests found their model in memory"]
    lines += [] if waits is None else [f"the others waited {duration_text(waits)} for it on average"]
    lines += [] if loaded is None else [f"at most {loaded:,.0f} models were loaded"]
    advice = (
        "Models evict each other: use instances with more memory, more instances, or fewer models per endpoint, and "
        "let the warm-up call every model once."
    )
    yield Remark("model_cache", ", ".join(lines), advice if hits < LEAST_HITS else "")


def _cold(platform: PlatformMetrics) -> Iterator[Remark]:
    found = cold_start(platform.facts)
    if found is None:
        return
    which = "The first request took" if found.count == 1 else f"The first {found.count} requests took"
    of = "" if found.count == 1 else " (median)"
    measured = (
        f"{which} {duration_text(found.first_s)}{of}, the rest {duration_text(found.rest_s)}; "
        f"latency settled {duration_text(found.until_s)} into the wave"
    )
    warmup_s = platform.facts.plan.warmup_ns / NS
    if found.until_s <= warmup_s:
        advice = f"The warm-up of {warmup_s:g} s absorbed it: no number of the wave includes it."
    else:
        advice = f"{_why_slow(platform, found)}: use --warmup {math.ceil(found.until_s) + 1} to exclude it."
    yield Remark("cold_start", measured, advice)


def _why_slow(platform: PlatformMetrics, found: ColdStart) -> str:
    """Whose start it was, by what the client was found doing or the server reports; neither is called a cold start.

    Half of what the first ones took longer must be seen on a side.
    """
    half = (found.first_s - found.rest_s) / 2
    if platform.longest_hold_s >= half:
        return (
            "That is mostly this client's own start-up, since its code ran for "
            f"{duration_text(platform.longest_hold_s)} without a break (a library loads at the first call)"
        )
    longest = platform.server_longest_s
    if longest is None:
        return "These numbers include the endpoint's cold start, or this client's first connections"
    if longest >= half:
        return f"These numbers include a cold start (the server took up to {duration_text(longest)})"
    return (
        f"The endpoint took {duration_text(longest)} at most, so the time went to the network or this client (first "
        "connections, a library's first call)"
    )


def _foreign(platform: PlatformMetrics) -> Iterator[Remark]:
    counted, sent = platform.invocations, platform.facts.ledger.sent + platform.facts.warmup_sent
    unknown = platform.facts.plan.locust_file or platform.facts.lost_workers  # how many requests were ours
    if counted is not None and counted > sent and not unknown:
        yield Remark(
            "foreign_traffic",
            f"The server counted {counted:,.0f} requests, this wave sent {sent:,}: {counted - sent:,.0f} came from "
            "elsewhere and are part of the server's metrics",
            "Likely causes: other callers, another wave in the same period (leave an idle period between waves), or "
            "retries by the client library.",
        )
