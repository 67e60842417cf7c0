"""A recording described before it is sent: its rates, how uneven they are, and the same as stages."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.load import MAX_STAGES
from inference_benchmarker.plan.replay import clock_text
from inference_benchmarker.plan.stage import LEAST_SECONDS, Stage
from inference_benchmarker.recording.formats import opened_source
from inference_benchmarker.recording.reading import ReplayedPart
from inference_benchmarker.words.units import MAX_SECONDS, NS, SECONDS
from inference_benchmarker.words.wording import aligned, duration_text, pluralize, rate_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from inference_benchmarker.plan.replay import Recording, Replay

    Int64 = npt.NDArray[np.int64]

_BARS = "▁▂▃▄▅▆▇█"
_COLUMNS = 60
_LEAST = int(LEAST_SECONDS * NS)
_RATE_DIGITS = Decimal("1E-9")


@dataclass(frozen=True, slots=True)
class Profile:
    """A recording at its own speed: facts of it, and the arrivals of each second from its begin on.

    ``steps`` are the arrivals of each step of ``step_ns``, where stages were asked for.
    """

    recording: Recording
    seconds: Int64
    steps: Int64
    step_ns: int

    @property
    def mean_rps(self) -> float:
        """Arrivals a second over the whole recording."""
        return float(self.recording.rate)

    @property
    def peak_minute(self) -> int:
        """The most arrivals in a minute."""
        return int(_summed(self.seconds, 60).max())

    @property
    def dispersion(self) -> float | None:
        """The index of dispersion of the counts by second: their variance by their mean; None for a single second.

        It is 1 for Poisson arrivals, less for more even ones, more where they come in bursts (Cox and Lewis, The
        statistical analysis of series of events, 1966). A last second that is cut off is left out.
        """
        whole = self.seconds[: self.recording.length_ns // NS]
        return float(whole.var(ddof=1) / whole.mean()) if len(whole) > 1 and whole.any() else None

    @property
    def sparkline(self) -> tuple[str, int]:
        """A bar for each stretch of time, at most sixty, and the seconds of one."""
        seconds = max(1, -(-len(self.seconds) // _COLUMNS))
        counts = _summed(self.seconds, seconds)
        heights = -(-counts * len(_BARS) // max(int(counts.max()), 1))
        return "".join(_BARS[max(height - 1, 0)] if height else " " for height in heights.tolist()), seconds

    def stages(self) -> str:
        """The steps as ``--stages`` reads them, each with its mean rate."""
        if len(self.steps) > MAX_STAGES:
            raise BenchmarkError(
                f"--as-stages: that would be {len(self.steps):,} stages, and there may be {MAX_STAGES:,}.",
                "Give a longer duration.",
            )
        length = self.recording.length_ns
        ends = [min(length, (step + 1) * self.step_ns) for step in range(len(self.steps))]
        lengths = [end - step * self.step_ns for step, end in enumerate(ends)]
        return ", ".join(
            _stage(count, each) for count, each in zip(self.steps.tolist(), lengths, strict=True) if each >= _LEAST
        )

    def to_text(self) -> str:
        """The description for people."""
        return "\n".join(self._lines()) + "\n"

    def to_json(self) -> dict[str, Any]:
        """The description for programs."""
        line, seconds = self.sparkline
        return {
            **asdict(self.recording),
            "mean_rps": self.mean_rps,
            "peak_minute": self.peak_minute,
            "dispersion": self.dispersion,
            "sparkline": line,
            "sparkline_bar_s": seconds,
        }

    def _lines(self) -> Iterator[str]:
        found = self.recording
        line, seconds = self.sparkline
        minute = self.peak_minute / min(60.0, found.length_ns / NS)
        first, last = (clock_text(at, found.zone) for at in (found.first_ns, found.first_ns + found.span_ns))
        yield f"   Found:       {found.found}"
        yield f"   Rows:        {found.rows:,} over {duration_text(found.span_ns / NS)}, from {first} to {last}"
        yield ""
        yield from aligned(
            [
                ["Rate", "mean", "peak second", "peak minute"],
                ["a second", f"{self.mean_rps:.4g}", f"{found.peak_rps:,}", f"{minute:.4g}"],
                ["a minute", f"{self.mean_rps * 60:.4g}", "-", f"{self.peak_minute:,}"],
            ]
        )
        yield ""
        if self.dispersion is not None:
            meaning = "1 is Poisson, more means bursts"
            yield f"   Dispersion:  {self.dispersion:.3g} (variance by mean of the counts by second: {meaning})"
        bar, peak = pluralize(seconds, "second", "seconds"), int(_summed(self.seconds, seconds).max())
        yield f"   Over time:   {line} (a bar is {bar}, the highest {rate_text(peak / seconds)})"


def profile(replay: Replay, step_s: Decimal | None = None) -> Profile:
    """Read a recording and describe it; ``step_s``: what a stage is to last. BenchmarkError for what is none."""
    step_ns = NS if step_s is None else int(step_s * NS)
    with opened_source(replay.file, replay.column) as source:
        part = ReplayedPart(replay, source)
        seconds, steps = _Counts(NS), _Counts(step_ns)
        for arrivals in part.read(0, lambda *_: 0):
            dues = part.dues(arrivals.at)
            seconds.add(dues)
            steps.add(dues)
        recording = part.facts()
    length = recording.length_ns
    return Profile(recording, seconds.until(length), steps.until(length), step_ns)


def parse_step(text: str) -> Decimal:
    """The seconds that a stage lasts, from ``60s``, ``500ms`` or ``5m``."""
    number = text.rstrip("msh")
    unit = text[len(number) :] or "s"
    try:
        seconds = Decimal(number) * SECONDS[unit] if number.replace(".", "", 1).isdigit() else Decimal(0)
    except KeyError:
        seconds = Decimal(0)
    if not LEAST_SECONDS <= seconds <= MAX_SECONDS:
        raise BenchmarkError(
            f"--as-stages must be the duration of each stage, from 1ms to 30 days, not {text!r}.", "e.g. 60s"
        )
    return seconds


class _Counts:
    """The number of arrivals in each step of time, as many steps as there were so far."""

    def __init__(self, step_ns: int) -> None:
        self._step_ns = step_ns
        self._counts = np.zeros(0, np.int64)

    def add(self, dues: Int64) -> None:
        """Count some arrivals."""
        steps = dues // self._step_ns
        last = int(steps[-1])
        if last >= MAX_SECONDS * max(1, NS // self._step_ns):
            return  # it is refused for its length
        if last >= len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(last + 1 + len(self._counts), np.int64)])
        self._counts[: last + 1] += np.bincount(steps, minlength=last + 1)

    def until(self, length_ns: int) -> Int64:
        """The counts of all steps up to an instant."""
        wanted = -(-length_ns // self._step_ns)
        return np.concatenate([self._counts[:wanted], np.zeros(max(0, wanted - len(self._counts)), np.int64)])


def _summed(counts: Int64, by: int) -> Int64:
    """Sums of so many neighbours."""
    summed: Int64 = np.add.reduceat(counts, np.arange(0, len(counts), by))
    return summed


def _stage(count: int, length_ns: int) -> str:
    seconds = Decimal(length_ns) / NS
    rate = (count / seconds).quantize(_RATE_DIGITS).normalize()
    return Stage(rate, rate, seconds.normalize()).text
