"""Runs -> the words on each of them: its verdict, what was offered, what was found, what is damaged. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import ARRIVALS_IN_WORDS, ClosedLoop, OpenLoop
from inference_benchmarker.url import address_of
from inference_benchmarker.verdict.client.bottleneck import limited_words
from inference_benchmarker.words.wording import pluralize, precision_text
from visualization.comparison.changes import TIMES
from visualization.figures.figures import Card

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.report.summary_types import Stage
    from inference_benchmarker.verdict.finding import Finding
    from visualization.figures.runs import Run


def card(run: Run) -> Card:
    """All of them."""
    summary = run.summary
    notes = endings(run)
    ended_early = bool(notes)
    notes += [limited_words(summary.limited_by)] if summary is not None and summary.limited_by else []
    missed = sum(each.severity == "missed" and each.code != "aborted" for each in run.findings)
    notes += [f"{missed} threshold{'s' if missed > 1 else ''} missed"] if missed else []
    return Card(
        label=run.label,
        verdict=run.word + (f" ({', '.join(notes)})" if notes else ""),
        doubtful=run.doubtful,
        missed=run.misses_limit or ended_early,
        facts=tuple(facts(run).values()),
        headline=(),
        hover=run.hover,
        findings=tuple(_finding(each) for each in run.findings),
        problems=run.problems,
        precision=_precision(run),
    )


def endings(run: Run) -> list[str]:
    """The words on an end before its plan's."""
    summary = run.summary
    return (
        []
        if summary is None
        else [*["interrupted"] * summary.interrupted, *["aborted"] * (summary.aborted is not None)]
    )


def _finding(finding: Finding) -> str:
    return f"{finding.code}: {finding.compared}. {finding.advice}"


def facts(run: Run) -> dict[str, str]:
    """The facts on a run by name; of what is not known there is none."""
    return dict(_facts(run))


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    plan, window = run.plan, run.window
    if plan is not None:
        yield "load", _offered(plan.load, None if run.summary is None else run.summary.stages)
        if isinstance(plan.load, OpenLoop):
            yield "arrivals", ARRIVALS_IN_WORDS[plan.load.arrivals]
    if window is not None:
        yield "duration", f"{window.duration_s:.4g} s"
    if plan is not None:
        yield "workers", pluralize(plan.workers, "worker", "workers")
        if plan.hosts:
            yield "hosts", f"from {', '.join(host.text for host in plan.hosts.hosts)}"
        for name, value in (
            ("endpoint", plan.endpoint_name),
            ("address", address_of(plan.factory_settings) or plan.url),
        ):
            if value:
                yield name, value
    if window is not None:
        yield "start", f"{window.start[:16].replace('T', ' ')} UTC"
    if precision := _precision(run):
        yield "precision", precision


def _offered(load: OpenLoop | ClosedLoop, stages: Sequence[Stage] | None) -> str:
    """The load of the plan; of the stages of the wave the lowest and the highest rate."""
    if isinstance(load, ClosedLoop):
        users = load.concurrency
        return f"{users} users who think {load.think.text}" if load.think else f"{users} in flight"
    if not stages:
        return f"{load.rate}/s"
    rates = [rate for stage in stages for rate in (stage.from_rps, stage.to_rps)]
    return f"{pluralize(len(stages), 'stage', 'stages')}, {min(rates):g} to {max(rates):g}/s"


def _precision(run: Run) -> str:
    """Its percentiles are so near, where they are not exact; else nothing."""
    shares = [share for name in (*TIMES, "lag") if (times := run.times(name)) and (share := times.precision)]
    return f"percentiles {precision_text(max(shares))}" if shares and 0 < max(shares) < 1 else ""
