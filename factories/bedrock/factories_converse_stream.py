"""Amazon Bedrock's ConverseStream, through boto3: time to the first token, gaps between tokens.

Measures TTFT, ITL and tokens in and out (the counts that Bedrock bills). Works with every Bedrock model that supports
Converse: a foundation model, an imported or provisioned one, an inference profile. `--endpoint-name` is its id or ARN,
as in `--endpoint-name amazon.nova-lite-v1:0`; region and credentials are found as in any boto3 program. Edit the
questions. A delta may hold more than one token: ITL is then the gap between deltas.
"""

import random

import boto3
from botocore.config import Config

from inference_benchmarker import Response

MAX_TOKENS = 64  # of an answer, at most
TOPICS = ["rivers", "bridges", "the tides", "old maps", "glass", "bees", "trains", "salt", "clocks", "deserts"]


class EmptyStreamError(Exception):
    """The stream ended in good order, but without a delta or before its last event."""


def invoke_factory(endpoint_name):
    if endpoint_name is None:
        raise ValueError("no model was given: name it with --endpoint-name ID")
    retries_off = {"mode": "standard", "total_max_attempts": 1}  # else a throttled request becomes a slow one
    # a connection for each request in flight; read_timeout is for the time between two events
    config = Config(retries=retries_off, max_pool_connections=1000, read_timeout=300)
    client = boto3.client("bedrock-runtime", config=config)

    def invoke(payload):
        pieces, reason = 0, None
        # an exception within the stream is raised by boto3, as EventStreamError
        for event in client.converse_stream(modelId=endpoint_name, **payload)["stream"]:
            if "contentBlockDelta" in event:
                delta = event["contentBlockDelta"]["delta"]
                pieces += 1
                yield delta.get("text") or delta.get("reasoningContent", {}).get("text")
            elif "messageStop" in event:
                reason = event["messageStop"]["stopReason"]
                yield Response(finish_reason=reason)
            elif "metadata" in event:
                usage = event["metadata"]["usage"]
                yield Response(tokens_in=usage["inputTokens"], tokens_out=usage["outputTokens"])
        if reason is None or not (pieces or reason == "content_filtered"):
            raise EmptyStreamError(f"the stream ended after {pieces} deltas: its stopReason is {reason}")

    return invoke


def payload_factory():
    draw = random.Random(0)  # the same questions in every worker
    questions = [f"Tell me {draw.randint(2, 99)} things about {draw.choice(TOPICS)}." for _ in range(100)]
    limits = {"maxTokens": MAX_TOKENS, "temperature": 0.5}
    messages = [[{"role": "user", "content": [{"text": question}]}] for question in questions]
    return {"pre_computed": True, "input": [{"messages": each, "inferenceConfig": limits} for each in messages]}
