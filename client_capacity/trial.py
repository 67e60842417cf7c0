"""Tries a rate with a real wave and says whether it was held, and if not, who was in the way."""

from __future__ import annotations

import statistics
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from client_capacity.search import PASSING, Cause, Phase, Step
from client_capacity.staircase import rate_text
from inference_benchmarker.engine.hosts.logins import keeping_logins
from inference_benchmarker.engine.launch import resolve, run_wave
from inference_benchmarker.engine.processes.interrupts import Interrupts, counting_interrupts
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.verdict.client.bottleneck import CLIENT_CODES, CLIENT_OR_SERVER, EITHER, SIDES
from inference_benchmarker.verdict.client.endpoint import LAG_OF_IT, SERVER_LIMITED
from inference_benchmarker.verdict.client.evidence import senders_of
from inference_benchmarker.verdict.client.lateness import Lateness
from inference_benchmarker.verdict.client.worker import late_hosts
from inference_benchmarker.verdict.wave_findings import LEAST_SENT_SHARE
from inference_benchmarker.wave.run_dir import make_stamped_folder
from inference_benchmarker.words.redact import redact
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import duration_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from client_capacity.conditions import Conditions
    from inference_benchmarker.verdict.finding import Finding
    from inference_benchmarker.wave.spool.spool_state import SpoolState
    from inference_benchmarker.wave.wave import Wave

LEAST_COMPLETED_SHARE = 0.95
MOST_FAILED_SHARE = 0.05
HINDRANCES = CLIENT_CODES - {"worker_cpu", "payload_building"}
RUN_OUT = frozenset({"descriptors", "ports"})  # requests fail for want of them the more, the higher the rate
NOTEWORTHY_STARVED_SHARE = 0.05
SILENCE_S = 1.5  # a wave is looked at twice a second, so that no two sentences are 2 s apart
LATE = "lag p99 >"


@contextmanager
def trials(conditions: Conditions, kind: str, say: Callable[[str], None]) -> Iterator[Trials]:
    """Trials in a folder of their own, ``<UTC timestamp>_<kind>/``.

    Raises BenchmarkError with every problem before anything is made; a folder in which nothing came about goes.
    """
    refuse([problem.text for problem in conditions.problems()])
    resolve(conditions.plan(1.0, 1, conditions.output_dir))
    folder = make_stamped_folder(conditions.output_dir, kind)
    try:
        with counting_interrupts() as interrupts, keeping_logins():
            yield Trials(conditions, folder, say, interrupts)
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()


class Trials:
    """Tries rates one after the other, each in a wave whose run directory stays in ``folder``."""

    def __init__(
        self, conditions: Conditions, folder: Path, say: Callable[[str], None], interrupts: Interrupts
    ) -> None:
        self.folder = folder
        self.say = say
        self.environment: dict[str, Any] = {}
        self._conditions = conditions
        self._live = SpokenView(say)
        self._interrupts = interrupts

    def measure(self, workers: int) -> Callable[[float, Phase], Step]:
        """The function that tries a rate with that many workers.

        It raises KeyboardInterrupt after an interrupt; the wave that was cut short is no step.
        """
        return lambda rate, phase: self._try(rate, phase, workers)

    def _try(self, rate: float, phase: Phase, workers: int) -> Step:
        if self._interrupts.count:
            raise KeyboardInterrupt
        self._live.begin(rate, phase)
        wave = run_wave(self._conditions.plan(rate, workers, self.folder), self._live)
        if wave.disk_error:
            raise BenchmarkError(f"{self.folder}: cannot be written ({wave.disk_error}).", "Give another --output-dir.")
        if wave.interrupted:
            raise KeyboardInterrupt
        self.environment = wave.environment
        step = step_of(wave, phase, self._conditions.lag_limit_s)
        self.say(progress_line(step))
        return step


class SpokenView:
    """Watches the waves of a search for what a user must wait for, so that nothing is silent for long.

    What is being tried is said every two seconds; any other sentence once in a search.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said: set[str] = set()
        self._trying = ""
        self._next_s = 0.0

    def begin(self, rate: float, phase: Phase) -> None:
        """Say what is tried now."""
        self._trying = f"{PASSING} {rate_text(rate)}/s ({phase})..."
        self._say_trying(self._trying)

    def say(self, message: str) -> None:
        """A sentence, the first time; again with what is tried, where nothing was said for a while."""
        if message not in self._said:
            self._said.add(message)
            self._say(message)
        elif time.monotonic() >= self._next_s:
            self._say_trying(f"{self._trying} {message}")

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """The wave goes on."""
        if time.monotonic() >= self._next_s:
            ledger = spool_state.ledger
            when = f"{now_ns / NS:.0f} s, " if now_ns > 0 else "warming up, "
            self._say_trying(f"{self._trying} {when}{ledger.sent:,} sent, {ledger.in_flight:,} in flight")

    def close(self) -> None:
        """Nothing to close."""

    def _say_trying(self, message: str) -> None:
        self._next_s = time.monotonic() + SILENCE_S
        self._say(message)


def step_of(wave: Wave, phase: Phase, lag_limit_s: float) -> Step:
    """The step that a wave makes of its rate."""
    cause, reason = shortfall(wave, lag_limit_s)
    found = blamed(wave) if cause == "client" and not reason.startswith(LATE) else None
    summary, lag = wave.summary, wave.summary.lag
    cpu = [use.cpu_share for use in wave.workers if use.cpu_share is not None]
    return Step(
        phase=phase,
        rate=wave.plan.target_rate or 0.0,
        cause=cause,
        reason=redact(reason),
        lag_p50_s=lag.percentile(50) if lag else None,
        lag_p99_s=lag.percentile(99) if lag else None,
        sent=summary.ledger.sent,
        dropped=summary.ledger.dropped,
        completed_rate=summary.rates.completed,
        worker_cpu_share=statistics.fmean(cpu) if cpu else None,
        max_rss_bytes=max((use.max_rss_bytes for use in wave.workers), default=0),
        host_cpu_share=max((sender.use.cpu_share_mean for sender in senders_of(wave) if sender.use), default=None),
        blocked_by=_blocked_by(wave),
        finding=found.code if found else None,
        late_hosts=late_hosts(summary, lag_limit_s) if cause == "client" else (),
        disturbed=cause == "client" and _is_disturbed(wave),
        run_dir=wave.run_dir.path.name if wave.run_dir else None,
    )


def shortfall(wave: Wave, lag_limit_s: float) -> tuple[Cause | None, str]:
    """The cause that kept a rate from being held, and what was seen of it; (None, "") where it was held.

    Held: lag p99 within its limit but for a hiccup, nothing dropped, 99% sent, 95% of them answered without an error;
    and the wave's verdict names nobody who kept the completed rate below 95%. A client that is late can look like a
    slow endpoint, but not the other way round: the lag is looked at first. For the rest the verdict says who was the
    limit.
    """
    ledger, lag = wave.summary.ledger, wave.summary.lag
    if wave.lost_workers or wave.primary_lost:
        return "errors", "a process ended during the wave: see the logs"
    if lag is None or Lateness.of(wave, lag_limit_s).is_steady:
        return "client", _lateness(wave, lag_limit_s)
    if ledger.dropped or ledger.arrivals < LEAST_SENT_SHARE * ledger.scheduled:
        missing = f"{ledger.scheduled - ledger.arrivals:,} of {ledger.scheduled:,} not sent"
        return _side(wave), ", ".join(filter(None, (missing, _seen(blamed(wave)))))
    return _unanswered(wave)


def _unanswered(wave: Wave) -> tuple[Cause | None, str]:
    """The same of a wave that was sent on time."""
    ledger, found = wave.summary.ledger, blamed(wave)
    ran_out = found is not None and found.code in RUN_OUT and found.severity == "invalid"
    if ledger.failed > MOST_FAILED_SHARE * ledger.sent and not ran_out:
        return "errors", f"{ledger.failed:,} of {ledger.sent:,} failed, most by {wave.summary.errors[0].key}"
    if found is not None:
        return _side(wave), _seen(found)
    if ledger.abandoned > MOST_FAILED_SHARE * ledger.sent:
        return "errors", f"{ledger.abandoned:,} of {ledger.sent:,} never answered"
    return None, ""


def blamed(wave: Wave) -> Finding | None:
    """The finding of the wave's verdict that tells why less than what was sent on time was completed.

    That on the endpoint where the verdict is that it was the limit, or may have been; a finding on the client where
    less than 95% were completed, since most of them only warn. A busy worker alone is none: whether it sends on time is
    seen at the lag.
    """
    findings, side = wave.verdict.findings, wave.verdict.limited_by
    if side in ("server", EITHER):
        return next(finding for finding in findings if finding.code in SIDES[side])
    share = wave.summary.completed_share
    if side is None or share is None or share >= LEAST_COMPLETED_SHARE:
        return None
    return next((finding for finding in findings if finding.code in HINDRANCES), None)


def _seen(finding: Finding | None) -> str:
    """The words for what was found; a step's row shows the lag itself."""
    if finding is None:
        return ""
    code = "" if finding.code in (SERVER_LIMITED, CLIENT_OR_SERVER) else f"{finding.code}: "
    return code + finding.measured.partition(LAG_OF_IT)[0]


def _side(wave: Wave) -> Cause:
    return "server" if wave.verdict.limited_by in ("server", EITHER) else "client"


def _lateness(wave: Wave, lag_limit_s: float) -> str:
    lag = wave.summary.lag
    if lag is None:
        return "nothing was sent"
    late = ", ".join(late_hosts(wave.summary, lag_limit_s))
    parts = [f"{LATE} {duration_text(lag_limit_s)}{' on ' if late else ''}{late}"]
    if where := _blocked_by(wave):
        parts.append(f"blocked by {where}")
    if (starved := _starved_share(wave)) > NOTEWORTHY_STARVED_SHARE:
        parts.append(f"{starved:.0%} of the time no core was free")
    return ", ".join(parts)


def _is_disturbed(wave: Wave) -> bool:
    """Tells whether a worker waited for a core, or others took what there was."""
    return _starved_share(wave) > NOTEWORTHY_STARVED_SHARE or any(
        sender.others_took_cores for sender in senders_of(wave)
    )


def _starved_share(wave: Wave) -> float:
    return max((use.starved_share or 0.0 for use in wave.workers), default=0.0)


def _blocked_by(wave: Wave) -> str | None:
    """The user's code that held a worker's loop up for longest."""
    blocks = [use.block for use in wave.workers if use.block is not None and use.block.part != "tool"]
    longest = max(blocks, key=lambda block: block.longest_s, default=None)
    return longest.where if longest else None


def progress_line(step: Step) -> str:
    """A step in one line."""
    word = "held" if step.held else "not held"
    lag = None if step.lag_p99_s is None else duration_text(step.lag_p99_s)
    facts = [step.reason] if step.reason else []
    if lag is not None and step.reason.startswith(LATE):
        facts = [step.reason.replace(LATE, f"lag p99 {lag} >", 1)]
    elif lag is not None:
        facts.insert(0, f"lag p99 {lag}")
    if step.worker_cpu_share is not None:
        facts.append(f"worker CPU {step.worker_cpu_share:.0%}")
    return f"{step.phase:<11} {rate_text(step.rate):>8}/s {word:<9} {', '.join(facts)}"
