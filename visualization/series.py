"""Runs -> everything that a report of them shows -> its files."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.files import FOR_ANYBODY, replacing
from inference_benchmarker.text import one_line
from inference_benchmarker.wording import counted, duration_text, percent_text, precision_text
from visualization.bars import AIPERF_FIELDS, TIME_FIELDS, all_bars, choose
from visualization.capacity import capacity_card, lead
from visualization.capacity_figures import capacity_sections
from visualization.curves import capacity, distributions, over_time
from visualization.figures import STRIP_KEY, Bars, Card, Curves, Figures, Section
from visualization.instances import instances_strip
from visualization.runs import TIMES, Run, below, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from visualization.capacity import Capacity

ALL_OF_AIPERF = "aiperf_all"
_LONG = 500
_OVER_TIME = "All on one axis: seconds since the start of each wave."
_OF_BARS = (
    ("load", "Load and outcome", "What was sent and what came back."),
    ("times", "Times", "Latency is what the endpoint took; response time counts from when each request was due."),
    ("server", "Server", "What the server's own metrics say of each wave."),
    ("aiperf", "aiperf", "What aiperf measured."),
    (ALL_OF_AIPERF, "All of aiperf's metrics", "Under the names that aiperf gives them, rounded as it rounds them."),
    ("client", "Client", "CPU of the machine that sent the load."),
)


def write_report(
    figures: Figures, formats: Sequence[str], folder: Path, say: Callable[[str], None], name: str = "benchmark_plots"
) -> Iterator[Path]:
    """Write the page and the pictures, whose names begin with ``name``; each file as soon as it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file_name, content in _files(figures, formats, say, name):
            with replacing(folder / file_name, mode=FOR_ANYBODY) as file:
                file.write(content)
            yield folder / file_name
    except OSError as error:
        what = f"{folder}: cannot be written ({error.strerror or error})."
        raise BenchmarkError(what, "Give another place with --plot-output-dir.") from None


def _files(
    figures: Figures, formats: Sequence[str], say: Callable[[str], None], name: str
) -> Iterator[tuple[str, bytes]]:
    from visualization.html import page
    from visualization.static import pictures

    if "html" in formats:
        yield f"{name}.html", page(figures).encode()
    say("Drawing the pictures")
    yield from pictures(figures, tuple(kind for kind in formats if kind != "html"), name)


def make_figures(
    runs: Sequence[Run],
    wanted: Mapping[str, Sequence[str]] | None = None,
    capacities: Sequence[Capacity] = (),
) -> Figures:
    """Everything to be drawn. ``wanted``: the fields to have bars, by source; all that were measured without it.

    ``capacities`` come after the runs; without any of these the page begins with the tail, which a limit is on.
    """
    bars = choose(all_bars(runs), wanted)
    sections = (
        *capacity_sections(capacities, first=len(runs)),
        *(_section(key, title, text, (each for each in bars if _place(each) == key)) for key, title, text in _OF_BARS),
        _section(
            "capacity",
            "Capacity",
            "A point a run, in the order of their load. Past the knee more load buys waiting, not answers.",
            capacity(runs),
        ),
        _section(
            "distribution",
            "Distribution",
            "The share of requests that took no longer: 99 is p99. Each nine takes up as much room as the one before.",
            distributions(runs),
        ),
        _section("time", "Over time", _OVER_TIME + (f" {STRIP_KEY}" if instances_strip(runs) else ""), over_time(runs)),
    )
    shown = (section for section in sections if section.charts)
    # some fifty charts: a picture of them only where they were chosen
    told = (replace(each, pictured=wanted is not None or each.key != ALL_OF_AIPERF) for each in shown)
    cards = (*map(_card, runs), *map(capacity_card, capacities))
    drawn = Figures(cards, tuple(told)) if runs else Figures(cards, tuple(told), "p99", "Capacity", lead(capacities))
    plain: Figures = made_plain(drawn)
    return plain


def made_plain(value: Any) -> Any:
    """The same with every text in it on one line, without what would colour or turn it: most of them are foreign."""
    if isinstance(value, str):
        return one_line(value, _LONG)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: made_plain(getattr(value, each.name)) for each in fields(value) if each.name != "points"}
        return replace(value, **changed)
    if isinstance(value, dict):
        return {made_plain(key): made_plain(each) for key, each in value.items()}
    return tuple(map(made_plain, value)) if isinstance(value, tuple) else value


def _place(bars: Bars) -> str:
    """The key of the section that a set of bars belongs to."""
    if bars.source == "locust":
        return "times" if bars.field in TIME_FIELDS else "load"
    if bars.source == "aiperf" and bars.field not in AIPERF_FIELDS:
        return ALL_OF_AIPERF
    return bars.source


def _section(key: str, title: str, text: str, charts: Iterator[Bars | Curves]) -> Section:
    return Section(key, title, text, tuple(charts))


def _card(run: Run) -> Card:
    notes = [word for word in ("interrupted",) if run.facts.get(word)]
    limited = run.facts.get("limited_by")
    notes += [f"{limited}-limited"] if limited else []
    given = run.facts.get("findings")
    findings = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    missed = sum(each.get("severity") == "missed" for each in findings)
    notes += [f"{missed} threshold{'s' if missed > 1 else ''} missed"] if missed else []
    return Card(
        label=run.label,
        verdict=run.verdict + (f" ({', '.join(notes)})" if notes else ""),
        doubtful=run.doubtful,
        missed=missed > 0,
        facts=tuple(_facts(run)),
        headline=tuple(_headline(run)),
        hover=run.hover,
        findings=tuple(_finding(each) for each in findings),
        problems=run.problems,
        precision=_precision(run),
    )


def _finding(finding: Mapping[str, Any]) -> str:
    return f"{finding.get('code')}: {finding.get('measured')} (limit {finding.get('limit')}). {finding.get('advice')}"


def _offered(load: Mapping[str, Any], stages: Any) -> str:
    """The load of plan.json; of the stages in summary.json the lowest and the highest rate."""
    if load.get("kind") != "open":
        think, users = load.get("think"), load.get("concurrency")
        return f"{users} users who think {think}" if think else f"{users} in flight"
    if not isinstance(stages, list) or not stages:
        return f"{load.get('rate')}/s, {load.get('arrivals')}"
    rates = [rate for stage in stages for name in ("from_rps", "to_rps") if (rate := number(stage, name)) is not None]
    span = f", {min(rates):g} to {max(rates):g}/s" if rates else ""
    return f"{counted(len(stages), 'stage', 'stages')}{span}, {load.get('arrivals')}"


def _facts(run: Run) -> Iterator[str]:
    load = run.plan.get("load")
    if isinstance(load, dict):
        yield _offered(load, below(run.facts, "stages"))
    duration = run.number("window", "duration_s")
    if duration is not None:
        yield f"{duration:.4g} s"
    workers = number(run.plan, "workers")
    if workers:
        yield f"{workers:.0f} worker{'s' if workers > 1 else ''}"
    if run.plan.get("endpoint_name"):
        yield str(run.plan["endpoint_name"])
    start = below(run.facts, "window", "start")
    if isinstance(start, str):
        yield f"{start[:16].replace('T', ' ')} UTC"
    if precision := _precision(run):
        yield precision


def _precision(run: Run) -> str:
    """Its percentiles are so near, where they are not exact; else nothing."""
    shares = [share for name in (*TIMES, "lag") if (share := run.number(name, "precision"))]
    return f"percentiles {precision_text(max(shares))}" if shares and 0 < max(shares) < 1 else ""


def _headline(run: Run) -> Iterator[tuple[str, str]]:
    """The numbers to know first."""
    success, rate = run.number("success_rate"), run.number("rates", "completed")
    if rate is not None:
        yield "Completed", f"{rate:,.4g}/s"
    if success is not None:
        yield "Success", percent_text(success)
    for title, key in (("Median", "p50"), ("p99", "p99")):
        seconds = run.number("latency", key)
        if seconds is not None:
            yield title, duration_text(seconds)
