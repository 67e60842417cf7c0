"""--demo: the whole pipeline on one machine, whatever AWS and proxy settings its user has."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.bench import Bench, Finished

pytestmark = pytest.mark.process

SERVICE_S = 0.02
OF_THE_USER = {"AWS_ACCESS_KEY_ID": "key-of-the-user", "AWS_SESSION_TOKEN": "token-of-the-user"}
HOSTILE = {
    **OF_THE_USER,
    "AWS_SECRET_ACCESS_KEY": "secret-of-the-user",
    "AWS_PROFILE": "no-such-profile",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    "AWS_ENDPOINT_URL_CLOUDWATCH": "http://127.0.0.1:9",
    "AWS_CA_BUNDLE": "/no/such/bundle.pem",
    "AWS_CONFIG_FILE": "/no/such/config",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
    "NO_PROXY": "example.com",
}
METRICS = [
    "CPUUtilization",
    "MemoryUtilization",
    "GPUUtilization",
    "GPUMemoryUtilization",
    "ModelLatency",
    "OverheadLatency",
    "Invocations",
    "InvocationsPerInstance",
    "ConcurrentRequestsPerModel",
    "Invocation4XXErrors",
    "Invocation5XXErrors",
]
# An endpoint of the user's, called as on AWS; it tells what its worker could send.
SAGEMAKER = """
import json, os, pathlib
import boto3


def invoke_factory(endpoint_name):
    session = boto3.Session()
    client = session.client("sagemaker-runtime")
    credentials = session.get_credentials()
    seen = [*os.environ.values(), credentials.access_key, credentials.secret_key, credentials.token]
    pathlib.Path(f"seen-{os.getpid()}.json").write_text(json.dumps(seen))

    def invoke(payload):
        return client.invoke_endpoint(EndpointName=endpoint_name, Body=payload)["Body"].read()

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": [b"{}"]}
"""


def metrics(wave: Finished) -> dict[str, dict[str, Any]]:
    """The server's metrics by name."""
    return {metric["name"]: metric for metric in wave.summary["server_metrics"]}


def busy(wave: Finished, start: float, end: float) -> float:
    """Seconds of service between two moments: each request was in service just before it was answered."""
    zero = datetime.fromisoformat(wave.summary["window"]["start"]).timestamp()
    answered: list[float] = [zero + row["done"] / 1e9 for row in wave.everything]
    return sum(max(0.0, min(end, at) - max(start, at - SERVICE_S)) for at in answered)


def of_the_user(texts: Iterable[str | None]) -> set[str]:
    """What of the user's credentials is among them."""
    secrets = {*OF_THE_USER.values(), HOSTILE["AWS_SECRET_ACCESS_KEY"]}
    return {text for text in texts if text} & secrets


def test_it_shows_what_its_server_did(bench: Bench) -> None:
    wave = bench.run("--demo", "--obs-time", 4, "--output-dir", "runs", factories=None, environment=HOSTILE)
    assert "Traceback" not in wave.err
    assert "CloudWatch has no data" not in wave.err, "nobody expects any of an endpoint that started a moment ago"
    assert (wave.exit_code, wave.findings) == (0, {})
    wave.check_books(rate="100")
    found = metrics(wave)
    assert list(found) == METRICS
    assert [name for name in METRICS if found[name]["reason"] or None in found[name]["statistics"].values()] == []
    assert found["Invocations"]["statistics"] == {"Sum": wave.ledger["sent"]} == {"Sum": 400}
    assert found["Invocation5XXErrors"]["statistics"] == {"Sum": 0}
    assert found["ModelLatency"]["statistics"]["p50"] == pytest.approx(SERVICE_S * 1e6, rel=0.01)
    cpu = found["CPUUtilization"]
    assert wave.summary["window"]["start_unix_ns"] / 1e9 <= cpu["start"] < cpu["end"]
    truth = 100 * busy(wave, cpu["start"], cpu["end"]) / (cpu["end"] - cpu["start"])
    assert cpu["statistics"]["Average"] == pytest.approx(truth, rel=0.15)
    assert "Invocations: Sum=400" in wave.out


@pytest.mark.slow
def test_json_and_quiet(bench: Bench) -> None:
    flags = ("--demo", "--obs-time", 1, "--json", "--quiet", "--output-dir", "runs")
    wave = bench.run(*flags, factories=None, environment=HOSTILE)
    assert wave.err == ""
    summary = json.loads(wave.out)
    assert {each["name"]: each["statistics"] for each in summary["server_metrics"]}["Invocations"] == {"Sum": 100}


def test_for_a_users_endpoint_it_stands_in_for_aws(bench: Bench) -> None:
    folder = bench.folder()
    _config(folder / "config.json", "mine")
    flags = ("--demo", "--endpoint-name", "mine", "--client-rps", 20, "--obs-time", 3, "--workers", 1)
    more = ("--endpoint-config", "config.json")
    wave = bench.run(*flags, *more, factories=SAGEMAKER, environment=HOSTILE, folder=folder)
    assert (wave.exit_code, wave.ledger["ok"]) == (0, 60)
    assert "server_metrics" not in wave.findings
    assert {name: metric["statistics"] for name, metric in metrics(wave).items()} == {"Invocations": {"Sum": 60}}
    (seen,) = folder.glob("seen-*.json")
    assert of_the_user(json.loads(seen.read_text())) == set()


def test_a_users_endpoint_without_a_configuration_has_no_metrics(bench: Bench) -> None:
    flags = ("--demo", "--endpoint-name", "mine", "--client-rps", 20, "--obs-time", 1, "--workers", 1)
    wave = bench.run(*flags, factories=SAGEMAKER, environment=HOSTILE)
    assert (wave.exit_code, wave.ledger["ok"], wave.summary["server_metrics"]) == (0, 20, None)
    assert "cloudwatch" not in wave.out + wave.err


def _config(path: Path, name: str) -> None:
    dimensions = [{"Name": "EndpointName", "Value": name}, {"Name": "VariantName", "Value": "AllTraffic"}]
    block = {"stream": "cloudwatch", "Namespace": "AWS/SageMaker", "Dimensions": dimensions, "Period": 1, "Lag": 1}
    path.write_text(json.dumps([{**block, "Metrics": ["Invocations"], "Statistics": [["Sum"]]}]))
