"""A million recorded arrivals in bursts, sent again: counts, instants and memory, beside an even wave of the same rate.

The rate of each second is drawn from a gamma distribution, so that the counts by second have an index of dispersion of
50 (variance by mean; Poisson arrivals have 1). Instants are written to the microsecond.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil

from tests.performance import measure
from tests.performance.figures import Figure, Program, at_least, exactly
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from numpy.typing import NDArray

RATE = 2_500
DISPERSION = 50
EVEN_S = 60.0
SEED = 3
SAMPLE_S = 0.5
_ROLES = {"engine.primary": "the primary", "engine.worker": "a worker"}


def recorded_us(rows: int) -> NDArray[np.int64]:
    """The instants of so many arrivals in whole us: Poisson within each second, at a rate drawn for it."""
    draw = np.random.default_rng(SEED)
    seconds = 2 * rows // RATE + 100
    shape = RATE / (DISPERSION - 1)  # a gamma of this shape with the mean RATE has the variance RATE (DISPERSION - 1)
    counts = draw.poisson(draw.gamma(shape, RATE / shape, seconds))
    within = draw.integers(0, 1_000_000, int(counts.sum()))
    times: NDArray[np.int64] = np.sort(np.repeat(np.arange(seconds), counts) * 1_000_000 + within)[:rows]
    return times


def write(path: Path, times_us: NDArray[np.int64]) -> None:
    """A CSV file with these times in seconds and a number for each row."""
    with path.open("w", encoding="utf-8") as file:
        file.write("timestamp,number\n")
        file.writelines(f"{us // 10**6}.{us % 10**6:06},{number}\n" for number, us in enumerate(times_us.tolist()))


@dataclass
class Seen:
    """A wave with what the server saw of it, and the largest resident memory of each kind of process (MB)."""

    wave: measure.Wave
    joined: pd.DataFrame
    served: int
    before_s: float
    after_s: float
    peaks: dict[str, float] = field(default_factory=dict)

    @property
    def error_ms(self) -> NDArray[np.float64]:
        """How far off its due time each request reached the server, less the median."""
        return measure.schedule_error_ms(self.joined)

    @property
    def early(self) -> int:
        """Requests that were sent, or seen by the server, before they were due."""
        due = self.joined["due"]
        return int(((self.joined["sent"] < due) | (self.joined["arrival"] < due)).sum())


def waved(payloads: int, *flags: str) -> Seen:
    """A wave from two workers against a 1 ms endpoint; times from the command to wave start, and from its end."""
    peaks: dict[int, tuple[str, float]] = {}
    with StampServer(delay_ms=1) as server:
        begun = time.monotonic_ns()
        with measure.running(measure.HTTP, server.url, payloads, "--workers", "2", *flags) as (command, finish):
            while command.poll() is None:
                _note_peaks(command.pid, peaks)
                time.sleep(SAMPLE_S)
            ended = time.monotonic_ns()
            wave = finish()
        log = server.log()
    planned_ns = int(wave.summary["window"]["planned_s"] * 1e9)
    largest: dict[str, float] = {}
    for role, megabytes in peaks.values():
        largest[role] = max(largest.get(role, 0), megabytes)
    before, after = (wave.t0_ns - begun) / 1e9, (ended - wave.t0_ns - planned_ns) / 1e9
    return Seen(wave, measure.arrivals(log, wave), len(log), before, after, largest)


def _note_peaks(command: int, peaks: dict[int, tuple[str, float]]) -> None:
    try:
        family = [psutil.Process(command), *psutil.Process(command).children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for process in family:
        try:
            line = " ".join(process.cmdline())
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        except (psutil.NoSuchProcess, psutil.ZombieProcess, FileNotFoundError, ProcessLookupError):
            continue
        found = [text for text in status.splitlines() if text.startswith("VmHWM")]
        role = next((role for module, role in _ROLES.items() if module in line), "the command")
        if found:
            peaks[process.pid] = (role, float(found[0].split()[1]) / 1024)


def compared(name: str, seen: Seen, base: list[Seen]) -> list[Figure]:
    """A wave's own figures, and their ratios to the mean of the even waves before and after it."""
    lag = seen.wave.lag_ms

    def against(value: Callable[[Seen], float]) -> float:
        return value(seen) / float(np.mean([value(each) for each in base]))

    def error_p99(each: Seen) -> float:
        return measure.percentile(each.error_ms, 99)

    def lag_p99(each: Seen) -> float:
        return measure.percentile(each.wave.lag_ms, 99)

    planned = seen.wave.ledger("scheduled")
    found = [
        Figure(f"{name}: planned", planned),
        Figure(f"{name}: sent", seen.wave.ledger("sent"), "", exactly(planned)),
        Figure(f"{name}: ok", seen.wave.ledger("ok"), "", exactly(planned)),
        Figure(f"{name}: seen by the server", seen.served, "", exactly(planned)),
        Figure(f"{name}: sent or seen before they were due", seen.early, "", exactly(0)),
        Figure(f"{name}: lag p50", measure.percentile(lag, 50), "ms"),
        Figure(f"{name}: lag p99", measure.percentile(lag, 99), "ms"),
        Figure(f"{name}: schedule error p50", measure.percentile(seen.error_ms, 50), "ms"),
        Figure(f"{name}: schedule error p99", error_p99(seen), "ms"),
    ]
    if seen not in base:
        found += [
            Figure(f"{name}: schedule error p99, times the even waves'", against(error_p99)),
            Figure(f"{name}: lag p99, times the even waves'", against(lag_p99)),
        ]
    found += [Figure(f"{name}: resident at most, {role}", peak, "MB") for role, peak in sorted(seen.peaks.items())]
    return [
        *found,
        Figure(f"{name}: from the command to wave start", seen.before_s, "s"),
        Figure(f"{name}: from the wave's planned end to the command's", seen.after_s, "s"),
    ]


def described(file: Path) -> list[Figure]:
    """The recording as ``benchmark replay`` tells of it, and what that takes."""
    begun = time.monotonic()
    done = subprocess.run(
        [*measure.BENCHMARK, "replay", str(file), "--json"],
        env=measure.environment("", 0),
        capture_output=True,
        text=True,
        check=True,
    )
    took = time.monotonic() - begun
    fields = json.loads(done.stdout)
    return [
        Figure("recording: rows", fields["rows"]),
        Figure("recording: mean rate", fields["mean_rps"], "/s"),
        Figure("recording: most in a second", fields["peak_rps"], "/s"),
        Figure("recording: index of dispersion at 1 s", fields["dispersion"], "", at_least(DISPERSION)),
        Figure("recording: benchmark replay", took, "s"),
    ]


def figures(seconds: float) -> list[Figure]:
    """Even, Poisson and recorded waves of one mean rate, an even one again; the recorded one lasts ``seconds``."""
    rows = round(RATE * seconds)
    even_s = min(EVEN_S, seconds)
    flags = ("--client-rps", str(RATE), "--obs-time", f"{even_s:g}")
    times = recorded_us(rows)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        file = Path(folder) / "bursts.csv"
        write(file, times)
        recording = described(file)
        first = waved(rows, *flags)
        drawn = waved(rows, *flags, "--arrivals", "poisson", "--seed", str(SEED))
        replayed = waved(rows, "--replay", str(file))
        last = waved(rows, *flags)
    even = [first, last]
    off = np.abs(replayed.joined["due"].to_numpy() - (times[: len(replayed.joined)] - times[0]) * 1000)
    return [
        *recording,
        *compared("even, before", first, even),
        *compared("Poisson", drawn, even),
        *compared("recorded", replayed, even),
        Figure("recorded: planned, of the file's rows", replayed.wave.ledger("scheduled"), "", exactly(rows)),
        Figure("recorded: due times off the file's instants at most", float(off.max()), "ns", exactly(0)),
        *compared("even, after", last, even),
    ]


PROGRAM = Program("a replay of a million arrivals in bursts", figures, seconds=400, quick_seconds=20)

if __name__ == "__main__":
    PROGRAM.main()
