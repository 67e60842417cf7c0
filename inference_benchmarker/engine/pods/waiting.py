"""Waits until the pods of a wave have started, or says in the cluster's own words why they do not."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.pods.kubectl import KubectlError
from inference_benchmarker.engine.pods.states import of_index, states_in
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.text import said

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.engine.pods.kubectl import Kubectl
    from inference_benchmarker.engine.pods.pods import Pods
    from inference_benchmarker.engine.pods.states import PodState

_POLL_S = 1.0
_WORDS = 400
_BY_TIME = "--sort-by=.lastTimestamp"
_REFUSED = "forbidden"  # by a quota or by Pod Security: the Job tries again, in vain


def await_pods(kubectl: Kubectl, pods: Pods, selector: str, patience_s: float, tell: Callable[[str], None]) -> None:
    """Return once every pod has started, or the first one has ended.

    BenchmarkError where one cannot start, or has not within so many seconds.
    """
    deadline, last, unanswered = time.monotonic() + patience_s, "", ""
    while True:
        why = hopeless = ""
        try:
            states = states_in(kubectl.read("pods", f"--selector={selector}"))
        except KubectlError as error:
            unanswered, states = str(error), []
        else:
            unanswered = ""
            first = of_index(states, 0)
            if (first is not None and first.is_over) or _have_started(states, pods):
                return
            why, hopeless = _why(kubectl, pods, states)
        if hopeless:
            raise BenchmarkError(f"{_capital(hopeless)}.")
        if time.monotonic() > deadline:
            started = sum(state.has_started for state in states)
            reason = unanswered or why or "the cluster says no reason"
            raise BenchmarkError(
                f"{started} of {pods.pods + 1} pods have started within {patience_s:g} s (--join-timeout): {reason}."
            )
        if why and why != last:
            last = why
            tell(f"Waiting: {why}.")
        time.sleep(_POLL_S)


def _have_started(states: Sequence[PodState], pods: Pods) -> bool:
    return {state.index for state in states if state.has_started} >= {*range(pods.pods + 1)}


def _why(kubectl: Kubectl, pods: Pods, states: Sequence[PodState]) -> tuple[str, str]:
    """Why the pods have not started, and the reason for which one never will; empty where there is none."""
    waiting = [state for state in states if not state.has_started]
    never = [state for state in waiting if state.is_hopeless]
    if never:
        return never[0].sentence, never[0].sentence
    if len(states) <= pods.pods and (refused := _last_warning(kubectl, "Job", pods.job)):
        sentence = f"the Job {pods.job} cannot make its pods: {refused}"
        return sentence, sentence if _REFUSED in refused else ""
    known = [state for state in waiting if state.waits_for]
    return (known[0].sentence if known else ""), ""


def _last_warning(kubectl: Kubectl, kind: str, name: str) -> str:
    """The last warning among an object's events; nothing where the user may not read events."""
    selector = f"involvedObject.kind={kind},involvedObject.name={name},type=Warning"
    with suppress(KubectlError):
        found: list[dict[str, Any]] = (
            kubectl.read("events", f"--field-selector={selector}", _BY_TIME).get("items") or []
        )
        messages = [each.get("message") for each in found if isinstance(each, dict)]
        return next((said(each, _WORDS).rstrip(".") for each in reversed(messages) if isinstance(each, str)), "")
    return ""


def _capital(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}"
