"""The embedded endpoint's streams and OpenAI's other protocols, read by unmodified boto3 and openai."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import openai
import pytest
from botocore.exceptions import ClientError, EventStreamError

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.running import RunningEndpoint, start
from inference_benchmarker.errors import BenchmarkError
from tests.boto3_runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

MS = 1_000_000
pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def instant() -> Iterator[RunningEndpoint]:
    """An endpoint whose service takes no time."""
    with start(EndpointConfig(service="none", tokens=4)) as endpoint:
        yield endpoint


def events(endpoint: RunningEndpoint) -> Any:
    answer = runtime(endpoint).invoke_endpoint_with_response_stream(EndpointName="e", Body=b"{}")
    assert (answer["ContentType"], answer["InvokedProductionVariant"]) == ("text/plain", "AllTraffic")
    return answer["Body"]


def of(endpoint: RunningEndpoint) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{endpoint.url}/v1", api_key="none", max_retries=0)


def test_sagemakers_stream_has_a_token_a_part_when_it_is_due() -> None:
    with start(EndpointConfig(service_s=0.2, tokens=4)) as endpoint:
        seen = [(time.monotonic_ns(), event["PayloadPart"]["Bytes"]) for event in events(endpoint)]
        log = endpoint.arrivals()
    assert [part for _, part in seen] == [b"0", b" 1", b" 2", b" 3"]
    due = [log["start_ns"][0] + 50 * MS * (number + 1) for number in range(4)]
    assert all(at >= earliest for (at, _), earliest in zip(seen, due, strict=True))
    assert log["route"] == ["/endpoints/{name}/invocations-response-stream"]


def test_a_stream_that_breaks_says_so_in_the_middle() -> None:
    with start(EndpointConfig(service="none", tokens=4, break_share=1)) as endpoint:
        parts = iter(events(endpoint))
        assert [next(parts)["PayloadPart"]["Bytes"] for _ in range(2)] == [b"0", b" 1"]
        with pytest.raises(EventStreamError, match=r"ModelStreamError.*as configured"):
            next(parts)
        chunks = of(endpoint).completions.create(model="m", prompt="a", stream=True)
        assert [next(chunks).choices[0].text for _ in range(2)] == ["0", " 1"]
        with pytest.raises(openai.APIError, match="as configured"):
            next(chunks)
        assert endpoint.arrivals()["status"] == [200, 200]


def test_what_is_no_stream_breaks_as_an_error() -> None:
    with start(EndpointConfig(service="none", break_share=1)) as endpoint:
        with pytest.raises(ClientError, match="InternalFailure"):
            runtime(endpoint).invoke_endpoint(EndpointName="e", Body=b"{}")
        assert endpoint.arrivals()["status"] == [500]


def test_text_completions_whole_and_as_a_stream(instant: RunningEndpoint) -> None:
    client = of(instant)
    whole = client.completions.create(model="m", prompt=["a b", "c"], max_tokens=3)
    assert (whole.object, whole.choices[0].text, whole.choices[0].finish_reason) == (
        "text_completion",
        "0 1 2",
        "length",
    )
    assert whole.usage
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (3, 3)
    options: Any = {"include_usage": True}
    *chunks, last = client.completions.create(model="m", prompt="a", stream=True, stream_options=options)
    assert [chunk.choices[0].text for chunk in chunks] == ["0", " 1", " 2", " 3", ""]
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert last.usage
    assert last.usage.total_tokens == 5


def test_a_prompt_in_token_ids_is_as_long(instant: RunningEndpoint) -> None:
    whole = of(instant).completions.create(model="m", prompt=[5, 6, 7, 8], max_tokens=2)
    assert whole.usage
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (4, 2)


@pytest.mark.parametrize("wrong", [{}, {"prompt": []}, {"prompt": [True]}, {"prompt": ["a", 1]}])
def test_a_completion_of_no_prompt_is_refused(instant: RunningEndpoint, wrong: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError, match="the body needs prompt"):
        of(instant).post("/completions", body=wrong, cast_to=object)


def test_embeddings_have_a_vector_an_input(instant: RunningEndpoint) -> None:
    found = of(instant).embeddings.create(model="m", input=["one two", "three"], encoding_format="float")
    assert [item.index for item in found.data] == [0, 1]
    assert len(found.data[0].embedding) == len(found.data[1].embedding)
    assert found.usage.prompt_tokens == 3


@pytest.mark.parametrize("wrong", [{}, {"input": []}, {"input": [1]}, {"input": 1}])
def test_embeddings_of_no_text_are_refused(instant: RunningEndpoint, wrong: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError, match="the body needs input"):
        of(instant).post("/embeddings", body=wrong, cast_to=object)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [({"break_share": 2}, "break_share is 2"), ({"break_share": 0.6, "error_share": 0.6}, "1.2")],
)
def test_the_share_that_breaks_is_a_share(shares: dict[str, Any], expected: str) -> None:
    with pytest.raises(BenchmarkError, match=expected):
        EndpointConfig(**shares)
