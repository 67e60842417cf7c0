"""The check of answers: each is checked against what is expected of it.

A check runs in the worker's loop, so its time is bounded whatever an answer holds: regular expressions are those of
Rust's automata, without look-around and back references, in schemas too, and longer answers than ``MOST_CHECKED`` have
failed unread. A schema that applies too many rules to one part of an answer is refused; its time is that of its rules,
times the parts. The rule that an answer breaks is named only where that is little work, since the library makes the
errors of all alternatives for it. It opens no file and no connection: a schema must hold all that it refers to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from inference_benchmarker.engine.endpoint.schema_work import SchemaWork
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.pieces import Answer
from inference_benchmarker.records.response import Response
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.plan.expectation import Expectation

MOST_CHECKED = {"json": 4 << 20, "schema": 1 << 18, "text": 1 << 18}  # bytes: 4 ms, and 3 or at the worst 13 ms
MOST_PATTERN = 100_000  # bytes of a compiled expression, which bound the work for each byte of an answer
MOST_STEPS = 1 << 16  # of a schema for one part of an answer, which take 0.5 ms
_MOST_EXPLAINED, _MOST_EXPLAINED_GROWING = 100_000, 2_000  # steps of an answer whose error is explained: 20 ms
_SHOWN, _LOOKED_AT = 100, 64 << 10
_DOT_ALL = re.compile(r"(?<!\\)\(\?[a-z]*s")  # the library takes it, and leaves the dot as it is
_RAW = msgspec.json.Decoder(msgspec.Raw)  # holds the syntax, and builds nothing
_VALUE = msgspec.json.Decoder()
_NO_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class UnexpectedAnswerError(Exception):
    """An answer came, with success, and is not what was expected; its key in a report names the kind of check."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self._benchmark_detail = kind


class AnswerCheck:
    """Checks answers against all that is expected of them. Raises BenchmarkError for a schema that is none."""

    def __init__(self, expectations: Sequence[Expectation]) -> None:
        self._checks = [_check_of(each) for each in expectations if each.kind != "canary"]

    def __call__(self, answer: Any) -> None:
        """Raise UnexpectedAnswerError for an answer of ``invoke`` that is not as expected."""
        said = _said(answer)
        for check in self._checks:
            check(said)


@dataclass(frozen=True, slots=True)
class _Said:
    """The text or bytes of an answer, or the JSON that the user's code has parsed; ``kind`` is for messages."""

    value: Any
    kind: str

    @property
    def text(self) -> str | None:
        """The text; None where the answer has none. Raises UnicodeDecodeError."""
        if not self.has_text:
            return None
        return self.value if isinstance(self.value, str) else self.value.decode()

    @property
    def has_text(self) -> bool:
        """Tells whether it is a text or bytes."""
        return isinstance(self.value, (str, bytes, bytearray))

    @property
    def shown(self) -> str:
        """Its beginning, without secrets."""
        if not isinstance(self.value, (str, bytes, bytearray)):
            return quoted(repr(self.value)[:_LOOKED_AT])
        seen = self.value[:_LOOKED_AT]
        return quoted(seen if isinstance(seen, str) else bytes(seen).decode("utf-8", "replace"))


def text_of(answer: Any) -> str | None:
    """The text of an answer of ``invoke``; None where it has none."""
    try:
        return _said(answer).text
    except UnicodeDecodeError:
        return None


def _said(answer: Any) -> _Said:
    kind, value = type(answer).__name__, answer
    if isinstance(answer, Answer):
        value = answer.text or b"".join(piece for piece in answer.pieces if isinstance(piece, bytes))
    elif isinstance(answer, Response):  # of a client that keeps what came
        text = getattr(answer, "text", None)
        value = getattr(answer, "content", None) if text is None else text
    return _Said(value, kind)


def _check_of(expectation: Expectation) -> Callable[[_Said], None]:
    if expectation.kind == "json":
        return _check_json
    if expectation.kind == "text":
        return _PatternCheck(expectation)
    return _SchemaCheck(expectation)


def _check_json(said: _Said) -> None:
    if isinstance(said.value, (dict, list)):
        return
    try:
        _RAW.decode(_bounded("json", said))
    except _NO_JSON as error:
        raise UnexpectedAnswerError("json", f"expected JSON ({error}), got {said.shown}") from None


class _PatternCheck:
    """The text has a place where a regular expression matches."""

    def __init__(self, expectation: Expectation) -> None:
        self._validator = _validator(expectation)
        self._pattern: str = expectation.schema["pattern"]

    def __call__(self, said: _Said) -> None:
        try:
            found = self._validator.is_valid(_bounded("text", said))
        except UnicodeDecodeError as error:
            raise UnexpectedAnswerError("text", f"expected a text ({error}), got {said.shown}") from None
        if not found:
            raise UnexpectedAnswerError("text", f"expected '{self._pattern}' in the text, got {said.shown}")


class _SchemaCheck:
    """The JSON keeps a schema."""

    def __init__(self, expectation: Expectation) -> None:
        self._validator = _validator(expectation)
        self._work = _work(expectation)

    def __call__(self, said: _Said) -> None:
        try:
            value = said.value if isinstance(said.value, (dict, list)) else _VALUE.decode(_bounded("schema", said))
        except _NO_JSON as error:
            raise UnexpectedAnswerError("schema", f"expected JSON ({error}), got {said.shown}") from None
        if not self._validator.is_valid(value):
            raise UnexpectedAnswerError("schema", f"{self._broken(value)}; the answer is {said.shown}")

    def _broken(self, value: Any) -> str:
        """The first rule of the schema that a value breaks, and the place where, if that is little work."""
        most = _MOST_EXPLAINED_GROWING if self._work.grows else _MOST_EXPLAINED
        if self._work.of(value, most) <= most:
            try:
                self._validator.validate(value)
            except ValueError as error:
                return _error_text(error)
        return "it does not keep the schema (too much of it applies to say where)"


def _bounded(kind: str, said: _Said) -> str:
    """The text of an answer. Raises UnexpectedAnswerError where it has none, or more than is checked."""
    if not said.has_text:
        raise UnexpectedAnswerError(kind, f"expected an answer with a text, and invoke gave a {said.kind} without one")
    if len(said.value) > MOST_CHECKED[kind]:
        shown = f"the answer has {len(said.value):,} bytes; at most {MOST_CHECKED[kind]:,} are checked"
        raise UnexpectedAnswerError(kind, shown)
    text = said.text
    assert text is not None
    return text


def _error_text(error: Any) -> str:
    place = "".join(f"[{part!r}]" for part in error.instance_path)
    return one_line(f"{place}: {error.message}" if place else error.message, 2 * _SHOWN)


def _work(expectation: Expectation) -> SchemaWork:
    try:
        work = SchemaWork(expectation.schema)
    except RecursionError as error:
        raise _unusable(expectation, error) from None
    if work.most > MOST_STEPS:
        raise BenchmarkError(
            f"--expect {one_line(expectation.text, _SHOWN)}: the schema applies {work.most:,} or more rules to one part"
            f" of an answer, which takes too long; at most {MOST_STEPS:,} are checked.",
            "Let fewer of its alternatives refer to the same schemas.",
        )
    return work


def _validator(expectation: Expectation) -> Any:
    import jsonschema_rs

    if expectation.kind == "text" and _DOT_ALL.search(expectation.schema["pattern"]):
        raise BenchmarkError(
            f"--expect {one_line(expectation.text, _SHOWN)}: there is no (?s); write [\\s\\S] for a dot."
        )
    bounds = jsonschema_rs.RegexOptions(size_limit=MOST_PATTERN)
    try:
        return jsonschema_rs.validator_for(expectation.schema, pattern_options=bounds, retriever=_refuse)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise _unusable(expectation, error) from None


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is another document; put it under $defs")


def _unusable(expectation: Expectation, error: Exception) -> BenchmarkError:
    given = one_line(expectation.text, _SHOWN)
    if expectation.kind == "text":
        return BenchmarkError(
            f"--expect {given}: this is not a regular expression that can be checked in linear time.",
            "Leave out look-around (?=...), back references and large {repetitions}; \\z is the end of the text.",
        )
    text = one_line(getattr(error, "message", None) or str(error), 2 * _SHOWN)
    return BenchmarkError(f"--expect {given}: this is not a JSON schema that can be checked ({text}).")
