"""The states of a wave's pods, as the API tells them: which wait and why, and how the first one ended. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.pods.objects import INDEX
from inference_benchmarker.words.text import said

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WORDS = 400  # characters of what the cluster says
_NO_IMAGE = ("ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_IMAGE = ("ErrImagePull", *_NO_IMAGE)
_NEVER = ("CreateContainerConfigError", "RunContainerError")
_UNSTARTED = ("Pending", "Unknown", "")


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod. ``index``: its number in the Job. ``waits_for``: why it has not started, in the cluster's words.

    ``is_hopeless``: it will not start by waiting longer. ``code``: of its container, once that has ended;
    ``ended_by``: the reason of that end (OOMKilled, Evicted, Error, Completed).
    """

    name: str
    index: int | None
    node: str = ""
    has_started: bool = False
    waits_for: str = ""
    is_hopeless: bool = False
    is_over: bool = False
    code: int | None = None
    ended_by: str = ""

    @property
    def sentence(self) -> str:
        """Why it has not started."""
        return f"pod {self.name} has not started: {self.waits_for or 'the cluster says no reason'}"

    @property
    def end(self) -> str:
        """The reason and the exit code of its end."""
        parts = [self.ended_by] if self.ended_by else []
        parts += [] if self.code is None else [f"exit code {self.code}"]
        return ", ".join(parts) or "the cluster says no reason"


def states_in(found: dict[str, Any]) -> list[PodState]:
    """The pods of a list, by their index."""
    states = [_state(each) for each in _list(found, "items")]
    return sorted(states, key=lambda state: (state.index is None, state.index or 0, state.name))


def of_index(states: Sequence[PodState], index: int) -> PodState | None:
    """The pod of an index."""
    return next((state for state in states if state.index == index), None)


def _state(pod: dict[str, Any]) -> PodState:
    metadata, status = _dict(pod, "metadata"), _dict(pod, "status")
    labels, phase = _dict(metadata, "labels"), _text(status, "phase")
    index = _text(labels, INDEX)
    terminated, waiting = _container(status, "terminated"), _container(status, "waiting")
    why, is_hopeless = next(_reasons(status, waiting), ("", False))
    code = terminated.get("exitCode")
    return PodState(
        name=_text(metadata, "name"),
        index=int(index) if index.isascii() and index.isdecimal() else None,
        node=_text(_dict(pod, "spec"), "nodeName"),
        has_started=phase not in _UNSTARTED,
        waits_for=why,
        is_hopeless=is_hopeless and phase in _UNSTARTED,
        is_over=bool(terminated) or phase in ("Succeeded", "Failed"),
        code=code if isinstance(code, int) else None,
        ended_by=said(_text(status, "reason") or _text(terminated, "reason"), _WORDS),
    )


def _reasons(status: dict[str, Any], waiting: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Why a pod waits, and whether that is for ever: what its container waits for, or else what the scheduler says."""
    reason, words = _text(waiting, "reason"), said(_text(waiting, "message"), _WORDS)
    if reason in _IMAGE:
        yield f"its image cannot be pulled ({reason}: {words})", reason in _NO_IMAGE
    for each in _list(status, "conditions"):
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            yield f"it cannot be scheduled ({said(_text(each, 'message') or _text(each, 'reason'), _WORDS)})", False
    if reason:
        yield f"{reason}{words and f': {words}'}", reason in _NEVER


def _container(status: dict[str, Any], what: str) -> dict[str, Any]:
    """A state of its container; empty where that is in another one."""
    return next((_dict(_dict(each, "state"), what) for each in _list(status, "containerStatuses")), {})


def _dict(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _list(value: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = value.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""
