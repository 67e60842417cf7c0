"""The times of a summary in words: the rows that the report prints and a notebook shows. Pure."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from inference_benchmarker.summary.statistics.distribution import PERCENTILES, Distribution, least_count
from inference_benchmarker.words.wording import duration_text, precision_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

COLUMNS = ("mean", *(f"p{p:g}" for p in PERCENTILES), "max")
_TIMES = (
    ("Latency", "latency"),
    ("Response time", "response_time"),
    ("TTFT", "ttft"),
    ("ITL", "itl"),
    ("TPOT", "tpot"),
    ("Failed requests", "failed_latency"),
)
_WARNED_OF = 99


def time_rows(distribution: Callable[[str], Distribution | None]) -> list[list[str]]:
    """A header and a row for each time that was measured; nothing where none was."""
    measured = [(label, found) for label, name in _TIMES if (found := distribution(name)) is not None]
    if not measured:
        return []
    return [[marked("", (d for _, d in measured)), *COLUMNS], *(_time_row(label, d) for label, d in measured)]


def marked(title: str, distributions: Iterable[Distribution | None]) -> str:
    """The title of a table, and how near its percentiles are where they are not exact."""
    precision = max((d.precision for d in distributions if d is not None), default=0.0)
    return f"{title} percentiles {precision_text(precision)}".strip() if precision else title


def precision_mark(d: Distribution) -> str:
    """The mark that stands behind percentiles that are not exact."""
    return f" ({precision_text(d.precision)})" if d.precision else ""


def mean_text(d: Distribution) -> str:
    """The mean; ≥ where requests were abandoned."""
    return ("≥" if d.lower_bound_from is not None else "") + duration_text(d.mean)


def value_text(d: Distribution, value: float) -> str:
    """One of its values; ≥ where it is a lower bound."""
    return ("≥" if d.is_lower_bound(value) else "") + duration_text(value)


def middle_and_tail(d: Distribution) -> str:
    """The two that a line has room for."""
    return f"p50 {value_text(d, d.percentile(50))}, p99 {value_text(d, d.percentile(99))}{precision_mark(d)}"


def number_texts(d: Distribution, text: Callable[[float], str]) -> list[str]:
    """The columns of what is no time."""
    return [text(d.mean), *(percentile_text(d, p, text) for p in PERCENTILES), text(d.maximum)]


def percentile_text(d: Distribution, p: float, text: Callable[[float], str]) -> str:
    """A percentile as text; ``-`` for one of too few values."""
    return text(d.percentile(p)) if has_enough(d.count, p) else "-"


def has_enough(count: int, p: float) -> bool:
    """Tells whether a percentile above p99 is not simply the largest of so few values; of p99 a finding says so."""
    return p <= _WARNED_OF or count >= least_count(p)


def _time_row(label: str, d: Distribution) -> list[str]:
    text = partial(value_text, d)
    return [label, mean_text(d), *(percentile_text(d, p, text) for p in PERCENTILES), text(d.maximum)]
