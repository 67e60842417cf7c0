"""The contradictions of a search in itself. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK
from inference_benchmarker.plan.slo import Slo
from server_capacity.results.agreement import between, like
from server_capacity.results.types.result_status import standing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.capacity import CapacityResult, Windows
    from server_capacity.results.types.search_waves import LimitRow
    from server_capacity.results.types.server_side import Side, Slower

_MOST = 0.5
_CODES_OF = {
    "found": {OK},
    "at_least": {OK, MISSED},
    "not_kept": {MISSED},
    "cannot_tell": {MISSED},
    "client_limited": {INVALID},
    "interrupted": {INTERRUPTED},
}
"""The exit codes of the outcomes of a search, but for what it left behind."""
_FEW = 50
_OFFERED = 1.01
"""What an answer may be above the highest rate that was offered: a wave offers a rate to four digits."""


def capacity_problems(found: CapacityResult) -> Iterator[str]:
    """Every contradiction of the search in itself, as a sentence."""
    if found.interval is not None:
        yield from between("rate", found.interval.low, found.rate, found.interval.high)
    for row in found.limits:
        if row.interval is not None:
            yield from between(f"the rate of {row.expression}", row.interval.low, row.rate, row.interval.high)
    if found.outcome == "found" and (found.rate is None or found.interval is None):
        yield "its outcome is found, but it has no rate"
    if found.outcome == "found" and found.rate == 0:
        yield "a rate of 0 was found"
    if found.outcome == "at_least" and found.at_least is None:
        yield "its outcome is at_least, but it has no rate"
    yield from _codes(found)
    yield from _counts(found)
    yield from _of_windows(found.windows)
    yield from _of_slower(found.slower)
    if found.memory is not None:
        yield from _of_side("the rate from below", found.memory.below)
        yield from _of_side("the rate from above", found.memory.above)
    yield from _kept_nowhere(found)


def _codes(found: CapacityResult) -> Iterator[str]:
    """The exit code agrees with the outcome, and with what was broken or left behind."""
    good = found.outcome in ("found", "at_least") and found.ended in (None, "complete") and found.clean_up != "failed"
    if found.exit_code == 0 and not good:
        yield f"its exit code is 0, but its outcome is {found.outcome.replace('_', ' ')}"
    if (found.exit_code == 130) != (found.outcome == "interrupted") and found.clean_up != "failed":
        yield f"its exit code is {found.exit_code}, but its outcome is {found.outcome.replace('_', ' ')}"
    if found.confirmed is not None and (not found.confirmation or found.confirmation[-1].verdict != found.confirmed):
        yield "its confirmation differs from that of its last wave"
    yield from _own_code(found)
    yield from _at_low(found)
    for row in found.limits:
        yield from _of_limit(row)


def _own_code(found: CapacityResult) -> Iterator[str]:
    """The exit code is that of the outcome and of what was left behind: earlier versions stored no more of its end."""
    if found.ended is None:
        return
    codes = {standing(replace(found, exit_code=code)).exit_code for code in _CODES_OF[found.outcome]}
    if found.exit_code not in codes and found.exit_code != 0:  # which was reported already
        meant = " or ".join(map(str, sorted(codes)))
        yield f"its exit code is {found.exit_code}, but its answer means {meant}"


def _of_limit(row: LimitRow) -> Iterator[str]:
    """The bound of a limit, and the share that may be over it, are those that its expression has."""
    slo = Slo.read(row.expression)
    if isinstance(slo, str):  # of a server's metric, of a value of the user's own, or of nothing that was violated
        return
    bound = None if slo.stat in ("success", "goodput") else slo.limit
    allowed = 1 - slo.limit if bound is None else 1 - float(slo.stat[1:]) / 100 if slo.stat[1].isdigit() else None
    for stored, meant in ((row.bound, bound), (row.allowed, allowed)):
        if stored is not None and meant is not None and not like(stored, meant):
            yield f"{row.expression} is stored with {stored:g}, and has {meant:g}"


def _at_low(found: CapacityResult) -> Iterator[str]:
    """The values at the lower end are those of the last wave there that nothing spoilt."""
    waves = [each for each in found.confirmation or [] if not each.spoilt]
    fields = {row.expression: row.value for row in waves[-1].limits} if waves else {}
    for row in found.limits:
        value = fields.get(row.expression)
        if value is not None and row.at_low is not None and not like(value, row.at_low):
            yield f"{row.expression} was {value:g} in the wave at the lower end, and is stored as {row.at_low:g}"


def _counts(found: CapacityResult) -> Iterator[str]:
    stretches = found.stretches or []
    for each in stretches:
        if each.end_s < each.start_s or each.failed > each.answered:
            yield f"stretch {each.number} ends before it begins, or has more failures than answers"
        if each.answered > each.sent:
            yield f"stretch {each.number} has {each.answered:,} answers to {each.sent:,} requests"
        expected = each.rate * (each.end_s - each.start_s)
        if found.in_ == "rps" and not each.void and not expected / 2 - _FEW <= each.sent <= 2 * expected + _FEW:
            yield f"stretch {each.number} sent {each.sent:,} requests, but its rate and time give {expected:,.0f}"
    rates = [each.rate for each in stretches] + [each.rate for each in found.confirmation or []]
    answer = found.at_least.rate if found.at_least else found.rate
    if not stretches and found.interval is not None:  # it is confirmed at its lower end
        answer = found.interval.low
    if rates and answer is not None and answer > _OFFERED * max(rates):
        yield f"it tells of {answer:g}, and the highest rate that was tried is {max(rates):g}"


def _of_windows(windows: Windows | None) -> Iterator[str]:
    """The share of windows that were counted is that of those that kept the limits."""
    if windows is None:
        return
    if windows.kept > windows.windows:
        yield f"{windows.kept} of {windows.windows} windows kept the limits"
    elif windows.windows and windows.share is not None and not like(windows.share, windows.kept / windows.windows):
        yield f"{windows.kept} of {windows.windows} windows kept the limits, and their share is {windows.share:g}"
    if windows.interval is not None:
        yield from between("the share of windows", windows.interval.low, windows.share, windows.interval.high)


def _of_slower(slower: Slower | None) -> Iterator[str]:
    """An endpoint that got slower went well first, and not any more after that."""
    if slower is None:
        return
    before, after = slower.before, slower.after
    if before.start_s >= after.start_s:
        yield f"it was slower at {after.start_s:g} s than later, at {before.start_s:g} s"
    if before.mean_s is not None and after.mean_s is not None:
        if before.mean_s >= after.mean_s:
            yield f"it got slower, but answers took no longer: {after.mean_s:g} s after {before.mean_s:g} s"
    elif before.share >= after.share:
        yield f"it got slower, but the share over the limit did not rise: {after.share:g} after {before.share:g}"
    yield from _of_side("the early rate", slower.early)


def _of_side(name: str, side: Side) -> Iterator[str]:
    if side.interval is not None:
        yield from between(name, side.interval.low, side.rate, side.interval.high)


def _kept_nowhere(found: CapacityResult) -> Iterator[str]:
    """A limit that most requests of every stretch were over is kept at no rate.

    A share nearer to what is allowed decides nothing: an answer may lie between rates, and a stretch may be short.
    """
    if found.outcome not in ("found", "at_least"):
        return
    counting = [each for each in found.stretches or [] if not each.void]
    for place, limit in enumerate(found.limits):
        shares = [each.share_over[place] for each in counting if place < len(each.share_over)]
        over = [share for share in shares if share is not None]
        if limit.allowed is not None and over and min(over) > max(limit.allowed, _MOST):
            yield f"its outcome is {found.outcome.replace('_', ' ')}, and every stretch is over {limit.expression}"
