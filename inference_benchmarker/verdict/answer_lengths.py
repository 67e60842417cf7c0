"""Answers of different lengths where all were asked for as long: the load of two runs is not the same. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.words.wording import percent_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.summary import Summary

LEAST_SHARE = 0.9
"""Of the long answers' tokens that short ones have; a stop word or two before the limit is no spread."""
_LEAST_ANSWERS = 20


def length_findings(facts: WaveFacts, summary: Summary) -> Iterator[Finding]:
    """The tool made up the conversations, each answer may be as long as the others, and a tenth is much shorter."""
    lengths = None if summary.tokens is None else summary.tokens.tokens_out_per_request
    if "TURNS" not in facts.plan.factory_settings or lengths is None or lengths.count < _LEAST_ANSWERS:
        return
    short, long = lengths.percentile(10), lengths.percentile(90)
    if short < LEAST_SHARE * long:
        yield Finding(
            "answer_lengths",
            "warning",
            f"answers had from {short:,.0f} (p10) to {long:,.0f} (p90) output tokens",
            f"p10 at least {percent_text(LEAST_SHARE)} of p90",
            "The model ends its answers itself, so lengths, and with a live history also prompts, differ between "
            "servers and runs. If the server supports ignore_eos (vLLM, SGLang), give "
            "--set 'MORE={\"ignore_eos\": true}'; or compare with --history recorded.",
        )
