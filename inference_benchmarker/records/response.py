"""The user's ``invoke`` may say this of an answer, beside that it came."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, Any

from inference_benchmarker.records.error_key import ordinary
from inference_benchmarker.records.user_metrics import checked_metrics
from inference_benchmarker.words.redact import written

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_COUNT = 2**53  # what a JSON number and a float hold exactly
MOST_TOKENS = 10_000_000
"""Output tokens of an answer: more generates no model, whose answers have some hundred thousand at most."""
FAILING_REASONS = frozenset(("abort", "error"))


class FinishReasonError(Exception):
    """The server gave the answer up: it says so itself, though with a status of success."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the answer ended with finish_reason {reason!r}: the server gave it up")
        self._benchmark_detail = reason


@dataclass(frozen=True, slots=True)
class Response:
    """The details of an answer, which ``invoke`` may return or yield; every field is optional.

    ``tokens_in`` and ``tokens_out`` are the server's usage figures, ``bytes`` the response size, ``model``
    the name of the model that answered, which labels the request if there is no ``label``. ``finish_reason`` is
    why the server ended its answer. ``metrics`` are numbers of your own by name: each is a column of requests.parquet
    and a row of the report; None is not reported. Raises TypeError if a number is not one, or is above 2^53, and
    FinishReasonError for the reasons ``abort`` and ``error``, so that the request fails.
    """

    tokens_in: int | None = None
    tokens_out: int | None = None
    bytes: int | None = None
    model: str | None = None
    finish_reason: str | None = None
    metrics: Mapping[str, float | None] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        for name, value in (("tokens_in", self.tokens_in), ("tokens_out", self.tokens_out), ("bytes", self.bytes)):
            if value is not None and not (type(value) is int and 0 <= value <= MAX_COUNT):
                object.__setattr__(self, name, _count(name, value))
        if self.model is not None and type(self.model) is not str:
            object.__setattr__(self, "model", ordinary(str(self.model)))
        if (reason := self.finish_reason) is not None:
            if type(reason) is not str:
                object.__setattr__(self, "finish_reason", reason := ordinary(str(reason)))
            if reason in FAILING_REASONS:
                raise FinishReasonError(reason)
        if self.metrics is not None:
            object.__setattr__(self, "metrics", checked_metrics(self.metrics) or None)

    def checked(self) -> Response:
        """One of this very class, its fields checked: those of a derived class may be anything, or not there."""
        return self if type(self) is Response else Response(*(getattr(self, name, None) for name in Response.__slots__))

    def updated(self, later: Response) -> Response:
        """With what a later one of the same stream says: some servers send the input's tokens first."""
        later = later.checked()
        said = {n: getattr(later if getattr(later, n) is not None else self, n) for n in Response.__slots__}
        if self.metrics and later.metrics:
            said["metrics"] = {**self.metrics, **later.metrics}
        return Response(**said)


def _count(name: str, value: Any) -> int:
    """A count of another type than int, as numpy's are, as one; ``name`` is of the field, for what is wrong."""
    expected = f"Response({name}=...) must be a whole number from 0 to 2**53"
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{expected}, not {written(value)}")
    number = index(value)
    if not 0 <= number <= MAX_COUNT:
        raise TypeError(f"{expected}, not {number}" if number.bit_length() < 999 else f"{expected}, not a longer one")
    return number
