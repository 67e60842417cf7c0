"""Numbers, shares, times and tables are written like this wherever a person reads them. Pure."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from inference_benchmarker.words.text import columns, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

INDENT = "   "
_GAP = 2  # between the columns of a table
_SIZES = {0: "bytes", 10: "KiB", 20: "MiB", 30: "GiB"}
_PLAIN_UNITS = ("None", "Count", "Percent")


def pluralize(number: int, one: str, many: str) -> str:
    """1 process, 2 processes."""
    return f"{number:,} {one if number == 1 else many}"


def supported(value: float, width: float) -> str:
    """A number to the digits that an interval of this width supports; of one without any width all before the point."""
    decimals = max(0, math.ceil(-math.log10(width / 5))) if width > 0 else 0
    return f"{value:,.{min(decimals, 6)}f}"


def percent_text(share: float, *others: float) -> str:
    """Four significant digits, or as many as it takes not to look like 100% or another share that it is not."""
    beside = {1.0, *others} - {share}
    for digits in range(4, 18):
        text = f"{100 * share:.{digits}g}%"
        if all(text != f"{100 * other:.{digits}g}%" for other in beside):
            break
    return text


def duration_text(seconds: float, beside: float | None = None) -> str:
    """Three significant digits in the unit that fits: 0.02 ms, 20.1 ms, 1.92 s; more to differ from ``beside``."""
    for digits in range(3, 18):
        text = _rounded(seconds, digits)
        if beside is None or seconds == beside or text != _rounded(beside, digits):
            break
    return text


def rate_text(a_second: float, digits: int = 4) -> str:
    """So many a second: 0.1/s, 49.33/s, 1,234.5/s, 20,000/s; of a thousand and more the tenths."""
    text = f"{a_second:.{digits}g}" if abs(a_second) < 999.95 else f"{a_second:,.1f}".removesuffix(".0")
    return f"{text}/s"


def precision_text(share: float) -> str:
    """The most that a value may be off, as the next of ±0.01%, ±0.02%, ±0.05%, ±0.1% and so on."""
    tens = 10.0 ** math.floor(math.log10(share))
    digit = next(digit for digit in (1, 2, 5, 10) if share <= digit * tens * (1 + 1e-9))
    return f"±{100 * digit * tens:.6g}%"


def length_text(seconds: float) -> str:
    """A duration in its two largest units, without a second unit of 0: 4.2 s, 42 s, 1 min, 3 min 20 s, 1 h 5 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    parts = ((minutes // 60, "h"), (minutes % 60, "min")) if minutes >= 60 else ((minutes, "min"), (rest, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def size_text(size: int) -> str:
    """A number of bytes in the largest unit of which it has at least one: 999 bytes, 1.5 KiB, 256 MiB."""
    power = next((power for power in (30, 20, 10) if size >= 1 << power), 0)
    return f"{size / (1 << power):,.4g} {_SIZES[power]}"


def metric_text(value: float | None) -> str:
    """A server's number with as many digits as matter: 312.4, 0.0123, 20,013."""
    if value is None:
        return "N/A"
    return f"{value:,.0f}" if abs(value) >= 1_000 or value % 1 == 0 else f"{value:.4g}"


def number_text(value: float, beside: float | None = None) -> str:
    """A number without a unit, to four digits or all before the point: 0.8, 1,024; more to differ from ``beside``."""
    for digits in range(4, 18):
        text = f"{value:,.0f}" if 1_000 <= abs(value) < 1e15 and digits == 4 else f"{value:.{digits}g}"
        if beside is None or value == beside or text != number_text(beside):
            break
    return text


def money_text(amount: float, currency: str = "USD") -> str:
    """$1.22, $0.0036, $12,345, 1.22 CNY: to cents, of less than ten cents two digits, from a thousand on no cents."""
    size = abs(amount)
    tiny = next((digits for digits in range(2, 12) if size * 10**digits >= 9.95), 2) if size else 2
    text = f"{amount:,.{0 if size >= 999.995 else tiny}f}"
    return f"${text}" if currency == "USD" else f"{text} {currency}"


def unit_text(unit: str | None) -> str:
    """A server's unit; nothing where its metric's name says enough."""
    return "" if unit is None or unit in _PLAIN_UNITS else unit.lower()


def _rounded(seconds: float, digits: int) -> str:
    value, unit = (seconds, "s") if abs(seconds) >= 0.9995 else (seconds * 1e3, "ms")
    if abs(value) >= 99.95:
        return f"{value:.{digits - 3}f} {unit}"
    tiny = 0 < abs(value) < 0.01
    return f"{value:.{digits}f} {unit}" if tiny else f"{value:.{digits}g} {unit}"


def aligned(rows: Sequence[Sequence[str]], width: int | None = None) -> Iterator[str]:
    """Rows of cells as lines: the first column to the left, numbers to the right.

    The header's first cell may reach into the room that its second one leaves. A table that is wider than ``width`` has
    its columns nearer to one another; where that is not enough, long names stand above their numbers, and the columns
    that do not fit in another table below.
    """
    lines = list(_table(rows, _GAP)) if rows else []
    if width is None or _widest(lines) <= width:
        yield from lines
    else:
        yield from _narrow(rows, width)


def _narrow(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    every, least = len(rows[0]), _GAP if any(" " in title for title in rows[0][1:]) else 1
    numbers = sum(least + max(map(columns, column)) for column in list(zip(*rows, strict=True))[1:])
    room = max(width - len(INDENT) - numbers, width // 3)
    short = [[row[0] if columns(row[0]) <= room else "", *row[1:]] for row in rows]
    for count, gap in ((every, _GAP), (every, least), *((count, _GAP) for count in range(every - 1, 1, -1))):
        lines = list(_table([row[:count] for row in short], gap))
        if _widest(lines) <= width:
            break
    for row, (name, *_), line in zip(rows, short, lines, strict=True):
        if name != row[0]:
            yield from wrapped(row[0], width, INDENT, INDENT)
        yield line
    if count < every:
        yield from aligned([[row[0], *row[count:]] for row in rows], width)


def _widest(lines: Iterable[str]) -> int:
    return max(map(columns, lines), default=0)


def _table(rows: Sequence[Sequence[str]], gap: int) -> Iterator[str]:
    first, *widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    if widths:
        room = widths[0] - columns(rows[0][1])
        first = max(columns(rows[0][0]) - room, *(columns(row[0]) for row in rows[1:]), 0)
    for row in rows:
        line, end = INDENT + row[0], len(INDENT) + first
        for cell, width in zip(row[1:], widths, strict=True):
            end += gap + width
            line += " " * (end - columns(line) - columns(cell)) + cell
        yield line.rstrip()


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """The same rows as a table of a page, the first of them its header; nothing where there are none."""
    tags = ("th", *["td"] * len(rows))
    lines = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in zip(tags, rows, strict=False))
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>" if rows else ""
