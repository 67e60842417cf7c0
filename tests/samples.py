"""The sample reports in docs/samples, from real waves against the embedded endpoint: ``python -m tests.samples``.

Six waves of 20 s, from a third of the endpoint's capacity (4 servers of 20 ms: 200 requests a second) to beyond it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from inference_benchmarker.demo_endpoint import EndpointConfig, start
from inference_benchmarker.flags import demo_factories

SAMPLES = Path(__file__).parent.parent / "docs" / "samples"
KEPT = ("benchmark_plots.html", "benchmark_plots_times.png", "benchmark_plots_capacity.png")
RATES = (60, 120, 160, 180, 190, 240)
WATCHED = {
    "demo_endpoint_busy_servers": ["Average", "Maximum"],
    "demo_endpoint_queue_length": ["Average", "Maximum"],
    "demo_endpoint_service_seconds": ["Average", "p90"],
}


def benchmark(*arguments: object) -> None:
    """The command; that a wave beyond capacity is INVALID is what it is there to show."""
    done = subprocess.run([sys.executable, "-m", "inference_benchmarker.cli", *map(str, arguments)], check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(done.returncode)


def waves(folder: Path, seconds: int = 20) -> list[Path]:
    """A run directory for each rate, named after it."""
    runs = []
    with start(EndpointConfig(service="lognormal", cv=0.5)) as endpoint:
        os.environ["BENCHMARK_DEMO_URL"] = endpoint.url
        page = {"stream": "prometheus", "scrape_url": f"{endpoint.url}/metrics", "interval": 1, "metrics": WATCHED}
        (folder / "metrics.json").write_text(json.dumps([page]))
        for rate in RATES:
            load = ("--client-rps", rate, "--arrivals", "poisson", "--seed", 5, "--obs-time", seconds)
            watch = ("--endpoint-config", folder / "metrics.json", "--sample-client-hw", "--quiet")
            factories = ("--factories-file", demo_factories(), "--max-in-flight", 60)
            benchmark(*factories, *load, *watch, "--warmup", 1, "--output-dir", folder / "made")
            (made,) = (folder / "made").iterdir()
            runs.append(made.rename(folder / f"{rate}_a_second"))
    return runs


def main() -> None:
    """Make the waves, compare them, keep the page and two pictures."""
    SAMPLES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = waves(folder)
        metadata = {
            run.name: {"legend": f"{rate}/s", "endpoint": "embedded, 4 servers of 20 ms", "arrivals": "Poisson"}
            for run, rate in zip(runs, RATES, strict=True)
        }
        benchmark("--plot", *runs, "--plot-output-dir", folder / "plots", "--plot-metadata", json.dumps(metadata))
        for kept in KEPT:
            shutil.copy(folder / "plots" / kept, SAMPLES / kept)


if __name__ == "__main__":
    main()
