"""What is read from aiperf's exports: its names, its units, and whatever may be missing from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.server_metric import Interval, ServerMetric
from server_capacity.aiperf.export import AiperfResult, read_export
from server_capacity.aiperf.report import aiperf_text
from tests.fake_aiperf import STATISTICS, record

if TYPE_CHECKING:
    from pathlib import Path


def export(folder: Path, records: list[dict[str, Any]], statistics: dict[str, Any] | None = STATISTICS) -> Path:
    (folder / "profile_export.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    if statistics is not None:
        (folder / "profile_export_aiperf.json").write_text(json.dumps(statistics))
    return folder


def read(folder: Path, *, interrupted: bool = False) -> AiperfResult:
    found = read_export(folder, 0.95, interrupted=interrupted)
    assert found is not None
    return found[0]


def test_counts_and_the_window_come_from_its_records(tmp_path: Path) -> None:
    records = [
        record(98, 99, phase="warmup"),
        record(100, 101),
        record(101, 104, {"type": "Internal Server Error", "code": 500, "message": "words"}),
        record(102, 103),
    ]
    found = read_export(export(tmp_path, records), 0.95, interrupted=False)
    assert found is not None
    result, interval = found
    assert "Total requests fired: 3, 1 failed\n" in aiperf_text(result)
    assert "Total requests:" not in aiperf_text(result)
    assert interval == Interval(begin=98, start=100, end=104, sent=4)
    assert (result.requests, result.ok, result.duration_s) == (3, 2, 4.0)
    assert result.server_rps == 0.75
    assert result.success_rate == pytest.approx(2 / 3)
    assert result.exit_code == 1
    assert result.errors == {"Internal Server Error 500": 1}


def numbered(*numbers: int) -> list[dict[str, Any]]:
    """Records of the requests with these numbers."""
    records = [record(100 + number, 101 + number) for number in numbers]
    for number, each in zip(numbers, records, strict=True):
        each["metadata"]["session_num"] = number
    return records


def test_requests_that_it_gave_up_on_are_missing_in_its_export_and_count(tmp_path: Path) -> None:
    export(tmp_path, numbered(0, 1, 3, 5))
    result = read(tmp_path)
    assert (result.fired, result.requests, result.ok, result.exit_code) == (6, 4, 4, 1)
    assert result.success_rate == pytest.approx(4 / 6)
    assert result.server_rps == 4 / result.duration_s
    assert "Total requests fired: 6\n" in aiperf_text(result)
    assert "Total requests:   4\n" in aiperf_text(result)
    assert "gave up on 2 requests" in aiperf_text(result)
    result.save()
    assert AiperfResult.load(tmp_path) == result
    assert read(tmp_path, interrupted=True).fired == 4


@pytest.mark.parametrize(("end", "gave_up"), [("00:00:05.005", True), ("00:00:04.9", False)])
def test_where_its_grace_period_ran_out_nobody_knows_how_many_are_missing(
    end: str, gave_up: bool, tmp_path: Path
) -> None:
    config = {"phases": [{"name": "warmup", "duration": 9.0}, {"duration": 2.0, "grace_period": 3.0}]}
    times = {"start_time": "2026-01-01T00:00:00.000000", "end_time": f"2026-01-01T{end}"}
    result = read(export(tmp_path, numbered(0, 1), {**STATISTICS, **times, "input_config": config}))
    assert (result.requests, result.ok) == (2, 2)
    assert (result.gave_up, result.exit_code) == (gave_up, int(gave_up))
    assert ("gave up on an unknown number of requests" in aiperf_text(result)) == gave_up
    assert ("Success rate:     at most 100.0% (✗ failed, 95% target)" in aiperf_text(result)) == gave_up
    result.save()
    assert AiperfResult.load(tmp_path) == result


def test_times_are_in_seconds_under_our_names(tmp_path: Path) -> None:
    result = read(export(tmp_path, [record(1, 2)]))
    assert result.version == "0.13.0"
    assert result.times["latency"] == {
        "mean": 0.02,
        "p50": 0.019,
        "p90": 0.021,
        "p95": 0.022,
        "p99": 0.023,
        "max": 0.024,
    }
    assert result.times["itl"] == {"mean": 0.001, "max": 0.009}
    assert result.times["tpot"] == {"mean": 0.0011}
    assert (result.tokens_in, result.tokens_out, result.tokens_out_per_s) == (6, 60, 39.5)


def test_every_metric_is_kept_in_its_own_unit(tmp_path: Path) -> None:
    more = {"http_req_dns_lookup": {"unit": "ms", "avg": None, "p50": 0.25}, "input_config": {"endpoint": {}}}
    result = read(export(tmp_path, [record(1, 2)], {**STATISTICS, **more}))
    assert result.metrics["request_latency"] == STATISTICS["request_latency"]
    assert result.metrics["http_req_dns_lookup"] == {"unit": "ms", "p50": 0.25}
    assert set(result.metrics) == {*STATISTICS, "http_req_dns_lookup"} - {"aiperf_version"}
    assert result.to_json()["metrics"] == result.metrics
    result.save()
    assert AiperfResult.load(tmp_path) == result


def test_without_a_stream_there_are_no_token_times(tmp_path: Path) -> None:
    kept = {name: STATISTICS[name] for name in ("aiperf_version", "request_latency")}
    result = read(export(tmp_path, [record(1, 2)], kept))
    assert set(result.times) == {"latency"}
    assert result.tokens_out is None
    assert "TTFT" not in aiperf_text(result)


def test_where_every_request_failed_it_writes_no_statistics(tmp_path: Path) -> None:
    result = read(export(tmp_path, [record(1, 1, {"type": "ClientConnectorError"})] * 2, None))
    assert (result.ok, result.exit_code, result.server_rps) == (0, 1, 0.0)
    assert "Success rate:     0.0% (✗ failed, 95% target)" in aiperf_text(result)


@pytest.mark.parametrize("records", [[], [record(1, 2)], [record(1, 2, phase="warmup")]])
def test_without_results_there_is_no_result(records: list[dict[str, Any]], tmp_path: Path) -> None:
    assert read_export(export(tmp_path, records, None), 0.95, interrupted=False) is None
    assert read_export(tmp_path / "nowhere", 0.95, interrupted=False) is None


def test_an_interrupted_run_is_reported_as_far_as_it_got(tmp_path: Path) -> None:
    export(tmp_path, [record(1, 2), record(2, 3)], None)
    with (tmp_path / "profile_export.jsonl").open("a") as file:
        file.write('{"metadata": {"benchm')
    result = read(tmp_path, interrupted=True)
    assert (result.requests, result.exit_code) == (2, 130)
    assert "Interrupted" in aiperf_text(result)


def test_a_stored_result_is_the_same_again(tmp_path: Path) -> None:
    result = read(export(tmp_path, [record(1, 2)])).with_server_metrics([ServerMetric("prometheus", "m", {"Max": 1.0})])
    result.save()
    assert AiperfResult.load(tmp_path) == result
    assert AiperfResult.load(tmp_path / "nowhere") is None
    assert "   m: Max=1" in aiperf_text(result)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"ok": 3}, "3 of 2 requests are ok, and 1 have an error"),
        ({"ok": 2}, "2 of 2 requests are ok, and 1 have an error"),
        ({"unanswered": -1}, "unanswered is -1"),
        ({"tokens_out": -5}, "tokens_out is -5"),
        ({"errors": {"X": 2, "Y": -1}}, "errors.Y is -1"),
        ({"success_threshold": -1.0}, "success_threshold is -1"),
        ({"times": {"latency": {"mean": -0.02}}}, "latency.mean is -0.02 s"),
        ({"times": {"latency": {"mean": 0.02, "max": 0.01}}}, "latency.mean is 0.02 s"),
        ({"times": {"latency": {"p50": 0.02, "p99": 0.01}}}, "latency.p50 is 0.02 s, and p99 0.01 s"),
        ({"success_rate": 1.0}, "success_rate is 1.0, and 0.5 follows"),
        ({"exit_code": 0}, "exit_code is 0, and 1 follows"),
        ({"fired": 20}, "fired is 20, and 2 follows"),
    ],
)
def test_a_stored_result_that_contradicts_itself_is_refused(
    changes: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    read(export(tmp_path, [record(1, 2), record(2, 3, {"type": "X"})])).save()
    stored = json.loads((tmp_path / "summary.json").read_text())
    (tmp_path / "summary.json").write_text(json.dumps({**stored, **changes}))
    with pytest.raises(BenchmarkError, match="does not match its digest"):
        AiperfResult.load(tmp_path)
    del stored["digest"]
    (tmp_path / "summary.json").write_text(json.dumps(stored))
    assert AiperfResult.load(tmp_path) is not None
    (tmp_path / "summary.json").write_text(json.dumps({**stored, **changes}))
    with pytest.raises(BenchmarkError, match=expected):
        AiperfResult.load(tmp_path)
