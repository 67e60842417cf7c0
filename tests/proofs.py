"""A plan, and waves that prove it or not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker import cli
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.wave.environment import describe_environment
from inference_benchmarker.wave.plan_file import save_plan
from inference_benchmarker.wave.run_dir import RunDir
from server_capacity.experiments.measurements.question import Question
from server_capacity.experiments.proof.evidence import Aim
from server_capacity.experiments.proof.judging import judged
from server_capacity.experiments.proof.length import length_of
from server_capacity.experiments.proof.planned import Planned
from server_capacity.experiments.proof.result import content
from server_capacity.results.capacity_folder import save
from server_capacity.results.types.bounds import Endpoint, Spread
from server_capacity.search.limits import limits_of
from server_capacity.search.settings import Settings
from tests.capacities import searched
from tests.waves import open_plan, wave

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.results.types.proof import ProofResult

RATE, SECONDS, INSTANCES = 200, 60, 3
SLOS = (Slo.parse("p99<100ms"),)
LIMITS = limits_of(SLOS, 0.95)
QUESTION = Question(open_plan(slos=SLOS), LIMITS, Settings(), 2, endpoint=Endpoint("mine", instances=INSTANCES))
PLANNED = Planned(
    Path("p/fleet_plan.json"),
    "e",
    Aim(RATE, INSTANCES, 0.95, 70.0),
    ("p99<100ms", "success>=0.95"),
    "p99<100ms",
    Spread(20.0, 15.0),
    Endpoint(instance_type="ml.m5.large"),
    None,
)


def ran(share: float, **more: Any) -> Wave:
    """A wave at the target, of which so large a share takes 200 ms, the rest 20 ms."""
    times = np.full((SECONDS, RATE), 0.02)
    number = round(share * times.size)
    times.ravel()[np.linspace(0, times.size - 1, number, dtype=int)] = 0.2
    return wave(times, slos=SLOS, **more)


def proof(of: Wave, planned: Planned = PLANNED) -> ProofResult:
    length = length_of(planned, LIMITS, None)
    return content(QUESTION, planned, length, judged(QUESTION, planned, of))


def planned(
    tmp_path: Path, *flags: str, instances: int = 1, low: float = 60.0, wave: WavePlan | None = None, **endpoint: Any
) -> Path:
    """A plan of `benchmark plan`, made in the current folder of a made-up search; ``wave``: one that it sent."""
    given = {"name": "e", "instances": instances, "arguments": {"instances": instances, "kind": "large"}, **endpoint}
    limits = [{"expression": each, "dispersion": 10.0, "slope": 15.0} for each in ("p90<1s", "success>=0.95")]
    interval = {"low": low, "high": low * 1.1}
    (tmp_path / "c").mkdir(exist_ok=True)
    waves = {} if wave is None else {"exploration": ["w"]}
    if wave is not None:
        (tmp_path / "c" / "w").mkdir()
        save_plan(RunDir(tmp_path / "c" / "w"), wave, {"environment": describe_environment(wave, os.environ)})
    more = {"endpoint": given, "limit": "p90<1s", "limits": limits, "waves": waves}
    save(tmp_path / "c", searched(rate=low * 1.05, interval=interval, **more))
    assert cli.main(["plan", "c", *flags, "--output-dir", "plans"]) == 0
    return max((tmp_path / "plans").iterdir())
