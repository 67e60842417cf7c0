"""The tokens of a request as its server reports them, in the shape of OpenAI, Anthropic or llama.cpp. Pure."""

from __future__ import annotations

from typing import Any

from inference_benchmarker.records.response import MAX_COUNT, Response
from inference_benchmarker.records.user_metrics import CACHED_TOKENS, REASONING_TOKENS

_INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details")
_READ, _WRITTEN = "cache_read_input_tokens", "cache_creation_input_tokens"


def read_usage(
    usage: Any, model: str | None = None, finish_reason: str | None = None, *, timings: Any = None
) -> Response:
    """The tokens of a ``usage`` object, as a Response; ``cached_tokens`` and ``reasoning_tokens`` are metrics.

    ``prompt_tokens`` is all of a prompt, and so is ``input_tokens`` but for Anthropic's, which leaves out what was read
    from the cache or written into it: there the three are added up. ``timings`` are llama.cpp's, whose ``cache_n``
    counts where the usage has no cache. What can be no number of tokens is as if it were not there.
    """
    fields = usage if type(usage) is dict else {}
    tokens_in, cached = _input(fields)
    if cached is None and type(timings) is dict:
        cached = _count(timings.get("cache_n"))
    if cached is not None and cached > (tokens_in or 0):
        cached = None  # of a prompt no more can be cached than it has
    tokens_out = _first(fields, ("completion_tokens", "output_tokens"))
    reasoning = _detail(fields, _OUTPUT_DETAILS, REASONING_TOKENS)
    counts = {CACHED_TOKENS: cached, REASONING_TOKENS: reasoning}
    metrics = {name: count for name, count in counts.items() if count is not None}
    return Response(tokens_in, tokens_out, None, model, finish_reason, metrics or None)


def _input(fields: dict[str, Any]) -> tuple[int | None, int | None]:
    """The tokens of the prompt, and those of them that were in a cache."""
    cached = _detail(fields, _INPUT_DETAILS, CACHED_TOKENS)
    read = _count(fields.get(_READ))
    whole = _count(fields.get("prompt_tokens"))
    if whole is not None:
        return whole, read if cached is None else cached
    rest = _count(fields.get("input_tokens"))
    if rest is None or read is None:
        return rest, cached
    return min(rest + read + (_count(fields.get(_WRITTEN)) or 0), MAX_COUNT), read


def _detail(fields: dict[str, Any], parts: tuple[str, str], name: str) -> int | None:
    details = next((part for each in parts if type(part := fields.get(each)) is dict), {})
    return _count(details.get(name))


def _first(fields: dict[str, Any], names: tuple[str, str]) -> int | None:
    return next((count for name in names if (count := _count(fields.get(name))) is not None), None)


def _count(value: Any) -> int | None:
    """A number of tokens as the server reported it; None for what cannot be one."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None
