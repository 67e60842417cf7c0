"""Runs -> everything that a report of them shows -> its files."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.user_metrics import PREFIX
from inference_benchmarker.system.files import FOR_ANYBODY, replace_file, replacing
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import pluralize
from visualization.comparison.ending import OUTCOMES, ended_early
from visualization.figures.bars import AIPERF_FIELDS, TIME_FIELDS, all_bars, choose
from visualization.figures.by_name import (
    error_bars,
    errors_left_out,
    label_bars,
    labels_left_out,
    turn_bars,
    turns_left_out,
)
from visualization.figures.capacity import capacity_card, tiles
from visualization.figures.capacity import lead as lead_of_search
from visualization.figures.capacity_figures import capacity_sections
from visualization.figures.cards import card
from visualization.figures.constant_charts import is_same, same_text
from visualization.figures.curves import capacity, distributions, server_against_rate
from visualization.figures.figures import OF_BARS, STRIP_KEY, Bars, Curves, Figures, Section
from visualization.figures.limits import first_statistic, limits_of_runs, with_levels
from visualization.figures.server_limits import server_levels, with_server_levels
from visualization.figures.timelines import CLIENT_TITLES, over_time, server_over_time
from visualization.pages.forest import forest
from visualization.pages.lead import lead
from visualization.pages.overview import overview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.ending import Cut
    from visualization.figures.capacity import Capacity
    from visualization.figures.limits import Limit
    from visualization.figures.runs import Run
    from visualization.pages.sides import TwoSides

ALL_OF_AIPERF = "aiperf_all"
_LONG = 500
_OVER_TIME = "One strip per run, all on the same axes: seconds since the start of each wave."
_TEXTS = {
    "times": (
        "Latency",
        "Latency is the time that the endpoint took; response time starts when each request is due.",
    ),
    "metrics": ("Your own metrics", "Values that invoke reported for successful requests."),
    "capacity": (
        "Capacity",
        "One point per run, in the order of their load. Where runs show it, a dotted line marks the highest load with "
        "which the endpoint keeps up: more load does not bring more answers. ✗ marks an INVALID run, which the line "
        "leaves out where a VALID one had more load.",
    ),
    "distribution": (
        "Distribution",
        "The share of requests that took at most this long: 99 is p99. Each further nine takes the same space.",
    ),
    "turns": (
        "Turns",
        "TTFT and latency of the first turns of sessions, all on one scale: a later turn has a longer context.",
    ),
    "labels": (
        "Labels",
        "The latency of each label, all on one scale: a model, a route, whatever distinguishes the requests.",
    ),
    "errors": ("Errors", "The failed requests of each kind, all on one scale."),
    "time": ("Over time", _OVER_TIME),
    "load": ("Load and outcome", "What was sent, and what was answered."),
    "server": ("Server", "The server's own metrics for each wave."),
    "aiperf": ("aiperf", "What aiperf measured."),
    ALL_OF_AIPERF: ("All of aiperf's metrics", "With aiperf's names and rounding."),
    "client": ("Client", "The machine that sent the load: its CPU and its schedule lag."),
}
"""Title and text of each section, in their order on the page."""


def write_report(
    figures: Figures,
    formats: Sequence[str],
    folder: Path,
    say: Callable[[str], None],
    name: str = "benchmark_plots",
    *,
    page: str = "",
    flag: str = "--output-dir",
) -> Iterator[Path]:
    """Write the page and the pictures, whose names begin with ``name``; each file as soon as it is there.

    ``page``: another one than that of the figures. ``flag``: that of the command which gives another folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file_name, content in _files(figures, formats, say, name, page):
            _write(folder / file_name, content)
            yield folder / file_name
    except OSError as error:
        what = f"{folder}: cannot be written ({error.strerror or error})."
        raise BenchmarkError(what, f"Give another place with {flag}.") from None


def _write(path: Path, content: str | bytes) -> None:
    if isinstance(content, str):
        replace_file(path, content, mode=FOR_ANYBODY)
        return
    with replacing(path, mode=FOR_ANYBODY) as file:
        file.write(content)


def _files(
    figures: Figures, formats: Sequence[str], say: Callable[[str], None], name: str, page: str
) -> Iterator[tuple[str, str | bytes]]:
    from visualization.matplotlib_charts.pictures import pictures
    from visualization.pages.html import page as page_of

    if "html" in formats:
        yield f"{name}.html", page or page_of(figures)
    say("Drawing the pictures")
    yield from pictures(figures, tuple(kind for kind in formats if kind != "html"), name)


def page_of_one(runs: Sequence[Run], load: Callable[[Path], Wave]) -> str:
    """The report of the only run there is, where all of it could be read; else nothing."""
    from visualization.run_page import run_page

    if len(runs) != 1 or runs[0].problems or not runs[0].has_wave:
        return ""
    wave = load(runs[0].path)
    return run_page(replace(wave, plan=replace(wave.plan, name=runs[0].label)))


def make_figures(
    runs: Sequence[Run],
    wanted: Mapping[str, Sequence[str]] | None = None,
    capacities: Sequence[Capacity] = (),
    two: TwoSides | None = None,
    cut: Cut | None = None,
) -> Figures:
    """Everything to be drawn. ``wanted``: the fields to have bars, by source; all that were measured without it.

    ``capacities`` come after the runs; without any of these the page begins with the tail, which a limit is on.
    ``two``: the two sides of the runs, where they are that; ``cut``: why waves of these are missing.
    """
    limits = limits_of_runs(runs)
    charts = _charts(runs, choose(all_bars(runs), wanted))
    sections = [_section(key, charts[key], runs, limits, folded=wanted is None) for key in _TEXTS]
    shown = [section for section in sections if section.charts or section.same]
    # some fifty charts: a picture of them only where they were chosen
    pictured = (replace(each, pictured=wanted is not None or each.key != ALL_OF_AIPERF) for each in shown)
    everything = (*capacity_sections(capacities, first=len(runs)), *pictured)
    cards = (*map(card, runs), *map(capacity_card, capacities))
    drawn = (
        Figures(
            cards,
            everything,
            first_statistic(limits, "median"),
            lead=_first_line(lead(runs, limits, "" if two is None else two.change), cut),
            overview=overview(runs, limits),
            answer=() if two is None else tuple(filter(None, [forest(two.comparison)])),
            sides=() if two is None else two.of,
        )
        if runs
        else Figures(
            cards,
            everything,
            "p99",
            "Capacity",
            lead_of_search(capacities),
            tuple(tiles(capacities)),
            footer=OF_BARS if len(capacities) > 1 else "",
        )
    )
    plain: Figures = made_plain(drawn)
    return plain


def _first_line(answer: str, cut: Cut | None) -> str:
    return answer if cut is None else f"{ended_early(OUTCOMES[cut.exit_code], cut)}: {answer}"


def _charts(runs: Sequence[Run], bars: Sequence[Bars]) -> dict[str, tuple[Bars | Curves, ...]]:
    """The charts of each section, by its key."""
    by_place = {key: tuple(each for each in bars if _place(each) == key) for key in _TEXTS}
    timed = tuple(over_time(runs))
    of_client = tuple(each for each in timed if each.title in CLIENT_TITLES)
    return {
        **by_place,
        "capacity": tuple(capacity(runs)),
        "distribution": tuple(distributions(runs)),
        "turns": tuple(turn_bars(runs)),
        "labels": tuple(label_bars(runs)),
        "errors": tuple(error_bars(runs)),
        "time": tuple(each for each in timed if each not in of_client),
        "server": (*by_place["server"], *server_over_time(runs), *server_against_rate(runs)),
        "client": (*by_place["client"], *of_client),
    }


def _section(
    key: str, charts: Sequence[Bars | Curves], runs: Sequence[Run], limits: Sequence[Limit], *, folded: bool
) -> Section:
    """One, with its limits as lines; ``folded``: bars that are equal in all runs become a line."""
    equal = [each for each in charts if folded and is_same(each)]
    title, text = _TEXTS[key]
    left_out = {"turns": turns_left_out, "labels": labels_left_out, "errors": errors_left_out}.get(key)
    if left_out is not None and (number_ := left_out(runs)):
        which = "later ones" if key == "turns" else "of fewer requests"
        text += f" {pluralize(number_, 'more is', 'more are')} left out, {which}."
    if any(isinstance(each, Curves) and each.strip for each in charts):
        text += f" {STRIP_KEY}"
    drawn = tuple(with_levels(each, limits) for each in charts if each not in equal)
    if key == "server":
        of_server = server_levels(runs)
        drawn = tuple(with_server_levels(each, of_server) for each in drawn)
    return Section(
        key, title, text, drawn, same=tuple(map(same_text, (each for each in equal if isinstance(each, Bars))))
    )


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
    if bars.title == "Schedule lag":
        return "client"
    if bars.source == "locust":
        if bars.field.startswith(PREFIX):
            return "metrics"
        return "times" if bars.field in TIME_FIELDS else "load"
    if bars.source == "aiperf" and bars.field not in AIPERF_FIELDS:
        return ALL_OF_AIPERF
    return bars.source
