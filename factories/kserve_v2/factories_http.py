"""Open Inference Protocol (KServe v2) over HTTP: tensors as JSON, or as bytes after it.

Measures the time of a whole answer. Works with Triton (port 8000), MLServer (8080) and KServe's own runtimes; on EKS,
OpenShift AI, EC2. Set the address and the model's input below: URL/v2/models/MODEL describes it.
"""

import json
import os

import numpy

from inference_benchmarker.clients import HttpClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address
MODEL = "demo"  # its name on the server
INPUT = "input"  # the name of the input
DATATYPE = "FP32"  # of it; the tensors are made of 32-bit floats
SHAPE = (1, 128)  # of it
BINARY = False  # True: the binary extension, where the server has it (Triton does), spares both sides much JSON


class NoOutputsError(Exception):
    """The server answered, but not with tensors."""


def invoke_factory(endpoint_name=None):
    url = f"{URL}/v2/models/{MODEL}/infer"  # of a version: /v2/models/MODEL/versions/1/infer
    client = HttpClient(url)
    if BINARY:
        length = {"Inference-Header-Content-Length": str(len(binary_head()))}  # where the JSON ends
        client = HttpClient(url, content_type="application/octet-stream", headers=length)

    def invoke(payload):
        answer = client.post(payload)
        if b'"outputs"' not in answer:
            raise NoOutputsError(f"expected outputs, but got: {answer[:500].decode(errors='replace')}")
        return answer

    return invoke


def payload_factory():
    """Once in each worker process: 100 different tensors, as the bytes to send."""
    numbers = numpy.random.default_rng(0)
    tensors = [numbers.random(SHAPE, numpy.float32) for _ in range(100)]
    return {"pre_computed": True, "input": [binary(tensor) if BINARY else in_json(tensor) for tensor in tensors]}


def in_json(tensor):
    return described(data=tensor.ravel().tolist())


def binary(tensor):
    return binary_head() + tensor.tobytes()


def binary_head():
    size = numpy.zeros(SHAPE, numpy.float32).nbytes
    return described(parameters={"binary_data_size": size})


def described(**content):
    tensor = {"name": INPUT, "datatype": DATATYPE, "shape": SHAPE, **content}
    return json.dumps({"inputs": [tensor]}).encode()
