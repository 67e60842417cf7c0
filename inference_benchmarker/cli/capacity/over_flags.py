"""``--over``: the lengths of prompts and answers over which a surface of capacities goes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import Flag, read_flags
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.url import endpoint_address
from inference_benchmarker.words.redact import quoted
from server_capacity.models.surface.lengths import Over, Range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.experiments.measurements.question import Question

_RANGE = re.compile(r"(\d{1,7}):(\d{1,7})(?::(\d{1,2}))?", re.ASCII)
_NAMES = ("input-tokens", "output-tokens")
_EXPECTED = "expected input-tokens=LOW:HIGH,output-tokens=LOW:HIGH such as input-tokens=200:3200,output-tokens=50:400"
LEVELS, MOST_LEVELS = 5, 8
LEAST_ANSWER, LEAST_TIMES = 4, 4
"""Tokens of which the pace of an answer can be measured; and HIGH over LOW, so that twice as long is within."""


def parse_over(flag: str, text: str) -> Over:
    """``input-tokens=LOW:HIGH[:LEVELS],output-tokens=LOW:HIGH[:LEVELS]`` in any order."""
    parts = dict(part.strip().partition("=")[::2] for part in text.split(","))
    if sorted(parts) != sorted(_NAMES) or text.count(",") != 1:
        raise BenchmarkError(f"{flag} {quoted(text)}: {_EXPECTED}.")
    prompts, answers = (_range(flag, name, parts[name]) for name in _NAMES)
    if answers.low < LEAST_ANSWER:
        raise BenchmarkError(f"{flag}: output-tokens must be at least {LEAST_ANSWER}, not {answers.low}.")
    return Over(prompts, answers)


def _range(flag: str, name: str, text: str) -> Range:
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise BenchmarkError(f"{flag} {name}={quoted(text)}: {_EXPECTED}.")
    low, high, levels = int(found[1]), int(found[2]), int(found[3] or LEVELS)
    if not 1 <= low * LEAST_TIMES <= high:
        raise BenchmarkError(f"{flag} {name}={quoted(text)}: HIGH must be at least {LEAST_TIMES} times LOW.")
    if not 2 <= levels <= MOST_LEVELS:
        raise BenchmarkError(f"{flag} {name}={quoted(text)}: there may be 2 to {MOST_LEVELS} levels, not {levels}.")
    return Range(low, high, levels)


OVER_FLAG = Flag(
    "--over",
    "RANGES",
    "for an LLM given by its URL: search at a few prompt and answer lengths, and predict its capacity between them: "
    f"input-tokens=200:3200,output-tokens=50:400. FROM:TO:N predicts it at N lengths (default {LEVELS}, at most "
    f"{MOST_LEVELS}). More searches, at other lengths, check the prediction",
    parse_over,
)


def over_of(options: dict[str, Any], problems: list[str]) -> Over | None:
    """The lengths that were asked for; what speaks against them is added to the problems."""
    if options["over"] is None:
        return None
    found: Over = read_flags([OVER_FLAG], options, []).values["over"]
    problems += _problems(options)
    return found


def take_lengths(over: Over, options: dict[str, Any], addresses: Sequence[str], problems: list[str]) -> None:
    """Give the requests to an address lengths, which each search replaces; what is no LLM's is a problem."""
    text = addresses[0] if addresses else options["url"]
    if text is None or options["factories_file"] or options["locust_file"] or not _is_of_chats(text):
        problems.append("--over sends requests of made-up lengths: give the URL of an LLM (http://HOST:PORT/v1).")
        return
    options["input_tokens"], options["output_tokens"] = map(str, over.base)


def _is_of_chats(text: str) -> bool:
    from inference_benchmarker.engine.endpoint.addressed import is_of_chats

    try:
        return is_of_chats(endpoint_address(text))
    except BenchmarkError:  # which whoever takes the address reports
        return True


def limit_problems(question: Question) -> Iterator[str]:
    """The problems of limits that no simulated engine has."""
    from server_capacity.models.surface.serving import SIMULATED

    known = f"{', '.join(SIMULATED[:-1])} and {SIMULATED[-1]}"
    for limit in question.limits:
        if limit.metric not in (*SIMULATED, "success"):
            yield f"--slo {limit.expression}: --over simulates {known}, and nothing else."
    if question.user_limits or question.plan.server_limits:
        yield "--over simulates the times of requests: leave limits on other values out."
    if not any(limit.bound_s is not None for limit in question.limits):
        yield "--over needs a limit on a time, such as --slo 'ttft.p95<500ms'."


def _problems(options: dict[str, Any]) -> Iterator[str]:
    for name, why in (
        ("vary", "compares endpoints"),
        ("verify", "sends a plan's requests"),
        ("tier", "has several capacities"),
        ("demo", "sends requests of one length"),
        ("prompt", "is of one length"),
        ("body", "has lengths of its own"),
        ("turns", "sends conversations"),
        ("conversations", "has lengths of its own"),
        ("model_mix", "sends to several models"),
        ("export", "is for one search"),
    ):
        if options[name]:
            yield f"--over searches at several lengths, and --{name.replace('_', '-')} {why}: leave one of them out."
    for name in ("input_tokens", "output_tokens"):
        if options[name] is not None:
            yield f"--over has the lengths: leave --{name.replace('_', '-')} {options[name]} out."
    if options["in"] in ("users", "sessions"):
        yield f"--over searches for requests/s: leave --in {options['in']} out."
    if options["cache"] == "warm":
        yield "--over simulates prompts that are all new: leave --cache warm out."
