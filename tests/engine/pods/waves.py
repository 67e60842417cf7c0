"""Waves from pods, as their objects are made."""

from __future__ import annotations

from typing import Any

from inference_benchmarker.engine.pods.objects import PodsWave, wave_objects
from inference_benchmarker.engine.pods.pods import NodeLabel, Pods, Toleration

ARGUMENTS = ("http://10.0.0.1:8080/", "--client-rps=400", "--obs-time=60", "--workers=8", "--hosts=load-1,load-2")
WHOLE = Pods(
    2,
    job="load",
    namespace="tests",
    image="registry.example.org:5000/inference-benchmarker@sha256:abc",
    image_pull_secret="pull",
    node_labels=(NodeLabel("node-pool", "load"), NodeLabel("kubernetes.io/arch", "amd64")),
    tolerations=(Toleration("dedicated", "load", "NoSchedule"), Toleration("spot"), Toleration("x", "", "NoExecute")),
    service_account="irsa",
)
FILES = {"my_endpoint.py": b"import lib.a\n", "lib/a.py": b"a = 1\n", "lib/b/a.py": b"", "data/blob": b"\xff\x00"}


def a_wave(**changed: Any) -> PodsWave:
    """A wave of 60 s."""
    fields: dict[str, Any] = {
        "arguments": ARGUMENTS,
        "workers": 4,
        "variables": ("API_KEY",),
        "files": FILES,
        "join_timeout_s": 600,
        "drain_s": 120,
        "deadline_s": 4_920,
    }
    return PodsWave(**{**fields, **changed})


def objects(pods: Pods = WHOLE, **changed: Any) -> dict[str, dict[str, Any]]:
    """Its objects by their kind."""
    return {each["kind"]: each for each in wave_objects(pods, a_wave(**changed))}


def container(pods: Pods = WHOLE, **changed: Any) -> dict[str, Any]:
    """The container of its pods."""
    (found,) = objects(pods, **changed)["Job"]["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found
