"""The zone and the instance type of nodes. A wave cannot ask for them in its pods: whoever follows it tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.engine.pods.kubectl import SOON, KubectlError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inference_benchmarker.engine.pods.kubectl import Kubectl

LABELS = {"zone": "topology.kubernetes.io/zone", "instance_type": "node.kubernetes.io/instance-type"}


def places_of(kubectl: Kubectl, nodes: Iterable[str]) -> dict[str, dict[str, str]]:
    """The place of each node by its name, as far as its labels say it; nothing where the user may not get nodes."""
    if not (names := sorted(nodes)):
        return {}
    try:
        found = kubectl.read("nodes", *names, "--ignore-not-found", SOON)
        labels = {
            each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in found.get("items", [found])
        }
    except (KubectlError, KeyError, TypeError, AttributeError):
        return {}
    return {
        name: {what: of_node[label] for what, label in LABELS.items() if label in of_node}
        for name, of_node in labels.items()
    }
