"""--endpoint-config: the wave and its server's metrics in one report; the embedded endpoint knows the truth."""

from __future__ import annotations

import json
import re
import signal
from http.client import HTTPConnection
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.cli.wave.server_metrics import print_with_metrics
from inference_benchmarker.exit_codes import INVALID
from inference_benchmarker.facts.server_metric import Interval, ServerLog, ServerMetric, renewed
from inference_benchmarker.report.server_metrics import metric_lines
from inference_benchmarker.wave import writer
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.wave import Wave
from tests import metrics_truth
from tests.fake_cloudwatch import cloudwatch_block
from tests.mentions import mentions
from tests.waves import facts_of

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.facts.instances import Followed, InstanceSource
    from tests.bench import Bench, Finished


MEASURED = (0, INVALID)  # a busy machine makes a wave INVALID


@pytest.mark.process
def test_a_wave_tells_what_its_server_did(bench: Bench) -> None:
    folder = bench.folder()
    metrics = {"Invocations": ["Sum"], "ModelLatency": ["p99"], "NoSuchMetric": ["Sum"]}
    with bench.endpoint(servers=4, publish_interval_s=1) as endpoint:
        (folder / "config.json").write_text(json.dumps([cloudwatch_block("AWS/SageMaker", metrics, period=1, lag=1)]))
        wave = bench.run(
            *("--client-rps", 50, "--obs-time", 4, "--warmup", 1, "--endpoint-config", "config.json"),
            *("--slo", "server.CPUUtilization<90%"),
            target=endpoint,
            environment=endpoint.aws_environment,
            folder=folder,
        )
        log = endpoint.arrivals()
    found = {metric["name"]: metric for metric in wave.summary["server_metrics"]}
    _limit_was_waited_for_and_kept(wave)
    assert found["CPUUtilization"]["asked"], "the configuration does not name it, the limit does"
    assert found["Invocations"]["statistics"] == {"Sum": 250}, "the warm-up reached the server, too"
    p99_us = found["ModelLatency"]["statistics"]["p99"]
    assert p99_us == pytest.approx(metrics_truth.true_p99_us(found["ModelLatency"], log), rel=0.01)
    assert found["NoSuchMetric"]["statistics"] == {"Sum": None}
    assert found["NoSuchMetric"]["reason"]
    lines = [" ".join(line.split()) for line in wave.out.splitlines()]
    assert "Invocations: Sum=250" in lines
    assert any(line.startswith("NoSuchMetric: Sum=N/A (") for line in lines)
    assert wave.findings["server_metrics"] == "warning"
    assert wave.exit_code in MEASURED, "metrics that are missing do not change it"
    stored = json.loads((wave.folder / "server_metrics.json").read_text())
    assert stored.pop("digest")
    assert stored == {"schema_version": 1, "metrics": wave.summary["server_metrics"], "logs": []}
    assert wave.summary["server_logs"] is None, "nothing failed"
    assert Wave.load(wave.folder).to_json() == wave.summary
    assert (wave.folder / "summary.txt").read_text().splitlines()[1:-1] == wave.out.splitlines()[1:-1]


def _limit_was_waited_for_and_kept(wave: Finished) -> None:
    printed, stored = (text.partition("\n")[0] for text in (wave.out, (wave.folder / "summary.txt").read_text()))
    limit = "server.CPUUtilization<90%"
    before, answered = printed.split(f"{limit} waits for the server's metrics; ")
    if wave.exit_code == INVALID:
        assert (before.split(",")[0], stored.split(",")[0]) == ("INVALID", "INVALID")
        return
    assert before.startswith("PENDING")
    assert re.match(rf"(PASSED|VALID, client-limited): .*{limit} \(", stored), "a busy machine blames the client"
    assert f"; {answered}" in stored


@pytest.mark.process
def test_what_the_metrics_say_is_what_happened_at_the_server(bench: Bench) -> None:
    """A cold endpoint that fails some requests on idle hardware, and that somebody else uses meanwhile."""
    folder = bench.folder()
    requests = {"ModelLatency": ["Average"], "OverheadLatency": ["Average"], "Invocation5XXErrors": ["Sum"]}
    asked = [
        cloudwatch_block("AWS/SageMaker", requests, period=1, lag=1),
        cloudwatch_block("/aws/sagemaker/Endpoints", {"CPUUtilization": ["Average", "Maximum"]}, period=1, lag=1),
    ]
    (folder / "config.json").write_text(json.dumps(asked))
    with bench.endpoint(servers=8, service_s=0.05, cold_start_s=0.5, error_share=0.1, publish_interval_s=1) as endpoint:
        running = bench.start(
            *("--client-rps", 40, "--obs-time", 4, "--success-threshold", "0.5", "--endpoint-config", "config.json"),
            target=endpoint,
            environment=endpoint.aws_environment,
            folder=folder,
        )
        running.wait_for_arrivals(endpoint, 40)
        somebody = HTTPConnection("127.0.0.1", endpoint.port)
        for _ in range(3):  # fewer than leave a mean unknown
            somebody.request("POST", "/invocations", b"{}")
            somebody.getresponse().read()
        somebody.close()
        wave = running.finish()
        log = endpoint.arrivals()
    remarks = {remark["code"]: remark["measured"] for remark in wave.summary["diagnosis"]}
    failed = log["status"].count(500)
    assert f"{failed} of 163 requests ended in a server error" in remarks["server_errors"]
    assert remarks["cold_start"].startswith("The first 10 requests took")
    assert mentions(remarks["foreign_traffic"], "163 requests", "160", "3 came")
    assert "of 800%)" in remarks["cpu"], "8 servers have a core each"
    assert set(remarks) >= {"time", "cpu"}
    assert f"log group /aws/sagemaker/Endpoints/demo has {6 * failed} events" in " ".join(wave.out.split())
    said = f"{failed} x RuntimeError: The model failed, as configured."
    assert f"        {said}" in wave.out.splitlines()
    (stored,) = json.loads((wave.folder / "server_metrics.json").read_text())["logs"]
    assert [stored] == wave.summary["server_logs"]
    assert stored["lines"][0] == {"text": "RuntimeError: The model failed, as configured.", "count": failed}
    again = bench.run("report", wave.folder, factories=None)
    assert said in again.out
    assert again.out.splitlines()[:-1] == wave.out.splitlines()[:-1], "without asking anybody"
    check_an_older_run_without_logs_is_read(wave.folder)
    parts = [duration(text) for text in re.findall(r"([\d.]+ m?s) [(]", remarks["time"])]
    assert sum(parts) == pytest.approx(wave.summary["latency"]["mean"], rel=0.02)
    assert wave.exit_code == 0


def check_an_older_run_without_logs_is_read(folder: Path) -> None:
    facts = facts_of(RunDir(folder))
    del facts["server_logs"]
    (folder / "summary.json").write_text(json.dumps(facts))
    older = Wave.load(folder)
    assert older.server_logs is None
    assert "CloudWatch's log group /aws/sagemaker/Endpoints/demo says why." in " ".join(older.text().split())


def duration(text: str) -> float:
    value, unit = text.split()
    return float(value) * {"s": 1, "ms": 1e-3}[unit]


@pytest.mark.process
@pytest.mark.slow
def test_metrics_are_what_the_server_did(bench: Bench) -> None:
    """One wave, long enough for two whole buckets; the truth is the server's log, however busy the machine is."""
    folder = bench.folder()
    (folder / "config.json").write_text(json.dumps(metrics_truth.asked(period=10, lag=1)))
    with bench.endpoint(servers=4, service_s=0.02, publish_interval_s=10, publication_delay_s=1) as endpoint:
        flags = ("--client-rps", 100, "--obs-time", 32, "--warmup", 2, "--calibrate")
        wave = bench.run(
            *(*flags, "--endpoint-config", "config.json"),
            target=endpoint,
            environment=endpoint.aws_environment,
            folder=folder,
        )
        truth = metrics_truth.Truth.of(wave.summary["server_metrics"], endpoint.arrivals(), period=10)
    assert truth.buckets >= 2
    assert truth.cpu == pytest.approx(truth.true_cpu, rel=0.02)
    assert truth.p99_us == pytest.approx(truth.true_p99_us, rel=0.01)
    assert truth.invocations == truth.arrivals == len(wave.everything) == 3400
    reasons = {row["name"]: row["reason"] for row in wave.summary["server_metrics"]}
    others = reasons.pop("ModelLatency")  # of the 3,400 the warm-up has 200, of which the first bucket may hold some
    assert others is None or re.match(r"p99: of the |about [1-6]% of the requests in these buckets of 10 s are", others)
    assert list(reasons.values()) == [None, None]
    assert "server_metrics" not in wave.findings


@pytest.mark.process
def test_a_wrong_configuration_is_said_before_anything_is_sent(bench: Bench) -> None:
    folder = bench.folder()
    (folder / "config.json").write_text('[{"stream": "cloudwach"}]')
    with bench.endpoint(service="none") as endpoint:
        flags = ("--client-rps", 10, "--obs-time", 1, "--endpoint-config", "config.json")
        wave = bench.run(*flags, target=endpoint, folder=folder)
        assert endpoint.arrivals()["id"] == []
    assert wave.code == 2
    assert "'cloudwach'" in wave.err
    assert "Traceback" not in wave.err


class Finishing:
    """A wave and its one source, in whose work somebody presses Ctrl-C: while it collects, or while all is stored."""

    verdict = SimpleNamespace(exit_code=0)
    summary = SimpleNamespace(errors=())
    ledger = SimpleNamespace(sent=20)

    def __init__(self, *, collecting: bool = False, full: bool = False) -> None:
        self.collecting = collecting
        self.full = full
        self.stored: list[ServerMetric] | None = None

    def texts(self, _width: int | None = None, _next: object = None) -> tuple[str, str]:
        return "the wave", f"with {len(self.stored or [])} metrics"

    def interval(self) -> Interval:
        return Interval.past(0.0, 1.0)

    def collect(self, *_: object) -> list[ServerMetric]:
        if self.collecting:
            signal.raise_signal(signal.SIGINT)
        return [metric("CPUUtilization", 1.0)]

    def with_server_metrics(self, metrics: list[ServerMetric], logs: list[ServerLog]) -> Finishing:
        assert logs == [], "nothing failed"
        if not self.collecting and not self.full:
            signal.raise_signal(signal.SIGINT)
        self.stored = metrics
        return self

    def instances(self) -> list[InstanceSource]:
        return []

    def with_instances(self, followed: list[Followed]) -> Finishing:
        assert followed == []
        return self

    def save(self) -> None:
        if self.full:
            raise OSError(28, "No space left on device")


@pytest.fixture
def _unstored(monkeypatch: pytest.MonkeyPatch) -> None:
    """What finishes saves itself."""
    monkeypatch.setattr(writer, "save_server_metrics", Finishing.save)


@pytest.mark.usefixtures("_unstored")
@pytest.mark.parametrize(("collecting", "printed"), [(True, "with 0 metrics"), (False, "with 1 metrics")])
def test_ctrl_c_beside_the_waiting_loses_nothing(
    collecting: bool, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wave: Any = Finishing(collecting=collecting)
    assert print_with_metrics(wave, [wave], {"json": None, "quiet": None}).verdict.exit_code == 0
    assert capsys.readouterr().out == f"the wave\n{printed}"


@pytest.mark.usefixtures("_unstored")
def test_a_full_disk_keeps_no_metric_from_being_printed(capsys: pytest.CaptureFixture[str]) -> None:
    wave: Any = Finishing(full=True)
    assert print_with_metrics(wave, [wave], {"json": None, "quiet": None}).verdict.exit_code == 0
    printed = capsys.readouterr()
    assert printed.out == "the wave\nwith 1 metrics"
    assert "could not be stored (No space left on device)" in printed.err


class Faulty:
    """A source with a fault of ours."""

    def instances(self) -> list[InstanceSource]:
        return []

    def collect(self, *_: object) -> list[ServerMetric]:
        raise KeyError("Timestamps")


@pytest.mark.usefixtures("_unstored")
def test_a_source_that_fails_loses_neither_the_wave_nor_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    wave: Any = Finishing(collecting=False)
    other: Any = SimpleNamespace(collect=lambda *_: [metric("CPUUtilization", 1.0)], instances=list)
    faulty: Any = Faulty()
    assert print_with_metrics(wave, [faulty, other], {"json": None, "quiet": None}).verdict.exit_code == 0
    missing, there = wave.stored
    assert (missing.name, missing.complete, missing.reason) == (
        "faulty metrics",
        False,
        "reading them failed (KeyError)",
    )
    assert there.name == "CPUUtilization"
    printed = capsys.readouterr()
    assert printed.out == "the wave\nwith 2 metrics"
    assert "KeyError: 'Timestamps'" in printed.err


def metric(name: str, value: float | None, **more: Any) -> ServerMetric:
    return ServerMetric("cloudwatch", name, {"Average": value}, **more)


def test_a_line_for_each_metric() -> None:
    a, b = {"EndpointName": "a"}, {"EndpointName": "b"}
    rows = [
        metric("CPUUtilization", 312.44, dimensions=a),
        metric("CPUUtilization", 0.01234, dimensions=b),
        metric("ModelLatency", 20_013.4, dimensions=a, unit="Microseconds"),
        metric("OverheadLatency", None, unit="Microseconds", reason="nothing came"),
        metric("GPUUtilization", None, unit="Percent", reason="no GPU reported"),
        metric("Invocations", 5.0, asked=False),
    ]
    assert list(metric_lines(rows)) == [
        "   CPUUtilization (EndpointName=a): Average=312.4",
        "   CPUUtilization (EndpointName=b): Average=0.01234",
        "   ModelLatency: Average=20,013 (microseconds)",
        "   OverheadLatency: Average=N/A (microseconds; nothing came)",
        "   GPUUtilization: Average=N/A (no GPU reported)",
    ]


def test_a_shared_reason_is_reported_once() -> None:
    late = "CloudWatch had nothing 60 s after the wave"
    rows = [metric(name, None, reason=late) for name in ("A", "B")]
    assert list(metric_lines(rows)) == [f"   A: Average=N/A ({late})", "   B: Average=N/A (as above)"]


def test_as_above_is_the_last_reason_that_was_reported() -> None:
    """Not one further up: the reader looks at the nearest."""
    reasons = ("late", "denied", "late", None, "late")
    rows = [metric(name, None, reason=reason) for name, reason in zip("ABCDE", reasons, strict=True)]
    lines = [line.partition("(")[2].rstrip(")") for line in metric_lines(rows)]
    assert lines == ["late", "denied", "late", "", "as above"]


def test_many_series_of_a_name_are_counted() -> None:
    rows = [metric("gpu_use", 0.5, dimensions={"gpu": str(number)}) for number in range(64)]
    lines = list(metric_lines([*rows, metric("other", 1.0)]))
    assert len(lines) == 22
    assert mentions(lines[-1], "44 more", "gpu_use", "server_metrics.json")


def test_a_later_reading_takes_nothing_away() -> None:
    before = [metric("A", 1.0), metric("B", None, reason="late"), metric("page", 3.0), metric("C", 4.0)]
    now = [metric("A", 2.0), metric("B", 5.0), metric("C", None, reason="no network"), metric("D", None)]
    renewed_rows = {row.name: row.statistics["Average"] for row in renewed(before, now)}
    assert renewed_rows == {"A": 2.0, "B": 5.0, "page": 3.0, "C": 4.0, "D": None}
    assert renewed((), now) == tuple(now)
