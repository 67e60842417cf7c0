"""SageMaker, multi-model endpoint: 1,000 models with the same traffic each.

Measures the worst case: the share of requests that miss is the share of models that do not fit in memory. For
multi-model endpoints, whose target is the model's file. Run it with --endpoint-name NAME, after factories_warm_up.py.
"""

import boto3
from botocore.config import Config

CONTENT_TYPE = "text/csv"  # of what is sent
BODY = "0.1,0.2,0.3,0.4"  # what each model is sent
COUNT = 1000  # of models
MODEL = "model-{:04}.tar.gz"  # the name of each below the endpoint's S3 prefix, {} being its number
MODELS = [MODEL.format(number) for number in range(COUNT)]


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
    return {
        "pre_computed": True,
        "input": [{"TargetModel": model, "Body": BODY} for model in MODELS],
        # at random: one after the other, each model would be pushed out just before it is asked again
        "weights": [1] * len(MODELS),
    }
