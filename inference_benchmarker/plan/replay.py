"""Recorded traffic that is sent again: the file, how fast, which part of it, and what was found in it. Pure."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.schedule import Schedule  # noqa: TC001 - a stored plan is held against its types
from inference_benchmarker.words.units import NS, SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAST_SPEED, MOST_SPEED = Decimal("0.001"), Decimal(1000)
SPEED_DIGITS = 6  # of its fraction: so that due times stay exact in 64 bits
_DAY = timedelta(days=1)
_OFFSET = re.compile(r"\+(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h)?")
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,6}))?)?")
_ZONE = re.compile(r"([+-])(\d\d):(\d\d)")


@dataclass(frozen=True, slots=True)
class Recording:
    """Facts of the rows that are sent: where their times stood and how they were read. Instants in ns.

    ``first_ns`` counts from 1970, where the times are of a clock; ``span_ns`` is recorded time from the first row to
    the last one, ``spread_ns`` the unit that the times were spread over, 0 where they are fine enough; ``length_ns`` is
    the wave's, ``peak_rps`` the most arrivals in a second of it. ``zone`` is empty where times are relative.
    ``times_sha256``: of the recorded instants that are sent, as they stood in the file; older plans have none.
    """

    format: str
    column: str
    unit: str
    zone: str
    size_bytes: int
    rows: int
    first_ns: int
    span_ns: int
    spread_ns: int
    length_ns: int
    peak_rps: int
    note: str = ""
    times_sha256: str = ""

    @property
    def length_s(self) -> Decimal:
        """The length of the wave in seconds, exact."""
        return Decimal(self.length_ns) / NS

    @property
    def rate(self) -> Decimal:
        """Arrivals a second over the whole wave."""
        return self.rows / self.length_s

    @property
    def found(self) -> str:
        """The words for what the file was taken for, and for what was done to its times."""
        zone = f", {self.zone}" if self.zone else ""
        text = f"{self.format}, {self.column} in {self.unit}{zone}"
        if self.spread_ns:
            text += f"; its times are whole {unit_text(self.spread_ns)}, over which the seed spreads the arrivals"
        return f"{text}; {self.note}" if self.note else text


@dataclass(frozen=True, slots=True)
class Replay:
    """Traffic of a file, sent again ``speed`` times as fast.

    ``window`` is a part of it (``10:00..11:00``, ``+10m..+20m`` or two instants). ``column`` is the column of its times
    if it is not detected, with the unit after a colon if the detected one is wrong. ``recording`` and ``schedule``
    exist once the file has been read.
    """

    file: Path
    speed: Decimal = Decimal(1)
    window: str = ""
    column: str = ""
    recording: Recording | None = None
    schedule: Schedule | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.file, str):
            object.__setattr__(self, "file", Path(self.file))
        if isinstance(self.speed, (int, float)):
            object.__setattr__(self, "speed", Decimal(str(self.speed)))

    @property
    def text(self) -> str:
        """The file, the part of it, and the speed."""
        part = f" from {self.window}" if self.window else ""
        speed = "" if self.speed == 1 else f" at {self.speed.normalize():f} times its speed"
        return f"{self.file.name}{part}{speed}"

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it, whatever is in the file."""
        if not self.speed.is_finite() or not LEAST_SPEED <= self.speed <= MOST_SPEED:
            yield f"--speed must be from {LEAST_SPEED} to {MOST_SPEED:,}, not {self.speed}."
        elif self.speed != round(self.speed, SPEED_DIGITS):
            yield f"--speed may have {SPEED_DIGITS} digits after the point, not {self.speed}."
        if self.window:
            try:
                ReplayWindow.parse(self.window)
            except BenchmarkError as error:
                yield str(error)

    def to_json(self) -> dict[str, Any]:
        """A JSON object; what the schedule is made of stands in a file of its own."""
        return {
            "file": str(self.file),
            "speed": str(self.speed),
            "window": self.window,
            "column": self.column,
            "recording": None if self.recording is None else asdict(self.recording),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Replay:
        """The value that ``to_json`` described, without a schedule."""
        found = data["recording"]
        recording = None if found is None else Recording(**found)
        return cls(Path(data["file"]), Decimal(data["speed"][:100]), data["window"], data["column"], recording)


class ReplayWindow(NamedTuple):
    """A part of a recording: from one end on, up to the other. Each end is a text that ``parse`` has read once."""

    begin: str
    end: str

    @classmethod
    def parse(cls, text: str) -> ReplayWindow:
        """Read ``10:00..11:00``, ``+10m..+20m`` or ``2026-01-31T10:00..2026-01-31T11:00Z``; BenchmarkError else."""
        begin, dots, end = (part.strip() for part in text.partition(".."))
        window = cls(begin, end)
        if not dots or not all(
            _OFFSET.fullmatch(each) or _TIME_OF_DAY.fullmatch(each) or _instant(each) for each in window
        ):
            raise BenchmarkError(
                f"--window: {text!r} is not a part of a recording.",
                "Write FROM..TO: times of day (10:00..11:00), since its first row (+10m..+20m), or full instants.",
            )
        return window

    def bounds(self, first_ns: int, zone: str) -> tuple[int, int]:
        """Both ends on the recording's clock, whose first row is at ``first_ns``; BenchmarkError where it has none."""
        begin = self._bound(self.begin, first_ns, zone, first_ns)
        if _TIME_OF_DAY.fullmatch(self.begin) and _TIME_OF_DAY.fullmatch(self.end):
            end = self._bound(self.end, first_ns, zone, begin + 1)
            if end <= first_ns:  # the next day's is meant
                begin, end = (each + 86400 * NS for each in (begin, end))
        else:
            end = self._bound(self.end, first_ns, zone, begin)
        if end <= begin:
            raise BenchmarkError(f"--window {self.begin}..{self.end}: it ends before it begins.")
        return begin, end

    def _bound(self, text: str, first_ns: int, zone: str, after_ns: int) -> int:
        if offset := _OFFSET.fullmatch(text):
            return first_ns + int(Decimal(offset[1]) * SECONDS[offset[2] or "s"] * NS)
        if not zone:
            hint = "Its times are not those of a clock: give times after the first row, such as +10m..+20m."
            raise BenchmarkError(f"--window {text}: the recording has no time of day.", hint)
        if (time := _time(text)) is not None:
            return _time_of_day(time, after_ns, first_ns, zone_of(zone))
        instant = _instant(text)
        assert instant is not None
        return unix_ns(instant if instant.tzinfo else instant.replace(tzinfo=zone_of(zone)))


def zone_of(name: str) -> tzinfo:
    """The zone that is called so: UTC, +02:00, Europe/Berlin."""
    if match := _ZONE.fullmatch(name):
        minutes = int(match[2]) * 60 + int(match[3])
        return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
    return UTC if name == "UTC" else ZoneInfo(name)


def clock_text(at_ns: int, zone: str) -> str:
    """An instant as people write it in the recording's zone; of a recording without a clock, its seconds."""
    if not zone:
        return f"{at_ns / NS:g} s"
    instant = datetime.fromtimestamp(at_ns // NS, zone_of(zone))
    return f"{instant:%Y-%m-%d %H:%M:%S}"


def unix_ns(instant: datetime) -> int:
    """An instant in ns since 1970, exact."""
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def unit_text(nanoseconds: int) -> str:
    """The plural of a unit of time that stamps are whole multiples of."""
    names = {60 * NS: "minutes", NS: "seconds", NS // 10: "tenths of a second", NS // 100: "hundredths of a second"}
    return names.get(nanoseconds, f"{nanoseconds / NS:g} s")


def _time_of_day(since_midnight: timedelta, after_ns: int, first_ns: int, zone: tzinfo) -> int:
    """That time on the day of the recording's first row, or on the next one if it would not be after that."""
    day = datetime.fromtimestamp(first_ns // NS, zone).replace(hour=0, minute=0, second=0, tzinfo=None)
    found = unix_ns((day + since_midnight).replace(tzinfo=zone))
    while after_ns != first_ns and found < after_ns:
        day += _DAY
        found = unix_ns((day + since_midnight).replace(tzinfo=zone))
    return found


def _time(text: str) -> timedelta | None:
    match = _TIME_OF_DAY.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
    return timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=int((match[4] or "").ljust(6, "0")))


def _instant(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if len(text) > len("2026-01-31") else None
    except ValueError:
        return None
