"""A wave's records for pandas and others, as much of them as is asked for and fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow.compute as pc
import pytest
from pyarrow.dataset import dataset

from inference_benchmarker import BenchmarkError, Wave
from inference_benchmarker.records.columns import SCHEMA, Records
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.wave.files.requests_file import dataset as file_dataset
from inference_benchmarker.wave.files.requests_file import write_requests
from inference_benchmarker.wave.frames import Selection
from tests.waves import make_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def wave(tmp_path_factory: pytest.TempPathFactory) -> Wave:
    return make_run(tmp_path_factory.mktemp("frames") / "run", 1_000)


def test_a_frame_is_of_all_or_of_what_is_asked_for(wave: Wave) -> None:
    whole = wave.frame()
    assert list(whole.columns) == SCHEMA.names
    assert whole["index"].tolist() == list(range(1_000))
    some = wave.frame(["done", "sent"], [("index", "<", 10), ("outcome", "==", "ok")])
    pd.testing.assert_frame_equal(some, whole.loc[:9, ["done", "sent"]])
    late = pc.field("done") > int(whole["done"].median())
    assert len(wave.frame(where=late)) == 500
    assert len(wave.frame(where=pc.field("outcome") == "failed")) == 0


def test_batches_are_the_frame_in_parts(wave: Wave) -> None:
    where = [("index", ">=", 150)]
    parts = list(wave.batches(["index", "due"], where, rows=100))
    assert max(map(len, parts)) <= 100
    pd.testing.assert_frame_equal(pd.concat(parts), wave.frame(["index", "due"], where))
    assert sum(map(len, wave.batches())) == 1_000


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda wave: wave.frame(["don"]), r"'don' is not a column .* Did you mean done\? There are index, attempt,"),
        (lambda wave: wave.frame(where=[("nope", "==", 1)]), "selects no rows: .*nope"),
        (lambda wave: wave.batches(where=[("due", "==", "x")]), "selects no rows: .*Give tuples like"),
        (lambda wave: wave.frame(where="due > 5"), "selects no rows: .*Give tuples like"),
    ],
    ids=["a column", "a column in the filter", "a type", "no filter"],
)
def test_what_cannot_be_chosen_is_said_at_once(wave: Wave, ask: Callable[[Wave], Any], said: str) -> None:
    with pytest.raises(BenchmarkError, match=said):
        ask(wave)


def test_a_frame_that_does_not_fit_says_what_it_takes_and_what_to_do(wave: Wave) -> None:
    with pytest.raises(BenchmarkError, match=r"1,000 requests and 24 columns takes about .* batches\(\).* dataset\(\)"):
        wave.frame(most_bytes=100_000)
    assert len(wave.frame(["due", "done"], most_bytes=100_000)) == 1_000
    assert len(wave.frame(where=[("index", "<", 10)], most_bytes=100_000)) == 10


def test_what_a_frame_takes_is_about_what_pandas_says() -> None:
    gaps = [RequestRecord(i, 0, i, i, i + 5, "ok", "a", None, 0, i, i, 4, 1, 4, 9, (7, 8, 9)) for i in range(2_000)]
    source = dataset(Records.of(gaps).table)
    for columns in (["due", "done"], ["label", "outcome"], ["tokens_out", "first_token"], ["gaps"]):
        found = Selection(source, columns, None)
        taken = int(found.frame(10**9).memory_usage(index=False, deep=True).sum())
        if columns == ["gaps"]:
            taken += 2_000 * 12 if taken < 2_000 * 120 else 0  # what each array holds
        assert 0.5 < found.bytes / taken < 4.5


def test_the_dataset_is_of_the_file_and_without_the_warm_up(tmp_path: Path) -> None:
    records = Records.of([RequestRecord(i, 0, i, i, i + 5) for i in range(-10, 100)])
    write_requests(tmp_path / "requests.parquet", records.parts(), 0)
    found = file_dataset(tmp_path / "requests.parquet")
    assert found is not None
    assert (found.count_rows(), found.to_table().column("index").to_pylist()) == (100, list(range(100)))
    assert found.to_table(columns=["due"], filter=pc.field("due") > 97).to_pydict() == {"due": [98, 99]}


def test_a_wave_that_is_stored_nowhere_has_a_dataset_all_the_same(wave: Wave) -> None:
    assert wave.stored_in(None).dataset().count_rows() == wave.dataset().count_rows() == 1_000
