"""Objects, as kubectl makes, shows, changes and deletes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.case import case
from tests.kube.conftest import wait_until
from tests.kube.made import RESTRICTED, RESTRICTED_POD, job, pod

if TYPE_CHECKING:
    from tests.kube.cluster import Cluster
    from tests.kube.kubectl import Kubectl

pytestmark = pytest.mark.process

ALL = ("get", "all,secrets,configmaps", "--output=name")


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "given"}, "data": data}


def test_what_is_created_can_be_read_changed_and_deleted(kubectl: Kubectl) -> None:
    kubectl("create", "secret", "generic", "keys", "--from-literal=a=1")
    assert kubectl("get", "secret", "keys", "--output=jsonpath={.data.a}") == "MQ=="
    assert kubectl("apply", "--filename=-", stdin=json.dumps(config_map(a="1"))) == "configmap/given created\n"
    assert kubectl("apply", "--filename=-", stdin=json.dumps(config_map(a="1"))) == "configmap/given unchanged\n"
    assert kubectl("apply", "--filename=-", stdin=json.dumps(config_map(a="2"))) == "configmap/given configured\n"
    assert kubectl.object("configmap", "given")["data"] == {"a": "2"}
    kubectl("label", "secret", "keys", "of=tests")
    assert kubectl("get", "secrets", "--selector=of in (tests, others)", "--output=name") == "secret/keys\n"
    assert kubectl("get", "secrets", "--selector=of!=tests", "--output=name") == ""
    assert set(kubectl(*ALL).split()) == {"secret/keys", "configmap/given"}
    kubectl("delete", "secret/keys", "configmap/given")
    assert kubectl(*ALL) == ""


def test_what_is_wrong_is_refused(kubectl: Kubectl, cluster: Cluster) -> None:
    kubectl.create(config_map(a="1"))
    misspelt = job("wrong", "true", backOffLimit=1)
    immutable = {**config_map(a="1"), "metadata": {"name": "fixed"}, "immutable": True}
    kubectl.create(immutable)
    large = {**config_map(x="x" * 1_048_577), "metadata": {"name": "large"}}
    rows: dict[str, tuple[tuple[str, ...], str, str]] = {
        "again": (("create", "--filename=-"), json.dumps(config_map()), 'configmaps "given" already exists'),
        "misspelt": (("create", "--filename=-"), json.dumps(misspelt), "backOffLimit"),
        "of another type": (("create", "--filename=-"), json.dumps(job("x", "", completions="1")), "spec.completions"),
        "nowhere": (("get", "pods", "pod-1"), "", 'pods "pod-1" not found'),
        "no namespace": (("create", "configmap", "x", "--namespace=none"), "", 'namespaces "none" not found'),
        "immutable": (("patch", "configmap", "fixed", '--patch={"data": {"a": "2"}}'), "", "it is immutable"),
        "large": (("create", "--filename=-"), json.dumps(large), "Too long"),
    }
    for name, (words, stdin, expected) in rows.items():
        with case(name):
            assert expected in kubectl.refusal(*words, stdin=stdin)
    assert len(cluster.store.of_kind("jobs")) == 0


def test_who_may_do_what_is_answered_and_kept(kubectl: Kubectl, cluster: Cluster) -> None:
    assert kubectl("auth", "can-i", "create", "jobs").strip() == "yes"
    cluster.deny("create", "jobs")
    cluster.deny("create", "pods/exec")
    assert kubectl.run("auth", "can-i", "create", "jobs").stdout.strip() == b"no"
    assert kubectl.run("auth", "can-i", "create", "pods", "--subresource=exec").stdout.strip() == b"no"
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    said = kubectl.refusal("create", "--filename=-", stdin=json.dumps(job("load", "true")))
    assert 'cannot create resource "jobs" in API group "batch"' in said


def test_what_loses_its_owner_goes_unless_it_is_left_alone(kubectl: Kubectl) -> None:
    def owned_by(name: str) -> None:
        kubectl.create(job(name, "true", suspend=True))
        uid = kubectl("get", "job", name, "--output=jsonpath={.metadata.uid}")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}
        kubectl.create({**config_map(), "metadata": {"name": name, "ownerReferences": [owner]}})

    for policy, left in {"background": "", "foreground": "", "orphan": "configmap/orphan\n"}.items():
        with case(policy):
            owned_by(policy)
            kubectl("delete", "job", policy, f"--cascade={policy}")
            wait_until(lambda left: kubectl(*ALL) == left, left)


@pytest.mark.slow
def test_rules_of_a_namespace_hold(kubectl: Kubectl) -> None:
    namespace = kubectl("config", "view", "--minify", "--output=jsonpath={..namespace}")
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    said = kubectl.refusal("create", "--filename=-", stdin=json.dumps(pod("free", "true")))
    assert 'violates PodSecurity "restricted:latest"' in said
    assert "allowPrivilegeEscalation != false" in said
    kubectl("create", "quota", "few", "--hard=pods=1,requests.cpu=3")
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}
    narrow = {"securityContext": RESTRICTED, "resources": resources}
    kubectl.create(job("load", "sleep 60", container=narrow, pod=RESTRICTED_POD, completions=2, parallelism=2))
    wait_until(lambda: "exceeded quota: few" in kubectl("get", "events"))
    assert kubectl("get", "pods", "--output=name").count("pod/") == 1
