"""The objects as a command makes them by itself: a Secret is among them, and all go with the Job. Pure."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.pods.objects import metadata_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.engine.pods.pods import Pods


def secret_of(pods: Pods, contents: Mapping[str, bytes]) -> dict[str, Any]:
    """The keys of the pods and the values of variables, each under its name."""
    data = {name: base64.b64encode(content).decode() for name, content in contents.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata_of(pods), "immutable": True, "data": data}


def owned(made: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """An object that Kubernetes removes together with a Job, which is there."""
    owner = {name: job["metadata"][name] for name in ("name", "uid")}
    reference = {"apiVersion": job["apiVersion"], "kind": job["kind"], **owner}
    return {**made, "metadata": {**made["metadata"], "ownerReferences": [reference]}}


def resumed() -> dict[str, Any]:
    """The change that lets the pods of a suspended Job begin."""
    return {"spec": {"suspend": False}}
