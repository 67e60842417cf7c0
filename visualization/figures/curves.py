"""Runs -> the pictures that bars cannot show: capacity and distribution. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.plan.load import ClosedLoop
from visualization.figures.bars import server_bars
from visualization.figures.figures import STATISTICS, Axis, Curves, Line
from visualization.figures.knee import Answered, knee_of
from visualization.figures.loads import changes, load_of, offered, target_of
from visualization.figures.runs import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.report.summary_types import SummaryResult
    from visualization.figures.runs import Run

IDEAL = "the target rate"
_RATE = Axis("Completed rate", "/s")
_OF_A_CURVE = 3  # loads
_WIDE = 20.0  # from where the largest is so many times the smallest, an axis is logarithmic


def capacity(runs: Sequence[Run]) -> Iterator[Curves]:
    """Times and failures against the completed rate: a point a run; nothing for a single load.

    A wave whose rate changes is no point: its times are those of its peaks, its rate is the mean.
    """
    completed = [_completed(run) for run in runs]
    targets = [None if changes(run) else run.number(_target) for run in runs]
    if _loads(runs, completed) < 2:
        return
    for title, key in (("Latency", "latency"), ("Response time", "response_time"), ("TTFT", "ttft")):
        lines = [
            line
            for choice, name in STATISTICS.items()
            for line in _across(runs, completed, [_shown(run, key, name) for run in runs], choice)
        ]
        yield from drawn(f"{title} against rate", _RATE, Axis(title, "ms"), lines)
    yield from drawn(
        "Completed against target rate",
        Axis("Target rate", "/s"),
        _RATE,
        [*_ideal(targets), *_across(runs, targets, completed)],
    )
    failed = [scaled(run.success_rate, -100, 100) for run in runs]
    if any(failed):
        yield from drawn("Not successful", _RATE, Axis("Not successful", "%"), _across(runs, completed, failed))


def server_against_rate(runs: Sequence[Run]) -> Iterator[Curves]:
    """Each of the server's metrics, in its first statistic, against the completed rate, where it is not always 0.

    Of two loads the bars say as much.
    """
    completed = [_completed(run) for run in runs]
    if _loads(runs, completed) < _OF_A_CURVE:
        return
    seen: set[str] = set()
    for bars in server_bars(runs):
        values = [bar.value for bar in bars.statistics[""]]
        if bars.field not in seen and any(values):
            seen.add(bars.field)
            yield from drawn(
                f"{bars.title} against rate", _RATE, Axis(bars.title, bars.unit), _across(runs, completed, values)
            )


def _shown(run: Run, metric: str, key: str) -> float | None:
    times = run.times(metric)
    return None if times is None else scaled(shown(times, key), 1e3)


def _loads(runs: Sequence[Run], completed: Sequence[float | None]) -> int:
    """The number of different loads."""
    return len({load_of(run) for run, found in zip(runs, completed, strict=True) if found is not None})


def _completed(run: Run) -> float | None:
    """The completed rate of a run; None where what was offered changed by plan."""
    return None if changes(run) else run.completed


def _target(summary: SummaryResult) -> float | None:
    return None if summary.rates is None else summary.rates.target


def _scheduled(summary: SummaryResult) -> float | None:
    return None if summary.rates is None else summary.rates.scheduled


def _ideal(targets: Sequence[float | None]) -> Iterator[Line]:
    """The line on which completed equals target."""
    most = max((target for target in targets if target is not None), default=None)
    if most is not None:
        yield Line(None, IDEAL, ((0.0, 0.0), (most, most)), dashed=True)


def _across(
    runs: Sequence[Run], xs: Sequence[float | None], ys: Sequence[float | None], statistic: str = ""
) -> Iterator[Line]:
    """A line for each endpoint through the points of its runs, in the order of the load that was offered."""
    targets: dict[Any, list[int]] = {}
    for index, run in enumerate(runs):
        if xs[index] is not None and ys[index] is not None:
            targets.setdefault(target_of(run), []).append(index)
    for members in targets.values():
        order = sorted(members, key=lambda index: (offered(runs[index]), xs[index]))
        joined = _joined(order, runs)
        points = tuple((float(xs[index] or 0), ys[index]) for index in joined)
        at = _knee([runs[index] for index in joined]) if statistic else None
        knee = None if at is None else points[at][0]
        yield Line(None, "", points, statistic=statistic, over=tuple(joined), knee=knee)
        for index in order:
            if index not in joined:
                yield Line(None, "", ((float(xs[index] or 0), ys[index]),), statistic=statistic, over=(index,))


def _joined(order: Sequence[int], runs: Sequence[Run]) -> list[int]:
    """Those that a line goes through: what an INVALID run has at a load below a VALID one's is the client's."""
    highest = max((offered(runs[index]) for index in order if not runs[index].doubtful), default=-1.0)
    return [index for index in order if not runs[index].doubtful or offered(runs[index]) > highest]


def around_knee(runs: Sequence[Run]) -> tuple[Run, Run] | None:
    """Of the runs of one endpoint the one at the knee, and that with the next load; None where none is shown."""
    order = sorted(range(len(runs)), key=lambda index: offered(runs[index]))
    line = [runs[index] for index in _joined(order, runs) if _completed(runs[index]) is not None]
    at = _knee(line)
    if at is None:
        return None
    return line[at], next(run for run in line[at:] if offered(run) > offered(line[at]))


def _knee(runs: Sequence[Run]) -> int | None:
    """The place of the run at the knee; None where what was scheduled is not what is completed (sessions)."""
    closed = [run.plan is not None and isinstance(run.plan.load, ClosedLoop) for run in runs]
    answered = [
        Answered(
            load=offered(run),
            completed=run.completed or 0.0,
            scheduled=None if is_closed else run.number(_scheduled),
            sent=run.number(lambda summary: summary.ledger.sent) or 0.0,
        )
        for run, is_closed in zip(runs, closed, strict=True)
    ]
    return knee_of(answered) if all(closed) or all(run.scheduled for run in answered) else None


def distributions(runs: Sequence[Run]) -> Iterator[Curves]:
    """The distribution of each time, to p99.99 where there are so many requests."""
    for title, key in (("Latency", "latency"), ("Response time", "response_time"), ("TTFT", "ttft"), ("ITL", "itl")):
        lines = [
            Line(index, "", tuple((x, scaled(y, 1e3)) for x, y in run.tails[key]))
            for index, run in enumerate(runs)
            if key in run.tails
        ]
        yield from drawn(title, Axis("Percentile", "", "nines"), Axis(title, "ms"), lines)


def drawn(title: str, x: Axis, y: Axis, lines: Iterator[Line] | Sequence[Line]) -> Iterator[Curves]:
    """The picture, if there is a point to draw."""
    kept = tuple(line for line in lines if any(value is not None for _, value in line.points))
    if not any(line.run is not None or len(line.over) > 1 for line in kept):
        return
    values = [value for line in kept for _, value in line.points if value is not None]
    wide = y.unit == "ms" and min(values) > 0 and max(values) > _WIDE * min(values)
    yield Curves(title, x, Axis(y.title, y.unit, "log") if wide else y, kept)


def scaled(value: float | None, factor: float, plus: float = 0) -> float | None:
    """A number in another unit; of none there is none."""
    return None if value is None else value * factor + plus
