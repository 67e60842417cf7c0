"""A wave -> the page that reports it."""

from __future__ import annotations

import html
from dataclasses import replace
from string import Template
from typing import TYPE_CHECKING

from inference_benchmarker.report.headline import headline
from inference_benchmarker.system.given import resolved
from inference_benchmarker.words.text import one_line, plain
from visualization.figures.page_data import page_data, template
from visualization.figures.palette import css_colors
from visualization.run_page import sections, words
from visualization.run_page.distributions import distribution_figures
from visualization.run_page.drawing import framed, shown_levels
from visualization.run_page.extras import Extras
from visualization.run_page.markup import Markup, element
from visualization.run_page.requests import request_figures
from visualization.run_page.timeline_figures import client_figures, instance_figures, server_figures, wave_figures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inference_benchmarker.wave.wave import Wave
    from visualization.run_page.figure_types import Figure

_LONG = 200
_SCRIPTS = ("marks.js", "limits.js", "curves.js", "run.js")
_BESIDE = "strips beside"


def run_page(wave: Wave, beside: str = "") -> str:
    """The page of a finished wave as HTML, in one piece: it asks nobody for anything.

    ``beside``: why a measurement beside the wave did not end well, where there is one.
    """
    name = title_of(wave)
    album = _Album()
    body = _body(wave, name, album, beside)
    return Template(template("run.html")).substitute(
        title=html.escape(f"{name}: {headline(wave.summary, wave.verdict).partition(':')[0]}"),
        style=Template(template("page.css")).substitute(palette=css_colors()) + template("run.css"),
        body=body,
        data=page_data(figures=album.data, runs=()),
        script="\n".join(map(template, _SCRIPTS)),
    )


def title_of(wave: Wave) -> str:
    """The run's name, or that of its directory."""
    path = "" if wave.run_dir is None else resolved(wave.run_dir.path).name
    return one_line(plain(wave.plan.name or path.removesuffix("_benchmark") or "A run"), _LONG)


class _Album:
    """The figures of a page, numbered as they are drawn, and the data that its script reads of them."""

    def __init__(self) -> None:
        self.data: list[Figure] = []

    def draw(self, figures: Iterable[Figure | None], kind: str = "strips") -> Markup | None:
        """Those that have something to draw, beside or below each other."""
        drawn = [self._draw(figure) for figure in figures if figure is not None and figure.drawn]
        return element("div", *drawn, class_=kind) if drawn else None

    def _draw(self, figure: Figure) -> Markup:
        self.data.append(replace(figure, levels=shown_levels(figure)))
        return framed(figure, len(self.data) - 1)


def _body(wave: Wave, name: str, album: _Album, beside: str) -> Markup:
    """Everything between the page's head and its script."""
    summary, verdict = wave.summary, wave.verdict
    extras = Extras(wave)
    requests = request_figures(wave, summary)
    client = client_figures(extras.client, 1 if wave.host is None else wave.host.cores, summary)
    first = element(
        "header",
        element("h1", name),
        element("button", type="button", id="theme", hidden=True),
    )
    parts = (
        element("p", element("b", beside), class_="verdict-line warn") if beside else None,
        words.lead(summary, verdict),
        element("p", " · ".join(words.what_it_was(wave, summary)), class_="what"),
        *sections.notes([*extras.problems, *sections.left_out(summary)]),
        element("dl", *words.tiles(wave, summary), id="tiles") if summary.ledger.sent else None,
        words.limits(wave, summary, verdict),
        words.findings(verdict, words.listed_by_limits(wave, summary, verdict).values()),
        element("nav", id="parts", aria_label="Parts of this page"),
        sections.section("times", "Times", words.about_times(summary), words.times(summary),
                         album.draw(distribution_figures(wave, summary), "pairs")),
        sections.section("metrics", "Your own metrics", "What requests reported in Response(metrics={...}).",
                         words.user_metrics(summary)),
        sections.section("sessions", "Sessions", "", sections.sessions(summary)),
        sections.section("stages", "Stages", "", sections.stages(summary)),
        sections.section("seconds", "Over time", "Seconds since the start of the wave.",
                         album.draw([*wave_figures(wave, summary), *instance_figures(wave, summary)])),
        sections.section("requests", "Requests", "", album.draw([requests.cloud]), sections.slowest(requests, wave)),
        sections.section("errors", "Errors", "", album.draw([requests.errors]), sections.errors(summary)),
        sections.section("labels", "Labels", "", sections.labels(summary)),
        sections.section("where", "Where the time went", sections.where_text(wave, summary),
                         sections.waterfall(wave, summary, verdict)),
        sections.section("server", "The server", "", sections.remarks(wave, summary, verdict),
                         album.draw(server_figures(wave, summary), _BESIDE), sections.server(wave, verdict)),
        sections.section("aiperf", "aiperf", "What aiperf measured alongside the wave, under its own names.",
                         words.headed(extras.aiperf)),
        sections.section("client", "This client", "The machine that sent the load: its schedule lag, CPU and memory.",
                         sections.client(wave, summary), album.draw(client, _BESIDE)),
        sections.section("plan", "The plan", "", sections.plan(wave)),
    )  # fmt: skip
    return element("div", first, element("main", *parts, id="main"))
