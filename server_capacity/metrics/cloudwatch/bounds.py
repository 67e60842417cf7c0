"""The bounds of CloudWatch's values, where idle time or others' requests are in them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server_capacity.metrics.cloudwatch.buckets import MINUTE, combination, combine, within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.facts.server_metric import Bound
    from server_capacity.metrics.cloudwatch.queries import Wanted
    from server_capacity.metrics.cloudwatch.reading import Reading

MOST = 0.75
"""The share of a window's buckets that a gauge must have values of, to be the window's."""
FEW_OTHERS = 0.001
"""The share of a bucket's requests that may be others', and leaves its trimmed means and percentiles what they are."""
OF_ITS_TAIL = 0.1
"""The share of the requests beyond a percentile that may be others': at p99.9, one in a thousand is all of them."""
OTHERS = 0.02
"""The share of the requests in the window's buckets that others may have sent, such as retries, for their mean."""

_OF_ALL: dict[str, Bound] = {"Sum": "at_most", "SampleCount": "at_most", "Maximum": "at_most", "Minimum": "at_least"}
"""The side on which the window's own value lies of that of more requests."""

Edges = tuple[float, float]


def side_of(reading: Reading, wanted: Wanted, statistic: str) -> Bound | None:
    """The side on which the window's own value lies, if idle time or other requests are in that of the buckets."""
    in_one_bucket = combination(statistic) == "none"
    if wanted.kind == "gauge":
        diluted = wanted.inside is None or (in_one_bucket and wanted.whole != wanted.inside)
        return "about" if diluted or few_buckets(reading, wanted) else None
    foreign, warmup = others_in(reading, wanted)
    if statistic in _OF_ALL:
        return _OF_ALL[statistic] if foreign + warmup > FEW_OTHERS else None
    if foreign > OTHERS or (in_one_bucket and foreign + warmup > _few_others(statistic)):
        return "about"
    return _in_one_bucket(reading, wanted, statistic) if in_one_bucket and wanted.whole is not None else None


def range_of(reading: Reading, wanted: Wanted, statistic: str, values: Mapping[str, float | None]) -> Edges | None:
    """The edges between which the mean of the window's own requests lies, where the warm-up's are in the buckets.

    With a share f of others, whose times are from 0 to the Maximum M, the mean m of all leaves those of the window
    (m - f M) / (1 - f) to m / (1 - f). None: all are the window's, or it is no mean.
    """
    mean, highest = values.get("Average"), values.get("Maximum")
    share = sum(others_in(reading, wanted))
    if statistic != "Average" or mean is None or not FEW_OTHERS < share < 1:
        return None
    low = 0.0 if highest is None else max(0.0, (mean - share * highest) / (1 - share))
    return low, mean / (1 - share)


def others_in(reading: Reading, wanted: Wanted) -> tuple[float, float]:
    """The shares of the requests in the window's buckets that others sent, and that are the warm-up's.

    Others' are those counted beyond ours. The warm-up is taken to be sent evenly, of which the first bucket holds what
    came after it began. Of a count both are in what it is of: the requests since the warm-up began.
    """
    interval, counter = reading.interval, reading.counter_of(wanted)
    if wanted.kind == "gauge" or interval.tasks or not interval.sent:
        return 0.0, 0.0
    total = None if counter is None and not wanted.counts else reading.total(counter or wanted)
    foreign = max(0.0, (total or 0.0) - interval.sent)
    warmup = 0.0
    if wanted.kind != "count" and (warm_s := interval.start - interval.begin) > 0:
        warmup = interval.warmup_sent * min(1.0, max(0.0, interval.start - wanted.around.start) / warm_s)
    own = interval.sent - (interval.warmup_sent if wanted.kind != "count" else 0)
    whole = own + foreign + warmup
    return (foreign / whole, warmup / whole) if whole else (0.0, 0.0)


def _in_one_bucket(reading: Reading, wanted: Wanted, statistic: str) -> Bound | None:
    """The side where one bucket is around the window's: it may hold others' requests, or be several."""
    others = others_held(reading, wanted)
    if others and others[0] > _few_others(statistic) * others[1]:
        return "about"
    if len(reading.answers[wanted.whole_id(statistic)].points) > 1:  # a percentile of all is at most the highest
        return "at_most" if statistic.startswith("p") else "about"
    return None


def _few_others(statistic: str) -> float:
    """The share of a bucket's requests that may be others', and leaves the statistic what it is."""
    if not statistic.startswith("p"):
        return FEW_OTHERS
    percent = float(statistic[1:])
    return min(FEW_OTHERS, OF_ITS_TAIL * min(percent, 100 - percent) / 100)


def few_buckets(reading: Reading, wanted: Wanted) -> tuple[int, int] | None:
    """The number of buckets inside the window of which a gauge has values, and of all of them; None: it has most."""
    if wanted.kind != "gauge" or wanted.inside is None or wanted.sparse:
        return None
    period = max(wanted.period, MINUTE) if reading.once_a_minute(wanted) else wanted.period
    due = wanted.inside.length // period
    came = len(within(dict.fromkeys(reading.buckets(wanted), 0.0), wanted.inside))
    return (came, due) if 0 < came < MOST * due else None


def others_held(reading: Reading, wanted: Wanted) -> tuple[float, float] | None:
    """The requests in the one bucket that are not in the window's buckets, and all in it; None: all are ours.

    CloudWatch may answer with several buckets: of all of them, as the value is.
    """
    if not wanted.surplus or wanted.whole is None:
        return None
    held = sum(reading.answers[wanted.surplus_id].points.values())
    ours = combine("SampleCount", {"SampleCount": reading.points(wanted, "SampleCount")}, wanted.around)
    return (held - ours, held) if ours is not None and held > ours else None
