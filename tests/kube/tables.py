"""Objects as rows of a table, which ``kubectl get`` asks for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.kube.store import Object

ASKED = "as=Table"
_WIDE = ("IP", "Node")
_STEPS = ((120, 1, "s"), (7_200, 60, "m"), (172_800, 3_600, "h"), (float("inf"), 86_400, "d"))


def table(resource: str, objects: Iterable[Object], version: str) -> dict[str, Any]:
    """The table of objects of a kind."""
    columns, cells = _TABLES.get(resource, (("Name", "Age"), lambda found: (_name(found), _age(found))))
    rows = [{"cells": list(cells(found)), "object": _metadata(found)} for found in objects]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version},
        "columnDefinitions": [
            {"name": name, "type": "string", "format": "name" * (name == "Name"), "priority": int(name in _WIDE)}
            for name in columns
        ],
        "rows": rows,
    }


def _metadata(found: Object) -> dict[str, Any]:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": found["metadata"]}


def _name(found: Object) -> str:
    return str(found["metadata"]["name"])


def _age(found: Object, of: str | None = None) -> str:
    """The time since an object was made, or since ``of``."""
    return _between(of or found["metadata"]["creationTimestamp"], None)


def _between(first: str, last: str | None) -> str:
    end = datetime.now(UTC) if last is None else datetime.fromisoformat(last)
    seconds = (end - datetime.fromisoformat(first)).total_seconds()
    unit, letter = next((unit, letter) for most, unit, letter in _STEPS if seconds < most)
    return f"{int(seconds // unit)}{letter}"


def _pod(found: Object) -> tuple[str, ...]:
    status = found["status"]
    containers = status.get("containerStatuses", ())
    states = [each["state"].get("waiting") or each["state"].get("terminated") for each in containers]
    shown = next((state["reason"] for state in states if state), status.get("reason") or status["phase"])
    if "deletionTimestamp" in found["metadata"]:
        shown = "Terminating"
    elif status.get("reason") == "Evicted":
        shown = "Evicted"
    ready = sum(each["ready"] for each in containers)
    number = f"{ready}/{len(found['spec']['containers'])}"
    where = (status.get("podIP", "<none>"), found["spec"].get("nodeName", "<none>"))
    return _name(found), number, shown, "0", _age(found), *where


def _job(found: Object) -> tuple[str, ...]:
    status, spec = found["status"], found["spec"]
    held = {each["type"]: each for each in status.get("conditions", ()) if each["status"] == "True"}
    shown = next((kind for kind in ("Complete", "Failed", "Suspended") if kind in held), "Running")
    first, last = status.get("startTime"), status.get("completionTime")
    lasted = "" if first is None else _between(first, last)
    return _name(found), shown, f"{status.get('succeeded', 0)}/{spec['completions']}", lasted, _age(found)


def _service(found: Object) -> tuple[str, ...]:
    spec = found["spec"]
    ports = ",".join(f"{port['port']}/{port.get('protocol', 'TCP')}" for port in spec.get("ports", ()))
    return _name(found), spec["type"], spec.get("clusterIP", "<none>"), "<none>", ports, _age(found)


def _event(found: Object) -> tuple[str, ...]:
    of = found["involvedObject"]
    last = _age(found, found["lastTimestamp"])
    return last, found["type"], found["reason"], f"{of['kind'].lower()}/{of['name']}", found["message"]


def _node(found: Object) -> tuple[str, ...]:
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in found["status"]["conditions"])
    shown = "Ready" if is_ready else "NotReady"
    if found["spec"].get("unschedulable"):
        shown += ",SchedulingDisabled"
    return _name(found), shown, "<none>", _age(found), "tests"


def _secret(found: Object) -> tuple[str, ...]:
    return _name(found), found["type"], str(len(found.get("data") or {})), _age(found)


def _config_map(found: Object) -> tuple[str, ...]:
    number = sum(len(found.get(field) or {}) for field in ("data", "binaryData"))
    return _name(found), str(number), _age(found)


def _namespace(found: Object) -> tuple[str, ...]:
    return _name(found), found["status"]["phase"], _age(found)


_TABLES: dict[str, tuple[tuple[str, ...], Callable[[Object], tuple[str, ...]]]] = {
    "configmaps": (("Name", "Data", "Age"), _config_map),
    "events": (("Last Seen", "Type", "Reason", "Object", "Message"), _event),
    "jobs": (("Name", "Status", "Completions", "Duration", "Age"), _job),
    "namespaces": (("Name", "Status", "Age"), _namespace),
    "nodes": (("Name", "Status", "Roles", "Age", "Version"), _node),
    "pods": (("Name", "Ready", "Status", "Restarts", "Age", "IP", "Node"), _pod),
    "secrets": (("Name", "Type", "Data", "Age"), _secret),
    "services": (("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age"), _service),
}
