"""The payloads of a factories file's requests: chosen or built for each arrival, and labelled."""

from __future__ import annotations

from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.worker.requested_model import MOST_ONCE, requested_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.engine.endpoint.factories_file import Endpoint
    from inference_benchmarker.engine.worker.in_flight import Slot
    from inference_benchmarker.records.names import Names


class Payloads:
    """Gives the payload of each request, in hand before it is sent. ``row_of``: that of a recording, by arrival."""

    def __init__(
        self,
        endpoint: Endpoint,
        seed: int,
        labels: Names,
        row_of: Callable[[int], dict[str, Any]] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._seed = seed
        self._labels = labels
        self._row_of = row_of
        self._takes_number = endpoint.takes_number
        self._known_labels: dict[int, int] = {}
        self._known_models: dict[int, str] = {}

    def payload(self, slot: Slot) -> Any:
        """The payload of a slot's arrival, and its label; building one is timed apart."""
        endpoint = self._endpoint
        if endpoint.payloads is None:
            return self._built(slot)
        assert slot.arrival is not None
        which = endpoint.choose(self._seed, slot.arrival.index)
        payload = endpoint.payloads[which]
        if endpoint.label is not None:
            slot.label = self._label_of(which, payload)
        return payload

    def requested_model(self, slot: Slot) -> str:
        """The model that a request asks for; a pre-computed one is read once: failures come at the rate of the load."""
        if self._endpoint.payloads is None or slot.arrival is None:
            return requested_model(slot.payload)
        which = self._endpoint.choose(self._seed, slot.arrival.index)
        if which not in self._known_models:
            self._known_models[which] = requested_model(slot.payload, MOST_ONCE)
        return self._known_models[which]

    def _built(self, slot: Slot) -> Any:
        build, label = self._endpoint.build, self._endpoint.label
        assert build is not None
        begun = monotonic_ns()
        try:
            payload = build(*self._rows(slot), **self._number(slot))
            if label is not None:
                slot.label = self._labels[str(label(payload))]
        finally:
            slot.build_ns = monotonic_ns() - begun
        return payload

    def _rows(self, slot: Slot) -> tuple[dict[str, Any], ...]:
        """The row of the recording that the arrival is for, where one is replayed."""
        assert slot.arrival is not None
        return () if self._row_of is None else (self._row_of(slot.arrival.index),)

    def _number(self, slot: Slot) -> dict[str, int]:
        assert slot.arrival is not None
        return {"number": slot.arrival.index} if self._takes_number else {}

    def _label_of(self, which: int, payload: Any) -> int:
        """The label of a pre-computed payload, asked for once."""
        known = self._known_labels.get(which)
        if known is None:
            assert self._endpoint.label is not None
            known = self._known_labels[which] = self._labels[str(self._endpoint.label(payload))]
        return known


class KeptPayloads:
    """Gives every attempt of an arrival the payload and label of its first: what is tried again is the same request."""

    def __init__(self, payload: Callable[[Slot], Any]) -> None:
        self._payload = payload

    def payload(self, slot: Slot) -> Any:
        """The payload of a slot's attempt; the slot keeps it."""
        if not slot.attempt:
            slot.kept = self._payload(slot), slot.label
        assert slot.kept is not None
        payload, slot.label = slot.kept
        return payload
