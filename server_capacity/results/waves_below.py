"""Checks a search or a proof against its waves, as far as they are there. ValueError for two numbers that disagree."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.digest import require_digest
from inference_benchmarker.data.json_file import foreign_content_of, read_json
from inference_benchmarker.data.typed import require
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.records.record import OUTCOMES
from inference_benchmarker.system.files import is_file
from inference_benchmarker.wave.files.counts_file import read_counts
from inference_benchmarker.wave.files.requests_file import outcomes_in
from inference_benchmarker.wave.report_check import check_verdict
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.words.redact import quoted, redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.proof import ProofResult, ProvenLimit
    from server_capacity.results.types.search_waves import ConfirmedLimit

_SAME = 1e-6
_ROUNDED_S = 0.002
"""A wave's length and warm-up have milliseconds."""


@dataclass(frozen=True, slots=True)
class _Wave:
    """A wave as its own files report it."""

    name: str
    run_dir: RunDir
    summary: Mapping[str, Any]
    plan: Mapping[str, Any]

    @property
    def sent(self) -> int:
        with foreign_content_of(self.run_dir.summary):
            return int(self.summary["ledger"]["sent"])

    @property
    def rate(self) -> float | None:
        """Requests/s, or the number of users, that it had from beginning to end; None of one whose load changed."""
        with foreign_content_of(self.run_dir.plan):
            load = self.plan["load"]
            if load["kind"] == "closed":
                return None if load.get("populations") else float(load["concurrency"])
            rates = {float(load["rate"])}
            for stage in load.get("stages") or ():
                rates |= {float(stage["from_rps"]), float(stage["to_rps"])}
            return rates.pop() if len(rates) == 1 else None

    def require_whole(self) -> None:
        """BenchmarkError where its verdict, or its ledger, is not what a wave with its requests has."""
        with foreign_content_of(self.run_dir.summary):
            require_digest(self.summary)
            check_verdict(self.summary)
            found, ledger = _outcomes(self.run_dir), self.summary["ledger"]
            require(ledger, dict[str, Any], "ledger")
            for outcome in OUTCOMES if found else ():
                if found[outcome] != ledger[outcome]:
                    text = f"{ledger[outcome]!r:.40}"
                    raise ValueError(f"{self.name} has {found[outcome]:,} {outcome} requests, and its ledger {text}")

    def value(self, expression: str) -> float | None:
        """The value that a limit is on, as the summary reports it; None where it does not."""
        with foreign_content_of(self.run_dir.summary):
            return self._value(expression)

    def _value(self, expression: str) -> float | None:
        slo = Slo.read(expression)
        if isinstance(slo, str):
            return None
        if slo.stat == "success":
            return self._number(self.summary.get("success_rate"))
        times = self.summary.get("response_time") or self.summary.get("latency")
        statistics = times if slo.metric == "default" else self.summary.get(slo.metric)
        return self._number((statistics or {}).get(slo.stat.replace(".", "_")))

    def require(self, what: str, value: float, there: float | None) -> None:
        """ValueError where its own files tell another number than it is said to have."""
        if there is not None and not math.isclose(value, there, rel_tol=_SAME, abs_tol=1e-9):
            raise ValueError(f"{self.name} has {what} {there:g}, not {value:g}")

    def require_limits(self, rows: Iterable[ConfirmedLimit | ProvenLimit]) -> None:
        """The same of each limit's value."""
        for row in rows:
            if row.value is not None:
                self.require(f"for {row.expression} the value", row.value, self.value(row.expression))

    @staticmethod
    def _number(value: object) -> float | None:
        return float(value) if isinstance(value, (int, float)) else None


def _wave_in(folder: Path, name: str) -> _Wave | None:
    """The wave of a folder; None where it is not there."""
    if name in (".", "..") or "/" in name:
        raise ValueError(f"{quoted(name, 40)} is not a folder below this one")
    run_dir = RunDir(folder / name)
    if not (is_file(run_dir.summary) and is_file(run_dir.plan)):
        return None
    return _Wave(name, run_dir, read_json(run_dir.summary, inside=folder), read_json(run_dir.plan, inside=folder))


def _outcomes(run_dir: RunDir) -> Mapping[str, int]:
    """The requests of each outcome that a wave has stored, or counted; empty where none can be read."""
    try:
        if is_file(run_dir.counts):
            window = read_counts(run_dir.counts).window
            return {outcome: window.total(outcome) for outcome in OUTCOMES}
        return outcomes_in(run_dir.requests)
    except OSError:
        return {}


def require_waves(folder: Path, found: CapacityResult) -> None:
    """Check a search against its waves."""
    for name in {name for names in (found.waves or {}).values() for name in names}:
        wave, endpoint = _wave_in(folder, name), found.endpoint
        called, there = (endpoint and endpoint.name), (wave and wave.plan.get("endpoint_name"))
        if called and there and redact(called) != redact(there):  # a plan has no user in an address
            raise ValueError(f"{name} was sent to {there}, but its search to {called}")
    sent: Counter[str] = Counter()
    for each in found.stretches or []:
        sent[each.wave] += each.sent
    for name, number in sent.items():
        wave = _wave_in(folder, name) if name else None
        if wave is not None and number > wave.sent:
            raise ValueError(f"{name} sent {wave.sent:,} requests, but its stretches have {number:,}")
    for confirmed in found.confirmation or []:
        wave = _wave_in(folder, confirmed.directory) if confirmed.directory else None
        if wave is None:
            continue
        wave.require_whole()
        if confirmed.exit_code is not None:
            wave.require("exit code", confirmed.exit_code, wave.summary["exit_code"])
        wave.require("the rate", confirmed.rate, wave.rate)
        wave.require_limits(confirmed.limits)


def require_wave(folder: Path, found: ProofResult) -> None:
    """Check a proof against its wave."""
    wave = _wave_in(folder, found.directory) if found.directory else None
    if wave is None:
        return
    wave.require_whole()
    wave.require("sent", found.sent, wave.sent)
    wave.require_limits(found.limits)
    wave.require("the rate", found.target_rps, wave.rate)
    if found.ended_early is None and found.outcome != "interrupted":
        seconds = wave.plan["bounds"].get("duration_s")
        if seconds is not None and abs(float(seconds) - found.length.seconds) > _ROUNDED_S:
            wave.require("the length", found.length.seconds, float(seconds))
