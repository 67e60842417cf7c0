"""The factories files of the planted culprits."""

from __future__ import annotations

from pathlib import Path

_PAYLOADS = """

def payload_factory():
    return {"pre_computed": True, "input": list(range(10_000))}
"""

JSON_DUMPS = (
    """
import json

from sender import post

NUMBERS = [number / 7 for number in range(40_000)]


def invoke_factory():
    def invoke(payload):
        return post(payload, body=json.dumps({"inputs": NUMBERS}).encode())

    return invoke
"""
    + _PAYLOADS
)

BLOCKING_SLEEP = (
    """
from gevent.monkey import get_original
from sender import post

sleep = get_original("time", "sleep")


def invoke_factory():
    def invoke(payload):
        sleep(0.02)
        return post(payload)

    return invoke
"""
    + _PAYLOADS
)

SMALL_POOL = (
    """
import os

from geventhttpclient import HTTPClient

client = HTTPClient.from_url(os.environ["TARGET"], concurrency=3)


def invoke_factory():
    return lambda payload: bytes(client.post("/invocations", body=b"{}").read())
"""
    + _PAYLOADS
)

PAYLOAD_BUILDING = """
import json

from sender import post

NUMBERS = [number / 7 for number in range(12_000)]


def invoke_factory():
    return lambda payload: post(0, body=payload)


def payload_factory():
    return {"pre_computed": False, "input": lambda: json.dumps(NUMBERS).encode()}
"""

NEW_CONNECTIONS = (
    """
import os
from http.client import HTTPConnection

host = os.environ["TARGET"].removeprefix("http://")


def invoke_factory():
    def invoke(payload):
        connection = HTTPConnection(host)
        connection.request("POST", "/invocations", b"{}")
        answer = connection.getresponse().read()
        connection.close()
        return answer

    return invoke
"""
    + _PAYLOADS
)

BOTO3 = (
    """
import os

import boto3
from botocore.config import Config


def invoke_factory():
    config = Config(retries={"mode": "standard", "total_max_attempts": ATTEMPTS}, max_pool_connections=POOL)
    secrets = {"aws_access_key_id": "demo", "aws_secret_access_key": "demo"}
    client = boto3.client(
        "sagemaker-runtime", endpoint_url=os.environ["TARGET"], region_name="us-east-1", config=config, **secrets
    )

    def invoke(payload):
        return client.invoke_endpoint(EndpointName="e", Body=b"{}")["Body"].read()

    return invoke
"""
    + _PAYLOADS
)
"""With ATTEMPTS and POOL to be replaced by numbers."""

HIDDEN_RETRIES = BOTO3.replace("ATTEMPTS", "5").replace("POOL", "100")

COLLECTIONS = (
    """
import gc

from sender import post

cache = []


def invoke_factory():
    def invoke(payload):
        if not cache:
            cache.extend([number] for number in range(400_000))
        gc.collect()
        return post(payload)

    return invoke
"""
    + _PAYLOADS
)

LOCK = (
    """
from threading import Lock

from sender import post

lock = Lock()


def invoke_factory():
    def invoke(payload):
        with lock:
            return post(payload)

    return invoke
"""
    + _PAYLOADS
)

THREAD = (
    """
from gevent.monkey import get_original
from sender import post


def compute():
    while True:
        sum(range(300_000))


def invoke_factory():
    get_original("_thread", "start_new_thread")(compute, ())
    return post
"""
    + _PAYLOADS
)

FEW_WORKERS = (
    """
from time import thread_time

from sender import post


def invoke_factory():
    def invoke(payload):
        end = thread_time() + 0.002
        while thread_time() < end:
            pass
        return post(payload)

    return invoke
"""
    + _PAYLOADS
)

REPLICAS = (
    """
import os

from geventhttpclient import HTTPClient

URLS = (os.environ["TARGET"], os.environ["BAD_TARGET"])
good, bad = (HTTPClient.from_url(url, concurrency=1000, network_timeout=60) for url in URLS)


def invoke_factory():
    def invoke(payload):
        client = good if payload % 4 else bad
        return bytes(client.post("/invocations", body=b"{}").read())

    return invoke
"""
    + _PAYLOADS
)

MIXED_SIZES = """
from sender import post

SIZES = {"small": 1_000, "medium": 20_000, "large": 200_000}


def invoke_factory():
    return lambda payload: post(0, body=bytes(SIZES[payload]))


def payload_factory():
    return {"pre_computed": True, "input": list(SIZES), "label": str}
"""

STREAMS = """
import json
import os

from geventhttpclient import HTTPClient

client = HTTPClient.from_url(os.environ["TARGET"], concurrency=1000)
BODY = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]})


def invoke_factory():
    def invoke(payload):
        response = client.post("/v1/chat/completions", body=BODY)
        while line := response.readline():
            yield bytes(line).strip()

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": [0]}
"""


def _of_the_first_tutorial() -> str:
    text = (Path(__file__).parents[2] / "docs" / "tutorials" / "first-endpoint.md").read_text()
    file = text.split("# my_endpoint.py\n")[1].split("```")[0]
    return "import os\n" + file.replace('URL = "http://127.0.0.1:8080"', 'URL = os.environ["TARGET"]')


FIRST_TUTORIAL = _of_the_first_tutorial()
