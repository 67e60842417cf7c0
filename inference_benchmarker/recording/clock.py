"""The times of a recording as nanoseconds: in which unit and zone they are written, found by the first of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.replay import unix_ns
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

UNITS = {"s": NS, "ms": 1_000_000, "us": 1000, "ns": 1}
NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_SUFFIXES = {"s": "s", "sec": "s", "secs": "s", "seconds": "s", "ms": "ms", "msec": "ms", "millis": "ms"}
_SUFFIXES |= {"milliseconds": "ms", "us": "us", "micros": "us", "microseconds": "us", "ns": "ns", "nanos": "ns"}
_SUFFIXES |= {"nanoseconds": "ns"}
_EPOCH = (("ns", 10**17), ("us", 10**14), ("ms", 10**11), ("s", 10**8))  # all of them from 1973 on
_MOST_DIGITS = 40
_MOST_NUMBER = 10**19
_TENS: tuple[int, ...] = tuple(10**digits for digits in range(10))
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,9})\d*)?\s*(Z|UTC|[+-]\d\d(?::?\d\d)?)?", re.IGNORECASE
)
_LOG = re.compile(r"(\d\d)/(\w{3})/(\d{4}):(\d\d:\d\d:\d\d)(?:\.(\d{1,9}))? ([+-])(\d\d)(\d\d)")
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}


@dataclass(frozen=True, slots=True)
class Clock:
    """A way in which times are written. ``read`` makes nanoseconds of one (ValueError, TypeError for what is none).

    ``spread_ns``: the unit that they are whole multiples of, where it is coarser than a millisecond.
    """

    unit: str
    zone: str
    spread_ns: int
    read: Callable[[Any], int]


def clock_of(column: str, values: Sequence[Any], unit: str = "") -> Clock:
    """The clock of a column, from the first of its values and its name; ``unit`` is one that was given.

    ValueError for values that are no times.
    """
    first = next((value for value in values if value not in (None, "")), "")
    number = _number(first)
    if number is None:
        return _of_text(str(first), values)
    return _of_numbers(number, unit or _named_unit(column), values)


def log_clock(values: Sequence[Any]) -> Clock:
    """The clock of an access log of nginx or Apache; ValueError for other stamps."""
    match = _LOG.fullmatch(values[0])
    if match is None:
        raise ValueError("is not a time of an access log")
    zone = f"{match[6]}{match[7]}:{match[8]}"
    digits = max(len(found[5] or "") if (found := _LOG.fullmatch(value)) else 0 for value in values)
    return Clock("day/month/year:time", "UTC" if zone == "+00:00" else zone, _coarse(digits), _log_ns)


def coarsest(times_ns: Sequence[int | None]) -> int:
    """The unit coarser than a millisecond that typed times are all whole multiples of; 0 where there is none.

    What is typed does not say how many digits it was written with: parquet has no seconds.
    """
    known = [each for each in times_ns if each is not None]
    units = (60 * NS, NS, NS // 10, NS // 100)
    return next((unit for unit in units if known and not any(each % unit for each in known)), 0)


def iso_ns(text: str) -> int:
    """An ISO 8601 instant in ns since 1970, to the last of nine digits; in UTC where it names no zone."""
    match = _ISO.fullmatch(text.strip())
    if match is None:
        raise ValueError("is not a time")
    return _second(match[1], match[2] + (match[3] or ":00"), match[5] or "") + int((match[4] or "").ljust(9, "0"))


def split_unit(column: str) -> tuple[str, str]:
    """The name of a column and the unit after its colon, if there is one: ``ts:ms``."""
    name, colon, unit = column.rpartition(":")
    return (name, unit) if colon and unit in UNITS else (column, "")


def plain_name(column: str) -> str:
    """A column's name as names are compared: in small letters, without what says its unit."""
    words = _words(column)
    return "_".join(words[:-1] if len(words) > 1 and words[-1] in _SUFFIXES else words)


def _words(column: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", column.strip().lower()) if word]


def _named_unit(column: str) -> str:
    words = _words(column)
    return _SUFFIXES.get(words[-1], "") if len(words) > 1 else ""


def _of_numbers(first: Decimal, unit: str, values: Sequence[Any]) -> Clock:
    epoch = next((name for name, least in _EPOCH if abs(first) >= least), "")
    unit = unit or epoch or "s"
    since_1970 = abs(first) * UNITS[unit] >= 10**17
    factor = UNITS[unit]
    digits = 9
    if unit == "s":
        digits = max(_digits(number) for value in values if (number := _number(value)) is not None)
    text = f"{NAMES[unit]} since {'1970' if since_1970 else 'its beginning'}"

    def read(value: Any) -> int:
        if type(value) is int and abs(value) < _MOST_NUMBER:
            return value * factor
        whole, _, part = value.partition(".") if isinstance(value, str) else ("", "", "")
        if whole.isdecimal() and part.isdecimal() and value.isascii() and len(whole) <= 18 and len(part) <= 9:
            return int(whole) * factor + int(part) * factor // _TENS[len(part)]  # as below, in a third of the time
        number = _number(value)
        if number is None:
            raise ValueError("is not a number")
        return int(number * factor)

    return Clock(text, "UTC" if since_1970 else "", _coarse(digits), read)


def _of_text(first: str, values: Sequence[Any]) -> Clock:
    match = _ISO.fullmatch(first.strip())
    if match is None:
        raise ValueError("is not a time")
    found = [each for value in values if (each := _ISO.fullmatch(str(value).strip()))]
    whole_minutes = not any(each[3] for each in found)
    digits = max(len(each[4] or "") for each in found)
    spread = 60 * NS if whole_minutes and not digits else _coarse(digits)
    return Clock("ISO 8601", _zone_name(match[5] or ""), spread, _iso_reader())


def _iso_reader() -> Callable[[Any], int]:
    """``iso_ns`` for a column, whose rows mostly have the second and the zone of the row before: those take half."""
    second, zone, base = "", "", 0

    def read(value: Any) -> int:
        nonlocal second, zone, base
        text = str(value)
        end = len(text) - len(zone)
        part = text[20:end]
        if text[:20] == second and text[end:] == zone and part.isdecimal() and part.isascii() and len(part) <= 9:
            return base + int(part) * _TENS[9 - len(part)]
        found = iso_ns(text)
        if text[19:20] == "." and text[0].isdigit():
            second, zone = text[:20], text[20:].lstrip("0123456789")
            base = found - int(text[20 : len(text) - len(zone)][:9].ljust(9, "0"))
        return found

    return read


def _zone_name(text: str) -> str:
    if text.upper() in ("", "Z", "UTC"):
        return "UTC"
    digits = text[1:].replace(":", "").ljust(4, "0")
    name = f"{text[0]}{digits[:2]}:{digits[2:]}"
    return "UTC" if digits == "0000" else name


def _coarse(digits: int) -> int:
    """The unit of times with so many digits after the second, where it is coarser than a millisecond."""
    return NS // 10**digits if digits < 3 else 0


def _digits(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _number(value: Any) -> Decimal | None:
    """A number as it is written, exact; None for what is none."""
    text = str(value).strip()
    if isinstance(value, bool) or len(text) > _MOST_DIGITS or not text.isascii() or "_" in text:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number) < _MOST_NUMBER else None


def _log_ns(text: Any) -> int:
    match = _LOG.fullmatch(text)
    if match is None or match[2] not in _MONTHS:
        raise ValueError("is not a time of an access log")
    day = f"{match[3]}-{_MONTHS[match[2]]:02}-{match[1]}"
    return _second(day, match[4], f"{match[6]}{match[7]}:{match[8]}") + int((match[5] or "").ljust(9, "0"))


@lru_cache(4096)
def _second(day: str, time: str, zone: str) -> int:
    """The whole second, in ns: rows that follow each other mostly have the same."""
    name = _zone_name(zone)
    offset = "+00:00" if name == "UTC" else name
    return unix_ns(datetime.fromisoformat(f"{day}T{time}{offset}"))


def no_time(place: str, value: Any, expected: str) -> BenchmarkError:
    """The error of a row whose time cannot be read."""
    shown = quoted(value, 60) if isinstance(value, str) else repr(value)
    return BenchmarkError(f"{place}: {shown} is not a time.", f"Expected {expected}, as in the rows before it.")
