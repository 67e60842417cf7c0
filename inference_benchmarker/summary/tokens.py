"""The sums of a wave's tokens. Pure; the times between them are in ``request_times``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.summary.distribution import Distribution
from inference_benchmarker.summary.request_times import has_usage, output_tokens, request_times

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Int64, Mask, Records


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

    @classmethod
    def of(cls, records: Records, completed: Mask, seconds: float) -> Self | None:
        """The tokens of some records; ``completed`` are the requests of the completed rate, of ``seconds``."""
        ok, told = records.outcome("ok"), has_usage(records)
        has_in, has_out = ok & records.has("tokens_in"), ok & (told | records.has("chunks"))
        if not (has_in | has_out).any():
            return None
        tokens_in, tokens_out = records.int("tokens_in"), output_tokens(records)
        latency = request_times(records)["latency"].values
        timed = has_out & (tokens_out > 0) & (latency > 0)
        return cls(
            tokens_in=_total(tokens_in, has_in),
            tokens_out=_total(tokens_out, has_out),
            tokens_in_per_s=_rate(tokens_in, has_in, completed, seconds),
            tokens_out_per_s=_rate(tokens_out, has_out, completed, seconds),
            counted=_source(has_out & told, has_out & ~told),
            tokens_in_per_request=Distribution.of(tokens_in[has_in]),
            tokens_out_per_request=Distribution.of(tokens_out[has_out]),
            tokens_out_per_s_per_request=Distribution.of(tokens_out[timed] / latency[timed]),
        )

    def to_json(self) -> dict[str, Any]:
        """Each by its name."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value.to_json() if isinstance(value, Distribution) else value for name, value in values.items()}


def _total(tokens: Int64, has: Mask) -> int | None:
    return _sum(tokens[has]) if has.any() else None


def _rate(tokens: Int64, has: Mask, completed: Mask, seconds: float) -> float | None:
    return _sum(tokens[has & completed]) / seconds if has.any() and seconds else None


def _sum(counts: Int64) -> int:
    """Exact, however large: each count fits 64 bits, and their sum need not."""
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())


def _source(usage: Mask, pieces: Mask) -> str | None:
    return " and ".join(name for name, mask in (("usage", usage), ("pieces", pieces)) if mask.any()) or None
