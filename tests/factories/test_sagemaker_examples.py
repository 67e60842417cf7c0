"""The examples for SageMaker in more depth: what they send, and how they read an LLM's answers."""

from __future__ import annotations

import json
from collections import Counter
from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from inference_benchmarker import Response
from inference_benchmarker.embedded.aws.boto3_settings import isolated
from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.engine.endpoint.factories_file import Endpoint, load
from inference_benchmarker.errors import BenchmarkError
from tests.shipped import FACTORIES, NAMES, run_example

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ARRIVALS = 20_000
STREAM = "sagemakerai_realtime/factories_llm_textgeneration_stream"
WHOLE = "sagemakerai_realtime/factories_llm_textgeneration"
MULTI_MODEL = "sagemakerai_multimodel/factories_"
LMI = (
    b'{"token": {"id": 7, "text": "Deep", "log_prob": -0.1}}\n'
    b'{"token": {"id": 9, "text": " \\u00e9", "log_prob": -0.2}, "generated_text": "Deep \\u00e9", '
    b'"details": {"finish_reason": "length", "generated_tokens": 2, "inputs": "a"}}\n'
)
TGI = (
    b'data:{"index":1,"token":{"id":7,"text":"Deep","logprob":-0.1,"special":false},"generated_text":null,"details":null}'
    b"\n\n: still here\n\n"
    b'data:{"index":2,"token":{"id":9,"text":" \xc3\xa9","logprob":-0.2,"special":false},'
    b'"generated_text":"Deep \xc3\xa9","details":{"finish_reason":"length","generated_tokens":2,"input_length":5}}\n\n'
)


@pytest.fixture(autouse=True)
def _isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in isolated({}, "http://127.0.0.1:9").items():
        monkeypatch.setenv(name, value)


def example(name: str) -> Endpoint:
    return load(FACTORIES / f"{name}.py", "demo")


def given(monkeypatch: pytest.MonkeyPatch, name: str, call: str, body: object) -> Any:
    """What an example's ``invoke`` makes of an answer."""
    client = SimpleNamespace(**{call: lambda **_: {"Body": body}})
    monkeypatch.setattr(boto3, "client", lambda *_, **__: client)
    return example(name).invoke(b"{}")


def read(monkeypatch: pytest.MonkeyPatch, *parts: bytes) -> Iterator[Any]:
    """What the streaming example makes of an answer."""
    body = [{"PayloadPart": {"Bytes": part}} for part in parts]
    pieces: Iterator[Any] = given(monkeypatch, STREAM, "invoke_endpoint_with_response_stream", body)
    return pieces


@pytest.mark.parametrize(("stream", "tokens_in"), [(LMI, None), (TGI, 5)], ids=["lmi", "tgi"])
def test_a_stream_is_read_however_its_parts_cut_it(
    monkeypatch: pytest.MonkeyPatch, stream: bytes, tokens_in: int | None
) -> None:
    lines = ["Deep", " é", Response(tokens_in=tokens_in, tokens_out=2, finish_reason="length")]
    assert [*read(monkeypatch, stream)] == lines
    assert [*read(monkeypatch, stream.rstrip(b"\n"))] == lines
    assert [*read(monkeypatch, *(bytes([byte]) for byte in stream))] == lines
    assert [*read(monkeypatch, stream.replace(b"\n", b"\r\n"), b"data: [DONE]\n\n")] == lines
    for cut in range(len(stream)):
        assert [*read(monkeypatch, stream[:cut], b"", stream[cut:])] == lines


@pytest.mark.parametrize(
    "end",
    [
        b"",
        b'{"error": "out of memory", "code": 424}\n',
        b'data:{"error":"Request failed during generation","error_type":"generation"}\n\n',
        b'{"token": {"id": -1, "text": ""}, "generated_text": "", "details": {"finish_reason": "error"}}\n',
        b'{"token": {"id": -1, "text": ""}, "generated_text": "", "details": {"finish_reason": "abort"}}\n',
        b'{"token": {"id"',
    ],
    ids=["cut off", "lmi", "tgi", "lmi in its details", "given up", "cut within a line"],
)
def test_a_stream_that_fails_after_its_first_token_is_a_failed_request(
    monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    pieces = read(monkeypatch, b'{"token": {"id": 7, "text": "Deep"}}\n', end)
    assert next(pieces) == "Deep"
    with pytest.raises(Exception, match=r"error|abort|ended after 1 tokens|expected a token, but got"):
        list(pieces)


def test_streams_that_the_model_breaks_are_counted_under_its_error(tmp_path: Path) -> None:
    with start(EndpointConfig(break_share=1)) as endpoint:
        wave = run_example(STREAM, endpoint.url, tmp_path)
    assert wave.counts == (0, 20)
    assert [row["key"] for row in wave.summary["errors"]] == ["EventStreamError ModelStreamError"]


def test_an_answer_in_one_piece_tells_its_tokens_where_it_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    detailed = b'{"generated_text": "a", "details": {"finish_reason": "length", "generated_tokens": 3}}'
    for body, tokens in ((detailed, 3), (b"[" + detailed + b"]", 3), (b'[{"generated_text": "a"}]', None)):
        assert given(monkeypatch, WHOLE, "invoke_endpoint", BytesIO(body)) == Response(
            tokens_out=tokens, bytes=len(body), finish_reason="length" if tokens else None
        )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"error": "out of memory"}', "out of memory"),
        (b'{"generated_text": "a", "details": {"finish_reason": "error"}}', "finish_reason 'error'"),
        (b'{"generated_text": "a", "details": {"finish_reason": "abort"}}', "finish_reason 'abort'"),
        (b'{"generated_text": ""}', "the text is empty"),
        (b"", "expected a generated text, but got: $"),
        (b"[]", r"got: \[\]"),
        (b"{}", "got: {}"),
        (b'{"choices": [{"message": {"content": "a"}}]}', "got: .*message"),
        (b'{"predictions": [0.5]}', "predictions"),
    ],
)
def test_an_answer_without_a_generated_text_has_failed(
    body: bytes, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Exception, match=expected):
        given(monkeypatch, WHOLE, "invoke_endpoint", BytesIO(body))


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (b"", "ended after 0 tokens, without its last line"),
        (b"data: [DONE]\n\n", "ended after 0 tokens"),
        (b'{"token": {"text": ""}, "generated_text": ""}\n', "no token in it"),
        (b'{"generated_text": "a"}\n', "expected a token, but got: .*generated_text"),
        (b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n', "got: .*delta"),
        (b"0 1 2", "got: 0 1 2"),
    ],
)
def test_a_stream_without_a_token_has_failed(part: bytes, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Exception, match=expected):
        list(read(monkeypatch, part))


def drawn(name: str) -> Counter[str]:
    """How many of the arrivals each label gets."""
    endpoint = example(f"{MULTI_MODEL}{name}")
    assert endpoint.payloads is not None
    assert endpoint.label is not None
    return Counter(endpoint.label(endpoint.payloads[endpoint.choose(1, index)]) for index in range(ARRIVALS))


def test_the_patterns_of_a_multi_model_endpoint_have_the_shares_they_tell() -> None:
    assert drawn("one_hot_model")["hot model"] / ARRIVALS == pytest.approx(0.9, abs=0.01)
    popular = drawn("few_popular_models")
    assert popular["ten most popular"] / ARRIVALS == pytest.approx(0.39, abs=0.02)
    assert popular["next ninety"] / ARRIVALS == pytest.approx(0.69 - 0.39, abs=0.02)
    assert popular["all others"] / ARRIVALS == pytest.approx(0.31, abs=0.02)


def test_even_traffic_is_random_and_the_warm_up_is_not() -> None:
    models = [f"model-{number:04}.tar.gz" for number in range(1000)]
    warm_up, even = example(f"{MULTI_MODEL}warm_up"), example(f"{MULTI_MODEL}even")
    assert warm_up.payloads is not None
    assert even.payloads is not None
    assert [warm_up.payloads[warm_up.choose(1, index)]["TargetModel"] for index in range(1000)] == models
    first = [even.payloads[even.choose(1, index)]["TargetModel"] for index in range(1000)]
    assert first != models
    assert 500 < len(set(first)) < 750  # of 1,000 draws from 1,000 models, 632 different ones are to be expected


def test_inference_components_share_the_requests_and_have_a_row_each(tmp_path: Path) -> None:
    named = {"INFERENCE_COMPONENTS": "first,second"}
    with start(EndpointConfig()) as endpoint:
        wave = run_example(
            "sagemakerai_inference_component/factories_inference_component", endpoint.url, tmp_path, environment=named
        )
    assert wave.counts == (20, 0), wave.summary["errors"]
    assert {row["label"] for row in wave.summary["labels"]} == {"first", "second"}


def test_pictures_are_generated_or_a_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = "sagemakerai_realtime/factories_ic"
    generated = example(name).payloads
    assert generated is not None
    assert len(set(generated)) == 20
    assert all(picture.startswith(b"\xff\xd8\xff") for picture in generated)
    monkeypatch.setenv("IMAGE_FOLDER", str(tmp_path))
    with pytest.raises(BenchmarkError, match="has no files"):
        example(name)
    for file, content in ((".hidden", b"no"), ("b.png", b"2"), ("a.jpg", b"1")):
        (tmp_path / file).write_bytes(content)
    assert example(name).payloads == [b"1", b"2"]


def test_a_row_of_csv_is_the_same_for_both_clients() -> None:
    slow, fast = (example(f"sagemakerai_realtime/factories_tabular{kind}") for kind in ("", "_fast"))
    assert slow.payloads == fast.payloads
    assert slow.payloads is not None
    assert len(slow.payloads[0].split(b",")) == 50


def test_texts_are_labelled_by_their_length() -> None:
    texts = example("sagemakerai_realtime/factories_text_classification")
    assert texts.payloads is not None
    assert texts.label is not None
    words = {texts.label(payload): len(json.loads(payload)["inputs"].split()) for payload in texts.payloads}
    assert words == {"short": 10, "medium": 60, "long": 300}


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("sagemakerai_")])
def test_an_endpoint_that_is_not_named_is_said_before_any_request(name: str) -> None:
    with pytest.raises(BenchmarkError, match="--endpoint-name NAME"):
        load(FACTORIES / f"{name}.py")
