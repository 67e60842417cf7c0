"""`benchmark metrics`: which window is meant, and what CloudWatch has of one that is long over."""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.cli import main
from inference_benchmarker.cli.wave.metrics_flags import parse_window
from inference_benchmarker.data.decoded import decoded
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.server_metric import ServerMetric
from tests.cloudwatch_source import INSTANCES, block, clock, fake, gauge, requests
from tests.mentions import mentions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fake_cloudwatch import FakeCloudWatch

__all__ = ["clock", "fake"]  # fixtures

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "before_now"),
    [
        ("-15m..now", (900, 0)),
        ("-1.5h..-30m", (5400, 1800)),
        ("-2d..-90", (172800, 90)),
        ("2026-11-22T11:00..2026-11-22T11:30:15.5", (3600, 1784.5)),
        ("2026-11-22T11:00Z..2026-11-22T13:30+02:00", (3600, 1800)),
        ("2026-11-22..now", (43200, 0)),
        (f"{NOW - 60:.0f}..{NOW - 0.5}", (60, 0.5)),
    ],
)
def test_a_window_is_two_instants(text: str, before_now: tuple[float, float]) -> None:
    found = parse_window(text, NOW)
    assert (NOW - found.start, NOW - found.end) == pytest.approx(before_now)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-15m", "must be FROM..TO, such as -15m..now, not '-15m'"),
        ("..now", "must be FROM..TO"),
        ("-3h..-2h..-1h", "must be FROM..TO"),
        ("yesterday..now", "'yesterday' is not an instant. Give 2026-11-22T10:00 (UTC)"),
        ("2026-13-01..now", "'2026-13-01' is not an instant"),
        ("now..-15m", "its end is not after its start (2026-11-22 12:00:00 to 2026-11-22 11:45:00 UTC"),
        ("-15m..-15m", "its end is not after its start"),
        ("-15m..2026-11-22T12:30", "it ends in the future"),
        ("-999999999d..now", "it begins before 1970"),
        ("0001-01-01..now", "it begins before 1970"),
        (f"{NOW * 1000:.0f}..now", "Are these milliseconds?"),
    ],
)
def test_what_is_no_window_is_one_line(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BenchmarkError) as caught:
        parse_window(text, NOW)
    assert said in str(caught.value)
    assert main(["metrics", "--endpoint-config", "metrics.json", "--window", text]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_begins_with_a_minus_and_a_digit_is_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--json", "--window", "-5m", "--endpoint-config", "metrics.json"]) == 2
    assert mentions(capsys.readouterr().err, "--window", "FROM..TO", "-15m", "'-5m'")
    assert main(["metrics", "--window", "-3h..-5h", "--endpoint-config", "metrics.json"]) == 2
    assert "its end is not after its start" in capsys.readouterr().err
    assert main(["metrics", "--json", "-5m"]) == 2
    assert "Unknown argument '-5m'." in capsys.readouterr().err
    assert main(["--factories-file", "f.py", "--stages", "-3:1s", "--seed", "-1"]) == 2
    assert "--stages: '-3:1s' is not a stage" in capsys.readouterr().err


def test_a_window_that_ends_before_it_starts_has_no_length(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--endpoint-config", "metrics.json", "--window", "now..-5m"]) == 2
    said = capsys.readouterr().err
    assert said.count("UTC).") == 1
    assert "day" not in said


def test_what_is_missing_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--wndow", "-1m..now"]) == 2
    said = capsys.readouterr().err
    assert "--endpoint-config FILE" in said
    assert "'--wndow'" in said


def run(tmp_path: Path, *blocks: dict[str, Any], options: tuple[str, ...] = ()) -> int:
    config = tmp_path / "metrics.json"
    config.write_text(json.dumps(blocks))
    window = "2026-06-22T12:00:17..2026-06-22T12:02:47"
    return main(["metrics", "--endpoint-config", str(config), "--window", window, "--quiet", *options])


def test_cloudwatch_is_asked_once_for_a_window_that_is_long_over(
    fake: FakeCloudWatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests(fake)
    gauge(fake)
    fake.clock.now += 600  # all of it is published
    asked = [block(Invocations=["Sum"], Invocation5XXErrors=["Sum"]), block(INSTANCES, CPUUtilization=["Average"])]
    assert run(tmp_path, *asked) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Server metrics, 2026-06-22 12:00:17 to 2026-06-22 12:02:47 UTC (0:02:30)",
        "",
        "   Invocations: Sum=1,500",
        "   Invocation5XXErrors: Sum=15",
        "   CPUUtilization: Average=312",
    ]
    calls = len(fake.requests)
    assert run(tmp_path, *asked, options=("--json",)) == 0
    fields = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in fields["server_metrics"]] == ["Invocations", "Invocation5XXErrors", "CPUUtilization"]
    assert all(decoded(row, ServerMetric).complete for row in fields["server_metrics"])
    assert len(fake.requests) == 2 * calls


def test_what_lies_beside_the_window_is_not_in_it(
    fake: FakeCloudWatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The percentiles of short periods come in whole minutes, which may hold requests when the window has none."""
    fake.resolution = 1
    requests(fake)
    fake.clock.now += 600
    config = tmp_path / "metrics.json"
    config.write_text(json.dumps([block(ModelLatency=["Average", "p99"], Period=1)]))
    window = "2026-06-22T12:00:02..2026-06-22T12:00:12"
    assert main(["metrics", "--endpoint-config", str(config), "--window", window, "--quiet"]) == 1
    assert "ModelLatency: Average=N/A, p99=N/A (" in capsys.readouterr().out


def test_a_metric_without_a_value_is_reported_by_the_exit_code(
    fake: FakeCloudWatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests(fake)
    fake.clock.now += 600
    assert run(tmp_path, block(Invocations=["Sum"], NoSuchMetric=["Sum"])) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "   Invocations: Sum=1,500" in lines
    assert any(line.startswith("   NoSuchMetric: Sum=N/A (") for line in lines)


def test_a_window_shorter_than_a_period_is_reported_once_and_as_a_window(
    fake: FakeCloudWatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gauge(fake)
    fake.clock.now += 600
    config = tmp_path / "metrics.json"
    config.write_text(json.dumps([block(INSTANCES, CPUUtilization=["Average"])]))
    window = "2026-06-22T12:00:35..2026-06-22T12:01:20"
    assert main(["metrics", "--endpoint-config", str(config), "--window", window]) == 0
    printed = capsys.readouterr()
    assert printed.err == "⏳ Fetching server metrics: cloudwatch...\n"
    assert "lies inside the 45.0 s of the window" in printed.out
    assert "wave" not in printed.out


def test_a_reason_that_all_share_is_reported_once(
    fake: FakeCloudWatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "metrics.json"
    asked = [block(Invocations=["Sum"], ModelLatency=["p99"], Period=10), block(INSTANCES, CPU=["Average"], Period=10)]
    config.write_text(json.dumps(asked))
    assert main(["metrics", "--endpoint-config", str(config), "--window", "2020-01-01..2020-01-02", "--quiet"]) == 1
    assert capsys.readouterr().out.splitlines()[2:] == [
        "   Invocations: Sum=N/A (CloudWatch keeps nothing for longer than 455 days)",
        "   ModelLatency: p99=N/A (microseconds; as above)",
        "   CPU: Average=N/A (as above)",
    ]


def test_ctrl_c_prints_what_came_and_is_130(
    fake: FakeCloudWatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests(fake)
    fake.clock.now += 600

    def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    fake.fault = interrupt
    assert run(tmp_path, block(Invocations=["Sum"], ModelLatency=["p99"])) == 130
    printed = capsys.readouterr().out
    assert "   Invocations: Sum=" in printed
    assert "interrupted before CloudWatch answered" in printed
