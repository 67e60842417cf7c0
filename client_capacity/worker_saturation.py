"""The highest rate that one worker holds for an ``invoke``: ``find_worker_saturation``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from client_capacity.conditions import Conditions, numbers
from client_capacity.deprecated_names import (
    WORKER_ARGUMENTS,
    WORKER_ARGUMENTS_GONE,
    WORKER_KEYS_GONE,
    FormerKeys,
    arguments_of_today,
    fired,
    repeats_of,
)
from client_capacity.search import HighestRate, LimitedBy, SearchSettings, Step, search
from client_capacity.staircase import rate_text
from client_capacity.trial import Trials, trials
from inference_benchmarker.data.json_file import write_json
from inference_benchmarker.system.files import replace_file
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.words.redact import redact
from inference_benchmarker.words.wording import aligned, duration_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

HEADROOM = 0.8
WIDTH = 100
NOTE_INDENT = " " * 8
KIND = "worker_saturation"
TITLE = "WORKER SATURATION – InferenceBenchmarker"


@dataclass(frozen=True, slots=True)
class WorkerSaturation(FormerKeys):
    """The rate that one worker holds, in requests/s, with a 95% interval; ``high`` is None where no end was found.

    Without repeats the interval's ends are the highest rate held and the lowest that was not.

    ``limited_by`` other than "client": the client's own limit was not reached, it holds at least ``rate``.
    """

    rate: float
    low: float
    high: float | None
    limited_by: LimitedBy
    steps: tuple[Step, ...]
    conditions: Conditions
    run_dir: Path | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    gone = WORKER_KEYS_GONE

    def former(self) -> dict[str, Any]:
        """The keys of old: users are requests/s of today; what was fired is the sum over the repeated steps."""
        samples = fired(self.steps)
        return {
            "saturation_users": self.rate,
            "confidence_users": self.rate if samples["confidence_samples"] else None,
            **samples,
            "run_dir": self.run_dir,
        }

    def to_text(self) -> str:
        """A table of the steps and what follows from them."""
        lines = [TITLE, "-" * len(TITLE), *steps_table(self.steps), "", *self._closing()]
        return redact("\n".join(lines) + "\n")

    def to_json(self) -> dict[str, Any]:
        """The content of result.json; seconds, bytes and requests/s."""
        return public_json(
            {
                "schema_version": SCHEMA_VERSION,
                "kind": KIND,
                "rate": self.rate,
                "interval": {"low": self.low, "high": self.high},
                "limited_by": self.limited_by,
                "conditions": self.conditions.to_json(),
                "environment": self.environment,
                "steps": [step.to_json() for step in self.steps],
            }
        )

    def _closing(self) -> Iterator[str]:
        if self.limited_by != "client":
            yield f"{at_least_text('One worker', self.rate)} {reason_text(self.limited_by, self.steps)}"
        elif self.rate:
            yield f"One worker can send {rate_text(self.rate)}/s ({self._interval()}){self._cause()}."
            yield f"Give a worker up to {rate_text(self.rate * HEADROOM)}/s (80%), which leaves headroom."
            yield "To find how many workers this machine can use: benchmark client rps-saturation"
        else:
            least = rate_text(self.high or 0)
            yield f"One worker cannot even send {least}/s: {self.steps[-1].reason}. Make invoke faster."
        yield from disturbed_text(self.steps)
        if self.run_dir is not None:
            yield f"Run directory: {self.run_dir}"

    def _interval(self) -> str:
        if not self.conditions.repeats:
            return f"{rate_text(self.high or 0)}/s was not held"
        return f"95% interval {rate_text(self.low)} to {rate_text(self.high or 0)}/s"

    def _cause(self) -> str:
        """The cause that held the client up in most of the steps."""
        places = [step.blocked_by for step in self.steps if step.blocked_by]
        found = [step.finding for step in self.steps if step.finding]
        if found and len(found) >= len(places):
            code = max(found, key=found.count)
            seen = next(step.reason for step in reversed(self.steps) if step.finding == code)
            return f"; what limits it: {seen}"
        return f"; it is blocked by {max(places, key=places.count)}" if places else ""


def find_worker_saturation(
    factories_file: str | Path,
    *,
    endpoint_name: str | None = None,
    lag_limit_s: float = 0.005,
    step_time_s: float = 3.0,
    repeats: int = 8,
    max_rps: float = 20_000,
    start_rps: float = 8.0,
    output_dir: str | Path = ".tmp",
    say: Callable[[str], None] = lambda _: None,
    **former: Any,
) -> WorkerSaturation:
    """The highest open-loop rate that one worker can send with the ``invoke`` of this file. Takes one to two minutes.

    Held: p99 of the schedule lag within ``lag_limit_s``, nothing dropped, 99% sent, no more than 5% failed or
    unanswered, and nobody to blame for less than 95% completed. Each rate is sent to the endpoint for ``step_time_s``;
    ``repeats`` (0 or from 4 on) make the interval. By default nothing is printed; ``say=print`` prints what is
    tried and one line per step. ``run_dir`` of each step is its run directory, below ``output_dir``.
    Raises BenchmarkError for a file or a value that cannot work, KeyboardInterrupt if interrupted before the
    first step was over; later interrupts end the search with what was measured.

    ``former``: arguments by the names of the original tool (``client_capacity.deprecated_names``).
    """
    todays = arguments_of_today("find_worker_saturation", former, WORKER_ARGUMENTS, WORKER_ARGUMENTS_GONE)
    given = {"repeats": repeats, "max_rps": max_rps, "start_rps": start_rps, **todays}
    given["repeats"] = repeats_of(given["repeats"]) if "repeats" in todays else repeats
    conditions = Conditions(
        factories_file=Path(factories_file),
        endpoint_name=endpoint_name,
        output_dir=Path(output_dir),
        **numbers(lag_limit_s=lag_limit_s, step_time_s=step_time_s, **given),
    )
    return measure_worker(conditions, say)


def measure_worker(conditions: Conditions, say: Callable[[str], None]) -> WorkerSaturation:
    """``find_worker_saturation`` of conditions that are put together; stored in a folder of its own."""
    with trials(conditions, KIND, say) as tried:
        found = saturate_worker(tried, conditions.max_rps, conditions.repeats, conditions.start_rps)
        result = WorkerSaturation(
            found.rate,
            found.low,
            found.high,
            found.limited_by,
            found.steps,
            conditions,
            tried.folder,
            tried.environment,
        )
        store(result, tried.folder)
        return result


def saturate_worker(tried: Trials, max_rate: float, repeats: int, start: float) -> HighestRate:
    """The search itself, with one worker."""
    return search(tried.measure(1), SearchSettings(start=start, max_rate=max_rate, repeats=repeats), tried.say)


def public_json(data: dict[str, Any]) -> dict[str, Any]:
    """The same data with what looks like a credential hidden in its texts, however deep."""
    return {key: _public(value) for key, value in data.items()}


def _public(value: Any) -> Any:
    if isinstance(value, dict):
        return public_json(value)
    if isinstance(value, list | tuple):
        return [_public(entry) for entry in value]
    return redact(value) if isinstance(value, str) else value


def disturbed_text(steps: Sequence[Step], *, crowded: bool = False) -> Iterator[str]:
    """The doubt that others had the cores; ``crowded``: as many workers as cores, so that they may be our own."""
    if disturbed := sum(step.disturbed for step in steps):
        own = " (or the primary and the endpoint, where they share the cores)" if crowded else ""
        yield (f"In {disturbed} of {len(steps)} steps other programs used the core{own}: repeat on a quiet machine.")


def store(result: Any, folder: Path) -> None:
    """Write result.json and result.txt."""
    write_json(folder / "result.json", result.to_json())
    replace_file(folder / "result.txt", result.to_text())


def at_least_text(who: str, rate: float) -> str:
    """The words for what is known where the client's own limit was not found."""
    return f"{who} can send at least {rate_text(rate)}/s." if rate else "Every rate was too high."


def reason_text(limited_by: LimitedBy, steps: tuple[Step, ...]) -> str:
    """Why the client's own limit was not found, and what to do."""
    seen = f" ({steps[-1].reason})" if steps and steps[-1].reason else ""
    return _NOT_THE_CLIENT[limited_by].format(seen=seen)


_NOT_THE_CLIENT = {
    "server": "The endpoint was the limit, not this client{seen}: to measure the client alone, use an endpoint that "
    "answers at once, as --demo does.",
    "errors": "Requests failed{seen}: fix that, and start again.",
    "max_rps": "No higher rate was tried: raise --max-rps to find the limit.",
    "interrupted": "Interrupted before the limit was found.",
}


def steps_table(steps: tuple[Step, ...]) -> Iterator[str]:
    """A row for each step."""
    header = ["", "rate/s", "held", "lag p50", "lag p99", "dropped", "done/s", "CPU", "memory", "host CPU"]
    rows = [header, *(_row(step) for step in steps)]
    notes = ["", *(step.reason for step in steps)]
    for line, note in zip(aligned(rows), notes, strict=True):
        if len(line) + 2 + len(note) <= WIDTH:
            yield f"{line}  {note}".rstrip()
        else:
            yield line
            yield from wrap(note, WIDTH, initial_indent=NOTE_INDENT, subsequent_indent=NOTE_INDENT)


def _row(step: Step) -> list[str]:
    return [
        step.phase,
        rate_text(step.rate),
        "yes" if step.held else "no",
        _duration(step.lag_p50_s),
        _duration(step.lag_p99_s),
        f"{step.dropped:,}",
        rate_text(step.completed_rate),
        share_text(step.worker_cpu_share),
        f"{step.max_rss_bytes / 1e6:.0f} MB",
        share_text(step.host_cpu_share),
    ]


def _duration(seconds: float | None) -> str:
    return "-" if seconds is None else duration_text(seconds)


def share_text(share: float | None) -> str:
    """A share in percent, or a dash."""
    return "-" if share is None else f"{share:.0%}"
