"""A finished wave: put together from its spool, stored in its run directory, loaded back from there."""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import closing, suppress
from dataclasses import replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.client_use import HostUse, ProcessUse, WorkerUse
from inference_benchmarker.facts.wave_facts import WaveFacts, Window, reconcile_ledgers
from inference_benchmarker.files import is_file, most_in_memory, replace_file
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.report import text as report
from inference_benchmarker.summary.summary import Summary, summarise
from inference_benchmarker.summary.timeline import timeline
from inference_benchmarker.units import NS
from inference_benchmarker.verdict.verdict import Verdict, judge
from inference_benchmarker.version import SCHEMA_VERSION, __version__
from inference_benchmarker.wave.consistency import check_wave
from inference_benchmarker.wave.run_dir import UNREADABLE, RunDir, foreign, read_json, read_plan, write_json
from inference_benchmarker.wave.spool import is_locked
from inference_benchmarker.wave.spool_state import SpoolState
from inference_benchmarker.wave.store import read_records, write_records

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from inference_benchmarker.facts.server_metric import Interval, ServerLog, ServerMetric
    from inference_benchmarker.plan.plan import WavePlan


MOST_LOG = 1 << 28
MOST_DRAWN = 5_000_000  # arrivals of a Poisson wave, some seconds of drawing


class Wave(WaveFacts):
    """A finished wave: its plan, window, records and ledger, with the numbers computed from them on demand."""

    run_dir: RunDir | None = None

    @cached_property
    def summary(self) -> Summary:
        """Every number of the report."""
        return summarise(self)

    @cached_property
    def verdict(self) -> Verdict:
        """VALID or INVALID, with the findings."""
        return judge(self, self.summary)

    def frame(self) -> pd.DataFrame:
        """The window's records as a pandas frame; instants in ns after wave start."""
        frame: pd.DataFrame = self.records.table.to_pandas()
        return frame

    def text(self) -> str:
        """The report for people."""
        return report.to_text(self, self.summary, self.verdict, None if self.run_dir is None else self.run_dir.path)

    def texts(self) -> tuple[str, str]:
        """The report in two parts: what the client measured, then what the server tells, findings and verdict."""
        run_dir = None if self.run_dir is None else self.run_dir.path
        facts = (self, self.summary, self.verdict)
        return report.client_text(*facts), report.server_text(*facts, run_dir)

    def to_json(self) -> dict[str, Any]:
        """The report for programs: the content of summary.json."""
        return report.to_json(self, self.summary, self.verdict)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load a run directory; one that was cut off is finalised first."""
        run_dir = RunDir.find(Path(path))
        if is_file(run_dir.requests) and is_file(run_dir.summary):
            return cls._stored(run_dir)
        if not is_file(run_dir.spool):
            raise BenchmarkError(f"{run_dir.path}: no request was recorded in it.", "The wave ended before it began.")
        if is_locked(run_dir.spool):
            raise BenchmarkError(f"{run_dir.path}: its wave is still running.", "Wait for its end.")
        wave = cls._of_spool(run_dir)
        with suppress(OSError):  # what cannot be written to can still be read
            wave.save()
        return wave

    @classmethod
    def _of_spool(cls, run_dir: RunDir) -> Self:
        """The wave of a spool that nobody writes to any more, and that anybody may have written."""
        plan = read_plan(run_dir)
        try:
            if run_dir.spool.stat(follow_symlinks=False).st_size > most_in_memory():
                raise ValueError("it does not fit in this machine's memory")
            spool_state = SpoolState([run_dir.spool], plan.workers)
            with closing(spool_state):
                spool_state.read()
            _make_countable(plan, spool_state)
            wave = cls.of_spool(plan, spool_state, run_dir, primary_lost=not spool_state.ended)
            check_wave(wave)
        except (OSError, MemoryError, RecursionError, *UNREADABLE) as error:
            raise foreign(run_dir.spool, error) from None
        return wave

    @classmethod
    def of_spool(
        cls,
        plan: WavePlan,
        spool_state: SpoolState,
        run_dir: RunDir,
        *,
        primary_lost: bool = False,
        interrupted: bool = False,
        disk_error: str | None = None,
        left_behind: tuple[str, ...] = (),
        facts: dict[str, Any] | None = None,
    ) -> Self:
        """The wave that a spool_state tells of; a worker without a last report is lost.

        ``facts``: what ``plan.json`` says beside the plan, where it need not be read.
        """
        if spool_state.start is None:
            raise BenchmarkError(f"{run_dir.path}: no request was recorded in it.", "The wave ended before it began.")
        records = spool_state.records()
        index = records.int("index")
        described = read_json(run_dir.plan) if facts is None else facts
        lost = {number for number, worker in enumerate(spool_state.workers) if not worker.final}
        wave = cls(
            plan=plan,
            window=_window(plan, spool_state, records),
            records=records.where(index >= 0),
            warmup=records.where(index < 0),
            ledgers=reconcile_ledgers(plan, [w.ledger for w in spool_state.workers], lost, spool_state.end_at),
            lost_workers=tuple(sorted(lost)),
            primary_lost=primary_lost,
            interrupted=interrupted or spool_state.stop_asked,
            disk_error=disk_error,
            left_behind=left_behind,
            foreign_connections=spool_state.foreign_connections,
            error_texts=spool_state.texts,
            caps=tuple(spool_state.start.get("caps", ())),
            workers=tuple(worker.worker_use for worker in spool_state.workers),
            **_client(plan, spool_state),
            calibration=described.get("calibration"),
            environment=described.get("environment", {}),
        )
        wave.run_dir = run_dir
        return wave

    def save(self) -> None:
        """Store the wave in its run directory; the spool goes when all else is safely there."""
        assert self.run_dir is not None
        write_records(self.run_dir.requests, self._all_records())
        replace_file(self.run_dir.timeline, timeline(self))
        replace_file(self.run_dir.report, self.text())
        write_json(self.run_dir.summary, self.to_json())
        with suppress(OSError):  # all else is stored: what is left of it is only space
            self.run_dir.spool.unlink(missing_ok=True)

    def with_server_metrics(self, metrics: Iterable[ServerMetric], logs: Iterable[ServerLog] = ()) -> Self:
        """The same wave with what its server's metrics and logs say, now or still."""
        from inference_benchmarker.facts.server_metric import renewed, renewed_logs

        wave = replace(
            self,
            server_metrics=renewed(self.server_metrics or (), metrics),
            server_logs=renewed_logs(self.server_logs or (), logs) or None,
        )
        wave.run_dir = self.run_dir
        return wave

    def store_server_metrics(self) -> None:
        """Store them beside the rest. Raises OSError where the run directory cannot be written to any more."""
        if self.run_dir is not None:
            rows = [metric.to_json() for metric in self.server_metrics or ()]
            logs = [log.to_json() for log in self.server_logs or ()]
            told = {"schema_version": SCHEMA_VERSION, "metrics": rows, "logs": logs}
            write_json(self.run_dir.server_metrics, told)
            replace_file(self.run_dir.report, self.text())
            write_json(self.run_dir.summary, self.to_json())

    def interval(self) -> Interval:
        """The window as sources of server metrics take it. The warm-up's requests were seen by the server, too."""
        from inference_benchmarker.facts.server_metric import Interval

        start = self.window.start_unix_ns / NS
        return Interval(
            begin=start - self.plan.warmup_ns / NS,
            start=start,
            end=start + self.window.duration_ns / NS,
            sent=self.ledger.sent + len(self.warmup),
            answered=self.ledger.ok + int(self.warmup.outcome("ok").sum()),
            tasks=self.plan.locust_file is not None,
        )

    def _all_records(self) -> Records:
        import pyarrow as pa

        return Records(pa.concat_tables([self.warmup.table, self.records.table]))

    @classmethod
    def _stored(cls, run_dir: RunDir) -> Self:
        facts = read_json(run_dir.summary)
        plan = read_plan(run_dir)
        records = read_records(run_dir.requests)
        try:
            wave = cls._of_facts(plan, records, facts)
            check_wave(wave)
        except UNREADABLE as error:
            raise foreign(run_dir.summary, error) from None
        wave.run_dir = run_dir
        return wave

    @classmethod
    def _of_facts(cls, plan: WavePlan, records: Records, facts: dict[str, Any]) -> Self:
        index = records.int("index")
        return cls(
            plan=plan,
            window=Window.from_json(facts["window"]),
            records=records.where(index >= 0),
            warmup=records.where(index < 0),
            ledgers=tuple(Ledger.from_json(ledger) for ledger in facts["ledger"]["workers"]),
            lost_workers=tuple(facts["lost_workers"]),
            primary_lost=facts["primary_lost"],
            interrupted=facts["interrupted"],
            disk_error=facts["disk_error"],
            left_behind=tuple(facts.get("left_behind", ())),
            foreign_connections=facts.get("foreign_connections", 0),  # an older version did not count them
            error_texts={row["key"]: row["texts"] for row in facts["errors"]},
            **_stored_client(facts),
            environment=facts["environment"],
            server_metrics=_stored_metrics(facts["server_metrics"]),
            server_logs=_stored_logs(facts.get("server_logs")),
        )


def describe_environment(plan: WavePlan) -> dict[str, Any]:
    """The facts a reader needs to repeat the wave: versions, host, what was run."""
    target = plan.factories_file or plan.locust_file
    return {
        "version": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in ("locust", "gevent", "boto3", "geventhttpclient")},
        "host": platform.node(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "file": None if target is None else str(target),
        "file_sha256": _sha256(target),
        "seed": plan.seed,
    }


def _make_countable(plan: WavePlan, spool_state: SpoolState) -> None:
    """Draw of a Poisson wave no more arrivals than its requests bear out.

    Where the plan has many more, as that of a long wave that was soon cut off, the arrivals after the last report are
    left out: the wave counts as stopped then.
    """
    bucket, rows = TokenBucket.of(plan), sum(len(rows) for worker in spool_state.workers for rows in worker.base)
    most = MOST_DRAWN + 10 * rows
    if bucket.draws(spool_state.end_at) <= most:
        return
    spool_state.cut_at = max(worker.at for worker in spool_state.workers)
    if (arrivals := bucket.draws(spool_state.end_at)) > most:
        raise ValueError(f"about {arrivals:,.0f} arrivals were due, and {rows:,} requests were reported")


def _window(plan: WavePlan, spool_state: SpoolState, records: Records) -> Window:
    """The duration ends with the last answer; a request that was abandoned has none."""
    assert spool_state.start is not None
    answered = (records.int("index") >= 0) & ~records.outcome("abandoned")
    done = records.int("done")[answered]
    last = int(done.max()) if len(done) else max((worker.at for worker in spool_state.workers), default=0)
    return Window(
        start_unix_ns=spool_state.start["wall_ns"],
        t0_monotonic_ns=spool_state.start["t0"],
        planned_ns=TokenBucket.of(plan).duration_ns(spool_state.end_at),
        duration_ns=max(last, 0),
        stopped_at_ns=spool_state.end_at,
    )


def _client(plan: WavePlan, spool_state: SpoolState) -> dict[str, Any]:
    """The use of host and processes while the wave sent; where it was shorter than a sample, what there is."""
    assert spool_state.start is not None
    begun = spool_state.start["wall_ns"] / NS
    planned = TokenBucket.of(plan).duration_ns(spool_state.end_at)
    ended = float("inf") if planned is None else begun + planned / NS + 1
    samples = [sample for sample in spool_state.samples if begun <= sample.unix_s <= ended] or spool_state.samples
    return {
        "host": HostUse.of(samples, **spool_state.start["host"]) if "host" in spool_state.start else None,
        "processes": ProcessUse.of(samples) if plan.sample_client_hw else (),
    }


def _stored_client(facts: dict[str, Any]) -> dict[str, Any]:
    """The client's part of a summary.json; one of an older version has less of it."""
    client = facts["client"]
    if "caps" not in client:
        return {}
    return {
        "caps": tuple(client["caps"]),
        "workers": tuple(WorkerUse.from_json(worker) for worker in client["workers"]),
        "host": None if client["host"] is None else HostUse(**client["host"]),
        "processes": tuple(ProcessUse.from_json(process) for process in client["processes"]),
        "calibration": facts["calibration"],
    }


def _stored_metrics(rows: list[dict[str, Any]] | None) -> tuple[ServerMetric, ...] | None:
    if rows is None:
        return None
    from inference_benchmarker.facts.server_metric import ServerMetric

    return tuple(ServerMetric.from_json(row) for row in rows)


def _stored_logs(logs: list[dict[str, Any]] | None) -> tuple[ServerLog, ...] | None:
    """An older run has none."""
    if logs is None:
        return None
    from inference_benchmarker.facts.server_metric import ServerLog

    return tuple(ServerLog.from_json(log) for log in logs)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _sha256(path: Path | None) -> str | None:
    if path is None or not path.is_file():
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest()
