"""The payloads of a factories file's requests: chosen or built for each arrival, labelled, and the models they ask for.

Of a request that failed there is no answer to name its model.
"""

from __future__ import annotations

from json import loads  # by its name: the user's code may put another function into the module
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from inference_benchmarker.plan.model_mix import ModelMix, with_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.engine.endpoint.factories_file import Endpoint
    from inference_benchmarker.engine.worker.canaries import Canaries
    from inference_benchmarker.engine.worker.in_flight import Slot
    from inference_benchmarker.records.names import Names

MOST_EACH = 1 << 16  # characters that are parsed with each failure: at most half a millisecond or so
MOST_ONCE = 1 << 20  # those of a payload that is remembered
_NAME = '"model"'


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


class AskingModels:
    """Has each arrival ask the model that a mix says, and labels it so; ``canaries`` have theirs already."""

    def __init__(self, mix: ModelMix, seed: int, labels: Names, canaries: Canaries | None) -> None:
        self._mix = mix
        self._seed = seed
        self._labels = labels
        self._canaries = canaries

    def among(self, payload: Callable[[Slot], Any]) -> Callable[[Slot], Any]:
        """The payloads of slots, each with its model."""

        def asking(slot: Slot) -> Any:
            found = payload(slot)
            assert slot.arrival is not None
            number = slot.arrival.index
            if self._canaries is not None and self._canaries.is_one(number):
                return found
            model = self._mix.choose(self._seed, number)
            own = self._labels.name(slot.label)
            slot.label = self._labels[f"{model}, {own}" if own else model]
            return with_model(found, model)

        return asking


def requested_model(payload: Any, most: int = MOST_EACH) -> str:
    """The ``model`` of a payload that is an object, or its JSON of ``most`` characters; else nothing.

    A payload may be anything.
    """
    try:
        body = payload if isinstance(payload, dict) else _parsed(payload, most)
        model = body.get("model") if isinstance(body, dict) else None
    except BaseException:  # of a class of the user's
        return ""
    return model if type(model) is str else ""


def _parsed(payload: Any, most: int) -> Any:
    if not isinstance(payload, (bytes, bytearray, str)) or len(payload) > most or payload[:1] not in (b"{", "{"):
        return None
    name: Any = _NAME if isinstance(payload, str) else _NAME.encode()
    return loads(payload) if name in payload else None  # a tensor takes many times as long to parse as to look through
