"""An AWS Lambda function, invoked synchronously through boto3; if it raises, the request fails.

Measures the time of a synchronous invocation, cold starts included. Works with functions of any runtime, also by alias
or version: `--endpoint-name` is the function's name or ARN (`my-function:live`); region and credentials are found as in
any boto3 program. Edit the events. Lambda answers HTTP 200 although the function raised or ran out of time, and reports
that in FunctionError. Such a request fails here, counted under the type of the error, as `FunctionError ValueError`.
"""

import json

import boto3
from botocore.config import Config


class FunctionError(Exception):
    """The function was invoked and failed."""

    def __init__(self, error):
        super().__init__(error.get("errorMessage") or json.dumps(error))
        # the type becomes part of the error's row in the report; a runtime that ended has none
        self.response = {"Error": {"Code": error.get("errorType") or "Unhandled"}}


def invoke_factory(endpoint_name):
    if endpoint_name is None:
        raise ValueError("no function was given: name it with --endpoint-name NAME")
    retries_off = {"mode": "standard", "total_max_attempts": 1}  # else a throttled request becomes a slow one
    # a connection for each request in flight; a function may run for 15 minutes
    config = Config(retries=retries_off, max_pool_connections=1000, read_timeout=900)
    client = boto3.client("lambda", config=config)

    def invoke(payload):
        answer = client.invoke(FunctionName=endpoint_name, InvocationType="RequestResponse", Payload=payload)
        body = answer["Payload"].read()
        if "FunctionError" in answer:
            raise FunctionError(json.loads(body))
        return body

    return invoke


def payload_factory():
    events = [{"id": number, "features": [0.1, 0.2, 0.3]} for number in range(100)]
    return {"pre_computed": True, "input": [json.dumps(event).encode() for event in events]}
