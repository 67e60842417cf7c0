"""The load in a report: its rates, its goodput, who tried again, and what was sent beside it or before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.slo import FIRST_TURN, LATER_TURNS
from inference_benchmarker.report.sessions import until_last
from inference_benchmarker.summary.counted import missing_numbers
from inference_benchmarker.summary.time_table import middle_and_tail, precision_mark
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import (
    INDENT,
    duration_text,
    percent_text,
    pluralize,
    precision_text,
    rate_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.goodput import Goodput
    from inference_benchmarker.summary.repeats import Repeats
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary

_TURNS = {FIRST_TURN: "1st turns", LATER_TURNS: "later"}
_MAX_ROWS = 20
_LONG = 300  # of a name or text of somebody else's in a line


def load_sections(facts: WaveFacts, summary: Summary) -> tuple[Iterator[str], ...]:
    """A section for the rates, and for each of repeats, warm-up, records, warmed cache and calibration; some empty."""
    return (
        _rate_lines(facts, summary),
        _repeat_lines(facts, summary),
        _warmup_lines(summary),
        _records_lines(facts),
        _warmed_lines(facts),
        _calibration_lines(facts),
    )


def _rate_lines(facts: WaveFacts, summary: Summary) -> Iterator[str]:
    rates, load = summary.rates, facts.plan.load
    given = isinstance(load, OpenLoop) and load.is_steady and not load.replay  # else it is a mean
    target = "" if rates.target is None else f"{rate_text(rates.target, 6 if given else 4)} target, "
    sent = f"{rate_text(rates.sent)} sent{' with repeats' if summary.ledger.repeated else ''}"
    within = f" ({precision_text(rates.precision)})" if rates.precision else ""
    if summary.sessions is not None:
        within += until_last(summary.sessions.rates.over_s)
    if endpoint := facts.plan.endpoint:
        yield f"{INDENT}Endpoint:         {one_line(endpoint, _LONG)}"
    yield f"{INDENT}Rate:             {target}{sent}, {rate_text(rates.completed)} completed{within}"
    yield from _rate_of_warmup(summary)
    yield from _recording_lines(facts)
    if summary.goodput is not None:
        yield f"{INDENT}Goodput:          {_goodput(summary.goodput, summary.repeats)}"
    yield from _lag_lines(summary)
    if summary.build is not None:
        yield f"{INDENT}Payload building: {_in_short(summary.build)}"
    for name in ("dropped", "abandoned", "lost", "in_flight"):
        if count := getattr(summary.ledger, name):
            yield f"{INDENT}{name.replace('_', ' ').capitalize() + ':':<17} {count:,}"


def _rate_of_warmup(summary: Summary) -> Iterator[str]:
    """The part of the rates that is of the warm-up's sessions, which no other number has."""
    later = summary.warmup.sent_in_window if summary.warmup else None
    if later and summary.rates.over_s:
        yield f"{INDENT}                  {rate_text(later / summary.rates.over_s)} of it by the warm-up's sessions"


def _recording_lines(facts: WaveFacts) -> Iterator[str]:
    load, recording = facts.plan.load, facts.plan.recording
    if isinstance(load, OpenLoop) and recording is not None:
        text = f"{load.text}, {recording.rows:,} arrivals, at most {recording.peak_rps:,} in a second"
        yield f"{INDENT}Recording:        {one_line(text, _LONG)}"
        yield f"{INDENT}                  {one_line(recording.found, _LONG)}"
    if (sent := facts.plan.conversations) is not None and sent.recorded is not None:
        yield f"{INDENT}Conversations:    {one_line(f'{sent.file.name}: {sent.recorded.found}', _LONG)}"
        if sent.recorded.lacking:
            yield f"{INDENT}                  {one_line(sent.recorded.lacking, _LONG)}"


def _lag_lines(summary: Summary) -> Iterator[str]:
    """The schedule lag; of sessions that of their first turns and that of the later ones, which are paced apart."""
    if summary.sessions is None:
        found = {"Schedule lag": summary.lag}
    else:
        found = {f"Lag, {_TURNS[turns]}": part.lag for turns, part in summary.of_turns.items() if turns in _TURNS}
    for name, lag in found.items():
        if lag is not None:
            yield f"{INDENT}{name + ':':<17} {_in_short(lag)}"


def _goodput(goodput: Goodput, repeats: Repeats | None) -> str:
    """The rate, the share of the sent (the users' where clients try again), and how many met each limit."""
    unmeasured = [each.limit.metric for each in goodput.limits if each.share is None]
    if goodput.rate is None or goodput.share is None:
        return f"not measured: no answer has {', '.join(dict.fromkeys(unmeasured))} (invoke yields no tokens)"
    each = ", ".join(f"{one.limit.expression}: {percent_text(one.share or 0.0)}" for one in goodput.limits)
    of = "those sent" if repeats is None else "the arrivals"
    return f"{rate_text(goodput.rate)}, {percent_text(goodput.share)} of {of} ({each})"


def _repeat_lines(facts: WaveFacts, summary: Summary) -> Iterator[str]:
    """Requests and users apart, where clients try again; in the open loop a user's time is the response time above."""
    repeats, success = summary.repeats, summary.success_rate
    if repeats is None or success is None:
        return
    unit = "arrival" if summary.sessions is None else "turn"
    yield (
        f"{INDENT}{unit.capitalize() + 's:':<17} {repeats.arrivals:,}, {repeats.requests:,} requests "
        f"({repeats.attempts:.2f} per {unit}), {repeats.repeated:,} repeats"
    )
    by_user = percent_text(repeats.success_by_user)
    yield f"{INDENT}Success:          {percent_text(success)} by request, {by_user} by user"
    if repeats.user_time is not None and not isinstance(facts.plan.load, OpenLoop):
        yield f"{INDENT}User's time:      {middle_and_tail(repeats.user_time)}, from arrival to last answer"


def _in_short(d: Distribution) -> str:
    """Three numbers of a time that is none of the endpoint's: it gets no row beside those that are."""
    p50, p99, top = (duration_text(value) for value in (d.percentile(50), d.percentile(99), d.maximum))
    return f"p50 {p50}, p99 {p99}, max {top}{precision_mark(d)}"


def _warmup_lines(summary: Summary) -> Iterator[str]:
    warmup = summary.warmup
    if warmup is None:
        return
    counts, latency = warmup.ledger, warmup.latency
    when = "of sessions begun in" if warmup.sent_in_window else "in"
    sent = f"{pluralize(counts.sent, 'request', 'requests')} {when} {warmup.duration_s:g} s"
    lines = [sent, f"{counts.failed:,} failed"]
    if latency is not None:
        lines.append(f"latency {middle_and_tail(latency)}")
    where = "only rates count those in the window" if warmup.sent_in_window else "not in the other numbers"
    yield f"{INDENT}Warm-up:          {', '.join(lines)} ({where})"


def _records_lines(facts: WaveFacts) -> Iterator[str]:
    """That requests were counted, and what is not measured therefore."""
    if missing := missing_numbers(facts):
        text = f"kept for the slowest {len(facts.records):,} requests only; not measured: {', '.join(missing.values())}"
        yield f"{INDENT}Records:          {text}"


def _warmed_lines(facts: WaveFacts) -> Iterator[str]:
    if facts.warmed is not None:
        number, seconds = facts.warmed
        sent = pluralize(number, "request", "requests")
        yield f"{INDENT}Cache warmed:     {sent} in {seconds:.3g} s before the wave, excluded from every number here"


def _calibration_lines(facts: WaveFacts) -> Iterator[str]:
    if facts.calibration is not None:
        lines = facts.calibration["lines"][:_MAX_ROWS]
        yield from (f"{INDENT}Calibration:      {one_line(line, _LONG)}" for line in lines)
