"""The server's metrics in words: a line for each. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from inference_benchmarker.facts.server_metric import prefix_hit_share
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import INDENT, metric_text, percent_text, pluralize, unit_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.prompt_reuse import PromptReuse
    from inference_benchmarker.facts.server_metric import ServerMetric

_MAX_ROWS = 20
_LONG = 300  # of a name of somebody else's in a line


def metric_lines(metrics: Sequence[ServerMetric]) -> Iterator[str]:
    """A line for each metric that was asked for; one that stands in several blocks has its dimensions beside it.

    A reason that is the last one shown is not shown again; of a name with many series, the first ones are.
    """
    asked = [metric for metric in metrics if metric.asked]
    names = Counter(metric.name for metric in asked)
    places: Counter[str] = Counter()
    last_reason = None
    for metric in asked:
        places[metric.name] += 1
        if places[metric.name] <= _MAX_ROWS:
            yield _metric_line(metric, several=names[metric.name] > 1, reported_before=metric.reason == last_reason)
            last_reason = metric.reason or last_reason
    for name, count in names.items():
        if count > _MAX_ROWS:
            yield f"{INDENT}… and {count - _MAX_ROWS} more of {one_line(name)}, in server_metrics.json"


def prefix_lines(metrics: Sequence[ServerMetric], prompts: PromptReuse | None) -> Iterator[str]:
    """The share of input that servers say was in their prefix caches, beside the one that could have been."""
    hits, reusable = prefix_hit_share(metrics), None if prompts is None else prompts.share
    if hits is not None and reusable is not None:
        text = f"{percent_text(hits)} of the input tokens by the server's metrics"
        yield f"{INDENT}Prefix cache: {text}; {percent_text(reusable)} could have been"


def _metric_line(metric: ServerMetric, *, several: bool, reported_before: bool) -> str:
    where = ", ".join(f"{name}={value}" for name, value in metric.dimensions.items())
    title = one_line(f"{metric.name} ({where})" if several and where else metric.name, _LONG)
    values = ", ".join(_statistic(metric, name, value) for name, value in metric.statistics.items())
    reason = "as above" if reported_before and metric.reason else metric.reason
    samples = "" if metric.samples is None else pluralize(metric.samples, "sample", "samples")
    notes = "; ".join(filter(None, (unit_text(metric.unit), samples, reason)))
    return f"{INDENT}{title}: {values}" + (f" ({notes})" if notes else "")


def _statistic(metric: ServerMetric, name: str, value: float | None) -> str:
    """A value, or on which side of it the truth lies."""
    sign = {"at_most": "<=", "at_least": ">=", "about": "~"}.get(metric.bound(name) or "", "=")
    return f"{one_line(name)}{sign}{metric_text(value)}"
