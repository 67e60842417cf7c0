"""SageMaker, tabular data (boto3): CSV rows to XGBoost, as in real-time bidding.

Measures latency under a tight limit: run it with --slo 'p99<20ms', the time a bidder has. For real-time endpoints of
XGBoost, LightGBM, CatBoost, Linear Learner and others that take text/csv. If the client's CPU is the limit,
factories_tabular_fast.py sends the same with less CPU. Run it with --endpoint-name NAME.
"""

import random

import boto3
from botocore.config import Config

CONTENT_TYPE = "text/csv"  # of what is sent
FEATURES = 50  # of a row
ROWS = 1  # of a request
PAYLOADS = 1000  # different ones


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
    draw = random.Random(0)
    return {"pre_computed": True, "input": [table(draw) for _ in range(PAYLOADS)]}


def table(draw):
    """Lines of numbers without a header, as the built-in algorithms want them."""
    rows = [[f"{draw.gauss(0, 1):.4f}" for _ in range(FEATURES)] for _ in range(ROWS)]
    return "\n".join(map(",".join, rows)).encode()
