"""The kinds of objects that the server knows, and how clients discover them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of objects. ``group`` is empty for the core; ``short`` and ``categories`` are names that kubectl takes."""

    name: str
    kind: str
    group: str = ""
    namespaced: bool = True
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS

    @property
    def api_version(self) -> str:
        """As its objects state it."""
        return f"{self.group}/v1" if self.group else "v1"

    @property
    def qualified(self) -> str:
        """Its name in messages."""
        return f"{self.name}.{self.group}" if self.group else self.name

    def described_kind(self) -> dict[str, str]:
        """As descriptions of the interface name it."""
        return {"group": self.group, "version": "v1", "kind": self.kind}

    def described(self) -> dict[str, Any]:
        """As discovery lists it."""
        found = {
            "name": self.name,
            "singularName": self.kind.lower(),
            "namespaced": self.namespaced,
            "kind": self.kind,
            "verbs": list(self.verbs),
        }
        more = {"shortNames": list(self.short), "categories": list(self.categories)}
        return {**found, **{name: value for name, value in more.items() if value}}


_REVIEW = ("create",)
RESOURCES = (
    Resource("namespaces", "Namespace", namespaced=False, short=("ns",)),
    Resource("nodes", "Node", namespaced=False, short=("no",)),
    Resource("configmaps", "ConfigMap", short=("cm",)),
    Resource("secrets", "Secret"),
    Resource("services", "Service", short=("svc",), categories=("all",)),
    Resource("serviceaccounts", "ServiceAccount", short=("sa",)),
    Resource("resourcequotas", "ResourceQuota", short=("quota",)),
    Resource("persistentvolumeclaims", "PersistentVolumeClaim", short=("pvc",)),
    Resource("pods", "Pod", short=("po",), categories=("all",)),
    Resource("events", "Event", short=("ev",)),
    Resource("cronjobs", "CronJob", "batch", short=("cj",), categories=("all",)),
    Resource("jobs", "Job", "batch", categories=("all",)),
    Resource("poddisruptionbudgets", "PodDisruptionBudget", "policy", short=("pdb",)),
    Resource("selfsubjectaccessreviews", "SelfSubjectAccessReview", "authorization.k8s.io", False, verbs=_REVIEW),
    Resource("selfsubjectrulesreviews", "SelfSubjectRulesReview", "authorization.k8s.io", False, verbs=_REVIEW),
)
_BELOW: dict[str, tuple[dict[str, Any], ...]] = {
    "": (
        {"name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1", "verbs": ["create"]},
        {"name": "pods/exec", "kind": "PodExecOptions", "verbs": ["create", "get"]},
        {"name": "pods/log", "kind": "Pod", "verbs": ["get"]},
    ),
}
BY_NAME = {(each.group, each.name): each for each in RESOURCES}
GROUPS = tuple(dict.fromkeys(each.group for each in RESOURCES if each.group))


def discovery(path: str, server_version: str) -> dict[str, Any] | None:
    """The document of a path that describes what there is, or None."""
    documents = {
        "/version": _version(server_version),
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in GROUPS]},
        "/api/v1": _listed("", "v1"),
        **{f"/apis/{group}": {"kind": "APIGroup", "apiVersion": "v1", **_group(group)} for group in GROUPS},
        **{f"/apis/{group}/v1": _listed(group, f"{group}/v1") for group in GROUPS},
        "/openapi/v3": {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in _groups_paths()}},
        **{f"/openapi/v3/{path}": _openapi(group) for path, group in _groups_paths().items()},
    }
    return documents.get(path)


def _version(version: str) -> dict[str, Any]:
    major, minor = version.split(".")[:2]
    return {"major": major, "minor": minor, "gitVersion": f"v{version}", "platform": "linux/amd64"}


def _group(group: str) -> dict[str, Any]:
    version = {"groupVersion": f"{group}/v1", "version": "v1"}
    return {"name": group, "versions": [version], "preferredVersion": version}


def _listed(group: str, version: str) -> dict[str, Any]:
    of_group = [each for each in RESOURCES if each.group == group]
    below = [{"singularName": "", "namespaced": True, **each} for each in _BELOW.get(group, ())]
    resources = [*(each.described() for each in of_group), *below]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


def _groups_paths() -> dict[str, str]:
    return {"api/v1": "", **{f"apis/{group}/v1": group for group in GROUPS}}


def _openapi(group: str) -> dict[str, Any]:
    """As much as kubectl needs to see that the server itself validates fields."""
    parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    paths = {}
    for each in RESOURCES:
        if each.group == group:
            operation = {"parameters": [parameter], "x-kubernetes-group-version-kind": each.described_kind()}
            paths[f"/{each.name}/{{name}}"] = {"patch": operation}
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1"}, "paths": paths}
