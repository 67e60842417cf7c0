"""Words on what a search found of an endpoint that generates text: tokens, kinds of requests, and its cache. Pure.

What is read here is the object of ``capacity.json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.facts.server_metric import PREFIX_HIT_RATE
from inference_benchmarker.words.wording import INDENT, aligned, duration_text, metric_text, percent_text
from server_capacity.results.text.headline import rate_text, unit_of
from server_capacity.results.text.stretches import step_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.results.types.capacity import CapacityResult, Kind
    from server_capacity.results.types.search_waves import StretchRow

_KV_CACHE, _PREEMPTIONS, _PREFIX_HITS = "kv_cache_use", "preemptions", PREFIX_HIT_RATE


def generation(found: CapacityResult) -> Iterator[str]:
    """Tokens a second at the answer, and a row for each label or length of input."""
    tokens = found.tokens
    if not tokens:
        return
    if tokens.tokens_per_s is not None:
        requests = f"{tokens.requests_per_s or 0.0:,.4g} requests/s"
        yield f"{INDENT}At the answer: {tokens.tokens_per_s:,.4g} tokens/s in {requests}."
    for title, rows in (("Label", tokens.by_label), ("Input tokens", tokens.by_input_length)):
        if rows:
            header = [title, "sent/s", "requests", "p99", "over"]
            yield from aligned([header, *map(_of_a_kind, rows)])


def _of_a_kind(row: Kind) -> list[str]:
    over = [each for each in row.share_over if each is not None]
    p99 = "-" if row.p99 is None else duration_text(row.p99)
    return [
        row.name, rate_text(row.rate, None, ""), f"{row.requests:,}", p99,
        percent_text(max(over)) if over else "-",
    ]  # fmt: skip


def cache_of_stretches(found: CapacityResult, shown: Sequence[StretchRow]) -> Iterator[str]:
    """A row for each of these stretches of which the server reported its KV cache, preemptions/s or prefix hits."""
    names = (_KV_CACHE, _PREEMPTIONS, _PREFIX_HITS)
    rows = [row for row in shown if any(name in (row.metrics or {}) for name in names)]
    if not rows:
        return
    unit = unit_of(found)
    named = step_names(shown)
    header = ["Step", "users" if found.in_ == "users" else "rate", "KV cache", "preempted/s", "prefix hits", "tokens/s"]
    yield from aligned([header, *(_of_cache(row, named[row.number], unit) for row in rows)])


def _of_cache(row: StretchRow, name: str, unit: str) -> list[str]:
    metrics = row.metrics or {}
    kv_cache, preemptions, hits = (metrics.get(name) for name in (_KV_CACHE, _PREEMPTIONS, _PREFIX_HITS))
    tokens = row.tokens_per_s
    return [
        name,
        rate_text(row.rate, None, unit).removesuffix(unit),
        "-" if kv_cache is None else percent_text(kv_cache),
        "-" if preemptions is None else metric_text(preemptions),
        "-" if hits is None else percent_text(hits),
        "-" if tokens is None else f"{tokens:,.4g}",
    ]
