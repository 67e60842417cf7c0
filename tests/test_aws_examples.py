"""The examples of Bedrock, Lambda and plain or signed HTTP: what they count, send and take for a failure."""

from __future__ import annotations

import base64
from datetime import datetime
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from inference_benchmarker.demo.boto3_settings import isolated
from inference_benchmarker.demo_endpoint import EndpointConfig, start
from inference_benchmarker.endpoint import load
from tests.scripted_server import Asked, ScriptedServer, answer
from tests.shipped import FACTORIES, run_example

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process

CONVERSE, STREAM = "bedrock/factories_converse", "bedrock/factories_converse_stream"
FUNCTION = "lambda_function/factories_lambda_function"
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-lite-v1:0"
MAX_TOKENS = 64
SIGNED = "http/factories_http_sigv4"


@pytest.mark.parametrize(("name", "streams"), [(CONVERSE, False), (STREAM, True)])
def test_bedrocks_usage_is_counted_and_an_arn_is_a_model(name: str, streams: bool, tmp_path: Path) -> None:
    with start(EndpointConfig()) as endpoint:
        wave = run_example(name, endpoint.url, tmp_path, "--endpoint-name", PROFILE)
    assert wave.counts == (20, 0), wave.summary["errors"]
    tokens = wave.summary["tokens"]
    assert tokens["tokens_out"] == MAX_TOKENS * 20
    assert 5 * 20 <= tokens["tokens_in"] <= 8 * 20
    assert (wave.summary["ttft"] is not None, wave.summary["itl"] is not None) == (streams, streams)


@pytest.mark.parametrize(
    ("name", "like", "key"),
    [
        (CONVERSE, {"error_share": 1, "error_status": 429}, "ThrottlingException"),
        (STREAM, {"error_share": 1, "error_status": 424}, "ModelErrorException"),
        (STREAM, {"break_share": 1}, "EventStreamError modelStreamErrorException"),
        (STREAM, {"close_share": 1}, "ProtocolError"),
        (FUNCTION, {"error_share": 1}, "FunctionError RuntimeError"),
        (FUNCTION, {"error_share": 1, "error_status": 429}, "TooManyRequestsException"),
    ],
)
def test_what_failed_is_counted_under_a_telling_key(name: str, like: dict[str, Any], key: str, tmp_path: Path) -> None:
    with start(EndpointConfig(**like)) as endpoint:
        wave = run_example(name, endpoint.url, tmp_path)
        assert len(endpoint.arrivals()["route"]) == 20  # nothing was repeated
    assert wave.counts == (0, 20)
    assert [error["key"] for error in wave.summary["errors"]] == [key]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"ENDPOINT_TOKEN": "t-0"}, "Bearer t-0"),
        ({"ENDPOINT_USER": "ann", "ENDPOINT_PASSWORD": "p:w"}, f"Basic {base64.b64encode(b'ann:p:w').decode()}"),
    ],
)
def test_authorization_comes_from_the_environment(
    environment: dict[str, str], expected: str | None, tmp_path: Path
) -> None:
    body = tmp_path / "body.bin"
    body.write_bytes(b"\x00as it is\xff")
    with ScriptedServer([[answer(b"ok")]]) as server:
        wave = run_example(
            "http/factories_http", server.url, tmp_path, environment={**environment, "BODY_FILE": "body.bin"}
        )
    assert wave.counts == (20, 0), wave.summary["errors"]
    assert {asked.headers.get("authorization") for asked in server.asked} == {expected}
    assert {(asked.line, asked.body) for asked in server.asked} == {("POST /invocations HTTP/1.1", body.read_bytes())}


@pytest.mark.parametrize("name", ["http/factories_http", SIGNED])
def test_a_get_goes_without_a_body(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    edited = tmp_path / "edited.py"
    edited.write_text((FACTORIES / f"{name}.py").read_text().replace('METHOD = "POST"', 'METHOD = "GET"'))
    with ScriptedServer([[answer(b"ok")]]) as server:
        for variable, value in isolated({"BENCHMARK_DEMO_URL": server.url}, server.url).items():
            monkeypatch.setenv(variable, value)
        example = load(edited)
        assert example.payloads is not None
        assert example.invoke(example.payloads[0]) == b"ok"
    (asked,) = server.asked
    assert (asked.line, asked.body) == ("GET /invocations HTTP/1.1", b"")


def signature(asked: Asked, service: str, patch: pytest.MonkeyPatch) -> str:
    """What botocore makes of a request as it arrived."""
    at = datetime.strptime(asked.headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
    patch.setattr(botocore.auth, "get_current_datetime", lambda: at)
    names = asked.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    method, target, _ = asked.line.split()
    headers = {name: asked.headers[name] for name in names if name not in ("x-amz-date", "x-amz-security-token")}
    request = AWSRequest(method, f"http://{asked.headers['host']}{target}", headers, asked.body)
    SigV4Auth(Credentials("AKID", "secret", "token"), service, "eu-west-1").add_auth(request)
    return str(request.headers["Authorization"])


@pytest.mark.parametrize(("service", "unsigned"), [("es", None), ("vpc-lattice-svcs", "UNSIGNED-PAYLOAD")])
def test_each_request_bears_its_own_signature(
    service: str, unsigned: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (FACTORIES / f"{SIGNED}.py").read_text()
    edited = source.replace('"execute-api"', f'"{service}"')
    edited = edited.replace('PATH = "/invocations"', 'PATH = "/a%20b/~c?q=%20z&a=1"')
    folder = tmp_path / "wave"
    folder.mkdir()
    mine = tmp_path / "edited.py"
    mine.write_text(edited)
    identity = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}
    with ScriptedServer([[answer(b"ok")]]) as server:
        flags = ("--factories-file", str(mine))
        environment = {**identity, "AWS_DEFAULT_REGION": "eu-west-1"}
        wave = run_example(SIGNED, server.url, folder, *flags, environment=environment)
    assert wave.counts == (20, 0), wave.summary["errors"]
    for asked in server.asked:
        assert asked.headers["x-amz-content-sha256"] == (unsigned or sha256(asked.body).hexdigest())
        assert asked.headers["authorization"] == signature(asked, service, monkeypatch)
    assert unsigned or len({asked.headers["authorization"] for asked in server.asked}) == 20


@pytest.mark.parametrize("name", [CONVERSE, STREAM, FUNCTION])
def test_whom_to_ask_has_to_be_named(name: str) -> None:
    spec = spec_from_file_location("example", FACTORIES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    example = module_from_spec(spec)
    spec.loader.exec_module(example)
    with pytest.raises(ValueError, match="--endpoint-name"):
        example.invoke_factory(None)


def test_without_credentials_nothing_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    none = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "")
    with ScriptedServer([[answer(b"ok")]]) as server, pytest.raises(AssertionError, match="no AWS credentials"):
        run_example(SIGNED, server.url, tmp_path, environment={**none, "AWS_EC2_METADATA_DISABLED": "true"})
    assert server.asked == []
