"""Values of the user's own: what ``Response(metrics={"cache_hit": 1.0})`` says of a request, by name. Pure.

A worker reports each as the row of its request in the batch, the number of its name and a float. In the table of all
requests each name is a column, ``metric.<name>``.
"""

from __future__ import annotations

import struct
from math import isfinite
from typing import TYPE_CHECKING, Any

from inference_benchmarker.words.redact import written

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST_METRICS = 32
"""Different names of a worker's requests."""
MOST_NAME = 64
PREFIX = "metric."
MOST_VALUE = 1e100  # whose square is a float, too
CACHED_TOKENS, REASONING_TOKENS = "cached_tokens", "reasoning_tokens"
"""Of a prompt what the server had in its cache, and of an answer what the model thought."""
PIECES = "pieces"
"""The pieces of a stream whose tokens were counted piece by piece, and which had several in one."""
CANARY_DIFFERS, CANARY_SWAPPED = "canary_differs", "canary_swapped"
"""1 where the answer to a canary is another than it was alone, and where a request got another one's answer."""
METRIC = struct.Struct("<IBd")
"""Row, number of the name, value."""
FIRST_ANSWER = 255
"""In place of the number of a name: the value is how long after its first piece a stream that began with reasoning had
the first one of its answer, in ns; below 0 where it had none. It is no metric, and has a column of its own."""


class TooManyMetricsError(Exception):
    """A request reported a metric by a new name, and as many names as a wave may have are taken."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Response(metrics=...) has {name!r}, and {MOST_METRICS} other names came before; a name stands for all "
            "requests, so what differs between them belongs into its value"
        )


class MetricNumbers(dict[str, int]):
    """Numbers for the names of metrics, from 0 on, in the order in which they come."""

    def take_up(self, names: Iterable[str]) -> None:
        """Number those that are new; TooManyMetricsError for one above the limit."""
        for name in names:
            if name not in self:
                if len(self) >= MOST_METRICS:
                    raise TooManyMetricsError(name)
                self[name] = len(self)


def is_metric_name(name: Any) -> bool:
    """Tells whether metrics can be called so: ASCII letters, digits and _, no digit first, 64 characters at most."""
    return type(name) is str and name.isidentifier() and name.isascii() and len(name) <= MOST_NAME


def check_metric_names(names: Any) -> None:
    """Raise ValueError for what are no names of a worker's metrics."""
    if type(names) is not list or not all(map(is_metric_name, names)):
        raise ValueError("metrics whose names are none")
    if len(names) > MOST_METRICS or len(set(names)) < len(names):
        raise ValueError(f"{len(names)} metrics of a worker, {len(set(names))} of them different")


def checked_metrics(fields: Mapping[str, Any]) -> dict[str, float]:
    """A copy with floats, without those that are None. TypeError for what is no name or no finite number."""
    found: dict[str, float] = {}
    try:
        for name, value in fields.items():
            if not is_metric_name(name):
                raise _misnamed(name)
            if value is not None:
                found[name] = (
                    value if type(value) is float and -MOST_VALUE < value < MOST_VALUE else _number(name, value)
                )
    except AttributeError:
        raise TypeError(f"Response(metrics=...) must be a dictionary of numbers, not {written(fields)}") from None
    return found


def _misnamed(name: Any) -> TypeError:
    return TypeError(
        f"Response(metrics=...) has a name {written(name)}; expected ASCII letters, digits and _, no digit first, "
        f"{MOST_NAME} characters at most"
    )


def _number(name: str, value: Any) -> float:
    """A number of another type than float, as numpy's are, as one; true is 1."""
    expected = f"Response(metrics={{{name!r}: ...}}) must be a finite number within ±{MOST_VALUE:g}"
    if not (hasattr(type(value), "__float__") or hasattr(type(value), "__index__")):
        raise TypeError(f"{expected}, not {written(value)}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{expected}, not {written(value)}") from None
    if not (isfinite(number) and abs(number) < MOST_VALUE):
        raise TypeError(f"{expected}, not {number!r}")
    return number
