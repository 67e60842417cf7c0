"""SageMaker, tabular data (the fast client): CSV rows to XGBoost, as in real-time bidding.

The same load as factories_tabular.py at a fraction of boto3's CPU, for thousands of requests per second: run it with
--slo 'p99<20ms', the time a bidder has. For real-time endpoints of XGBoost, LightGBM, CatBoost, Linear Learner and
others that take text/csv. Run it with --endpoint-name NAME.
"""

import random

from inference_benchmarker.clients import SageMakerClient

CONTENT_TYPE = "text/csv"  # of what is sent
FEATURES = 50  # of a row
ROWS = 1  # of a request
PAYLOADS = 1000  # different ones


def invoke_factory(endpoint_name):
    if endpoint_name is None:
        raise ValueError("no endpoint was given: name it with --endpoint-name NAME")
    client = SageMakerClient()  # no retries, and a connection for each request in flight

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
