"""SageMaker, text classification: a text in JSON, as Hugging Face containers take it.

Measures latency over texts of different lengths, with a row of the report for each. For real-time endpoints of Hugging
Face containers (sentiment, intent, toxicity, spam) and any that take {"inputs": "a text"}. Run it with --endpoint-name
NAME.
"""

import json
import random

import boto3
from botocore.config import Config

CONTENT_TYPE = "application/json"  # of what is sent
LENGTHS = {"short": 10, "medium": 60, "long": 300}  # in words
TEXTS = 100  # of each length
WORDS = "the this service was not very good but quite fast we would come back soon and our friends liked it too".split()


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
    names = {body(draw, words): name for _ in range(TEXTS) for name, words in LENGTHS.items()}
    return {"pre_computed": True, "input": list(names), "label": lambda payload: names[payload]}


def body(draw, words):
    return json.dumps({"inputs": " ".join(draw.choices(WORDS, k=words))}).encode()
