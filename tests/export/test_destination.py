"""The destinations of figures, as --export says it."""

from __future__ import annotations

import pytest

from inference_benchmarker.cli import main
from inference_benchmarker.cli.wave.export_flags import exports_of
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.export.destination import (
    Collector,
    Destination,
    PageAt,
    collector_url,
    parse_destination,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("prometheus", PageAt("127.0.0.1", 9464)),
        ("prometheus:0", PageAt("127.0.0.1", 0)),
        ("prometheus:9100", PageAt("127.0.0.1", 9100)),
        ("prometheus:0.0.0.0:9100", PageAt("0.0.0.0", 9100)),
        ("prometheus:[::1]:9100", PageAt("::1", 9100)),
        ("prometheus:my-host:9100", PageAt("my-host", 9100)),
        ("otlp", Collector()),
        ("otlp=http://127.0.0.1:4318", Collector("http://127.0.0.1:4318/v1/metrics")),
        ("otlp=https://c.example/", Collector("https://c.example/v1/metrics")),
        ("otlp=https://c.example/otlp/metrics", Collector("https://c.example/otlp/metrics")),
        ("otlp=https://c.example?tenant=1", Collector("https://c.example?tenant=1")),
    ],
)
def test_a_destination_is_understood(text: str, found: Destination) -> None:
    assert parse_destination("--export", text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "prom",
        "prometheus:",
        "prometheus:65536",
        "prometheus:::9",
        "prometheus:a b:9",
        "otlp=",
        "otlp=c:4318",
        "otlp:1",
    ],
)
def test_anything_else_is_reported_with_what_is_expected(text: str) -> None:
    with pytest.raises(BenchmarkError, match=r"--export must be prometheus|must start with http"):
        parse_destination("--export", text)


def test_a_password_in_a_destination_is_not_reported() -> None:
    with pytest.raises(BenchmarkError) as reported:
        parse_destination("--export", "otlp://user:secret-word@host")
    assert "secret-word" not in str(reported.value)


@pytest.mark.parametrize(
    ("given", "environment", "url"),
    [
        (None, {}, "http://127.0.0.1:4318/v1/metrics"),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1/"}, "http://c:1/v1/metrics"),
        (
            None,
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://m:2/here"},
            "http://m:2/here",
        ),
        ("http://a:3/x", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1"}, "http://a:3/x"),
    ],
)
def test_a_collector_is_where_it_is_said_nearest(given: str | None, environment: dict[str, str], url: str) -> None:
    assert collector_url(Collector(given), environment) == url


def test_every_problem_is_reported_at_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "soon")
    given = ["--export", "otlp", "--export", "graphite", "--export-wait", "2h", "--client-rps", "many"]
    assert main(["--demo", *given]) == 2
    reported = capsys.readouterr().err
    for part in ("OTEL_METRIC_EXPORT_INTERVAL", "'graphite'", "--export-wait must be", "--client-rps must be"):
        assert part in reported


@pytest.mark.parametrize("name", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"])
@pytest.mark.parametrize("scheme", ["", "grpc://", "https:/"])
@pytest.mark.parametrize("password", ["secret-word", "secret/word", "s3cret@word#"])
def test_an_address_of_the_environment_is_checked_before_the_wave(
    name: str, scheme: str, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without http:// before it, as gRPC has it; a password in it is not reported."""
    monkeypatch.setenv(name, f"{scheme}me:{password}@collector:4317")
    problems: list[str] = []
    exports_of({"export": ["otlp"], "export_wait": None}, problems)
    assert problems == [f"{name} must start with http:// or https://, not '{scheme}[hidden]@collector:4317'."]
    exports_of({"export": ["otlp=http://a:3"], "export_wait": None}, problems := [])
    assert problems == []


def test_several_destinations_are_kept_once_each() -> None:
    options = {"export": ["prometheus", "otlp", "prometheus:9464"], "export_wait": "1m"}
    exports = exports_of(options, [])
    assert (exports.pages, exports.collectors, exports.wait_s) == ((PageAt(),), (Collector(),), 60.0)
