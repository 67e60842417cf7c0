"""The time that this tool itself adds to one it measures, on this host and at a plan's load: a calibration's outcome.

Pure; ``calibration`` makes it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import duration_text, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary

GRACE_NS = NS // 10  # an answer of an echo that comes later than this after the last arrival comes from a backlog
LEAST_IN_TIME = 0.95
LEAST_FOR_P99 = 100  # with fewer requests the p99 is the largest value, and is called so

_NULL = "an invoke that does nothing"


@dataclass(frozen=True, slots=True)
class Times:
    """Exact percentiles of one time, in seconds."""

    p50_s: float
    p99_s: float
    max_s: float

    @classmethod
    def of(cls, distribution: Distribution | None) -> Self | None:
        """Those of a distribution; None without one."""
        if distribution is None:
            return None
        return cls(distribution.percentile(50), distribution.percentile(99), distribution.maximum)

    def text(self, requests: int) -> str:
        """``p50 0.06 ms, p99 0.31 ms``."""
        high = "p99" if requests >= LEAST_FOR_P99 else "max"
        return f"p50 {duration_text(self.p50_s)}, {high} {duration_text(self.p99_s)}"


@dataclass(frozen=True, slots=True)
class Run:
    """One calibration run. ``requests`` were sent.

    ``target_rate`` is the plan's (None in the closed loop), ``rate`` what was sent a second (in the closed loop
    answered a second), ``in_time_share`` the scheduled requests that were answered before the run was over, so
    that none of them stood in a backlog. ``response`` (done - due) and ``lag`` are None in the closed loop;
    ``worker_cpu_share`` is of one core, of the busiest worker.
    """

    requests: int
    workers: int
    target_rate: float | None
    rate: float
    in_time_share: float
    latency: Times | None
    response: Times | None
    lag: Times | None
    worker_cpu_share: float | None

    @classmethod
    def of(cls, facts: WaveFacts, summary: Summary) -> Self | None:
        """The run that a wave was; None where no request fell into it."""
        if not facts.ledger.sent:
            return None
        open_loop = facts.open_loop
        return cls(
            requests=facts.ledger.sent,
            workers=facts.plan.workers,
            target_rate=facts.plan.target_rate,
            rate=summary.rates.sent if open_loop else summary.rates.server_rps,
            in_time_share=_in_time_share(facts),
            latency=Times.of(summary.latency),
            response=Times.of(summary.response_time),
            lag=Times.of(summary.lag) if open_loop else None,
            worker_cpu_share=max((w.cpu_share for w in facts.workers if w.cpu_share is not None), default=None),
        )

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The run that ``to_json`` described."""
        times = {name: data[name] and Times(**data[name]) for name in ("latency", "response", "lag")}
        return cls(**{**data, **times})

    @property
    def kept_up(self) -> bool:
        """Tells whether its times are those of single requests, and not of a backlog."""
        return self.in_time_share >= LEAST_IN_TIME

    @property
    def count_text(self) -> str:
        """``400 requests``."""
        return pluralize(self.requests, "request", "requests")

    @property
    def load_text(self) -> str:
        """``100/s``; in the closed loop ``full speed``."""
        return "full speed" if self.target_rate is None else f"{self.target_rate:,.10g}/s"

    @property
    def missed_text(self) -> str:
        """The words for how far it was from keeping up."""
        return f"{self.in_time_share:.0%} of {self.count_text} answered in time"


@dataclass(frozen=True, slots=True)
class Calibration:
    """A run against an invoke that does nothing and one against a local echo; None where no request fell into it."""

    null: Run | None
    echo: Run | None

    def to_json(self) -> dict[str, Any]:
        """The calibration's part of plan.json and summary.json; times in seconds, ``lines`` as a report prints them."""
        return {**asdict(self), "lines": list(self.lines())}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The calibration that ``to_json`` described."""
        return cls(*(data[name] and Run.from_json(data[name]) for name in ("null", "echo")))

    def lines(self) -> tuple[str, ...]:
        """The sentences that a reader of the wave's numbers must know."""
        if self.null is None and self.echo is None:
            return ("the overhead of this tool is not known: the calibration was too short for a request at this rate",)
        return (*_null_lines(self.null), *_echo_lines(self.echo))


def _null_lines(run: Run | None) -> Iterator[str]:
    if run is None:
        return
    if not run.kept_up:
        workers, missed = pluralize(run.workers, "worker", "workers"), run.missed_text
        yield f"this tool cannot send {run.load_text} with {workers} on this host ({missed} by {_NULL})"
    elif run.response is None:
        yield (
            f"this tool uses {duration_text(run.workers / run.rate)} of a worker's time per request on this host "
            f"({_NULL}, {run.count_text} at full speed, {run.rate:,.0f}/s)"
        )
    else:
        added = run.response.text(run.requests)
        yield f"this tool adds {added} at {run.load_text} on this host ({_NULL}, {run.count_text})"


def _echo_lines(run: Run | None) -> Iterator[str]:
    if run is None:
        return
    if not run.kept_up or run.latency is None:
        yield f"a local echo could not keep up with {run.load_text} ({run.missed_text}): no figure for that"
    elif run.target_rate is None:
        yield f"a local echo answers in {run.latency.text(run.requests)} at full speed ({run.rate:,.0f}/s)"
    else:
        yield f"a local echo answers in {run.latency.text(run.requests)}"


def _in_time_share(facts: WaveFacts) -> float:
    """Ok requests over scheduled ones; in the open loop, those done by the planned end and a moment's grace."""
    planned = facts.window.planned_ns if facts.open_loop else None
    last = math.inf if planned is None else planned + GRACE_NS
    parts = facts.records.parts("outcome", "done")
    in_time = sum(int((part.outcome("ok") & (part.int("done") <= last)).sum()) for part in parts)
    return in_time / facts.ledger.scheduled
