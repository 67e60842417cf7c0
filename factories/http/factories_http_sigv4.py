"""Any AWS endpoint that checks IAM: HTTP requests signed with SigV4, for any service and region.

Measures the time of a whole answer, signing included; a status outside 200 to 299 is a failed request. Works with API
Gateway with IAM authorization (SERVICE "execute-api"), Lambda function URLs ("lambda"), OpenSearch ("es", serverless
"aoss"), VPC Lattice ("vpc-lattice-svcs") and others. Edit the constants; region and credentials are found as in any
boto3 program, and credentials that expire are refreshed.
"""

import hashlib
import json
import os

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from inference_benchmarker.clients import HttpClient

SERVER = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address
PATH = "/invocations"  # with its query, as in /search?q=bees
METHOD = "POST"  # GET and HEAD go without a body
SERVICE = "execute-api"  # to which the endpoint belongs
HEADERS = {"Accept": "application/json"}


def invoke_factory(endpoint_name=None):
    client = HttpClient(SERVER, content_type="application/json", headers=HEADERS)
    session = boto3.Session()
    credentials, region = session.get_credentials(), session.region_name
    if credentials is None or region is None:
        raise RuntimeError("found no AWS credentials or no region: try AWS_PROFILE and AWS_DEFAULT_REGION")

    def invoke(payload):
        # OpenSearch Serverless wants the body's hash as a header, VPC Lattice this text instead; others do not mind
        lattice = SERVICE == "vpc-lattice-svcs"
        unsigned = {"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD" if lattice else hashlib.sha256(payload).hexdigest()}
        request = AWSRequest(METHOD, SERVER + PATH, headers=unsigned, data=payload)
        SigV4Auth(credentials.get_frozen_credentials(), SERVICE, region).add_auth(request)
        return client.request(METHOD, PATH, payload, dict(request.headers)).body

    return invoke


def payload_factory():
    if METHOD in ("GET", "HEAD"):
        return {"pre_computed": True, "input": [b""]}
    bodies = [{"id": number, "features": [0.1, 0.2, 0.3]} for number in range(100)]
    return {"pre_computed": True, "input": [json.dumps(body).encode() for body in bodies]}
