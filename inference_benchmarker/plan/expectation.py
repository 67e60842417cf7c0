"""The answers that are expected: JSON, JSON of a schema, or a text in which a regular expression is found. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Literal["json", "schema", "text"]
_FORMS = "json, schema:FILE or text:REGEX"


@dataclass(frozen=True, slots=True)
class Expectation:
    """One property that every answer must have, else its request has failed.

    ``text``: as the user wrote it. ``schema``: the JSON schema that answers must keep; of a regular expression the one
    that says it, and nothing of ``json``. It stands in plan.json, so that workers on other hosts need no file.
    """

    kind: Kind
    text: str
    schema: Any = None

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
        raise BenchmarkError(f"--expect must be {_FORMS}, not {one_line(repr(text), 100)}.")

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The expectation that ``dataclasses.asdict`` described."""
        return cls(data["kind"], data["text"], data["schema"])
