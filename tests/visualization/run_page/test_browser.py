"""The page of a single run in a real browser: it is drawn without a complaint, fits, and answers the pointer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.plan.slo import Slo
from tests.browser import CHROMIUM, Tab, tab
from tests.waves import START, drawn, wave
from visualization.run_page import run_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.timeout(180),
]
NAME = "</title><script>document.title = 'taken'</script> a rather long name of a run that somebody gave it"
OVERLAPS = """(() => {
  const boxes = [...document.querySelectorAll('.frame')].map((frame) =>
    [...frame.querySelectorAll('text.soft')].map((each) => each.getBoundingClientRect()));
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  return boxes.flatMap((row) => row.flatMap((a, n) => row.slice(n + 1).filter((b) => meet(a, b)))).length;
})()"""


def metric(name: str) -> ServerMetric:
    series = ((START + 0.0, 10.0), (START + 30.0, 30.0))
    return ServerMetric(
        "cloudwatch",
        name,
        {"Average": 20.0},
        "Percent",
        start=START,
        end=START + 60,
        series=series,
        series_of="Average",
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a wave with failures, limits and a name that would be a script."""
    latencies = drawn(1, rate=50, seconds=60)
    outcomes = np.where(np.arange(latencies.size) % 40 == 0, "failed", "ok").tolist()
    found = wave(latencies, outcomes=outcomes, name=NAME, slos=(Slo.parse("p99<150ms"), Slo.parse("p50<1s")))
    found = replace(found, server_metrics=tuple(map(metric, ("CPUUtilization", "GPUUtilization"))))
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(run_page(found), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def opened(page: Path) -> Iterator[Tab]:
    with tab() as found:
        found.size(1280)
        found.open(page)
        yield found


def test_it_is_drawn_without_a_complaint_and_without_the_network(opened: Tab, page: Path) -> None:
    opened.resolve()
    assert opened.complaints == []
    assert opened.requests == [page.as_uri()]
    assert opened.ask("document.title").startswith("</title><script>")
    assert opened.ask("document.querySelectorAll('figure svg').length") >= 7
    lengths = opened.ask("[...document.querySelectorAll('figure .trace.line')].map((each) => each.getTotalLength())")
    assert all(length > 0 for length in lengths)


def test_the_first_screen_answers_first(opened: Tab) -> None:
    bottoms = opened.ask(
        "['.verdict-line', '.what', '#tiles', '.limits'].map((each) =>"
        " document.querySelector(each).getBoundingClientRect().bottom)"
    )
    assert bottoms == sorted(bottoms)
    assert bottoms[-1] < 720
    assert "VALID" in opened.ask("document.querySelector('.verdict-line').innerText")


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_it_fits_phones_and_desktops(opened: Tab, width: int) -> None:
    opened.size(width, phone=width < 500)
    assert opened.ask("document.documentElement.scrollWidth") <= width
    assert opened.ask(OVERLAPS) == 0
    opened.size(1280)


def test_a_phone_shows_every_column_and_the_middle_and_the_tail_first(opened: Tab) -> None:
    opened.size(390, phone=True)
    hidden = "[...document.querySelectorAll('.rows')].filter((each) => each.scrollWidth > each.clientWidth).length"
    assert opened.ask(hidden) == 0
    cells = "[...document.querySelectorAll('#times .rows tbody tr')[0].querySelectorAll('td')]"
    places = f"{cells}.map((each) => [each.getBoundingClientRect(), each.dataset.of])"
    names = opened.ask(f"{places}.sort(([a], [b]) => a.top - b.top || a.left - b.left).map(([, name]) => name)")
    assert names == ["p50", "p95", "p99", "mean", "p90", "p99.9", "max"]
    opened.size(1280)


def test_on_paper_no_picture_leaves_its_card_and_nothing_is_cut(opened: Tab) -> None:
    opened.call("Emulation.setEmulatedMedia", media="print")
    opened.size(718)  # A4 within its margins
    leaving = (
        "[...document.querySelectorAll('figure')].filter((figure) => [...figure.querySelectorAll('svg')].some((svg) =>"
        " svg.getBoundingClientRect().bottom > figure.getBoundingClientRect().bottom)).length"
    )
    cut = "[...document.querySelectorAll('pre, .rows')].filter((each) => each.scrollWidth > each.clientWidth).length"
    assert opened.ask(f"[{leaving}, {cut}, document.documentElement.scrollWidth <= 718]") == [0, 0, True]
    opened.call("Emulation.setEmulatedMedia", media="")
    opened.size(1280)


def test_the_pointer_tells_the_values_in_every_picture_over_time(opened: Tab) -> None:
    opened.point_at("figure[data-title='Latency and response time'] .frame")
    reported = opened.ask("document.getElementById('tip').innerText")
    for part in ("Time ", "latency p50", "latency p99", "response time p99", " ms"):
        assert part in reported
    of_each = "(each) => [each.getAttribute('visibility'), each.getAttribute('x1')]"
    guides = f"[...document.querySelectorAll('#seconds .guide')].map({of_each})"
    assert {tuple(each) for each in opened.ask(guides)} == {("visible", opened.ask(f"{guides}[0][1]"))}
    opened.point_at("h1")
    assert opened.ask("document.getElementById('tip').hidden")


def test_the_keyboard_walks_along_a_picture(opened: Tab) -> None:
    opened.ask("document.querySelector('figure[data-title=\"Rate\"] .frame').focus()")
    opened.press("ArrowRight")
    opened.press("ArrowRight")
    assert "Time 2.5 s" in opened.ask("document.getElementById('tip').innerText")
    opened.press("Escape")
    assert opened.ask("document.getElementById('tip').hidden")


def test_the_theme_can_be_chosen(opened: Tab) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    opened.theme("light")
    light = opened.ask(paper)
    opened.ask("document.getElementById('theme').click(), document.getElementById('theme').click()")
    assert opened.ask(paper) != light
    opened.ask("document.getElementById('theme').click()")
