"""The answer of a capacity search in one line: what it is, or why there is none. Pure.

What is read here is the object of ``capacity.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference_benchmarker.words.wording import supported
from server_capacity.results.types.standing import EARLY, why_early
from server_capacity.search.limit_bracket import KEEPS_UP
from server_capacity.search.stretch import CLIENT

Found = Mapping[str, Any]

_ARRIVALS = {"poisson": "Poisson arrivals", "constant": "evenly spaced arrivals"}


def headline(found: Found) -> str:
    """``174/s keeps p99<100ms (95%: 168 to 180), Poisson arrivals``, or why there is no such number."""
    told = {
        "found": _found,
        "at_least": _at_least,
        "client_limited": _at_least,
        "not_kept": _not_kept,
        "cannot_tell": _cannot_tell,
        "interrupted": _interrupted,
    }[found["outcome"]](found)
    return ("PENDING: " if found.get("pending") else "") + told


def rate_text(rate: float | None, interval: Found | None = None, unit: str = "/s") -> str:
    """A rate to the digits that its interval supports: 174/s, 53.9/s, 0.213/s, 18,400/s; users are whole."""
    if rate is None:
        return "-"
    return f"{supported(rate, _width(interval) or abs(rate) / 20) if unit == '/s' else f'{rate:,.0f}'}{unit}"


def _width(interval: Found | None) -> float:
    return 0.0 if interval is None else float(interval["high"] - interval["low"])


def unit_of(found: Found) -> str:
    """The unit of its rates: requests a second, or users."""
    return " users" if found.get("in") == "users" else "/s"


def between(interval: Found, unit: str) -> str:
    """Both ends of an interval: 168 to 180."""
    low, high = (rate_text(interval[end], interval, unit).removesuffix(unit) for end in ("low", "high"))
    return f"{low} to {high}"


def _how(found: Found) -> str:
    """The load that it is true of."""
    told = ["think time " + str(found["users"]["think"])] if found.get("users") else []
    told += [_ARRIVALS.get(found.get("arrivals") or "", "")] if not told else []
    told += ["warm cache"] if found.get("cache") == "warm" else []
    return "".join(f", {each}" for each in told if each)


def _found(found: Found) -> str:
    interval, unit = found["interval"], unit_of(found)
    verb = "keep" if unit != "/s" else "keeps"
    keeps = "is what it keeps up with" if found["limit"] == KEEPS_UP else f"{verb} {found['limit'] or 'every limit'}"
    rate = rate_text(found["rate"], interval, unit)
    return f"{rate} {keeps} (95%: {between(interval, unit)}){_how(found)}{_doubt(found)}"


def _doubt(found: Found) -> str:
    """The outcome of the last wave at the lower end, unless it held, and why it tells nothing."""
    waves = found.get("confirmation") or []
    if not waves:
        return ""
    told = {"fails": ", whose lower end failed when tried", "cannot_tell": ", not confirmed"}
    because = f": {waves[-1]['spoilt']}" if waves[-1].get("spoilt") else ""
    return told.get(waves[-1].get("verdict"), "") + because


def _at_least(found: Found) -> str:
    at_least, unit = found["at_least"], unit_of(found)
    if at_least is None and (broken := why_early(found)):
        return f"{EARLY}{broken}"
    if at_least is None:
        because = str(found.get("reason") or "it was too little to judge by").removeprefix(CLIENT).removeprefix(": ")
        return f"The client was the limit{f': {because}' if because else ''}"
    whose = "the client was the limit" if found["outcome"] == "client_limited" else "no limit was broken"
    return f"At least {rate_text(at_least['rate'], None, unit)}{_how(found)}: {at_least['reason'] or whose}"


def _not_kept(found: Found) -> str:
    named = f" {found['limit']}" if found.get("limit") else " the limits"
    return f"No {'number of users' if found.get('in') == 'users' else 'rate'} keeps{named}: {_reason(found)}"


def _cannot_tell(found: Found) -> str:
    return f"Cannot tell: {_reason(found)}"


def _interrupted(found: Found) -> str:
    if found.get("rate") is None or found.get("interval") is None:
        return f"Interrupted before there was an answer{_so_far(found)}"
    return f"Interrupted; so far {_found(found)}"


def _so_far(found: Found) -> str:
    at_least = found.get("at_least")
    return "" if at_least is None else f"; {rate_text(at_least['rate'], None, unit_of(found))} kept every limit"


def _reason(found: Found) -> str:
    return str(found.get("reason") or "it was too little to judge by")
