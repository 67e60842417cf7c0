"""SageMaker, multi-model endpoint: 1,000 models, a few of which are popular, by Zipf's law.

Measures whether the memory holds the most popular models, as with one model per customer. The second model gets half
the requests of the first, the third a third: the first ten get 39% of all, the first hundred 69%. The report has a row
for each class. For multi-model endpoints, whose target is the model's file. Run it with --endpoint-name NAME, after
factories_warm_up.py.
"""

import math

import boto3
from botocore.config import Config

CONTENT_TYPE = "text/csv"  # of what is sent
BODY = "0.1,0.2,0.3,0.4"  # what each model is sent
COUNT = 1000  # of models
MODEL = "model-{:04}.tar.gz"  # the name of each below the endpoint's S3 prefix, {} being its number
MODELS = [MODEL.format(number) for number in range(COUNT)]
EXPONENT = 1.0  # the larger, the more requests go to the first models
CLASSES = {10: "ten most popular", 100: "next ninety", math.inf: "all others"}  # by the rank of their last model


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
    ranks = {model: rank for rank, model in enumerate(MODELS, start=1)}
    return {
        "pre_computed": True,
        "input": [{"TargetModel": model, "Body": BODY} for model in MODELS],
        "weights": [rank**-EXPONENT for rank in ranks.values()],
        "label": lambda payload: popularity(ranks[payload["TargetModel"]]),
    }


def popularity(rank):
    return next(name for last, name in CLASSES.items() if rank <= last)
