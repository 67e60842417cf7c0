"""A wave's spool so far: followed while the wave runs, and once more when it is over.

The rows of the requests stay in the file until they are asked for: what is kept does not grow with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.data.decoded import decoded
from inference_benchmarker.data.json_text import parse_json
from inference_benchmarker.data.typed import require
from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.facts.client_samples import Sample, Samples
from inference_benchmarker.facts.prompt_reuse import PromptsSent
from inference_benchmarker.plan.load import MAX_STAGES
from inference_benchmarker.plan.numbers import exact
from inference_benchmarker.plan.steering import RateChange
from inference_benchmarker.records.aggregation import BatchAggregator
from inference_benchmarker.records.batch import MAX_TEXTS, split_batch
from inference_benchmarker.records.feed import Feed
from inference_benchmarker.records.label_counters import LabelCounters
from inference_benchmarker.records.packed import BASE_DTYPE, METRIC_DTYPE, STREAM_DTYPE, TURN_DTYPE
from inference_benchmarker.records.parts import PART, RecordParts
from inference_benchmarker.records.record import MOST_TURN, Ledger
from inference_benchmarker.records.turn_feed import TurnFeed
from inference_benchmarker.records.user_metrics import CACHED_TOKENS, FIRST_ANSWER
from inference_benchmarker.system.progress import tell
from inference_benchmarker.wave.spool.host_states import HostStates
from inference_benchmarker.wave.spool.spool import BATCH, COMMAND_GONE, PLANNED, STOP_ASKED, SpoolReader
from inference_benchmarker.wave.spool.spooled import Batch, BatchIndex, Reporter, SpoolSource
from inference_benchmarker.wave.spool.worker_state import WorkerState
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from inference_benchmarker.records.columns import Records
    from inference_benchmarker.records.counts import Counts

    TurnTaker = Callable[[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]], None]

_READING = "Reading what was reported"
SILENT_S = 3  # a report is due every half second
_EVENTS: dict[str, dict[str, Any]] = {
    "start": {"t0": int, "wall_ns": int},
    "stop": {"at": int},
    "lost": {"worker": int, "at": int},
    "rate": {"at": int, "rate": str},
    "client": {"samples": list[list[Any]]},
    "hosts": {"hosts": list[dict[str, Any]]},
    "host_samples": {"host": str, "samples": list[list[Any]]},
    "foreign_connections": {"count": int},
}
_BATCH_META = {
    "worker": int,
    "at": int,
    "final": bool,
    "ledger": dict[str, int],
    "labels": list[str],
    "errors": list[str],
    "texts": list[list[str]],
}
"""What this tool writes into a spool, which anybody may have written."""


class SpoolState:
    """The state of a wave as its spool reports it; ``read`` takes in what was appended since.

    ``live``: somebody follows the wave while it runs, so there are a ``feed`` and ``turns``. A stored wave is computed
    from its rows.
    ``part``: about as many of them are held at a time. ``takers`` are given each report with values of the user's own
    as it comes in: its requests, the values, and the names that their numbers stand for. ``turn_takers`` are given
    each report of a wave of sessions: its requests, their streams, the gaps between tokens (µs) and their turns.
    """

    def __init__(self, spools: Iterable[Path], workers: int, *, live: bool = True, part: int = PART) -> None:
        self._live = live
        self._batches = BatchIndex(part)
        self._readers = [SpoolReader(path) for path in spools]
        self.workers = [WorkerState() for _ in range(workers)]
        self.texts: dict[str, list[str]] = {}
        self.start: dict[str, Any] | None = None
        self.stop_at: int | None = None
        self.stop_asked = False
        self.aborted: Aborted | None = None
        self.command_gone = False
        self.gone_at: int | None = None
        self.planned_end: int | None = None
        self.changes: list[RateChange] = []
        self.cut_at: int | None = None
        self.ended = False
        self.samples = Samples()
        self.hosts = HostStates()
        self.feed = Feed()
        self.turns = TurnFeed()
        self._named = LabelCounters()
        self.takers: list[Callable[[npt.NDArray[Any], npt.NDArray[Any], Sequence[str]], None]] = []
        self.turn_takers: list[TurnTaker] = []
        self._adder = BatchAggregator()
        self.foreign_connections = 0
        self.prompts = PromptsSent()

    @property
    def end_at(self) -> int | None:
        """When the wave was ended before its plan's end: stopped, or cut off where nobody can count on."""
        return self.cut_at if self.stop_at is None else self.stop_at

    def add_spool(self, path: Path) -> None:
        """Go on in another file: the first one's disk was full."""
        self._readers.append(SpoolReader(path))

    def read(self) -> None:
        """Take in the new frames.

        Raises one of ``run_dir.UNREADABLE`` for a frame that is whole and not of this tool.
        """
        for number, reader in enumerate(self._readers):
            for kind, data in reader.frames():
                if kind == BATCH:
                    self._take_batch(data, number, reader.place)
                else:
                    self._take_event(parse_json(data))
                if not self._live:
                    tell(_READING, reader.place, reader.size)
        tell(_READING, 1, 1)

    def counts(self) -> Counts:
        """The counts of all reports, without any where each request was reported."""
        return self._adder.counts()

    def named(self) -> LabelCounters:
        """The requests by label and the users' values, of a wave that is followed; counted requests have no values."""
        if not self._adder.labels:
            return self._named
        found = LabelCounters()
        found.merge_labels(self._adder.labels)
        return found

    def close(self) -> None:
        """Nothing more is read."""
        for reader in self._readers:
            reader.close()

    def records(self) -> Records | RecordParts:
        """Every request reported so far, the warm-up's first: in memory where they are no more than a part.

        ValueError where the spool is not what it was, or is none that a wave leaves.
        """
        frames = [reader.again() for reader in self._readers]
        reporters = [
            Reporter(number, worker.labels, worker.errors, worker.finish_reasons, worker.metrics)
            for number, worker in enumerate(self.workers)
        ]
        source = SpoolSource(frames, self._batches, reporters)
        return RecordParts(source) if len(source.lengths) > 1 else source.read(0, ())

    @property
    def payloads(self) -> int | None:
        """The number of pre-computed payloads; None where they are built, or no worker reported it."""
        found = None if self.start is None else self.start.get("payloads")
        return found if type(found) is int and found > 0 else None

    @property
    def payloads_in_turn(self) -> int | None:
        """The same where arrivals take them in turn; None where they are drawn by weight."""
        in_turn = self.start is not None and self.start.get("in_turn") is True
        return self.payloads if in_turn else None

    @property
    def warmed(self) -> Any:
        """The requests that were sent once before the load, as the first worker reported them; None without any."""
        return None if self.start is None else self.start.get("warmed")

    @property
    def has_sessions(self) -> bool:
        """Tells whether arrivals are sessions of several turns."""
        return self.start is not None and self.start.get("sessions") is True

    @property
    def ledger(self) -> Ledger:
        """The workers' own counts, added up."""
        return sum((worker.ledger for worker in self.workers), Ledger())

    @property
    def last_due(self) -> int:
        """When the last arrival that was reported was due."""
        return max((worker.last_due for worker in self.workers), default=0)

    @property
    def rows(self) -> int:
        """The number of requests reported; of those that were counted, about as many as their reports bear out."""
        return sum(worker.rows + worker.counted for worker in self.workers)

    @property
    def warmup_rows(self) -> int:
        """The number of them that were the warm-up's."""
        return sum(worker.warmup for worker in self.workers)

    @property
    def whole_seconds(self) -> int:
        """Seconds of the wave that the feed knows whole; a worker that is silent holds them up for a while only."""
        instants = [worker.at // NS for worker in self.workers if worker.lost_at is None and not worker.final]
        newest = max((worker.at // NS for worker in self.workers), default=0)
        return max(min(instants, default=newest), newest - SILENT_S, 0)

    def _take_event(self, event: dict[str, Any]) -> None:
        _require_members(event, _EVENTS.get(event["event"], {}), "event")
        match event["event"]:
            case "start":
                self.start = event
            case "stop":
                self._take_stop(event["at"], event.get("cause", STOP_ASKED))  # a spool of an older version has none
                aborted = event.get("aborted")
                self.aborted = None if aborted is None else decoded(aborted, Aborted)
            case "rate":
                self._take_change(event["at"], event["rate"])
            case "lost":
                self._worker(event["worker"]).lost_at = event["at"]
            case "client":
                samples = [Sample(*values) for values in event["samples"]]
                require(samples, list[Sample], "samples")
                for sample in samples:
                    self.samples.add(sample)
            case "hosts" | "host_samples":
                self.hosts.take(event)
            case "foreign_connections":
                self.foreign_connections = event["count"]
            case "end":
                self.ended = True

    def _take_stop(self, at: int, cause: str) -> None:
        """The plan holds to its end where the command was killed: what was not sent by then is lost."""
        if cause == COMMAND_GONE:
            self.command_gone, self.gone_at = True, at
        elif cause == PLANNED and at > 0:
            self.planned_end = at
        else:
            self.stop_at = at
            self.stop_asked = self.stop_asked or cause == STOP_ASKED

    def _take_change(self, at: int, rate: str) -> None:
        """Changes stand in the order in which they come into force, so each may be a stage."""
        if len(self.changes) >= MAX_STAGES or at <= (self.changes[-1].at_ns if self.changes else 0):
            raise ValueError(f"change {len(self.changes) + 1} of the rate, at {at} ns, follows none")
        self.changes.append(RateChange(at, exact(rate)))

    def _take_batch(self, data: bytes, spool: int, place: int) -> None:
        meta, base, streams, gaps, values, turns = split_batch(data)
        _require_members(meta, _BATCH_META, "batch")
        worker = self._worker(meta["worker"])
        worker.take_report(meta)
        worker.final = worker.final and not self.command_gone  # a worker that was ended early has no last report
        self._take_texts(meta["texts"])
        rows, attempts = np.frombuffer(base, BASE_DTYPE), meta.get("attempts", [])
        worker.take_rows(rows, attempts, np.frombuffer(turns, TURN_DTYPE))
        most_turns = MOST_TURN if len(turns) else 1
        self._batches.add(rows["index"], Batch(spool, place, meta["worker"], len(attempts), len(data)), most_turns)
        if "prompt_rows" in meta:
            self.prompts.take(meta["worker"], meta["prompt_rows"], meta["prompt_sums"], meta["stems"])
        if "totals" in meta:
            self._adder.add(meta, labels=worker.labels, errors=worker.errors, reasons=worker.finish_reasons)
            worker.take_counts(meta, len(data))
        if self._live:
            host = self.hosts.name_of(meta["worker"])
            self.feed.merge(meta.get("feed", []), worker.errors, host)  # a spool of an older version has none
            metrics = np.frombuffer(values, METRIC_DTYPE)
            cached = metrics[metrics["name"] == worker.number_of(CACHED_TOKENS)]
            packed_streams, packed_turns = np.frombuffer(streams, STREAM_DTYPE), np.frombuffer(turns, TURN_DTYPE)
            self.turns.take(rows, packed_streams, packed_turns, cached)
            for take in self.turn_takers if len(packed_turns) else ():
                take(rows, packed_streams, np.frombuffer(gaps, np.uint32), packed_turns)
            if "totals" not in meta:
                self._take_values(worker, rows, metrics)

    def _take_texts(self, texts: Iterable[Sequence[str]]) -> None:
        """Keep the first texts of each error."""
        for key, text in texts:
            first = self.texts.setdefault(key, [])
            if text not in first and len(first) < MAX_TEXTS:
                first.append(text)

    def _take_values(self, worker: WorkerState, rows: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
        """Count requests by label, and hand the values of the user's own to those who want them."""
        own = values[values["name"] != FIRST_ANSWER]
        self._named.add(rows, own, worker.labels, worker.metrics)
        for take in self.takers if len(own) else ():
            take(rows, own, worker.metrics)

    def _worker(self, number: int) -> WorkerState:
        if not 0 <= number < len(self.workers):
            raise ValueError(f"there is no worker {number} among {len(self.workers)}")
        return self.workers[number]


def _require_members(data: dict[str, Any], kinds: dict[str, Any], name: str) -> None:
    for key, kind in kinds.items():
        require(data[key], kind, f"{name}.{key}")
