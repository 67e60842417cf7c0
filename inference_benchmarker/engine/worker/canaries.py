"""The checks of answers: against what is expected, and canaries.

Canaries are questions whose answers were given alone, before the load, and are asked for again under it.
An answer under load that is another one differs; where it is, or has in it, what another request was answered, two
requests got mixed up. An answer that several other requests got is nobody's own, such as an excuse of a busy server.
Which arrivals are canaries is a function of the seed and the arrival.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.endpoint.expected import text_of
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.returned import is_stream
from inference_benchmarker.plan.numbers import uniform
from inference_benchmarker.plan.turn import Turn
from inference_benchmarker.records.error_key import error_key, error_text
from inference_benchmarker.records.pieces import Answer
from inference_benchmarker.records.response import Response
from inference_benchmarker.records.user_metrics import CANARY_DIFFERS, CANARY_SWAPPED
from inference_benchmarker.words.redact import excerpt, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from inference_benchmarker.engine.endpoint.expected import AnswerCheck
    from inference_benchmarker.engine.worker.in_flight import Slot
    from inference_benchmarker.records.batch_writer import BatchWriter
    from inference_benchmarker.records.names import Names

LABEL = "canary"
_SALT = 0xCA9A_4E5
_LEAST = 8  # characters of an answer that is known again wherever it turns up
_REMEMBERED = 4096  # answers of other requests, by their hash: the texts themselves may be large
_MOST = 100_000  # characters of one that is remembered
_MOST_SHOWN, _SHOWN, _LOOKED_AT = 5, 200, 64 << 10

logger = logging.getLogger("inference_benchmarker.canaries")


def ask_alone(invoke: Callable[[Any], Any], payloads: Sequence[Any]) -> list[str | None]:
    """The answers to questions, asked one at a time, each twice; None where the two differ.

    Raises BenchmarkError for a question that fails or is answered without a text, and where all answers differ.
    """
    answers = [_steady(_asked(invoke, payload), _asked(invoke, payload)) for payload in payloads]
    if not any(answers):
        raise BenchmarkError(
            "--expect canary: the answers to the same question differ even when it is asked alone, so canaries tell "
            "nothing.",
            "Leave it out, or make the server decode greedily.",
        )
    return answers


def ask_twice(invoke: Callable[[Any], Any], payload: Any) -> str | None:
    """The text that a question gets, asked twice, which may be empty; None where two texts differ, or one has none."""
    first, second = _text_alone(invoke, payload), _text_alone(invoke, payload)
    return first if first == second else None


def _steady(first: str, second: str) -> str | None:
    return first if first == second else None


def _text_alone(invoke: Callable[[Any], Any], payload: Any) -> str | None:
    answer = invoke(payload)
    if is_stream(type(answer)):
        answer = Answer.of([piece for piece in answer if not isinstance(piece, Response)], None)
    text = text_of(answer)
    return None if text is None else text.strip()


def _asked(invoke: Callable[[Any], Any], payload: Any) -> str:
    try:
        text = _text_alone(invoke, payload)
    except Exception as error:
        shown = f"{error_key(error)}: {excerpt(error_text(error), _SHOWN)}"
        raise BenchmarkError(
            f"--expect canary: a question that was asked alone, before the load, failed: {shown}"
        ) from error
    if not text:
        raise BenchmarkError(
            "--expect canary: a question that was asked alone, before the load, got no text in answer."
        )
    return text


class Canaries:
    """Knows which arrivals are canaries and what their answers were; ``share``: of the arrivals that are ones."""

    def __init__(self, payloads: Sequence[Any], answers: Sequence[str | None], share: float, seed: int) -> None:
        self._payloads = payloads
        self._answers = answers
        self._share = share
        self._seed = seed ^ _SALT
        times = Counter(answers)
        self._own = {answer for answer in answers if answer and len(answer) >= _LEAST and times[answer] == 1}
        self._recent: dict[int, int] = {}  # how often each came
        self._shown = 0

    def is_one(self, index: int) -> bool:
        """Tells whether an arrival is a canary."""
        return uniform(self._seed, index) < self._share

    def among_payloads(self, payload: Callable[[Slot], Any], labels: Names) -> Callable[[Slot], Any]:
        """The payloads of slots, with canaries in place of some."""

        def chosen(slot: Slot) -> Any:
            assert slot.arrival is not None
            if not self.is_one(slot.arrival.index):
                return payload(slot)
            slot.label = labels[LABEL]
            return self._payloads[self._which(slot.arrival.index)]

        return chosen

    def among_sessions(self, session: Callable[[int], Any]) -> Callable[[int], Any]:
        """Sessions by their number, with canaries of one turn in place of some."""

        def asked(number: int) -> Generator[Turn, Any, None]:
            yield Turn(self._payloads[self._which(number)], label=LABEL, left=0)

        return lambda number: asked(number) if self.is_one(number) else session(number)

    def judge(self, index: int, answer: Any) -> dict[str, float]:
        """The metrics of the answer to an arrival: 1 for what is wrong, of a canary also 0 for what is not."""
        text = (text_of(answer) or "").strip()
        if not self.is_one(index):
            return self._judge_other(index, text)
        alone = self._answers[self._which(index)]
        if alone is None:
            return {}
        differs = text != alone
        swapped = differs and self._is_anothers(text, alone)
        if differs:
            self._show(index, "another request's" if swapped else "another", text, alone)
        return {CANARY_DIFFERS: float(differs), CANARY_SWAPPED: float(swapped)}

    def _judge_other(self, index: int, text: str) -> dict[str, float]:
        """A request that is no canary, and may have got the answer of one."""
        if text in self._own:
            self._show(index, "a canary's", text, "its own")
            return {CANARY_SWAPPED: 1.0}
        if _LEAST <= len(text) <= _MOST:
            key = hash(text)
            self._recent[key] = self._recent.get(key, 0) + 1
            if len(self._recent) > _REMEMBERED:
                del self._recent[next(iter(self._recent))]
        return {}

    def _is_anothers(self, text: str, alone: str) -> bool:
        return self._recent.get(hash(text)) == 1 or any(other in text for other in self._own if other != alone)

    def _which(self, index: int) -> int:
        return int(uniform(self._seed, index) / self._share * len(self._payloads))

    def _show(self, index: int, whose: str, text: str, alone: str) -> None:
        """Log the first few."""
        self._shown += 1
        if self._shown <= _MOST_SHOWN:
            lines = quoted(text[:_LOOKED_AT], _SHOWN), quoted(alone, _SHOWN)
            logger.warning("arrival %d got %s answer: %s; expected: %s", index, whose, *lines)


class Checks:
    """Checks the answer that a slot keeps against all that is known of it."""

    def __init__(self, check: AnswerCheck | None, canaries: Canaries | None, writer: BatchWriter) -> None:
        self._check = check
        self._canaries = canaries
        self._writer = writer

    def __call__(self, slot: Slot) -> None:
        """Add to a slot's usage what its canary shows. Raises UnexpectedAnswerError."""
        assert slot.arrival is not None
        if self._canaries is not None:
            values = self._canaries.judge(slot.arrival.index, slot.answer)
            if values:
                self._writer.metric_numbers.take_up(values)
                metrics = Response(metrics=values)
                slot.usage = metrics if slot.usage is None else slot.usage.updated(metrics)
            if self._canaries.is_one(slot.arrival.index):
                return
        if self._check is not None:
            self._check(slot.answer)
