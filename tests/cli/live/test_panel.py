"""The panel of the live view: it says what the feed says, as wide as the terminal and never wider."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from inference_benchmarker import Bounds
from inference_benchmarker.cli.live.live_lines import in_flight, sparkline, stage_text
from inference_benchmarker.plan.steering import RateChange
from inference_benchmarker.words.units import NS
from tests.scenes import SCENES, STAGED, STEADY, STEERED, Scene, behind, staged, steady


@pytest.mark.parametrize("width", [20, 40, 80, 120, 131, 132, 160, 200])
@pytest.mark.parametrize("name", SCENES)
def test_it_is_never_wider_than_the_terminal_and_says_each_figure(name: str, width: int) -> None:
    scene = SCENES[name]()
    lines = scene.lines(width, "server")
    assert max(map(len, lines)) < width
    assert len(lines) <= 20
    if width >= 80:
        text = "\n".join(lines)
        for row in scene.rows():
            assert row.name in text
            assert row.value in text
        assert "server             vllm:num_requests_waiting 12  queue_time 31.2 ms" in text


def test_a_long_text_goes_on_in_the_next_line_and_ends_somewhere() -> None:
    scene = steady()
    for number in range(5):
        scene.state.feed.failed[f"{'Long' * 9}Error{number}"] = 9 - number
    assert [line.split()[-3] for line in scene.lines(80)[-3:-1]] == ["9", "8"]
    assert [line.index(" x ") for line in scene.lines(80)[-3:]] == [20, 20, 20], "they stand below one another"
    assert scene.lines(80)[-1].endswith("…")


def test_no_rate_is_asked_for_when_the_time_is_over() -> None:
    scene = Scene(replace(STEADY, bounds=Bounds(Decimal(8))))
    for second in range(10):
        scene.second(200 if second < 8 else 0, 100)
    assert scene.value("sent") == "120.0/s of 120/s"


def test_a_value_is_of_the_last_five_seconds() -> None:
    scene = steady().second(200, 100, ms=500, failed=[1, 95, 2, 5])
    assert scene.value("sent") == "200.0/s of 200/s"
    assert scene.value("completed") == "178.4/s"
    assert scene.value("errors") == "100, 20.0/s"
    assert "95 x HttpError 503  5 x ReadTimeout" in scene.lines(80)[-1]


def test_what_is_in_flight_is_known_of_every_second() -> None:
    scene = Scene(STEADY)
    for sent, ok in ((200, 100), (200, 250), (200, 120)):
        scene.second(sent, ok)
    assert in_flight(scene.state.feed, 0, 3) == [100, 50, 130]
    assert in_flight(scene.state.feed, 1, 2) == [50]
    assert in_flight(scene.state.feed, 0, 0) == []


def test_a_growing_number_in_flight_is_reported_with_its_growth() -> None:
    scene = Scene(STEADY)
    for _ in range(10):
        scene.second(200, 105)
    assert scene.value("in flight") == "950, falling behind: +95/s"
    assert steady().second(200, 205).value("in flight") == "93"
    assert scene.second(0, 105).value("in flight") == "845", "it grew, and grows no more"


def test_response_time_is_shown_where_it_is_more_than_latency() -> None:
    assert any(line.startswith("response time p99") for line in behind().lines(80))
    assert not any(line.startswith("response time p99") for line in steady().lines(80))


def test_the_rate_that_is_asked_for_has_a_line_where_it_changes() -> None:
    assert staged().lines(80)[1].split()[:5] == ["target", "600.0/s", "over", "5", "s"]
    assert staged().value("sent").endswith("/s over 5 s")


def test_one_figure_tells_the_rate_that_a_person_asks_for() -> None:
    scene = Scene(STEERED)
    scene.state.changes.append(RateChange(2 * NS, Decimal(300)))
    for _ in range(4):
        scene.second(100, 100)
    assert scene.lines(200)[1].split()[:4] == ["target", "300.0/s", "now", "▄▄▇▇"]
    assert scene.value("sent") == "100.0/s over 4 s"
    scene.state.changes.append(RateChange(4 * NS, Decimal(600)))
    assert scene.value("target") == "600.0/s now", "and not what it was on average before the key"


def test_no_bar_is_drawn_where_nobody_knows_the_end() -> None:
    assert "━" not in Scene(STEERED).second(100, 100).lines(80)[0]
    assert "━" in steady().lines(80)[0]


def test_a_wave_that_was_ended_waits_and_asks_for_nothing_more() -> None:
    scene = Scene(STEERED)
    for _ in range(4):
        scene.second(100, 50)
    assert "running" in scene.lines(120)[0]
    scene.state.planned_end = 2 * NS
    assert "waiting for 200 in flight" in scene.lines(120)[0]
    assert scene.lines(200)[1].split()[:3] == ["target", "0.0/s", "now"]


def test_repeats_stand_below_what_was_sent() -> None:
    scene = Scene(STEADY).second(300, 100)
    assert not any(row.name == "repeats" for row in scene.rows())
    scene.state.workers[0].ledger = replace(scene.state.workers[0].ledger, repeated=1_200)
    assert [row.name for row in scene.rows()][:4] == ["target", "sent", "repeats", "completed"]
    assert scene.value("sent") == "300.0/s with repeats"
    assert scene.value("repeats") == "1,200"


@pytest.mark.parametrize(
    ("at_s", "text"),
    [
        (-1, ""),
        (0, "calm (1 of 4): 50/s, 20 s left"),
        (40, "2 of 4: 50..400/s, 10 s left"),
        (74.9, "4 of 4: 400..0/s, 0 s left"),
        (75, ""),
    ],
)
def test_the_stage_is_reported_with_the_time_it_has_left(at_s: float, text: str) -> None:
    assert stage_text(STAGED, at_s) == text
    assert stage_text(STEADY, at_s) == ""


def test_the_line_of_a_short_wave_has_all_the_room() -> None:
    short = Scene(replace(STEADY, bounds=Bounds(Decimal(12))))
    for _ in range(6):
        short.second(200, 200)
    assert short.lines(80)[1].endswith("  " + "▇" * 6), "a bar a second"
    for _ in range(60):
        short.second(0, 0)
    assert len(short.lines(80)[1].split()[-1]) == 30, "a drain of a minute is a minute again"


@pytest.mark.parametrize(
    ("points", "stop", "width", "line"),
    [
        ([], 0, 60, ""),
        ([1.0, 4.0, 8.0], 3, 60, "▃▄▇"),
        ([0.0, None, 5.0], 3, 60, "▁ ▇"),
        ([0.0, 0.0], 2, 60, "▁▁"),
        ([1.0, 8.0, 1.0, 1.0], 4, 30, "▇▃"),
        ([8.0, 1.0, 1.0], 4, 30, "▇▃"),
        ([1.0] * 60, 60, 7, "▇▇▇▇▇▇"),
        ([1.0], 1, 0, ""),
    ],
)
def test_a_line_moves_and_its_bars_stay_as_they_are(
    points: list[float | None], stop: int, width: int, line: str
) -> None:
    assert sparkline(points, stop, width) == line


def test_a_name_colours_no_terminal_and_is_no_markup() -> None:
    scene = Scene(STEADY)
    scene.state.feed.merge([{"s": 0, "n": 0, "failed": [0, 1]}], ["\x1b[31m[bold]Error\nx"])
    assert "1 x [31m[bold]Error x" in scene.second(1, 1).lines(80)[-1]
