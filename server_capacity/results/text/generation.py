"""Words on what a search found of an endpoint that generates text: tokens, kinds of requests, and its cache. Pure.

What is read here is the object of ``capacity.json``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from inference_benchmarker.facts.server_metric import PREFIX_HIT_RATE
from inference_benchmarker.words.wording import INDENT, aligned, duration_text, metric_text, percent_text
from server_capacity.results.text.headline import number_of, rate_text, unit_of
from server_capacity.results.text.stretches import step_names
from server_capacity.results.types.bounds import Interval
from server_capacity.search.recovery import AFTER, RETURN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from server_capacity.results.types.capacity import CapacityResult, Kind, Tokens
    from server_capacity.results.types.search_waves import LimitRow, StretchRow

FELL, FULL, FILLED, MORE = 0.2, 0.9, 0.05, 1.5
"""So much lower is a share of prefix hits that fell; from this share on a KV cache is full, so much more in use is a
change, and so many times the preemptions are."""
_KV_CACHE, _PREEMPTIONS, _PREFIX_HITS = "kv_cache_use", "preemptions", PREFIX_HIT_RATE


def generation(found: CapacityResult) -> Iterator[str]:
    """Tokens a second at the answer, and a row for each label or length of input."""
    tokens = found.tokens
    if not tokens:
        return
    if tokens.tokens_per_s is not None:
        requests = f"{tokens.requests_per_s or 0.0:,.4g} requests/s"
        prompts = "" if found.sessions is not None else _of_prompts(tokens)
        yield f"{INDENT}At the answer: {tokens.tokens_per_s:,.4g} tokens/s in {requests}{prompts}."
    for title, rows in (("Label", tokens.by_label), ("Input tokens", tokens.by_input_length)):
        if rows:
            header = [title, "sent/s", "requests", "p99", "over"]
            yield from aligned([header, *map(_of_a_kind, rows)])


def _of_prompts(tokens: Tokens) -> str:
    """The tokens of prompts a second there, and how many of them were cached."""
    each, rate = tokens.per_request, tokens.requests_per_s
    if each is None or each.input is None or not rate:
        return ""
    cached = "" if each.cached is None else f" ({rate * each.cached:,.4g}/s cached)"
    return f"; {rate * each.input:,.4g} input tokens/s{cached}"


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
        number_of(row.rate, None, unit),
        "-" if kv_cache is None else percent_text(kv_cache),
        "-" if preemptions is None else metric_text(preemptions),
        "-" if hits is None else percent_text(hits),
        "-" if tokens is None else f"{tokens:,.4g}",
    ]


def after_overload(found: CapacityResult) -> Iterator[str]:
    """The rates at which limits were met again after overload; where they are lower, the cause by the server's word."""
    memory, unit = found.memory, unit_of(found)
    rows = [row for row in found.stretches or [] if row.purpose == RETURN]
    if memory is None and found.sessions is not None and found.interval is not None:
        yield "The search did not see whether the endpoint recovers from overload."
    if memory is None or not rows:
        return
    above = memory.above
    if not memory.differ and above.rate is None and above.interval is not None:
        failed = rate_text(above.interval.high, None, unit)
        yield f"After overload the limits were met again, but a later wave at {failed} failed."
        return
    if not memory.differ:
        yield f"After overload every limit was met again at {rate_text(above.rate, None, unit)}."
        return
    below = rate_text(memory.below.rate, memory.below.interval, unit)
    seen = above.interval or Interval(rows[-1].rate, rows[-1].rate)  # an earlier version stored none where none was met
    met, missed = (rate_text(end, None, unit) for end in (seen.low, seen.high))
    after = f"they were not met again at {missed} and above" if above.rate is None else f"only at {met}"
    yield f"From below the limits are met up to {below}, after overload {after}."
    yield from _gave_in(found, rows[0])


def _gave_in(found: CapacityResult, after: StretchRow) -> Iterator[str]:
    """The server's metrics at the first rate after overload, beside those at about the same rate before."""
    rows = [each for each in found.stretches or [] if each.purpose not in AFTER and each.rate and each.metrics]
    rows = [each for each in rows if not each.void]
    before = min(rows, key=lambda each: abs(math.log(each.rate / after.rate)), default=None)
    if before is None or not after.metrics:
        yield "No metrics of the server were read that would tell the cause."
        return
    words = list(_changes(before.metrics or {}, after.metrics, "from below"))
    where = f"At {rate_text(after.rate, None, unit_of(found))} after overload"
    yield f"{where}, {'; '.join(words)}." if words else f"{where}, the server's KV and prefix caches were as before."


def cliff(found: CapacityResult, limits: Sequence[LimitRow]) -> Iterator[str]:
    """The server's caches between the highest step that met these limits and the lowest above it that missed one.

    Said only where they gave in there; after overload, ``after_overload`` says it.
    """
    if found.memory is not None and found.memory.differ:
        return
    rows = [each for each in found.stretches or [] if each.rate and each.metrics and not each.void]
    rows = [each for each in rows if each.purpose not in AFTER]
    missed = {each.number for each in rows if _is_missed(each, limits)}
    met = [each for each in rows if each.number not in missed and any(share is not None for share in each.share_over)]
    before = max(met, key=lambda each: each.rate, default=None)
    above = [each for each in rows if each.number in missed and before is not None and each.rate > before.rate]
    after = min(above, key=lambda each: each.rate, default=None)
    if before is None or after is None:
        return
    words = list(_changes(before.metrics or {}, after.metrics or {}, "before"))
    tokens = (before.tokens_per_s, after.tokens_per_s)
    if words and tokens[0] is not None and tokens[1] is not None and tokens[1] < tokens[0]:
        words.append(f"{tokens[1]:,.4g} tokens/s were generated ({tokens[0]:,.4g} before)")
    low, high = (rate_text(each.rate, None, unit_of(found)) for each in (before, after))
    if words:
        yield f"Between {low}, where the limits were met, and {high}, the cache gave in: {'; '.join(words)}."


def _is_missed(row: StretchRow, limits: Sequence[LimitRow]) -> bool:
    shares = zip(row.share_over, limits, strict=False)
    return any(share is not None and limit.allowed is not None and share > limit.allowed for share, limit in shares)


def _changes(before: Mapping[str, float], after: Mapping[str, float], when: str) -> Iterator[str]:
    """The metrics of the cache that got worse; ``when``: the first ones were read."""
    hits = (before.get(_PREFIX_HITS), after.get(_PREFIX_HITS))
    if hits[0] is not None and hits[1] is not None and hits[0] - hits[1] >= FELL:
        yield f"{percent_text(hits[1])} of prompt tokens were in the prefix cache ({percent_text(hits[0])} {when})"
    use = (before.get(_KV_CACHE), after.get(_KV_CACHE))
    if use[0] is not None and use[1] is not None and use[1] >= FULL and use[1] - use[0] >= FILLED:
        yield f"{percent_text(use[1])} of the KV cache was in use ({percent_text(use[0])})"
    preempted = (before.get(_PREEMPTIONS), after.get(_PREEMPTIONS))
    if preempted[0] is not None and preempted[1] is not None and preempted[1] > MORE * preempted[0]:
        yield f"{metric_text(preempted[1])} requests/s were preempted ({metric_text(preempted[0])})"
