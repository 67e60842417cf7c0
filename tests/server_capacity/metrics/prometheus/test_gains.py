"""What a counter gained over a window, by its samples: exact, about so much, or not known."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from inference_benchmarker.facts.server_metric import Interval
from server_capacity.metrics.prometheus.promql.api import Api
from server_capacity.metrics.prometheus.promql.gains import gain
from server_capacity.metrics.prometheus.web import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from server_capacity.metrics.prometheus.promql.answers import Points
    from server_capacity.metrics.prometheus.web import Web

WAVE = Interval(100.0, 100.0, 108.0, 92)
PAST = Interval.past(100.0, 108.0)
WARMED = replace(WAVE, begin=90.0)
WARM_MINUTE = Interval(95.0, 100.0, 166.0, 710)
MINUTE = Interval(100.0, 100.0, 160.0, 600)


def wave_of_two_stages(at: float) -> float:
    """20 tokens a second for 6 s, then 400 for 2 s: 920 in all."""
    return 20 * min(max(at - 100, 0.0), 6.0) + 400 * min(max(at - 106, 0.0), 2.0)


def ten_a_second(at: float) -> float:
    """Before and after the window, too."""
    return 10 * (at - 50)


def followed(rate: float) -> Points:
    """50 a second from 100 to 160 s, then another wave; scraped every 10 s."""
    return sampled(lambda at: 50 * min(max(at - 100, 0), 60) + rate * max(at - 160, 0), 81, 10, 181)


def sampled(counter: Callable[[float], float], first: float, every: float, last: float) -> Points:
    number = round((last - first) / every) + 1
    return tuple((first + every * i, counter(first + every * i)) for i in range(number))


@pytest.mark.parametrize(
    ("points", "interval", "increase", "expected", "said"),
    [
        # the counter stood still before the wave: all of it lies between the samples around the window
        (sampled(wave_of_two_stages, 94, 5, 114), WAVE, 161, (920, False), None),
        # only one sample after the end: nobody knows whether it stands still, and it gained faster in the last step
        (sampled(wave_of_two_stages, 94, 5, 109), WAVE, 161, (920, True), "others may be in it"),
        (followed(500)[:-2], MINUTE, None, (3500, True), "others may be in it"),
        (followed(0)[:-2], MINUTE, None, (3000, False), None),
        # 10 a second, a warm-up of 5 s, then another wave: the warm-up's gain is no pace of the window
        (
            ((65.5, 0), (95, 0), (100.5, 55), (130.5, 355), (160.5, 655), (190.5, 1080)),
            WARM_MINUTE,
            None,
            (1030, True),
            "others",
        ),
        (
            sampled(wave_of_two_stages, 92.5, 5, 112.5),
            WAVE,
            161,
            (920, True),
            "15 s apart, which says too little of 8 s",
        ),
        (sampled(wave_of_two_stages, 90.5, 1, 108.5), WAVE, 893.7, (920, False), None),
        (((99.5, 7), (108.5, 7)), WAVE, None, (0, False), None),
        (((98, 0), (107, 520), (109, 920)), WAVE, None, (920, True), "11 s apart, which says too little"),
        (((93, 0), (103, 60), (110, 920)), WAVE, None, (None, False), "17 s apart, which says too little"),
        # no sample after the end yet
        (sampled(wave_of_two_stages, 92.5, 5, 107.5), WAVE, 161, (None, False), '"lag" as long as a scrape'),
        (sampled(wave_of_two_stages, 90.5, 1, 107.5), WAVE, 820, (820, True), "leave out 1 s of 8 s"),
        (sampled(ten_a_second, 98.5, 1, 159.5), MINUTE, 600, (600, False), "leave out 1 s of 60 s"),
        (((97, 5), (151, 125)), MINUTE, None, (120, True), "too few lie inside"),
        (((70, 5), (159, 125)), MINUTE, None, (None, False), "are 89 s apart, which says too little of 60 s"),
        (((99, 5), (129, 125)), MINUTE, None, (None, False), "are 30 s apart, which says too little of 60 s"),
        (((94, 5), (99, 5)), MINUTE, None, (None, False), "the server has no sample within the window of 60 s"),
        (((97, 500), (157, 20)), MINUTE, None, (None, False), "it began again from zero"),
        # others count before the window, or the warm-up does: interpolated at the ends
        (sampled(ten_a_second, 98.5, 1, 108.5), WAVE, 80, (80, False), "between samples 1 s apart"),
        (sampled(ten_a_second, 93, 5, 113), WAVE, 80, (80, True), "which says too little"),
        (sampled(ten_a_second, 82, 6, 112), WARMED, 80, (80, True), "12 s apart, which says too little"),
        (
            ((89, 0), (99.5, 40), (100.5, 60), (107.5, 400), (108.5, 420)),
            WARMED,
            1,
            (370, False),
            "between samples 1 s apart",
        ),
        (((99.5, 40), (100.5, 60), (107.5, 400), (108.5, 420)), PAST, 1, (360, False), "between samples 1 s apart"),
        # others count after the window alone: what a wave sent that began at once is in the first sample after the end
        (followed(500), MINUTE, None, (3405, True), "between which it gained up to 855"),
        (followed(0), MINUTE, None, (3000, False), None),
        (followed(5), MINUTE, None, (2959.5, False), "between samples 10 s apart"),
        # a restart, and a series that began within the window: only the server's own reckoning is left
        (
            ((99.5, 50), (100.5, 60), (104, 5), (107.9, 45), (108.5, 45)),
            WAVE,
            70,
            (70, False),
            "leave out 0.6 s of 8 s",
        ),
        (((103, 100), (107.9, 900), (108.5, 920)), WAVE, 1000, (None, False), "leave out 3.1 s of 8 s"),
        ((), WAVE, 400, (400, True), "the server does not show the samples"),
    ],
)
def test_a_gain_is_plain_where_samples_cover_the_window(
    points: Points, interval: Interval, increase: float | None, expected: tuple[float | None, bool], said: str | None
) -> None:
    """``expected``: the value, and that it is only near."""
    found = gain(points, interval, increase)
    assert (found.value is None) == (expected[0] is None)
    assert (found.value or 0, found.near) == pytest.approx((expected[0] or 0, expected[1]))
    assert (said in found.note) if said and found.note else found.note is said


def test_what_counts_after_the_end_of_the_load_is_not_in_its_rate() -> None:
    points = ((94, 0), (99, 0), (101, 40), (107.5, 80), (108.5, 90))
    assert gain(points, WAVE, 1).value == 90
    assert gain(points, WAVE, 1, goes_on=True).value == 85
    assert gain(points, WAVE, 70, restarted=True).value == 70, "a fall between samples that are not shown"


@pytest.mark.parametrize(
    ("interval", "asked"),
    [
        (MINUTE, [(40, 220)]),
        (replace(MINUTE, begin=70), [(10, 220)]),
        (Interval(940, 1000, 4600, 1), [(640, 1300), (4300, 4900)]),
    ],
)
def test_the_samples_around_the_ends_are_asked_for(interval: Interval, asked: list[tuple[int, int]]) -> None:
    """Of a long window those in its middle would only be more to read."""
    found: list[tuple[int, int]] = []

    class Samples:
        def get(self, url: str, *_: object) -> Reply:
            parameters = parse_qs(urlsplit(url).query)
            last, length = float(parameters["time"][0]), int(parameters["query"][0].strip("x[ms]"))
            found.append((round(last - length / 1000), round(last)))
            result = [{"metric": {"__name__": "x", "a": "b"}, "values": [[last, "1"]]}]
            data = {"resultType": "matrix", "result": result}
            return Reply(200, json.dumps({"status": "success", "data": data}), "application/json", None)

    samples = Api("http://127.0.0.1:1", cast("Web", Samples()), None).samples("x", interval)
    assert samples == {(("a", "b"),): tuple((last, 1) for _, last in asked)}
    assert found == asked
