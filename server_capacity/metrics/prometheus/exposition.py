"""Prometheus' text format, read: the samples of a page with their labels, and the type each family says it has.

Format 0.0.4 and OpenMetrics 1.0: escapes, exemplars, ``# EOF``, ``# UNIT``, names in quotes. Pure: text goes in.
https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from inference_benchmarker.records.user_metrics import MOST_VALUE
from inference_benchmarker.words.redact import part
from inference_benchmarker.words.text import said

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Labels = tuple[tuple[str, str], ...]
"""Label names and values, in the order of the names."""

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_WORD = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_LABEL = re.compile(
    rf"[ \t]*(?:{_QUOTED}|([a-zA-Z_:][a-zA-Z0-9_:]*))[ \t]*(?:(=)[ \t]*{_QUOTED})?[ \t]*(?:,|(?=\}}))", re.DOTALL
)
_BRACE = re.compile(r"[ \t]*\}")
_DESCRIPTION = re.compile(rf"#[ \t]+(TYPE|UNIT)[ \t]+(?:{_QUOTED}|(\S+))[ \t]+(\S+)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", '"': '"', "\\": "\\"}
MOST_BYTES = 64 << 20
"""Of the samples that are read of a page: it may have more than a process has room for."""
TOO_LARGE = "the samples of the page take more than 64 MiB: those that stand last are left out"
SAMPLE_BYTES = 700  # of a sample that is kept, without its texts
_TEXT_BYTES = 65  # of a text without its characters, and its place in a tuple
_SHOWN = 80
_BESIDE = 4000  # characters on either side of a line


class ExpositionError(ValueError):
    """A text that is no such page: names the line and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: a value at the moment of reading, or at ``timestamp`` (seconds, unix) where the page says so."""

    name: str
    labels: Labels
    value: float
    timestamp: float | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The samples in their order; ``types`` and ``units`` by family, as far as the page says.

    ``broken``: by the name it begins with, what is wrong with the first line of which nothing can be read.
    ``left_out``: the names of which samples are on the page that were not kept, since it is too large. ``server`` and
    ``peer``: the one that it came from, as ``Reply`` has them.
    """

    samples: tuple[Sample, ...]
    types: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    server: str = ""
    peer: str = ""


def held_by(*texts: str) -> int:
    """The bytes that a sample takes, or a description, with these texts."""
    return SAMPLE_BYTES + sum(_TEXT_BYTES + len(text) for text in texts)


def parse(text: str, names: Collection[str] | None = None, openmetrics: bool = False) -> Page:
    """The page's samples; with ``names`` only those with such a name, and the labels of others are not looked at.

    ``openmetrics``: so the server called it; it then ends with ``# EOF``, or was cut off. Raises ExpositionError; where
    some names are asked for, a line that cannot be read costs no other. Of a page whose samples take more than
    ``MOST_BYTES`` those that stand last are not kept.
    """
    ended = text.rstrip().endswith("# EOF")
    if openmetrics and not ended:
        raise ExpositionError("the page was cut off: OpenMetrics ends with # EOF")
    samples: list[Sample] = []
    types: dict[str, str] = {}
    units: dict[str, str] = {}
    broken: dict[str, str] = {}
    left_out: set[str] = set()
    scale = 1.0 if ended else 1e-3
    room = MOST_BYTES
    for number, (start, end) in enumerate(_lines(text), 1):
        if not (line := text[start:end].strip(" \t\r")):
            continue
        if line.startswith("#"):
            if found := _DESCRIPTION.match(line):
                word, quoted, bare, value = found.groups()
                (types if word == "TYPE" else units)[bare or unescape(quoted)] = value
            continue
        try:
            sample = _sample(line, names, scale)
        except ValueError as error:
            shown = _shown(text, start, end)
            bare = _NAME.match(line)
            broken.setdefault(
                bare[0] if bare else "", f"line {number} is not in Prometheus' text format ({error}): {shown}"
            )
            continue
        if sample:
            room -= held_by(*chain(*sample.labels))
            if room >= 0:
                samples.append(sample)
            else:
                left_out.add(sample.name)
    if broken and (names is None or not samples):
        raise ExpositionError(next(iter(broken.values())))
    return Page(tuple(samples), types, units, broken, frozenset(left_out))


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """The start and the end of each line (a list of lines would take more room than the page)."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield start, end
        start = end + 1
    yield start, len(text)


def _shown(page: str, start: int, end: int) -> str:
    """The beginning of a line of a page, hidden with those beside it: a key may go over several."""
    before, behind = max(start - _BESIDE, 0), end + _BESIDE
    return said(part(page[before:behind], start - before, end - before), _SHOWN)


def parse_selector(text: str) -> tuple[str, Labels]:
    """A name and the labels it must have, as in ``requests_total{status="200"}``. Raises ExpositionError."""
    text = text.strip()
    try:
        name, labels, position = _series(text)
        if text[position:].strip():
            raise ValueError(f"{text[position:].strip()!r} follows it")
    except ValueError as error:
        expected = 'a metric\'s name, with labels as in name{label="value"} if need be'
        raise ExpositionError(f"{text!r} must be {expected} ({error})") from None
    return name, labels


def render_selector(name: str, labels: Labels) -> str:
    """The text that ``parse_selector`` reads, and PromQL too."""
    inner = ",".join(f'{_label(label)}="{escape(value)}"' for label, value in labels)
    return f"{name}{{{inner}}}" if inner else name


def _label(name: str) -> str:
    """A label's name; one that is no word of PromQL stands in quotes, as OpenTelemetry's, which have dots."""
    return name if _WORD.fullmatch(name) else f'"{escape(name)}"'


def escape(value: str) -> str:
    """A label's value as it stands between quotes."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def unescape(value: str) -> str:
    """The text between quotes; an unknown escape is kept as it is, as Prometheus does."""
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[0]), value) if "\\" in value else value


def parse_value(text: str) -> float:
    """A number as Go reads it: +Inf, -Inf and NaN too. Raises ValueError.

    One so large that sums and differences of a few have no end is NaN.
    """
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    try:
        return bounded(float(text))
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def bounded(value: float) -> float:
    """The number, infinities too; NaN for what nothing can be computed with."""
    return math.nan if MOST_VALUE < abs(value) < math.inf else value


def _sample(line: str, names: Collection[str] | None, scale: float) -> Sample | None:
    bare = _NAME.match(line)
    if names is not None and bare and bare[0] not in names:
        return None
    name, labels, position = _series(line)
    if names is not None and name not in names:
        return None
    numbers = line[position:].partition("#")[0].split()  # an exemplar may follow
    if not 1 <= len(numbers) <= 2:
        raise ValueError("a value is missing" if not numbers else "too much follows the value")
    timestamp = parse_value(numbers[1]) * scale if len(numbers) == 2 else None
    return Sample(name, labels, parse_value(numbers[0]), timestamp)


def _series(line: str) -> tuple[str, Labels, int]:
    """Name, labels and where they end."""
    bare = _NAME.match(line)
    name, position = (bare[0], bare.end()) if bare else ("", 0)
    after = len(line) - len(line[position:].lstrip(" \t"))
    if line[after : after + 1] == "{":
        quoted, labels, position = _labels(line, after + 1)
        if name and quoted:
            raise ValueError("two names")
        return _named(name or quoted), labels, position
    if position < len(line) and after == position:
        raise ValueError(f"{line[position]!r} in a name")
    return _named(name), (), position


def _named(name: str) -> str:
    if not name:
        raise ValueError("no name")
    return name


def _labels(line: str, position: int) -> tuple[str, Labels, int]:
    name, labels = "", {}
    while not (closing := _BRACE.match(line, position)):
        found = _LABEL.match(line, position)
        if not found:
            raise ValueError("labels are broken")
        quoted, bare, equals, value = found.groups()
        key = bare or unescape(quoted or "")
        if equals:
            if key in labels:
                raise ValueError(f"label {key} appears twice")
            labels[key] = unescape(value)
        elif bare or name or labels:
            raise ValueError(f"label {key} has no value")
        else:
            name = key
        position = found.end()
    return name, tuple(sorted(labels.items())), closing.end()
