"""Every shipped example sends what it says and reads the answers, judged by what the embedded endpoint saw."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager, suppress
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from inference_benchmarker.embedded.aws.boto3_settings import isolated
from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.engine.endpoint.factories_file import load
from tests.bench import most_in_flight
from tests.scripted_server import ScriptedServer, answer
from tests.shipped import FACTORIES, NAMES, ExampleWave, run_example

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from botocore.config import Config

    from inference_benchmarker.embedded.running import RunningEndpoint

# The route at which an example's requests must arrive; those not named here have a module of tests of their own.
ROUTES = {
    "bedrock/factories_converse": "/model/{id}/converse",
    "bedrock/factories_converse_stream": "/model/{id}/converse-stream",
    "demo/factories_demo": "/invocations",
    "demo/factories_demo_endpoint": "/endpoints/{name}/invocations",
    "http/factories_http": "/invocations",
    "http/factories_http_sigv4": "/invocations",
    "http/factories_http_stream": "/invocations",
    "kserve_v2/factories_generate_stream": "/v2/models/{name}/generate_stream",
    "kserve_v2/factories_http": "/v2/models/{name}/infer",
    "lambda_function/factories_lambda_function": "/2015-03-31/functions/{name}/invocations",
    "openai_compatible/factories_by_url": "/v1/chat/completions",
    "openai_compatible/factories_chat": "/v1/chat/completions",
    "openai_compatible/factories_chat_stream": "/v1/chat/completions",
    "openai_compatible/factories_chat_stream_openai_package": "/v1/chat/completions",
    "openai_compatible/factories_completions_stream": "/v1/completions",
    "openai_compatible/factories_embeddings": "/v1/embeddings",
    "openai_compatible/factories_rerank": "/v1/rerank",
    "openai_compatible/factories_responses_stream": "/v1/responses",
    "payload_sources/factories_generated_prompts": "/v1/chat/completions",
    "payload_sources/factories_jsonl": "/v1/chat/completions",
    "payload_sources/factories_trace": "/v1/chat/completions",
    "sagemakerai_inference_component/factories_component_with_endpoint": "/endpoints/{name}/invocations",
    "sagemakerai_inference_component/factories_inference_component": "/endpoints/{name}/invocations",
    "sagemakerai_multimodel/factories_even": "/endpoints/{name}/invocations",
    "sagemakerai_multimodel/factories_few_popular_models": "/endpoints/{name}/invocations",
    "sagemakerai_multimodel/factories_one_hot_model": "/endpoints/{name}/invocations",
    "sagemakerai_multimodel/factories_warm_up": "/endpoints/{name}/invocations",
    "sagemakerai_realtime/factories_cnn": "/endpoints/{name}/invocations",
    "sagemakerai_realtime/factories_ic": "/endpoints/{name}/invocations",
    "sagemakerai_realtime/factories_llm_chat": "/endpoints/{name}/invocations",
    "sagemakerai_realtime/factories_llm_chat_stream": "/endpoints/{name}/invocations-response-stream",
    "sagemakerai_realtime/factories_llm_textgeneration": "/endpoints/{name}/invocations",
    "sagemakerai_realtime/factories_llm_textgeneration_stream": "/endpoints/{name}/invocations-response-stream",
    "sagemakerai_realtime/factories_tabular": "/endpoints/{name}/invocations",
    "sagemakerai_realtime/factories_tabular_fast": "/endpoints/{name}/invocations",
    "sagemakerai_realtime/factories_text_classification": "/endpoints/{name}/invocations",
    "sagemakerai_realtime/factories_with_endpoint": "/endpoints/{name}/invocations",
    "sagemakerai_serverless/factories_serverless_with_endpoint": "/endpoints/{name}/invocations",
    "torchserve/factories_torchserve": "/predictions/{name}",
}
ELSEWHERE = {
    "kserve_v2/factories_grpc",
    "kserve_v2/factories_grpc_stream",
    "local_server/factories_local_engine",
    "local_server/factories_local_server",
}
# Each sends as another one does, so a wave of it is slow; its requests are looked at one by one below.
ALIKE = {
    "demo/factories_demo_endpoint",
    "http/factories_http_stream",
    "kserve_v2/factories_generate_stream",
    "openai_compatible/factories_by_url",
    "openai_compatible/factories_chat",
    "openai_compatible/factories_embeddings",
    "openai_compatible/factories_rerank",
    "openai_compatible/factories_responses_stream",
    "payload_sources/factories_generated_prompts",
    "payload_sources/factories_trace",
    "sagemakerai_inference_component/factories_component_with_endpoint",
    "sagemakerai_multimodel/factories_even",
    "sagemakerai_multimodel/factories_one_hot_model",
    "sagemakerai_multimodel/factories_warm_up",
    "sagemakerai_realtime/factories_cnn",
    "sagemakerai_realtime/factories_ic",
    "sagemakerai_realtime/factories_llm_chat",
    "sagemakerai_realtime/factories_tabular",
    "sagemakerai_realtime/factories_text_classification",
    "sagemakerai_realtime/factories_with_endpoint",
    "sagemakerai_serverless/factories_serverless_with_endpoint",
}
CONNECTS_ANEW = {"openai_compatible/factories_chat_stream_openai_package"}  # the package does, whatever is done here
# What the server may count in a request of an example, and in each answer.
TOKENS: dict[str, tuple[set[int], int | None]] = {
    "bedrock/factories_converse": ({5, 6, 7, 8}, 64),
    "bedrock/factories_converse_stream": ({5, 6, 7, 8}, 64),
    "openai_compatible/factories_by_url": ({200}, 128),
    "openai_compatible/factories_chat": ({201}, 128),
    "openai_compatible/factories_chat_stream": ({201}, 128),
    "openai_compatible/factories_chat_stream_openai_package": ({201}, 128),
    "openai_compatible/factories_completions_stream": ({128, 512, 2048}, 64),
    "openai_compatible/factories_embeddings": ({404}, None),
    "openai_compatible/factories_rerank": ({8 * (11 + 101)}, None),
    "openai_compatible/factories_responses_stream": ({201}, 128),
    "sagemakerai_realtime/factories_llm_chat": ({6}, 64),
    "sagemakerai_realtime/factories_llm_chat_stream": ({6}, 64),
    "sagemakerai_realtime/factories_llm_textgeneration": (set(), 64),
    "sagemakerai_realtime/factories_llm_textgeneration_stream": (set(), 64),
}
STREAMS = {"openai_compatible/factories_by_url"}  # beside those whose names say so
LABELS = {
    "openai_compatible/factories_completions_stream": {"128 tokens", "512 tokens", "2048 tokens"},
    "sagemakerai_multimodel/factories_few_popular_models": {"ten most popular", "next ninety", "all others"},
}
# Without which a container would refuse a request, or take it for another.
FIRST_MODEL = {"content-type": "text/csv", "x-amzn-sagemaker-target-model": "model-0000.tar.gz"}
HEADERS = {
    "sagemakerai_inference_component/factories_inference_component": {
        "content-type": "application/json",
        "x-amzn-sagemaker-inference-component": "my-component",
    },
    "sagemakerai_multimodel/factories_even": FIRST_MODEL,
    "sagemakerai_multimodel/factories_few_popular_models": FIRST_MODEL,
    "sagemakerai_multimodel/factories_one_hot_model": FIRST_MODEL,
    "sagemakerai_multimodel/factories_warm_up": FIRST_MODEL,
    "sagemakerai_realtime/factories_cnn": {"content-type": "application/x-npy"},
    "sagemakerai_realtime/factories_ic": {"content-type": "application/x-image"},
    "sagemakerai_realtime/factories_llm_chat": {"content-type": "application/json"},
    "sagemakerai_realtime/factories_llm_chat_stream": {"content-type": "application/json"},
    "sagemakerai_realtime/factories_llm_textgeneration": {"content-type": "application/json"},
    "sagemakerai_realtime/factories_tabular": {"content-type": "text/csv"},
    "sagemakerai_realtime/factories_tabular_fast": {"content-type": "text/csv"},
    "sagemakerai_realtime/factories_text_classification": {"content-type": "application/json"},
    "torchserve/factories_torchserve": {"content-type": "image/jpeg"},
}

# The variable that these read beside BENCHMARK_API_KEY.
BEARERS = {
    "http/factories_http": "ENDPOINT_TOKEN",
    "http/factories_http_stream": "ENDPOINT_TOKEN",
    "torchserve/factories_torchserve": "TORCHSERVE_TOKEN",
    **{name: "OPENAI_API_KEY" for name in ROUTES if name.startswith(("openai_compatible/", "payload_sources/"))},
}
SECRETS = {"BENCHMARK_API_KEY", "ENDPOINT_USER", *BEARERS.values()}


def test_no_example_is_forgotten() -> None:
    assert set(NAMES) == set(ROUTES) | ELSEWHERE


@pytest.fixture(scope="module")
def serving() -> Iterator[RunningEndpoint]:
    """One endpoint for all examples."""
    with start(EndpointConfig(service_s=0.001)) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def failing() -> Iterator[RunningEndpoint]:
    """One that answers 503 to whatever it is asked."""
    with start(EndpointConfig(error_share=1, error_status=503)) as endpoint:
        yield endpoint


@contextmanager
def arrived(endpoint: RunningEndpoint, column: str) -> Iterator[list[Any]]:
    """A column of the log of what arrives within the block; filled at its end."""
    endpoint.clear()
    found: list[Any] = []
    yield found
    found += endpoint.arrivals()[column]


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ALIKE)) for name in ROUTES])
def test_an_example_works_against_the_embedded_endpoint(name: str, tmp_path: Path, serving: RunningEndpoint) -> None:
    with arrived(serving, "route") as routes:
        wave = run_example(name, serving.url, tmp_path)
    assert wave.counts == (20, 0), wave.summary["errors"]
    assert routes == [ROUTES[name]] * 20
    if name in TOKENS:
        check_that_its_tokens_are_those_that_the_server_counted(name, wave)
    if name in LABELS:
        assert {row["label"] for row in wave.summary["labels"]} <= LABELS[name]


def check_that_its_tokens_are_those_that_the_server_counted(name: str, wave: ExampleWave) -> None:
    lengths, answered = TOKENS[name]
    tokens, ttft, itl = (wave.summary[part] for part in ("tokens", "ttft", "itl"))
    assert tokens["counted"] == ("usage" if answered else None)
    if lengths:
        assert {tokens["tokens_in_per_request"][bound] for bound in ("min", "max")} <= lengths
    assert tokens["tokens_out"] == (None if answered is None else 20 * answered)
    if "_stream" in name or name in STREAMS:
        assert answered is not None
        assert (ttft["count"], itl["count"]) == (20, 20 * (answered - 1))
    else:
        assert (ttft, itl) == (None, None)


def ask(name: str, url: str, patch: pytest.MonkeyPatch, times: int = 1) -> None:
    """Send the first requests of an example to ``url``, one after the other, and read their answers."""
    for variable, value in isolated({"BENCHMARK_DEMO_URL": url}, url).items():
        patch.setenv(variable, value)
    example = load(FACTORIES / f"{name}.py", "demo")
    for index in range(times):
        payload = example.build() if example.build else (example.payloads or [])[index]
        answered = example.invoke(payload)
        if isinstance(answered, GeneratorType):
            deque(answered, maxlen=0)


@pytest.mark.parametrize("name", sorted(set(ROUTES) - CONNECTS_ANEW))
def test_an_example_uses_its_connection_again(
    name: str, monkeypatch: pytest.MonkeyPatch, serving: RunningEndpoint
) -> None:
    """An answer that is not read to its end costs it, and the next latency has the making of another in it."""
    with arrived(serving, "connection") as connections:
        ask(name, serving.url, monkeypatch, times=3)
    assert connections == connections[:1] * 3


@pytest.mark.parametrize("name", ROUTES)
def test_an_example_fails_what_failed_and_does_not_repeat_it(
    name: str, monkeypatch: pytest.MonkeyPatch, failing: RunningEndpoint
) -> None:
    with arrived(failing, "route") as routes, pytest.raises(Exception, match=r"configured|Rate Exceeded"):
        ask(name, failing.url, monkeypatch)
    assert routes == [ROUTES[name]]


@pytest.mark.parametrize("name", [name for name in ROUTES if "max_pool_conn" in (FACTORIES / f"{name}.py").read_text()])
def test_boto3_keeps_connections_and_patience(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    configs: list[Config] = []
    monkeypatch.setattr(boto3, "client", lambda _, config: configs.append(config))
    load(FACTORIES / f"{name}.py", "demo")
    (config,) = configs
    assert config.max_pool_connections == 1000
    assert config.read_timeout > 60  # SageMaker's own limit, whose error is to be seen


@pytest.mark.parametrize("name", HEADERS)
def test_a_container_is_reported_what_it_gets(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer([[answer(b"{}")]]) as server, suppress(Exception):
        ask(name, server.url, monkeypatch)
    (asked,) = server.asked
    assert {header: asked.headers.get(header) for header in HEADERS[name]} == HEADERS[name]


def authorization(name: str, environment: dict[str, str], patch: pytest.MonkeyPatch) -> str | None:
    """What reaches the server of an example's secrets; what it makes of the answer is not looked at."""
    for variable in SECRETS:
        patch.delenv(variable, raising=False)
    for variable, value in environment.items():
        patch.setenv(variable, value)
    with ScriptedServer([[answer(b"{}")]]) as server, suppress(Exception):
        ask(name, server.url, patch)
    (asked,) = server.asked
    return asked.headers.get("authorization")


@pytest.mark.parametrize("name", BEARERS)
def test_a_key_arrives_as_bearer_token(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {BEARERS[name]: "own"}
    assert authorization(name, {"BENCHMARK_API_KEY": "key"}, monkeypatch) == "Bearer key"
    assert authorization(name, own, monkeypatch) == "Bearer own"
    both = authorization(name, {"BENCHMARK_API_KEY": "key", **own}, monkeypatch)
    assert both == ("Bearer key" if BEARERS[name] == "OPENAI_API_KEY" else "Bearer own")


@pytest.mark.parametrize("name", BEARERS)
def test_without_a_key_nothing_secret_is_sent(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    placeholder = "Bearer none" if name in CONNECTS_ANEW else None  # the package wants something to send
    assert authorization(name, {}, monkeypatch) == placeholder


def test_requests_of_the_openai_package_overlap(tmp_path: Path) -> None:
    with start(EndpointConfig(servers=20, service_s=1.0)) as endpoint:
        wave = run_example("openai_compatible/factories_chat_stream_openai_package", endpoint.url, tmp_path)
        log = endpoint.arrivals()
    assert wave.counts == (20, 0), wave.summary["errors"]
    assert most_in_flight(log) > 2
