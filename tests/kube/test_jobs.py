"""Jobs come to the end that Kubernetes gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.case import case
from tests.kube.conftest import wait_until
from tests.kube.made import indexed, job

if TYPE_CHECKING:
    from tests.kube.cluster import Cluster
    from tests.kube.kubectl import Kubectl

pytestmark = pytest.mark.process

BY_INDEX = "exit $JOB_COMPLETION_INDEX"


def ended(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """The status of a Job that has ended; ``end`` and ``why`` are its kind and its reason."""

    def end() -> dict[str, Any] | None:
        status = kubectl.object("job", name)["status"]
        for each in status.get("conditions", ()):
            if each["type"] in ("Complete", "Failed") and each["status"] == "True":
                return {**status, "end": each["type"], "why": each["reason"]}
        return None

    wait_until(end)
    found = end()
    assert found is not None
    return found


def test_a_job_ends_by_its_pods(kubectl: Kubectl) -> None:
    two = indexed(2)
    rows: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "well": (job("well", "true", **two), {"end": "Complete", "succeeded": 2, "completedIndexes": "0,1"}),
        "one-fails": (job("one-fails", BY_INDEX, **two), {"why": "BackoffLimitExceeded"}),
        "by-index": (
            job("by-index", BY_INDEX, **indexed(3), backoffLimit=9, backoffLimitPerIndex=0),
            {"why": "FailedIndexes", "completedIndexes": "0", "failedIndexes": "1,2"},
        ),
        "late": (job("late", "sleep 60", activeDeadlineSeconds=1), {"why": "DeadlineExceeded", "failed": 1}),
    }
    kubectl.create(*(made for made, _ in rows.values()))
    for name, (_, expected) in rows.items():
        with case(name):
            status = ended(kubectl, name)
            assert {field: status.get(field) for field in expected} == expected


@pytest.mark.slow
def test_a_suspended_job_has_no_pods_until_it_is_resumed(kubectl: Kubectl) -> None:
    kubectl.create(job("load", "sleep 60", suspend=True, **indexed(2)))
    kubectl("wait", "--for=condition=Suspended", "job/load")
    assert kubectl("get", "pods", "--output=name") == ""
    kubectl("patch", "job", "load", "--type=merge", '--patch={"spec": {"suspend": false}}')
    wait_until(lambda: kubectl.object("job", "load")["status"].get("ready") == 2)
    kubectl("patch", "job", "load", "--type=merge", '--patch={"spec": {"suspend": true}}')
    wait_until(lambda: kubectl("get", "pods", "--output=name") == "")
    assert kubectl.object("job", "load")["status"].get("failed", 0) == 0


def test_a_job_whose_time_is_over_is_removed_with_its_pods(kubectl: Kubectl, cluster: Cluster) -> None:
    kubectl.create(job("short", "true", ttlSecondsAfterFinished=3600))
    assert ended(kubectl, "short")["end"] == "Complete"
    cluster.pass_time(3601)
    wait_until(lambda: kubectl("get", "pods,jobs", "--output=name") == "")
