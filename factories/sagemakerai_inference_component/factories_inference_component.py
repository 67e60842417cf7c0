"""SageMaker, inference components: one or several models that share an endpoint's instances.

Measures each component's latency while the others are busy, too, with a row of the report for each. For endpoints with
inference components: INFERENCE_COMPONENTS=NAME,NAME in the environment names them; requests go to them in equal shares,
or by WEIGHTS. Run it with --endpoint-name NAME.
"""

import json
import os

import boto3
from botocore.config import Config

CONTENT_TYPE = "application/json"  # of what is sent
NAMES = os.environ.get("INFERENCE_COMPONENTS", "my-component")  # of the components, with commas between them
COMPONENTS = NAMES.split(",")
WEIGHTS = [1] * len(COMPONENTS)
TEXTS = 100  # different ones for each component


def invoke_factory(endpoint_name):
    if endpoint_name is None:
        raise ValueError("no endpoint was given: name it with --endpoint-name NAME")
    retries_off = {"mode": "standard", "total_max_attempts": 1}  # boto3 would hide failures behind long requests
    # a connection for each request in flight; SageMaker itself gives up after 60 s, and is to be heard
    config = Config(retries=retries_off, max_pool_connections=1000, read_timeout=70)
    client = boto3.client("sagemaker-runtime", config=config)

    def invoke(payload):
        answer = client.invoke_endpoint(EndpointName=endpoint_name, ContentType=CONTENT_TYPE, **payload)
        return answer["Body"].read()

    return invoke


def payload_factory():
    bodies = [json.dumps({"inputs": f"text number {number}"}) for number in range(TEXTS)]
    return {
        "pre_computed": True,
        "input": [{"InferenceComponentName": name, "Body": body} for body in bodies for name in COMPONENTS],
        "weights": WEIGHTS * TEXTS,
        "label": lambda payload: payload["InferenceComponentName"],
    }
