"""Values of the user's own: what counts as one, and that each comes back with its request."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.engine.endpoint.factories_file import Endpoint
from inference_benchmarker.records.batch import BASE, Report, packed_sections
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.record import Ledger, RequestRecord
from inference_benchmarker.records.response import Response
from inference_benchmarker.records.user_metrics import MOST_METRICS, MOST_NAME
from tests.request_bench import Bench
from tests.waves import Worker

NAMES = st.sampled_from(("cache_hit", "a", "_b2", "Z" * MOST_NAME))
VALUES = st.floats(-1e100, 1e100, exclude_min=True, exclude_max=True)
METRICS = st.none() | st.dictionaries(NAMES, VALUES, min_size=1)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.5, 0.5),
        (3, 3.0),
        (True, 1.0),
        (np.float32(0.25), 0.25),
        (np.int8(-4), -4.0),
        (np.bool_(False), 0.0),
        (np.array(2.5), 2.5),
        (Decimal("1.5"), 1.5),
        (Fraction(1, 4), 0.25),
    ],
)
def test_any_number_is_one(value: Any, number: float) -> None:
    metrics = Response(metrics={"x": value}).metrics
    assert metrics == {"x": number}
    assert type(metrics["x"]) is float


@pytest.mark.parametrize("value", ["1", b"1", [1.0], {}, float("nan"), float("inf"), -1e100, 10**400, 1j, np.arange(2)])
def test_what_is_no_finite_number_fails_as_a_wrong_count_does(value: Any) -> None:
    with pytest.raises(
        TypeError, match=r"Response\(metrics=\{'x': \.\.\.\}\) must be a finite number within ±1e\+100, not "
    ):
        Response(metrics={"x": value})


@pytest.mark.parametrize("name", ["", "cache hit", "1st", "a.b", "ü", "x" * (MOST_NAME + 1), 7, None])
def test_names_are_those_of_columns(name: Any) -> None:
    with pytest.raises(TypeError, match="expected ASCII letters, digits and _"):
        Response(metrics={name: 1.0})


@pytest.mark.parametrize("expected", [7, "ab", [("a", 1.0)]])
def test_what_is_no_dictionary_is_refused(expected: Any) -> None:
    with pytest.raises(TypeError, match="must be a dictionary of numbers"):
        Response(metrics=expected)


def test_what_is_none_is_not_reported() -> None:
    assert Response(metrics={"a": None, "b": 1}).metrics == {"b": 1.0}
    assert Response(metrics={"a": None}) == Response(metrics={}) == Response()
    assert hash(Response(3, metrics={"a": 1})) == hash(Response(3))


def test_it_is_a_copy() -> None:
    fields = {"a": 1.0}
    response = Response(metrics=fields)
    fields["a"] = 2.0
    assert response.metrics == {"a": 1.0}


def test_later_ones_of_a_stream_add_to_it_by_name() -> None:
    first = Response(3, metrics={"a": 1.0, "b": 2.0})
    assert first.updated(Response(tokens_out=5)) == Response(3, 5, metrics={"a": 1.0, "b": 2.0})
    assert first.updated(Response(metrics={"b": 3.0, "c": 4.0})).metrics == {"a": 1.0, "b": 3.0, "c": 4.0}
    assert Response().updated(first) == first


def sent(*invokes: Any) -> list[RequestRecord]:
    """The records of some requests, one for each way to answer."""
    return Bench(Endpoint(invoke=lambda payload: payload(), payloads=list(invokes))).send(*range(len(invokes)))


def test_they_are_recorded_with_their_requests() -> None:
    def stream() -> Any:
        yield Response(metrics={"a": 1, "b": 1})
        yield "piece"
        yield Response(tokens_out=1, metrics={"b": 2})

    def cut() -> Any:
        yield Response(metrics={"b": 5})
        raise OSError

    def wrong() -> Any:
        yield Response(metrics={"b": 6})
        yield Response(metrics={"b": "x"})  # type: ignore[dict-item]

    found = sent(lambda: Response(metrics={"a": 7}), lambda: b"", lambda: Response(3), stream, cut, wrong)
    assert [record.metrics for record in found] == [
        {"a": 7.0},
        None,
        None,
        {"a": 1.0, "b": 2.0},
        {"b": 5.0},
        {"b": 6.0},
    ]
    assert [record.error for record in found] == [None, None, None, None, "OSError", "TypeError"]


def test_a_request_with_one_name_too_many_fails_and_says_so() -> None:
    def numbered(number: int) -> Any:
        return lambda: Response(metrics={f"name_{number}": number, "name_0": 5})

    *kept, late, again = sent(*map(numbered, range(MOST_METRICS + 1)), numbered(1))
    assert [record.outcome for record in (*kept, again)] == ["ok"] * (MOST_METRICS + 1)
    assert (late.outcome, late.error, late.metrics) == ("failed", "TooManyMetricsError", {"name_0": 5.0})


@given(st.lists(st.tuples(st.integers(0, 2), METRICS, st.booleans())))
def test_what_was_written_is_read_whatever_the_batches(rows: list[tuple[int, dict[str, float] | None, bool]]) -> None:
    workers = [Worker(number) for number in range(3)]
    records = []
    for index, (number, metrics, flush) in enumerate(rows):
        records.append(RequestRecord(index, number, 0, 0, 1, metrics=metrics))
        workers[number].write(records[-1])
        if flush:
            workers[number].flush()
    for worker in workers:
        worker.flush()
    columns = [worker.columns() for worker in workers]
    found = Records.of_workers(columns)
    assert list(found) == list(Records.of(records)) == records
    names = {name for record in records for name in record.metrics or ()}
    assert found.metrics == Records.of(records).metrics == tuple(sorted(names))
    half = len(records) // 2
    part = Records.of_workers([each.between(half, len(records)) for each in columns])
    assert list(part) == records[half:]
    assert part.metrics == found.metrics, "all parts of a wave have the same columns"


def test_a_batch_without_metrics_is_as_it_was_before_there_were_any() -> None:
    worker, writer = Worker(), BatchWriter()
    worker.write(RequestRecord(0, 0, 0, 0, 1))
    worker.flush()
    base, streams, gaps, metrics, _ = packed_sections(worker.batches[0])
    assert (len(base), len(streams), len(gaps), len(metrics)) == (BASE.size, 0, 0, 0)
    assert b'"metrics"' not in writer.take({})


@pytest.mark.parametrize("names", [["a b"], ["a", "a"], "ab", [3], [f"n{number}" for number in range(33)]])
def test_a_report_with_other_names_is_none(names: Any) -> None:
    meta = {"worker": 0, "sequence": 1, "final": True, "at": 1, "ledger": Ledger().to_json()}
    Report.of(BatchWriter().take({**meta, "metrics": ["a", "b"]}))
    with pytest.raises(ValueError, match="metrics"):
        Report.of(BatchWriter().take({**meta, "metrics": names}))


@pytest.mark.parametrize(("change", "said"), [({"row": 1}, "of no request"), ({"name": 1}, "without a name")])
def test_a_value_of_no_request_or_name_is_refused(change: dict[str, int], said: str) -> None:
    worker = Worker()
    worker.write(RequestRecord(0, 0, 0, 0, 1, metrics={"a": 1.0}))
    worker.flush()
    columns = worker.columns()
    for name, value in change.items():
        columns.metrics[name] = value
    with pytest.raises(ValueError, match=said):
        Records.of_workers([columns])
