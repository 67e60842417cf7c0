"""The prompts of a worker's sessions, in blocks: from them follows what a server's prefix cache could have had.

A turn is taken apart when its answer is there, so that no request waits for it; of a history that grows only what came
since. Sums of blocks are reckoned for many turns at a time, which takes half as long.
"""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from inference_benchmarker.records.pieces import Answer, Reasoning
from inference_benchmarker.records.prompts import (
    BEGIN,
    MOST_BYTES,
    MOST_LOOKED_AT,
    MOST_REQUESTS,
    ROW,
    AnsweredTurn,
    End,
    bytes_of,
    prompt_of,
)
from inference_benchmarker.records.response import Response
from inference_benchmarker.records.user_metrics import CACHED_TOKENS, REASONING_TOKENS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.engine.worker.in_flight import OpenSession, Slot
    from inference_benchmarker.records.prompts import Prompt

_UNHARMED = suppress(BaseException)  # of a look at objects of the user's, whatever they raise
_KINDS = (dict, tuple)  # of payloads that may have a prompt: all others cost nothing
_LONG_AGO = -(1 << 62)
_MOST_STEMS = 256
_LEAST_STEM = 1024  # characters of a beginning that is kept, for other sessions have it, too
_MOST_WAITING = 1 << 15  # bytes of blocks without sums: these take 0.1 ms of the loop that sends


class SentPrompts:
    """A worker's part; ``unreported`` is what came since ``mark_reported``, for the worker's report.

    Sums of blocks are reported in the order of rows, of each those of its new blocks, then those that its answer adds.
    It looks at no more than what is taken of all workers.
    """

    def __init__(self) -> None:
        from inference_benchmarker.facts.block_sums import sums_of  # numpy, which takes 0.1 s: before the load

        self._sums_of = sums_of
        self._stems: dict[tuple[Any, ...], tuple[int, End, str]] = {}
        self._reported_stems = 0
        self._waiting: list[tuple[bytes, bytes]] = []  # rows and their blocks
        self._summed: list[tuple[bytes, bytes]] = []
        self._waiting_bytes = self._known_rows = self._known_bytes = 0
        self._is_full = False

    def add(self, slot: Slot, session: OpenSession) -> None:
        """Take apart what a slot sent, and what it was answered.

        Of one that cannot be taken apart, nothing is known: a client of the user's sends what it likes, and the answer
        is there.
        """
        if type(slot.payload) in _KINDS and not self._is_full:
            with _UNHARMED:
                self._add(slot, session)

    def note_before(self, payloads: Sequence[Any]) -> None:
        """Take apart what was sent before the load: it is there from the start, and counts in no turn."""
        for payload in payloads:
            with _UNHARMED:
                self._note(payload)

    def unreported(self) -> dict[str, Any]:
        """The rows since ``mark_reported``, the sums of their blocks, and new beginnings; nothing without any."""
        self._sum_up()
        if not self._summed:
            return {}
        stems = [packed for _, _, packed in [*self._stems.values()][self._reported_stems :]]
        rows, sums = (b"".join(parts) for parts in zip(*self._summed, strict=True))
        return {"prompt_rows": _packed(rows), "prompt_sums": _packed(sums), "stems": stems}

    def mark_reported(self) -> None:
        """Forget what `unreported` returned: a report has it."""
        if self._summed:
            self._reported_stems = len(self._stems)
            self._summed.clear()

    def _note(self, payload: Any) -> None:
        if (prompt := prompt_of(payload)) is not None:
            blocks, end, _ = BEGIN.after(bytes_of(prompt.head, prompt.spoken))
            row = ROW.pack(-1, 1, _LONG_AGO, _LONG_AGO, end.size, -1, -1, -1, 0, end.blocks, 0)
            self._tell(row, blocks)

    def _add(self, slot: Slot, session: OpenSession) -> None:
        prompt = prompt_of(slot.payload)
        if prompt is None:
            return
        head, spoken, speaks = prompt
        stem, (known, base) = -1, prompt.continued(session.said)
        if not known:
            stem, known, base = self._common(prompt)
        asked, text, count = bytes_of(() if known else head, spoken[known:]), _repeatable(slot), len(spoken)
        answer = b""
        if text is not None:
            spoken.append((speaks, text))
            answer = bytes_of((), spoken[count:])
        blocks, prompt_end, end = base.after(asked, answer)
        when = session.number, session.turn, slot.sent, slot.done
        counts = stem, base.blocks, prompt_end.blocks - base.blocks, end.blocks - prompt_end.blocks
        row = ROW.pack(*when, prompt_end.size, *_tokens(slot.usage), *counts)
        self._tell(row, blocks)
        session.said = AnsweredTurn(
            head, spoken, count, prompt_end, end
        )  # of a turn that is reported: the next one goes on there

    def _tell(self, row: bytes, blocks: bytes) -> None:
        self._waiting.append((row, blocks))
        self._known_rows += 1
        self._known_bytes += len(blocks)
        self._is_full = self._known_rows >= MOST_REQUESTS or self._known_bytes >= MOST_BYTES
        self._waiting_bytes += len(blocks)
        if self._waiting_bytes >= _MOST_WAITING:
            self._sum_up()

    def _sum_up(self) -> None:
        if self._waiting:
            rows, blocks = (b"".join(parts) for parts in zip(*self._waiting, strict=True))
            self._summed.append((rows, self._sums_of(blocks)))  # before what waits is forgotten: memory may be full
            self._waiting.clear()
            self._waiting_bytes = 0

    def _common(self, prompt: Prompt) -> tuple[int, int, End]:
        """The number of a prompt's beginning that others have too (-1: none), its messages, and where it ends."""
        first = prompt.spoken[:1]
        if not first or not _LEAST_STEM <= len(first[0][1]) <= MOST_LOOKED_AT:
            return -1, 0, BEGIN
        key = (prompt.head, first[0])
        if key not in self._stems:
            if len(self._stems) >= _MOST_STEMS:
                return -1, 0, BEGIN
            blocks, end, _ = BEGIN.after(bytes_of(prompt.head, first))
            self._stems[key] = len(self._stems), end, _packed(self._sums_of(blocks))
        number, end, _ = self._stems[key]
        return number, 1, end


def _repeatable(slot: Slot) -> str | None:
    """The text that a history repeats of an answer, and that a server may have kept.

    Of a model that reasoned the answer stands after its reasoning, which no history repeats.
    """
    usage, answer = slot.usage, slot.answer
    if usage is not None and usage.metrics and usage.metrics.get(REASONING_TOKENS):
        return None
    if isinstance(answer, Answer) and type(next(iter(answer.pieces), None)) is Reasoning:
        return None
    if isinstance(answer, Answer | Response):  # another's own may take its time to tell a text
        answer = getattr(answer, "text", None)
    return answer if type(answer) is str else None


def _tokens(usage: Response | None) -> tuple[int, int]:
    """The tokens of a prompt, and how many of them were cached; -1 where the server did not report it."""
    if usage is None:
        return -1, -1
    cached = usage.metrics.get(CACHED_TOKENS) if usage.metrics else None
    return -1 if usage.tokens_in is None else usage.tokens_in, -1 if cached is None else int(cached)


def _packed(numbers: bytes) -> str:
    return b64encode(numbers).decode()
