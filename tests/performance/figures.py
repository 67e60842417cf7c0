"""What a measurement prints: figures beside their targets, the machine they were taken on, one table."""

from __future__ import annotations

import argparse
import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Target:
    """The range a figure must lie in; an end that is None is open."""

    text: str
    least: float | None = None
    most: float | None = None

    def met(self, value: float) -> bool:
        """NaN meets nothing."""
        above = self.least is None or value >= self.least
        below = self.most is None or value <= self.most
        return above and below and value == value  # noqa: PLR0124 - NaN


def below(most: float) -> Target:
    """At most this."""
    return Target(f"< {most:,.10g}", most=most)


def at_least(least: float) -> Target:
    """At least this."""
    return Target(f">= {least:,.10g}", least=least)


def between(least: float, most: float) -> Target:
    """From one to the other."""
    return Target(f"{least:,.10g} .. {most:,.10g}", least, most)


def exactly(value: float) -> Target:
    """One value and no other."""
    return Target(f"= {value:,.10g}", value, value)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that was measured; without a target it is there to be read beside the others."""

    name: str
    value: float
    unit: str = ""
    target: Target | None = None

    @property
    def verdict(self) -> str:
        """``met``, ``short`` or nothing."""
        if self.target is None:
            return ""
        return "met" if self.target.met(self.value) else "short"

    def row(self) -> tuple[str, str, str, str]:
        """Name, value with unit, target, verdict."""
        whole = abs(self.value) >= 1000 or float(self.value).is_integer()
        measured = f"{self.value:,.0f}" if whole else f"{self.value:.4g}"
        target = self.target.text if self.target else ""
        return self.name, f"{measured} {self.unit}".rstrip(), target, self.verdict


def table(title: str, found: Iterable[Figure]) -> str:
    """The figures as an aligned table, which is Markdown as it stands."""
    rows: list[Sequence[str]] = [(title, "measured", "target", "")]
    rows += [figure.row() for figure in found]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(map(str.ljust, row, widths))} |" for row in rows)


def machine() -> str:
    """One line: processor, cores, kernel and the versions that matter to the figures."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("locust", "gevent", "geventhttpclient"))
    cores = len(os.sched_getaffinity(0))
    return (
        f"{_processor()}, {cores} cores, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, {versions}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


@dataclass(frozen=True, slots=True)
class Program:
    """A measurement that can be run by itself: what it is called and how long its waves last, in seconds."""

    title: str
    measure: Callable[[float], list[Figure]]
    seconds: float
    quick_seconds: float

    def run(self, seconds: float) -> bool:
        """Measure and print; true when every target was met."""
        found = self.measure(seconds)
        print(table(self.title, found), end="\n\n", flush=True)
        return all(figure.verdict != "short" for figure in found)

    def main(self) -> None:
        """The command line of one program; the exit code is 1 where a figure falls short."""
        parser = argparse.ArgumentParser(description=self.title)
        parser.add_argument("--seconds", type=float, help=f"length of each wave (default {self.seconds:g})")
        parser.add_argument("--quick", action="store_true", help=f"as --seconds {self.quick_seconds:g}")
        options = parser.parse_args()
        print(machine(), end="\n\n", flush=True)
        default = self.quick_seconds if options.quick else self.seconds
        raise SystemExit(0 if self.run(options.seconds or default) else 1)
