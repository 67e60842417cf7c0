"""Runs -> the words on each of them: its verdict, what was offered, what was found, what is damaged. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.url import address_of
from inference_benchmarker.words.wording import pluralize, precision_text
from visualization.comparison.changes import TIMES
from visualization.figures.figures import Card
from visualization.figures.runs import Run, below, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_ARRIVALS = {"poisson": "Poisson arrivals", "constant": "evenly spaced arrivals"}


def card(run: Run) -> Card:
    """All of them."""
    notes = [word for word in ("interrupted", "aborted") if run.facts.get(word)]
    limited = run.facts.get("limited_by")
    notes += [f"{limited}-limited"] if limited else []
    findings = findings_of(run)
    missed = sum(each.get("severity") == "missed" and each.get("code") != "aborted" for each in findings)
    notes += [f"{missed} threshold{'s' if missed > 1 else ''} missed"] if missed else []
    return Card(
        label=run.label,
        verdict=run.verdict + (f" ({', '.join(notes)})" if notes else ""),
        doubtful=run.doubtful,
        missed=any(each.get("severity") == "missed" for each in findings),
        facts=tuple(facts(run).values()),
        headline=(),
        hover=run.hover,
        findings=tuple(_finding(each) for each in findings),
        problems=run.problems,
        precision=_precision(run),
    )


def findings_of(run: Run) -> list[Mapping[str, Any]]:
    """The findings of a summary that anybody may have written."""
    given = run.facts.get("findings")
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def _finding(finding: Mapping[str, Any]) -> str:
    return f"{finding.get('code')}: {finding.get('measured')} (limit {finding.get('limit')}). {finding.get('advice')}"


def facts(run: Run) -> dict[str, str]:
    """The facts on a run by name; of what is not known there is none."""
    return dict(_facts(run))


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    load = run.plan.get("load")
    if isinstance(load, dict):
        yield "load", _offered(load, below(run.facts, "stages"))
    if (arrivals := below(run.plan, "load", "arrivals")) is not None:
        yield "arrivals", _ARRIVALS.get(str(arrivals), str(arrivals))
    duration = run.number("window", "duration_s")
    if duration is not None:
        yield "duration", f"{duration:.4g} s"
    workers = number(run.plan, "workers")
    if workers:
        yield "workers", f"{workers:.0f} worker{'s' if workers > 1 else ''}"
    if isinstance(hosts := below(run.plan, "hosts", "hosts"), list):
        yield "hosts", f"from {', '.join(map(str, hosts))}"
    settings = run.plan.get("factory_settings")
    address = address_of({name: str(text) for name, text in settings.items()}) if isinstance(settings, dict) else None
    for name, value in (("endpoint", run.plan.get("endpoint_name")), ("address", address or run.plan.get("url"))):
        if value:
            yield name, str(value)
    start = below(run.facts, "window", "start")
    if isinstance(start, str):
        yield "start", f"{start[:16].replace('T', ' ')} UTC"
    if precision := _precision(run):
        yield "precision", precision


def _offered(load: Mapping[str, Any], stages: Any) -> str:
    """The load of plan.json; of the stages in summary.json the lowest and the highest rate."""
    if load.get("kind") != "open":
        think, users = load.get("think"), load.get("concurrency")
        return f"{users} users who think {think}" if think else f"{users} in flight"
    if not isinstance(stages, list) or not stages:
        return f"{load.get('rate')}/s"
    rates = [rate for stage in stages for name in ("from_rps", "to_rps") if (rate := number(stage, name)) is not None]
    span = f", {min(rates):g} to {max(rates):g}/s" if rates else ""
    return f"{pluralize(len(stages), 'stage', 'stages')}{span}"


def _precision(run: Run) -> str:
    """Its percentiles are so near, where they are not exact; else nothing."""
    shares = [share for name in (*TIMES, "lag") if (share := run.number(name, "precision"))]
    return f"percentiles {precision_text(max(shares))}" if shares and 0 < max(shares) < 1 else ""
