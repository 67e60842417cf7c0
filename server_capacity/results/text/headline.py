"""The answer of a capacity search in one line: what it is, or why there is none. Pure.

What is read here is the object of ``capacity.json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import ARRIVALS_IN_WORDS
from inference_benchmarker.words.wording import supported
from server_capacity.results.types.result_status import (
    EARLY,
    UNSAVED,
    is_after_overload,
    is_unsaved,
    left_behind,
    why_early,
)
from server_capacity.search.limit_bracket import KEEPS_UP
from server_capacity.search.stretch import CLIENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.bounds import Interval
    from server_capacity.results.types.capacity import CapacityResult


def headline(found: CapacityResult) -> str:
    """``Meets p99<100ms up to 174/s (95% interval: 168 to 180), Poisson arrivals``, or why there is no such number."""
    found_out = answer(found)
    beside = "".join(f". {each[:1].upper()}{each[1:]}" for each in _beside(found, found_out))
    return ("PENDING: " if found.pending else "") + found_out + beside


def answer(found: CapacityResult) -> str:
    """The same without all that makes its exit code graver."""
    return {
        "found": _found,
        "at_least": _at_least,
        "client_limited": _at_least,
        "not_kept": _not_kept,
        "cannot_tell": _cannot_tell,
        "interrupted": _interrupted,
    }[found.outcome](found)


def _beside(found: CapacityResult, found_out: str) -> Iterator[str]:
    """Whatever makes its exit code graver than that of the answer, or that doubtful: sentences without a period."""
    early = why_early(found)
    if early and early not in found_out:
        yield f"{EARLY}{early}"
    yield from left_behind(found)
    yield from found.warnings or []
    if is_unsaved(found):
        yield UNSAVED.rstrip(".")


def rate_text(rate: float | None, interval: Interval | None = None, unit: str = "/s") -> str:
    """A rate to the digits that its interval supports: 174/s, 53.9/s, 0.213/s, 18,400/s; users are whole."""
    number = number_of(rate, interval, unit)
    one = number == "1" and not unit.endswith("/s")
    return "-" if rate is None else f"{number}{unit.removesuffix('s') if one else unit}"


def number_of(rate: float | None, interval: Interval | None = None, unit: str = "/s") -> str:
    """The same without its unit."""
    if rate is None:
        return "-"
    return supported(rate, _width(interval) or abs(rate) / 20) if unit.endswith("/s") else f"{rate:,.0f}"


def _width(interval: Interval | None) -> float:
    return 0.0 if interval is None else interval.high - interval.low


UNITS = {"rps": "/s", "users": " users", "sessions": " sessions/s"}


def unit_of(found: CapacityResult) -> str:
    """The unit of its rates: requests or sessions a second, or users."""
    return UNITS[found.in_]


def between(interval: Interval, unit: str) -> str:
    """Both ends of an interval: 168 to 180."""
    low, high = (number_of(end, interval, unit) for end in (interval.low, interval.high))
    return f"{low} to {high}"


def _how(found: CapacityResult) -> str:
    """The load that it is true of."""
    lines = ["think time " + found.users.think] if found.users else []
    lines += [ARRIVALS_IN_WORDS[found.arrivals]] if found.arrivals and not lines else []
    lines += ["warm cache"] if found.cache == "warm" else []
    return "".join(f", {each}" for each in lines)


def _found(found: CapacityResult, verbs: tuple[str, str] = ("Meets", "Keeps"), around: str = "95% interval") -> str:
    interval, unit = found.interval, unit_of(found)
    assert interval is not None
    meets, keeps = verbs
    text = f"{keeps} up with" if found.limit == KEEPS_UP else f"{meets} {found.limit or 'every limit'} up to"
    rate = rate_text(found.rate, interval, unit)
    if is_after_overload(found):
        return f"{text} {rate} after overload ({_sides(found)}){_how(found)}{_doubt(found)}"
    return f"{text} {rate} ({around}: {between(interval, unit)}){_how(found)}{_doubt(found)}"


def _sides(found: CapacityResult) -> str:
    """The rates at which limits were met again after overload and at which they were not, and that from below."""
    assert found.memory is not None
    below, seen, unit = found.memory.below, found.memory.above.interval or found.interval, unit_of(found)
    assert seen is not None
    met, not_met = (number_of(end, seen, unit) for end in (seen.low, seen.high))
    return f"met at {met}, not at {not_met}; from below up to {rate_text(below.rate, below.interval, unit)}"


def _doubt(found: CapacityResult, where: str = "the lower end") -> str:
    """The outcome of the last wave ``where`` the answer is to hold, unless it held, and why it does not count."""
    waves = found.confirmation or []
    if not waves:  # an earlier version stored none
        return "" if found.confirmation is None or found.outcome == "interrupted" else ", not confirmed"
    fields = {"fails": f", but a wave at {where} failed", "cannot_tell": ", not confirmed", "holds": ""}
    because = f": {waves[-1].spoilt}" if waves[-1].spoilt else ""
    return fields[waves[-1].verdict] + because


def _at_least(found: CapacityResult) -> str:
    at_least, unit = found.at_least, unit_of(found)
    if at_least is None and (broken := why_early(found)):
        return f"{EARLY}{broken}"
    if at_least is None:
        because = (found.reason or "there was too little to judge").removeprefix(CLIENT).removeprefix(": ")
        return f"The client was the limit{f': {because}' if because else ''}"
    whose = "the client was the limit" if found.outcome == "client_limited" else "no limit was violated"
    text = f"At least {rate_text(at_least.rate, None, unit)}{_how(found)}: {at_least.reason or whose}"
    return text + _doubt(found, "that rate")


def _not_kept(found: CapacityResult) -> str:
    named = f" {found.limit}" if found.limit else " the limits"
    return f"No {'number of users' if found.in_ == 'users' else 'rate'} meets{named}: {_reason(found)}"


def _cannot_tell(found: CapacityResult) -> str:
    return f"Inconclusive: {_reason(found)}"


def _interrupted(found: CapacityResult) -> str:
    if found.rate is None or found.interval is None:
        return f"Interrupted before there was an answer{_so_far(found)}"
    return f"Interrupted; {_found(found, ('met', 'kept'), '95%')}"


def _so_far(found: CapacityResult) -> str:
    at_least = found.at_least
    return "" if at_least is None else f"; {rate_text(at_least.rate, None, unit_of(found))} met every limit"


def _reason(found: CapacityResult) -> str:
    return found.reason or "there was too little to judge"
