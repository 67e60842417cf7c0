"""Events: what controllers, the scheduler and kubelets say of an object."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from tests.kube.store import Key, now

if TYPE_CHECKING:
    from tests.kube.store import Object, Store


def tell(store: Store, of: Object, reason: str, message: str, source: str, *, warns: bool = False) -> None:
    """Say something of an object; said again, it is the same event, counted."""
    metadata = of["metadata"]
    namespace = metadata.get("namespace", "default")
    for event in store.of_kind("events", namespace):
        is_same = event["involvedObject"].get("uid") == metadata["uid"] and event["reason"] == reason
        if is_same and event["message"] == message:
            key = Key("events", namespace, event["metadata"]["name"])
            store.update(key, lambda kept: kept.update(count=kept["count"] + 1, lastTimestamp=now()))
            return
    at = now()
    event_of: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.{uuid.uuid4().hex[:16]}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": of["apiVersion"],
            "kind": of["kind"],
            "name": metadata["name"],
            "namespace": namespace,
            "uid": metadata["uid"],
        },
        "reason": reason,
        "message": message,
        "type": "Warning" if warns else "Normal",
        "source": {"component": source},
        "reportingComponent": source,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    store.create("events", event_of)


def set_condition(found: Object, kind: str, status: str, reason: str = "", message: str = "") -> None:
    """Set a condition of an object's status; its time is that of the last change of ``status``."""
    conditions = found["status"].setdefault("conditions", [])
    new = {"type": kind, "status": status, "lastTransitionTime": now()}
    new |= {name: text for name, text in (("reason", reason), ("message", message)) if text}
    for place, old in enumerate(conditions):
        if old["type"] == kind:
            if old["status"] == status:
                new["lastTransitionTime"] = old["lastTransitionTime"]
            conditions[place] = new
            return
    conditions.append(new)


def condition(found: Object, kind: str) -> dict[str, Any] | None:
    """A condition that is true, or None."""
    for each in found.get("status", {}).get("conditions", []):
        if each["type"] == kind and each["status"] == "True":
            return dict(each)
    return None
