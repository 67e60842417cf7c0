"""The embedded endpoint as Triton, MLServer and TorchServe answer."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.running import RunningEndpoint, start

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.process

INFER = "/v2/models/m/infer"
TENSOR = {"name": "x", "datatype": "FP32", "shape": [2, 3]}
FLAT = {**TENSOR, "data": [1, 2, 3, 4, 5, 6]}
BINARY = {**TENSOR, "parameters": {"binary_data_size": 24}}


@pytest.fixture(scope="module")
def instant() -> Iterator[RunningEndpoint]:
    """An endpoint whose service takes no time."""
    with start(EndpointConfig(service="none")) as endpoint:
        yield endpoint


def ask(
    endpoint: RunningEndpoint, path: str, body: bytes, headers: Mapping[str, str] | None = None, method: str = "POST"
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
    connection.request(method, path, body, dict(headers or {}))
    response = connection.getresponse()
    fields = json.loads(response.read())
    connection.close()
    return response.status, fields


def infer(
    endpoint: RunningEndpoint, *tensors: Any, binary: bytes | None = None, length: str | None = None, **more: Any
) -> tuple[int, Any]:
    head = json.dumps({"inputs": tensors, **more}).encode()
    headers = {} if binary is None else {"Inference-Header-Content-Length": length or str(len(head))}
    return ask(endpoint, INFER, head + (binary or b""), headers)


OUTPUT = {"name": "output", "datatype": "FP32", "shape": [2, 1], "data": [0.5, 0.5]}


@pytest.mark.parametrize("data", [[1, 2, 3, 4, 5, 6], [[1, 2, 3], [4, 5, 6]]])
def test_each_row_has_an_output(instant: RunningEndpoint, data: list[Any]) -> None:
    answer = {"model_name": "m", "model_version": "1", "id": "7", "outputs": [OUTPUT]}
    assert infer(instant, {**TENSOR, "data": data}, id="7") == (200, answer)


def test_tensors_may_stand_behind_the_json(instant: RunningEndpoint) -> None:
    answer = {"model_name": "m", "model_version": "1", "outputs": [OUTPUT]}
    texts = {"name": "t", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 6}}
    assert infer(instant, BINARY, texts, FLAT, binary=bytes(30)) == (200, answer)


def test_a_version_may_be_named(instant: RunningEndpoint) -> None:
    body = json.dumps({"inputs": [FLAT]}).encode()
    status, reported = ask(instant, "/v2/models/m/versions/3/infer", body)
    assert (status, reported["model_version"]) == (200, "3")
    assert ask(instant, "/v2/health/ready", b"", method="GET") == (200, {"ready": True})


@pytest.mark.parametrize(
    ("tensors", "binary", "length", "reason"),
    [
        ([], None, None, "the body needs inputs"),
        ([{"name": "x"}], None, None, "an input needs name, shape, datatype and data"),
        ([TENSOR], None, None, "an input needs name, shape, datatype and data"),
        (["x"], None, None, "an input needs name, shape, datatype and data"),
        ([{**TENSOR, "data": [1, 2]}], None, None, "input 'x' has 2, but its shape [2, 3] means 6"),
        ([{**BINARY, "datatype": "INT8"}], bytes(24), None, "input 'x' has 24, but its shape [2, 3] means 6"),
        ([BINARY], bytes(23), None, "23 bytes follow the JSON, but its inputs have 24"),
        ([FLAT], bytes(1), None, "1 bytes follow the JSON, but its inputs have 0"),
        ([BINARY], bytes(24), "9999", "Inference-Header-Content-Length is '9999'"),
        ([BINARY], bytes(24), "x", "Inference-Header-Content-Length is 'x'"),
        ([BINARY], bytes(24), "3", "the body is not JSON"),
    ],
)
def test_what_is_no_tensor_is_refused(
    instant: RunningEndpoint, tensors: list[Any], binary: bytes | None, length: str | None, reason: str
) -> None:
    status, reported = infer(instant, *tensors, binary=binary, length=length)
    assert status == 400
    assert reported["error"].startswith(reason)


def test_triton_tells_a_failure_as_error() -> None:
    with start(EndpointConfig(service="none", error_share=1, error_status=503)) as endpoint:
        assert infer(endpoint, FLAT) == (503, {"error": "The model failed, as configured."})


def test_torchserve_predicts(instant: RunningEndpoint) -> None:
    assert ask(instant, "/predictions/m", b"\xff\xd8 an image") == (200, {"demo": 0.5})
    assert instant.arrivals()["route"][-1] == "/predictions/{name}"


@pytest.mark.parametrize(("status", "kind"), [(503, "ServiceUnavailableException"), (507, "InternalServerException")])
def test_torchserve_names_its_exceptions(status: int, kind: str) -> None:
    with start(EndpointConfig(service="none", error_share=1, error_status=status)) as endpoint:
        message = "The model failed, as configured."
        assert ask(endpoint, "/predictions/m", b"x") == (status, {"code": status, "type": kind, "message": message})
