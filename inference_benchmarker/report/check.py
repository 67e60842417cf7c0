"""`benchmark check` reports the one request it sent: text for people, a JSON object for programs. Pure."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.response import MOST_TOKENS
from inference_benchmarker.summary.request_times import has_usage, impossible_usage, output_tokens, request_times
from inference_benchmarker.words.text import one_line, plain
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import INDENT, duration_text, number_text, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inference_benchmarker.facts.probe import ProbeFacts
    from inference_benchmarker.records.record import RequestRecord

SAGEMAKER_LIMIT = 6_291_456  # bytes of a real-time endpoint's payload: 6 MB
_TITLE = "CHECK – InferenceBenchmarker"
_HEAD = (_TITLE, "-" * len(_TITLE))
_WIDTH = 100
_READ_BY = {False: "a wave reads as one answer", True: "is left to the session, and its time is no part of the latency"}
_OF_EVENTS = ("data:", "event:", "id:")
"""Beginnings of the lines of server-sent events."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The process ended before it could report the request; ``how`` is all that is known."""

    file: str
    how: str
    ok: ClassVar = False

    def to_json(self) -> dict[str, Any]:
        """The same keys as of a check, as far as there is something."""
        return {"file": self.file, "outcome": "failed", "error": {"key": "ProcessEnded", "text": self.how}}

    def to_text(self) -> str:
        """The same lines as of a check."""
        return _joined((*_HEAD, _fact("File", self.file), "", f"FAILED: {self.how}"))


@dataclass(frozen=True, slots=True)
class Check:
    """One request: its record, what was seen beside it, and the text of its error."""

    file: str
    record: RequestRecord
    seen: ProbeFacts
    error_text: str | None = None

    @property
    def ok(self) -> bool:
        """Tells whether a wave would count the request as a success."""
        return self.record.outcome == "ok"

    def warnings(self) -> dict[str, str]:
        """The warnings of what the request leads one to expect of a wave, by code."""
        seen, found = self.seen, {}
        largest = max(seen.largest or 0, seen.payload_bytes or 0)
        if largest > SAGEMAKER_LIMIT and seen.is_sagemaker:
            found["payload_size"] = (
                f"A payload of {largest:,} bytes is above what a SageMaker real-time endpoint accepts, "
                f"{SAGEMAKER_LIMIT:,} bytes (6 MB)."
            )
        if seen.unread:
            found["unread_answer"] = (
                f"invoke returned a {seen.answer_type}, whose unread content {_READ_BY[seen.heard]}. "
                "Of a stream, yield the pieces, so that TTFT is measured."
            )
        if seen.answer == "streamed" and seen.preview.startswith(_OF_EVENTS):
            found["raw_events"] = (
                "The pieces are lines of server-sent events, each of which counts as a token, its role and end, too: "
                "yield only the text that the model generated."
            )
        if seen.hidden_status is not None:
            found["hidden_status"] = (
                f"The response had status {seen.hidden_status}, which invoke did not show: a wave counts the request "
                "as answered. Call raise_for_status(), or return the response itself."
            )
        if seen.answer == "streamed" and not self.record.chunks and self.ok:
            found["no_piece"] = (
                f"The pieces ({seen.answer_type}) show no text, so nothing counts as tokens and there is no TTFT: "
                "yield the text of each."
                if seen.answer_type
                else "The stream had only empty pieces, so there is no TTFT."
            )
        if impossible_usage(self._records)[0]:
            found["impossible_usage"] = (
                f"The answer reports {self.record.tokens_out:,} output tokens but came in "
                f"{self.record.chunks or 0:,} pieces. Each piece has at least one token, and no answer has more than "
                f"{MOST_TOKENS:,}, so the pieces are counted instead."
            )
        return found

    @property
    def _records(self) -> Records:
        return Records.of([self.record])

    def times(self) -> dict[str, float]:
        """Seconds by name, of those that the request has."""
        record = self.record
        found = {"build": record.build_ns / NS} if record.build_ns else {}
        columns = request_times(self._records)
        for name in ("latency", "ttft", "itl", "tpot"):
            values, has = columns[name]
            if has[0]:
                found[name] = float(values[0])
        if record.gaps:
            found["longest_gap"] = max(record.gaps) / 1e6
        return found

    def tokens(self) -> dict[str, Any]:
        """Input and output tokens, and whether the latter are the server's ``usage`` or counted ``pieces``."""
        record = self.record
        counted = "usage" if has_usage(self._records)[0] else None if record.chunks is None else "pieces"
        tokens_out = None if counted is None else int(output_tokens(self._records)[0])
        return {"tokens_in": record.tokens_in, "tokens_out": tokens_out, "counted": counted}

    def to_json(self) -> dict[str, Any]:
        """The check for programs."""
        seen, record = self.seen, self.record
        return {
            "file": self.file,
            "outcome": record.outcome,
            "payload": {
                "pre_computed": seen.payloads,
                "smallest_bytes": seen.smallest,
                "largest_bytes": seen.largest,
                "type": seen.payload_type,
                "bytes": seen.payload_bytes,
            },
            "addresses": [address.to_json() for address in seen.addresses],
            "label": record.label or None,
            "answer": {
                "kind": seen.answer,
                "type": seen.answer_type,
                "bytes": record.bytes,
                "pieces": record.chunks,
                "preview": seen.preview,
            },
            "tokens": self.tokens(),
            "metrics": dict(record.metrics or {}),
            "times": self.times(),
            "error": None if self.ok else self._error(),
            "warnings": [{"code": code, "text": text} for code, text in self.warnings().items()],
        }

    def _error(self) -> dict[str, Any]:
        seen = self.seen
        fields = {"raised_at": seen.raised_at or None, "with": list(seen.in_hand)}
        return {"key": self.record.error, "text": self.error_text, **fields}

    def to_text(self) -> str:
        """The check for people."""
        return _joined(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _HEAD
        facts = (
            ("File", self.file),
            ("Payloads", self._payloads_text()),
            ("Sent", self._sent_text()),
            ("To", ", ".join(one_line(str(address)) for address in self.seen.addresses)),
            ("Label", one_line(self.record.label)),
            ("Answer", self._answer_text()),
            ("Tokens", self._tokens_text()),
            (
                "Metrics",
                ", ".join(f"{name} {number_text(value)}" for name, value in (self.record.metrics or {}).items()),
            ),
            ("Times", self._times_text()),
            ("Raised", one_line(self.seen.raised_at, 160)),
            *(("With", one_line(value, 160)) for value in self.seen.in_hand),
        )
        for name, text in facts:
            if text:
                yield _fact(name, text)
        for code, text in self.warnings().items():
            yield from textwrap.wrap(
                f"! {code}: {text}", _WIDTH, initial_indent=INDENT, subsequent_indent=INDENT + "  "
            )
        yield ""
        yield self._outcome()

    def _outcome(self) -> str:
        if not self.ok:
            return f"FAILED: {one_line(str(self.record.error))}: {one_line(self.error_text or '', 300)}"
        number = len(self.warnings())
        return f"OK, with {number} warning{'s' if number > 1 else ''}" if number else "OK"

    def _payloads_text(self) -> str:
        seen = self.seen
        if self.record.turn is not None:
            return "the first turn of a session"
        if seen.payloads is None:
            return "built for each request"
        if seen.smallest is None or seen.largest is None:
            return f"{seen.payloads:,} pre-computed"
        sizes = f"{seen.largest:,}" if seen.smallest == seen.largest else f"{seen.smallest:,} to {seen.largest:,}"
        return f"{seen.payloads:,} pre-computed, {sizes} bytes"

    def _sent_text(self) -> str:
        seen = self.seen
        if seen.payload_type is None:
            return "nothing"
        size = "of unknown size" if seen.payload_bytes is None else pluralize(seen.payload_bytes, "byte", "bytes")
        as_json = "" if seen.payload_type in ("bytes", "bytearray", "memoryview", "str") else " as JSON"
        return f"{seen.payload_type}, {size}{as_json if seen.payload_bytes is not None else ''}"

    def _answer_text(self) -> str:
        seen, record = self.seen, self.record
        if seen.answer is None or (seen.answer == "streamed" and not record.chunks and not self.ok):
            return ""
        size = "" if record.bytes is None else f", {pluralize(record.bytes, 'byte', 'bytes')}"
        pieces = "" if record.chunks is None else f", {record.chunks:,} pieces"
        kind = "" if seen.answer_type is None else f" {seen.answer_type}"
        preview = one_line(seen.preview, 60)
        return f"{seen.answer}{kind}{pieces}{size}" + (f": {preview}" if preview else "")

    def _tokens_text(self) -> str:
        tokens = self.tokens()
        source = "the server's usage" if tokens["counted"] == "usage" else "counted pieces"
        parts = [] if tokens["tokens_in"] is None else [f"{tokens['tokens_in']:,} in"]
        tokens_out = tokens["tokens_out"]
        parts += [f"{tokens_out:,} out ({source})"] if tokens_out or tokens["counted"] == "usage" else []
        return ", ".join(parts)

    def _times_text(self) -> str:
        names = {
            "build": "building",
            "latency": "latency" if self.ok else "failed after",
            "ttft": "TTFT",
            "itl": "ITL mean",
            "longest_gap": "longest gap",
            "tpot": "TPOT",
        }
        times = self.times()
        return ", ".join(f"{text} {duration_text(times[name])}" for name, text in names.items() if name in times)


def _joined(lines: Iterable[str]) -> str:
    """The one way out: a line stays one, whatever name or answer stands in it."""
    return "\n".join(map(plain, lines)) + "\n"


def _fact(name: str, text: str) -> str:
    return f"{INDENT}{name + ':':<18}{text}"
