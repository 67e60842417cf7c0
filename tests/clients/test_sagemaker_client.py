"""SageMakerClient held against boto3: the same calls of the same server must give the same, errors included."""

from __future__ import annotations

import itertools
import json
import struct
import time
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import boto3
import botocore.auth
import botocore.exceptions
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials, RefreshableCredentials
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.clients import SageMakerClient, signing
from inference_benchmarker.clients.event_stream import FrameReader
from inference_benchmarker.clients.signing import Signer
from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.protocols.event_stream import frame
from inference_benchmarker.embedded.running import start
from inference_benchmarker.records.error_key import error_key
from tests.boto3_runtime import PART, isolate
from tests.scripted_server import CLOSE, RESET, Script, ScriptedServer, answer, chunked_head, chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

TIMEOUT_S = 0.4
NOW = datetime(2026, 11, 2, 23, 59, 59, tzinfo=UTC)
ABC = frame(PART, b"abc")


@pytest.fixture(autouse=True)
def _isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(monkeypatch)


def both(url: str) -> tuple[Any, Any]:
    """boto3's client and ours, with the same settings."""
    config = Config(
        retries={"total_max_attempts": 1, "mode": "legacy"}, connect_timeout=TIMEOUT_S, read_timeout=TIMEOUT_S
    )
    theirs = boto3.client("sagemaker-runtime", endpoint_url=url, config=config)
    return theirs, SageMakerClient(endpoint_url=url, connect_timeout_s=TIMEOUT_S, read_timeout_s=TIMEOUT_S)


def whole(client: Any, **parameters: Any) -> dict[str, Any]:
    result: dict[str, Any] = client.invoke_endpoint(**{"EndpointName": "e", "Body": b"{}", **parameters})
    return {**result, "Body": result["Body"].read()}


def streamed(client: Any, **parameters: Any) -> dict[str, Any]:
    result: dict[str, Any] = client.invoke_endpoint_with_response_stream(
        **{"EndpointName": "e", "Body": b"{}", **parameters}
    )
    return {**result, "Body": [*result["Body"]]}


class Outcome(NamedTuple):
    """What a call came to: its result, or its error's key and what the error knows of the answer."""

    result: Any = None
    key: str | None = None
    response: Any = None


def outcome(call: Callable[..., Any], client: Any, **parameters: Any) -> Outcome:
    try:
        result = call(client, **parameters)
    except Exception as error:
        return Outcome(key=error_key(error), response=_response_of(getattr(error, "response", None)))
    return Outcome(_response_of(result))


def _response_of(response: Any) -> Any:
    """Without what only says that boto3 was allowed one attempt."""
    if isinstance(response, dict) and "ResponseMetadata" in response:
        response["ResponseMetadata"].pop("MaxAttemptsReached", None)
    return response


@dataclass(frozen=True)
class Pair:
    """boto3's client and ours of one server."""

    server: ScriptedServer
    clients: tuple[Any, Any]

    def outcomes(self, script: Script, call: Callable[..., Any], **parameters: Any) -> list[Outcome]:
        """What boto3 and ours make of the same answer."""
        self.server.scripts = [script]
        self.server.asked.clear()
        found = [outcome(call, client, **parameters) for client in self.clients]
        assert len(self.server.asked) == 2, "each sent its request once"
        return found


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with pytest.MonkeyPatch.context() as patch, ScriptedServer([]) as server:
        isolate(patch)
        yield Pair(server, both(server.url))


def exception(kind: str, **text: str) -> bytes:
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json.dumps(text).encode())


def in_chunks(*frames: bytes) -> Script:
    return [chunked_head(X_Amzn_SageMaker_Content_Type="text/plain", x_amzn_RequestId="id"), chunks(*frames)]


def prelude(total: int, headers: int) -> bytes:
    return struct.pack(">III", total, headers, zlib.crc32(struct.pack(">II", total, headers)))


MODEL_ERROR = {"ErrorCode": "C", "LogStreamArn": "a", "Message": "m", "OriginalMessage": "o", "OriginalStatusCode": 500}
ANSWERS: dict[str, Script] = {
    "a success": [
        answer(
            b"\x00body",
            Content_Type="text/csv",
            x_amzn_RequestId="id",
            x_Amzn_Invoked_Production_Variant="v",
            X_Amzn_SageMaker_Custom_Attributes="a=1",
            X_Amzn_SageMaker_New_Session_Id="s; Expires=never",
            X_Amzn_SageMaker_Closed_Session_Id="c",
        )
    ],
    "a compressed one": [answer(zlib.compress(b"a" * 100, wbits=31), Content_Encoding="gzip")],
    "an empty one": [answer()],
    "one in chunks": [chunked_head(), chunks(b"a" * 70_000, b"b")],
    "one without a body": [b"HTTP/1.1 204 No Content\r\n\r\n"],
    "ModelError": [
        answer(json.dumps(MODEL_ERROR).encode(), "424 X", x_amzn_ErrorType="ModelError", x_amzn_RequestId="r")
    ],
    "throttling": [answer(b'{"message":"m"}', "400 X", x_amzn_ErrorType="ThrottlingException:http://a/")],
    "too many": [answer(b'{"Message":"m"}', "429 X", x_amzn_ErrorType="ModelNotReadyException")],
    "ValidationError": [answer(b'{"message":"m"}', "400 X", x_amzn_ErrorType="ValidationError")],
    "InternalFailure": [answer(b'{"__type":"com.amazon#InternalFailure","Message":"m"}', "500 X")],
    "a proxy's page": [answer(b"<html>", "503 X", Content_Type="text/html")],
    "an error without a body": [answer(b"", "500 X")],
    "a redirect": [answer(b"", "301 X", Location="/other")],
    "no answer": [CLOSE],
    "a reset": [RESET],
    "no HTTP": [b"SSH-2.0-server\r\n\r\n", CLOSE],
    "silence": [3 * TIMEOUT_S],
}
BODIES: dict[str, Script] = {
    "cut": [answer(b"abc")[:-1], CLOSE],
    "cut between chunks": [chunked_head(), b"3\r\nabc\r\n", CLOSE],
    "standing still": [answer(b"abc")[:-1], 3 * TIMEOUT_S],
}
STREAMS: dict[str, Script] = {
    "parts": in_chunks(ABC, frame(PART, b""), frame(PART, bytes(range(256)))),
    "no parts": in_chunks(),
    "parts with a length": [answer(ABC + ABC)],
    "several in a chunk, and one in several": [chunked_head(), chunks(ABC + ABC + ABC[:7], ABC[7:30], ABC[30:] + ABC)],
    "ModelStreamError": in_chunks(ABC, exception("ModelStreamError", Message="m", ErrorCode="StreamBroken")),
    "InternalStreamFailure": in_chunks(exception("InternalStreamFailure", Message="m"), ABC),
    "an error": in_chunks(ABC, frame({":error-code": "E", ":error-message": "m", ":message-type": "error"}, b"")),
    "an unknown event": in_chunks(frame({**PART, ":event-type": "Other"}, b"x"), ABC),
    "a wrong checksum": in_chunks(ABC, ABC[:-1] + b"?"),
    "a wrong checksum of the prelude": in_chunks(ABC, ABC[:8] + b"????" + ABC[12:]),
    "a frame too long": in_chunks(prelude(1 << 31, 0)),
    "headers too long": in_chunks(prelude(1 << 30, 1 << 29)),
    "cut": [chunked_head(), b"%x\r\n%b\r\n" % (len(ABC), ABC), CLOSE],
    "standing still": [chunked_head(), b"%x\r\n%b\r\n" % (len(ABC), ABC), 3 * TIMEOUT_S],
}


@pytest.mark.parametrize("name", [*ANSWERS, *BODIES])
def test_an_answer_is_the_same(name: str, pair: Pair) -> None:
    theirs, ours = pair.outcomes({**ANSWERS, **BODIES}[name], whole)
    assert ours == theirs
    assert ours.key or isinstance(ours.result["Body"], bytes)


@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in ("a success", "one in chunks")])
def test_an_answer_that_is_no_stream_is_the_same(name: str, pair: Pair) -> None:
    theirs, ours = pair.outcomes(ANSWERS[name], streamed)
    assert ours == theirs


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_the_same(name: str, pair: Pair) -> None:
    theirs, ours = pair.outcomes(STREAMS[name], streamed)
    assert ours == theirs


def test_half_a_frame_at_the_end_is_no_success(pair: Pair) -> None:
    theirs, ours = pair.outcomes(in_chunks(ABC, ABC[:-3]), streamed)
    assert theirs.key is None, "boto3 takes it for the end"
    assert ours.key == "ProtocolError"


@pytest.mark.parametrize(("url", "why"), [("http://127.0.0.1:1", "ECONNREFUSED"), ("http://host.invalid", "gaierror")])
def test_nobody_there_is_the_same(url: str, why: str) -> None:
    theirs, ours = (outcome(whole, client) for client in both(url))
    assert ours == theirs
    assert ours.key == f"EndpointConnectionError {why}"


EVERY = {
    "ContentType": "text/csv",
    "Accept": "application/json",
    "CustomAttributes": "a=1  b",
    "TargetVariant": "v",
    "TargetContainerHostname": "h",
    "InferenceId": "i",
    "InferenceComponentName": "c",
    "SessionId": "NEW_SESSION",
}


@pytest.mark.parametrize(
    ("call", "parameters"),
    [
        (whole, {}),
        (whole, {"EndpointName": "arn:aws:sagemaker:r:1:endpoint/é x", "Body": "text é"}),
        (
            whole,
            {**EVERY, "TargetModel": "/a b/model.tar.gz", "EnableExplanations": "`true`", "Body": bytearray(b"\xff")},
        ),
        (whole, {"CustomAttributes": "é 日本", "TargetModel": "é"}),
        (streamed, {**EVERY, "Body": b"x" * 100_000}),
    ],
)
def test_the_request_is_the_same(call: Callable[..., Any], parameters: dict[str, Any]) -> None:
    with ScriptedServer([[answer()]]) as server:
        for client in both(server.url):
            call(client, **parameters)
    theirs, ours = server.asked
    assert (ours.line, ours.body) == (theirs.line, theirs.body)
    own = ("user-agent", "amz-sdk-", "accept-encoding", "connection", "authorization", "x-amz-date")
    said = [{n: v for n, v in asked.headers.items() if not n.startswith(own)} for asked in (theirs, ours)]
    assert said[1] == said[0]
    signed = [asked.headers["authorization"].split("SignedHeaders=")[1].split(",")[0] for asked in (theirs, ours)]
    assert signed[1] == signed[0]


@pytest.mark.parametrize(
    "parameters",
    [{"Body": None}, {"Body": {"a": 1}}, {"Foo": "x"}, {"EndpointName": 3}, {"TargetModel": 1}, {"SessionId": None}],
)
def test_wrong_parameters_are_said_in_the_same_words(parameters: dict[str, Any]) -> None:
    texts = []
    for client in both("http://127.0.0.1:1"):
        with pytest.raises(botocore.exceptions.ParamValidationError) as wrong:
            whole(client, **parameters)
        texts.append(str(wrong.value))
    assert texts[0] == texts[1]


def test_what_is_missing_is_said() -> None:
    for client in both("http://127.0.0.1:1"):
        with pytest.raises(
            botocore.exceptions.ParamValidationError, match='Missing required parameter in input: "Body"'
        ):
            client.invoke_endpoint(EndpointName="e")


def test_a_header_with_a_line_break_is_refused() -> None:
    with pytest.raises(ValueError, match="line break"):
        whole(both("http://127.0.0.1:1")[1], CustomAttributes="a\r\nb: c")


def test_the_endpoint_answers_both_alike_and_events_come_when_they_are_due() -> None:
    with start(EndpointConfig(service_s=0.2, tokens=4)) as endpoint:
        theirs, ours = both(endpoint.url)
        assert whole(ours)["Body"] == whole(theirs)["Body"]
        events = ours.invoke_endpoint_with_response_stream(EndpointName="e", Body=b"{}")["Body"]
        seen = [(time.monotonic_ns(), event["PayloadPart"]["Bytes"]) for event in events]
        begun = endpoint.arrivals()["start_ns"][-1]
        parts = [part for _, part in seen]
        assert parts == [b"0", b" 1", b" 2", b" 3"]
        assert parts == [event["PayloadPart"]["Bytes"] for event in streamed(theirs)["Body"]]
        assert all(at >= begun + (number + 1) * 50_000_000 for number, (at, _) in enumerate(seen))
        assert seen[0][0] < begun + 150_000_000, "the first came before the last was due"


def test_a_stream_left_early_is_closed_and_the_next_call_is_well() -> None:
    with ScriptedServer([[chunked_head(), b"%x\r\n%b\r\n" % (len(ABC), ABC)], [answer(b"ok")]]) as server:
        client = both(server.url)[1]
        body = client.invoke_endpoint_with_response_stream(EndpointName="e", Body=b"")["Body"]
        assert next(iter(body)) == {"PayloadPart": {"Bytes": b"abc"}}
        body.close()
        body.close()
        assert [*body] == []
        assert whole(client)["Body"] == b"ok"
    assert [asked.connection for asked in server.asked] == [0, 1]


@given(parts=st.lists(st.binary(max_size=40), max_size=5), cuts=st.lists(st.integers(1, 600), max_size=20))
def test_frames_cut_anywhere_are_the_same(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(frame(PART, part) for part in parts)
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    reader = FrameReader()
    pieces = [data[start:end] for start, end in itertools.pairwise(places)]
    assert [payload for piece in pieces for _, payload in reader.feed(piece)] == parts
    assert reader.between_frames


# --- signatures


def freeze(monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: now.replace(tzinfo=None))
    monkeypatch.setattr(
        signing, "time", SimpleNamespace(time=now.timestamp, strftime=time.strftime, gmtime=time.gmtime)
    )


def botocores(credentials: Credentials, path: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
    request = AWSRequest("POST", f"https://{headers['host']}{path}", data=body)
    for name, value in headers.items():
        request.headers[name] = value
    SigV4Auth(credentials, "sagemaker", "eu-west-1").add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


TEXT = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20)


@given(
    segments=st.lists(st.text(st.sampled_from("abcXYZ019-_~%."), max_size=6) | st.just(".."), min_size=1, max_size=4),
    values=st.dictionaries(st.sampled_from(["accept", "x-amzn-a", "x-amzn-b", "content-type", "zz"]), TEXT),
    body=st.binary(max_size=200),
    credentials=st.builds(
        Credentials,
        st.just("AKID"),
        st.text(min_size=1, max_size=40),
        st.none() | st.text(st.sampled_from("abc/+="), min_size=1, max_size=50),
    ),
    ahead_s=st.integers(0, 10**9),
)
def test_a_signature_is_botocores(
    segments: list[str], values: dict[str, str], body: bytes, credentials: Credentials, ahead_s: int
) -> None:
    headers = {**values, "host": "runtime.example:8443"}
    path = "/" + "/".join(segments)
    with pytest.MonkeyPatch.context() as patch:
        freeze(patch, NOW + timedelta(seconds=ahead_s))
        ours = Signer(credentials, "eu-west-1", "sagemaker").sign(path, headers, body)
        assert ours == botocores(credentials, path, headers, body)


def test_the_key_follows_the_day_and_the_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    turn = iter(range(10))

    def refresh() -> dict[str, str]:
        number = next(turn)
        expires = datetime.now(UTC) + timedelta(seconds=1 if number == 0 else 3600)
        return {
            "access_key": f"A{number}",
            "secret_key": f"S{number}",
            "token": f"T{number}",
            "expiry_time": expires.isoformat(),
        }

    credentials = RefreshableCredentials.create_from_metadata(refresh(), refresh, "test")
    signer = Signer(credentials, "eu-west-1", "sagemaker")
    for second in range(3):
        freeze(monkeypatch, NOW + timedelta(seconds=second))  # midnight comes after the first
        for body in (b"", b"x"):
            ours = signer.sign("/p", {"host": "h"}, body)
            assert ours == botocores(credentials, "/p", {"host": "h"}, body)
            assert ours["x-amz-security-token"] == "T1", "the first were about to expire"
    assert ours["x-amz-date"] == "20261103T000001Z"


# --- where the endpoint is, and who asks


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"AWS_DEFAULT_REGION": "cn-north-1"},
        {"AWS_USE_FIPS_ENDPOINT": "true"},
        {"AWS_USE_DUALSTACK_ENDPOINT": "true"},
        {"AWS_ENDPOINT_URL": "https://all.example/base/"},
        {"AWS_ENDPOINT_URL": "https://all.example", "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": "http://mine.example:81"},
        {"AWS_ENDPOINT_URL": "https://all.example", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
        {"AWS_PROFILE": "other"},
    ],
)
def test_the_address_is_boto3s(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "[profile other]\nregion = eu-north-1\nservices = s\n"
        "[services s]\nsagemaker_runtime =\n  endpoint_url = https://profile.example:444\n"
    )
    for name, value in {"AWS_CONFIG_FILE": str(config), **settings}.items():
        monkeypatch.setenv(name, value)
    if "AWS_PROFILE" in settings:
        monkeypatch.delenv("AWS_DEFAULT_REGION")
    asked: list[Any] = []
    theirs = boto3.Session().client("sagemaker-runtime", config=Config(retries={"total_max_attempts": 1}))

    def keep(request: Any, **_: Any) -> None:
        asked.append(request)
        raise InterruptedError

    theirs.meta.events.register("before-send", keep)
    with pytest.raises(InterruptedError):
        whole(theirs)
    ours = SageMakerClient()
    head = ours._request(ours._whole, {"EndpointName": "e", "Body": b"{}"}).decode()
    secure = "https" if ours._pool._context else "http"
    host = head.split("\r\nhost: ")[1].split("\r\n")[0]
    assert f"{secure}://{host}{head.split(' ')[1]}" == asked[0].url
    scope = asked[0].headers["Authorization"].decode().split("/", 2)[2].split(",")[0]
    assert f"/{scope}," in head


def test_no_region_and_no_credentials_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(botocore.exceptions.NoCredentialsError):
        SageMakerClient()
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(botocore.exceptions.NoRegionError):
        SageMakerClient()


def test_a_session_of_the_users_is_asked() -> None:
    session = boto3.Session("mine", "secret", "token", "eu-west-3")
    with ScriptedServer([[answer()]]) as server:
        whole(SageMakerClient(session=session, endpoint_url=server.url))
    headers = server.asked[0].headers
    assert "Credential=mine/" in headers["authorization"]
    assert "/eu-west-3/sagemaker/aws4_request" in headers["authorization"]
    assert headers["x-amz-security-token"] == "token"
