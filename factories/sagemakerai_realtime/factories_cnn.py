"""SageMaker, computer vision: a tensor in NumPy's format to a convolutional network.

Measures latency with large requests: one of these tensors is 602,240 bytes, and SageMaker takes up to 6 MB. For
real-time endpoints of PyTorch, scikit-learn and MXNet containers, which all read application/x-npy. TensorFlow's expect
JSON: replace CONTENT_TYPE and the last lines. Run it with --endpoint-name NAME.
"""

from io import BytesIO

import boto3
import numpy as np
from botocore.config import Config

CONTENT_TYPE = "application/x-npy"  # of what is sent
SHAPE = (1, 3, 224, 224)  # a batch of one picture, channels first; TensorFlow has them last: (1, 224, 224, 3)
PAYLOADS = 20  # different ones


def invoke_factory(endpoint_name):
    if endpoint_name is None:
        raise ValueError("no endpoint was given: name it with --endpoint-name NAME")
    retries_off = {"mode": "standard", "total_max_attempts": 1}  # boto3 would hide failures behind long requests
    # a connection for each request in flight; SageMaker itself gives up after 60 s, and is to be heard
    config = Config(retries=retries_off, max_pool_connections=1000, read_timeout=70)
    client = boto3.client("sagemaker-runtime", config=config)

    def invoke(payload):
        answer = client.invoke_endpoint(EndpointName=endpoint_name, ContentType=CONTENT_TYPE, Body=payload)
        return answer["Body"].read()

    return invoke


def payload_factory():
    random = np.random.default_rng(seed=0)
    tensors = [random.standard_normal(SHAPE, dtype=np.float32) for _ in range(PAYLOADS)]
    return {"pre_computed": True, "input": [to_bytes(tensor) for tensor in tensors]}


def to_bytes(tensor):
    file = BytesIO()
    np.save(file, tensor)
    return file.getvalue()  # as JSON: json.dumps({"instances": tensor.tolist()}).encode(), five times as long
