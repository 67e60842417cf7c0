"""Waves from the pods of a cluster: what happens to a pod, a node, a namespace, or to the command that follows."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.faults.fault import Ending, Fault
from tests.hosts.errors import LabError
from tests.kube.api import ApiServer
from tests.kube.cluster import Cluster
from tests.kube.conftest import user_in
from tests.kube.scene import RATE, Scene
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench import Finished
    from tests.faults.fault import Stage

QUOTA = ("create", "quota", "all", "--hard=pods=6,requests.cpu=12,limits.cpu=12,limits.memory=24Gi")
_one_at_a_time = threading.Lock()  # a fault of the cluster is everybody's


@cache
def served() -> ApiServer:
    """A cluster for all of these faults."""
    try:
        cluster = Cluster()
    except LabError as error:
        pytest.skip(str(error))
    atexit.register(cluster.close)
    server = ApiServer(cluster)
    atexit.register(server.close)
    return server


def in_cluster(play: Callable[[Scene], Finished]) -> Callable[[Stage], Ending]:
    """Play it in a namespace of its own, of which nothing but what just ends is left."""

    def played(stage: Stage) -> Ending:
        with _one_at_a_time:
            cluster = served().cluster
            with user_in(served(), stage.folder) as kubectl, StampServer(address=cluster.address) as server:
                scene = Scene(stage.bench, kubectl, cluster, server)
                try:
                    finished = play(scene)
                    scene.judge_rest()
                finally:
                    cluster.mend()
        return Ending(finished, None, built=True)

    return played


def refused(break_it: Callable[[Scene], object], *words: object) -> Callable[[Stage], Ending]:
    """The pods do not start, and no load is sent."""

    def play(scene: Scene) -> Finished:
        break_it(scene)
        finished = scene.start(1, *words).finish()
        assert len(scene.server.log()) == 0
        assert not scene.folder.joinpath("home").exists()
        return finished

    return in_cluster(play)


def measured(act: Callable[[Scene], object], seconds: int = 4) -> Callable[[Stage], Ending]:
    """The wave goes on, or ends with its report; its counts are the server's."""

    def play(scene: Scene) -> Finished:
        running = scene.begun(seconds, "--job-name", "load")
        act(scene)
        return judged(scene, running.finish())

    return in_cluster(play)


def judged(scene: Scene, finished: Finished) -> Finished:
    """The command's end, as it is where the machine is not too busy; every reported request reached the server."""
    (run_dir,) = scene.folder.glob("home/*")
    ended = replace(finished, run_dir=run_dir)
    assert ended.summary["ledger"]["ok"] <= len(scene.server.log())
    if not ended.summary["lost_workers"]:
        assert ended.summary["ledger"]["ok"] == len(scene.server.log())
    return replace(ended, code=ended.exit_code)


def namespace(scene: Scene) -> str:
    """The namespace of the wave."""
    return scene.kubectl("config", "view", "--minify", "--output=jsonpath={..namespace}")


def results_lost(scene: Scene) -> Finished:
    """The first pod is killed for its memory."""
    running = scene.begun(60)
    scene.cluster.kill_for_memory(namespace(scene), scene.pod(0))
    return running.finish()


def lose_node(scene: Scene) -> None:
    """The node of a pod that sends falls silent."""
    scene.cluster.lose_node(scene.kubectl("get", "pod", scene.pod(2), "--output=jsonpath={.spec.nodeName}"))


def laptop_gone(scene: Scene) -> Finished:
    """The command is killed; another one fetches the results."""
    running = scene.begun(4, "--job-name", "load")
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    return judged(scene, scene.other("kubernetes", "fetch", "load", "--output-dir", "home").finish())


def fetch_cut(scene: Scene) -> Finished:
    """The first connection breaks while the wave runs, and the next ones while its results come."""
    scene.cluster.cut_streams(300)
    running = scene.begun(4)
    running.wait_for(lambda: "broke off" in running.err, "the cut")
    scene.cluster.cut_streams(20_000, times=6)
    return judged(scene, running.finish())


def early_interrupt(scene: Scene) -> Finished:
    """Ctrl-C while the pods start."""
    running = scene.start(60)
    running.wait_for(lambda: [pod["status"]["phase"] for pod in scene.pods()] == ["Running"] * 3, "the pods")
    running.process.send_signal(signal.SIGINT)
    finished = running.finish()
    assert len(scene.server.log()) == 0
    return finished


def two_waves(scene: Scene) -> Finished:
    """Two at once in a namespace with a quota for just these, where Pod Security's level is restricted."""
    scene.kubectl("label", "namespace", namespace(scene), "pod-security.kubernetes.io/enforce=restricted")
    scene.kubectl(*QUOTA)
    other = scene.start(4, "--output-dir", "other")
    one = scene.start(4)
    finished = one.finish()
    other.finish()
    (run_dir,) = scene.folder.glob("home/*")
    ended = replace(finished, run_dir=run_dir)
    assert len(scene.server.log()) == 2 * 4 * RATE
    assert ended.summary["ledger"]["ok"] == 4 * RATE
    return replace(ended, code=ended.exit_code)


def no_pods(scene: Scene) -> None:
    """A quota that leaves room for none."""
    scene.kubectl("create", "quota", "small", "--hard=pods=0")


NOTHING = "nothing: no load is sent, and nothing is left in the cluster"
REST = "the other pods' parts, and its own until then"
PODS = (
    Fault(
        "pods-forbidden",
        "the user may not make Secrets in the namespace",
        NOTHING,
        "nothing",
        2,
        refused(lambda scene: scene.cluster.deny("create", "secrets")),
        says="create secrets",
    ),
    Fault(
        "pods-no-image",
        "the image of the pods cannot be pulled",
        NOTHING,
        "nothing",
        2,
        refused(lambda scene: scene.cluster.miss_image("nowhere"), "--pod-image", "nowhere/x:1"),
        slow=True,
        says="ImagePullBackOff",
    ),
    Fault(
        "pods-pending",
        "no node fits the pods",
        NOTHING,
        "nothing",
        2,
        refused(lambda _: None, "--node-selector", "pool=load", "--join-timeout", 3),
        slow=True,
        says="0/3 nodes are available",
    ),
    Fault(
        "pods-quota",
        "the namespace's quota has no room for the pods",
        NOTHING,
        "nothing",
        2,
        refused(no_pods),
        slow=True,
        says="exceeded quota: small",
    ),
    Fault(
        "pods-early-interrupt",
        "Ctrl-C while the pods start",
        NOTHING,
        "nothing",
        130,
        in_cluster(early_interrupt),
        slow=True,
    ),
    Fault(
        "pods-deleted",
        "`kubectl delete` of a pod that sends",
        REST,
        "the pod's part, from its last report on",
        3,
        measured(lambda scene: scene.kubectl("delete", "pod", scene.pod(2), "--grace-period=1", "--wait=false")),
        slow=True,
    ),
    Fault(
        "pods-evicted",
        "a pod that sends is evicted",
        REST,
        "the pod's part, from its last report on",
        3,
        measured(lambda scene: scene.cluster.evict(namespace(scene), scene.pod(2))),
        slow=True,
    ),
    Fault(
        "pods-memory",
        "a pod that sends is killed for its memory (OOMKilled)",
        REST,
        "the pod's part, from its last report on",
        3,
        measured(lambda scene: scene.cluster.kill_for_memory(namespace(scene), scene.pod(2))),
        slow=True,
    ),
    Fault(
        "pods-node-gone",
        "the node of a pod that sends falls silent",
        REST,
        "the pod's part, from its last report on",
        3,
        measured(lose_node, seconds=20),
        slow=True,
    ),
    Fault(
        "pods-first-deleted",
        "`kubectl delete` of the first pod, or its node is drained, in the middle of the wave",
        "the wave up to then",
        "nothing, if a command follows the wave",
        130,
        measured(lambda scene: scene.kubectl("delete", "pod", scene.pod(0), "--wait=false"), seconds=60),
        slow=True,
    ),
    Fault(
        "pods-first-memory",
        "the first pod is killed for its memory (OOMKilled)",
        "nothing: the message says so",
        "the results",
        3,
        in_cluster(results_lost),
        slow=True,
        says="lost with its results",
    ),
    Fault(
        "pods-command-killed",
        "the command that follows the wave is killed, and `benchmark kubernetes fetch` comes later",
        "everything",
        "nothing",
        0,
        in_cluster(laptop_gone),
        slow=True,
    ),
    Fault(
        "pods-api-away",
        "the API server cannot be reached for two seconds in the middle of the wave",
        "everything",
        "nothing",
        0,
        measured(lambda scene: scene.cluster.go_away(2)),
        slow=True,
        says="broke off",
    ),
    Fault(
        "pods-fetch-cut",
        "the connection breaks again and again while the results are fetched",
        "everything",
        "nothing",
        0,
        in_cluster(fetch_cut),
        slow=True,
        says="broke off",
    ),
    Fault(
        "pods-secret-deleted",
        "the pods' Secret is deleted in the middle of the wave",
        "everything: pods read it once",
        "nothing",
        0,
        measured(lambda scene: scene.kubectl("delete", "secret", "load")),
        slow=True,
    ),
    Fault(
        "pods-two-waves",
        "two waves at once in a namespace with a quota for just these, and Pod Security's level `restricted`",
        "everything of both",
        "nothing",
        0,
        in_cluster(two_waves),
        slow=True,
    ),
)
