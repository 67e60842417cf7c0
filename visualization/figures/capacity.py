"""Capacity folders: what stands in their capacity.json, and the card of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.exit_codes import MISSED, OK
from inference_benchmarker.plan.load import ARRIVALS_IN_WORDS
from inference_benchmarker.system.files import is_there
from inference_benchmarker.system.given import resolved
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import duration_text, length_text, supported
from visualization.figures.figures import Card, Tile
from visualization.figures.reading import tell_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.search_waves import Confirmation, LimitRow

CAPACITY_FILE = "capacity.json"
_LONG = 200
_FOUND = ("found", "at_least")


@dataclass(frozen=True, slots=True)
class Capacity:
    """A capacity folder, and the result of its search."""

    path: Path
    label: str
    found: CapacityResult
    hover: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """Of its rates."""
        return {"rps": "/s", "users": "users", "sessions": "sessions/s"}[self.found.in_]

    @property
    def ends(self) -> tuple[float | None, float | None, float | None]:
        """The rate, and both ends of its interval."""
        interval = self.found.interval
        return self.found.rate, *((None, None) if interval is None else (interval.low, interval.high))

    @property
    def holding(self) -> LimitRow | None:
        """The limit that was violated first."""
        return next((row for row in self.found.limits if row.expression == self.found.limit), None)


def is_capacity(path: Path) -> bool:
    """Tells whether a folder holds the answer of a search."""
    return is_there(path / CAPACITY_FILE)


def read_capacities(
    paths: Sequence[Path], metadata: Mapping[str, Mapping[str, Any]], read: Callable[[Path], CapacityResult]
) -> tuple[Capacity, ...]:
    """The capacity folders; ``metadata`` is keyed by their basenames. ``read``: BenchmarkError for a damaged one."""
    found = [read(path) for path in paths]
    given = [metadata.get(resolved(path).name, {}) for path in paths]
    names = [str(data.get("legend") or each.name or "") for data, each in zip(given, found, strict=True)]
    labels = tell_apart([one_line(name, _LONG) for name in names], paths)
    hovers = [tuple(f"{key}: {value}" for key, value in data.items() if key != "legend") for data in given]
    return tuple(Capacity(*each) for each in zip(paths, labels, found, hovers, strict=True))


def tiles(capacities: Sequence[Capacity]) -> Iterator[Tile]:
    """Of the only search there is: its answer, what confirmed it, what runs out first, and the queueing model."""
    if len(capacities) != 1:
        return
    (capacity,) = capacities
    found, unit = capacity.found, "/s" if capacity.unit == "/s" else f" {capacity.unit}"
    rate, low, high = capacity.ends
    if rate is not None and low is not None and high is not None:
        width = max(high - low, 1.0 if capacity.unit == "users" else 0.0) or rate / 20
        ends = f"95% interval: {supported(low, width)} to {supported(high, width)}{unit}"
        yield Tile("Capacity", f"{supported(rate, width)}{unit}", f"{found.limit or 'every limit'}; {ends}", large=True)
        if (wave := confirmed_wave(capacity)) is not None:
            length = "" if wave.seconds is None else f" for {length_text(wave.seconds)}"
            yield Tile("Confirmed", f"{supported(wave.rate, width)}{unit}", f"every limit met{length}", "good")
        else:
            yield Tile("Confirmed", "no", "no wave at the lower end met every limit", "bad")
    elif found.at_least is not None:
        yield Tile("At least", f"{found.at_least.rate:,.4g}{unit}", found.at_least.reason or "", large=True)
    following = None if found.resources is None else found.resources.next
    if following is not None and following.rate is not None:
        yield Tile("First to saturate", following.metric, f"at {following.rate:,.4g}{unit}")
    yield from _model_tile(found, unit)


def _model_tile(found: CapacityResult, unit: str) -> Iterator[Tile]:
    twin, count = found.twin, found.interval
    if twin is None or twin.rate is None or twin.interval is None or not twin.fits:
        return
    model = twin.interval
    apart = count is not None and (count.low > model.high or model.low > count.high)
    note = f"95% interval: {model.low:,.4g} to {model.high:,.4g}"
    note += "; it disagrees with the measurement: plan with the measurement's lower end" if apart else ""
    yield Tile("Queueing model", f"{twin.rate:,.4g}{unit}", note, "bad" if apart else "")


def confirmed_wave(capacity: Capacity) -> Confirmation | None:
    """The last wave at the answer, if every limit was met in it."""
    waves = capacity.found.confirmation or []
    return waves[-1] if waves and waves[-1].verdict == "holds" else None


def lead(capacities: Sequence[Capacity]) -> str:
    """The answer of the only search there is."""
    return capacities[0].found.headline if len(capacities) == 1 else ""


def capacity_card(capacity: Capacity) -> Card:
    """The words on one, above all figures."""
    found, lacks = capacity.found, _lacks(capacity.found)
    return Card(
        label=capacity.label,
        verdict=found.outcome.replace("_", " ") + (f" ({lacks})" if lacks else ""),
        doubtful=found.outcome not in _FOUND,
        missed=found.outcome == "not_kept" or bool(lacks),
        facts=tuple(_fact_lines(capacity)),
        headline=tuple(_headline(capacity)),
        hover=capacity.hover,
        findings=(),
        problems=(found.reason,) if found.reason else (),
    )


def _lacks(found: CapacityResult) -> str:
    """The reason for which a search that has an answer does not end with 0; nothing where it does."""
    if found.outcome not in _FOUND or found.exit_code == OK:
        return ""
    if found.ended == "early":
        return "ended early"
    if found.exit_code == MISSED and found.confirmed != "holds":
        return "a confirming wave failed" if found.confirmed == "fails" else "not confirmed"
    return f"exit code {found.exit_code}"


def _fact_lines(capacity: Capacity) -> Iterator[str]:
    found = capacity.found
    if found.limit:
        yield found.limit
    if capacity.unit != "users" and found.arrivals:
        yield ARRIVALS_IN_WORDS[found.arrivals]
    if found.load_s is not None:
        yield f"{length_text(found.load_s)} of load" + (
            f", {length_text(found.void_s)} discarded" if found.void_s else ""
        )
    if found.created is not None:
        yield f"{found.created[:16].replace('T', ' ')} UTC"


def _headline(capacity: Capacity) -> Iterator[tuple[str, str]]:
    """The numbers to know first."""
    unit, found = capacity.unit if capacity.unit == "/s" else f" {capacity.unit}", capacity.found
    rate, low, high = capacity.ends
    width = (high - low if low is not None and high is not None else 0.0) or abs(rate or 0.0) / 20
    width = max(width, 1.0) if capacity.unit == "users" else width
    if rate is not None:
        yield "Capacity", f"{supported(rate, width)}{unit}"
    elif found.at_least is not None:
        yield "At least", f"{found.at_least.rate:,.4g}{unit}"
    if low is not None and high is not None:
        yield "95%", f"{supported(low, width)}–{supported(high, width)}"
    holds = capacity.holding
    if holds is not None and holds.at_low is not None and holds.unit == "s":
        stat = re.match(r"[a-z0-9.]*", holds.expression)
        yield f"{stat[0] if stat else ''} at the lower end".strip(), duration_text(holds.at_low)
