"""The short parts of a report on a terminal: metrics of a server that needs nothing, and the last lines. Pure.

Its last screen has the verdict, the limits, the middle and the tail of the times, the rate and what to do next.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from inference_benchmarker.report.headline import headline
from inference_benchmarker.summary.time_table import middle_and_tail
from inference_benchmarker.verdict.server import diagnose
from inference_benchmarker.verdict.server.action_needed import needs_nothing, uses_of
from inference_benchmarker.words.text import MOST_PROSE, NO_BREAK, one_line, wrapped
from inference_benchmarker.words.wording import INDENT, percent_text, pluralize, rate_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.verdict import Verdict

VERBOSE = "--verbose"
_LONG = 300


def server_in_short(facts: WaveFacts, summary: Summary, verdict: Verdict, width: int) -> list[str]:
    """The server's metrics in one line, and where the time went; nothing where they need a look."""
    if not needs_nothing(facts, summary, verdict):
        return []
    shares = {use.resource: use.share if use.share is not None else use.peak for use in uses_of(facts, summary)}
    lines = [f"{resource} {percent_text(round(share, 2))}" for resource, share in shares.items() if share is not None]
    asked = sum(metric.asked for metric in facts.server_metrics or ())
    words = ", ".join(lines) or f"{pluralize(asked, 'metric', 'metrics')}, none needs a look"
    where = [remark.text for remark in diagnose(facts, summary, verdict.limited_by) if remark.code == "time"]
    width = min(width, MOST_PROSE)
    below = " " * 21
    return [
        *wrapped(f"{words} ({VERBOSE})", width, f"{INDENT}{'Server metrics:':<17} ", below),
        *(line for text in where for line in wrapped(text, width, f"{INDENT}→ ", f"{INDENT}  ")),
    ]


def last_lines(
    facts: WaveFacts,
    summary: Summary,
    verdict: Verdict,
    run_dir: Path | None,
    width: int,
    *,
    next_commands: Sequence[str],
) -> Iterator[str]:
    """The verdict with its cause, times and rate, what to try next, and the run directory."""
    yield headline(summary, verdict)
    if figures := "; ".join(_figures(summary)):
        yield f"{INDENT}{figures}"
    for number, command in enumerate(next_commands):
        yield from _command_lines(command, f"{INDENT}{'Next:' if not number else '':<5} ", width)
    if run_dir is not None:
        name = facts.plan.name
        yield f"Run directory: {run_dir}" + (f" ({one_line(name, _LONG)})" if name else "")


def _command_lines(command: str, first: str, width: int) -> Iterator[str]:
    """A command that can be copied: a line that goes on ends with a backslash, and no word is cut."""
    words = (shlex.quote(word).replace(" ", NO_BREAK) for word in shlex.split(command))
    *before, last = wrapped(" ".join(words), width - len(" \\"), first, " " * (len(first) + 2))
    yield from (f"{line} \\" for line in before)
    yield last


def _figures(summary: Summary) -> Iterator[str]:
    times = {"response time": summary.response_time, "latency": summary.latency}
    name, found = next(((name, each) for name, each in times.items() if each is not None), ("", None))
    if found is None:
        return
    yield f"{middle_and_tail(found)} ({name})"
    if summary.ttft is not None:
        yield f"TTFT {middle_and_tail(summary.ttft)}"
    rates = summary.rates
    target = "" if rates.target is None else f" of {rate_text(rates.target)}"
    yield f"{rate_text(rates.completed)} completed{target}"
