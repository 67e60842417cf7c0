"""The fate of each request of the embedded endpoint, drawn from a seed. Pure."""

from __future__ import annotations

import random
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.embedded.config import EndpointConfig


class Fate(Enum):
    """The fate of an accepted request."""

    ANSWER = "answer"
    ERROR = "error"
    CLOSE = "close"
    HANG = "hang"
    BREAK = "break"
    SWAP = "swap"


def fates(config: EndpointConfig) -> Callable[[], Fate]:
    """The reproducible stream of fates: the i-th call is for the i-th queued request, rejected or not."""
    draw = random.Random(f"fate:{config.seed}").random
    error = config.error_share
    close = error + config.close_share
    hang = close + config.hang_share
    broken = hang + config.break_share
    swapped = broken + config.swap_share

    def fate() -> Fate:
        drawn = draw()
        if drawn >= swapped:
            return Fate.ANSWER
        bounds = ((error, Fate.ERROR), (close, Fate.CLOSE), (hang, Fate.HANG), (broken, Fate.BREAK))
        return next((fate for bound, fate in bounds if drawn < bound), Fate.SWAP)

    return fate
