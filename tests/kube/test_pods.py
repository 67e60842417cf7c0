"""Pods are real processes, with all that their description says, and end as Kubernetes ends them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.case import case
from tests.kube.cluster import Cluster
from tests.kube.conftest import wait_until
from tests.kube.kubectl import Kubectl
from tests.kube.made import pod

pytestmark = pytest.mark.process

FOREVER = "trap 'exit 0' TERM; while :; do sleep 0.1; done"


def object_of(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def running(kubectl: Kubectl, *made: dict[str, Any]) -> None:
    """Create pods, and wait for them."""
    kubectl.create(*made)
    names = [f"pod/{each['metadata']['name']}" for each in made]
    kubectl("wait", "--for=condition=Ready", *names, "--timeout=60s")


def waiting(kubectl: Kubectl, name: str) -> str:
    """The reason for which a pod waits, or nothing."""
    path = "{.status.containerStatuses[0].state.waiting.reason}"
    return kubectl("get", "pod", name, f"--output=jsonpath={path}")


def namespace(kubectl: Kubectl) -> str:
    return kubectl("config", "view", "--minify", "--output=jsonpath={..namespace}")


def test_a_container_has_what_its_description_says(kubectl: Kubectl) -> None:
    """Its user, its files and their modes, its variables, its folder, a root that it cannot write, and no privilege."""
    kubectl("create", "secret", "generic", "keys", "--from-literal=load-7.json={}", "--from-literal=NAME=hidden")
    kubectl.create(object_of("ConfigMap", "files", data={"0-a.py": "a = 1\n"}, binaryData={"1-b": "/wA="}))
    script = """
        id -u; id -g; id -G; pwd; cat /keys/own.json; stat -c '%a %g' /keys/own.json; cat /files/lib/a.py
        od -An -tx1 /files/b; echo "$SECRET $INDEX $ADDRESS $$$$"; echo "$@"; hostname
        touch /root-file /keys/own.json /files/b 2>/dev/null || echo read-only; touch /runs/file && echo written
        grep -h CapEff /proc/self/status; grep -h NoNewPrivs /proc/self/status
    """
    secret = {"secretKeyRef": {"name": "keys", "key": "NAME"}}
    container = {
        "command": ["sh", "-c", script, "x"],
        "args": ["$(INDEX)", "$$(INDEX)", "$(NONE)", "$"],
        "workingDir": "/files",
        "env": [
            {"name": "INDEX", "value": "7"},
            {"name": "SECRET", "valueFrom": secret},
            {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "securityContext": {"readOnlyRootFilesystem": True},
        "volumeMounts": [
            {"name": "keys", "mountPath": "/keys/own.json", "subPathExpr": "load-$(INDEX).json", "readOnly": True},
            {"name": "files", "mountPath": "/files/lib/a.py", "subPath": "0-a.py", "readOnly": True},
            {"name": "files", "mountPath": "/files/b", "subPath": "1-b", "readOnly": True},
            {"name": "runs", "mountPath": "/runs"},
        ],
    }
    volumes = [
        {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 0o440}},
        {"name": "files", "configMap": {"name": "files"}},
        {"name": "runs", "emptyDir": {}},
    ]
    context = {"runAsUser": 1234, "runAsGroup": 1235, "fsGroup": 1236}
    kubectl.create(pod("all", "", container=container, volumes=volumes, securityContext=context, hostname="host-7"))
    wait_until(lambda: kubectl.object("pod", "all")["status"]["phase"] in ("Succeeded", "Failed"))
    said = kubectl("logs", "all").splitlines()
    assert said[:4] == ["1234", "1235", "1235 1236", "/files"]
    assert said[4:6] == ["{}440 1236", "a = 1"]
    assert said[6:8] == [" ff 00", "hidden 7 all 1"]
    assert said[8:10] == ["7 $(INDEX) $(NONE) $", "host-7"]
    assert said[10:12] == ["read-only", "written"]
    assert said[12:] == ["CapEff:\t0000000000000000", "NoNewPrivs:\t1"]


def test_pods_have_addresses_and_find_each_other_by_the_name_of_a_service(kubectl: Kubectl, cluster: Cluster) -> None:
    """And they reach this machine at one address only."""
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"name": "first"}}
    kubectl.create(object_of("Service", "first", spec={**spec, "ports": [{"port": 5557}]}))
    running(kubectl, pod("first", FOREVER), pod("second", FOREVER))
    address = kubectl("get", "pod", "first", "--output=jsonpath={.status.podIP}")
    found = kubectl("exec", "second", "--", "getent", "ahostsv4", "first").split()[0]
    assert found == address != cluster.address
    routes = kubectl("exec", "second", "--", "ip", "-brief", "-4", "address")
    assert re.findall(r"\d+\.\d+\.\d+\.\d+", routes)[0] == "127.0.0.1"
    code = "import socket, sys; socket.create_connection((sys.argv[1], 22), 1)"
    refused = kubectl.run("exec", "second", "--", "python3", "-c", code, "192.0.2.1")
    assert b"Network is unreachable" in refused.stderr


def test_exec_has_three_streams_and_an_exit_code(kubectl: Kubectl) -> None:
    running(kubectl, pod("one", FOREVER))
    done = kubectl.run("exec", "one", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, b"out\n")
    assert done.stderr.startswith(b"err\n")
    content = os.urandom(3_000_000)
    there_and_back = kubectl.run("exec", "--stdin", "one", "--", "cat", stdin=content)
    assert there_and_back.stdout == content
    digest = kubectl.run("exec", "--stdin", "one", "--", "sha256sum", stdin=content).stdout.split()[0]
    assert digest.decode() == hashlib.sha256(content).hexdigest()
    assert kubectl.run("exec", "one", "--", "cat").stdout == b""


def test_a_connection_that_breaks_is_an_error_and_its_command_goes_on(kubectl: Kubectl, cluster: Cluster) -> None:
    running(kubectl, pod("one", FOREVER))
    cluster.cut_streams(100_000)
    script = "head -c 300000 /dev/zero; touch /runs/done"
    cut = kubectl.run("exec", "one", "--", "sh", "-c", script)
    assert cut.returncode != 0
    assert 0 < len(cut.stdout) <= 100_000, cut.stderr
    wait_until(lambda: kubectl.run("exec", "one", "--", "test", "-e", "/runs/done").returncode == 0)
    whole = kubectl.run("exec", "one", "--", "head", "-c", "300000", "/dev/zero")
    assert (whole.returncode, len(whole.stdout)) == (0, 300_000)


@pytest.mark.slow
def test_the_log_is_followed_to_its_end(kubectl: Kubectl) -> None:
    running(kubectl, pod("talks", "for i in 1 2 3 4 5; do echo $i; sleep 0.3; done"))
    with kubectl.start("logs", "--follow", "talks") as follower:
        said, _ = follower.communicate(timeout=60)
    assert (follower.returncode, said.split()) == (0, ["1", "2", "3", "4", "5"])
    assert kubectl("logs", "--tail=2", "talks").split() == ["4", "5"]


@pytest.mark.slow
def test_an_api_server_that_is_away_breaks_what_is_connected_and_its_pods_go_on(
    kubectl: Kubectl, cluster: Cluster
) -> None:
    running(kubectl, pod("talks", "while :; do echo more; sleep 0.05; done"))
    with kubectl.start("logs", "--follow", "talks") as follower:
        assert follower.stdout is not None
        follower.stdout.readline()
        cluster.go_away(60)
        _, why = follower.communicate(timeout=60)
    assert (follower.returncode, "unexpected EOF" in why) == (1, True)
    assert "EOF" in kubectl.refusal("get", "pods")
    cluster.mend()
    before = kubectl("logs", "talks").count("more")
    wait_until(lambda: kubectl("logs", "talks").count("more") > before)
    cluster.rotate_log(namespace(kubectl), "talks")
    assert kubectl("logs", "talks").count("more") < before


@pytest.mark.slow
def test_a_pod_that_is_deleted_may_end_by_itself_for_a_while(kubectl: Kubectl) -> None:
    deaf, polite = FOREVER.replace("exit 0", ":"), FOREVER.replace("exit", "echo bye; exit")
    polite = polite.replace("while", "echo hello; while")
    running(kubectl, pod("deaf", deaf), pod("polite", polite, terminationGracePeriodSeconds=60))
    with kubectl.start("logs", "--follow", "polite") as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "hello\n"
        kubectl("delete", "pod", "deaf", "polite")
        assert follower.communicate(timeout=60)[0] == "bye\n"
    assert kubectl("get", "pods", "--output=name") == ""


def test_a_pod_ends_for_reasons_of_its_node(kubectl: Kubectl, cluster: Cluster) -> None:
    space = namespace(kubectl)
    running(kubectl, pod("evicted", FOREVER), pod("large", FOREVER))
    cluster.evict(space, "evicted")
    cluster.kill_for_memory(space, "large")
    wait_until(lambda: {each["status"]["phase"] for each in kubectl.object("pods")["items"]} == {"Failed"})
    evicted, large = (kubectl.object("pod", name)["status"] for name in ("evicted", "large"))
    assert (evicted["reason"], "low on resource" in evicted["message"]) == ("Evicted", True)
    ended = large["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    assert re.search(r"evicted .* Evicted .*\nlarge .* OOMKilled ", kubectl("get", "pods"))


@pytest.mark.slow
def test_a_pod_that_cannot_start_says_why_and_starts_once_it_can(kubectl: Kubectl, cluster: Cluster) -> None:
    volume = {"volumes": [{"name": "keys", "secret": {"secretName": "keys"}}]}
    mounts = {"volumeMounts": [{"name": "keys", "mountPath": "/keys"}]}
    variable = {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "a"}}}]}
    cluster.miss_image("missing")
    kubectl.create(
        pod("no-image", "true", container={"image": "missing:1"}),
        pod("no-secret", "true", container=mounts, **volume),
        pod("no-variable", "true", container=variable),
        pod("no-node", "true", nodeSelector={"pool": "load"}),
        pod("no-room", "true", container={"resources": {"requests": {"cpu": "65"}}}),
    )
    reasons = {
        "no-image": "ImagePullBackOff",
        "no-secret": "ContainerCreating",
        "no-variable": "CreateContainerConfigError",
    }
    for name, reason in reasons.items():
        with case(name):
            wait_until(lambda name, reason: waiting(kubectl, name) == reason, name, reason)
    events = {
        "no-image": 'Failed to pull image "missing:1"',
        "no-secret": 'MountVolume.SetUp failed for volume "keys" : secret "keys" not found',
        "no-node": "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
        "no-room": "0/3 nodes are available: 3 Insufficient cpu.",
    }
    for name, message in events.items():
        with case(name):
            assert message in kubectl("describe", "pod", name)
    cluster.miss_image("")
    kubectl("create", "secret", "generic", "keys", "--from-literal=a=1")
    kubectl("label", "node", "node-b", "pool=load")
    cluster.fill_nodes("128")
    wait_until(lambda: {each["status"]["phase"] for each in kubectl.object("pods")["items"]} == {"Succeeded"})
    kubectl("label", "node", "node-b", "pool-")


@pytest.mark.slow
def test_a_node_that_is_gone_takes_its_network_with_it_and_pods_go_on(kubectl: Kubectl, cluster: Cluster) -> None:
    running(kubectl, pod("one", FOREVER))
    name = kubectl("get", "pod", "one", "--output=jsonpath={.spec.nodeName}")
    cluster.lose_node(name)
    assert "error dialing backend" in kubectl.refusal("exec", "one", "--", "true")
    assert f"{name}   NotReady" in kubectl("get", "nodes")
    cluster.find_node(name)
    kubectl("exec", "one", "--", "true")


@pytest.mark.slow
def test_a_node_that_is_drained_has_no_pods_and_gets_none(kubectl: Kubectl) -> None:
    running(kubectl, pod("one", FOREVER))
    name = kubectl("get", "pod", "one", "--output=jsonpath={.spec.nodeName}")
    kubectl("drain", name, "--force")
    assert kubectl("get", "pods", "--output=name") == ""
    kubectl.create(pod("two", FOREVER, nodeSelector={"kubernetes.io/hostname": name}))
    wait_until(lambda: "1 node(s) were unschedulable" in kubectl("get", "events"))
    kubectl("uncordon", name)
    kubectl("wait", "--for=condition=Ready", "pod/two")


@pytest.mark.slow
def test_a_quota_of_cpu_holds_a_pod_back(kubectl: Kubectl, cluster: Cluster) -> None:
    """A fifth of a core, for a loop that wants a whole one."""
    limited = {"resources": {"limits": {"cpu": "200m"}}}
    running(kubectl, pod("busy", "while :; do :; done", container=limited))
    code = """\
import time
from inference_benchmarker.system.procfs import Throttling
time.sleep(1)
print(Throttling().seconds())
"""
    assert json.loads(kubectl("exec", "busy", "--", "/opt/benchmark/bin/python", "-c", code)) > 0


@pytest.mark.slow
def test_nothing_is_left_on_this_machine_of_a_cluster_that_is_killed(kubectl: Kubectl, tmp_path: Path) -> None:
    """Its pods end with it, and the next cluster removes its network and its files."""
    line = [sys.executable, "-m", "tests.kube", "--kubeconfig", str(tmp_path / "config")]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as by_hand:
        try:
            assert by_hand.stdout is not None
            by_hand.stdout.readline()
            other = Kubectl(kubectl.path, tmp_path / "config")
            running(other, pod("one", FOREVER, container={"resources": {"limits": {"cpu": "1"}}}))
            address = re.search(r"10\.214\.(\d+)\.", other("get", "pod", "one", "--output=wide"))
        finally:
            by_hand.kill()
    assert address is not None
    folder = Path("/run", f"bmk{address[1]}")
    (file,) = folder.glob("pods/*/pid")
    first = Path("/proc", file.read_text().split()[0])
    wait_until(lambda: not first.exists())
    Cluster().close()
    assert not folder.exists()
    assert not Path("/sys/class/net", folder.name).exists()
    assert not [*Path("/sys/fs/cgroup").rglob(f"{folder.name}p*")]
