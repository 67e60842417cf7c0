"""The answer of a capacity search in words: its first line, what it rests on, and every stretch. Pure.

What is read here is the object of ``capacity.json``.
"""

from __future__ import annotations

import math
from textwrap import wrap
from typing import TYPE_CHECKING

from inference_benchmarker.words.text import plain
from inference_benchmarker.words.wording import (
    INDENT,
    aligned,
    duration_text,
    length_text,
    metric_text,
    percent_text,
    pluralize,
)
from server_capacity.results.text.agreement import undecided
from server_capacity.results.text.generation import after_overload, cache_of_stretches, cliff, generation
from server_capacity.results.text.headline import between, headline, rate_text, unit_of
from server_capacity.results.text.model import disagreement, folded_sentence, model_lines
from server_capacity.results.text.stretches import shown_stretches, stretch_rows
from server_capacity.results.types.result_status import is_after_overload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.results.types.capacity import CapacityResult, SessionsAt
    from server_capacity.results.types.search_waves import Confirmation, LimitRow
    from server_capacity.results.types.server_side import At

_MAX_ERRORS = 5
_SURE = 0.0001
_CLEARLY = 2.0  # standard deviations of Poisson arrivals
_BY_BURSTS = "This estimate allows for bursts of slow requests."
LOST = ("the primary process ended", "worker lost")
"""So the reasons begin that a process of this client, and not its speed, is to blame for."""
_OUTCOMES = {"holds": "every limit met", "fails": "but a limit was violated", "cannot_tell": "inconclusive"}


def to_text(found: CapacityResult, folder: str = "", *, verbose: bool = False) -> str:
    """The report: the answer first, beside what confirmed it, and last; at most 80 columns but for names.

    ``verbose``: with the figures of the queueing model; without, it only says where that disagrees.
    """
    answer = headline(found)
    sections = (
        [answer, *(f"{INDENT}{line}" for line in _confirmed(found))],
        _limits(found),
        _sessions(found),
        _confidence(found),
        model_lines(found) if verbose else disagreement(found),
        _load(found),
        generation(found),
        stretch_rows(found, _of_requests(found)),
        cache_of_stretches(found, shown_stretches(found)),
        [answer, *([f"Folder: {folder}"] if folder else [])],
    )
    return "\n\n".join("\n".join(map(plain, lines)) for section in sections if (lines := list(section))) + "\n"


def _limits(found: CapacityResult) -> Iterator[str]:
    """A row for each limit: its value at the interval's lower end, and the highest rate at which it is met."""
    rows, unit = found.limits, unit_of(found)
    if not rows:
        return
    heads = ["Limit", _lower_end(found), "met up to", "95% interval"]
    yield from aligned([heads, *(_limit(row, unit) for row in rows)])


def _lower_end(found: CapacityResult) -> str:
    """The rate that was confirmed last, in words."""
    rates = [wave.rate for wave in found.confirmation or [] if not wave.spoilt]
    return f"at {rate_text(rates[-1], found.interval, unit_of(found))}" if rates else "at the lower end"


def _at_lower_end(found: CapacityResult) -> str:
    """The beginning of a sentence on it, which names its rate where that is known."""
    place = _lower_end(found).capitalize()
    if found.interval is None:
        return f"{place},"
    return f"{place} of the interval," if place.endswith("end") else f"{place}, the lower end of the interval,"


def _limit(row: LimitRow, unit: str) -> list[str]:
    name, value = row.expression, row.at_low_text or _value(row.at_low, row.unit)
    if row.rate is None:
        return [name, value, "the highest tried" if row.kept_everywhere else "inconclusive", "-"]
    interval = row.interval
    return [name, value, rate_text(row.rate, interval, unit), between(interval, unit) if interval else "-"]


def _value(value: float | None, unit: str | None) -> str:
    if value is None:
        return "-"
    if unit == "s":
        return duration_text(value)
    return percent_text(value) if unit == "share" else f"{metric_text(value)}{unit or ''}"


def _rounded(value: float | None) -> float | None:
    """A value of a fitted line, whose further digits say nothing."""
    return None if value is None else float(f"{value:.3g}")


def _sessions(found: CapacityResult) -> Iterator[str]:
    """The load at the interval's lower end in other units, of a search for sessions."""
    at = found.sessions
    if at is None or at.sessions_per_s is None:
        return
    cached = "" if at.cached_tokens_per_s is None else f" ({metric_text(at.cached_tokens_per_s)}/s cached)"
    given = [
        (at.sessions_per_s, "sessions/s"),
        (None if found.in_ == "users" else at.open_sessions, "sessions open at a time"),
        (at.turns_per_s, "turns/s"),
        (at.input_tokens_per_s, f"input tokens/s{cached}"),
        (at.output_tokens_per_s, "output tokens/s"),
    ]
    values = ", ".join(f"{metric_text(value)} {unit}" for value, unit in given if value is not None)
    yield from folded_sentence(f"{_lower_end(found).capitalize()}: {values}.")
    yield from _begun(found, at)
    if at.length_s is not None and at.alone_s:
        lengths = f"{duration_text(at.length_s)}, and {duration_text(at.alone_s)} while few are open"
        yield from folded_sentence(f"A session takes {lengths}.")


def _begun(found: CapacityResult, at: SessionsAt) -> Iterator[str]:
    """The sessions/s that began in the wave there, if chance made them clearly more or fewer than its rate says."""
    seconds = [wave.seconds for wave in found.confirmation or [] if wave.seconds and not wave.spoilt]
    if at.begun_per_s is None or not at.sessions_per_s or not seconds:
        return
    expected = at.sessions_per_s * seconds[-1]
    more = at.begun_per_s * seconds[-1] - expected
    if abs(more) > _CLEARLY * math.sqrt(expected):
        began = f"{'only ' if more < 0 else ''}{metric_text(at.begun_per_s)} sessions/s began"
        yield from folded_sentence(f"Arrivals were random: {began} in the wave at the lower end.")


def _confidence(found: CapacityResult) -> Iterator[str]:
    """Windows and confirmation waves that speak for it, and all that makes it less sure."""
    for failure in found.failures or []:
        yield from folded_sentence(f"✗ {failure}")
    lines = (*_windows(found), *_confirmations(found), *_soak(found), *_law(found), *_errors(found), *_notes(found))
    yield from (f"{INDENT}{line}" for line in lines)


def _windows(found: CapacityResult) -> Iterator[str]:
    windows = found.windows
    if windows and windows.share is not None and (windows.windows or not undecided(found)):
        seconds = length_text(windows.seconds)
        share = percent_text(windows.share) if windows.windows else _share_estimate(windows.share)
        met = f"{_at_lower_end(found)} {share} of windows of {seconds} meet {found.limit or 'every limit'}"
        measured = f" ({windows.kept} of {windows.windows} measured)."
        yield from wrap(f"{met}{measured}" if windows.windows else f"{met}. {_BY_BURSTS}", 76, subsequent_indent="  ")


def _share_estimate(share: float) -> str:
    """An estimated share, to a hundredth of a percent: it is never surely all or none."""
    if share > 1 - _SURE:
        return f"more than {percent_text(1 - _SURE)}"
    return f"less than {percent_text(_SURE)}" if share < _SURE else percent_text(round(share, 4))


def _confirmed(found: CapacityResult) -> Iterator[str]:
    """The last wave at the lower end, if every limit was met: it stands beside the answer."""
    waves = found.confirmation or []
    if waves and waves[-1].verdict == "holds":
        yield from _wave_texts(waves[-1:], found)


def _confirmations(found: CapacityResult) -> Iterator[str]:
    """The other waves."""
    waves = found.confirmation or []
    yield from _wave_texts(waves[:-1] if waves and waves[-1].verdict == "holds" else waves, found)


def _wave_texts(waves: Sequence[Confirmation], found: CapacityResult) -> Iterator[str]:
    for wave in waves:
        rate = rate_text(wave.rate, found.interval, unit_of(found))
        length = "" if wave.seconds is None else f" for {length_text(wave.seconds)}"
        values = [f"{each.expression} ({each.text})" for each in wave.limits if each.text]
        soaked = "Soaked" if wave.soak else "Confirmed" if wave.verdict == "holds" else "Tried"
        first = f"{soaked} at {rate}{length}, {_OUTCOMES[wave.verdict]}"
        if wave.spoilt.startswith(LOST):
            first, values = f"{first}: {wave.spoilt}", []
        elif wave.spoilt:
            whose = "the server did not stay constant" if wave.spoilt_by == "server" else "this client was the limit"
            first, values = f"{first} because {whose}", [wave.spoilt]
        yield from _listed(first, values)
        if wave.invalid:
            reason = f"A plain wave would be INVALID: {wave.invalid}. This is short beside the limits."
            yield from folded_sentence(reason)


def _soak(found: CapacityResult) -> Iterator[str]:
    drift = None if found.soak is None else found.soak.drift
    if drift and drift.clear:
        first, last = duration_text(drift.first), duration_text(drift.last)
        yield f"Latency drifted: the median changed from {first} to {last} during the soak."
    elif drift:
        yield "Latency did not drift during the soak."


def _law(found: CapacityResult) -> Iterator[str]:
    """The response time law N = X (R + Z), compared with the wave that confirmed."""
    law = None if found.users is None else found.users.law
    if law:
        times = f"({duration_text(law.r)} + {duration_text(law.z)} of think time)"
        away = f"{percent_text(abs(law.over - 1))} {'more' if law.over > 1 else 'fewer'}"
        yield f"By the response time law, {law.x:,.4g}/s x {times} is {law.n:,.4g} users,"
        yield f"  {away} than the {law.users:,} that were sent."


def _errors(found: CapacityResult) -> Iterator[str]:
    """The errors that requests failed with, those first that came most often."""
    rows = found.errors or []
    if rows:
        requests = pluralize(sum(row.count for row in rows), "request", "requests")
        others = [f"and {len(rows) - _MAX_ERRORS} other errors"] if len(rows) > _MAX_ERRORS else []
        yield from _listed(f"{requests} failed", [f"{row.count:,} x {row.key}" for row in rows[:_MAX_ERRORS]] + others)


def _listed(first: str, items: Sequence[str]) -> Iterator[str]:
    """A sentence, and what belongs to it in lines below where it does not fit."""
    line = first
    for number, item in enumerate(items):
        joined = f"{line}{', ' if number else ': '}{item}"
        if len(joined) < 74:
            line = joined
        else:
            yield f"{line},"
            line = f"  {item}"
    yield f"{line}."


def _notes(found: CapacityResult) -> Iterator[str]:
    unit = unit_of(found)
    for island in found.islands:
        low, high = (rate_text(end, None, unit) for end in (island.low, island.high))
        yield f"Every limit was also met from {low} to {high}, above a rate that violated one;"
        yield "  the cause is not known."
    yield from _slower(found)
    if void_s := found.void_s:
        sent = length_text(found.load_s or 0.0)
        yield f"The search sent load for {sent}, of which {length_text(void_s)} were discarded."
    for sentence in (*cliff(found, _on_requests(found)), *after_overload(found)):
        yield from wrap(sentence, 76, subsequent_indent="  ")
    judged = (found.shared_s or 0.0) - (found.shared_void_s or 0.0)
    if judged > 0:
        yield f"Of its load, {length_text(judged)} were sent for earlier tiers, and judged by these limits."
    memory = found.memory
    if memory and memory.differ and not is_after_overload(found):
        below, above = (rate_text(side.rate, side.interval, unit) for side in (memory.below, memory.above))
        yield "The endpoint depends on earlier load, or was disturbed once:"
        yield f"  {below} when the rate rose, {above} when it fell."
    payloads = found.payloads
    if payloads and payloads.repeated and found.cache != "warm":
        each = f"up to {math.ceil(payloads.sent_each):,} times"
        which = f"Each of the {payloads.count:,} payloads" if payloads.count > 1 else "The only payload"
        yield f"{which} was sent {each}."
        yield "  If the endpoint caches answers, the results are optimistic."
    if found.own_waits:
        yield from wrap(f"The limit may be the client's: {found.own_waits}.", 76, subsequent_indent="  ")
    if suspended := found.suspended:
        back = "has been restored" if suspended.put_back else "is NOT restored yet: run `benchmark endpoints clean`"
        yield f"Scaling was suspended for the search, and {back}."


def _slower(found: CapacityResult) -> Iterator[str]:
    seen, unit = found.slower, unit_of(found)
    if not seen:
        return
    early, before, after = seen.early, seen.before, seen.after
    lines = [f"{rate_text(early.rate, early.interval, unit)} in the first {length_text(seen.until_s)}"]
    lines = lines if early.rate is not None else []
    if found.rate is not None and found.outcome == "found":
        lines.append(f"{rate_text(found.rate, found.interval, unit)} from {length_text(after.start_s)} on")
    yield f"The endpoint slowed down over time{': ' if lines else ''}{', '.join(lines)}."
    at = [f"at {rate_text(each.rate, None, unit)}, {_seen_there(each)}" for each in (before, after)]
    yield f"  After {length_text(before.start_s)} {at[0]}; after {length_text(after.start_s)} {at[1]}."


def _seen_there(at: At) -> str:
    over = f"{percent_text(at.share)} over"
    return over if at.mean_s is None else f"{duration_text(at.mean_s)} on average, {over}"


def _of_requests(found: CapacityResult) -> list[str]:
    """The limits that are judged by requests."""
    return [row.expression for row in _on_requests(found)]


def _on_requests(found: CapacityResult) -> list[LimitRow]:
    """Those limits: stretches have a share over for each."""
    return [row for row in found.limits if not (row.metric or "").startswith(("server.", "metric."))]


def _load(found: CapacityResult) -> Iterator[str]:
    """The time and where it went, and the resources by the rate at which each is used up."""
    for line in found.where_time_went.lines if found.where_time_went else ():
        yield f"{INDENT}{line}"
    resources, unit = found.resources, unit_of(found)
    if not resources or not resources.all:
        return
    rows = [["Resource", "idle", _lower_end(found), "maximum", "reached at"]]
    for each in resources.all:
        values = (_value(_rounded(value), each.unit) for value in (each.idle, each.at_low, each.limit))
        rows.append([each.metric, *values, rate_text(each.rate, None, unit)])
    yield from aligned(rows)
    yield from folded_sentence("A line fitted to the tried rates gives every column but the maximum.")
    yield f"{INDENT}CPU utilization is that of all cores, GPU utilization that of all GPUs."
    following = resources.next
    if following and following.rate is not None:
        yield f"{INDENT}First to saturate: {following.metric}, at {rate_text(following.rate, None, unit)}."
