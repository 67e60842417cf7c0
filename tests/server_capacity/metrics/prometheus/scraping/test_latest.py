"""What a page says at this moment, as the live view shows it."""

from __future__ import annotations

import time

import pytest

from inference_benchmarker.facts.server_metric import Interval, LiveMetric
from server_capacity.metrics.prometheus.block import PageBlock
from server_capacity.metrics.prometheus.exposition import parse
from server_capacity.metrics.prometheus.scraping.history import History, Round
from server_capacity.metrics.prometheus.scraping.latest import readings
from server_capacity.metrics.prometheus.scraping.reading import sample_names
from server_capacity.metrics.prometheus.source import make_source
from tests.fake_prometheus import fake
from tests.metrics_page import wanted_of

TYPES = "# TYPE done counter\n# TYPE waiting gauge\n# TYPE took_seconds histogram\n"
WANTED = wanted_of(metrics=["waiting", "done", "took_seconds", "absent"])


def page(second: int) -> str:
    """Two queues; 30 more a second and 10 of another model; each takes 0.25 s, before second 10 it was 9 s."""
    taken = 9 * second if second < 10 else 90 + 0.25 * (second - 10)
    return (
        f'{TYPES}waiting{{q="a"}} {second}\nwaiting{{q="b"}} 3\n'
        f'done{{m="a"}} {30 * second}\ndone{{m="b"}} {10 * second}\n'
        f'took_seconds_bucket{{le="+Inf"}} {second}\ntook_seconds_sum {taken}\ntook_seconds_count {second}\n'
    )


def watched(*seconds: int, errors: tuple[int, ...] = ()) -> History:
    history = History()
    for second in seconds:
        failed = second in errors
        found = None if failed else parse(page(second), sample_names(WANTED))
        history.add(Round(second, second, second, "no answer" if failed else None), found)
    return history


@pytest.mark.parametrize("errors", [(), (20,), (15, 17, 20)])
def test_a_gauge_is_its_largest_a_counter_its_gain_a_histogram_its_mean(errors: tuple[int, ...]) -> None:
    found = list(readings(WANTED, watched(*range(21), errors=errors)))
    assert [(each.name, each.unit) for each in found] == [
        ("waiting", None),
        ("done", "1/s"),
        ("took_seconds", "Seconds"),
    ]
    assert [each.value for each in found] == pytest.approx([19.0 if errors else 20.0, 40.0, 0.25])


def test_one_round_tells_no_gain_and_none_tells_nothing() -> None:
    assert [each.name for each in readings(WANTED, watched(4))] == ["waiting"]
    assert list(readings(WANTED, watched())) == []
    assert list(readings(WANTED, watched(3, errors=(3,)))) == []


def test_a_counter_that_began_anew_tells_no_gain() -> None:
    assert [each.name for each in readings(WANTED, watched(9, 3))] == ["waiting"]


def test_a_source_tells_what_its_page_said_without_asking_again() -> None:
    with fake(200, page(7)) as server:
        source = make_source([PageBlock(f"{server.url}/metrics", (("waiting", ()),))])
        assert source.latest() == []
        source.begin()
        until = time.monotonic() + 20
        while not source.latest() and time.monotonic() < until:
            time.sleep(0.01)
        asked = sum(server.asked.values())
        assert [source.latest() for _ in range(100)] == [[LiveMetric("waiting", 7.0)]] * 100
        assert sum(server.asked.values()) <= asked + 1
        source.collect(Interval(0, 0, 1, 0), lambda _: None)
