"""Amazon Bedrock's Converse through boto3: whole answers, with the tokens that Bedrock bills.

Measures how long a whole answer takes, and tokens in and out. Works with every Bedrock model that supports Converse: a
foundation model, an imported or provisioned one, an inference profile. `--endpoint-name` is its id or ARN, as in
`--endpoint-name amazon.nova-lite-v1:0`; region and credentials are found as in any boto3 program. Edit the questions.
"""

import random

import boto3
from botocore.config import Config

from inference_benchmarker import Response

MAX_TOKENS = 64  # of an answer, at most
TOPICS = ["rivers", "bridges", "the tides", "old maps", "glass", "bees", "trains", "salt", "clocks", "deserts"]


class EmptyAnswerError(Exception):
    """Bedrock answered, but the model said nothing."""


def invoke_factory(endpoint_name):
    if endpoint_name is None:
        raise ValueError("no model was given: name it with --endpoint-name ID")
    retries_off = {"mode": "standard", "total_max_attempts": 1}  # else a throttled request becomes a slow one
    # a connection for each request in flight; an answer may be long in coming
    config = Config(retries=retries_off, max_pool_connections=1000, read_timeout=300)
    client = boto3.client("bedrock-runtime", config=config)

    def invoke(payload):
        answer = client.converse(modelId=endpoint_name, **payload)
        reason, usage = answer.get("stopReason"), answer.get("usage", {})
        if not answer.get("output", {}).get("message", {}).get("content") and reason != "content_filtered":
            raise EmptyAnswerError(f"the answer has no content: its stopReason is {reason}, its usage {usage}")
        return Response(usage.get("inputTokens"), usage.get("outputTokens"), finish_reason=reason)

    return invoke


def payload_factory():
    draw = random.Random(0)  # the same questions in every worker
    questions = [f"Tell me {draw.randint(2, 99)} things about {draw.choice(TOPICS)}." for _ in range(100)]
    limits = {"maxTokens": MAX_TOKENS, "temperature": 0.5}
    messages = [[{"role": "user", "content": [{"text": question}]}] for question in questions]
    return {"pre_computed": True, "input": [{"messages": each, "inferenceConfig": limits} for each in messages]}
