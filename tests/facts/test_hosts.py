import json

import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.facts.hosts import HostClock, HostFacts, host_of_worker
from tests.waves import HOST

CLOCK = HostClock(1000.25, 0.000225, 12.5, 0.00045, jump_s=0.0, slew_ppm=-3.0)
FULL = HostFacts("admin@load3", (0, 3), {"benchmark": "1.2.3", "python": "3.12.4"}, HOST, CLOCK)


@pytest.mark.parametrize(
    "host",
    [FULL, HostFacts("localhost", (1,)), HostFacts("load2", (2,), lost="ssh: connect to host load2: timed out")],
)
def test_a_host_survives_json_with_what_stands_beside_it(host: HostFacts) -> None:
    described = json.loads(json.dumps({**encoded(host), "sent": 7, "lag": None}))
    assert HostFacts.from_json(described) == host


@pytest.mark.parametrize(
    "changes",
    [{"workers": ["0"]}, {"workers": 3}, {"name": None}, {"clock": "now"}, {"lost": 1}, {"use": []}, {"versions": 1}],
)
def test_a_host_of_other_types_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        HostFacts.from_json({**encoded(FULL), **changes})


def test_a_number_of_a_clock_that_is_none_is_refused() -> None:
    described = encoded(FULL)
    with pytest.raises(ValueError, match="offset_s"):
        HostFacts.from_json({**described, "clock": {**described["clock"], "offset_s": "soon"}})


@pytest.mark.parametrize(("slew_ppm", "slewed"), [(None, False), (-78.0, False), (500.0, True), (-501.0, True)])
def test_a_clock_is_slewed_beyond_what_corrects_an_oscillator(slew_ppm: float | None, slewed: bool) -> None:
    assert HostClock(0.0, 0.001, None, 0.002, slew_ppm=slew_ppm).is_slewed is slewed


def test_a_worker_has_a_host() -> None:
    hosts = (FULL, HostFacts("load1", (1, 2)))
    assert [host_of_worker(hosts, worker) for worker in range(4)] == ["admin@load3", "load1", "load1", "admin@load3"]
    assert host_of_worker((), 0) is None
