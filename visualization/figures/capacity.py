"""Capacity folders: what stands in their capacity.json, and the card of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.json_file import read_json
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import is_there
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import duration_text, length_text, supported
from visualization.figures.figures import Card
from visualization.figures.runs import number, tell_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

CAPACITY_FILE = "capacity.json"
_LONG = 200
_FOUND = ("found", "at_least")


@dataclass(frozen=True, slots=True)
class Capacity:
    """A capacity folder: ``facts`` is its capacity.json."""

    path: Path
    label: str
    facts: dict[str, Any]
    hover: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """Of its rates."""
        return "users" if self.facts.get("in") == "users" else "/s"

    def number(self, *keys: str) -> float | None:
        """A number of capacity.json by its keys."""
        return number(self.facts, *keys)

    def rows(self, key: str) -> list[dict[str, Any]]:
        """The objects of a list of capacity.json."""
        found = self.facts.get(key)
        return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []

    @property
    def ends(self) -> tuple[float | None, float | None, float | None]:
        """The rate, and both ends of its interval."""
        return self.number("rate"), self.number("interval", "low"), self.number("interval", "high")

    @property
    def holding(self) -> dict[str, Any] | None:
        """The limit that gave out first."""
        rows = self.rows("limits")
        return next((row for row in rows if row.get("expression") == self.facts.get("limit")), None)


def is_capacity(path: Path) -> bool:
    """Tells whether a folder holds the answer of a search."""
    return is_there(path / CAPACITY_FILE)


def read_capacities(
    paths: Sequence[Path], metadata: Mapping[str, Mapping[str, Any]], check: Callable[[Path], object] | None = None
) -> tuple[Capacity, ...]:
    """The capacity folders; ``metadata`` is keyed by their basenames. Raises BenchmarkError for a damaged file.

    ``check`` raises it for a folder that contradicts itself.
    """
    if check is not None:
        for path in paths:
            check(path)
    facts = [_facts(path) for path in paths]
    given = [metadata.get(path.resolve().name, {}) for path in paths]
    names = [str(data.get("legend") or each.get("name") or "") for data, each in zip(given, facts, strict=True)]
    labels = tell_apart([one_line(name, _LONG) for name in names], paths)
    hovers = [tuple(f"{key}: {value}" for key, value in data.items() if key != "legend") for data in given]
    return tuple(Capacity(*each) for each in zip(paths, labels, facts, hovers, strict=True))


def _facts(path: Path) -> dict[str, Any]:
    facts = read_json(path / CAPACITY_FILE, inside=path)
    if not isinstance(facts.get("outcome"), str):
        raise BenchmarkError(
            f"{path / CAPACITY_FILE}: is no answer of a search.", "Give a folder of `benchmark capacity`."
        )
    return facts


def lead(capacities: Sequence[Capacity]) -> str:
    """The answer of the only search there is."""
    return str(capacities[0].facts.get("headline") or "") if len(capacities) == 1 else ""


def capacity_card(capacity: Capacity) -> Card:
    """The words on one, above all figures."""
    facts, outcome = capacity.facts, str(capacity.facts["outcome"])
    return Card(
        label=capacity.label,
        verdict=outcome.replace("_", " "),
        doubtful=outcome not in _FOUND,
        missed=outcome == "not_kept",
        facts=tuple(_told(capacity)),
        headline=tuple(_headline(capacity)),
        hover=capacity.hover,
        findings=(),
        problems=(str(facts["reason"]),) if facts.get("reason") else (),
    )


def _told(capacity: Capacity) -> Iterator[str]:
    facts = capacity.facts
    if facts.get("limit"):
        yield str(facts["limit"])
    if capacity.unit == "/s":
        yield {"poisson": "Poisson arrivals", "constant": "evenly spaced arrivals"}.get(str(facts.get("arrivals")), "")
    if (seconds := capacity.number("load_s")) is not None:
        void_s = capacity.number("void_s") or 0.0
        yield f"{length_text(seconds)} of load" + (f", {length_text(void_s)} void" if void_s else "")
    if isinstance(facts.get("created"), str):
        yield f"{facts['created'][:16].replace('T', ' ')} UTC"


def _headline(capacity: Capacity) -> Iterator[tuple[str, str]]:
    """The numbers to know first."""
    unit = " users" if capacity.unit == "users" else "/s"
    rate, low, high = capacity.ends
    width = (high - low if low is not None and high is not None else 0.0) or abs(rate or 0.0) / 20
    width = max(width, 1.0) if capacity.unit == "users" else width
    if rate is not None:
        yield "Capacity", f"{supported(rate, width)}{unit}"
    elif (least := capacity.number("at_least", "rate")) is not None:
        yield "At least", f"{least:,.4g}{unit}"
    if low is not None and high is not None:
        yield "95%", f"{supported(low, width)}–{supported(high, width)}"
    if (by_model := capacity.number("twin", "rate")) is not None:
        yield "By the model", f"{by_model:,.4g}{unit}"
    holds = capacity.holding
    if holds is not None and (at_low := number(holds, "at_low")) is not None and holds.get("unit") == "s":
        stat = re.match(r"[a-z0-9.]*", str(holds.get("expression")))
        yield f"{stat[0] if stat else ''} at the lower end".strip(), duration_text(at_low)
