"""The pods of all nodes: each that has a node is started, watched, and ended, by a thread of its own."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.kube.errors import ApiError
from tests.kube.events import set_condition, tell
from tests.kube.pod_spec import ConfigError, NotMountedError, PodSpec
from tests.kube.sandbox import SIGNALLED, Sandbox
from tests.kube.selectors import matches
from tests.kube.store import Key, now

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kube.network import Network
    from tests.kube.store import Object, Store

_AGAIN_S = 0.5
_POLL_S = 0.02
_GRACE_S = 30
KILLED = SIGNALLED + signal.SIGKILL
OVER = ("Succeeded", "Failed")


@dataclass(slots=True)
class Running:
    """A pod that a node takes care of.

    ``why``: the reason and the message of its end, where somebody else than its command caused it. ``is_gone``: it is
    not to be started any more, or its object was removed.
    """

    key: Key
    uid: str
    number: int
    place: Path
    log: Path
    sandbox: Sandbox | None = None
    why: tuple[str, str] | None = None
    is_gone: threading.Event = field(default_factory=threading.Event)


class Kubelet:
    """Starts pods as processes.

    ``images_missing``: words; an image with one of them in its name cannot be pulled. ``silent_nodes``: those of which
    nothing is heard. ``errors``: faults of its own.
    """

    def __init__(self, store: Store, network: Network, errors: list[str]) -> None:
        self._store, self._network, self._errors = store, network, errors
        self.images_missing: set[str] = set()
        self.silent_nodes: set[str] = set()
        self.pods: dict[str, Running] = {}
        self._threads: list[threading.Thread] = []

    def take_care(self) -> None:
        """Start a thread for each pod that has got a node."""
        for pod in self._store.of_kind("pods"):
            metadata = pod["metadata"]
            is_new = metadata["uid"] not in self.pods and pod["spec"].get("nodeName")
            if is_new and pod["status"].get("phase") not in OVER and "deletionTimestamp" not in metadata:
                self._begin(pod)
        self.write_names()

    def running(self, namespace: str, name: str) -> Running:
        """A pod, by its name. ApiError where no node has it."""
        pod = self._store.get(Key("pods", namespace, name))
        found = self.pods.get(pod["metadata"]["uid"])
        if found is None:
            raise ApiError(400, "BadRequest", f"pod {name} does not have a host assigned")
        return found

    def close(self) -> None:
        """End all of them."""
        for running in list(self.pods.values()):
            running.is_gone.set()
            if running.sandbox:
                running.sandbox.freeze(is_frozen=False)
                running.sandbox.send(signal.SIGKILL)
        for thread in self._threads:
            thread.join(_GRACE_S)

    def kill(self, namespace: str, name: str, reason: str, message: str = "") -> None:
        """End a pod's processes at once, for a reason that its status states."""
        running = self.running(namespace, name)
        running.why = (reason, message)
        if running.sandbox:
            running.sandbox.freeze(is_frozen=False)
            running.sandbox.send(signal.SIGKILL)

    def write_names(self) -> None:
        """Tell the pods which address each headless Service's name stands for: that of the pods that it selects."""
        names: dict[str, list[str]] = {}
        for service in self._store.of_kind("services"):
            namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
            selector = service["spec"].get("selector") or {}
            addresses = [
                pod["status"]["podIP"]
                for pod in self._store.of_kind("pods", namespace)
                if selector and matches(pod["metadata"].get("labels") or {}, selector) and _is_found(service, pod)
            ]
            forms = (name, f"{name}.{namespace}", f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local")
            names.setdefault(namespace, []).extend(f"{address}\t{' '.join(forms)}\n" for address in addresses)
            for other in {each["metadata"]["name"] for each in self._store.of_kind("namespaces")} - {namespace}:
                names.setdefault(other, []).extend(f"{address}\t{' '.join(forms[1:])}\n" for address in addresses)
        for running in list(self.pods.values()):
            file = running.place / "hosts"
            with suppress(OSError):
                text = file.read_text()
                wanted = "".join([*text.splitlines(keepends=True)[:2], *names.get(running.key.namespace, ())])
                if text != wanted:
                    file.write_text(wanted)  # in its place: it is mounted

    def _begin(self, pod: Object) -> None:
        metadata = pod["metadata"]
        place = self._network.folder / "pods" / metadata["uid"]
        place.mkdir(parents=True)
        key = Key("pods", metadata["namespace"], metadata["name"])
        running = Running(key, metadata["uid"], self._network.take(), place, place / "log")
        running.log.touch()
        self.pods[metadata["uid"]] = running
        thread = threading.Thread(target=self._live, args=(running,), name=f"pod {key.name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _live(self, running: Running) -> None:
        """A pod's life. Its object may vanish at any instant."""
        try:
            with suppress(ApiError):
                self._start(running)
            if running.sandbox is not None:
                with suppress(ApiError):
                    self._watch(running)
                running.sandbox.send(signal.SIGKILL)
                code = running.sandbox.wait()
                with suppress(ApiError):
                    self._store.update(running.key, lambda pod: self._ended(pod, running, code))
            elif running.why is not None:
                with suppress(ApiError):
                    self._store.update(running.key, lambda pod: self._ended(pod, running, KILLED))
            self._forget(running)
        except Exception as error:
            self._errors.append(f"{running.key.name}: {type(error).__name__}: {error}")
            raise
        finally:
            self._network.free(running.number)

    def _forget(self, running: Running) -> None:
        """Remove the object of a pod that is to be deleted, and wait for it otherwise; then its files go."""
        while not running.is_gone.is_set():
            pod = self._store.find(running.key)
            if pod is None or pod["metadata"]["uid"] != running.uid:
                break
            if "deletionTimestamp" in pod["metadata"] and pod["spec"]["nodeName"] not in self.silent_nodes:
                self._store.remove(running.key)
                break
            time.sleep(_POLL_S)
        self.pods.pop(running.uid, None)
        shutil.rmtree(running.place, ignore_errors=True)

    def _start(self, running: Running) -> None:
        """Until its container runs, or nobody wants it any more."""
        said = ""
        while not self._is_over(running):
            pod = self._store.get(running.key)
            try:
                self._try_start(running, pod)
            except NotMountedError as error:
                reason, state = "FailedMount", "ContainerCreating"
                message = str(error)
            except ConfigError as error:
                reason, state, message = "Failed", "CreateContainerConfigError", f"Error: {error}"
            except _NoImageError as error:
                first = said == ""
                reason, state, message = "Failed", "ErrImagePull" if first else "ImagePullBackOff", str(error)
            else:
                return
            if message != said:
                tell(self._store, pod, reason, message, "kubelet", warns=True)
            said = message
            self._store.update(running.key, partial(_wait_for, reason=state, message=message))
            running.is_gone.wait(_AGAIN_S)

    def _try_start(self, running: Running, pod: Object) -> None:
        (container,) = pod["spec"]["containers"]
        claims = self._network.folder / "claims"
        address = self._network.address_of(running.number)
        spec = PodSpec(self._store, pod, address)
        volumes = spec.make_volumes(running.place, claims)
        if any(word in container["image"] for word in self.images_missing):
            what = f'Failed to pull image "{container["image"]}"'
            raise _NoImageError(f"{what}: rpc error: code = NotFound desc = failed to resolve image: not found")
        tell(
            self._store, pod, "Pulled", f'Container image "{container["image"]}" already present on machine', "kubelet"
        )
        container_spec = spec.container(volumes, running.log)
        running.sandbox = Sandbox(container_spec, running.place, self._network, running.number)
        self._store.update(running.key, lambda pod: _run(pod, address))
        self.write_names()
        tell(self._store, pod, "Started", f"Started container {container['name']}", "kubelet")

    def _is_over(self, running: Running) -> bool:
        if running.is_gone.is_set() or running.why is not None:
            return True
        pod = self._store.find(running.key)
        return pod is None or pod["metadata"]["uid"] != running.uid or "deletionTimestamp" in pod["metadata"]

    def _watch(self, running: Running) -> None:
        """Until the container has ended, or its time to end is over."""
        assert running.sandbox is not None
        deadline = None
        while not running.sandbox.ended():
            if running.is_gone.is_set() or (deadline is not None and time.monotonic() > deadline):
                return
            pod = self._store.get(running.key)
            is_ours = pod["metadata"]["uid"] == running.uid
            if not is_ours:
                return
            is_heard = pod["spec"]["nodeName"] not in self.silent_nodes
            if deadline is None and "deletionTimestamp" in pod["metadata"] and is_heard:
                tell(
                    self._store, pod, "Killing", f"Stopping container {pod['spec']['containers'][0]['name']}", "kubelet"
                )
                running.sandbox.send(signal.SIGTERM)
                deadline = time.monotonic() + pod["metadata"]["deletionGracePeriodSeconds"]
            time.sleep(_POLL_S)

    def _ended(self, pod: Object, running: Running, code: int) -> None:
        if pod["metadata"]["uid"] != running.uid:
            return
        status, (container,) = pod["status"], pod["spec"]["containers"]
        reason, message = running.why or ("Completed" if code == 0 else "Error", "")
        is_evicted = reason == "Evicted"
        status["phase"] = "Failed" if code or is_evicted else "Succeeded"
        if is_evicted:
            status |= {"reason": reason, "message": message}
            set_condition(pod, "DisruptionTarget", "True", "TerminationByKubelet", message)
        for kind in ("Ready", "ContainersReady"):
            set_condition(pod, kind, "False", "PodFailed" if code else "PodCompleted")
        before = (status.get("containerStatuses") or [{}])[0].get("state", {}).get("running", {})
        ended = {
            "exitCode": code,
            "reason": "Error" if is_evicted else reason,
            "startedAt": before.get("startedAt", now()),
            "finishedAt": now(),
        }
        status["containerStatuses"] = [_container_status(container, {"terminated": ended}, is_ready=False)]


class _NoImageError(Exception):
    """An image that cannot be pulled."""


def _is_found(service: Object, pod: Object) -> bool:
    """Tells whether the name of the Service stands for the pod, too."""
    status = pod["status"]
    if not status.get("podIP") or status.get("phase") in OVER:
        return False
    return bool(service["spec"].get("publishNotReadyAddresses")) or is_ready(pod)


def is_ready(pod: Object) -> bool:
    """Tells whether a pod is ready."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))


def _container_status(container: dict[str, Any], state: dict[str, Any], *, is_ready: bool) -> dict[str, Any]:
    is_running = "running" in state
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "" if "waiting" in state else container["image"],
        "state": state,
        "lastState": {},
        "ready": is_ready,
        "started": is_running,
        "restartCount": 0,
    }


def _wait_for(pod: Object, reason: str, message: str) -> None:
    (container,) = pod["spec"]["containers"]
    state = {"waiting": {"reason": reason} if reason == "ContainerCreating" else {"reason": reason, "message": message}}
    pod["status"]["containerStatuses"] = [_container_status(container, state, is_ready=False)]
    for kind in ("Ready", "ContainersReady"):
        set_condition(
            pod, kind, "False", "ContainersNotReady", f"containers with unready status: [{container['name']}]"
        )


def _run(pod: Object, address: str) -> None:
    (container,) = pod["spec"]["containers"]
    host = f"{address.rpartition('.')[0]}.1"
    at = now()
    pod["status"] |= {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "hostIP": host,
        "startTime": at,
    }
    pod["status"]["containerStatuses"] = [_container_status(container, {"running": {"startedAt": at}}, is_ready=True)]
    for kind in ("Initialized", "ContainersReady", "Ready"):
        set_condition(pod, kind, "True")
