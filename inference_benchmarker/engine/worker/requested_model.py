"""The model that a payload asks for: of a request that failed there is no answer to name it; or one of a mix."""

from __future__ import annotations

from json import loads  # by its name: the user's code may put another function into the module
from typing import TYPE_CHECKING, Any

from inference_benchmarker.plan.model_mix import ModelMix, with_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.engine.worker.canaries import Canaries
    from inference_benchmarker.engine.worker.in_flight import Slot
    from inference_benchmarker.records.names import Names

MOST_EACH = 1 << 16  # characters that are parsed with each failure: at most half a millisecond or so
MOST_ONCE = 1 << 20  # those of a payload that is remembered
_NAME = '"model"'


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
