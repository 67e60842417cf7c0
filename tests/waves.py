"""Waves made up in memory, of any load and outcome, and their run directories: for what reads them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.data.json_file import read_json, write_json
from inference_benchmarker.facts.client_use import HostUse, WorkerUse
from inference_benchmarker.facts.wave_facts import WaveFacts, Window, reconcile_ledgers
from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.records.batch import FINISH_SHIFT, HAS_STREAM, split_batch
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.columns import SCHEMA, Records
from inference_benchmarker.records.packed import BASE_DTYPE, METRIC_DTYPE, STREAM_DTYPE, TURN_DTYPE, WorkerColumns
from inference_benchmarker.records.record import ENDINGS, NONE, OUTCOMES, Ledger, RequestRecord
from inference_benchmarker.wave import writer
from inference_benchmarker.wave.plan_file import save_plan
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.spool.spool import SpoolWriter
from inference_benchmarker.wave.wave import Wave
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from inference_benchmarker.plan.pacing import Arrival

MS = NS // 1000


def open_plan(rate: str = "10", seconds: str | None = "10", number: int | None = None, **more: Any) -> WavePlan:
    return WavePlan(OpenLoop(Decimal(rate)), Bounds(None if seconds is None else Decimal(seconds), number), **more)


def closed_plan(concurrency: int = 2, seconds: str | None = "1", number: int | None = None, **more: Any) -> WavePlan:
    return WavePlan(ClosedLoop(concurrency), Bounds(None if seconds is None else Decimal(seconds), number), **more)


def staged(stages: str, **more: Any) -> WavePlan:
    load = OpenLoop(stages=tuple(map(Stage.parse, stages.split(","))))
    return WavePlan(load, Bounds(), **more)


def on_time(plan: WavePlan, latency_ns: int = 20 * MS) -> list[RequestRecord]:
    """Every arrival of an open loop, sent when due and answered after the same time."""
    bucket = TokenBucket.of(plan)
    return [
        RequestRecord(token.index, token.index % plan.workers, token.due, token.due, token.due + latency_ns)
        for worker in range(plan.workers)
        for token in bucket.arrivals(worker)
    ]


def observe(
    plan: WavePlan, records: Iterable[RequestRecord], *, stopped_at: int | None = None, **more: Any
) -> WaveFacts:
    """The wave that left these records, with the ledgers and the window they mean."""
    everything = list(records)
    warm, window = [r for r in everything if r.index < 0], [r for r in everything if r.index >= 0]
    dropped: list[int] = more.pop("dropped", [0] * plan.workers)
    reported = []
    for number in range(plan.workers):
        mine = [r for r in window if r.worker == number]
        count = {name: sum(r.outcome == name for r in mine) for name in ("ok", "failed", "abandoned")}
        count["repeated"] = sum(r.attempt > 0 for r in mine)
        count["later_turns"] = sum((r.turn or 0) > 1 and not r.attempt for r in mine)
        endings = {f"sessions_{name}": sum(r.ended == name for r in mine) for name in ENDINGS}
        reported.append(Ledger(sent=len(mine), dropped=dropped[number], **count, **endings))
    last = max((r.done for r in window if r.outcome != "abandoned"), default=0)
    planned = TokenBucket.of(plan).duration_ns(stopped_at)
    lost = more.get("lost_workers", ())
    return WaveFacts(
        plan=plan,
        window=Window(1_700_000_000 * NS, 5, planned, last, stopped_at),
        records=Records.of(window),
        warmup=Records.of(warm),
        ledgers=reconcile_ledgers(plan, reported, set(lost), stopped_at),
        **more,
    )


def streamed(index: int, first_ms: int, gaps_ms: tuple[int, ...], **more: Any) -> RequestRecord:
    start = index * 100 * MS
    first = start + first_ms * MS
    last = first + sum(gaps_ms) * MS
    gaps = tuple(gap * 1000 for gap in gaps_ms)
    base = RequestRecord(index, 0, start, start, last, "ok", "", None, 0, first, last, len(gaps) + 1, gaps=gaps)
    return base._replace(**more)


def talks(*turns: int) -> list[RequestRecord]:
    """A session a second with so many streamed turns: turn t takes 10 t ms, and t ms to its first token."""
    found = []
    for number, count in enumerate(turns):
        due = number * NS
        for turn in range(1, count + 1):
            record = RequestRecord(number, 0, due, due, due + 10 * turn * MS, session=number, turn=turn)
            record = record._replace(first_token=due + turn * MS, last_token=record.done, chunks=2)
            record = record._replace(gaps=(9_000 * turn,), think_ns=100 * MS if turn > 1 else None)
            found.append(record._replace(ended="completed" if turn == count else None))
            due = record.done + 100 * MS
    return found


class Worker:
    """Writes records as a worker does and joins its batches as a reader does."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.writer = BatchWriter()
        self.batches: list[bytes] = []

    def write(self, record: RequestRecord, arrived: int | None = None) -> None:
        label = self.writer.labels[record.label]
        error = 0 if record.error is None else self.writer.errors[record.error]
        outcome = OUTCOMES.index(record.outcome)
        stream = (record.chunks, record.tokens_in, record.tokens_out) != (None, None, None)
        size = NONE if record.bytes is None else record.bytes
        flag = HAS_STREAM if stream else 0
        flag |= self.writer.finish_reasons[record.finish_reason or ""] << FINISH_SHIFT
        self.writer.add(
            record.index, record.due, record.sent, record.done, record.build_ns, size, label, error, outcome | flag
        )
        if stream:
            self.writer.add_stream(self._times(record), _packed(record.tokens_in), _packed(record.tokens_out))
        if record.metrics:
            self.writer.metric_numbers.take_up(record.metrics)
            self.writer.add_metrics(record.metrics)
        if record.turn is not None:
            ended = 0 if record.ended is None else 1 + ENDINGS.index(record.ended)
            self.writer.turns.append((_packed(record.think_ns), record.turn, ended))
        if record.attempt:
            self.writer.add_attempt(record.attempt, record.due if arrived is None else arrived)

    @staticmethod
    def _times(record: RequestRecord) -> list[int] | None:
        if record.gaps is None or not record.chunks:
            return None if record.gaps is None else []
        assert record.first_token is not None
        assert record.last_token is not None
        times = [record.first_token]
        for gap in record.gaps[:-1]:
            times.append(times[-1] + gap * 1000)
        return [*times, record.last_token] if record.gaps else times

    def flush(self) -> None:
        self.batches.append(self.writer.take({"worker": self.number}))

    def columns(self) -> WorkerColumns:
        parts = [split_batch(batch) for batch in self.batches]
        attempts, rows = [np.zeros((0, 2), np.int64)], 0
        metrics = [np.zeros(0, METRIC_DTYPE)]
        for meta, base, _, _, reported, _ in parts:
            attempts.append(np.array(meta.get("attempts", []), np.int64).reshape(-1, 2) + np.array((rows, 0)))
            metrics.append(np.frombuffer(reported, METRIC_DTYPE).copy())
            metrics[-1]["row"] += rows
            rows += len(base) // BASE_DTYPE.itemsize
        return WorkerColumns(
            worker=self.number,
            base=np.frombuffer(b"".join(part[1] for part in parts), BASE_DTYPE),
            streams=np.frombuffer(b"".join(part[2] for part in parts), STREAM_DTYPE),
            gaps=np.frombuffer(b"".join(part[3] for part in parts), np.uint32),
            labels=[name for part in parts for name in part[0]["labels"]],
            errors=[name for part in parts for name in part[0]["errors"]],
            finish_reasons=[name for part in parts for name in part[0]["finish_reasons"]],
            attempts=np.concatenate(attempts),
            metrics=np.concatenate(metrics),
            metric_names=[*self.writer.metric_numbers],
            turns=np.frombuffer(b"".join(part[5] for part in parts), TURN_DTYPE),
        )


def _packed(value: int | None) -> int:
    return NONE if value is None else value


def stream(times: list[int] | None, tokens_in: int = NONE, tokens_out: int = NONE) -> RequestRecord:
    worker = Worker()
    worker.writer.add(0, 0, 0, 0, 0, NONE, 0, 0, HAS_STREAM)
    worker.writer.add_stream(times, tokens_in, tokens_out)
    worker.writer.add(1, 0, 0, 0, 0, NONE, 0, 0, HAS_STREAM)
    worker.writer.add_stream([0, 7_000, 9_000], NONE, NONE)
    worker.flush()
    first, second = Records.of_workers([worker.columns()])
    assert second.gaps == (7, 2)
    return first


def use(*, delays_us: Sequence[int] = (), **facts: Any) -> dict[str, Any]:
    """What a worker tells of itself in a report."""
    reported = encoded(WorkerUse(**facts))
    del reported["silence_s"], reported["loop_delay"]
    return {**reported, "delays_us": list(delays_us)}


CONSTANTS = {"cores": 2, "memory_total_bytes": 8 << 30, "ephemeral_ports": 28_232}

PLAN = replace(open_plan("10", "2"), workers=2, seed=1, factories_file=Path("/nowhere/f.py"))


def spooled(
    parent: Path, *, silent: int | None = None, ended: bool = True, plan: WavePlan = PLAN, unix_s: int = 1_700_000_000
) -> RunDir:
    """A run directory as its primary leaves it; a silent worker never sent its last report."""
    run_dir = RunDir.create(parent)
    write_json(run_dir.plan, plan.public_json())
    spool = SpoolWriter(run_dir.spool)
    spool.event(event="start", t0=5, wall_ns=unix_s * NS, caps=[5, 5], host=CONSTANTS)
    for worker in range(plan.workers):
        writer = BatchWriter()
        mine = [record for record in on_time(plan) if record.worker == worker]
        for record in mine:
            writer.add(record.index, record.due, record.sent, record.done, 0, NONE, writer.labels["a"], 0, 0)
        ledger = Ledger(sent=len(mine), ok=len(mine)).to_json()
        meta = {"worker": worker, "at": 2 * NS, "final": worker != silent, "use": use(cpu_s=0.5)}
        spool.batch(writer.take({**meta, "ledger": ledger}))
    if ended:
        spool.event(event="end", at=2 * NS)
    spool.close()
    return run_dir


HOST = HostUse(
    cores=8,
    cpu_share_mean=0.1,
    cpu_share_max=0.2,
    steal_share_mean=0.0,
    memory_available_bytes=1 << 30,
    memory_total_bytes=2 << 30,
    throttled_s=0.0,
    time_wait=0,
    ephemeral_ports=1000,
    network_sent_bytes_per_s=0.0,
    network_received_bytes_per_s=0.0,
)


def records_of(columns: Mapping[str, Any]) -> Records:
    """The records with these columns, by the names of the schema; what is left out is null."""
    size = len(columns["index"])
    columns = {"attempt": np.zeros(size, np.uint16), **columns}
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(size, field.type)
        for field in SCHEMA
    ]
    return Records(pa.table(arrays, schema=SCHEMA))


MEAN_S = 0.1


def drawn(
    seed: int, *, rate: int = 100, seconds: int = 20, cv: float = 0.3, shape: str = "lognormal"
) -> npt.NDArray[np.float64]:
    """Latencies in seconds, a row for each second of load."""
    random = np.random.default_rng(seed)
    size = (seconds, rate)
    if shape == "gamma":
        return MEAN_S * random.gamma(1 / cv**2, cv**2, size)
    sigma = np.sqrt(np.log1p(cv**2))
    return MEAN_S * random.lognormal(-(sigma**2) / 2, sigma, size)


def wave(
    latencies_s: npt.ArrayLike, *, outcomes: Sequence[str] | None = None, concurrency: int | None = None, **more: Any
) -> Wave:
    """The wave whose rows of latencies are its seconds; ``outcomes``: of each request, else all are ok.

    ``more``: columns of the records, or fields of the plan.
    """
    seconds = np.asarray(latencies_s, np.float64)
    size = seconds.size
    columns = {name: more.pop(name) for name in tuple(more) if name in SCHEMA.names}
    load = OpenLoop(Decimal(seconds.shape[1])) if concurrency is None else ClosedLoop(concurrency)
    plan = replace(WavePlan(load, Bounds(Decimal(len(seconds)))), **more)
    due = np.arange(size) * NS // seconds.shape[1]
    done = due + np.round(seconds.ravel() * NS).astype(np.int64)
    reported = np.asarray(["ok"] * size if outcomes is None else outcomes)
    values = {
        "index": np.arange(size),
        "worker": np.zeros(size, np.uint16),
        "due": due,
        "sent": due,
        "done": done,
        "build_ns": np.zeros(size, np.int64),
        "label": pa.array([""] * size).dictionary_encode(),
        "outcome": pa.array(reported).dictionary_encode(),
        **columns,
    }
    counts = {name: int((reported == name).sum()) for name in ("ok", "failed", "abandoned")}
    answered = done[reported != "abandoned"]
    return Wave(
        plan=plan,
        window=Window(1_700_000_000 * NS, 5, len(seconds) * NS, int(answered.max(initial=0))),
        records=records_of(values),
        warmup=Records(SCHEMA.empty_table()),
        ledgers=(Ledger(scheduled=size, sent=size, **counts),),
    )


def chat(rate: int = 2, gap_ms: float = 20, seconds: int = 40, tokens: int = 11, seed: int = 1, **more: Any) -> Wave:
    """A wave of streams: 100 ms to the first piece, then a gap that varies a little for each further token."""
    draw = np.random.default_rng(seed)
    size = (seconds, rate)
    streaming = (tokens - 1) * gap_ms * draw.uniform(0.9, 1.1, size) / 1e3
    due = np.arange(seconds * rate) * NS // rate
    first = due + NS // 10
    columns: dict[str, Any] = {
        "first_token": first,
        "last_token": first + np.round(streaming.ravel() * NS).astype(np.int64),
        "chunks": np.full(due.size, tokens),
        "tokens_in": np.full(due.size, 50),
        "tokens_out": np.full(due.size, tokens),
    }
    return wave(0.1 + streaming, **{**columns, **more})


def stored(wave: Wave, parent: Path) -> RunDir:
    """The run directory of a simulated wave."""
    run_dir = RunDir.create(parent)
    save_plan(run_dir, wave.plan, {})
    writer.save(wave, run_dir)
    return run_dir


def without_digest(run_dir: RunDir) -> None:
    """Make a stored wave one of an earlier version, which wrote no digest."""
    write_json(run_dir.summary, facts_of(run_dir))


def facts_of(run_dir: RunDir) -> dict[str, Any]:
    """The content of summary.json as ``Wave.to_json`` tells it: without the digests that it is stored with."""
    return {name: value for name, value in read_json(run_dir.summary).items() if name not in ("digest", "files")}


START = 1_700_000_000

TOKENS = 4


def make_run(
    path: Path,
    requests: int = 3000,
    rate: int = 100,
    *,
    middle_ms: float = 20,
    failed: int = 0,
    dropped: int = 0,
    stream: bool = False,
    closed: bool = False,
    name: str | None = None,
    label: str = "",
    error: str = "HttpError 500",
) -> Wave:
    """A wave, stored, with lognormal latencies around ``middle_ms``; its last ``failed`` requests fail.

    ``dropped`` arrivals come after those that were sent: the wave is INVALID. ``label``: of every second request, and
    "again" of the others.
    """
    path.mkdir(parents=True)
    load = ClosedLoop(4) if closed else OpenLoop(Decimal(rate))
    plan = WavePlan(load, Bounds(None, requests + dropped), name=name)
    records = _records(requests, rate, middle_ms, failed, stream=stream, label=label, error=error)
    wave = Wave(
        plan=plan,
        window=Window(START * NS, 0, requests * NS // rate, int(records.int("done").max(initial=0))),
        records=records,
        warmup=Records(SCHEMA.empty_table()),
        ledgers=(
            Ledger(scheduled=requests + dropped, sent=requests, dropped=dropped, ok=requests - failed, failed=failed),
        ),
    )
    save_plan(RunDir(path), plan, {})
    return writer.save(wave, RunDir(path))


def _records(
    requests: int, rate: int, middle_ms: float, failed: int, *, stream: bool, label: str, error: str
) -> Records:
    draw = np.random.default_rng(requests + rate)
    index = np.arange(requests)
    due = index * NS // rate
    sent = due + draw.integers(20_000, 400_000, requests)
    latency = draw.lognormal(np.log(middle_ms * 1e6), 0.3, requests).astype(np.int64)
    outcome = np.where(index >= requests - failed, 1, 0).astype(np.int32)
    columns: dict[str, Any] = {
        "index": index,
        "due": due,
        "sent": sent,
        "done": sent + latency,
        "build_ns": np.zeros(requests, np.int64),
        "worker": np.zeros(requests, np.uint16),
        "label": _dictionary((index % 2 * bool(label)).astype(np.int32), [label, f"{label} again"]),
        "outcome": _dictionary(outcome, ["ok", "failed"]),
        "error": _dictionary(np.zeros(requests, np.int32), [error], null=outcome == 0),
    }
    columns |= _tokens(sent, latency) if stream else {}
    return records_of(columns)


def _tokens(sent: Any, latency: Any) -> dict[str, Any]:
    """Evenly spaced tokens, the last of them with the answer."""
    gap = latency // TOKENS
    gaps = np.repeat((gap // 1000).astype(np.uint32), TOKENS - 1)
    offsets = np.arange(0, len(gaps) + 1, TOKENS - 1, dtype=np.int32)
    return {
        "first_token": sent + gap,
        "last_token": sent + gap * TOKENS,
        "chunks": np.full(len(sent), TOKENS),
        "gaps": pa.ListArray.from_arrays(offsets, gaps),
    }


def _dictionary(numbers: Any, names: list[str], null: Any = None) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=null), names)


def merged(bucket: TokenBucket) -> list[Arrival]:
    """The arrivals of all workers, in order."""
    return sorted(arrival for worker in range(bucket.workers) for arrival in bucket.arrivals(worker))
