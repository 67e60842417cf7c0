"""Objects of the tests of this folder."""

from __future__ import annotations

from typing import Any

RESTRICTED_POD = {
    "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
}
_OF_PODS = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def job(name: str, script: str, *, container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A Job whose pods run a script; ``pod`` in ``spec`` is more of theirs."""
    pod = spec.pop("pod", {})
    template = {"spec": {**_OF_PODS, "containers": [a_container(script, **(container or {}))], **pod}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": template, **spec},
    }


def pod(name: str, script: str, *, container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod that runs a script."""
    made = {**_OF_PODS, "containers": [a_container(script, **(container or {}))], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"name": name}}, "spec": made}


def a_container(script: str, **more: Any) -> dict[str, Any]:
    return {"name": "main", "image": "image:1", "command": ["sh", "-c", script], **more}


def indexed(count: int) -> dict[str, Any]:
    """A Job of so many indexes, all at once."""
    return {"completionMode": "Indexed", "completions": count, "parallelism": count}
