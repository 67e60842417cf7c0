"""SageMaker, an inference component created for the measurement: endpoint, model and component are created and removed.

For `benchmark capacity --vary instance_type=ml.g5.xlarge,ml.g5.2xlarge --vary copies=1,2`. Change IMAGE, MODEL_DATA and
ROLE to those of your model, NEEDS to what one copy needs, and the payloads to its input.
"""

import os
import random
import time
import uuid

import boto3
from botocore.config import Config

from inference_benchmarker import created, run_tags

# the container's image
IMAGE = os.environ.get("MODEL_IMAGE", "123456789012.dkr.ecr.us-east-1.amazonaws.com/my-model:latest")
MODEL_DATA = os.environ.get("MODEL_DATA")  # s3://BUCKET/model.tar.gz; None where the image has all
# the role that the endpoint runs with
ROLE = os.environ.get("SAGEMAKER_ROLE", "arn:aws:iam::123456789012:role/MySageMakerRole")
METRICS_EVERY_S = 10  # the endpoint's own metrics, which the search reads with --endpoint-config
ASK_EVERY_S = 5  # whether the endpoint is there
NEEDS = {"NumberOfCpuCoresRequired": 1, "MinMemoryRequiredInMb": 1024}  # and "NumberOfAcceleratorDevicesRequired"
COMPONENT = "my-component"  # of an endpoint that is there already

CONTENT_TYPE = "text/csv"  # of what is sent
FEATURES = 50  # of a row
PAYLOADS = 1000  # different ones


def endpoint_factory(instance_type: str = "ml.g5.xlarge", instances: int = 1, copies: int = 1, env=None):
    """Make the endpoint, and yield its name.

    What `created` gets is how to remove what comes next. That is done when the search is over, the last one first,
    also where the search is interrupted or killed.
    """
    sagemaker = boto3.client("sagemaker")
    name = f"benchmark-{uuid.uuid4().hex[:12]}"

    variant = {"VariantName": "AllTraffic", "InstanceType": instance_type, "InitialInstanceCount": instances}
    removed_by("delete_endpoint_config", EndpointConfigName=name)
    sagemaker.create_endpoint_config(
        EndpointConfigName=name,
        ProductionVariants=[variant],
        ExecutionRoleArn=ROLE,
        MetricsConfig={"EnableEnhancedMetrics": True, "MetricPublishFrequencyInSeconds": METRICS_EVERY_S},
        Tags=run_tags(),
    )
    removed_by("delete_endpoint", EndpointName=name)
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name, Tags=run_tags())
    wait_until_in_service(name, lambda: sagemaker.describe_endpoint(EndpointName=name), "EndpointStatus")

    container = {"Image": IMAGE, "Environment": {key: str(value) for key, value in (env or {}).items()}}
    if MODEL_DATA:
        container["ArtifactUrl"] = MODEL_DATA
    removed_by("delete_inference_component", InferenceComponentName=name)
    sagemaker.create_inference_component(
        InferenceComponentName=name,
        EndpointName=name,
        VariantName="AllTraffic",
        Specification={"Container": container, "ComputeResourceRequirements": NEEDS},
        RuntimeConfig={"CopyCount": copies},
        Tags=run_tags(),
    )
    wait_until_in_service(
        f"component {name}",
        lambda: sagemaker.describe_inference_component(InferenceComponentName=name),
        "InferenceComponentStatus",
    )
    yield name


def removed_by(operation, **parameters):
    created({"service": "sagemaker", "operation": operation, "parameters": parameters})


def wait_until_in_service(what, describe, status_key):
    status = None
    while status != "InService":
        if status is not None:
            time.sleep(ASK_EVERY_S)
        described = describe()
        if described[status_key] != status:
            status = described[status_key]
            print(f"{what}: {status}")
        if status == "Failed":
            raise RuntimeError(f"{what} failed: {described.get('FailureReason', 'no reason is given')}")


def invoke_factory(endpoint_name):
    if endpoint_name is None:
        raise ValueError("no endpoint was given: name it with --endpoint-name NAME")
    retries_off = {"mode": "standard", "total_max_attempts": 1}  # boto3 would hide failures behind long requests
    # a connection for each request in flight; SageMaker itself gives up after 60 s, and is to be heard
    config = Config(retries=retries_off, max_pool_connections=1000, read_timeout=70)
    client = boto3.client("sagemaker-runtime", config=config)
    # the endpoint that was made here has a component of its own name
    component = endpoint_name if endpoint_name.startswith("benchmark-") else COMPONENT
    names = {"EndpointName": endpoint_name, "InferenceComponentName": component}

    def invoke(payload):
        answer = client.invoke_endpoint(**names, ContentType=CONTENT_TYPE, Body=payload)
        return answer["Body"].read()

    return invoke


def payload_factory():
    draw = random.Random(0)
    rows = [",".join(f"{draw.gauss(0, 1):.4f}" for _ in range(FEATURES)) for _ in range(PAYLOADS)]
    return {"pre_computed": True, "input": [row.encode() for row in rows]}
