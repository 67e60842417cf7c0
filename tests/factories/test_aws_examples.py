"""The examples of Bedrock, Lambda and plain or signed HTTP: what they count, send and take for a failure."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from hashlib import sha256
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from inference_benchmarker import Response
from inference_benchmarker.embedded.aws.boto3_settings import isolated
from inference_benchmarker.embedded.protocols.event_stream import EVENT_STREAM, frame
from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.engine.endpoint.factories_file import load
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.error_key import error_key
from tests.scripted_server import Asked, ScriptedServer, answer
from tests.shipped import FACTORIES

if TYPE_CHECKING:
    from pathlib import Path

CONVERSE, STREAM = "bedrock/factories_converse", "bedrock/factories_converse_stream"
FUNCTION = "lambda_function/factories_lambda_function"
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-lite-v1:0"
SIGNED = "http/factories_http_sigv4"


@pytest.fixture(autouse=True)
def _isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    aim(monkeypatch, "http://127.0.0.1:9")


def aim(patch: pytest.MonkeyPatch, url: str) -> None:
    """Every example that is loaded from now on asks ``url``."""
    for name, value in isolated({"BENCHMARK_DEMO_URL": url}, url).items():
        patch.setenv(name, value)


def ask(path: Path, endpoint_name: str = "demo", times: int = 1) -> list[Any]:
    """What an example's ``invoke`` returns or yields for its first payloads."""
    example = load(path, endpoint_name)
    assert example.payloads is not None
    answers = [example.invoke(payload) for payload in example.payloads[:times]]
    return [piece for answer in answers for piece in (answer if isinstance(answer, GeneratorType) else [answer])]


@pytest.mark.parametrize(("name", "pieces"), [(CONVERSE, 0), (STREAM, 64)])
def test_an_arn_is_a_model(name: str, pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with start(EndpointConfig()) as endpoint:
        aim(monkeypatch, endpoint.url)
        reported = ask(FACTORIES / f"{name}.py", PROFILE)
    figures = [piece for piece in reported if isinstance(piece, Response)]
    assert len(reported) - len(figures) == pieces
    assert figures[-1].tokens_out == 64
    assert figures[0].finish_reason == "max_tokens"


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
def test_what_failed_is_counted_under_a_telling_key(
    name: str, like: dict[str, Any], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(EndpointConfig(**like)) as endpoint:
        aim(monkeypatch, endpoint.url)
        with pytest.raises(Exception) as raised:  # noqa: PT011 - its key is what is looked at
            ask(FACTORIES / f"{name}.py")
        assert len(endpoint.arrivals()["route"]) == 1  # nothing was repeated
    assert error_key(raised.value) == key


BASIC = f"Basic {base64.b64encode(b'ann:p:w').decode()}"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"ENDPOINT_TOKEN": "t-0"}, "Bearer t-0"),
        ({"ENDPOINT_USER": "ann", "ENDPOINT_PASSWORD": "p:w"}, BASIC),
        ({"ENDPOINT_USER": "ann", "ENDPOINT_PASSWORD": "p:w", "BENCHMARK_API_KEY": "k"}, BASIC),
    ],
)
def test_authorization_comes_from_the_environment(
    environment: dict[str, str], expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = tmp_path / "body.bin"
    body.write_bytes(b"\x00as it is\xff")
    for name, value in {**environment, "BODY_FILE": str(body)}.items():
        monkeypatch.setenv(name, value)
    with ScriptedServer([[answer(b"ok")]]) as server:
        aim(monkeypatch, server.url)
        assert ask(FACTORIES / "http/factories_http.py") == [b"ok"]
    (asked,) = server.asked
    assert asked.headers.get("authorization") == expected
    assert (asked.line, asked.body) == ("POST /invocations HTTP/1.1", body.read_bytes())


@pytest.mark.parametrize("name", ["http/factories_http", SIGNED])
def test_a_get_goes_without_a_body(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    edited = tmp_path / "edited.py"
    edited.write_text((FACTORIES / f"{name}.py").read_text().replace('METHOD = "POST"', 'METHOD = "GET"'))
    with ScriptedServer([[answer(b"ok")]]) as server:
        aim(monkeypatch, server.url)
        assert ask(edited) == [b"ok"]
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
    mine = tmp_path / "edited.py"
    mine.write_text(edited)
    with ScriptedServer([[answer(b"ok")]]) as server:
        aim(monkeypatch, server.url)
        identity = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}
        for name, value in {**identity, "AWS_DEFAULT_REGION": "eu-west-1"}.items():
            monkeypatch.setenv(name, value)
        assert ask(mine, times=20) == [b"ok"] * 20
    for asked in server.asked:
        assert asked.headers["x-amz-content-sha256"] == (unsigned or sha256(asked.body).hexdigest())
        assert asked.headers["authorization"] == signature(asked, service, monkeypatch)
    assert unsigned or len({asked.headers["authorization"] for asked in server.asked}) == 20


@pytest.mark.parametrize("name", [CONVERSE, STREAM, FUNCTION])
def test_whom_to_ask_has_to_be_named(name: str) -> None:
    with pytest.raises(BenchmarkError, match="--endpoint-name"):
        load(FACTORIES / f"{name}.py")


def test_without_credentials_nothing_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer([[answer(b"ok")]]) as server:
        aim(monkeypatch, server.url)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        with pytest.raises(BenchmarkError, match="no AWS credentials"):
            ask(FACTORIES / f"{SIGNED}.py")
    assert server.asked == []


USAGE = {"inputTokens": 2, "outputTokens": 1, "totalTokens": 3}


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({}, "stopReason is None, its usage {}"),
        ({"predictions": [0.5]}, "no content"),
        ({"output": {"message": {"role": "assistant", "content": []}}, "stopReason": "end_turn"}, "is end_turn"),
    ],
)
def test_an_answer_without_content_has_failed(
    expected: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer([[answer(json.dumps({**expected, "usage": USAGE} if expected else {}).encode())]]) as server:
        aim(monkeypatch, server.url)
        with pytest.raises(Exception, match=said):
            ask(FACTORIES / f"{CONVERSE}.py")


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ([], "after 0 deltas: its stopReason is None"),
        (["messageStart"], "after 0 deltas: its stopReason is None"),
        (["contentBlockDelta"], "after 1 deltas: its stopReason is None"),
        (["messageStop"], "after 0 deltas: its stopReason is end_turn"),
    ],
)
def test_a_stream_without_a_delta_or_an_end_has_failed(
    kinds: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {
        "messageStart": {"role": "assistant"},
        "contentBlockDelta": {"delta": {"text": "a"}, "contentBlockIndex": 0},
        "messageStop": {"stopReason": "end_turn"},
    }
    events = [
        frame(
            {":event-type": kind, ":content-type": "application/json", ":message-type": "event"},
            json.dumps(contents[kind]).encode(),
        )
        for kind in kinds
    ]
    with ScriptedServer([[answer(b"".join(events), Content_Type=EVENT_STREAM)]]) as server:
        aim(monkeypatch, server.url)
        with pytest.raises(Exception, match=said):
            ask(FACTORIES / f"{STREAM}.py")
