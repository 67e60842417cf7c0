"""What is reported of the server's metrics against the log of the embedded endpoint that published them."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from unittest.mock import patch

from inference_benchmarker.cli.core.embedded import DEMO_URL
from inference_benchmarker.embedded.running import EndpointConfig, start
from tests.metrics_truth import Truth, asked
from tests.performance import measure
from tests.performance.figures import Figure, Program, below, exactly

FACTORIES = measure.REPOSITORY / "factories" / "demo" / "factories_demo.py"
RATE, WARMUP_S = 100, 2
PERIOD_S, DELAY_S = 10, 1


def figures(seconds: float) -> list[Figure]:
    """One wave at half of what 4 servers of 20 ms can do."""
    config = EndpointConfig(servers=4, service_s=0.02, publish_interval_s=PERIOD_S, publication_delay_s=DELAY_S)
    flags = ("--client-rps", str(RATE), "--obs-time", f"{seconds:g}", "--warmup", str(WARMUP_S))
    with tempfile.TemporaryDirectory() as folder, start(config) as endpoint:
        (Path(folder) / "metrics.json").write_text(json.dumps(asked(PERIOD_S, DELAY_S)), encoding="utf-8")
        with patch.dict(os.environ, endpoint.aws_environment | {DEMO_URL: endpoint.url}):
            configured = ("--endpoint-config", f"{folder}/metrics.json")
            wave = measure.run(FACTORIES, endpoint.url, round(RATE * seconds), *flags, *configured)
        truth = Truth.of(wave.summary["server_metrics"], endpoint.arrivals(), PERIOD_S)
    return [
        Figure(f"CPU over {truth.buckets} buckets of {PERIOD_S} s", truth.cpu, "%"),
        Figure("the same, off the busy share by", 100 * abs(truth.cpu / truth.true_cpu - 1), "%", below(2)),
        Figure("ModelLatency p99", truth.p99_us / 1e3, "ms"),
        Figure("the same, off the log's by", 100 * abs(truth.p99_us / truth.true_p99_us - 1), "%", below(1)),
        Figure("Invocations, warm-up included", truth.invocations, "", exactly(truth.arrivals)),
    ]


PROGRAM = Program("server metrics against the server's log", figures, seconds=60, quick_seconds=32)

if __name__ == "__main__":
    PROGRAM.main()
