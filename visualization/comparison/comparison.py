"""Compares runs with earlier ones: what changed, what did not, and what the records cannot tell. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK, worst_exit_code
from inference_benchmarker.facts.wave_facts import WaveFacts
from inference_benchmarker.records.user_metrics import PREFIX
from inference_benchmarker.verdict.client.answers import answer_warnings
from inference_benchmarker.verdict.client.evidence import Evidence
from visualization.comparison.changes import (
    HIGHER_IS_BETTER,
    LEAST_CHANGE,
    LEAST_SUCCESS_CHANGE,
    MetricChange,
    is_success,
    with_intervals,
)
from visualization.comparison.conditions import differences, loads_apart
from visualization.comparison.ending import OUTCOMES, Cut
from visualization.comparison.intervals import Estimates, user_metrics_of
from visualization.comparison.repeats import over_runs
from visualization.comparison.server_rows import server_rows
from visualization.comparison.sessions import SessionEstimates, is_of_sessions, session_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from inference_benchmarker.plan.slo import MaxRegression, Slo
    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.changes import Value
    from visualization.comparison.ending import Outcome
    from visualization.comparison.intervals import Metric
    from visualization.comparison.server_rows import ServerRow

State = Literal["broken", "undecided", "kept"]

_ALONE = ("rate", "success")
_STATS = ("mean", "p50", "p90", "p95", "p99")
_METRICS = (
    *((name, name) for name in _ALONE),
    *((metric, stat) for metric in ("latency", "response_time", "ttft", "itl") for stat in _STATS),
    ("tokens", "tokens"),
)
_OF_CLIENT = (("lag", "p50"), ("lag", "p99"))
_OF_A_STREAM = ("ttft", "itl")
_USUAL = ("p50", "p99")


@dataclass(frozen=True, slots=True)
class Check:
    """A limit on a regression, compared with its row."""

    limit: MaxRegression
    row: MetricChange

    @property
    def state(self) -> State:
        """Kept: the interval ends below the limit. Broken: worse by more than it, beyond noise. Else undecided.

        What either side lacks breaks a limit; so much more than none that there is no change decides nothing.
        """
        regression, interval = self.row.regression, self.row.interval
        if regression is None:
            return "undecided" if self.row.measured and self.row.metric in HIGHER_IS_BETTER else "broken"
        if interval is not None and interval[1] <= self.limit.most:
            return "kept"
        return "broken" if regression > self.limit.most and self.row.outcome == "worse" else "undecided"

    @property
    def broken(self) -> bool:
        """Tells whether it is."""
        return self.state == "broken"

    @property
    def undecided(self) -> bool:
        """Tells whether the records leave it open."""
        return self.state == "undecided"


@dataclass(frozen=True, slots=True)
class Side:
    """The runs of one side, what the comparison calls it, and what they were sent to where that says more."""

    name: str
    waves: tuple[Wave, ...]
    what: str = ""

    @property
    def valid(self) -> bool:
        """Tells whether every run of it is VALID."""
        return all(wave.verdict.valid for wave in self.waves)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Clauses on what speaks against counting the answers of its runs as a success."""
        return tuple(answer_warnings([Evidence(wave, wave.summary) for wave in self.waves]))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides beside each other, each of a run or several; ``unlike`` says in what their plans differ.

    ``client``: what the clients did, which is no outcome of the endpoint. ``own``: metrics of the user's own. Nobody
    knows whether more of one is better, so that they have no outcome. ``strict``: what is undecided fails. ``cut``: why
    not all waves that were to be compared are, or which run was interrupted or aborted; None where all is as planned.
    """

    base: Side
    new: Side
    rows: tuple[MetricChange, ...]
    client: tuple[MetricChange, ...]
    server_rows: tuple[ServerRow, ...]
    checks: tuple[Check, ...]
    unlike: tuple[str, ...]
    strict: bool = False
    own: tuple[MetricChange, ...] = ()
    cut: Cut | None = None

    @property
    def on_both_sides(self) -> int:
        """The number of runs that are on both sides, under whatever name."""
        base, new = ({identity(wave) for wave in side.waves} for side in (self.base, self.new))
        return len(base & new)

    @property
    def loads(self) -> str:
        """The loads of both sides where they are not one; else nothing."""
        return " and ".join(loads_apart([*self.base.waves, *self.new.waves]))

    @property
    def several(self) -> bool:
        """Tells whether a side has several runs, so that it is known how far runs lie apart."""
        return max(len(self.base.waves), len(self.new.waves)) > 1

    @property
    def too_short(self) -> bool:
        """Tells whether one run a side was too short, or of too changing a rate, for any interval."""
        return not self.several and all(row.interval is None for row in self.rows)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The limits for which it fails."""
        return tuple(check for check in self.checks if check.broken or (self.strict and check.undecided))

    @property
    def passed(self) -> bool:
        """Tells whether limits were given and each was kept: what is undecided is not."""
        return bool(self.checks) and self.outcome == "passed"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Clauses on what speaks against counting answers as a success, each with the name of its side."""
        return tuple(f"{side.name}: {each}" for side in (self.base, self.new) for each in side.warnings)

    @property
    def exit_code(self) -> int:
        """Of its command: the gravest of how it ended, of INVALID runs and of broken limits."""
        invalid = not (self.base.valid and self.new.valid)
        missed = self.failed or (self.strict and self.left_open_by)
        return worst_exit_code(
            OK if self.cut is None else self.cut.exit_code, INVALID if invalid else OK, MISSED if missed else OK
        )

    @property
    def left_open_by(self) -> tuple[str, ...]:
        """All that leaves every limit open, whatever was measured: different loads, and answers that may be errors."""
        loads = ("different loads",) if self.loads else ()
        return (*loads, *(("doubtful answers",) if self.warnings else ())) if self.checks else ()

    @property
    def outcome(self) -> Outcome:
        """The word of the exit code; of one that says that no limit is missed, whether each is kept."""
        word = OUTCOMES[self.exit_code]
        kept = not self.left_open_by and all(check.state == "kept" for check in self.checks)
        return word if word != "passed" or kept else "undecided"


def compare(
    base: Wave | Iterable[Wave],
    new: Wave | Iterable[Wave],
    limits: Sequence[MaxRegression] = (),
    *,
    names: tuple[str, str] = ("base", "new"),
    strict: bool = False,
) -> Comparison:
    """Compare ``new`` with ``base``: the metrics that either has, those of the limits among them."""
    before, after = Side(names[0], _waves(base)), Side(names[1], _waves(new))
    waves = (*before.waves, *after.waves)
    open_loop = all(wave.open_loop for wave in waves)
    wanted = {limit: _named(limit, open_loop=open_loop) for limit in limits}
    primary = _primary(waves, list(wanted.values()), open_loop=open_loop)
    tested = list(dict.fromkeys([*_METRICS, *session_metrics(waves), *primary, *wanted.values()]))
    own = user_metrics_of(waves)
    values = dict(_values(before, after, [*tested, *_OF_CLIENT, *own]))
    asked = {("rate", "rate")} - set(wanted.values()) if _differ_in_target(waves) else set()
    rows = [
        MetricChange(*name, *values[name], least=_least(name, wanted), primary=name in primary, asked_for=name in asked)
        for name in tested
    ]
    measured = [row for row in rows if row.base or row.new or (row.metric, row.stat) in wanted.values()]
    by_name = {(row.metric, row.stat): row for row in with_intervals(measured)}
    return Comparison(
        base=before,
        new=after,
        rows=tuple(by_name.values()),
        client=tuple(MetricChange(*name, *values[name]) for name in _OF_CLIENT if any(values[name])),
        server_rows=tuple(server_rows(before.waves, after.waves)),
        checks=tuple(Check(limit, by_name[name]) for limit, name in wanted.items()),
        unlike=tuple(differences(waves)),
        strict=strict,
        own=tuple(with_intervals([MetricChange(*name, *values[name]) for name in own])),
        cut=_cut((before, after)),
    )


def identity(wave: Wave) -> object:
    """A value that a run shares with its copies alone: no two waves begin in one nanosecond with the same answers."""
    times = wave.summary.latency
    return wave.window, wave.ledger.sent, wave.ledger.ok, None if times is None else times.mean


def _differ_in_target(waves: Iterable[Wave]) -> bool:
    """Tells whether the waves were to send at different rates; in a closed loop nobody asks for one."""
    targets = {wave.summary.rates.target for wave in waves}
    return len(targets) > 1 and None not in targets


def _waves(side: Wave | Iterable[Wave]) -> tuple[Wave, ...]:
    return (side,) if isinstance(side, WaveFacts) else tuple(side)


def _cut(sides: Sequence[Side]) -> Cut | None:
    """The end of the runs that did not end as planned, whose numbers are of a part of their load; None without one."""
    ends = [
        (code, f"{'' if len(side.waves) == 1 else 'a run of '}{side.name} was {word}")
        for side in sides
        for word, code in (("interrupted", INTERRUPTED), ("aborted", MISSED))
        if any(getattr(wave, word) for wave in side.waves)
    ]
    return Cut(worst_exit_code(*(code for code, _ in ends)), ", ".join(why for _, why in ends)) if ends else None


def _named(limit: MaxRegression | Slo, *, open_loop: bool) -> Metric:
    """Of a bare percentile, of some turns too: response time where all runs have one, else latency."""
    part, dot, metric = limit.metric.rpartition(".")
    bare = "response_time" if open_loop else "latency"
    return (f"{part}{dot}{bare}" if metric == "default" else limit.metric), limit.stat


def _primary(waves: Sequence[Wave], wanted: list[Metric], *, open_loop: bool) -> set[Metric]:
    """The metrics of the first line: what limits name, of changes or else of the waves; at least a time and success.

    Where they name no time it is middle and tail of the response time or latency, of streams those of their tokens.
    """
    named = wanted or [_named(limit, open_loop=open_loop) for limit in _limits(waves)]
    if all(metric == stat for metric, stat in named):
        streams = all(wave.summary.ttft is not None for wave in waves)
        times = _OF_A_STREAM if streams else ("response_time" if open_loop else "latency",)
        named += [(time, stat) for time in times for stat in _USUAL]
    return {*named, ("success", "success")}


def _limits(waves: Sequence[Wave]) -> Iterator[Slo]:
    """The limits that every wave had on all of itself, of statistics whose better side is known, with intervals."""
    first, *others = (wave.plan.slos for wave in waves)
    for limit in first:
        of_endpoint = limit.metric != "lag" and not limit.metric.startswith(PREFIX) and not limit.is_on_sessions
        usable = of_endpoint and limit.stat not in ("min", "max", "goodput") and not limit.stage
        if usable and all(limit in slos for slos in others):
            yield limit


def _values(
    base: Side, new: Side, names: Sequence[Metric]
) -> Iterator[tuple[Metric, tuple[Value | None, Value | None]]]:
    """Each metric of both sides."""
    of_sessions = [name for name in names if is_of_sessions(name[0])]
    of_requests = [name for name in names if name not in of_sessions]
    for some, estimates in ((of_requests, Estimates), (of_sessions, SessionEstimates)):
        sides = [[estimates(wave, some) for wave in side.waves] for side in (base, new)] if some else []
        for name in some:
            before, after = ([run.of(*name) for run in runs] for runs in sides)
            yield name, over_runs(before, after)


def _least(name: Metric, wanted: dict[MaxRegression, Metric]) -> float:
    """The least change worth a word; a limit below it lowers it."""
    usual = LEAST_SUCCESS_CHANGE if is_success(name[0]) else LEAST_CHANGE
    return min([usual, *(limit.most for limit, of in wanted.items() if of == name)])
