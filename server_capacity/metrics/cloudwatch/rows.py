"""A judged poll as rows: each statistic over the right buckets, and every reason to doubt or to miss it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.verdict.server.known_metrics import hint, unit_of, unpublished
from server_capacity.metrics.cloudwatch.bounds import (
    FEW_OTHERS,
    few_buckets,
    others_held,
    others_in,
    range_of,
    side_of,
)
from server_capacity.metrics.cloudwatch.buckets import changes, combination, combine, within
from server_capacity.metrics.cloudwatch.warnings import long_enough

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from server_capacity.metrics.cloudwatch.queries import Wanted
    from server_capacity.metrics.cloudwatch.reading import Reading

STREAM = "cloudwatch"
SUGGESTIONS = 3


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of the waiting. ``ahead_s``: by how much the window was moved to CloudWatch's clock.

    ``similar``: under which dimensions CloudWatch has a (namespace, metric) of which nothing came.
    """

    interrupted: bool = False
    ahead_s: float = 0.0
    similar: Mapping[tuple[str, str], Sequence[dict[str, str]]] = field(default_factory=dict)


def rows(reading: Reading, ending: Ending) -> list[ServerMetric]:
    """A row for every metric, in the order of the configuration; what was not asked for comes last."""
    return [_row(reading, wanted, ending) for wanted in reading.wanted]


def _row(reading: Reading, wanted: Wanted, ending: Ending) -> ServerMetric:
    values, remarks = _values(reading, wanted)
    empty = reading.is_empty(wanted)
    failed = reading.failure(wanted) is not None
    may_be_empty = wanted.sparse and reading.absence(wanted) is None
    described = reading.description(wanted)
    span = wanted.inside or wanted.around
    known = [name for name, value in values.items() if value is not None]
    reason = "; ".join(
        dict.fromkeys(
            [
                *_missing(reading, wanted, ending, values),
                *([] if empty else remarks),
                *_unfinished(reading, wanted, ending),
                *_traffic(reading, wanted),
                *_scaling(reading, wanted),
                *_notes(reading, wanted, ending),
            ]
        )
    )
    return ServerMetric(
        stream=STREAM,
        name=wanted.name,
        statistics=values,
        unit=unit_of(wanted.namespace, wanted.name),
        namespace=wanted.namespace,
        dimensions=dict(wanted.dimensions),
        start=float(span.start),
        end=float(span.end),
        complete=reading.has_all(wanted) and not failed and (may_be_empty or not empty),
        reason=reason or None,
        series_of=wanted.series_of,
        series=_series(reading, wanted, wanted.series_of),
        instances=_instances(reading, wanted),
        bounds={name: side for name in known if (side := side_of(reading, wanted, name))},
        buckets={name: edges for name in known if (edges := range_of(reading, wanted, name, values))},
        asked=wanted.asked,
        hardware=described.hardware if described else None,
    )


def _values(reading: Reading, wanted: Wanted) -> tuple[dict[str, float | None], list[str]]:
    series = {statistic: reading.points(wanted, statistic) for statistic in wanted.series}
    values: dict[str, float | None] = {}
    remarks: list[str] = []
    for statistic in wanted.statistics:
        if combination(statistic) == "none":
            values[statistic], remark = _whole_value(reading, wanted, statistic)
        elif wanted.kind == "gauge":
            values[statistic], remark = _gauge_value(reading, wanted, statistic, series)
        else:
            values[statistic], remark = combine(statistic, series, wanted.around), ""
        remarks += [remark] if remark else []
    if few := few_buckets(reading, wanted):
        remarks.append(f"values came of {few[0]} of the {few[1]} buckets inside the window alone")
    return values, [*remarks, *_surplus(reading, wanted), *_of_warmup(reading, wanted)]


def _surplus(reading: Reading, wanted: Wanted) -> Iterator[str]:
    """The note on what the one bucket holds beyond the window's: a warm-up, a wave before it."""
    if wanted.whole is not None and (found := others_held(reading, wanted)):
        yield (
            f"{', '.join(wanted.wholes)} are of {wanted.whole.length} s, the shortest CloudWatch period that covers"
            f" the window: {found[0]:,.0f} of its {found[1]:,.0f} requests were sent outside the window"
        )


def _of_warmup(reading: Reading, wanted: Wanted) -> Iterator[str]:
    """The note that the warm-up's requests are in the window's buckets, too."""
    _, warmup = others_in(reading, wanted)
    if warmup > FEW_OTHERS:
        yield (
            f"about {warmup:.0%} of the requests in these buckets of {wanted.period} s are the warm-up's: use a shorter"
            " Period, or send for longer"
        )


def _whole_value(reading: Reading, wanted: Wanted, statistic: str) -> tuple[float | None, str]:
    """The value that only one bucket over the whole window can give."""
    if wanted.whole is None:
        return None, f"{statistic} needs one bucket over the whole window, and CloudWatch's longest is a day"
    points = reading.answers[wanted.whole_id(statistic)].points
    of_others = wanted.surplus and reading.is_empty(wanted)  # the bucket is longer than the window, which has nothing
    if not points or of_others:
        return None, ""
    if set(points) != {wanted.whole.start}:
        return max(points.values()), f"{statistic} is approximate: the highest of {len(points)} buckets"
    diluted = wanted.kind == "gauge" and wanted.whole != wanted.inside
    remark = f"{statistic} is of the buckets around the window, idle time too" if diluted else ""
    return points[wanted.whole.start], remark


def _gauge_value(
    reading: Reading, wanted: Wanted, statistic: str, series: Mapping[str, Mapping[int, float]]
) -> tuple[float | None, str]:
    if wanted.inside is None:
        highest = {"Average": "Maximum", "Maximum": "Maximum", "Sum": "Sum"}.get(statistic)
        found = within(series[highest], wanted.around) if highest else {}
        return max(found.values(), default=None), _short_window(reading, wanted)
    if statistic == "Sum":
        sums = within(series["Sum"], wanted.inside)
        mean = sum(sums.values()) / len(sums) if sums else None
        return mean, f"Sum is the mean of {len(sums)} buckets' sums" if len(sums) > 1 else ""
    return combine(statistic, series, wanted.inside), ""


def _short_window(reading: Reading, wanted: Wanted) -> str:
    loaded = reading.interval.under_load
    length = loaded.end - loaded.start
    return (
        f"no whole bucket of {wanted.period} s lies inside the {length:.1f} s of the window: Average and Maximum are"
        f" the Maximum of the buckets around it, which idle time dilutes; {long_enough(wanted.period)}"
    )


def _missing(reading: Reading, wanted: Wanted, ending: Ending, values: Mapping[str, float | None]) -> Iterator[str]:
    """Why a value is None: the query failed, nothing is there, or this statistic is not."""
    failure = reading.failure(wanted)
    if failure is not None:
        lost = [name for name, value in values.items() if value is None]
        yield f"{', '.join(lost)}: {failure.text}" if 0 < len(lost) < len(values) else failure.text
        return
    names = [name for name, _ in wanted.dimensions]
    if reading.is_empty(wanted):
        if too_old := no_longer_kept(wanted.period, reading.now - wanted.around.end):
            yield too_old
        elif absence := reading.absence(wanted):
            yield absence
            yield from _suggestions(wanted, ending)
        elif not ending.interrupted:
            yield f"CloudWatch has no data: {hint(wanted.namespace, wanted.name, names, wanted.statistics)}"
            if reading.never_came(wanted):
                yield "it had no values before the wave either: allow more time with --metrics-wait"
            yield from _suggestions(wanted, ending)
        return
    wholes = wanted.wholes if wanted.whole else ()
    gone = [each for each in wholes if not reading.answers[wanted.whole_id(each)].points]
    gone += [each for each in wanted.series if each in wanted.statistics and not reading.points(wanted, each)]
    if gone:
        why = unpublished(wanted.namespace, wanted.name, gone)
        yield f"there are no data for {', '.join(gone)}{f': {why}' if why else ''}"
    elif wanted.inside is not None and not within(dict.fromkeys(reading.buckets(wanted), 0.0), wanted.inside):
        yield "no values arrived for the buckets inside the window"


def _suggestions(wanted: Wanted, ending: Ending) -> Iterator[str]:
    found = ending.similar.get((wanted.namespace, wanted.name), ())
    given = dict(wanted.dimensions)
    others = [each for each in found if each != given]
    others.sort(key=lambda each: -len(each.items() & given.items()))
    if others:
        shown = " or ".join(_dimension_text(each) for each in others[:SUGGESTIONS])
        yield f"CloudWatch has {wanted.name} under {shown}"


def _unfinished(reading: Reading, wanted: Wanted, ending: Ending) -> Iterator[str]:
    if reading.has_all(wanted):
        return
    waited = max(0.0, reading.now - reading.interval.end)
    ended = (
        f"when the wait was interrupted, {waited:.0f} s after the window"
        if ending.interrupted
        else (f"{waited:.0f} s after the window")
    )
    if reading.failure(wanted) is None:
        counter = reading.counter_of(wanted)
        total = None if counter is None or reading.interval.tasks else reading.total(counter)
        if counter is not None and total is not None and total < reading.interval.sent:
            yield (
                f"CloudWatch had counted {total:,.0f} of the {reading.interval.sent:,} requests sent {ended}"
                " (some are still under way, did not reach the endpoint, or went to a part of it not listed)"
            )
        elif reading.interval.of_others and not ending.interrupted and not reading.is_empty(wanted):
            yield f"its last values had not arrived {ended}: nothing happened then, or CloudWatch is late"
        else:
            yield f"not all values had arrived {ended}"


def _traffic(reading: Reading, wanted: Wanted) -> Iterator[str]:
    """More requests than ours are in the numbers, or fewer: said where they are counted."""
    total = reading.total(wanted) if wanted.counts and not reading.interval.tasks else None
    sent = reading.interval.sent
    if total is not None and total < sent and reading.has_all(wanted):
        yield f"{sent - total:,.0f} of the {sent:,} requests sent were not counted: they had no answer either"
    if total is not None and total > sent:
        yield (
            f"CloudWatch counted {total:,.0f} requests, the wave sent {sent:,}: {total - sent:,.0f} came from elsewhere"
            " (other callers, another wave in the same buckets, or retries of the client) and are in these metrics"
        )


def _scaling(reading: Reading, wanted: Wanted) -> Iterator[str]:
    counts = [count for _, count in _instances(reading, wanted)]
    if len(counts) > 1 and counts[-1] < counts[-2]:  # the last bucket may not be full yet
        counts.pop()
    levels = changes(counts)
    if len(levels) < 2:
        return
    path = " -> ".join(f"{level:g}" for level in levels)
    described = reading.description(wanted)
    known = None if described is None or described.hardware is None else described.hardware.instances
    if known is None:
        yield (
            f"its samples per bucket changed during the window ({path}): instances were added or removed, or "
            "published at another rate; values per instance may be a mixture"
        )
    elif known in (levels[0], levels[-1]):
        yield f"the number of instances reporting changed during the window ({path}): values per instance are a mixture"


def _notes(reading: Reading, wanted: Wanted, ending: Ending) -> Iterator[str]:
    if abs(ending.ahead_s) > 0:
        side = "behind" if ending.ahead_s > 0 else "ahead of"
        yield f"this client's clock is {abs(ending.ahead_s):.0f} s {side} CloudWatch's; the window was moved by that"
    if reading.once_a_minute(wanted):
        yield (
            f"{wanted.name} came once a minute: use a Period of 60, or let the endpoint publish more often"
            " (MetricsConfig, MetricPublishFrequencyInSeconds)"
        )
    for query in wanted.queries():
        if note := reading.answers[query.id].note:
            yield f"CloudWatch remarks: {note}"


def _series(reading: Reading, wanted: Wanted, statistic: str) -> tuple[tuple[float, float], ...]:
    points = within(reading.points(wanted, statistic), wanted.around)
    return tuple((float(bucket), value) for bucket, value in points.items())


def _instances(reading: Reading, wanted: Wanted) -> tuple[tuple[float, float], ...]:
    """A utilization has one sample a bucket from each instance, so its SampleCount counts them, where any may be."""
    if wanted.kind != "gauge" or "Utilization" not in wanted.name or reading.was_never(wanted):
        return ()
    return _series(reading, wanted, "SampleCount")


def _dimension_text(dimensions: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in dimensions.items()) or "no dimensions"


DAY_S = 86_400.0
KEPT_S = {1: 3 * 3600.0, 60: 15 * DAY_S, 300: 63 * DAY_S, 3600: 455 * DAY_S}
"""Buckets of so many seconds or more, kept for so many ("Metrics retention" in Amazon CloudWatch's user guide)."""


def no_longer_kept(period: int, age_s: float) -> str | None:
    """The sentence for a window that is older than what CloudWatch keeps of the period; None where it is not."""
    shortest = max(each for each in KEPT_S if each <= period)
    if age_s <= KEPT_S[shortest]:
        return None
    longer = next((each for each, kept_s in KEPT_S.items() if age_s <= kept_s), None)
    if longer is None:
        return f"CloudWatch keeps nothing for longer than {_text(max(KEPT_S.values()))}"
    return f"CloudWatch keeps buckets of {period} s for {_text(KEPT_S[shortest])}: use a Period of {longer}"


def _text(seconds: float) -> str:
    return f"{seconds / DAY_S:.0f} days" if seconds >= DAY_S else f"{seconds / 3600:.0f} hours"
