"""SageMaker, image classification: generated pictures, or the files of your own folder.

Measures latency, including the decoding of pictures. For real-time endpoints of SageMaker's image classification, and
of PyTorch, TensorFlow or other containers whose inference.py reads picture files. IMAGE_FOLDER=FOLDER in the
environment sends every file of that folder in turn; without it, JPEG files are made. Run it with --endpoint-name NAME.
"""

import os
from io import BytesIO
from pathlib import Path

import boto3
import numpy as np
from botocore.config import Config
from PIL import Image

CONTENT_TYPE = "application/x-image"  # some containers want image/jpeg or image/png
FOLDER = os.environ.get("IMAGE_FOLDER")  # whose files are sent; without one, pictures are made
WIDTH = 640  # of the generated ones
HEIGHT = 480  # the same
PAYLOADS = 20  # different ones


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
    return {"pre_computed": True, "input": of_folder(Path(FOLDER)) if FOLDER else generated()}


def of_folder(folder):
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if not files:
        raise ValueError(f"IMAGE_FOLDER is {folder}, which has no files: give a folder of pictures")
    return [path.read_bytes() for path in files]


def generated():
    random = np.random.default_rng(seed=0)
    return [picture(random) for _ in range(PAYLOADS)]


def picture(random):
    """A smooth scene with some noise, because nothing but noise would be far larger than a photograph."""
    scene = Image.fromarray(random.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((WIDTH, HEIGHT))
    noisy = np.asarray(scene) + random.normal(0, 6, (HEIGHT, WIDTH, 3))
    file = BytesIO()
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, "JPEG")
    return file.getvalue()
