"""SageMaker, multi-model endpoint: 1,000 models, one of which gets 90% of the requests.

Measures how much loading the other models slows requests to one busy model. The report has a row for the hot model and
one for all others. For multi-model endpoints, whose target is the model's file. Run it with --endpoint-name NAME, after
factories_warm_up.py.
"""

import boto3
from botocore.config import Config

CONTENT_TYPE = "text/csv"  # of what is sent
BODY = "0.1,0.2,0.3,0.4"  # what each model is sent
COUNT = 1000  # of models
MODEL = "model-{:04}.tar.gz"  # the name of each below the endpoint's S3 prefix, {} being its number
MODELS = [MODEL.format(number) for number in range(COUNT)]
HOT_SHARE = 0.9  # of the requests that go to the first model


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
    hot, *others = MODELS
    return {
        "pre_computed": True,
        "input": [{"TargetModel": model, "Body": BODY} for model in MODELS],
        "weights": [HOT_SHARE] + [(1 - HOT_SHARE) / len(others)] * len(others),
        "label": lambda payload: "hot model" if payload["TargetModel"] == hot else "other models",
    }
