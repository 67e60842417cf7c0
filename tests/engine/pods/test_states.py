"""The states of pods as the API tells them."""

from __future__ import annotations

from typing import Any

from inference_benchmarker.engine.pods.objects import INDEX
from inference_benchmarker.engine.pods.states import PodState, of_index, states_in
from tests.case import case

SCHEDULER = "0/5 nodes are available: 5 Insufficient cpu. preemption: 0/5 nodes are available."


def pod(index: int, phase: str = "Pending", **status: Any) -> dict[str, Any]:
    """A pod as ``kubectl get pods -o json`` prints it."""
    name = f"load-{index}-x7k2p"
    return {
        "metadata": {"name": name, "labels": {INDEX: str(index)}},
        "spec": {},
        "status": {"phase": phase, **status},
    }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    words = {"message": message} if message else {}
    return {"containerStatuses": [{"name": "benchmark", "state": {"waiting": {"reason": reason, **words}}}]}


def terminated(code: int, reason: str) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "benchmark", "state": {"terminated": {"exitCode": code, "reason": reason}}}]}


def state(made: dict[str, Any]) -> PodState:
    (found,) = states_in({"items": [made]})
    return found


def test_a_pod_that_waits_says_why_and_whether_for_ever() -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": SCHEDULER}
    scheduled = {"type": "PodScheduled", "status": "True"}
    backing_off = 'Back-off pulling image "nowhere/x:1": ErrImagePull: not found'
    rows: dict[str, tuple[dict[str, Any], str, bool]] = {
        "unscheduled": ({"conditions": [unscheduled]}, f"it cannot be scheduled ({SCHEDULER})", False),
        "just made": ({}, "", False),
        "being made": (waiting("ContainerCreating"), "ContainerCreating", False),
        "first pull failed": (waiting("ErrImagePull", "EOF"), "its image cannot be pulled (ErrImagePull: EOF)", False),
        "no image": (
            {"conditions": [scheduled], **waiting("ImagePullBackOff", backing_off)},
            f"its image cannot be pulled (ImagePullBackOff: {backing_off})",
            True,
        ),
        "no Secret": (
            waiting("CreateContainerConfigError", 'secret "load" not found'),
            'CreateContainerConfigError: secret "load" not found',
            True,
        ),
    }
    for name, (status, why, is_hopeless) in rows.items():
        with case(name):
            found = state(pod(1, **status))
            assert (found.has_started, found.waits_for, found.is_hopeless) == (False, why, is_hopeless)


def test_a_pod_that_ended_says_how() -> None:
    rows: dict[str, tuple[dict[str, Any], bool, int | None, str]] = {
        "runs": (pod(0, "Running"), False, None, ""),
        "done": (pod(0, "Succeeded", **terminated(0, "Completed")), True, 0, "Completed"),
        "killed": (pod(0, "Failed", **terminated(137, "OOMKilled")), True, 137, "OOMKilled"),
        "evicted": (pod(0, "Failed", reason="Evicted", message="The node was low on memory."), True, None, "Evicted"),
    }
    for name, (made, is_over, code, reason) in rows.items():
        with case(name):
            found = state(made)
            assert (found.has_started, found.is_over, found.code, found.ended_by) == (True, is_over, code, reason)
    assert state(rows["killed"][0]).end == "OOMKilled, exit code 137"


def test_pods_come_by_their_index_and_one_without_is_last() -> None:
    stray = {"metadata": {"name": "stray"}, "status": {"phase": "Running"}}
    found = states_in({"items": [stray, pod(10), pod(2), pod(0)]})
    assert [each.index for each in found] == [0, 2, 10, None]
    assert of_index(found, 2) == found[1]
    assert of_index(found, 1) is None


def test_what_is_no_list_of_pods_is_none() -> None:
    strange: list[dict[str, Any]] = [{}, {"items": None}, {"items": "x"}, {"items": [1, None]}]
    for each in strange:
        with case(each):
            assert states_in(each) == []
    statuses: list[Any] = [None, [], {"containerStatuses": [{"state": []}], "conditions": [3]}]
    for status in statuses:
        with case(status):
            assert not state({"metadata": {"name": "x"}, "status": status}).has_started
