"""The sessions that arrivals begin: what a slot sends for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from inference_benchmarker.engine.worker.conversations import Conversations, TurnRequests
from inference_benchmarker.engine.worker.in_flight import OneKind
from inference_benchmarker.engine.worker.invocation import Invocation
from inference_benchmarker.engine.worker.payloads import AskingModels, KeptPayloads, Payloads
from inference_benchmarker.engine.worker.requests import Requests
from inference_benchmarker.engine.worker.retrying import Retrying

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.engine.endpoint.expected import AnswerCheck
    from inference_benchmarker.engine.endpoint.factories_file import Endpoint
    from inference_benchmarker.engine.worker.canaries import Canaries, Checks
    from inference_benchmarker.engine.worker.in_flight import Slot
    from inference_benchmarker.engine.worker.requests import Attempt, Report, Turn
    from inference_benchmarker.plan.model_mix import ModelMix
    from inference_benchmarker.plan.retries import Retries
    from inference_benchmarker.plan.think import Think
    from inference_benchmarker.records.batch_writer import BatchWriter


class Sessions(Protocol):
    """Serves arrivals: a scheduler hands each to a slot, which goes through its session. ``requests`` has the books.

    ``kinds``: how many kinds of slots there are; only one of an arrival's ``kind`` serves it.
    """

    kinds: int

    @property
    def requests(self) -> Requests:
        """The books."""

    def kind(self, index: int) -> int:
        """The kind of slot that serves this arrival."""

    def closed_kinds(self, concurrency: int) -> list[int]:
        """The kind of each of a closed loop's slots."""

    def serve(self, slot: Slot) -> None:
        """A slot's life: one arrival after the other, as its ``take`` gives them."""


class SingleTurns(OneKind):
    """Sessions of one turn, which any slot serves."""

    def __init__(self, requests: Requests, turn: Turn, attempt: Attempt) -> None:
        self.requests = requests
        self._turn = turn
        self._attempt = attempt

    def serve(self, slot: Slot) -> None:
        """Send one request after the other, as arrivals are handed over."""
        take, turn, attempt = slot.take, self._turn, self._attempt
        while (arrival := take()) is not None:
            turn(slot, arrival, attempt)


def _numbered(
    session: Callable[..., Any], first: int, row_of: Callable[[int], dict[str, Any]] | None
) -> Callable[[int], Any]:
    """The sessions of a file, each given its recorded conversation where there are some.

    ``first``: the number of session 0, so that waves in a row do not send the same; those of the warm-up count down.
    """

    def begun(number: int) -> Any:
        own = number + first if number >= 0 else number - first
        return session(own) if row_of is None else session(own, row_of(own))

    return begun


def invoke_sessions(
    endpoint: Endpoint,
    seed: int,
    report: Report,
    writer: BatchWriter,
    *,
    timeout_s: float | None = None,
    retries: Retries | None = None,
    row_of: Callable[[int], dict[str, Any]] | None = None,
    on_failure: Callable[[int, str, BaseException], None] | None = None,
    think: Think | None = None,
    check: AnswerCheck | None = None,
    canaries: Canaries | None = None,
    mix: ModelMix | None = None,
) -> Sessions:
    """The sessions of a factories file: a request for each arrival, or the turns of its sessions.

    They are tried again where ``retries`` say so. ``timeout_s`` bounds a turn with all its attempts; ``think`` draws
    the time before each that does not say it; ``check`` checks answers against what is expected of them, and
    ``canaries`` take the place of some arrivals; the others ask the models of a ``mix``; see ``Requests`` and
    ``Payloads`` for the rest.
    """
    asking = None if mix is None else AskingModels(mix, seed, writer.labels, canaries)
    checks = None if check is None and canaries is None else _checks(check, canaries, writer)
    bound_s = timeout_s if retries is None else None  # else it is the turn's
    if endpoint.session is not None:
        turns = TurnRequests(report, writer, bound_s, on_failure=on_failure, check=checks)
        session = _numbered(endpoint.session, endpoint.first, row_of)
        session = session if canaries is None else canaries.among_sessions(session)
        conversations = Conversations(session, turns, seed, think)
        turn = turns.execute if retries is None else Retrying(turns, seed, retries, timeout_s).execute
        payload = conversations.payload if asking is None else asking.among(conversations.payload)
        invocation = Invocation(endpoint.invoke, payload, turns, heard=True)
        conversations.send_by(turn, invocation.attempt)
        return conversations
    payloads = Payloads(endpoint, seed, writer.labels, row_of)
    requests = Requests(
        report, writer, bound_s, requested_model=payloads.requested_model, on_failure=on_failure, check=checks
    )
    payload = payloads.payload if asking is None else asking.among(payloads.payload)
    payload = payload if canaries is None else canaries.among_payloads(payload, writer.labels)
    payload = payload if retries is None else KeptPayloads(payload).payload
    invocation = Invocation(endpoint.invoke, payload, requests, keeps_answers=checks is not None)
    if retries is None:
        return SingleTurns(requests, requests.execute, invocation.attempt)
    return SingleTurns(requests, Retrying(requests, seed, retries, timeout_s).execute, invocation.attempt)


def _checks(check: AnswerCheck | None, canaries: Canaries | None, writer: BatchWriter) -> Checks:
    """The checks of a wave that has some: what they import would be loaded by every worker otherwise."""
    from inference_benchmarker.engine.worker.canaries import Checks

    return Checks(check, canaries, writer)
