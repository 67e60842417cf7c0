"""Gives each pod a node that fits, or says why there is none."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.kube.events import set_condition, tell
from tests.kube.kubelet import OVER
from tests.kube.quantities import quantity, requested
from tests.kube.selectors import matches
from tests.kube.store import Key

if TYPE_CHECKING:
    from tests.kube.store import Object, Store

HOSTNAME = "kubernetes.io/hostname"


def node(name: str, *, cpu: str = "64", memory: str = "256Gi", zone: str = "zone-a") -> Object:
    """A node that pods can be placed on. Its cores are counted, not had: all pods run on this machine."""
    labels = {
        HOSTNAME: name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "tests.large",
        "topology.kubernetes.io/zone": zone,
    }
    size = {"cpu": cpu, "memory": memory, "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"capacity": size, "allocatable": size, "conditions": [ready]},
    }


def place_pods(store: Store) -> None:
    """Give each pod that has no node one, the emptiest that fits."""
    for pod in store.of_kind("pods"):
        if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") in OVER:
            continue
        nodes = store.of_kind("nodes")
        misfits = {each["metadata"]["name"]: _misfit(store, pod, each) for each in nodes}
        fitting = [name for name, why in misfits.items() if why is None]
        key = Key("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
        if fitting:
            chosen = min(fitting, key=lambda name: len(_pods_of(store, name)))
            store.update(key, partial(_give, name=chosen))
            who = f"{key.namespace}/{key.name}"
            tell(store, pod, "Scheduled", f"Successfully assigned {who} to {chosen}", "default-scheduler")
        else:
            message = _said(misfits.values())
            if _is_new(pod, message):
                store.update(key, partial(_leave, message=message))
                tell(store, pod, "FailedScheduling", message, "default-scheduler", warns=True)


def _give(pod: Object, name: str) -> None:
    pod["spec"]["nodeName"] = name
    set_condition(pod, "PodScheduled", "True")


def _leave(pod: Object, message: str) -> None:
    set_condition(pod, "PodScheduled", "False", "Unschedulable", message)


def _is_new(pod: Object, message: str) -> bool:
    return all(each.get("message") != message for each in pod["status"].get("conditions", ()))


def _said(misfits: Any) -> str:
    """As the scheduler sums it up."""
    counted = Counter(misfits)
    reasons = ", ".join(f"{count} {why}" for why, count in sorted(counted.items(), key=lambda each: each[0]))
    total = sum(counted.values())
    preempting = f"preemption: 0/{total} nodes are available: {total} Preemption is not helpful for scheduling."
    return f"0/{total} nodes are available: {reasons}. {preempting}" if total else "no nodes available to schedule pods"


def _misfit(store: Store, pod: Object, candidate: Object) -> str | None:
    spec = pod["spec"]
    if candidate["spec"].get("unschedulable"):
        return "node(s) were unschedulable"
    for taint in candidate["spec"].get("taints", ()):
        if taint["effect"] != "PreferNoSchedule" and not any(
            _tolerates(each, taint) for each in spec.get("tolerations", ())
        ):
            return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    if not matches(candidate["metadata"].get("labels", {}), spec.get("nodeSelector") or {}):
        return "node(s) didn't match Pod's node affinity/selector"
    for what in ("cpu", "memory"):
        taken = sum(
            (requested(each["spec"], what) or Decimal(0) for each in _pods_of(store, candidate["metadata"]["name"])),
            Decimal(0),
        )
        if (requested(spec, what) or Decimal(0)) + taken > quantity(candidate["status"]["allocatable"][what]):
            return f"Insufficient {what}"
    return None


def _pods_of(store: Store, name: str) -> list[Object]:
    return [
        pod
        for pod in store.of_kind("pods")
        if pod["spec"].get("nodeName") == name and pod["status"].get("phase") not in OVER
    ]


def _tolerates(toleration: dict[str, Any], taint: dict[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return bool(toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", ""))
