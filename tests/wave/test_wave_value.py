"""``Wave`` in Python: a value whose numbers are computed once, shown in a line, stored and loaded again."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import client_capacity
import inference_benchmarker
from inference_benchmarker import Wave
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.summary import summarising
from inference_benchmarker.wave import writer
from inference_benchmarker.wave.plan_file import save_plan
from inference_benchmarker.wave.run_dir import RunDir
from tests.parts import in_memory
from tests.waves import make_run, without_digest
from tests.waves import wave as simulated

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.summary import Summary

METRIC = ServerMetric("cloudwatch", "Invocations", {"Sum": 20.0})


@pytest.fixture
def summarised(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many requests each summary was computed of."""
    counted: list[int] = []

    def summarise(facts: WaveFacts) -> Summary:
        counted.append(len(facts.records))
        return summarising.summarise(facts)

    monkeypatch.setattr("inference_benchmarker.wave.finished.summarise", summarise)
    return counted


def test_the_servers_metrics_cost_no_summary(tmp_path: Path, summarised: list[int]) -> None:
    wave = make_run(tmp_path / "a", 200)
    wave.texts()
    reported = wave.with_server_metrics([METRIC])
    writer.save_server_metrics(reported)
    assert "Invocations: Sum=20" in reported.text()
    assert reported.summary is wave.summary
    assert summarised == [200]


def test_other_records_have_another_summary(summarised: list[int]) -> None:
    wave = simulated([[0.01] * 10] * 2)
    fewer = replace(wave, records=wave.records.between(0, 5))
    assert [len(each.records) for each in (wave, fewer) if each.summary] == summarised == [20, 5]


def test_it_cannot_be_changed() -> None:
    wave = simulated([[0.01] * 10] * 2)
    with pytest.raises(FrozenInstanceError):
        wave.run_dir = None  # type: ignore[misc]  # it is what is tried
    assert not hasattr(wave, "__dict__")


def test_it_tells_where_it_is_stored(tmp_path: Path) -> None:
    wave = simulated([[0.01] * 10] * 2)
    run_dir = RunDir.create(tmp_path)
    save_plan(run_dir, wave.plan, {})
    assert wave.run_dir is None
    assert writer.save(wave, run_dir).run_dir == Wave.load(run_dir.path).run_dir == run_dir


def test_it_is_shown_in_a_line_and_in_a_table(summarised: list[int]) -> None:
    wave = replace(simulated([[0.01] * 10] * 2, name="a\nb"), run_dir=RunDir(Path("runs/<b>")))
    assert repr(wave) == "<Wave 'a b': 20 sent, 20 ok, 0 failed, in runs/<b>>"
    assert summarised == [], "a line costs nothing"
    assert repr(wave.summary) == "<Summary: 20 sent, 20 ok, latency p50 10 ms, p99 10 ms>"
    table = wave.summary._repr_html_()
    assert table.startswith("<table><tr><th></th><th>mean</th>")
    assert "<tr><td>Latency</td><td>10 ms</td>" in table
    assert wave._repr_html_().endswith(table)


def test_what_others_wrote_is_escaped_in_a_notebook() -> None:
    wave = simulated([[0.01] * 10] * 2, outcomes=["failed"] * 20, error=["<script>"] * 20)
    assert "<script>" not in wave._repr_html_()
    assert "&lt;script&gt;" in wave._repr_html_()


def test_a_wave_without_a_request_is_shown_all_the_same() -> None:
    wave = simulated([[]])
    assert repr(wave.summary) == "<Summary: 0 sent, 0 ok>"
    assert wave._repr_html_().startswith("<p>")


@pytest.mark.parametrize("package", [inference_benchmarker, client_capacity], ids=lambda package: package.__name__)
def test_a_package_lists_what_it_has(package: object) -> None:
    assert dir(package) == sorted(package.__all__)  # type: ignore[attr-defined]  # every package has it


class TestOlderColumns:
    """Records of an older schema, which had fewer columns."""

    @pytest.fixture
    def requests(self, tmp_path: Path) -> Path:
        make_run(tmp_path / "a", 50)
        return tmp_path / "a" / "requests.parquet"

    def test_what_an_older_one_did_not_have_is_null(self, requests: Path) -> None:
        pq.write_table(pq.read_table(requests).drop_columns(["gaps", "bytes"]), requests)
        without_digest(RunDir(requests.parent))
        records = in_memory(Wave.load(requests.parent).records)
        assert len(records) == 50
        assert not records.has("bytes").any()

    @pytest.mark.parametrize("name", ["sent", "outcome"])
    def test_what_all_have_may_not_be_missing(self, requests: Path, name: str) -> None:
        pq.write_table(pq.read_table(requests).drop_columns([name]), requests)
        with pytest.raises(BenchmarkError, match=r"requests\.parquet: (does not have the columns|cannot be read)"):
            Wave.load(requests.parent)
