"""Figures that are handed on, made of requests that a test makes up; and a page of metrics read back."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from inference_benchmarker.export.figures import Count, Figures, Now
from inference_benchmarker.export.page import DASHBOARD
from inference_benchmarker.records.feed import Cell
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.verdict.verdict import Verdict

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
BOARD = json.loads(DASHBOARD.read_text(encoding="utf-8"))
LABELS = {"run": "a run", "endpoint": "factories.py"}


def count_of(seconds: Sequence[float], failed: Mapping[str, int] | None = None, **ledger: int) -> Count:
    """Requests that were ok and took so long, and those that failed by error."""
    errors = Counter(failed or {})
    ok = len(seconds)
    cell = Cell(sent=ok + errors.total(), ok=ok, failed=errors)
    cell.times["latency"] = Histogram.of(round(each * NS) for each in seconds)
    return Count(cell, Ledger(sent=ok + errors.total(), ok=ok, failed=errors.total(), **ledger))


def expressions() -> list[str]:
    """Every query of the dashboard for Grafana."""
    return [target["expr"] for each in BOARD["panels"] for target in each["targets"]]


def figures(count: Count, now: Now | None = None, verdict: Verdict | None = None) -> Figures:
    """A run with these requests; with a verdict it is over."""
    now = now or (Now(in_flight=1, running=True) if verdict is None else Now(verdict=verdict))
    return Figures(LABELS, count, now, Counter() if verdict is None else Counter([verdict.word]))


def samples(text: str) -> Samples:
    """Every sample of a page, by name and labels; the run's own labels are left out."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = frozenset(pair for pair in sample.labels.items() if pair[0] not in LABELS)
            found[sample.name, labels] = sample.value
    return found


def read_page(url: str) -> str:
    """The text of a page now."""
    with urlopen(url, timeout=30) as answer:  # noqa: S310 - our own
        text: str = answer.read().decode()
    return text


def sample(found: Samples, name: str, **labels: str) -> float | None:
    """One sample, None where there is none."""
    return found.get((f"benchmark_{name}", frozenset(labels.items())))
