"""The cluster: its objects, its controllers, its nodes, and the faults that can be asked of it."""

from __future__ import annotations

import copy
import os
import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from tests.hosts.errors import LabError
from tests.kube.admission import admit, job_kept
from tests.kube.errors import ApiError, invalid
from tests.kube.events import set_condition, tell
from tests.kube.jobs import Jobs
from tests.kube.kubelet import OVER, Kubelet
from tests.kube.network import Network
from tests.kube.patching import patched
from tests.kube.resources import BY_NAME, Resource
from tests.kube.sandbox import can_run
from tests.kube.scheduler import node, place_pods
from tests.kube.store import Key, Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from tests.kube.store import Object

VERSION = "1.33.0"
_STEP_S = 0.25  # without a change: deadlines pass
_NODES = ("node-a", "node-b", "node-c")
_SPACES = ("default", "kube-system")


class Cluster:
    """``with Cluster() as cluster``: Kubernetes of a ``version``, whose pods are processes of this machine.

    ``address``: this machine's, as the pods see it. ``denied``: pairs of a verb and a resource that clients may not
    do. ``errors``: faults of its own. Raises LabError where pods cannot be run here.
    """

    def __init__(self, version: str = VERSION) -> None:
        if reason := can_run():
            raise LabError(reason)
        self.version = version
        self.store = Store()
        self.denied: set[tuple[str, str]] = set()
        self._cuts: list[int] = []
        self._connections: set[socket.socket] = set()
        self._away_until = 0.0
        self._network = Network()
        self.address = self._network.address
        self.errors: list[str] = []
        self.kubelet = Kubelet(self.store, self._network, self.errors)
        self._jobs = Jobs(self.store, lambda pod: self.delete(Key("pods", *_name(pod))))
        self._is_closed = threading.Event()
        for number, name in enumerate(_NODES):
            self.store.create("nodes", node(name, zone=f"zone-{'abc'[number]}"))
        for name in _SPACES:
            self.create(
                BY_NAME["", "namespaces"], {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )
        self._thread = threading.Thread(target=self._go_on, name="controllers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End all pods, and remove what was made."""
        self._is_closed.set()
        self._thread.join()
        self.kubelet.close()
        self._network.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # objects

    def create(self, resource: Resource, wanted: Object, *, is_strict: bool = False) -> Object:
        """Keep a new object. ApiError."""
        with self.store.changed:
            made = admit(self.store, resource, wanted, self.version, is_strict=is_strict)
            kept = self.store.create(resource.name, made)
            key = Key(resource.name, *_name(kept))
            if resource.name == "jobs":
                job_kept(self.store, kept)
            if resource.name == "namespaces":
                account = {"apiVersion": "v1", "kind": "ServiceAccount"}
                metadata = {"name": "default", "namespace": key.name}
                self.store.create("serviceaccounts", {**account, "metadata": metadata})
            return self.store.get(key)

    def patch(self, resource: Resource, key: Key, patch: Any, kind: str) -> Object:
        """Change an object as a client asks for. ApiError."""

        def change(found: Object) -> None:
            made = patched(found, patch, kind)
            _check_change(resource, found, made)
            found.clear()
            found.update(made)

        return self.store.update(key, change)

    def replace(self, resource: Resource, key: Key, wanted: Object) -> Object:
        """Put another object in the place of one. ApiError."""
        before = self.store.get(key)
        given = wanted["metadata"].get("resourceVersion")
        if given not in (None, before["metadata"]["resourceVersion"]):
            message = (
                f'Operation cannot be fulfilled on {resource.qualified} "{key.name}": the object has been modified'
            )
            raise ApiError(409, "Conflict", message)

        def change(found: Object) -> None:
            kept = {name: found["metadata"][name] for name in ("uid", "creationTimestamp", "resourceVersion")}
            made = {
                **copy.deepcopy(wanted),
                "metadata": {**wanted["metadata"], **kept},
                "status": found.get("status", {}),
            }
            _check_change(resource, found, made)
            found.clear()
            found.update(made)

        return self.store.update(key, change)

    def delete(self, key: Key, *, grace_s: int | None = None, policy: str = "Background") -> Object:
        """Delete an object, as its kind asks for. ApiError where there is none. What it owns follows."""
        with self.store.changed:
            found = self.store.get(key)
            if policy == "Orphan":
                self._orphan(found["metadata"]["uid"])
            if key.resource == "pods" and self._is_graceful(found, grace_s):
                seconds = found["spec"].get("terminationGracePeriodSeconds", 30) if grace_s is None else grace_s
                at = (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
                marks = {"deletionTimestamp": at, "deletionGracePeriodSeconds": seconds}
                return self.store.update(key, lambda pod: pod["metadata"].update(marks))
            if key.resource == "namespaces":
                at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                self.store.update(key, lambda space: space["metadata"].update(deletionTimestamp=at))
                return self.store.update(key, lambda space: space["status"].update(phase="Terminating"))
            if policy == "Foreground" and self._owned(found["metadata"]["uid"]):
                at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                marks = {"deletionTimestamp": at, "finalizers": ["foregroundDeletion"]}
                return self.store.update(key, lambda owner: owner["metadata"].update(marks))
            self.store.remove(key)
            return found

    def _is_graceful(self, pod: Object, grace_s: int | None) -> bool:
        """Tells whether its node is to end it first."""
        return bool(grace_s != 0 and pod["spec"].get("nodeName") and pod["status"].get("phase") not in OVER)

    def _orphan(self, uid: str) -> None:
        for key, _ in self._owned(uid):

            def freed(found: Object) -> None:
                owners = found["metadata"]["ownerReferences"]
                found["metadata"]["ownerReferences"] = [each for each in owners if each["uid"] != uid]

            self.store.update(key, freed)

    def _owned(self, uid: str) -> list[tuple[Key, Object]]:
        return [
            (key, found)
            for key, found in self.store.items()
            if any(owner["uid"] == uid for owner in found["metadata"].get("ownerReferences", ()))
        ]

    # what goes on by itself

    def _go_on(self) -> None:
        seen = 0
        while not self._is_closed.is_set():
            with self.store.changed:
                if self.store.version == seen:
                    self.store.changed.wait(_STEP_S)
                seen = self.store.version
            for step in (self._jobs.step, lambda: place_pods(self.store), self.kubelet.take_care, self._collect):
                try:
                    step()
                except ApiError:  # something was removed meanwhile
                    continue
                except Exception as error:
                    self.errors.append(f"{type(error).__name__}: {error}")
                    raise

    def _collect(self) -> None:
        """Delete what has lost its owner, what has outlived its time, and what is in a namespace that ends."""
        for job in self._jobs.expired():
            self.delete(Key("jobs", *_name(job)))
        items = self.store.items()
        uids = {found["metadata"]["uid"] for _, found in items}
        for key, found in items:
            metadata = found["metadata"]
            owners = metadata.get("ownerReferences", ())
            is_orphan = owners and not any(owner["uid"] in uids for owner in owners)
            ends_below = any(self._ends(owner["uid"], items) for owner in owners)
            space = self.store.find(Key("namespaces", "", key.namespace)) if key.namespace else None
            is_homeless = space is not None and "deletionTimestamp" in space["metadata"]
            if (is_orphan or ends_below or is_homeless) and "deletionTimestamp" not in metadata:
                self.delete(key)
            if key.resource == "namespaces" and "deletionTimestamp" in metadata:
                if not any(other.namespace == key.name for other, _ in items):
                    self.store.remove(key)
            elif "foregroundDeletion" in metadata.get("finalizers", ()) and not self._owned(metadata["uid"]):
                self.store.remove(key)

    def _ends(self, uid: str, items: list[tuple[Key, Object]]) -> bool:
        return any(
            found["metadata"]["uid"] == uid and "foregroundDeletion" in found["metadata"].get("finalizers", ())
            for _, found in items
        )

    # faults

    def evict(self, namespace: str, pod: str) -> None:
        """The node is low on memory, and ends a pod."""
        message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 64Mi."
        tell(self.store, self.store.get(Key("pods", namespace, pod)), "Evicted", message, "kubelet", warns=True)
        self.kubelet.kill(namespace, pod, "Evicted", message)

    def kill_for_memory(self, namespace: str, pod: str) -> None:
        """A container takes more memory than its limit, and is killed."""
        self.kubelet.kill(namespace, pod, "OOMKilled")

    def lose_node(self, name: str) -> None:
        """A node falls silent: nothing reaches its pods, which go on."""
        self.kubelet.silent_nodes.add(name)
        for running in self._on(name):
            self._network.cut(running.number)
        self._set_ready(name, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")

    def find_node(self, name: str) -> None:
        """A silent node is heard again."""
        for running in self._on(name):
            self._network.cut(running.number, is_cut=False)
        self.kubelet.silent_nodes.discard(name)
        self._set_ready(name, "True", "KubeletReady", "kubelet is posting ready status")

    def freeze(self, namespace: str, pod: str, seconds: float) -> None:
        """Stop all processes of a pod for a while."""
        sandbox = self.kubelet.running(namespace, pod).sandbox
        assert sandbox is not None
        sandbox.freeze()

        def thaw() -> None:
            time.sleep(seconds)
            sandbox.freeze(is_frozen=False)

        threading.Thread(target=thaw, daemon=True).start()

    def miss_image(self, word: str) -> None:
        """From now on no image with this word in its name can be pulled; an empty word: each can be."""
        if word:
            self.kubelet.images_missing.add(word)
        else:
            self.kubelet.images_missing.clear()

    def fill_nodes(self, cpu: str) -> None:
        """Each node has so many cores only."""
        for each in self.store.of_kind("nodes"):

            def resized(found: Object) -> None:
                found["status"]["allocatable"] = {**found["status"]["allocatable"], "cpu": cpu}

            self.store.update(Key("nodes", "", each["metadata"]["name"]), resized)

    def mend(self) -> None:
        """End all faults."""
        for name in list(self.kubelet.silent_nodes):
            self.find_node(name)
        self.kubelet.images_missing.clear()
        self.fill_nodes("64")
        for each in self.store.of_kind("nodes"):
            self.store.update(Key("nodes", "", each["metadata"]["name"]), lambda found: found.update(spec={}))
        self.denied.clear()
        self._cuts.clear()
        self._away_until = 0.0

    def deny(self, verb: str, resource: str) -> None:
        """Clients may not do this any more."""
        self.denied.add((verb, resource))

    def allow(self) -> None:
        """Clients may do all again."""
        self.denied.clear()

    def cut_streams(self, after: int, times: int = 1) -> None:
        """Break the connections of the next ``kubectl exec``, so many, each after so many bytes of output."""
        self._cuts = [after] * times

    @property
    def cut_after(self) -> int | None:
        """The bytes after which the next ``exec`` is to be cut, or None."""
        return self._cuts[-1] if self._cuts else None

    def take_cut(self) -> int | None:
        """The same, of an ``exec`` that begins: it is not the next one any more."""
        return self._cuts.pop() if self._cuts else None

    def go_away(self, seconds: float) -> None:
        """The API server is not reached for a while, and all connections to it break. Pods go on."""
        self._away_until = time.monotonic() + seconds
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def connected(self, connection: socket.socket) -> Iterator[bool]:
        """While a client is connected; tells whether the API server is reached at all."""
        self._connections.add(connection)
        try:
            yield time.monotonic() >= self._away_until
        finally:
            self._connections.discard(connection)

    def rotate_log(self, namespace: str, pod: str) -> None:
        """The log begins anew; who follows it is left behind."""
        os.truncate(self.kubelet.running(namespace, pod).log, 0)

    def pass_time(self, seconds: float) -> None:
        """For the deadlines of Jobs, and the time after their end, so many seconds are over."""
        self._jobs.ahead_s += seconds

    def signal_pod(self, namespace: str, pod: str, number: int) -> None:
        """Send the first process of a pod a signal."""
        sandbox = self.kubelet.running(namespace, pod).sandbox
        assert sandbox is not None
        sandbox.send(signal.Signals(number))

    def _on(self, name: str) -> list[Any]:
        """The pods of a node."""
        found = []
        for running in list(self.kubelet.pods.values()):
            pod = self.store.find(running.key)
            if pod is not None and pod["spec"].get("nodeName") == name:
                found.append(running)
        return found

    def _set_ready(self, name: str, status: str, reason: str, message: str) -> None:
        self.store.update(Key("nodes", "", name), lambda each: set_condition(each, "Ready", status, reason, message))
        for running in self._on(name):
            if status != "True":
                self.store.update(running.key, lambda pod: set_condition(pod, "Ready", "False"))
            elif running.sandbox and not running.sandbox.ended():
                self.store.update(running.key, lambda pod: set_condition(pod, "Ready", "True"))


def _name(found: Object) -> tuple[str, str]:
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]


def _check_change(resource: Resource, old: Object, new: Object) -> None:
    """Refuse to change what is fixed. ApiError."""
    name = old["metadata"]["name"]
    if old.get("immutable"):
        for field in ("data", "binaryData", "immutable"):
            if old.get(field) != new.get(field):
                raise invalid(resource.kind, name, f"{field}: Forbidden: it is immutable")
    if resource.name == "jobs":
        for field in ("completions", "completionMode", "selector", "backoffLimitPerIndex", "template"):
            if old["spec"].get(field) != new["spec"].get(field):
                raise invalid("Job", name, f"spec.{field}: Invalid value: field is immutable")
