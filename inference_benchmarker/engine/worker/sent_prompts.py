"""The prompts of a worker's sessions, in blocks: from them follows what a server's prefix cache could have had.

A turn is taken apart when its answer is there, so that no request waits for it; of a history that grows only what came
since.
"""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from inference_benchmarker.records.answer import Answer, Reasoning
from inference_benchmarker.records.prompts import MOST_LOOKED_AT, NO_TEXT, Chain, Prompt, Said, joined, prompt_of
from inference_benchmarker.records.response import Response
from inference_benchmarker.records.user_metrics import CACHED_TOKENS, REASONING_TOKENS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.engine.worker.in_flight import OpenSession, Slot

_UNHARMED = suppress(BaseException)  # of a look at objects of the user's, whatever they raise
_LONG_AGO = -(1 << 62)
_MOST_STEMS = 256
_LEAST_STEM = 1024  # characters of a beginning that is kept, for other sessions have it, too


class SentPrompts:
    """A worker's part; ``untold`` is what came since ``told``, for the worker's report."""

    def __init__(self) -> None:
        self._stems: dict[tuple[str, ...], tuple[int, Chain]] = {}
        self._told_stems = 0
        self._rows: list[tuple[Any, ...]] = []

    def add(self, slot: Slot, session: OpenSession) -> None:
        """Take apart what a slot sent, and what it was answered.

        Of one that cannot be taken apart, nothing is known: a client of the user's sends what it likes, and the answer
        is there.
        """
        with _UNHARMED:
            self._add(slot, session)

    def _note(self, payload: Any) -> None:
        if (prompt := prompt_of(payload)) is not None:
            chain = NO_TEXT.grown(joined(prompt.pieces))
            self._rows.append((-1, 1, _LONG_AGO, _LONG_AGO, chain.size, None, None, -1, 0, _packed(chain, NO_TEXT), ""))

    def _add(self, slot: Slot, session: OpenSession) -> None:
        prompt = prompt_of(slot.payload)
        if prompt is None:
            return
        stem, known, base = self._known(prompt, session.said)
        chain = base.grown(joined(prompt.pieces[known:]))
        text = _repeatable(slot)
        answer = [] if text is None else [prompt.before_answer, text]
        whole = chain.grown(joined(answer)) if answer else chain
        parts = len(prompt.pieces), whole, len(chain.sums), chain.rest, chain.size
        usage = slot.usage
        tokens = None if usage is None else usage.tokens_in
        cached = None if usage is None or not usage.metrics else usage.metrics.get(CACHED_TOKENS)
        when = (session.number, session.turn, slot.sent, slot.done)
        counts = (chain.size, tokens, None if cached is None else int(cached), stem, len(base.sums))
        row = (*when, *counts, _packed(chain, base), _packed(whole, chain))
        session.said = Said(prompt.pieces + answer, *parts)  # of a turn that is told: the next one's blocks go on there
        self._rows.append(row)

    def note_before(self, payloads: Sequence[Any]) -> None:
        """Take apart what was sent before the load: it is there from the start, and counts in no turn."""
        for payload in payloads:
            with _UNHARMED:
                self._note(payload)

    def untold(self) -> dict[str, Any]:
        """The rows since ``told``, and the beginnings that they speak of by number; nothing without any."""
        if not self._rows:
            return {}
        stems = [_packed(chain, NO_TEXT) for _, chain in [*self._stems.values()][self._told_stems :]]
        return {"prompts": self._rows, "stems": stems}

    def told(self) -> None:
        """Forget what `untold` returned: a report has it."""
        if self._rows:
            self._told_stems = len(self._stems)
            self._rows.clear()

    def _known(self, prompt: Prompt, before: Said | None) -> tuple[int, int, Chain]:
        """The number of a prompt's known beginning (-1: of the turn before, or none), its pieces and its blocks."""
        if before is not None and (found := before.continued(prompt.pieces)) is not None:
            return -1, *found
        first = prompt.pieces[prompt.head - 1 : prompt.head]
        if not first or not _LEAST_STEM <= len(first[0]) <= MOST_LOOKED_AT:
            return -1, 0, NO_TEXT
        begin = tuple(prompt.pieces[: prompt.head])
        if begin not in self._stems:
            if len(self._stems) >= _MOST_STEMS:
                return -1, 0, NO_TEXT
            self._stems[begin] = len(self._stems), NO_TEXT.grown("".join(begin))
        number, chain = self._stems[begin]
        return number, prompt.head, chain


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


def _packed(chain: Chain, base: Chain) -> str:
    return b64encode(chain.sums[len(base.sums) :].tobytes()).decode()
