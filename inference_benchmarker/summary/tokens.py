"""The sums of a wave's tokens. Pure; the times between them are in ``request_times``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.summary.request_times import has_usage, output_tokens, request_times
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Int64, Mask, Records
    from inference_benchmarker.summary.completed_rate import CompletedSpan
    from inference_benchmarker.summary.statistics.distribution import Distribution

_COLUMNS = ("outcome", "done", "chunks", "tokens_in", "tokens_out")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of the ok requests, in total and of each; None where nothing was counted.

    ``counted`` says where output tokens come from: ``usage``, ``pieces`` or ``usage and pieces``. Tokens a second
    are in total those of the completed rate's requests; of one request, its output tokens over its latency.
    """

    tokens_in: int | None
    tokens_out: int | None
    tokens_in_per_s: float | None
    tokens_out_per_s: float | None
    counted: str | None
    tokens_in_per_request: Distribution | None
    tokens_out_per_request: Distribution | None
    tokens_out_per_s_per_request: Distribution | None


class TokensGathered:
    """Gathers the tokens of the ok requests."""

    columns = ("sent", *_COLUMNS)

    def __init__(self) -> None:
        self._sums = TokenSums()
        self._usage = self._pieces = False
        self._each_in, self._each_out = StreamingHistogram(), StreamingHistogram()
        self._each_out_per_s = StreamingHistogram()

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        self._sums.add(part)
        has_in, has_out = _with_known_tokens(part)
        if not (has_in | has_out).any():
            return
        by_usage, tokens_out = has_usage(part), output_tokens(part)
        self._usage |= bool((has_out & by_usage).any())
        self._pieces |= bool((has_out & ~by_usage).any())
        latency = request_times(part)["latency"].values
        timed = has_out & (tokens_out > 0) & (latency > 0)
        self._each_in.add(part.int("tokens_in")[has_in])
        self._each_out.add(tokens_out[has_out])
        self._each_out_per_s.add(tokens_out[timed] / latency[timed])

    @property
    def any(self) -> bool:
        """Tells whether anything was counted."""
        return self._sums.tokens_in is not None or self._sums.tokens_out is not None

    def tokens(self, completed: TokenSums, span: CompletedSpan) -> Tokens | None:
        """The tokens, with those of the requests done in the completed rate's span; None where nothing was counted."""
        if not self.any:
            return None
        in_per_s, out_per_s = self._sums.rates(completed, span)
        return Tokens(
            tokens_in=self._sums.tokens_in,
            tokens_out=self._sums.tokens_out,
            tokens_in_per_s=in_per_s,
            tokens_out_per_s=out_per_s,
            counted=" and ".join(filter(None, ("usage" * self._usage, "pieces" * self._pieces))) or None,
            tokens_in_per_request=self._each_in.distribution(),
            tokens_out_per_request=self._each_out.distribution(),
            tokens_out_per_s_per_request=self._each_out_per_s.distribution(),
        )


class TokenSums:
    """Gathers the sums of the ok requests' tokens, or of those done in a span; None where nothing was counted."""

    columns = _COLUMNS

    def __init__(self, span: CompletedSpan | None = None) -> None:
        self._span = span
        self.tokens_in: int | None = None
        self.tokens_out: int | None = None

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        has_in, has_out = _with_known_tokens(part)
        if not (has_in | has_out).any():
            return
        if self._span is not None:
            inside = self._span.holds(part.int("done"))
            has_in, has_out = has_in & inside, has_out & inside
        self.tokens_in = _and_more(self.tokens_in, part.int("tokens_in")[has_in])
        self.tokens_out = _and_more(self.tokens_out, output_tokens(part)[has_out])

    def rates(self, completed: TokenSums, span: CompletedSpan) -> tuple[float | None, float | None]:
        """Tokens a second, in and out, of the completed rate's requests; None where nothing was counted."""
        both = ((self.tokens_in, completed.tokens_in), (self.tokens_out, completed.tokens_out))
        tokens_in, tokens_out = (
            None if total is None or not span.seconds else (inside or 0) / span.seconds for total, inside in both
        )
        return tokens_in, tokens_out


def _with_known_tokens(records: Records) -> tuple[Mask, Mask]:
    """The ok requests of which input tokens are known, and output tokens."""
    ok = records.outcome("ok")
    return ok & records.has("tokens_in"), ok & (has_usage(records) | records.has("chunks"))


def _and_more(total: int | None, counts: Int64) -> int | None:
    """Each count fits 64 bits, and their sum need not."""
    if not len(counts):
        return total
    return (total or 0) + (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())
