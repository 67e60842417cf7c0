"""Turns a wave's records into numbers. Pure; each formula stands here once (in words: docs/reference/metrics.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inference_benchmarker.facts.stages import StageFacts, stages_of
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.pacing import schedule_of
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.summary.completed_rate import completed_requests
from inference_benchmarker.summary.distribution import Distribution
from inference_benchmarker.summary.goodput import Goodput
from inference_benchmarker.summary.recovery import Recovery, recoveries
from inference_benchmarker.summary.repeats import Repeats
from inference_benchmarker.summary.samples import times
from inference_benchmarker.summary.time_table import middle_and_tail, time_rows
from inference_benchmarker.summary.tokens import Tokens
from inference_benchmarker.units import NS
from inference_benchmarker.wording import html_table

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.records.columns import Floats, Records


LATE_NS = 5_000_000  # a lag that is allowed, as the schedule lag's least limit


@dataclass(frozen=True, slots=True)
class Rates:
    """Requests a second over the planned duration T (over the real one where the plan has none)."""

    target: float | None
    scheduled: float | None
    sent: float
    completed: float
    server_rps: float

    def to_json(self) -> dict[str, float | None]:
        """The rates by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class LabelRow:
    """The requests of one label."""

    label: str
    sent: int
    ok: int
    failed: int
    latency: Distribution | None
    response_time: Distribution | None


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """The failed requests of one error key; ``first_s`` is when the first of them was over."""

    key: str
    count: int
    first_s: float
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StageRow:
    """The requests that were due in one stage; ``start_s`` and ``end_s`` after wave start.

    ``in_flight_end``: those in flight when it ended, whichever stage they are from; all else is of its own requests.
    ``recovery``: after it, where it was over capacity.
    """

    name: str
    start_s: float
    end_s: float
    from_rps: float
    to_rps: float
    in_flight_end: int
    summary: Summary
    recovery: Recovery | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """Every number of a wave's report; times in seconds, None where there is nothing to measure."""

    duration_s: float
    planned_s: float | None
    ledger: Ledger
    worker_ledgers: tuple[Ledger, ...]
    rates: Rates
    latency: Distribution | None
    response_time: Distribution | None
    failed_latency: Distribution | None
    lag: Distribution | None
    build: Distribution | None
    ttft: Distribution | None
    itl: Distribution | None
    tpot: Distribution | None
    tokens: Tokens | None
    goodput: Goodput | None
    repeats: Repeats | None
    labels: tuple[LabelRow, ...]
    errors: tuple[ErrorRow, ...]
    finish_reasons: dict[str, int]
    warmup: Summary | None = None
    stages: tuple[StageRow, ...] = ()

    def __repr__(self) -> str:
        """In a line; the numbers are its attributes."""
        latency = "" if self.latency is None else f", latency {middle_and_tail(self.latency)}"
        return f"<{type(self).__name__}: {self.ledger.sent:,} sent, {self.ledger.ok:,} ok{latency}>"

    def _repr_html_(self) -> str:
        """The report's table of times, for notebooks."""
        return html_table(time_rows(self.distribution))

    @property
    def success_rate(self) -> float | None:
        """Ok / sent."""
        return self.ledger.ok / self.ledger.sent if self.ledger.sent else None

    @property
    def completed_share(self) -> float | None:
        """Completed rate over scheduled rate, which is the target rate but for the Poisson draw."""
        return self.rates.completed / self.rates.scheduled if self.rates.scheduled else None

    def part(self, slo: Slo) -> Summary | None:
        """The part that a limit speaks of: the wave, or the stage that it names; None where that one never began."""
        found = (row.summary for row in self.stages if row.name == slo.stage)
        return next(found, None) if slo.stage else self

    def measured(self, metric: str, stat: str) -> float | None:
        """The value an SLO speaks of, e.g. ("ttft", "p90"), ("success", "success"); None when not measured."""
        if metric == "success":
            return self.success_rate
        if metric == "rate":
            return self.completed_share
        if metric == "goodput":
            return None if self.goodput is None else self.goodput.share
        distribution = self.distribution(metric)
        return None if distribution is None else distribution.statistic(stat)

    def distribution(self, metric: str) -> Distribution | None:
        """The distribution an SLO speaks of; "default" is response time, in the closed loop latency."""
        if metric == "default":
            return self.latency if self.response_time is None else self.response_time
        found = getattr(self, metric, None)
        return found if isinstance(found, Distribution) else None


def summarise(facts: WaveFacts) -> Summary:
    """The numbers of a finished wave."""
    warmup = _warmup(facts.warmup, facts) if len(facts.warmup) else None
    stages = tuple(stages_of(facts))
    recovered = recoveries(facts.records, stages)
    return replace(numbers(facts), warmup=warmup, stages=tuple(map(_stage, stages, recovered)))


def numbers(facts: WaveFacts) -> Summary:
    """The numbers of a wave's window, or of a part of it."""
    records = facts.records
    planned_ns = facts.window.planned_ns
    completed, seconds = completed_requests(records, records.outcome("ok"), facts.window)
    return Summary(
        duration_s=facts.window.duration_ns / NS,
        planned_s=None if planned_ns is None else planned_ns / NS,
        ledger=facts.ledger,
        worker_ledgers=facts.ledgers,
        rates=_rates(facts),
        **times(records, open_loop=facts.open_loop),
        tokens=Tokens.of(records, completed, seconds),
        goodput=Goodput.of(records, facts.plan.goodput, facts.window, sent=facts.ledger.arrivals),
        repeats=Repeats.of(facts),
        labels=_labels(records, open_loop=facts.open_loop),
        errors=_errors(records, facts.error_texts),
        finish_reasons=_finish_reasons(records),
    )


def _rates(facts: WaveFacts) -> Rates:
    ledger, window = facts.ledger, facts.window
    seconds = (window.planned_ns or window.duration_ns) / NS
    duration = window.duration_ns / NS
    completed, completed_s = completed_requests(facts.records, facts.records.outcome("ok"), window)
    return Rates(
        target=_target(facts),
        scheduled=ledger.scheduled / seconds if facts.open_loop and seconds else None,
        sent=_sent_in_time(facts) / seconds if seconds else 0.0,
        completed=float(np.count_nonzero(completed)) / completed_s if completed_s else 0.0,
        server_rps=ledger.completed / duration if duration else 0.0,
    )


def _target(facts: WaveFacts) -> float | None:
    """The planned rate; of stages their mean up to the planned end, which may be before theirs."""
    load, planned_ns = facts.plan.load, facts.window.planned_ns
    if isinstance(load, OpenLoop) and load.stages and planned_ns:
        return float(schedule_of(load).area(planned_ns) * NS / planned_ns)
    return facts.plan.target_rate


def _sent_in_time(facts: WaveFacts) -> int:
    """Requests taken up by the end of the plan: what a late client sends afterwards is not part of that rate."""
    planned_ns, records = facts.window.planned_ns, facts.records
    if planned_ns is None:
        return facts.ledger.sent
    late = records.int("sent") - records.int("build_ns") >= planned_ns + LATE_NS
    return facts.ledger.sent - int(np.count_nonzero(late))


def _labels(records: Records, *, open_loop: bool) -> tuple[LabelRow, ...]:
    codes, names = records.coded("label")
    ok, failed = records.outcome("ok"), records.outcome("failed")
    # Of a failed request the model that was asked is known, which is no row where no answer tells one.
    if not any(names[code] for code in np.unique(codes[ok] if ok.any() else codes)):
        return ()
    abandoned = records.outcome("abandoned")
    latency = _s(records.int("done") - records.int("sent"))
    response = _s(records.int("done") - records.arrived)
    rows = []
    for code, name in enumerate(names):
        mine = codes == code
        if not mine.any():
            continue
        rows.append(
            LabelRow(
                label=name or "(none)",
                sent=int(mine.sum()),
                ok=int((mine & ok).sum()),
                failed=int((mine & failed).sum()),
                latency=Distribution.of(latency[mine & ok], latency[mine & abandoned]),
                response_time=Distribution.of(response[mine & ok], response[mine & abandoned]) if open_loop else None,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.sent, row.label)))


def _errors(records: Records, texts: dict[str, list[str]]) -> tuple[ErrorRow, ...]:
    codes, names = records.coded("error")
    done = records.int("done")
    rows = []
    for code, key in enumerate(names):
        mine = codes == code
        if mine.any():
            first = float(done[mine].min()) / NS
            rows.append(ErrorRow(key, int(mine.sum()), first, tuple(texts.get(key, ()))))
    return tuple(sorted(rows, key=lambda row: (-row.count, row.key)))


def _finish_reasons(records: Records) -> dict[str, int]:
    """The number of ok requests by the reason for which their answers ended, the most frequent first."""
    codes, names = records.coded("finish_reason")
    counts = np.bincount(codes[records.outcome("ok") & (codes >= 0)], minlength=len(names)).tolist()
    told = [(name, count) for name, count in zip(names, counts, strict=True) if count]
    return dict(sorted(told, key=lambda pair: (-pair[1], pair[0])))


def _warmup(records: Records, facts: WaveFacts) -> Summary:
    """The warm-up's own numbers: it has no plan to be held against, so its ledger counts what was sent.

    One that was stopped lasted until then.
    """
    counts = {name: int(records.outcome(name).sum()) for name in ("ok", "failed", "abandoned")}
    repeated = int(np.count_nonzero(records.repeats))
    ledger = Ledger(scheduled=len(records) - repeated, sent=len(records), repeated=repeated, **counts)
    stopped_at = facts.window.stopped_at_ns
    seconds = (facts.plan.warmup_ns + min(0, 0 if stopped_at is None else stopped_at)) / NS
    rate = len(records) / seconds if seconds else 0.0
    return Summary(
        duration_s=seconds,
        planned_s=seconds,
        ledger=ledger,
        worker_ledgers=(),
        rates=Rates(facts.plan.target_rate, None, rate, counts["ok"] / seconds if seconds else 0.0, rate),
        **times(records, open_loop=facts.open_loop),
        tokens=None,
        goodput=None,
        repeats=None,
        labels=(),
        errors=_errors(records, {}),
        finish_reasons={},
        warmup=None,
    )


def _stage(found: StageFacts, recovery: Recovery | None) -> StageRow:
    stage = found.stage
    return StageRow(
        name=found.name,
        start_s=found.start_ns / NS,
        end_s=found.end_ns / NS,
        from_rps=float(stage.from_rps),
        to_rps=float(stage.to_rps),
        in_flight_end=found.in_flight_end,
        summary=numbers(found.facts),
        recovery=recovery,
    )


def _s(nanoseconds: npt.NDArray[Any]) -> Floats:
    seconds: Floats = nanoseconds / NS
    return seconds
