"""An attempt of a factories file: a payload, then ``invoke``, whatever that returns, yields or raises."""

from __future__ import annotations

from numbers import Number
from time import monotonic_ns
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from inference_benchmarker.answer_size import AnswerTooLargeError, largest_answer
from inference_benchmarker.facts.returned import Look, is_stream, look_of, raise_for_status, status_of_answer
from inference_benchmarker.records.error_key import error_key, error_text
from inference_benchmarker.records.pieces import Answer, Piece, Reasoning, shown_text
from inference_benchmarker.records.record import NONE
from inference_benchmarker.records.response import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.engine.worker.in_flight import Slot
    from inference_benchmarker.engine.worker.requests import Requests


_MOST_KINDS = 100  # classes of answers whose look is kept: a file may make a class for each
_PLAIN = frozenset((str, bytes, Piece, Reasoning))
_LEAST_OF_A_PIECE = 64  # bytes that one counts as where it is kept: of a stream, its event takes as many


class _Number(str):
    """The number of a token: a piece, whose size is not known."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


_NUMBER = _Number()


class PayloadError(Exception):
    """Building or labelling a payload raised: nothing was sent."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(error_text(cause))
        self._benchmark_detail = error_key(cause)


class Invocation:
    """Sends one request by ``invoke``. ``payload`` gives what it sends.

    ``keeps_answers``: the slot keeps what came, for its check; ``heard``: for a session, which may read it itself.
    """

    def __init__(
        self,
        invoke: Callable[[Any], Any],
        payload: Callable[[Slot], Any],
        requests: Requests,
        *,
        keeps_answers: bool = False,
        heard: bool = False,
    ) -> None:
        self._invoke = invoke
        self._keeps_answers = keeps_answers or heard
        self._heard = heard
        self._payload = payload
        self._requests = requests
        self._looks: dict[type, Look | None] = {}  # None: answers of this class are streams
        self._take_up = requests.writer.metric_numbers.take_up

    def attempt(self, slot: Slot) -> None:
        """Send the request of a slot; the payload is in hand before ``sent`` is stamped."""
        try:
            payload = slot.payload = self._payload(slot)
        except BaseException as error:
            raise PayloadError(error) from error
        finally:
            slot.sent = monotonic_ns() - self._requests.t0
        result = self._invoke(payload)
        if self._keeps_answers:
            slot.answer = result
        if result is None:
            return
        kind = type(result)
        if kind is bytes:
            slot.size = len(result)
        elif kind is GeneratorType:
            self._drive(slot, result)
        elif kind is str:
            slot.size = _size(result)
        elif isinstance(result, Response):
            slot.usage = result if kind is Response else result.checked()
            if slot.usage.metrics:
                self._take_up(slot.usage.metrics)
        elif kind is CoroutineType:
            result.close()
            raise TypeError("invoke returned a coroutine; expected it to return when the request is done")
        else:
            self._take(slot, kind, result)

    def _take(self, slot: Slot, kind: type, result: Any) -> None:
        """Take an answer of any other class: it may say that the request failed, or not be over."""
        if kind in self._looks:
            look = self._looks[kind]
        else:
            look = None if is_stream(kind) else look_of(result, heard=self._heard)
            if len(self._looks) < _MOST_KINDS:
                self._looks[kind] = look
        if look is None:
            self._drive(slot, result)
            raise_for_status(status_of_answer(result))
        elif (size := look(result)) is not None:
            slot.size = size

    def _drive(self, slot: Slot, stream: Any) -> None:
        """Read a stream to its end; each piece of text is a token's arrival, and so is each number."""
        times = slot.times = []
        t0, size = self._requests.t0, 0
        most = largest_answer()
        pieces: list[Any] | None = [] if self._keeps_answers else None
        thought = 0
        is_textless = False
        for piece in stream:
            now = monotonic_ns() - t0
            said = piece if type(piece) in _PLAIN else self._said(slot, piece)
            kind = type(said)
            if said:
                size += len(said) if kind is bytes else _size(said)
                slot.size = size or NONE
                if kind is Piece or kind is Reasoning:
                    slot.thought = thought = _arrived(times, now, said, thought)
                else:
                    times.append(now)
            elif said is None:
                is_textless = True
            else:
                continue
            if pieces is not None:
                _keep(pieces, piece, size, most)
        if is_textless and not times:  # nobody knows here which of them had some
            slot.times = None
            if slot.arrival is not None and slot.arrival.index >= 0:
                self._requests.textless += 1
        if pieces is not None:
            slot.answer = Answer.of(pieces, slot.usage)

    def _said(self, slot: Slot, piece: Any) -> Any:
        """The text or the bytes of a piece of any other class; "" of a usage, None of an event that shows no text."""
        if isinstance(piece, Response):
            slot.usage = piece.checked() if slot.usage is None else slot.usage.updated(piece)
            if slot.usage.metrics:
                self._take_up(slot.usage.metrics)
            return ""
        if isinstance(piece, Number):
            return _NUMBER
        if piece is None or isinstance(piece, str):
            return piece or ""
        if isinstance(piece, bytes | bytearray | memoryview):
            return bytes(piece)
        return shown_text(piece) or None


def _arrived(times: list[int], now: int, piece: Piece, thought: int) -> int:
    """Add the arrivals of a piece's tokens to ``times``; returns how many of the first ones were reasoning.

    The tokens of the first piece have no time between them. Those of a later one share the time since the piece before
    it evenly, since the client cannot see when the server had each. The first one of an answer after reasoning came
    with its piece, not before it; with the one before, where its tokens came with that.
    """
    no_answer_yet = thought == len(times)
    if times and piece.tokens > 1:
        last = times[-1]
        times.extend(last + (now - last) * number // piece.tokens for number in range(1, piece.tokens))
    if piece.tokens or not times:
        times.append(now)
    if not no_answer_yet:
        return thought
    is_thought = type(piece) is Reasoning and not piece.answer
    return len(times) if is_thought else len(times) - 1


def _keep(pieces: list[Any], piece: Any, size: int, most: int) -> None:
    """Add a piece to those of an answer, whose size by now is known, as long as they take ``most`` bytes."""
    pieces.append(piece)
    if max(size, len(pieces) * _LEAST_OF_A_PIECE) > most:
        raise AnswerTooLargeError.of_body(most)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
