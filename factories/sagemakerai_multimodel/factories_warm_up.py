"""SageMaker, multi-model endpoint: a warm-up that sends one request to each of 1,000 models.

Run it with --endpoint-name NAME --concurrency 8 --num-requests 1000 before a wave with one of the patterns beside it:
request i goes to model i, so every model is copied to the instance's disk, and the last ones stay in memory. The
latencies of this wave are those of a first load; a load of more than 60 s is reported as ModelNotReadyException, and
continues. For multi-model endpoints, whose target is the model's file.
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
    return {"pre_computed": True, "input": [{"TargetModel": model, "Body": BODY} for model in MODELS]}
