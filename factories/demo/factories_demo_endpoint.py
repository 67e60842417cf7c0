"""The embedded endpoint as SageMaker: creates endpoints of several instance types there, as `--demo --vary` does.

An ml.m5.large instance computes one request at a time, an ml.m5.xlarge two, and an ml.c5.large is faster: see
docs/how-to/embedded-endpoint.md.
"""

import json
import os
import time
import uuid

from geventhttpclient import HTTPClient

from inference_benchmarker import created, run_tags

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # of the embedded endpoint
ASK_EVERY_S = 0.1
ROLE = "arn:aws:iam::123456789012:role/demo"


class HttpError(Exception):
    """The endpoint answered, but not with 200."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status  # becomes part of the error's row in the report


def endpoint_factory(instance_type: str = "ml.m5.large", instances: int = 1):
    """Make an endpoint, and yield its name. What `created` gets removes it when the search is over."""
    import boto3  # here, as what sends requests does without it

    if "BENCHMARK_DEMO_URL" not in os.environ:
        raise RuntimeError("there is no embedded endpoint: run it with --demo")
    sagemaker = boto3.client("sagemaker")  # which --demo leads to the embedded endpoint
    name = f"demo-{uuid.uuid4().hex[:8]}"
    removed_by("delete_model", ModelName=name)
    sagemaker.create_model(ModelName=name, PrimaryContainer={"Image": "demo"}, ExecutionRoleArn=ROLE, Tags=run_tags())
    variant = {"InstanceType": instance_type, "InitialInstanceCount": instances, "ModelName": name}
    removed_by("delete_endpoint_config", EndpointConfigName=name)
    sagemaker.create_endpoint_config(
        EndpointConfigName=name, ProductionVariants=[{**variant, "VariantName": "AllTraffic"}], Tags=run_tags()
    )
    removed_by("delete_endpoint", EndpointName=name)
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name, Tags=run_tags())
    print(f"{name} on {instance_type}: Creating")
    while (endpoint := sagemaker.describe_endpoint(EndpointName=name))["EndpointStatus"] == "Creating":
        time.sleep(ASK_EVERY_S)
    if endpoint["EndpointStatus"] != "InService":
        raise RuntimeError(endpoint.get("FailureReason", endpoint["EndpointStatus"]))
    print(f"{name} on {instance_type}: InService")
    yield name


def removed_by(operation, **parameters):
    created({"service": "sagemaker", "operation": operation, "parameters": parameters})


def invoke_factory(endpoint_name="demo"):
    """Once in each worker process: clients, connection pools, sessions."""
    client = HTTPClient.from_url(URL, concurrency=1000, connection_timeout=10, network_timeout=60)
    headers = {"Content-Type": "application/json"}

    def invoke(payload):
        """Once for each request: done when it returns, failed when it raises."""
        response = client.post(f"/endpoints/{endpoint_name}/invocations", body=payload, headers=headers)
        body = response.read()
        if response.status_code != 200:
            raise HttpError(response.status_code, body.decode(errors="replace"))
        return body

    return invoke


def payload_factory():
    """Once in each worker process: arrival i sends input[i mod n]."""
    payloads = [json.dumps({"id": number, "features": [0.1, 0.2, 0.3]}).encode() for number in range(100)]
    return {"pre_computed": True, "input": payloads}
