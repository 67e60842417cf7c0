from dataclasses import replace
from pathlib import Path

import pytest

from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.facts.hosts import HostClock, HostFacts, host_of_worker
from inference_benchmarker.report.summary_types import HostPart
from inference_benchmarker.wave.wave import Wave
from tests.waves import HOST, stored, wave

CLOCK = HostClock(1000.25, 0.000225, 12.5, 0.00045, jump_s=0.0, slew_ppm=-3.0)
FULL = HostFacts("admin@load3", (0, 3), {"benchmark": "1.2.3", "python": "3.12.4"}, HOST, CLOCK)


PART = {**encoded(FULL), **dict.fromkeys(("lag", "latency", "cpu", "steal")), "sent": 7}


@pytest.mark.parametrize(
    "host",
    [
        replace(FULL, workers=(0,), node="node-a"),
        replace(FULL, workers=(0,), node="node-a", zone="eu-west-1a", instance_type="m7i.large"),
        HostFacts("localhost", (0,)),
        HostFacts("load2", (0,), lost="ssh: timed out"),
    ],
)
def test_a_host_survives_in_a_run_directory(host: HostFacts, tmp_path: Path) -> None:
    run_dir = stored(replace(wave([[0.02] * 20] * 2), hosts=(host,)), tmp_path)
    assert Wave.load(run_dir.path).hosts == (host,)


@pytest.mark.parametrize(
    "changes",
    [
        {"workers": ["0"]},
        {"workers": 3},
        {"name": None},
        {"clock": "now"},
        {"lost": 1},
        {"use": []},
        {"versions": 1},
        {"zone": 1},
    ],
)
def test_a_host_of_other_types_is_refused(changes: dict[str, object]) -> None:
    assert decoded(PART, HostPart).clock == CLOCK
    with pytest.raises(ValueError, match=next(iter(changes))):
        decoded({**PART, **changes}, HostPart)


def test_a_number_of_a_clock_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="offset_s"):
        decoded({**PART, "clock": {**PART["clock"], "offset_s": "soon"}}, HostPart)


@pytest.mark.parametrize(("slew_ppm", "slewed"), [(None, False), (-78.0, False), (500.0, True), (-501.0, True)])
def test_a_clock_is_slewed_beyond_what_corrects_an_oscillator(slew_ppm: float | None, slewed: bool) -> None:
    assert HostClock(0.0, 0.001, None, 0.002, slew_ppm=slew_ppm).is_slewed is slewed


def test_a_worker_has_a_host() -> None:
    hosts = (FULL, HostFacts("load1", (1, 2)))
    assert [host_of_worker(hosts, worker) for worker in range(4)] == ["admin@load3", "load1", "load1", "admin@load3"]
    assert host_of_worker((), 0) is None
