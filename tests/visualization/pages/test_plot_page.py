"""The page of ``benchmark --plot`` in a real browser: what a person sees, clicks, hovers and types."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.wave import Wave
from tests.browser import CHROMIUM, Tab, tab
from tests.rankings import drawn, ranked
from tests.waves import START, facts_of, make_run
from visualization.figures.figures import Bar, Figures, Section, Table, TableRow, Tile
from visualization.figures.reading import read_runs
from visualization.pages.html import page as page_of
from visualization.pages.series import make_figures

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.timeout(180),
]
METADATA = {"slow": {"legend": "the slow one", "instance": "ml.g5.xlarge"}, "fast": {"model": "tiny"}}
ROWS = "[...document.querySelectorAll('.row')]"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of three runs, one INVALID."""
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "fast", rate=100, middle_ms=20, stream=True)
    make_run(folder / "slow", 6000, rate=200, middle_ms=60)
    make_run(folder / "over", rate=400, middle_ms=300, dropped=500, failed=7)
    runs = read_runs([folder / name for name in ("fast", "slow", "over")], METADATA, Wave.load, lambda _: None)
    path = folder / "page.html"
    path.write_text(page_of(make_figures(runs)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Tab]:
    with tab() as opened:
        yield opened


@pytest.fixture
def opened(browser: Tab, page: Path) -> Tab:
    """The page as it is after a double click, on a desktop."""
    browser.complaints.clear()
    browser.requests.clear()
    browser.size(1280)
    browser.theme("light")
    browser.open(page)
    return browser


def values(opened: Tab, title: str) -> list[float]:
    """The numbers of a metric's bars."""
    script = f"[...document.querySelectorAll('figure[data-title=\"{title}\"] .row')].map((row) => +row.dataset.value)"
    found: list[float] = opened.ask(script)
    return found


def runs_by_figure(opened: Tab) -> list[list[str]]:
    """Which runs each figure shows."""
    found: list[list[str]] = opened.ask(
        "[...document.querySelectorAll('figure')].map((figure) =>"
        " [...new Set([...figure.querySelectorAll('[data-run]')].map((mark) => mark.dataset.run))].sort())"
    )
    return found


def test_it_opens_without_a_complaint_and_without_the_network(opened: Tab, page: Path) -> None:
    opened.resolve()
    assert opened.complaints == []
    assert opened.requests == [page.as_uri()]
    assert opened.ask("document.querySelectorAll('figure svg').length") > 15


def test_the_legend_hides_a_run_in_every_figure(opened: Tab) -> None:
    before = runs_by_figure(opened)
    assert sum("1" in runs for runs in before) > 15
    opened.ask("document.querySelectorAll('#legend button')[1].click()")
    assert opened.ask("document.querySelectorAll('#legend button')[1].getAttribute('aria-pressed')") == "false"
    assert runs_by_figure(opened) == [[run for run in runs if run != "1"] for runs in before]
    opened.ask("document.querySelectorAll('#legend button')[1].click()")
    assert runs_by_figure(opened) == before


def test_a_click_on_a_run_lights_it_up_everywhere_and_tells_more_of_it(opened: Tab) -> None:
    faint = (
        "[...document.querySelectorAll('main .row, main .strip')].filter((mark) => getComputedStyle(mark).opacity < 1)"
        ".map((mark) => mark.dataset.run)"
    )
    assert opened.ask(faint) == []
    opened.ask("document.querySelectorAll('#overview .name')[2].click()")
    assert set(opened.ask(faint)) == {"0", "1"}
    more = (
        "[...document.querySelectorAll('#overview tr.more')].filter((row) => !row.hidden).map((row) => row.innerText)"
    )
    (reported,) = opened.ask(more)
    assert "dropped_arrivals" in reported
    opened.press("Escape")
    assert opened.ask(faint) == opened.ask(more) == []
    opened.ask("document.querySelector('main .row[data-run=\"1\"]').dispatchEvent(new Event('click', {bubbles: true}))")
    pressed = "[...document.querySelectorAll('#overview .name')].map((button) => button.getAttribute('aria-pressed'))"
    assert opened.ask(pressed) == ["false", "true", "false"]


def test_a_click_on_a_head_sorts_the_runs(opened: Tab) -> None:
    names = "[...document.querySelectorAll('#overview .name')].map((button) => button.innerText)"
    head = (
        "[...document.querySelectorAll('#overview thead th')].find((head) => head.innerText.startsWith('Latency p99'))"
    )
    assert opened.ask(names) == ["fast", "the slow one", "over"]
    opened.ask(f"{head}.querySelector('button').click()")
    assert opened.ask(names) == ["fast", "the slow one", "over"]
    opened.ask(f"{head}.querySelector('button').click()")
    assert opened.ask(names) == ["over", "the slow one", "fast"]
    assert opened.ask(f"{head}.getAttribute('aria-sort')") == "descending"


def test_what_anybody_may_have_written_is_text_everywhere(opened: Tab, tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    waves = {}
    for name in ("one", "two"):
        title = f"{evil} {name}"
        waves[tmp_path / name] = make_run(
            tmp_path / name, 300, middle_ms=20 * len(name) + ord(name[0]), failed=20, name=title, label=evil, error=evil
        )
        summary = facts_of(RunDir(tmp_path / name))
        summary["errors"] = [{"key": evil, "count": 20, "texts": [evil]}]
        summary["labels"] = [{"label": evil, "sent": 300, "latency": summary["latency"]}]
        summary["findings"] = [{"code": evil, "severity": "missed", "measured": evil, "limit": evil, "advice": evil}]
        (tmp_path / name / "summary.json").write_text(json.dumps(summary))
        plan = json.loads((tmp_path / name / "plan.json").read_text())
        (tmp_path / name / "plan.json").write_text(json.dumps({**plan, "endpoint_name": evil, "slos": ["p99<1s"]}))
    page = tmp_path / "page.html"
    metadata = {name: {"instance": evil} for name in ("one", "two")}
    runs = read_runs([tmp_path / "one", tmp_path / "two"], metadata, waves.__getitem__, lambda _: None)
    page.write_text(page_of(make_figures(runs)), encoding="utf-8")
    opened.open(page)
    opened.ask("document.querySelector('#overview .name').click()")
    opened.ask("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    opened.point_at("figure[data-title='Latency'] .row")
    assert opened.ask("document.querySelectorAll('img').length") == 0
    for part in ("#overview", "#labels h3", "#errors", "#tip"):
        assert evil in opened.ask(f"document.querySelector('{part}').textContent"), part
    opened.resolve()
    assert opened.complaints == []


def test_every_run_can_be_hidden(opened: Tab) -> None:
    opened.ask("document.querySelectorAll('#legend button').forEach((button) => button.click())")
    assert not any(runs_by_figure(opened))
    opened.resolve()
    assert opened.complaints == []


def test_the_chooser_changes_bars_and_capacity_curve(opened: Tab) -> None:
    rate, median = values(opened, "Sent rate"), values(opened, "Latency")
    assert median == pytest.approx([20, 60, 300], rel=0.1)
    curve = "document.querySelector('figure[data-title=\"Latency against rate\"] .curve').getAttribute('d')"
    before = opened.ask(curve)
    opened.ask("document.querySelector('#statistics input[value=p99]').click()")
    assert all(high > 1.5 * low for high, low in zip(values(opened, "Latency"), median, strict=True))
    assert values(opened, "Sent rate") == rate
    assert opened.ask(curve) != before


def test_hover_shows_the_number_and_the_metadata(opened: Tab) -> None:
    opened.point_at("figure[data-title='Latency'] .row[data-run='1']")
    text = opened.ask("document.getElementById('tip').innerText")
    for part in ("the slow one", "instance: ml.g5.xlarge", "Latency, median", " ms", "95%: "):
        assert part in text
    opened.point_at("h1")
    assert opened.ask("document.getElementById('tip').hidden")


def test_hover_on_a_capacity_point_shows_the_metadata(opened: Tab) -> None:
    opened.point_at("figure[data-title='Latency against rate'] .marker[data-run='1']")
    text = opened.ask("document.getElementById('tip').innerText")
    assert "instance: ml.g5.xlarge" in text
    assert "Completed rate" in text


def test_an_invalid_run_is_marked_in_every_bar(opened: Tab) -> None:
    rows = opened.ask(f"{ROWS}.filter((row) => row.dataset.run === '2').map((row) => row.textContent)")
    assert len(rows) > 8
    assert all("INVALID" in row for row in rows)
    others = opened.ask(f"{ROWS}.filter((row) => row.dataset.run !== '2').map((row) => row.textContent)")
    assert not any("INVALID" in row for row in others)
    filled = opened.ask("[...document.querySelectorAll('.row[data-run=\"2\"] .bar')].map((bar) => bar.style.fill)")
    assert all("hatch" in fill for fill in filled)


def test_the_keyboard_reaches_everything(opened: Tab) -> None:
    opened.ask("document.querySelector('figure[data-title=\"Latency\"] .row').focus()")
    opened.wait("!document.getElementById('tip').hidden")
    assert "fast" in opened.ask("document.getElementById('tip').innerText")
    opened.ask("document.querySelector('figure[data-title=\"Rate\"] svg').focus()")
    opened.press("ArrowRight")
    first = opened.ask("document.getElementById('tip').innerText")
    opened.press("ArrowRight")
    second = opened.ask("document.getElementById('tip').innerText")
    assert first.startswith("Time 0.5 s")
    assert second.startswith("Time 1.5 s")
    opened.press("Escape")
    assert opened.ask("document.getElementById('tip').hidden")
    operable = "#overview button, #legend button, #statistics input, #theme, .row, figure svg[role=img], summary"
    assert opened.ask(f"[...document.querySelectorAll('{operable}')].every((element) => element.tabIndex >= 0)")


def reaching_out(opened: Tab) -> list[str]:
    """Parts of pictures that lie outside of their figure."""
    found: list[str] = opened.ask(
        "[...document.querySelectorAll('figure')].flatMap((figure) => { const box = figure.getBoundingClientRect();"
        " return [...figure.querySelectorAll('svg text, svg path, .bar')].filter((part) => {"
        " const { left, right, width } = part.getBoundingClientRect();"
        " return width && (left < box.left || right > box.right); })"
        ".map((part) => `${figure.dataset.title}: ${part.textContent || part.getAttribute('class')}`); })"
    )
    return found


def test_what_was_before_the_wave_and_large_numbers_stay_in_their_figure(opened: Tab, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        make_run(path, 1000, failed=990)
        series = [[START - 55, 1.5e10], [START + 5, 1.6e10]]
        row: dict[str, Any] = {
            "name": "Memory",
            "unit": "Bytes",
            "stream": "cloudwatch",
            "statistics": {"Average": 1.6e10},
        }
        row |= {"series_of": "Average", "series": series, "reason": "idle time too"}
        (path / "server_metrics.json").write_text(json.dumps({"schema_version": 1, "metrics": [row]}))
    page = tmp_path / "page.html"
    page.write_text(page_of(make_figures(read_runs(paths, {}, Wave.load, lambda _: None))), encoding="utf-8")
    opened.open(page)
    assert reaching_out(opened) == []
    ticks = "[...document.querySelectorAll('figure[data-title=Memory] text')].map((text) => text.textContent)"
    assert {"-40", "0", "60", "16G"} <= set(opened.ask(ticks))
    assert all("16,000,000,000 B*" in row for row in opened.ask(f"{ROWS}.map((row) => row.textContent)") if " B" in row)
    opened.point_at("figure[data-title='Memory, Average'] .row")
    assert "* idle time too" in opened.ask("document.getElementById('tip').innerText")
    assert opened.ask("document.querySelector('#overview td.warn > span').innerText") == "! LIMIT MISSED"


def test_long_names_that_end_differently_differ_in_the_legend(opened: Tab, tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_run(tmp_path / name, 100, name="a model of seventy billion weights in half precision")
    page = tmp_path / "page.html"
    runs = read_runs([tmp_path / "one", tmp_path / "two"], {}, Wave.load, lambda _: None)
    page.write_text(page_of(make_figures(runs)), encoding="utf-8")
    opened.open(page)
    spans = "[...document.querySelectorAll('#legend span')]"
    assert [text.rpartition("(")[2] for text in opened.ask(f"{spans}.map((span) => span.innerText)")] == [
        "one)",
        "two)",
    ]
    assert opened.ask(f"{spans}.every((span) => span.scrollWidth <= span.clientWidth)")


def test_every_figure_has_words_and_a_table(opened: Tab) -> None:
    unnamed = opened.ask(
        "[...document.querySelectorAll('figure')].filter((figure) => !figure.querySelector('figcaption').innerText"
        " || !figure.querySelector('svg').getAttribute('aria-label') || !figure.querySelector('svg desc')).length"
    )
    assert unnamed == 0
    assert opened.ask(f"{ROWS}.every((row) => row.getAttribute('aria-label').includes(': '))")
    opened.ask("document.querySelectorAll('figure details').forEach((details) => { details.open = true; })")
    opened.wait("document.querySelectorAll('figure table').length === document.querySelectorAll('figure').length")
    text = opened.ask("document.querySelector('figure[data-title=\"Latency\"] table').innerText")
    assert "the slow one" in text
    assert "over (INVALID" in text


@pytest.mark.parametrize("preferred", ["light", "dark"])
def test_the_theme_follows_the_system_and_the_switch(opened: Tab, page: Path, preferred: str) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    opened.theme(preferred)
    opened.open(page)
    seen = [opened.ask(background)]
    for _ in range(2):
        opened.ask("document.getElementById('theme').click()")
        seen.append(opened.ask(background))
    light, dark = "rgb(244, 245, 247)", "rgb(15, 18, 23)"
    assert seen == [light if preferred == "light" else dark, light, dark]


@pytest.mark.parametrize("width", [320, 390, 800, 1920])
def test_nothing_is_wider_than_the_window(opened: Tab, page: Path, width: int) -> None:
    opened.size(width, phone=width < 500)
    opened.open(page)
    assert opened.ask("document.documentElement.scrollWidth") <= width


def test_labels_and_numbers_do_not_lie_on_one_another(opened: Tab, page: Path) -> None:
    opened.size(390, phone=True)
    opened.open(page)
    for statistic in ("median", "p99.9"):
        opened.ask(f"document.querySelector('#statistics input[value=\"{statistic}\"]').click()")
        gaps: list[Any] = opened.ask(
            f"{ROWS}.map((row) => {{ const [one, two] = [...row.querySelectorAll(':scope > text')]"
            ".map((text) => text.getBoundingClientRect()); return two.left - one.right; })"
        )
        assert min(gaps) > 0, statistic


def test_a_phone_shows_every_cell_of_an_answer_and_breaks_names_between_their_words(
    browser: Tab, tmp_path: Path
) -> None:
    head, cells = tuple(f"a column {number}" for number in range(9)), ("one of them", *("1,234,567 req/min",) * 8)
    tiles = (Tile("Capacity", "174/s", large=True), Tile("First to saturate", "GPUMemoryUtilization"))
    commands = ("aws application-autoscaling put-scaling-policy --cli-input-json file://scaling_policy.json",)
    sections = (Section("apply", "Files to apply", "", (), commands=commands),)
    answer = (Table("", head, (TableRow(cells),)),)
    (tmp_path / "a.html").write_text(page_of(Figures((), sections, tiles=tiles, answer=answer)), encoding="utf-8")
    browser.size(390, phone=True)
    browser.open(tmp_path / "a.html")
    cut = "[...document.querySelectorAll('.scroll, pre')].filter((each) => each.scrollWidth > each.clientWidth).length"
    assert browser.ask(cut) == 0
    assert browser.ask("[...document.querySelectorAll('#answer td')].map((each) => each.dataset.of)") == [*head[1:]]
    name = browser.ask("document.querySelectorAll('#tiles dd')[1].innerHTML")
    assert name == "GPU<wbr>Memory<wbr>Utilization"


@pytest.mark.parametrize("width", [390, 1280])
def test_the_pictures_of_a_forest_have_one_middle(browser: Tab, tmp_path: Path, width: int) -> None:
    intervals = ("-0.1 … +0.1%", "-80.7 … +1,651%")
    rows = tuple(
        TableRow((name, "1 ms", "2 ms", "+1%", text, "worse"), strong=not place, bar=Bar(1, -1, 3))
        for place, (name, text) in enumerate(zip(("p50", "p99"), intervals, strict=True))
    )
    head = ("Metric", "A", "B", "change", "95% interval", "verdict")
    answer = (Table("From A to B", head, rows, bar_at=4, signed=True),)
    (tmp_path / "f.html").write_text(page_of(Figures((), (), answer=answer)), encoding="utf-8")
    browser.size(width, phone=width < 500)
    browser.open(tmp_path / "f.html")
    places = "[...document.querySelectorAll('svg.forest .zero')].map((each) => each.getBoundingClientRect().left)"
    one, two = browser.ask(places)
    assert one == pytest.approx(two, abs=0.5)
    assert one > 0
    assert browser.ask("document.documentElement.scrollWidth") <= width


def test_a_ranking_s_table_is_on_the_first_screen_of_a_desktop_and_of_a_phone(browser: Tab, tmp_path: Path) -> None:
    browser.complaints.clear()
    figures = drawn(tmp_path, ranked(1000, ("m5", 300, 0.32), ("c5", 250, 0.204)))
    (tmp_path / "ranking.html").write_text(page_of(figures), encoding="utf-8")

    for width in (1280, 390):
        browser.size(width)
        browser.open(tmp_path / "ranking.html")
        browser.resolve()
        assert browser.ask("document.documentElement.scrollWidth") <= width
        assert browser.ask("document.querySelector('#answer').getBoundingClientRect().bottom") < 900
    assert browser.ask("document.querySelectorAll('#statistics input').length") == 1
    assert browser.ask("document.querySelector('#statistics').hidden"), "there is nothing to choose"
    spans = re.findall(r"95%: (\S+) – ([\d.,]+)", browser.ask("document.querySelector('#main').textContent"))
    assert spans
    assert not [ends for ends in spans if ends[0] == ends[1]]
    names = "[...document.querySelectorAll('#answer tbody th')].map((cell) => cell.innerText)"
    assert browser.ask(names) == ["c5", "m5"]
    assert browser.ask("document.querySelectorAll('#answer svg.range').length") == 2
    assert browser.complaints == []


def test_lines_that_cross_have_their_names_at_their_ends_apart(opened: Tab) -> None:
    ends = "figure[data-title='Latency'] .end"
    found = opened.ask(
        f'[...document.querySelectorAll("{ends}")].map((each) => [each.textContent, '
        "each.querySelector('text').getBoundingClientRect().top])"
    )
    runs = opened.ask("data.runs.length")
    assert len({name for name, _ in found}) == len(found) == runs
    tops = sorted(top for _, top in found)
    assert all(after - before >= 8 for before, after in pairwise(tops))


def test_the_parts_of_the_page_are_a_click_away(opened: Tab) -> None:
    ways = opened.ask("[...document.querySelectorAll('#parts a')].map((each) => each.getAttribute('href'))")
    assert ways == opened.ask("data.sections.map((section) => `#${section.key}`)")
    assert all(opened.ask(f"document.querySelector('{way}') !== null") for way in ways)
