"""Sessions counted from the records of a wave and as they come in, each held against going through them one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.records.batch import HAS_STREAM
from inference_benchmarker.records.packed import BASE_DTYPE, STREAM_DTYPE, TURN_DTYPE
from inference_benchmarker.records.record import NONE, RequestRecord
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.live_sessions import SessionWatch
from server_capacity.search.limits import limits_of
from tests.waves import observe, open_plan

TEXTS = ("turn1.latency.p95<1s", "turn2+.latency.p95<1s", "session.p95<4s", "session.success>=0.9")
OF_TOKENS = ("itl.p95<20ms", "tpot.p95<20ms")
LIMITS = limits_of([Slo.parse(text) for text in TEXTS], 0.9, of_sessions=True)
SECONDS = 10


def records() -> list[RequestRecord]:
    """Forty sessions of up to four turns; of some the last turn fails, and of some nobody saw the end."""
    draw, found = random.Random(1), []
    for number in range(40):
        due, turns, ending = (
            number * NS // 4,
            draw.randint(1, 4),
            draw.choice(["completed", "completed", "failed", None]),
        )
        for turn in range(1, turns + 1):
            done = due + round(draw.expovariate(1) * NS)
            record = RequestRecord(number, 0, due, due, done, session=number, turn=turn)
            last = turn == turns
            outcome = "ok" if not last or ending == "completed" else "failed" if ending else "abandoned"
            found.append(record._replace(outcome=outcome, ended=ending if last else None))
            due = done + NS // 2
    return found


def test_sessions_count_where_they_began_and_turns_where_they_were_due() -> None:
    rows = records()
    wave = observe(open_plan("4", str(SECONDS)), rows, environment={"sessions": True})
    stage = count_stages(wave, LIMITS)[0]
    lasts = list({row.index: row for row in rows}.values())
    begun = {row.index: row.due for row in rows if row.turn == 1}
    for piece in stage.stretch.slices:
        inside = [row for row in lasts if piece.start_s * NS <= begun[row.index] < piece.end_s * NS]
        ended = [row for row in inside if row.ended is not None]
        assert (piece.sent, piece.answered) == (len(inside), len(ended))
        assert piece.spent_s == pytest.approx(sum(row.done - begun[row.index] for row in ended) / NS)
        first = [row for row in rows if row.turn == 1 and piece.start_s * NS <= row.due < piece.end_s * NS]
        slow = [row for row in first if row.done - row.due >= NS and row.outcome != "failed"]
        assert piece.counts[0].over == len(slow)
    over = sum(piece.counts[2].over for piece in stage.stretch.slices)
    ages = [(row, (row.done if row.ended else SECONDS * NS) - begun[row.index]) for row in lasts]
    slow = [row for row, age in ages if age >= 4 * NS and (row.done < SECONDS * NS or not row.ended)]
    assert over == len(slow)
    failed = [row for row in lasts if row.ended == "failed" and row.done < SECONDS * NS]
    assert sum(piece.counts[3].over for piece in stage.stretch.slices) == len(failed)


def test_what_workers_report_is_counted_in_the_second_in_which_it_ended() -> None:
    base = np.zeros(4, BASE_DTYPE)
    base["index"] = [5, 5, 6, -1]
    base["due"], base["sent"] = np.array([1, 4, 2, 0]) * NS, np.array([1, 4, 2, 0]) * NS
    base["done"] = np.array([3, 6, 3, 3]) * NS + 1
    base["outcome"] = [0 | HAS_STREAM, 0 | HAS_STREAM, 0, 0]
    streams = np.zeros(2, STREAM_DTYPE)
    streams["first_token"], streams["last_token"] = [NS + NS // 2, NONE], [NS + NS // 2 + 40_000_000, NONE]
    streams["chunks"], streams["gaps"], gaps_us = [4, 0], [3, 0], np.array([5000, 5000, 30_000], np.uint32)
    turns = np.zeros(4, TURN_DTYPE)
    turns["turn"], turns["ended"] = [1, 2, 1, 1], [0, 1, 2, 1]
    limits = limits_of(
        [Slo.parse(text) for text in (*TEXTS, "turn1.ttft.p95<400ms", *OF_TOKENS)], 0.9, of_sessions=True
    )
    watch = SessionWatch(limits)
    watch.take(base, streams, gaps_us, turns)
    parts = {second: watch.slice(second, second, second + 1) for second in range(8)}
    assert [parts[second].sent for second in (1, 2, 3)] == [1, 1, 0]
    assert (parts[3].answered, parts[6].answered) == (1, 1), "the warm-up's session does not count"
    assert parts[6].spent_s == pytest.approx(5, abs=1e-6)
    assert parts[3].counts[0] == (2, 2), "both first turns took longer than a second"
    assert parts[6].counts[1] == (1, 1)
    assert (parts[3].counts[2], parts[6].counts[2]) == ((1, 0), (1, 1)), "1 s and 5 s of at most 4"
    assert (parts[3].counts[3], parts[6].counts[3]) == ((1, 1), (1, 0)), "one failed"
    assert parts[3].counts[4] == (1, 1), "a first token after 500 ms"
    assert parts[3].counts[5:7] == ((3, 1), (1, 0)), "of three gaps one; the mean of them is not"
