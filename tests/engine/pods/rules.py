"""The rules that objects keep: the versions of Kubernetes that take them, and Pod Security's strictest level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSIONS = ("1.29", "1.33", "1.37")


def violations(pod: dict[str, Any]) -> Iterator[str]:
    """The rules of Pod Security's level "restricted" that a pod breaks, by the field (its page of Kubernetes' docs)."""
    yield from (name for name in ("hostNetwork", "hostPID", "hostIPC", "initContainers") if name in pod)
    kinds = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
    yield from (f"volumes: {each}" for each in pod["volumes"] if {*each} - {"name"} - kinds)
    context = pod["securityContext"]
    if context.get("runAsNonRoot") is not True or context.get("runAsUser", 1) == 0:
        yield "runAsNonRoot"
    if context.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        yield "seccompProfile"
    for each in pod["containers"]:
        own = each["securityContext"]
        if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
            yield "allowPrivilegeEscalation"
        if own.get("capabilities", {}).get("drop") != ["ALL"] or own["capabilities"].get("add", []):
            yield "capabilities"
        if "hostPort" in str(each):
            yield "hostPort"
