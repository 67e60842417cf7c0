"""TorchServe: images to a classifier, or JSON to a handler of your own.

Measures the time of a whole answer; a status outside 200 to 299 is a failed request, counted as `HttpStatusError 503`
(TorchServe's answer when a model's queue is full). Works with TorchServe on EKS, OpenShift, EC2. Set the address and
the model below; the images are noise, unless you name a folder of your own.
"""

import io
import os
from pathlib import Path

import numpy
from PIL import Image

from inference_benchmarker.clients import HttpClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address
MODEL = "demo"  # of a version: "demo/1.0"
CONTENT_TYPE = "image/jpeg"  # or "application/json"
SIZE = 224  # of the pictures, in both directions
IMAGES = os.environ.get("IMAGES")  # a folder of .jpg files; without one, noise is sent


def invoke_factory(endpoint_name=None):
    # the inference key, where token authorization is on
    token = os.environ.get("TORCHSERVE_TOKEN") or os.environ.get("BENCHMARK_API_KEY")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return HttpClient(f"{URL}/predictions/{MODEL}", content_type=CONTENT_TYPE, headers=headers).post


def payload_factory():
    """Once in each worker process, as the bytes to send. For JSON, texts or dicts will do."""
    if IMAGES:
        return {"pre_computed": True, "input": [path.read_bytes() for path in sorted(Path(IMAGES).glob("*.jpg"))]}
    pixels = numpy.random.default_rng(0)
    return {"pre_computed": True, "input": [jpeg(pixels.integers(256, size=(SIZE, SIZE, 3))) for _ in range(50)]}


def jpeg(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels.astype(numpy.uint8)).save(file, "JPEG")
    return file.getvalue()
