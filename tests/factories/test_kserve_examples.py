"""The examples for the Open Inference Protocol in real waves, judged by what the servers saw."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench import most_in_flight
from tests.conftest import ROOT
from tests.grpc_server import ANSWER, GrpcServer, fields, varint
from tests.shipped import FACTORIES

if TYPE_CHECKING:
    from tests.bench import Bench, Finished

pytestmark = pytest.mark.process

EXAMPLE = (FACTORIES / "kserve_v2/factories_grpc.py").read_text()
STREAM = (FACTORIES / "kserve_v2/factories_grpc_stream.py").read_text()
HTTP = (FACTORIES / "kserve_v2/factories_http.py").read_text()


def run(bench: Bench, server: GrpcServer, *flags: object, example: str = EXAMPLE) -> Finished:
    """A wave of the example, as a user's copy of it."""
    return bench.run(*flags, factories=example, environment={"GRPC_ADDRESS": server.address})


def test_every_request_arrives_as_the_protocol_wants_it(bench: Bench) -> None:
    with GrpcServer(service_s=0.3) as server:
        wave = run(bench, server, "--client-rps", 50, "--num-requests", 60)
    assert wave.ledger["ok"] == 60
    assert {row["bytes"] for row in wave.rows} == {len(ANSWER)}
    requests = server.seen["request"]
    assert len(requests) == 60
    assert {len(request["inputs"]) for request in requests} == {1}
    contents = [bytes.fromhex(request["inputs"][0].pop("content")) for request in requests]
    assert {len(content) for content in contents} == {4 * 128}
    assert len(set(contents)) == 60
    tensor = {"input": "input", "datatype": "FP32", "shape": [1, 128], "unknown": []}
    assert requests == [{"model": "demo", "inputs": [tensor], "unknown": []}] * 60
    assert most_in_flight(server.seen) > 5


@pytest.mark.parametrize("channels", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_slow_answers_hold_up_no_others(bench: Bench, channels: int) -> None:
    example = EXAMPLE.replace("CHANNELS = 1\n", f"CHANNELS = {channels}\n")
    with GrpcServer(held=20, until=80) as server:
        load = ("--concurrency", 25, "--num-requests", 100, "--workers", 1, "--request-timeout", 30)
        wave = run(bench, server, *load, example=example)
    assert wave.errors() == {}
    assert wave.ledger["ok"] == 100
    assert Counter(server.seen["outcome"]) == {"ok": 100}


@pytest.mark.parametrize("refusal", ["UNAVAILABLE", pytest.param("RESOURCE_EXHAUSTED", marks=pytest.mark.slow)])
def test_an_error_is_counted_by_its_status_and_not_repeated(bench: Bench, refusal: str) -> None:
    with GrpcServer(refuse_every=3, refusal=refusal) as server:
        wave = run(bench, server, "--client-rps", 50, "--num-requests", 30)
    assert wave.errors() == {f"RpcError {refusal}": 10}
    assert Counter(server.seen["outcome"]) == {"ok": 20, refusal: 10}
    (reported,) = wave.summary["errors"]
    assert "refused, as the test wants it" in reported["texts"][0]


@pytest.mark.slow
def test_where_nobody_listens_every_request_fails(bench: Bench) -> None:
    with GrpcServer() as server:
        pass
    wave = run(bench, server, "--client-rps", 50, "--num-requests", 20)
    assert wave.errors() == {"RpcError UNAVAILABLE": 20}


def test_a_request_that_is_given_up_is_cancelled(bench: Bench) -> None:
    with GrpcServer(held=5, until=1000) as server:
        wave = run(bench, server, "--client-rps", 50, "--num-requests", 15, "--request-timeout", 1)
    assert wave.errors() == {"RequestTimeout": 5}
    assert Counter(server.seen["outcome"]) == {"cancelled": 5, "ok": 10}


@pytest.mark.slow
def test_requests_that_are_never_answered_keep_no_worker(bench: Bench) -> None:
    with GrpcServer(held=10, until=1000) as server:
        wave = run(bench, server, "--client-rps", 50, "--num-requests", 10, "--drain-timeout", 1)
    assert wave.ledger["abandoned"] == 10
    assert not wave.summary["lost_workers"]


def test_what_to_install_is_said(bench: Bench) -> None:
    folder = bench.folder()
    (folder / "hidden").mkdir()
    (folder / "hidden/grpc.py").write_text("raise ModuleNotFoundError(\"No module named 'grpc'\", name='grpc')")
    path = {"PYTHONPATH": f"{folder}/hidden:{ROOT}"}
    refused = bench.run("--client-rps", 5, "--obs-time", 1, factories=EXAMPLE, environment=path, folder=folder)
    assert refused.code == 2
    assert "No module named 'grpc'. Unless grpc is a file of yours, install it: " in refused.err
    assert "-m pip install grpcio protobuf" in refused.err


def test_streams_over_grpc_overlap_and_each_piece_is_timed(bench: Bench) -> None:
    with GrpcServer(held=20, until=60, service_s=0.01, refuse_every=4) as server:
        load = ("--concurrency", 25, "--num-requests", 80, "--workers", 1, "--request-timeout", 30)
        wave = run(bench, server, *load, example=STREAM)
    assert wave.errors() == {"StreamError": 20}
    (reported,) = wave.summary["errors"]
    assert "refused, as the test wants it" in reported["texts"][0]
    assert Counter(server.seen["outcome"]) == {"ok": 60, "UNAVAILABLE": 20}
    ttft, itl, tokens = (wave.summary[part] for part in ("ttft", "itl", "tokens"))
    assert (ttft["count"], itl["count"], tokens["tokens_out"], tokens["counted"]) == (60, 180, 240, "pieces")
    prompts = [check_that_it_is_what_tritons_vllm_takes(request) for request in server.seen["request"]]
    assert len(set(prompts)) == 80


def check_that_it_is_what_tritons_vllm_takes(request: dict[str, Any]) -> str:
    """Its prompt."""
    inputs = {each["input"]: bytes.fromhex(each.pop("content")) for each in request["inputs"]}
    kinds = {each.pop("input"): each for each in request["inputs"]}
    one = {"shape": [1], "unknown": []}
    assert (request["model"], request["unknown"]) == ("demo", [])
    text, truth = {**one, "datatype": "BYTES"}, {**one, "datatype": "BOOL"}
    assert kinds == {"text_input": text, "stream": truth, "sampling_parameters": text}
    assert json.loads(inputs["sampling_parameters"][4:])["max_tokens"] == "64"
    prompt = inputs["text_input"]
    assert int.from_bytes(prompt[:4], "little") == len(prompt) - 4
    return prompt[4:].decode()


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [4, 0])
def test_streams_of_mlserver_come_without_an_envelope(bench: Bench, pieces: int) -> None:
    example = STREAM.replace("TRITON = True", "TRITON = False")
    with GrpcServer(enveloped=False, refuse_every=3, refusal="RESOURCE_EXHAUSTED", pieces=pieces) as server:
        wave = run(bench, server, "--client-rps", 50, "--num-requests", 30, example=example)
    if pieces:
        assert wave.errors() == {"RpcError RESOURCE_EXHAUSTED": 10}
        assert wave.summary["tokens"]["tokens_out"] == 80
    else:
        assert wave.errors() == {"StreamError": 30}
    assert len(server.seen["request"]) == 30


@pytest.mark.slow
@pytest.mark.parametrize("triton", [True, False])
def test_a_stream_of_the_other_server_has_failed(bench: Bench, triton: bool) -> None:
    example = STREAM.replace("TRITON = True", f"TRITON = {triton}")
    with GrpcServer(enveloped=not triton) as server:
        wave = run(bench, server, "--client-rps", 50, "--num-requests", 10, example=example)
    assert wave.ledger["failed"] == 10
    (reported,) = wave.summary["errors"]
    assert "TRITON" in reported["texts"][0]


def test_over_http_tensors_may_be_bytes(bench: Bench) -> None:
    assert "\nBINARY = False" in HTTP, "as every wave of the example is sent otherwise"
    example = HTTP.replace("\nBINARY = False", "\nBINARY = True")
    with bench.endpoint() as endpoint:
        flags = ("--client-rps", 50, "--num-requests", 25)
        wave = bench.run(*flags, factories=example, environment={"BENCHMARK_DEMO_URL": endpoint.url})
        assert endpoint.arrivals()["route"] == ["/v2/models/{name}/infer"] * 25
    assert wave.ledger["ok"] == 25, wave.summary["errors"]


@pytest.mark.parametrize(
    ("message", "known"),
    [(b"", {}), (b"\x08\x96\x01", {1: [150]}), (b"\x12\x02hi\x12\x00\x18\x05", {2: [b"hi", b""], 3: [5]})],
)
def test_the_server_reads_messages(message: bytes, known: dict[int, list[Any]]) -> None:
    assert fields(message) == known
    assert varint(b"\x7f\x01") == (127, b"\x01")
