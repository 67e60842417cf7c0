"""The twin: what a queue did tells its servers, services and overhead; closed forms, other disciplines, a judgement."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.embedded.queueing.model import QueueModel
from inference_benchmarker.embedded.queueing.rules import Rules
from inference_benchmarker.words.units import NS
from server_capacity.models.twin.crossing import crossing
from server_capacity.models.twin.fit import Refused, fit
from server_capacity.models.twin.fleet import shares_over
from server_capacity.models.twin.misfit import judge
from server_capacity.models.twin.result_section import block
from server_capacity.models.twin.shares import Variants, ranked
from server_capacity.models.twin.trace import Trace
from server_capacity.models.twin.twin import Twin
from server_capacity.results.types import twin as result
from server_capacity.results.types.twin import Extrapolations
from server_capacity.search.limits import Limit
from tests.queue_models import LATER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from server_capacity.models.twin.trace import Floats

    Services = Callable[[int], Floats]

LIMIT = Limit("p99<100ms", "response_time", 0.01, 0.1)
EXPLORED = (20, 45, 101, 227, 0, 151, 185, 168, 174, 165, 176, 170, 178, 160)


def same(count: int) -> Floats:
    return np.full(count, 0.02)


def exponential(count: int) -> Floats:
    """As many values of equal probability, in any order."""
    ranks = (np.arange(count) + 0.5) / count
    return np.random.default_rng(1).permutation(-np.log1p(-ranks) * 0.02)


def arrivals(rates: Sequence[float] = EXPLORED, seconds: float = 4, seed: int = 1) -> Floats:
    draws = np.random.default_rng(seed)
    counts = draws.poisson(np.array(rates) * seconds)
    return np.concatenate([(i + np.sort(draws.random(count))) * seconds for i, count in enumerate(counts)])


def answered(sent: Floats, services: Services, overhead_s: float = 0.001, **rules: Any) -> Trace:
    """The answers of the embedded endpoint's own queueing model."""
    nanoseconds = cycle((services(len(sent)) * NS).astype(int).tolist())
    model = QueueModel(Rules(**{"servers": 4} | rules), lambda: next(nanoseconds))
    jobs = [model.offer(at) for at in (sent * NS).astype(int).tolist()]
    model.take_ready(LATER)
    latency = [overhead_s + (job.finish_ns - job.arrival_ns) / NS if job and job.finish_ns else 1e-4 for job in jobs]
    return Trace(sent, np.array(latency), np.array([job is not None for job in jobs]))


def twin_of(wave: Trace) -> Twin:
    twin = fit([wave])
    assert isinstance(twin, Twin), twin
    return twin


@pytest.mark.parametrize("overhead_s", [0.001, 0.01])
@pytest.mark.parametrize("services", [same, exponential])
def test_the_servers_the_services_and_the_overhead_are_found(services: Services, overhead_s: float) -> None:
    twin = twin_of(answered(arrivals(), services, overhead_s))
    assert twin.servers == 4
    assert twin.services_s.mean() == pytest.approx(0.02, rel=0.03)
    assert twin.overhead_s == pytest.approx(overhead_s, abs=0.0006)


@pytest.mark.parametrize(
    ("services", "rules", "reason"),
    [
        (same, {"discipline": "lifo"}, "overtook"),
        (same, {"discipline": "ps"}, "no number of servers"),
        (exponential, {"discipline": "ps"}, ""),
        (exponential, {"queue_limit": 10}, "failed"),
        (same, {"batch_size": 8, "batch_delay_ns": 20_000_000, "servers": 1}, ""),
        (exponential, {"slow_start_requests": 2000, "slow_start_factor": 2.0}, ""),
        (same, {"pause_every_ns": 5 * NS, "pause_ns": NS // 3}, ""),
    ],
)
def test_what_is_no_queue_with_one_line_is_refused(services: Services, rules: dict[str, Any], reason: str) -> None:
    refused = fit([answered(arrivals(), services, **rules)])
    assert isinstance(refused, Refused)
    assert reason in refused.reason


def test_a_wave_without_waiting_tells_no_servers() -> None:
    assert isinstance(fit([answered(arrivals((5, 5, 5)), same)]), Refused)
    assert isinstance(fit([]), Refused)


def test_noise_in_the_instants_of_answers_is_no_spread_of_services() -> None:
    wave = answered(arrivals(), same)
    noise = np.random.default_rng(2).uniform(0, 0.002, len(wave.sent_s))
    noisy = Trace(wave.sent_s, wave.latency_s + noise, wave.ok)
    assert twin_of(wave).services_s.std() < 1e-6
    assert twin_of(noisy).services_s.std() < noise.std() / 2


@pytest.mark.parametrize(
    ("servers", "services", "bound_s", "rate"),
    [
        (1, exponential, 0.2, 50 - np.log(100) / 0.2),  # M/M/1: the response time is exponential, too
        (4, exponential, 0.2, 175.05),  # M/M/4
        (4, same, 0.1, 173.97),  # M/D/4
    ],
)
def test_the_capacity_is_that_of_the_closed_form(servers: int, services: Services, bound_s: float, rate: float) -> None:
    fitted = Variants(servers, ranked(services(100_000))[None], np.zeros(1))
    assert crossing(fitted, bound_s, 0.01, sample=400_000).rate == pytest.approx(rate, rel=0.02)


def test_even_arrivals_leave_servers_of_one_speed_nothing_to_wait_for() -> None:
    fitted = Variants(4, ranked(same(1000))[None], np.zeros(1))
    assert crossing(fitted, 0.1, 0.01, even=True, sample=10_000).rate == pytest.approx(200)


def test_a_limit_below_a_service_is_kept_at_no_rate() -> None:
    assert crossing(Variants(4, ranked(same(1000))[None], np.zeros(1)), 0.01, 0.01).rate is None


def test_the_least_outstanding_requests_leave_room() -> None:
    """At five times the rate of one instance p99 is 37 ms, where random routing has 96 ms."""
    fitted = Variants(4, ranked(same(1000))[None], np.zeros(1))
    assert shares_over(fitted, 5, np.array([870.0]), 0.05, 1)[0] < 0.003


def test_it_foretells_a_wave_that_it_has_not_seen_and_not_one_of_a_slower_endpoint() -> None:
    twin, later = twin_of(answered(arrivals(), same)), arrivals((168,) * 5, seed=2)
    assert judge(twin, answered(later, same), [LIMIT]).reason == ""
    slower = judge(twin, answered(later, lambda count: same(count) * 1.1), [LIMIT])
    assert not slower.fits
    assert "p99 was" in slower.reason


def test_the_block_has_the_keys_of_capacity_json_whether_it_fits_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Extrapolations(even_arrivals=LIMIT.bound_s)
    monkeypatch.setattr("server_capacity.models.twin.result_section.what_if", lambda *_: asked)
    monkeypatch.setattr("server_capacity.models.twin.twin.crossing", partial(crossing, sample=100_000))
    exploration, confirmation = answered(arrivals(), same), answered(arrivals((165,) * 5, seed=3), same)
    fits = block([exploration], [(165.0, confirmation)], [LIMIT])
    assert fits.fits is True, fits.reason
    assert fits.rate == pytest.approx(173.5, rel=0.03)
    assert fits.what_if == asked
    unconfirmed = block([exploration], [], [LIMIT])
    elsewhere = block([exploration], [], [replace(LIMIT, metric="ttft")])
    refused = block([answered(arrivals(), same, discipline="lifo")], [(165.0, confirmation)], [LIMIT])
    for other in (unconfirmed, elsewhere, refused):
        assert other.fits is False
        assert other.reason
        assert other.rate is None
        assert encoded(other).keys() == encoded(fits).keys()
    assert decoded(json.loads(json.dumps(encoded(fits))), result.Twin) == fits
