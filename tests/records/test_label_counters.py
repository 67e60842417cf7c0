"""Requests by label and users' values while a wave runs: what is counted is what the rows say, and it is bounded."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pytest

from inference_benchmarker.records.batch import HAS_STREAM
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.counting import CountingBatchWriter
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.records.label_counters import MOST_LABELS, LabelCounters, ValueCounts
from inference_benchmarker.records.names import OTHER
from inference_benchmarker.records.packed import BASE_DTYPE, METRIC_DTYPE
from inference_benchmarker.records.record import ABANDONED, FAILED, NONE, OK, OUTCOMES, Ledger
from inference_benchmarker.records.user_metrics import MOST_METRICS
from inference_benchmarker.wave.spool.spool import SpoolWriter
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from pathlib import Path

MS = NS // 1000


def send(writer: BatchWriter, index: int, label: str, took: int, outcome: int = OK, **metrics: float) -> None:
    writer.add(index, 0, 1000, 1000 + took, 0, NONE, writer.labels[label], 0, outcome | HAS_STREAM)
    writer.add_stream(None, NONE, NONE)
    writer.metric_numbers.take_up(metrics)
    writer.add_metrics(metrics)


@pytest.mark.parametrize("counting", [False, True])
def test_counts_are_those_of_the_requests(counting: bool, tmp_path: Path) -> None:
    """Two workers, whose names have other numbers in each."""
    draw = random.Random(7)
    spool = SpoolWriter(tmp_path / "spool.bin")
    exact: defaultdict[str, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    values: defaultdict[str, list[float]] = defaultdict(list)
    for worker in range(2):
        writer = CountingBatchWriter() if counting else BatchWriter()
        for index in range(-20, 400):
            label, took = draw.choice(("", "large", "small")), int(draw.lognormvariate(16, 1))
            outcome = draw.choices((OK, FAILED, ABANDONED), (90, 9, 1))[0]
            fields = {name: draw.gauss(0, 1) for name in ("hits", "cost") if draw.random() < 0.5}
            send(writer, index, label, took, outcome, **fields)
            if index >= 0:
                exact[label][outcome].append(took)
                for name, value in fields.items() if outcome == OK else ():
                    values[name].append(value)
            if draw.random() < 0.05:
                spool.batch(writer.take(meta(worker)))
        spool.batch(writer.take(meta(worker)))
    spool.close()
    state = SpoolState([tmp_path / "spool.bin"], 2)
    state.read()
    named = state.named()
    assert set(named.labels) == {"large", "small"}
    for label, found in named.labels.items():
        own = exact[label]
        assert [getattr(found, name) for name in OUTCOMES] == [len(own[number]) for number in range(len(OUTCOMES))]
        assert found.times["latency"] == Histogram.of(own[OK] + own[ABANDONED]).counts
    if counting:
        assert not named.metrics
        return
    assert set(named.metrics) == {"hits", "cost"}
    for name, known_values in values.items():
        counted = named.metrics[name]
        assert counted.count == len(known_values)
        assert counted.total == pytest.approx(sum(known_values))
        assert (counted.least, counted.most) == (min(known_values), max(known_values))


def meta(worker: int) -> dict[str, object]:
    return {"worker": worker, "at": NS, "final": False, "ledger": Ledger().to_json()}


def test_labels_and_metrics_are_bounded_and_those_that_came_first_stay() -> None:
    named = LabelCounters()
    for number in range(MOST_LABELS + 20):
        one = LabelCounters()
        one.labels[f"model-{number}"].ok = 2
        one.metrics[f"metric_{number}"].merge(ValueCounts(1, 1.0, 1.0, 1.0))
        named.merge(one)
    assert list(named.labels)[:2] == ["model-0", "model-1"]
    assert len(named.labels) == MOST_LABELS + 1
    assert named.labels[OTHER].ok == 40
    assert len(named.metrics) == MOST_METRICS


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        ([(0, 0, 0, 0, 0, 0, 2, 0, OK)], []),
        ([(0, 0, 0, 0, 0, 0, 1, 0, 3)], []),
        ([(0, 0, 0, 0, 0, 0, 0, 0, OK)], [(1, 0, 1.0)]),
        ([(0, 0, 0, 0, 0, 0, 0, 0, OK)], [(0, 1, 1.0)]),
    ],
    ids=["a label without a name", "no outcome", "a metric of no request", "a metric without a name"],
)
def test_what_no_worker_reports_is_refused(rows: list[tuple[int, ...]], values: list[tuple[int, int, float]]) -> None:
    with pytest.raises(ValueError, match=r"a (request|metric) "):
        LabelCounters().add(np.array(rows, BASE_DTYPE), np.array(values, METRIC_DTYPE), ["", "a"], ["hits"])
