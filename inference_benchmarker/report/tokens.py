"""The tokens of a wave in words: those of a request, their sums, and why answers ended. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.summary.time_table import COLUMNS, marked, number_texts
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import INDENT, aligned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.summary.tokens import Tokens

_MOST_REASONS = 20
_TOKENS = (
    ("Input tokens", "tokens_in_per_request"),
    ("Output tokens", "tokens_out_per_request"),
    ("Tokens/s", "tokens_out_per_s_per_request"),
)


def token_lines(summary: Summary, width: int | None = None) -> Iterator[str]:
    """The tokens of a wave's requests, where they have any, and the reasons for which the server ended its answers."""
    tokens = summary.tokens
    if tokens is not None:
        yield from _of_tokens(tokens, summary.ledger.ok, width)
    if reasons := list(summary.finish_reasons.items()):
        text = ", ".join(f"{one_line(reason, 40)} {count:,}" for reason, count in reasons[:_MOST_REASONS])
        more = f" and {len(reasons) - _MOST_REASONS} more, in summary.json" if len(reasons) > _MOST_REASONS else ""
        yield f"{INDENT}Finish reasons:   {text}{more}"


def _of_tokens(tokens: Tokens, ok: int, width: int | None) -> Iterator[str]:
    rows = [(label, getattr(tokens, name)) for label, name in _TOKENS]
    present = [(label, distribution) for label, distribution in rows if distribution is not None]
    yield from aligned(
        [[marked("Per request", (d for _, d in present)), *COLUMNS], *(_count_row(label, d) for label, d in present)],
        width,
    )
    yield ""
    if tokens.tokens_in is not None:
        notes = _of_some(tokens.tokens_in_per_request, ok) + _per_second(tokens.tokens_in_per_s)
        yield f"{INDENT}Input tokens:     {tokens.tokens_in:,} (the server's usage{notes})"
    if tokens.tokens_out is not None:
        source = {"usage": "the server's usage", "pieces": "counted pieces"}.get(str(tokens.counted), tokens.counted)
        notes = _of_some(tokens.tokens_out_per_request, ok) + _per_second(tokens.tokens_out_per_s)
        yield f"{INDENT}Output tokens:    {tokens.tokens_out:,} ({source}{notes})"


def _of_some(distribution: Distribution | None, ok: int) -> str:
    """That not all requests reported their tokens: the sum and the rate are less than what was processed."""
    return (
        "" if distribution is None or distribution.count == ok else f", of {distribution.count:,} of {ok:,} ok requests"
    )


def _count_row(label: str, d: Distribution) -> list[str]:
    return [label, *number_texts(d, _number)]


def _per_second(rate: float | None) -> str:
    return "" if rate is None else f", {rate:,.1f} tokens/s"


def _number(value: float) -> str:
    """A count or a rate: four digits, or all of a larger number's whole part."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
