"""What becomes of an object before it is kept: it is checked, completed with defaults, and held against the rules."""

from __future__ import annotations

import base64
import copy
import re
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import kubernetes_validate

from tests.kube.errors import ApiError, forbidden, invalid, not_found
from tests.kube.kubelet import OVER
from tests.kube.quantities import quantity, requested
from tests.kube.store import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.kube.resources import Resource
    from tests.kube.store import Object, Store

ENFORCE = "pod-security.kubernetes.io/enforce"
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_UNLIMITED = 2**31 - 1
_MOST_DATA = 1_048_576


def admit(store: Store, resource: Resource, wanted: Object, version: str, *, is_strict: bool) -> Object:
    """A new object as it is kept. ApiError where it is refused."""
    made = copy.deepcopy(wanted)
    metadata = made.setdefault("metadata", {})
    if "name" not in metadata and "generateName" in metadata:
        metadata["name"] = f"{metadata['generateName']}{uuid.uuid4().hex[:5]}"
    validate(resource, made, version, is_strict=is_strict)
    if not _NAME.fullmatch(metadata.get("name", "")):
        raise invalid(resource.kind, metadata.get("name", ""), "metadata.name: Required value, of a RFC 1123 subdomain")
    if resource.namespaced:
        _check_namespace(store, resource, metadata)
        _check_count(store, resource, made)
    if resource.name == "pods":
        return admit_pod(store, made)
    if resource.name in _COMPLETED:
        _COMPLETED[resource.name](made)
    return made


def validate(resource: Resource, made: Object, version: str, *, is_strict: bool) -> None:
    """Check an object against the published schema of a version of Kubernetes. ApiError."""
    try:
        kubernetes_validate.validate(made, version, strict=is_strict)
    except kubernetes_validate.ValidationError as error:
        path = ".".join(str(step) for step in error.path)
        name = made.get("metadata", {}).get("name", "")
        if "Additional properties" in error.message:
            message = f"strict decoding error: {path}: unknown field: {error.message}"
            raise ApiError(400, "BadRequest", f"{resource.kind} in version v1 cannot be handled: {message}") from None
        if error.validator == "type":
            message = f"json: cannot unmarshal into field {path}: {error.message}"
            raise ApiError(400, "BadRequest", f"{resource.kind} in version v1 cannot be handled: {message}") from None
        raise invalid(resource.kind, name, f"{path}: {error.message}") from None


def _check_namespace(store: Store, resource: Resource, metadata: dict[str, Any]) -> None:
    namespace = store.find(Key("namespaces", "", metadata["namespace"]))
    if namespace is None:
        raise not_found("namespaces", metadata["namespace"])
    if "deletionTimestamp" in namespace["metadata"]:
        why = f"unable to create new content in namespace {metadata['namespace']} because it is being terminated"
        raise forbidden(resource.qualified, metadata["name"], why)


def _complete_service(made: Object) -> None:
    made.setdefault("spec", {}).setdefault("type", "ClusterIP")
    made["status"] = {"loadBalancer": {}}


def _complete_data(made: Object) -> None:
    if "stringData" in made:
        texts = {key: base64.b64encode(text.encode()).decode() for key, text in made.pop("stringData").items()}
        made["data"] = {**made.get("data", {}), **texts}
    if made["kind"] == "Secret":
        made.setdefault("type", "Opaque")
    size = sum(len(value) for field in ("data", "binaryData") for value in (made.get(field) or {}).values())
    if size > _MOST_DATA * (4 / 3 if made["kind"] == "Secret" else 1):
        raise invalid(
            made["kind"], made["metadata"]["name"], f"data: Too long: may not be more than {_MOST_DATA} bytes"
        )


def _complete_job(made: Object) -> None:
    spec, metadata = made["spec"], made["metadata"]
    spec.setdefault("parallelism", 1)
    spec.setdefault("completions", spec["parallelism"])
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("backoffLimit", _UNLIMITED if "backoffLimitPerIndex" in spec else 6)
    if "backoffLimitPerIndex" in spec and spec["completionMode"] != "Indexed":
        raise invalid("Job", metadata["name"], "spec.backoffLimitPerIndex: requires indexed completion mode")
    if spec["template"]["spec"].get("restartPolicy") not in ("Never", "OnFailure"):
        why = 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
        raise invalid("Job", metadata["name"], why)
    labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    for name in ("batch.kubernetes.io/job-name", "job-name"):
        labels[name] = metadata["name"]
    made["status"] = {}


_COMPLETED: dict[str, Callable[[Object], object]] = {
    "configmaps": _complete_data,
    "jobs": _complete_job,
    "namespaces": lambda made: made.update(status={"phase": "Active"}),
    "persistentvolumeclaims": lambda made: made.update(status={"phase": "Bound"}),
    "secrets": _complete_data,
    "services": _complete_service,
}


def job_kept(store: Store, job: Object) -> None:
    """A Job knows its pods by a label with its uid, which it gets as soon as it has one."""
    uid = job["metadata"]["uid"]

    def labelled(found: Object) -> None:
        labels = found["spec"]["template"]["metadata"]["labels"]
        labels |= {"batch.kubernetes.io/controller-uid": uid, "controller-uid": uid}
        found["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}

    store.update(Key("jobs", job["metadata"]["namespace"], job["metadata"]["name"]), labelled)


def admit_pod(store: Store, pod: Object) -> Object:
    """A new pod as it is kept. ApiError where a rule of its namespace refuses it."""
    metadata, spec = pod["metadata"], pod["spec"]
    name, namespace = metadata["name"], metadata["namespace"]
    if len(spec["containers"]) != 1 or spec.get("initContainers"):
        raise ApiError(501, "NotImplemented", "The tests' server runs one container a pod, and no other ones before it")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    account = spec.setdefault("serviceAccountName", "default")
    if store.find(Key("serviceaccounts", namespace, account)) is None:
        why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
        raise forbidden("pods", name, why)
    level = store.get(Key("namespaces", "", namespace))["metadata"].get("labels", {}).get(ENFORCE)
    violated = [*_violations(spec)] if level == "restricted" else []
    if violated:
        raise forbidden("pods", name, f'violates PodSecurity "restricted:latest": {", ".join(violated)}')
    _check_quotas(store, pod)
    pod["status"] = {"phase": "Pending", "qosClass": "Guaranteed"}
    return pod


def _violations(spec: dict[str, Any]) -> Iterator[str]:
    """What Pod Security's level restricted does not let pass."""
    context = spec.get("securityContext", {})
    allowed = (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
    for volume in spec.get("volumes", ()):
        for kind in set(volume) - {"name", *allowed}:
            yield f'restricted volume types (volume "{volume["name"]}" uses restricted volume type "{kind}")'
    for each in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(each):
            yield f"host namespaces ({each}=true)"
    for container in spec["containers"]:
        yield from _violations_of(container, context)


def _violations_of(container: dict[str, Any], context: dict[str, Any]) -> Iterator[str]:
    """Those of a container; ``context`` is that of its pod."""
    own, name = container.get("securityContext", {}), f'container "{container["name"]}"'
    if own.get("privileged"):
        yield f"privileged ({name} must not set securityContext.privileged=true)"
    if own.get("allowPrivilegeEscalation") is not False:
        yield f"allowPrivilegeEscalation != false ({name} must set securityContext.allowPrivilegeEscalation=false)"
    capabilities = own.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", ()) or set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"}:
        yield f'unrestricted capabilities ({name} must set securityContext.capabilities.drop=["ALL"])'
    if not own.get("runAsNonRoot", context.get("runAsNonRoot")):
        yield f"runAsNonRoot != true (pod or {name} must set securityContext.runAsNonRoot=true)"
    if own.get("runAsUser", context.get("runAsUser")) == 0:
        yield f"runAsUser=0 ({name} must not set runAsUser=0)"
    profile = own.get("seccompProfile", context.get("seccompProfile", {})).get("type")
    if profile not in ("RuntimeDefault", "Localhost"):
        wanted = 'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
        yield f"seccompProfile (pod or {name} must set {wanted})"


def _check_quotas(store: Store, pod: Object) -> None:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    others = [each for each in store.of_kind("pods", namespace) if each["status"].get("phase") not in OVER]
    for quota in store.of_kind("resourcequotas", namespace):
        for what, limit in quota["spec"].get("hard", {}).items():
            of, _, kind = what.rpartition(".")
            if what in ("pods", "count/pods"):
                wanted, used = Decimal(1), Decimal(len(others))
            elif kind in ("cpu", "memory") or what in ("cpu", "memory"):
                of = of or "requests"
                stated = requested(pod["spec"], kind, of)
                if stated is None:
                    container = pod["spec"]["containers"][0]["name"]
                    why = f"failed quota: {quota['metadata']['name']}: must specify {what} for: {container}"
                    raise forbidden("pods", name, why)
                wanted = stated
                used = sum((requested(each["spec"], kind, of) or Decimal(0) for each in others), Decimal(0))
            else:
                continue
            if used + wanted > quantity(limit):
                said = f"requested: {what}={wanted}, used: {what}={used}, limited: {what}={limit}"
                raise forbidden("pods", name, f"exceeded quota: {quota['metadata']['name']}, {said}")


def _check_count(store: Store, resource: Resource, made: Object) -> None:
    """Hold a new object against the quotas of its kind's number."""
    name, namespace = made["metadata"]["name"], made["metadata"]["namespace"]
    if resource.name == "pods":
        return
    for quota in store.of_kind("resourcequotas", namespace):
        for what, limit in quota["spec"].get("hard", {}).items():
            used = len(store.of_kind(resource.name, namespace))
            if what in (resource.name, f"count/{resource.qualified}") and used + 1 > quantity(limit):
                said = f"requested: {what}=1, used: {what}={used}, limited: {what}={limit}"
                raise forbidden(resource.qualified, name, f"exceeded quota: {quota['metadata']['name']}, {said}")
