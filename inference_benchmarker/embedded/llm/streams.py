"""Streams of an LLM engine as a client saw them, and the engine's steps between their first and last tokens. Pure.

Tokens come at the ends of steps, and every stream has one token of each step from its first to its last. So between
neighbouring first and last tokens of all streams there is a whole number of steps, in which the same streams decode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.records.columns import Floats, Mask

SAME_STEP_MS = 2.0
"""Tokens that came so close to each other are of one step: on their way some are held up by others."""
_APART_MS = 1000.0


@dataclass(frozen=True, slots=True)
class Streams:
    """A column each: instants in ms, tokens of the prompt, those of them that were computed, and of the answer."""

    sent: Floats
    first: Floats
    last: Floats
    prompt: Floats
    computed: Floats
    output: Floats

    def __len__(self) -> int:
        return len(self.sent)

    def take(self, which: Mask) -> Self:
        """Some of them."""
        return type(self)(*(getattr(self, name)[which] for name in self.__slots__))

    @property
    def squares(self) -> Floats:
        """The part that grows with the square: (p + n)^2 - p^2 of n tokens computed after p cached ones."""
        return self.prompt**2 - (self.prompt - self.computed) ** 2

    @property
    def found_idle(self) -> Mask:
        """Those that were sent when all before them were answered."""
        order = np.argsort(self.sent, kind="stable")
        before = np.r_[-np.inf, np.maximum.accumulate(self.last[order])[:-1]]
        found = np.empty(len(self), bool)
        found[order] = before < self.sent[order]
        return found


class Segments:
    """The times between neighbouring first and last tokens.

    ``decodes``: how many streams decode in each; ``steps``: of how many steps it has, at first by their streams' mean
    pace; ``context``: the tokens before those that are decoded, on average of its steps.
    """

    def __init__(self, streams: Streams) -> None:
        self._streams, number = streams, len(streams)
        ends, of = np.unique(_joined(np.r_[streams.first, streams.last]), return_inverse=True)
        self._first, self._last, self._ends = of[:number], of[number:], len(ends)
        self.length_ms = np.diff(ends)
        self.paces_ms = ends[self._last] - ends[self._first]
        self.decodes = self._among(np.ones(number))
        pace = np.divide(streams.output - 1, self.paces_ms, out=np.zeros(number), where=self.paces_ms > 0)
        self._count(self.length_ms * self._among(pace) / np.maximum(self.decodes, 1))

    def count_by(self, prefill_ms: tuple[float, float, float], step_ms: tuple[float, float, float, float]) -> None:
        """Count the steps by their lengths; whole numbers where they fit the tokens of the streams better."""
        square, each, base = prefill_ms
        prefill = self._ending(square * self._streams.squares + each * self._streams.computed)
        prefill += base * (self._ending(np.ones(len(self._streams))) > 0)
        a, b, c, d = step_ms
        decode = np.maximum(a * self.context**2 + b * self.context + c + d * self.decodes, 1.0)
        steps = np.asarray(np.where(self.decodes > 0, np.maximum((self.length_ms - prefill) / decode, 1.0), 0.0))
        whole = np.asarray(np.round(steps), np.float64)
        self._count(whole if self._misfit(whole) < self._misfit(steps) else steps)

    def columns(self) -> Floats:
        """Of each stream from its first token to its last: what each constant is multiplied by to give that time.

        In the order of the constants of a prompt and of a step: A, B, C, A, B, C, D.
        """
        steps = self._streams.output - 1
        counted = self._over(self.steps)
        scale = np.divide(steps, counted, out=np.zeros(len(steps)), where=counted > 0)
        prompts = (self._within(values) for values in (self._streams.squares, self._streams.computed))
        decoding = (scale * self._over(self.steps * each) for each in (self.context**2, self.context))
        one = self._over_ends(self._at_ends(np.ones(len(steps))) > 0)
        return np.stack([*prompts, one, *decoding, steps, scale * self._over(self.steps * self.decodes)], axis=1)

    def _count(self, steps: Floats) -> None:
        self.steps = steps
        before = np.r_[0.0, np.cumsum(steps)]
        done = self.decodes * before[:-1] - self._among(before[self._first])
        self.context = self._among(self._streams.prompt) + done + self.decodes * np.maximum(steps - 1, 0) / 2

    def _misfit(self, steps: Floats) -> float:
        return float(np.abs(self._over(steps) - (self._streams.output - 1)).mean())

    def _among(self, values: Floats) -> Floats:
        """The sum over the streams that decode in each segment."""
        begun, ended = (np.bincount(at, values, self._ends) for at in (self._first, self._last))
        return np.asarray(np.cumsum(begun - ended)[:-1])

    def _over(self, values: Floats) -> Floats:
        """The sum over the segments of each stream."""
        total = np.r_[0.0, np.cumsum(values)]
        return np.asarray(total[self._last] - total[self._first])

    def _at_ends(self, values: Floats) -> Floats:
        """The sum over the streams whose first token is at each end of a segment."""
        return np.asarray(np.bincount(self._first, values, self._ends), np.float64)

    def _ending(self, values: Floats) -> Floats:
        return self._at_ends(values)[1:]

    def _over_ends(self, values: Floats | Mask) -> Floats:
        total = np.cumsum(values, dtype=np.float64)
        return np.asarray(total[self._last] - total[self._first])

    def _within(self, values: Floats) -> Floats:
        """The sum over the others whose first token came after that of a stream and with its last one at the latest."""
        return self._over_ends(self._at_ends(values))


def _joined(instants: Floats) -> Floats:
    """The same, those of one step at their mean."""
    sorted_ones, of = np.unique(instants, return_inverse=True)
    step = np.cumsum(np.r_[0, np.diff(sorted_ones) > SAME_STEP_MS])[of]
    return np.asarray((np.bincount(step, instants) / np.bincount(step))[step])


def one_after_another(parts: Sequence[Streams]) -> Streams:
    """The streams of several waves of one engine, which was idle between them."""
    shifted, at = [], 0.0
    for part in parts:
        by = at - float(part.sent.min()) if len(part) else 0.0
        shifted.append(replace(part, sent=part.sent + by, first=part.first + by, last=part.last + by))
        at = float(shifted[-1].last.max()) + _APART_MS if len(part) else at
    return Streams(*(np.concatenate([getattr(each, name) for each in shifted]) for name in Streams.__slots__))
