"""What else an endpoint, its limits, its client and the feed can be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from server_capacity.search.settings import Settings
from tests.performance.capacity.driver import Feed
from tests.performance.capacity.endpoints import ENDPOINTS, FOUR_EXACT, Endpoint, success, times
from tests.performance.capacity.queues import Rules


@dataclass(frozen=True, slots=True)
class Scenario:
    """An endpoint, and the search for its capacity."""

    title: str
    endpoint: Endpoint
    settings: Settings = field(default_factory=lambda: Settings(time_s=180.0))
    feed: Feed = field(default_factory=Feed)


_EXACT = ENDPOINTS["exact"]
_REMEMBERING = Rules(2, 0.02, most_servers=4, threshold=16)
_PAUSING = replace(FOUR_EXACT, pause_every_s=10.0, pause_s=0.3)
_BATCHER = ENDPOINTS["batcher"].rules


def _throttled(after_s: float) -> Scenario:
    rules = Rules(4, 0.05, "exponential", slow_s=after_s, slow_factor=0.4)
    limits = times(99, 0.4), success(0.95)
    title = f"4 x exponential 20 ms, 50 ms after {after_s:g} s, p99 < 400 ms; the truth is that which lasts"
    return Scenario(title, Endpoint("throttled", "", rules, limits, 66.9395))


SCENARIOS = {
    "even": Scenario(
        "even arrivals: nothing over below 200/s, everything above",
        replace(_EXACT, arrivals="constant", truth=200.0),
        Settings(arrivals="constant", time_s=110.0),
    ),
    "precision": Scenario("--precision 5%", _EXACT, Settings(precision=0.05)),
    "feed_0": Scenario("an answer is known at once", _EXACT, feed=Feed(delay_s=0.0)),
    "feed_2": Scenario("an answer is known after 2 s", _EXACT, feed=Feed(delay_s=2.0)),
    "several": Scenario(
        "p95 < 60 ms, p99 < 100 ms and success >= 99%: the lowest holds",
        Endpoint("several", "", FOUR_EXACT, (times(95, 0.06), times(99, 0.1), success(0.99))),
    ),
    "refuses_first": Scenario(
        "p99 < 200 ms and success >= 99% where 10 may wait",
        Endpoint("refuses_first", "", ENDPOINTS["refusing"].rules, (success(0.99), times(99, 0.2)), 154.9226),
    ),
    "success_alone": Scenario(
        "success >= 95% alone: the rate that it keeps up with",
        Endpoint("success_alone", "", FOUR_EXACT, (success(0.95),), 200.0),
    ),
    "slow": Scenario(
        "0.2/s with answers of a minute, p95 < 180 s",
        Endpoint("slow", "", Rules(12, 60.0, "lognormal", 0.3), (times(95, 180.0), success(0.95))),
        Settings(),
    ),
    "fast": Scenario(
        "20,000/s, p99 < 120 ms",
        Endpoint("fast", "", Rules(400, 0.02, "exponential"), (times(99, 0.12), success(0.95)), 19938.647),  # M/M/400
    ),
    "island": Scenario(
        "a batcher that breaks p97 < 75 ms by twice the share allowed, and keeps it again at 180 to 245/s",
        Endpoint("island", "", _BATCHER, (times(97, 0.075), success(0.95))),
    ),
    "shallow": Scenario(
        "the same batcher and p95, which it breaks by a third of the share allowed",
        Endpoint("shallow", "", _BATCHER, (times(95, 0.075), success(0.95))),
    ),
    "remembering": Scenario(
        "2 servers, 4 for 600 s once more than 16 wait; the truth is that from below",
        Endpoint("remembering", "", _REMEMBERING, (times(99, 0.1), success(0.95))),
    ),
    "slow_start": Scenario(
        "4 x exactly 20 ms that take three times as long for the first 20 s, p99 < 100 ms",
        replace(_EXACT, rules=replace(FOUR_EXACT, slow_s=20.0, slow_factor=3.0)),
    ),
    "throttled_30": _throttled(30.0),
    "throttled_60": _throttled(60.0),
    "throttled_150": _throttled(150.0),
    "credits": Scenario(
        "4 x exactly 20 ms with 60 s of service beyond two fifths of that speed, p99 < 100 ms",
        replace(_EXACT, rules=replace(FOUR_EXACT, burst_s=60.0, baseline=0.4), truth=80.0),
    ),
    "leak": Scenario(
        "4 x exactly 20 ms, and twice that after 180 s, p99 < 100 ms; the truth is that of 200 s",
        replace(_EXACT, rules=replace(FOUR_EXACT, leak=1 / 180), truth=82.4),
    ),
    "pauses": Scenario(
        "the same without a slow start, all standing still for 0.3 s every 10 s: no rate keeps p99 < 100 ms",
        replace(_EXACT, rules=_PAUSING, truth=0.0),
    ),
    "pauses_kept": Scenario(
        "the same pauses and p95 < 100 ms, which lower rates keep",
        Endpoint("pauses_kept", "", _PAUSING, (times(95, 0.1), success(0.95))),
    ),
    "lifo": Scenario(
        "4 x exponential 20 ms, the last come first, p99 < 200 ms",
        Endpoint("lifo", "", Rules(4, 0.02, "exponential", order="lifo"), (times(99, 0.2), success(0.95))),
    ),
    "client_100": Scenario("the client can send 100/s", _EXACT, feed=Feed(client_most=100.0)),
    "client_180": Scenario("the client can send 180/s", _EXACT, feed=Feed(client_most=180.0)),
    "most_100": Scenario("--max-rps 100", _EXACT, Settings(time_s=180.0, max_rps=100.0)),
    "never": Scenario(
        "p99 < 15 ms, which no rate keeps", Endpoint("never", "", FOUR_EXACT, (times(99, 0.015), success(0.95)), 0.0)
    ),
}
