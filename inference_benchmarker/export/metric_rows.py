"""The metrics that a wave exports: a row for each, with its name, type, help and value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.export.buckets import COARSE_S, Buckets, buckets_of
from inference_benchmarker.export.figures import MOST_ERRORS, PENDING, Figures
from inference_benchmarker.export.metric import NO_UNIT, PER_SECOND, REQUESTS, SECONDS, TOKENS, Kind, Metric, Point
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.records.names import OTHER
from inference_benchmarker.records.record import ENDINGS, OUTCOMES
from inference_benchmarker.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.summary.hosts import HostRow

_Rows = Iterable[tuple[dict[str, str], float]]
WORDS = ("VALID", "INVALID", PENDING)


class _Row(NamedTuple):
    """A counter or gauge: its points of one run are what ``of`` gives, without the run's own labels."""

    name: str
    kind: Kind
    unit: str
    about: str
    of: Callable[[Figures], _Rows]

    def metric(self, figures: list[Figures]) -> Metric:
        """It, of all runs."""
        points = (Point({**each.labels, **labels}, value) for each in figures for labels, value in self.of(each))
        return Metric(self.name, self.kind, self.unit, self.about, tuple(points))


def _of_ledger(name: str) -> Callable[[Figures], _Rows]:
    return lambda each: [({}, getattr(each.count.ledger, name))]


def _outcomes(each: Figures) -> _Rows:
    ledger = each.count.ledger
    return _by("outcome", {"ok": ledger.ok, "failed": ledger.failed, "abandoned": ledger.abandoned})


def _has_sessions(each: Figures) -> bool:
    ledger = each.count.ledger
    return ledger.later_turns > 0 or any(getattr(ledger, f"sessions_{ending}") for ending in ENDINGS)


def _of_sessions(each: Figures) -> _Rows:
    return [({}, each.count.ledger.arrivals)] if _has_sessions(each) else []


def _endings(each: Figures) -> _Rows:
    ended = {ending: getattr(each.count.ledger, f"sessions_{ending}") for ending in ENDINGS}
    return _by("ended", ended) if _has_sessions(each) else []


def _open_sessions(each: Figures) -> _Rows:
    return [({}, each.count.ledger.sessions_open)] if _has_sessions(each) else []


def _errors(each: Figures) -> _Rows:
    """Those that came first have a series each, whatever comes later."""
    failed = each.count.cell.failed
    own = dict([pair for pair in failed.items() if pair[0] != OTHER][:MOST_ERRORS])
    rest = failed.total() - sum(own.values())
    return _by("error", {**own, **({OTHER: rest} if rest else {})})


def _of_labels(each: Figures) -> _Rows:
    for name, found in each.count.named.labels.items():
        for outcome in OUTCOMES:
            yield {"label": name, "outcome": outcome}, getattr(found, outcome)


def _of_turns(each: Figures) -> _Rows:
    for name, found in each.count.turns.items():
        for outcome, count in (("ok", found.ok), ("failed", found.errors), ("abandoned", found.abandoned)):
            yield {"turn": name, "outcome": outcome}, count


def _by(label: str, counts: dict[str, int]) -> _Rows:
    return [({label: name}, count) for name, count in counts.items()]


def _rate(name: str) -> Callable[[Figures], _Rows]:
    def rows(each: Figures) -> _Rows:
        value = getattr(each.now, name)
        return [] if value is None else [({}, value)]

    return rows


def _verdict(each: Figures) -> _Rows:
    word = None if each.now.verdict is None else each.now.verdict.word
    return [] if word is None else _by("verdict", {known: int(known == word) for known in WORDS})


def _exit_code(each: Figures) -> _Rows:
    return [] if each.now.verdict is None else [({}, each.now.verdict.exit_code)]


def _findings(each: Figures) -> _Rows:
    """Several of a code and severity are one: their numbers are in the report."""
    findings = () if each.now.verdict is None else each.now.verdict.findings
    kinds = dict.fromkeys((finding.code, finding.severity) for finding in findings)
    return [({"code": code, "severity": severity}, 1) for code, severity in kinds]


def _of_hosts(value: Callable[[HostRow], float | None]) -> Callable[[Figures], _Rows]:
    def rows(each: Figures) -> _Rows:
        values = ((row.host.name, value(row)) for row in each.now.hosts)
        return [({"host": name}, figure) for name, figure in values if figure is not None]

    return rows


def _clock(name: str) -> Callable[[HostRow], float | None]:
    return lambda row: None if row.host.clock is None else getattr(row.host.clock, name)


_ROWS = (
    _Row("requests.sent", "counter", REQUESTS, "Requests sent, without the warm-up.", _of_ledger("sent")),
    _Row("requests", "counter", REQUESTS, "Finished requests, by outcome.", _outcomes),
    _Row(
        "requests.repeated",
        "counter",
        REQUESTS,
        "Repeats: requests that a client sent again after a failure.",
        _of_ledger("repeated"),
    ),
    _Row(
        "arrivals.dropped",
        "counter",
        NO_UNIT,
        "Arrivals that were dropped because the maximum of requests was in flight.",
        _of_ledger("dropped"),
    ),
    _Row(
        "arrivals.lost",
        "counter",
        NO_UNIT,
        "Arrivals that were never sent, known once a wave is over.",
        _of_ledger("lost"),
    ),
    _Row("sessions.started", "counter", NO_UNIT, "Sessions started.", _of_sessions),
    _Row("sessions", "counter", NO_UNIT, "Finished sessions, by how they ended.", _endings),
    _Row("sessions.open", "gauge", NO_UNIT, "Open sessions.", _open_sessions),
    _Row(
        "turn.requests",
        "counter",
        REQUESTS,
        "Finished requests of sessions, by turn (1, or 2+: all later ones) and outcome.",
        _of_turns,
    ),
    _Row(
        "label.requests",
        "counter",
        REQUESTS,
        "Finished requests with a label, by label and outcome.",
        _of_labels,
    ),
    _Row("errors", "counter", NO_UNIT, "Failed requests, by error.", _errors),
    _Row(
        "output_tokens",
        "counter",
        TOKENS,
        "Output tokens of successful streams.",
        lambda each: [({}, each.count.cell.tokens)],
    ),
    _Row("waves", "counter", NO_UNIT, "Finished waves, by verdict.", lambda each: _by("verdict", each.verdicts)),
    _Row("requests.in_flight", "gauge", REQUESTS, "Requests in flight.", lambda each: [({}, each.now.in_flight)]),
    _Row("target_rate", "gauge", PER_SECOND, "Target rate in requests per second.", _rate("target_rate")),
    _Row("sent_rate", "gauge", PER_SECOND, "Requests sent per second, over the last 5 s.", _rate("sent_rate")),
    _Row(
        "completed_rate",
        "gauge",
        PER_SECOND,
        "Successful answers per second, over the last 5 s.",
        _rate("completed_rate"),
    ),
    _Row(
        "wave_running",
        "gauge",
        NO_UNIT,
        "1 while a wave runs, 0 once it is over.",
        lambda each: [({}, int(each.now.running))],
    ),
    _Row("verdict", "gauge", NO_UNIT, "1 for the verdict of the newest wave, once it is over.", _verdict),
    _Row("exit_code", "gauge", NO_UNIT, "The exit code of the newest wave, once it is over.", _exit_code),
    _Row("finding", "gauge", NO_UNIT, "1 for each finding of the newest wave, once it is over.", _findings),
    _Row(
        "host.requests",
        "gauge",
        REQUESTS,
        "Requests of the newest wave by the host that sent them, once it is over.",
        _of_hosts(lambda row: row.ledger.sent),
    ),
    _Row(
        "host.schedule_lag_p99",
        "gauge",
        SECONDS,
        "p99 schedule lag of each host.",
        _of_hosts(lambda row: None if row.lag is None else row.lag.percentile(99)),
    ),
    _Row(
        "host.cpu",
        "gauge",
        NO_UNIT,
        "CPU use of each host, as a share of all its cores.",
        _of_hosts(lambda row: None if row.host.use is None else row.host.use.cpu_share_mean),
    ),
    _Row(
        "host.clock_offset",
        "gauge",
        SECONDS,
        "Offset of each host's clock from this one's.",
        _of_hosts(_clock("offset_s")),
    ),
    _Row(
        "host.clock_uncertainty",
        "gauge",
        SECONDS,
        "Uncertainty of that offset.",
        _of_hosts(_clock("uncertainty_s")),
    ),
)


def metrics_of(figures: Iterable[Figures]) -> tuple[Metric, ...]:
    """Every metric that has a point."""
    known = list(figures)
    version = Point({"version": __version__}, 1)
    info = Metric("build_info", "gauge", NO_UNIT, "The version of InferenceBenchmarker.", (version,))
    metrics = (info, *(row.metric(known) for row in _ROWS), *_histograms(known))
    return tuple(metric for metric in metrics if metric.points)


_TIMES = {
    "latency": ("latency", "Time from sending a request to its end, for successful and abandoned requests."),
    "response_time": ("response_time", "Time from a request's due time to its end (open loop only)."),
    "lag": ("schedule_lag", "Delay of the client in taking up an arrival."),
    "ttft": ("ttft", "Time to the first token of a stream."),
    "itl": ("itl", "Time between the tokens of a stream."),
}
_ALWAYS = ("latency", "lag")
_LABEL_LATENCY = "Latency of requests that have a label, by label, in fewer buckets."
_TURN_TIMES = {
    "latency": "Latency of the turns of sessions, by turn, in fewer buckets.",
    "ttft": "Time to the first token of the turns of sessions, by turn, in fewer buckets.",
}
_USER_METRIC = "The user's own metrics, as successful requests reported them: count and sum, by metric."


def _histograms(known: list[Figures]) -> Iterator[Metric]:
    for key, (name, about) in _TIMES.items():
        points = []
        for each in known:
            times = each.count.cell.times.get(key)
            if times is not None or key in _ALWAYS:
                points.append(Point(each.labels, buckets_of(times or Histogram())))
        yield Metric(name, "histogram", SECONDS, about, tuple(points))
    yield Metric("label.latency", "histogram", SECONDS, _LABEL_LATENCY, tuple(_label_latency(known)))
    for key, about in _TURN_TIMES.items():
        yield Metric(f"turn.{key}", "histogram", SECONDS, about, tuple(_turn_times(known, key)))
    yield Metric("user_metric", "histogram", NO_UNIT, _USER_METRIC, tuple(_user_metrics(known)))


def _label_latency(known: list[Figures]) -> Iterator[Point]:
    for each in known:
        for name, found in each.count.named.labels.items():
            times = Histogram(found.times["latency"])
            yield Point({**each.labels, "label": name}, buckets_of(times, COARSE_S))


def _turn_times(known: list[Figures], key: str) -> Iterator[Point]:
    for each in known:
        for name, found in each.count.turns.items():
            if (times := found.times.get(key)) is not None:
                yield Point({**each.labels, "turn": name}, buckets_of(times, COARSE_S))


def _user_metrics(known: list[Figures]) -> Iterator[Point]:
    for each in known:
        for name, found in each.count.named.metrics.items():
            values = Buckets((found.count,), found.total, found.least, found.most, ())
            yield Point({**each.labels, "metric": name}, values)
