"""A finished wave as a value, with the numbers and words that follow from it; ``wave.Wave`` can be loaded, too."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.facts.instances import renewed_instances
from inference_benchmarker.facts.load_end import load_end_ns
from inference_benchmarker.facts.server_metric import Interval, renewed, renewed_logs
from inference_benchmarker.facts.wave_facts import WaveFacts
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.parts import PART
from inference_benchmarker.report import text as report
from inference_benchmarker.report.headline import headline
from inference_benchmarker.report.summary_json import summary_of
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.verdict import Verdict, judge
from inference_benchmarker.words.text import one_line, plain
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    import pandas as pd
    from pyarrow.dataset import Dataset

    from inference_benchmarker.facts.instances import Followed
    from inference_benchmarker.facts.server_metric import ServerLog, ServerMetric
    from inference_benchmarker.records.parts import InParts
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.wave.frames import Filter, Selection
    from inference_benchmarker.wave.run_dir import RunDir

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FinishedWave(WaveFacts):
    """A finished wave: its plan, window, records and ledger. Its numbers are computed once, when they are asked for.

    ``run_dir``: where it is stored; None where that could be nowhere.
    """

    run_dir: RunDir | None = None
    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        """In a line, without computing anything."""
        ledger, name = self.ledger, "" if self.plan.name is None else f" {one_line(self.plan.name)!r}"
        counts = f"{ledger.sent:,} sent, {ledger.ok:,} ok, {ledger.failed:,} failed"
        where = "stored nowhere" if self.run_dir is None else f"in {plain(str(self.run_dir.path))}"
        return f"<{type(self).__name__}{name}: {counts}, {where}>"

    def _repr_html_(self) -> str:
        """The report's first line and its table of times, for notebooks."""
        return f"<p>{escape(plain(headline(self.summary, self.verdict)))}</p>{self.summary._repr_html_()}"

    @property
    def summary(self) -> Summary:
        """Every number of the report."""
        return self._once("summary", lambda: summarise(self))

    @property
    def verdict(self) -> Verdict:
        """VALID or INVALID, with the findings."""
        return self._once("verdict", lambda: judge(self, self.summary))

    def frame(
        self, columns: Sequence[str] | None = None, where: Filter | None = None, most_bytes: int | None = None
    ) -> pd.DataFrame:
        """The window's records as a pandas frame; instants in ns after wave start.

        ``columns``: those alone, in this order. ``where``: the rows for which it holds, as tuples
        (``[("outcome", "==", "ok")]``) or an expression of ``pyarrow.compute``. BenchmarkError where the frame would
        take more than ``most_bytes`` of memory, by default half of what is free.
        """
        from psutil import virtual_memory

        most = virtual_memory().available // 2 if most_bytes is None else most_bytes
        return self._selection(columns, where).frame(most)

    def batches(
        self, columns: Sequence[str] | None = None, where: Filter | None = None, rows: int = PART
    ) -> Iterator[pd.DataFrame]:
        """The same as frames of at most so many ``rows``, one after the other: for waves that are too large for one."""
        return self._selection(columns, where).batches(rows)

    def dataset(self) -> Dataset:
        """The window's records as an Arrow dataset: of the file where the wave is stored, so that nothing is read yet.

        DuckDB, Polars and Arrow compute on it without holding it.
        """
        from inference_benchmarker.wave.frames import in_memory  # which is slow to load

        stored = self._stored()
        return in_memory(self.records) if stored is None else stored

    def _stored(self) -> Dataset | None:
        from inference_benchmarker.wave.files.requests_file import dataset

        return None if self.run_dir is None else dataset(self.run_dir.requests)

    def _selection(self, columns: Sequence[str] | None, where: Filter | None) -> Selection:
        from inference_benchmarker.wave.frames import Selection

        in_parts = not isinstance(self.records, Records)
        stored = self._stored() if in_parts else None
        return Selection(self.records if stored is None else stored, columns, where)

    def text(self, width: int | None = None, next_commands: Sequence[str] | None = None) -> str:
        """The report for people; ``width``: the columns into which its tables and prose are fitted.

        ``next_commands``: of the short report of a terminal, which names them at its end; None: the whole report.
        """
        return report.to_text(self, self.summary, self.verdict, self._path, width, next_commands=next_commands)

    def texts(self, width: int | None = None, next_commands: Sequence[str] | None = None) -> tuple[str, str]:
        """The report in two parts: what the client measured, then what the server reports, findings and verdict."""
        facts = (self, self.summary, self.verdict)
        client = report.client_text(*facts, width, is_short=next_commands is not None)
        return client, report.server_text(*facts, self._path, width, next_commands=next_commands)

    def to_json(self) -> dict[str, Any]:
        """The report for programs: the content of summary.json."""
        fields: dict[str, Any] = encoded(summary_of(self, self.summary, self.verdict))
        return fields

    def stored_in(self, run_dir: RunDir | None) -> Self:
        """The same wave, to be found there."""
        return self._with("summary", "verdict", run_dir=run_dir)

    def with_requests(self, everything: InParts) -> Self:
        """The same wave with its requests, the warm-up's first, from another place."""
        begin = len(self.warmup)
        records, warmup = everything.between(begin, len(everything)), everything.between(0, begin)
        return self._with("summary", "verdict", records=records, warmup=warmup)

    def with_server_metrics(self, metrics: Iterable[ServerMetric], logs: Iterable[ServerLog] = ()) -> Self:
        """The same wave with what its server's metrics and logs say, now or still. They are in no number of ours."""
        return self._with(
            "summary",
            server_metrics=renewed(self.server_metrics or (), metrics),
            server_logs=renewed_logs(self.server_logs or (), logs) or None,
        )

    def with_instances(self, followed: Iterable[Followed]) -> Self:
        """The same wave with what was followed of its server's instances. They are in no number of ours."""
        return self._with("summary", instances=renewed_instances(self.instances, followed))

    def with_verdict(self, verdict: Verdict) -> Self:
        """The same wave as other rules judged it."""
        changed = self._with("summary", "load_end")
        changed._known["verdict"] = verdict  # noqa: SLF001 - another of this class
        return changed

    def interval(self) -> Interval:
        """The window as sources of server metrics take it. The warm-up's requests were seen by the server, too."""
        start, loaded = self.window.start_unix_ns / NS, self._once("load_end", lambda: load_end_ns(self))
        return Interval(
            begin=start - self.plan.warmup_ns / NS,
            start=start,
            end=start + self.window.duration_ns / NS,
            sent=self.ledger.sent + self.warmup_sent,
            answered=self.ledger.ok + self._warmup_ok,
            tasks=self.plan.locust_file is not None,
            loaded=None if loaded is None else start + loaded / NS,
            warmup_sent=self.warmup_sent,
        )

    @property
    def _warmup_ok(self) -> int:
        if self.counts is not None:
            return self.counts.warmup.total("ok")
        return sum(int(part.outcome("ok").sum()) for part in self.warmup.parts("outcome"))

    @property
    def _path(self) -> Path | None:
        return None if self.run_dir is None else self.run_dir.path

    def _once(self, name: str, compute: Callable[[], T]) -> T:
        if name not in self._known:
            self._known[name] = compute()
        return cast("T", self._known[name])

    def _with(self, *kept: str, **changes: Any) -> Self:
        """A changed wave that keeps what is known already of this one and what no change touches."""
        changed = replace(self, **changes)
        known = {name: value for name, value in self._known.items() if name in kept}
        changed._known.update(known)  # noqa: SLF001 - another of this class
        return changed
