"""The live feed: what a worker adds up is what its records say, and it is sent once."""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from collections import Counter, defaultdict
from typing import Any

import pytest

from inference_benchmarker.records.batch import HAS_STREAM, split_batch
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.feed import KEPT_S, Cell, Feed, read_cells
from inference_benchmarker.records.feed_writer import FeedWriter
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.records.record import ABANDONED, FAILED, NONE, OK
from inference_benchmarker.wave.spool.spool import SpoolReader, SpoolWriter
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.words.units import NS

MS = NS // 1000
ENDS = (2 * NS, 3 * NS)


def fed(writer: BatchWriter) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = split_batch(writer.take({}))[0]["feed"]
    return cells


def write(writer: BatchWriter, index: int, due: int, *, outcome: int = OK, error: int = 0, took: int = MS) -> None:
    writer.add(index, due, due + 1000, due + 1000 + took, 0, NONE, 0, error, outcome)


@pytest.mark.parametrize("ends", [(), ENDS])
def test_cells_add_up_to_the_records(ends: tuple[int, ...]) -> None:
    """A thousand requests in batches of any size: counts and times of each second and stage."""
    draw = random.Random(4)
    writer, feed = BatchWriter(), Feed()
    writer.feed.set_stages(ends)
    names = ["", *(writer.errors.name(writer.errors[f"E{number}"]) for number in range(3))]
    exact: defaultdict[tuple[int, int], Cell] = defaultdict(Cell)
    for index in range(-50, 1000):
        due, took = index * 5 * MS, int(draw.lognormvariate(16, 1))
        outcome = draw.choices((OK, FAILED, ABANDONED), (90, 9, 1))[0]
        error = draw.randint(1, 3) if outcome == FAILED else 0
        write(writer, index, due, outcome=outcome, error=error, took=took)
        if index >= 0:
            writer.feed.sendings.append((due, due + 1000))
            stage = bisect_right(ends, due)
            exact[(due + 1000) // NS, stage].sent += 1
            exact[(due + 1000) // NS, stage].ended += 1
            cell = exact[(due + 1000 + took) // NS, stage]
            cell.ok += outcome == OK
            cell.abandoned += outcome == ABANDONED
            cell.times["lag"].add(1000)
            if outcome == FAILED:
                cell.failed[names[error]] += 1
            else:
                cell.times["latency"].add(took)
                cell.times["response_time"].add(took + 1000)
        if draw.random() < 0.005:
            feed.merge(fed(writer), names)
    feed.merge(json.loads(json.dumps(fed(writer))), names)
    assert {(second, stage) for second, stage in exact} == {
        (second, stage) for second, stages in feed._seconds.items() for stage in stages
    }
    for (second, stage), cell in exact.items():
        assert feed.over(second, second + 1, stage) == cell
    for stage in range(len(ends) + 1):
        assert feed.stage(stage).sent == sum(cell.sent for (_, number), cell in exact.items() if number == stage)
    assert feed.over(0, 1 << 60) == feed.total()
    assert feed.total().in_flight == 0
    assert fed(writer) == [], "everything was sent once"


def test_tokens_and_their_times_are_those_of_the_stream() -> None:
    writer, feed = BatchWriter(), Feed()
    for index, (outcome, reported) in enumerate(((OK, NONE), (OK, 9), (OK, 1), (FAILED, 9), (ABANDONED, 9))):
        writer.add(index, 0, 0, NS, 0, NONE, 0, 0, outcome | HAS_STREAM)
        writer.add_stream([40 * MS, 50 * MS, 70 * MS], NONE, reported)
    writer.add(6, 0, 0, NS, 0, NONE, 0, 0, HAS_STREAM)
    writer.add_stream(None, 3, 5)
    writer.add(-1, 0, 0, NS, 0, NONE, 0, 0, HAS_STREAM)
    writer.add_stream([40 * MS], NONE, 7)
    feed.merge(fed(writer), [""])
    total = feed.total()
    assert total.tokens == 3 + 9 + 3 + 5, "reported, where it can be; else as many as pieces came"
    assert total.times["ttft"] == Histogram.of([40 * MS] * 4)
    assert total.times["itl"] == Histogram.of([10 * MS, 20 * MS] * 4)
    assert total.times["tpot"] == Histogram.of([15 * MS, 30 * MS // 8, 15 * MS]), (
        "of those that are ok, by their tokens"
    )


def test_the_closed_loop_has_no_response_time() -> None:
    writer = BatchWriter()
    for open_loop in (True, False):
        writer.feed.open_loop = open_loop
        write(writer, 0, 0)
        (cell,) = fed(writer)
        assert ("response_time" in cell) == open_loop
        assert {"latency", "lag"} < set(cell)


def test_stages_may_be_reported_while_the_wave_runs() -> None:
    writer = FeedWriter()
    writer.set_stages([NS])
    writer.sendings.append((3 * NS, 3 * NS))
    writer.set_stages([NS, 2 * NS, 4 * NS])
    writer.sendings.append((3 * NS, 3 * NS))
    assert [(cell["n"], cell["sent"]) for cell in writer.unreported()["feed"]] == [(1, 1), (2, 1)]


def test_old_seconds_are_forgotten_and_stages_are_not() -> None:
    feed = Feed()
    for second in range(2 * KEPT_S):
        feed.merge([{"s": second, "n": 0, "ok": 1, "latency": [100, 1]}], [])
    assert len(feed._seconds) <= KEPT_S
    assert feed.stage(0).ok == feed.stage(0).times["latency"].count == 2 * KEPT_S
    feed.merge([{"s": 1, "n": 0, "ok": 1}], [])
    assert feed.over(0, 10).ok == 0
    assert feed.over(2 * KEPT_S - 10, 1 << 60).ok == 10


def test_a_report_is_small() -> None:
    """Half a second at 1,000/s, from 10 to 100 ms."""
    draw = random.Random(1)
    writer = BatchWriter()
    for index in range(500):
        sent = index * MS + int(draw.expovariate(1) * 80_000)
        writer.add(index, index * MS, sent, sent + int(draw.lognormvariate(17.2, 0.4)), 0, NONE, 0, 0, OK)
    assert 500 < len(json.dumps(fed(writer), separators=(",", ":"))) < 4000


FORGED_PAIRS: list[Any] = [[1], [1 << 40, 1], [-1, 1], {}, [0, -1]]
FORGED: list[Any] = [
    *(None, {}, "x", [[]], [{}], [{"s": 0}], [{"s": "0", "n": 0}], [{"s": 1 << 70, "n": 0}], [{"s": 0, "n": 1 << 70}]),
    *([{"s": 0, "n": 0, **more}] for more in ({"ok": -1}, {"ok": 1.5}, {"sent": 1 << 60}, {"tokens": None})),
    *([{"s": 0, "n": 0, "failed": failed}] for failed in FORGED_PAIRS),
    *([{"s": 0, "n": 0, "latency": times}] for times in FORGED_PAIRS),
]


@pytest.mark.parametrize("data", FORGED, ids=str)
def test_what_is_no_feed_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match=r"a (feed|histogram)"):
        list(read_cells(data, ["", "E"]))


def test_a_forged_second_ends_nothing(tmp_path: Any) -> None:
    """Far seconds and stages take no time and no memory."""
    far = [
        {"s": 3 * 30 * 24 * 3600, "n": 1_000_000, "ok": 1},
        *({"s": second, "n": 0, "ok": 1} for second in range(999)),
    ]
    feed = Feed()
    feed.merge(far, [])
    assert (len(feed._seconds), feed.over(0, 1 << 62).ok, feed.total().ok) == (1, 1, 1000)


def test_errors_are_reported_by_name(tmp_path: Any) -> None:
    spool = SpoolWriter(tmp_path / "spool.bin")
    for worker, key in enumerate(("KeyError", "ValueError")):
        writer = BatchWriter()
        write(writer, worker, 0, outcome=FAILED, error=writer.errors[key])
        ledger = {"scheduled": 0, "sent": 1, "dropped": 0, "lost": 0, "ok": 0, "failed": 1, "abandoned": 0}
        spool.batch(writer.take({"worker": worker, "at": NS, "final": False, "ledger": ledger}))
    spool.close()
    state = SpoolState([tmp_path / "spool.bin"], 2)
    state.read()
    assert state.feed.total().failed == Counter(KeyError=1, ValueError=1)
    assert state.whole_seconds == 1
    assert len(list(SpoolReader(tmp_path / "spool.bin").frames())) == 2
