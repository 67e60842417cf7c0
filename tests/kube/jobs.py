"""The controller of Jobs: it makes their pods, counts how they end, and says how the Job ends."""

from __future__ import annotations

import copy
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.kube.admission import admit_pod
from tests.kube.errors import ApiError
from tests.kube.events import set_condition, tell
from tests.kube.kubelet import OVER, is_ready
from tests.kube.store import Key, now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.kube.store import Object, Store

INDEX = "batch.kubernetes.io/job-completion-index"
NAME = "batch.kubernetes.io/job-name"
UID = "batch.kubernetes.io/controller-uid"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_BACKOFF_S = 10.0
_REFUSED_AGAIN_S = 1.0
_CONTROLLER = "job-controller"
_End = tuple[str, str, str]
_LATE: _End = ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")


@dataclass(slots=True)
class _Tally:
    """What is known of a Job's pods by their uid: their ``indexes``, and of those that have ended whether ``well``."""

    indexes: dict[str, int] = field(default_factory=dict)
    well: dict[str, bool] = field(default_factory=dict)
    ignored: set[str] = field(default_factory=set)
    again_at: float = 0.0
    began_at: float = 0.0
    ended_at: float | None = None

    def failures(self, index: int | None = None) -> int:
        """How many pods have failed, of an index or of all."""
        failed = (uid for uid, is_well in self.well.items() if not is_well and uid not in self.ignored)
        return sum(index in (None, self.indexes[uid]) for uid in failed)

    def succeeded(self) -> set[int]:
        """The indexes that are done."""
        return {self.indexes[uid] for uid, is_well in self.well.items() if is_well}


class Jobs:
    """Brings all Jobs one step on. ``delete_pod`` asks a pod to end; ``ahead_s``: by which its clock is ahead."""

    def __init__(self, store: Store, delete_pod: Callable[[Object], object]) -> None:
        self._store, self._delete_pod = store, delete_pod
        self._tallies: dict[str, _Tally] = {}
        self._seen = 0
        self.ahead_s = 0.0

    def step(self) -> None:
        """Look at each of them."""
        self._note_removed()
        for job in self._store.of_kind("jobs"):
            if "deletionTimestamp" not in job["metadata"]:
                self._look_at(job)

    def expired(self) -> list[Object]:
        """Those whose time after their end is over."""
        found = []
        for job in self._store.of_kind("jobs"):
            after, ended_at = job["spec"].get("ttlSecondsAfterFinished"), self._tally(job).ended_at
            if after is not None and ended_at is not None and self._now() >= ended_at + after:
                found.append(job)
        return found

    def _now(self) -> float:
        return time.monotonic() + self.ahead_s

    def _tally(self, job: Object) -> _Tally:
        return self._tallies.setdefault(job["metadata"]["uid"], _Tally())

    def _note_removed(self) -> None:
        """Count pods that were removed since the last step by how they had ended; one that had not has failed."""
        changes = self._store.since(self._seen)
        for change in changes:
            self._seen = change.version
            if change.kind == "DELETED" and change.key.resource == "pods":
                uid = change.found["metadata"]["uid"]
                for tally in self._tallies.values():
                    if uid in tally.indexes:
                        tally.well.setdefault(uid, change.found["status"].get("phase") == "Succeeded")

    def _look_at(self, job: Object) -> None:
        tally, spec = self._tally(job), job["spec"]
        pods = self._pods(job)
        for pod in pods:
            if pod["status"].get("phase") in OVER:
                tally.well.setdefault(pod["metadata"]["uid"], pod["status"]["phase"] == "Succeeded")
        if tally.ended_at is not None:
            return
        living = [pod for pod in pods if pod["metadata"]["uid"] not in tally.well]
        if spec.get("suspend"):
            self._suspend(job, living, tally)
            return
        if not job["status"].get("startTime"):
            self._begin(job, tally)
        deadline = spec.get("activeDeadlineSeconds")
        if deadline is not None and self._now() > tally.began_at + deadline:
            self._end(job, living, tally, _LATE)
        elif (end := _end_of(spec, tally)) is not None:
            self._end(job, living, tally, end)
        else:
            self._make_pods(job, living, tally)
            self._report(job, tally)

    def _suspend(self, job: Object, living: Iterable[Object], tally: _Tally) -> None:
        for pod in living:
            tally.ignored.add(pod["metadata"]["uid"])
            self._delete_pod(pod)

        def suspended(found: Object) -> None:
            found["status"].pop("startTime", None)
            set_condition(found, "Suspended", "True", "JobSuspended", "Job suspended")

        if not _has(job, "Suspended", "True"):
            self._store.update(_key(job), suspended)
            tell(self._store, job, "Suspended", "Job suspended", _CONTROLLER)
        self._report(job, tally)

    def _begin(self, job: Object, tally: _Tally) -> None:
        tally.began_at = self._now()
        was_suspended = _has(job, "Suspended", "True")

        def begun(found: Object) -> None:
            found["status"]["startTime"] = now()
            if was_suspended:
                set_condition(found, "Suspended", "False", "JobResumed", "Job resumed")

        self._store.update(_key(job), begun)
        if was_suspended:
            tell(self._store, job, "Resumed", "Job resumed", _CONTROLLER)

    def _make_pods(self, job: Object, living: list[Object], tally: _Tally) -> None:
        """A pod for each index that is not done and has none, as many as may run at the same time."""
        spec = job["spec"]
        held, done = {tally.indexes[pod["metadata"]["uid"]] for pod in living}, tally.succeeded()
        limit = spec.get("backoffLimitPerIndex")
        places = spec["parallelism"] - len(living)
        for index in range(spec["completions"]):
            is_failed = limit is not None and tally.failures(index) > limit
            if places <= 0 or self._now() < tally.again_at:
                return
            if index in held or index in done or is_failed:
                continue
            if failures := tally.failures(index):
                tally.again_at = self._now() + _BACKOFF_S * 2 ** (failures - 1)
            places -= 1
            try:
                pod = self._store.create("pods", admit_pod(self._store, _pod_of(job, index)))
            except ApiError as error:
                tally.again_at = self._now() + _REFUSED_AGAIN_S
                tell(self._store, job, "FailedCreate", f"Error creating: {error}", _CONTROLLER, warns=True)
                return
            tally.indexes[pod["metadata"]["uid"]] = index
            tell(self._store, job, "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}", _CONTROLLER)

    def _end(self, job: Object, living: Iterable[Object], tally: _Tally, end: _End) -> None:
        kind, reason, message = end
        tally.ended_at = self._now()
        for pod in living:
            self._delete_pod(pod)
            tally.well.setdefault(pod["metadata"]["uid"], False)
        self._report(job, tally)

        def ended(found: Object) -> None:
            before = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[kind]
            set_condition(found, before, "True", reason, message)
            set_condition(found, kind, "True", reason, message)
            if kind == "Complete":
                found["status"]["completionTime"] = now()

        self._store.update(_key(job), ended)
        is_well = kind == "Complete"
        tell(self._store, job, "Completed" if is_well else reason, message, _CONTROLLER, warns=not is_well)

    def _report(self, job: Object, tally: _Tally) -> None:
        """Write the numbers into its status."""
        limit = job["spec"].get("backoffLimitPerIndex")
        pods = [pod for pod in self._pods(job) if pod["metadata"]["uid"] not in tally.well]
        terminating = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
        active = [pod for pod in pods if pod not in terminating]
        numbers: dict[str, Any] = {
            "active": len(active),
            "ready": sum(map(is_ready, active)),
            "terminating": len(terminating),
            "succeeded": len(tally.succeeded()),
            "failed": tally.failures(),
            "uncountedTerminatedPods": {},
        }
        if job["spec"].get("completionMode") == "Indexed":
            numbers["completedIndexes"] = _ranges(tally.succeeded())
            if limit is not None:
                failed = {index for index in {*tally.indexes.values()} if tally.failures(index) > limit}
                numbers["failedIndexes"] = _ranges(failed)
        self._store.update(
            _key(job),
            lambda found: found["status"].update({k: v for k, v in numbers.items() if v or k in found["status"]}),
        )

    def _pods(self, job: Object) -> list[Object]:
        uid = job["metadata"]["uid"]
        return [
            pod
            for pod in self._store.of_kind("pods", job["metadata"]["namespace"])
            if any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences", ()))
        ]


def _end_of(spec: dict[str, Any], tally: _Tally) -> _End | None:
    """The kind, the reason and the message of the Job's end, or None."""
    limit, done = spec.get("backoffLimitPerIndex"), tally.succeeded()
    if len(done) >= spec["completions"]:
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    if limit is None:
        if tally.failures() > spec["backoffLimit"]:
            return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        return None
    failed = {index for index in range(spec["completions"]) if tally.failures(index) > limit and index not in done}
    if len(failed) > spec.get("maxFailedIndexes", spec["completions"]):
        return "Failed", "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    if failed and len(failed) + len(done) >= spec["completions"]:
        return "Failed", "FailedIndexes", "Job has failed indexes"
    return None


def _pod_of(job: Object, index: int) -> Object:
    """The pod of an index."""
    metadata, template = job["metadata"], copy.deepcopy(job["spec"]["template"])
    is_indexed = job["spec"].get("completionMode") == "Indexed"
    stem = f"{metadata['name']}-{index}" if is_indexed else metadata["name"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
    made = template.setdefault("metadata", {})
    made |= {
        "name": f"{stem}-{''.join(random.choices(_LETTERS, k=5))}",
        "generateName": f"{stem}-",
        "namespace": metadata["namespace"],
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    spec = template["spec"]
    if is_indexed:
        made.setdefault("labels", {})[INDEX] = str(index)
        made.setdefault("annotations", {})[INDEX] = str(index)
        spec.setdefault("hostname", stem)
        variable = {"name": "JOB_COMPLETION_INDEX", "value": str(index)}
        for container in spec["containers"]:
            container["env"] = [*container.get("env", ()), variable]
    return {"apiVersion": "v1", "kind": "Pod", **template}


def _ranges(numbers: Iterable[int]) -> str:
    """As in ``0,1,3-5``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(",".join(map(str, part)) if len(part) < 3 else f"{part[0]}-{part[-1]}" for part in parts)


def _has(job: Object, kind: str, status: str) -> bool:
    return any(each["type"] == kind and each["status"] == status for each in job["status"].get("conditions", ()))


def _key(job: Object) -> Key:
    return Key("jobs", job["metadata"]["namespace"], job["metadata"]["name"])
