"""A flag of the command line, said once: its value, help, parser and default; and how a table of flags is read.

Help, the command line, a configuration file and the hints for what is misspelt all go by the same tables. Nothing is
converted before everything is known, so that one message can name every problem.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.units import BYTES, SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from inference_benchmarker.errors import Problem


_MOST_DIGITS = 30  # before the point, or noughts after it
_SECONDS = "S"  # how the value of a flag is called that is a duration
_DURATION = re.compile(rf"\s*(?P<value>\d{{1,20}}(?:\.\d{{1,20}})?)\s*(?P<unit>{'|'.join(SECONDS)})\s*")
_SIZE = re.compile(rf"\s*(?P<value>\d{{1,20}}(?:\.\d{{1,20}})?)\s*(?P<unit>{'|'.join(BYTES)})?\s*", re.IGNORECASE)
_IN_BYTES = {unit.lower(): size for unit, size in BYTES.items()}


def parse_text(_: str, text: str) -> str:
    """A text is what it is."""
    return text


def by_text(parse: Callable[[str], Any]) -> Callable[[str, str], Any]:
    """A flag's parser that needs its text alone, since its errors name the flag."""
    return lambda _, text: parse(text)


class Flag(NamedTuple):
    """A flag: ``metavar`` names its value (None: a switch), ``about`` says what it means.

    ``parse`` makes its value of flag and text, or raises BenchmarkError. ``sets`` is the field of the value that all
    flags of a command describe, where that has another name than the flag. ``default`` is the value where it is not
    given, if the field has none; help says it where {default} stands in ``about``, else at the end, unless ``about``
    says it. ``repeatable``: it makes a tuple. ``hidden``: a command takes it only to say why it is not for it.
    """

    flag: str
    metavar: str | None
    about: str
    parse: Callable[[str, str], Any] = parse_text
    sets: str = ""
    default: Any = None
    repeatable: bool = False
    hidden: bool = False

    @property
    def name(self) -> str:
        """Its name among the options, and in a configuration file."""
        return self.flag[2:].replace("-", "_")

    @property
    def field(self) -> str:
        """The name of the field that it sets."""
        return self.sets or self.name

    @property
    def help(self) -> str:
        """The text of help, with the default."""
        if self.default is None:
            return self.about
        about = (
            self.about
            if "(default" in self.about or "{default}" in self.about
            else f"{self.about} (default {{default}})"
        )
        return about.replace("{default}", _shown(self.default))


Table = dict[str, list[Flag]]
"""The flags of a command, by the title under which help shows them."""


def table_for(*kinds: Any, table: Table) -> Table:
    """The table of flags that describe values of these dataclasses: the default of a flag is that of its field."""
    found = {each.name: each.default for kind in kinds for each in fields(kind) if _is_shown(each.default)}
    return {
        title: [flag if flag.default is not None else flag._replace(default=found.get(flag.field)) for flag in flags]
        for title, flags in table.items()
    }


def reworded(flags: Iterable[Flag], abouts: Mapping[str, str]) -> list[Flag]:
    """The flags of another command, with the help of this one for those of which it has another; by their names."""
    return [flag._replace(about=abouts.get(flag.name, flag.about)) for flag in flags]


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return ",".join(default)
    return f"{default:g}" if isinstance(default, float) else str(default)


def _is_shown(default: Any) -> bool:
    return isinstance(default, (int, float, str, Decimal, Path)) and not isinstance(default, bool) and default != ""


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of flags by field: those given and the defaults. ``unread``: fields whose flag could not be read."""

    values: dict[str, Any]
    unread: set[str]

    def of(self, kind: Any) -> dict[str, Any]:
        """The values for the fields of a dataclass; what is None is left to the dataclass."""
        names = {each.name for each in fields(kind)}
        return {name: value for name, value in self.values.items() if name in names and value is not None}

    def problem_texts(self, problems: Iterable[Problem]) -> list[str]:
        """The sentences of the problems but for those that only follow from a flag that could not be read."""
        return [problem.text for problem in problems if self.unread.isdisjoint(problem.fields)]


def read_flags(flags: Iterable[Flag], options: dict[str, Any], problems: list[str]) -> Reading:
    """Turn flags' text into values; what cannot be read becomes a problem and counts as not given."""
    values, unread = {}, set()
    for flag in flags:
        given = options[flag.name]
        if given is None or flag.metavar is None:
            values[flag.field] = flag.default if given is None else given
        elif flag.repeatable:
            found = [_read(flag, text, problems) for text in given]
            values[flag.field] = tuple(value for value in found if value is not None)
        else:
            values[flag.field] = _read(flag, given, problems)
            if values[flag.field] is None:
                values[flag.field] = flag.default
                unread.add(flag.field)
    return Reading(values, unread)


def _read(flag: Flag, text: str, problems: list[str]) -> Any:
    try:
        return flag.parse(flag.flag, in_seconds(text) if flag.metavar == _SECONDS else text)
    except BenchmarkError as error:
        problems.append(str(error))
    return None


def in_seconds(text: str) -> str:
    """A duration with a unit, as ``10s`` or ``2m``, in seconds; any other text as it is."""
    match = _DURATION.fullmatch(text) if text.isascii() else None
    return text if match is None else f"{(Decimal(match['value']) * SECONDS[match['unit']]).normalize():f}"


def parse_path(flag: str, text: str) -> Path:
    """A path; an empty one is none."""
    if not text.strip() or "\0" in text:
        raise BenchmarkError(f"{flag} must be a path, not {text!r}.")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise BenchmarkError(f"{flag} {text}: there is no such user.") from None


def parse_decimal(flag: str, text: str) -> Decimal:
    """An exact decimal from a flag's text; NaN and infinity are refused, 1,000 and 1_000 too.

    So are numbers that no float holds, and whose exact fraction would fill the memory.
    """
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or not text.isascii() or "_" in text:
        raise BenchmarkError(f"{flag} must be a number, not {quoted(text)}.")
    if value and abs(value.adjusted()) > _MOST_DIGITS:
        raise BenchmarkError(f"{flag} must be from 1e-{_MOST_DIGITS} to 1e{_MOST_DIGITS} in size, not {quoted(text)}.")
    return value


def parse_number(flag: str, text: str) -> float:
    """A number that need not be exact."""
    return float(parse_decimal(flag, text))


def parse_share(flag: str, text: str) -> float:
    """A share, as 0.7 or 70%."""
    percent = text.strip().endswith("%")
    value = parse_number(flag, text.strip().removesuffix("%"))
    return value / 100 if percent else value


def parse_int(flag: str, text: str) -> int:
    """A whole number from a flag's text; 1e3 and 1,000 are refused, 1_000 is not a surprise worth allowing."""
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,100}\s*", text):
        raise BenchmarkError(f"{flag} must be a whole number, not {quoted(text)}.")
    return int(text)


def parse_size(flag: str, text: str) -> int:
    """A whole number of bytes from a size with a unit, as ``256MiB`` or ``1.5GB``; a bare number is of bytes."""
    match = _SIZE.fullmatch(text) if text.isascii() else None
    if match is None:
        raise BenchmarkError(f"{flag} must be a size, as in 64MiB or 1GB, not {quoted(text)}.")
    return int(Decimal(match["value"]) * _IN_BYTES[(match["unit"] or "B").lower()])
