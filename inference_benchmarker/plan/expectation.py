"""The answers that are expected: JSON, JSON of a schema, a text with a match, or those given before the load. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Kind = Literal["json", "schema", "text", "canary"]
_FORMS = "json, schema:FILE, text:REGEX or canary[:SHARE]"
_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Expectation:
    """One property that every answer must have, else its request has failed.

    Of ``canary`` no request fails: a share of the arrivals asks what was asked alone before, and the answers are
    compared.

    ``text``: as the user wrote it. ``schema``: the JSON schema that answers must keep; of a regular expression the one
    that says it, and nothing of ``json``. It stands in plan.json, so that workers on other hosts need no file.
    """

    kind: Kind
    text: str
    schema: Any = None
    share: float = 0.0

    @classmethod
    def parse(cls, text: str, read: Callable[[str], Any]) -> Self:
        """``json``, ``schema:FILE`` or ``text:REGEX``; ``read`` gives the JSON of a file. Raises BenchmarkError."""
        kind, colon, value = text.partition(":")
        if kind == "json" and not colon:
            return cls("json", text)
        if kind == "schema" and value:
            return cls("schema", text, read(value))
        if kind == "text" and value:
            return cls("text", text, {"pattern": value})
        if kind == "canary" and (value or not colon):
            return cls("canary", text, share=_share_of(value) if colon else _SHARE)
        raise BenchmarkError(f"--expect must be {_FORMS}, not {one_line(repr(text), 100)}.")

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The expectation that ``dataclasses.asdict`` described."""
        return cls(data["kind"], data["text"], data["schema"], data["share"])


def _share_of(text: str) -> float:
    """A share of arrivals, 0.02 or 2%. Raises BenchmarkError."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise BenchmarkError(
            f"--expect canary:SHARE must be a share of the arrivals, 2% or 0.02, not {quoted(text, 20)}."
        )
    return share


def canary_share(expectations: Iterable[Expectation]) -> float:
    """The share of arrivals that are canaries; 0: none is asked for."""
    return max((each.share for each in expectations), default=0.0)
