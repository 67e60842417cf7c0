"""What came of searches, and the tables that sum them up."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from server_capacity.search.answer import Answer


@dataclass(frozen=True, slots=True)
class Result:
    """One search. Rates in requests/s; ``low`` and ``high`` None where it gave no interval.

    ``remembers``: it gave two answers, from below and from above; ``islands``: how many it showed.
    """

    endpoint: str
    seed: int
    truth: float
    outcome: str
    rate: float | None
    low: float | None
    high: float | None
    at_least: float | None
    limit: str | None
    islands: int
    remembers: bool
    load_s: float
    cpu_s: float

    @classmethod
    def of(
        cls, endpoint: str, seed: int, truth: float, answer: Answer, *, load_s: float = 0.0, cpu_s: float = 0.0
    ) -> Self:
        """An answer beside the truth."""
        low, high = (answer.interval.low, answer.interval.high) if answer.interval else (None, None)
        remembers, islands = answer.memory is not None, len(answer.islands)
        found = (answer.outcome, answer.rate, low, high, answer.at_least, answer.limit, islands, remembers)
        return cls(endpoint, seed, truth, *found, round(load_s, 2), round(cpu_s, 5))

    @property
    def covers(self) -> bool:
        """The interval contains the truth."""
        return self.low is not None and self.high is not None and self.low <= self.truth <= self.high

    @property
    def too_high(self) -> bool:
        """The lower end is above the truth; so is what is said to be kept at least."""
        least = self.at_least if self.low is None else self.low
        return least is not None and least > self.truth

    @property
    def half(self) -> float:
        """The interval's half-width, inf without one."""
        return math.inf if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def score(self) -> float:
        """The interval score: the width, and 40 times what it misses the truth by; inf without an interval."""
        if self.low is None or self.high is None:
            return math.inf
        return self.high - self.low + 40 * max(0.0, self.low - self.truth, self.truth - self.high)

    @property
    def error(self) -> float:
        """The rate found, less the truth."""
        return (self.rate or 0.0) - self.truth


HEAD = """\
      endpoint    of  covers   lower  score /   bias / half  error   half-  no    load    CPU
                           end above  oracle    mean median median   width inter.    s      ms"""


def line(results: Sequence[Result], reference: float | None) -> str:
    """One endpoint's line of the table; ``reference``: the oracle's median score."""
    count = len(results)
    found = [result for result in results if result.half < math.inf and result.rate]
    truth = results[0].truth
    half = _median(result.half for result in found)
    score = sorted(result.score for result in results)[count // 2]
    errors = [result.error for result in found]
    mean = statistics.fmean(errors) / half if found and half else math.nan
    cells = (
        f"{results[0].endpoint:>14} {count:5d}",
        f"{100 * _share(result.covers for result in results):6.2f}%",
        f"{100 * _share(result.too_high for result in results):6.2f}%",
        f"{score / reference:7.3f}" if reference else "      -",
        f"{mean:+7.2f} {_median(errors) / half if half else math.nan:+6.2f}",
        f"{100 * _median(errors) / truth:+6.1f}% {100 * half / truth:6.2f}%",
        f"{count - len(found):4d}",
        f"{statistics.fmean(result.load_s for result in results):6.0f}",
        f"{1e3 * statistics.fmean(result.cpu_s for result in results):6.0f}",
    )
    return " ".join(cells)


def many(name: str, results: Sequence[Result]) -> str:
    """A line for endpoints of many kinds, or for what no oracle knows: shares, and what was answered."""
    found = [result for result in results if result.half < math.inf]
    counts = {key: Counter(getattr(result, key) for result in results) for key in ("outcome", "limit")}
    text = "; ".join(", ".join(f"{n} {value}" for value, n in count.most_common(4)) for count in counts.values())
    return (
        f"{name}, {len(results)}: covers {100 * _share(result.covers for result in results):.1f}%, lower end above "
        f"{100 * _share(result.too_high for result in results):.1f}%, error / half-width median "
        f"{_median(result.error / max(result.half, 1e-9) for result in found):+.2f}, half-width median "
        f"{100 * _median(result.half / result.truth for result in found if result.truth):.1f}%, with islands "
        f"{sum(result.islands > 0 for result in results)}, remembers {sum(result.remembers for result in results)}, "
        f"load {_median(result.load_s for result in results):.0f} s ({text})"
    )


def misses(results: Iterable[Result]) -> str:
    """A line for each interval without the truth."""
    lines = []
    for result in results:
        if not result.covers:
            span = f"{result.low:.2f} to {result.high:.2f}" if result.low is not None else "no interval"
            lines.append(f"  {result.endpoint} seed {result.seed}: {result.outcome}, {span}, truth {result.truth:.2f}")
    return "\n".join(lines)


def read(file: Path | None) -> dict[tuple[str, int], Result]:
    """Results that were kept, by endpoint and seed."""
    if file is None or not file.exists():
        return {}
    results = (Result(**json.loads(line)) for line in file.read_text().splitlines())
    return {(result.endpoint, result.seed): result for result in results}


def keep(file: Path | None, result: Result) -> None:
    """Add one."""
    if file is not None:
        with file.open("a") as lines:
            lines.write(json.dumps(asdict(result)) + "\n")


def _share(values: Iterable[bool]) -> float:
    return statistics.fmean(values)


def _median(values: Iterable[float]) -> float:
    known = list(values)
    return statistics.median(known) if known else math.nan
