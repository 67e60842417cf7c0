"""The pilot between the live feed and the search: slices go in, rates come out, and the client is watched."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import pytest

from inference_benchmarker.engine.pilot import End, Rate
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.plan.steering import RateChange
from inference_benchmarker.records.feed import Feed
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.records.packed import BASE_DTYPE, METRIC_DTYPE
from inference_benchmarker.records.record import FAILED, Ledger
from inference_benchmarker.wave.spool.host_states import HostStates
from inference_benchmarker.words.units import NS
from server_capacity.experiments.capacity.pilot import CapacityPilot
from server_capacity.experiments.measurements.counting import Counted
from server_capacity.experiments.measurements.live_counts import UserWatch
from server_capacity.experiments.measurements.question import Question, SessionShape
from server_capacity.search.limits import limits_of, user_limits_of
from server_capacity.search.settings import Settings
from server_capacity.search.stretch import Stretch
from tests.waves import MS, open_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from server_capacity.search.search import Moment, Search

LIMITS = limits_of([Slo.parse("p99<100ms")], 0.95)
STEP_NS = NS // 10


@dataclass
class Scripted:
    """A search that gives its orders one after the other, each when its time has come; and notes what it received."""

    script: list[tuple[float, str, float | Literal["end"]]]
    purpose: str = "grow"
    moments: list[Any] = field(default_factory=list)

    def order(self, moment: Moment) -> float | Literal["end"] | None:
        self.moments.append(moment)
        if not self.script or moment.now_s < self.script[0][0]:
            return None
        _, self.purpose, order = self.script.pop(0)
        return order


@dataclass
class World:
    """A wave of one worker in made-up time: what is sent is answered within its second, ``late_ms`` behind schedule."""

    late_ms: Callable[[float], float] = lambda _: 0.0
    rate: Decimal = Decimal(10)
    changes: list[RateChange] = field(default_factory=list)
    orders: list[Any] = field(default_factory=list)
    feed: Feed = field(default_factory=Feed)
    whole_seconds: int = 0
    ledger: Ledger = field(default_factory=Ledger)
    workers: list[Any] = field(default_factory=lambda: [SimpleNamespace(at=0, use={})])
    takers: list[Any] = field(default_factory=list)
    hit: Callable[[float], float] = lambda _: 1.0
    hosts: HostStates = field(default_factory=HostStates)

    def run(self, pilot: CapacityPilot, seconds: float) -> None:
        for now_ns in range(0, int(seconds * NS), STEP_NS):
            if now_ns and now_ns % NS == 0:
                self._second(now_ns // NS - 1)
            for order in pilot.orders(cast("Any", self), now_ns):
                self.orders.append((now_ns / NS, order))
                if isinstance(order, Rate):
                    self.rate = order.rps
                    self.changes.append(RateChange(now_ns + STEP_NS, order.rps))

    def _second(self, second: int) -> None:
        sent = int(self.rate)
        self.whole_seconds = second + 1
        if sent:
            times = Histogram.of([20 * MS] * sent).to_json()
            lag = Histogram.of([int(self.late_ms(float(self.rate)) * MS)] * sent).to_json()
            cell = {"sent": sent, "ok": sent, "latency": times, "response_time": times, "lag": lag}
            self.feed.merge([{"s": second, "n": len(self.changes), **cell}], [])
        for take in self.takers:
            rows, values = np.zeros(sent, BASE_DTYPE), np.zeros(sent, METRIC_DTYPE)
            rows["due"] = [second * NS + number * NS // sent for number in range(sent)]
            values["row"], values["value"] = range(sent), self.hit(float(self.rate))
            take(rows, values, ["hit"])


def flown(
    world: World, script: list[tuple[float, str, float | Literal["end"]]], seconds: float = 20, *, more: bool = True
) -> Any:
    search = Scripted(script)
    question = Question(open_plan(), LIMITS, Settings(time_s=60.0), 1)
    pilot = CapacityPilot(cast("Search", search), question, world.rate, more_workers=more)
    world.run(pilot, seconds)
    return SimpleNamespace(search=search, pilot=pilot, orders=world.orders)


def test_orders_become_rates_and_each_change_a_stretch() -> None:
    world = World()

    found = flown(world, [(4, "near", 17.3), (8, "drain", 0.0), (10, "grow", 12.0), (14, "", "end")])

    assert [order for _, order in world.orders] == [Rate(Decimal("17.3")), Rate(Decimal(0)), Rate(Decimal(12)), End()]
    stretches = found.search.moments[-1].stretches
    assert [stretch.rate for stretch in stretches] == [10, 17.3, 0, 12]
    assert [stretch.purpose for stretch in stretches] == ["grow", "near", "drain", "grow"]
    sent = sum(piece.sent for stretch in stretches for piece in stretch.slices)
    assert sent == world.feed.total().sent - int(world.rate) * (world.whole_seconds - 14)


@pytest.mark.parametrize(("ledger", "ends"), [(Ledger(failed=20), True), (Ledger(failed=20, ok=1), False)])
def test_a_search_of_an_endpoint_that_answers_nobody_ends(ledger: Ledger, ends: bool) -> None:
    world = World(ledger=ledger)

    flown(world, [], seconds=3)

    assert [order for _, order in world.orders] == ([End()] if ends else [])


def test_a_search_whose_answers_lack_what_is_limited_ends() -> None:
    for expression, ends in (("ttft.p99<50ms", True), ("p99<100ms", False)):
        world = World(ledger=Ledger(ok=100))
        question = Question(open_plan(), limits_of([Slo.parse(expression)], 0.95), Settings(time_s=60.0), 1)
        times = Histogram.of([20 * MS] * 100).to_json()
        world.feed.merge([{"s": 0, "n": 0, "sent": 100, "ok": 100, "response_time": times}], [])

        world.run(CapacityPilot(cast("Search", Scripted([])), question, world.rate), 3)

        assert [order for _, order in world.orders] == ([End()] if ends else [])


def test_a_bare_percentile_in_users_is_of_a_time_that_a_closed_loop_reports() -> None:
    """With sessions in users it was of response time, and the search ended at its hundredth answer."""
    for bare, ends in (("latency", False), ("response_time", True)):
        world = World(ledger=Ledger(ok=100))
        limits = limits_of([Slo.parse("p99<100ms")], 0.95, bare, of_sessions=True)
        question = Question(
            open_plan(), limits, Settings(time_s=60.0), 1, in_users=True, sessions=SessionShape(1.0, 3.0)
        )
        times = Histogram.of([20 * MS] * 100).to_json()
        world.feed.merge([{"s": 0, "n": 0, "sent": 100, "ok": 100, "latency": times}], [])

        pilot = CapacityPilot(cast("Search", Scripted([])), question, world.rate)
        assert pilot._tells_nothing(cast("Any", world)) is ends


def test_a_stretch_that_surely_misses_a_limit_on_a_users_value_is_over_to_the_search() -> None:
    for hit, over in ((lambda _: 1.0, 0), (lambda rate: float(rate < 50), 1)):
        world = World(hit=hit)
        plan = open_plan(slos=(Slo.parse("metric.hit.mean>0.8"),))
        question = Question(plan, limits_of(plan.slos, 0.95), Settings(time_s=60.0), 1)
        search = Scripted([(4, "grow", 100.0)])
        world.run(CapacityPilot(cast("Search", search), question, world.rate), 10)
        low, high = search.moments[-1].stretches
        assert [count.over for piece in low.slices for count in piece.counts] == [0] * len(low.slices)
        shares = [count.over / count.of for piece in high.slices for count in piece.counts if count.of]
        assert shares
        assert set(shares) == {over}


def test_what_requests_reported_is_added_up_where_they_were_due() -> None:
    limits = user_limits_of([Slo.parse("metric.hit.mean>0.8"), Slo.parse("metric.depth.p90<=5")])
    watch = UserWatch(limits)
    rows = np.zeros(400, BASE_DTYPE)
    rows["index"], rows["due"] = range(-100, 300), [number * NS // 100 for number in range(-100, 300)]
    rows["outcome"][::7] = FAILED
    values = np.zeros(800, METRIC_DTYPE)
    values["row"], values["name"] = [*range(400)] * 2, [1] * 400 + [0] * 400
    values["value"][:400] = rows["due"] < 2 * NS  # no hit in the third second
    values["value"][400:] = [9.0 if number % 8 == 0 else 1.0 for number in range(400)]
    watch.take(rows, values, ["depth", "hit"])
    watch.take(rows, values[:0], [])
    watch.sort([0.0, 2.0])
    assert [watch.misses(stage) for stage in (0, 1, 2)] == [False, True, False]
    ok = [row for row in range(100, 300) if row % 7]
    depth = [row % 8 == 0 for row in ok]
    found = list(watch._sums[1, 0].values())
    assert (sum(each.of for each in found), sum(each.total for each in found)) == (len(ok), sum(depth))


def test_the_same_rate_once_more_is_another_stretch() -> None:
    world = World()

    flown(world, [(4, "near", 10.0)])

    assert [order.rps for _, order in world.orders] == [Decimal("10.01")]


def test_a_late_client_voids_its_stretch_and_is_tried_again_after_a_pause() -> None:
    world = World(late_ms=lambda rate: 50.0 if rate > 100 else 0.0)

    found = flown(world, [(4, "grow", 200.0)])

    rates = [order.rps for _, order in world.orders if isinstance(order, Rate)]
    assert rates == [Decimal(200), Decimal(0), Decimal(200)]
    assert isinstance(world.orders[-1][1], End)
    assert found.pilot.client_limit is not None
    assert "the client was the limit" in found.pilot.client_limit
    named = found.pilot.named(Counted(Stretch(1, 200.0, 4.0, 6.0, (), ""), 0, None))
    assert (named.stretch.purpose, named.stretch.void) == ("grow", found.pilot.client_limit)


def test_a_hiccup_voids_one_stretch_and_the_search_goes_on() -> None:
    late = iter([0.0, 0.0, 0.0, 0.0, 50.0])
    world = World(late_ms=lambda _: next(late, 0.0))

    found = flown(world, [(15, "near", 20.0), (18, "", "end")])

    assert found.pilot.client_limit is None
    assert [bool(each.void) for each in found.search.moments[-1].stretches] == [True, False, False, False]
    assert isinstance(world.orders[-1][1], End)


def test_arrivals_that_found_no_place_are_the_clients_limit() -> None:
    world = World()
    world.ledger.dropped = 3

    found = flown(world, [(4, "grow", 20.0)], seconds=3)

    assert found.pilot.client_limit is None
    assert "3 arrivals were dropped" in found.pilot.named(Counted(Stretch(0, 10, 0, 1, (), ""), 0, None)).stretch.void


def test_a_pause_that_counts_for_nothing_is_over_when_the_search_says_so() -> None:
    world = World()
    search = Scripted([(4, "drain", 0.0), (6, "near", 12.0), (9, "", "end")])
    pilot = CapacityPilot(cast("Search", search), Question(open_plan(), LIMITS, Settings(time_s=60.0), 1), world.rate)
    pilot.moved = lambda: "the instances changed" if world.rate == 0 else ""

    world.run(pilot, 12)

    assert [order for _, order in world.orders] == [Rate(Decimal(0)), Rate(Decimal(12)), End()]


def test_the_last_second_of_a_stretch_is_judged_once_it_is_known() -> None:
    world = World()
    found = flown(world, [(4, "near", 20.0), (8, "", "end")], seconds=9)
    slow = Histogram.of([50 * MS] * 20).to_json()
    world.feed.merge([{"s": 8, "n": 1, "ok": 20, "latency": slow, "lag": slow}], [])

    voids = [found.pilot.named(Counted(Stretch(n, 10.0, 0.0, 4.0, (), ""), 0, None)).stretch.void for n in (0, 1)]

    assert voids[0] == ""
    assert "late" in voids[1]


def test_where_there_are_no_more_workers_the_search_goes_on_below_what_the_client_could_do() -> None:
    world = World(late_ms=lambda rate: 50.0 if rate > 100 else 0.0)

    found = flown(world, [(4, "grow", 200.0), (8, "at most", 50.0), (15, "", "end")], more=False)

    rates = [order.rps for _, order in world.orders if isinstance(order, Rate)]
    assert rates == [Decimal(200), Decimal(0), Decimal(200), Decimal(50)]
    assert found.pilot.client_limit is not None


def test_a_wave_of_stretches_that_never_count_has_an_end() -> None:
    world = World()
    pilot = CapacityPilot(
        cast("Search", Scripted([])), Question(open_plan(), LIMITS, Settings(time_s=5.0), 1), world.rate
    )
    pilot.moved = lambda: "the instances changed"

    world.run(pilot, 25)

    assert world.orders[-1] == (pytest.approx(20, abs=0.5), End())


def test_the_search_pauses_while_instances_come_or_go_and_tries_again() -> None:
    world = World()
    search = Scripted([(1, "grow", 20.0)])
    question = Question(open_plan(), LIMITS, Settings(time_s=60.0), 1)
    pilot = CapacityPilot(cast("Search", search), question, world.rate)
    looked = iter(["", *["2 instances are asked for"] * 30])
    pilot.moved = lambda: next(looked, "")

    world.run(pilot, 20)

    orders = [(at, order.rps) for at, order in world.orders if isinstance(order, Rate)]
    assert [rate for _, rate in orders][:2] == [Decimal(0), Decimal(10)]
    assert orders[1][0] - orders[0][0] > 5, "while they come, nothing is sent"
    assert pilot.client_limit is None
