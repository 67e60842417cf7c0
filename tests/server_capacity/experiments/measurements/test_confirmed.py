"""The values of a server that a confirmation wave keeps."""

from __future__ import annotations

from inference_benchmarker.facts.server_metric import ServerMetric
from server_capacity.experiments.measurements.confirmed import reported_values


def test_each_series_has_its_own_values_and_a_bound_none() -> None:
    gpus = [
        ServerMetric("prometheus", "gpu_use", {"Average": 0.1 * gpu}, dimensions={"gpu": str(gpu)}) for gpu in (1, 9)
    ]
    wait = ServerMetric("prometheus", "wait", {"p99": 0.25, "Average": 0.6}, bounds={"p99": "at_least"})
    part = ServerMetric("prometheus", "tokens", {"Rate": 3.0}, complete=False)
    assert reported_values([*gpus, wait, part]) == {
        "gpu_use (gpu=1)": {"Average": 0.1},
        "gpu_use (gpu=9)": {"Average": 0.9},
        "wait": {"p99": None, "Average": 0.6},
        "tokens": {"Rate": None},
    }
