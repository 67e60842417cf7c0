"""The sample reports in docs/samples, from real waves against the embedded endpoint: ``python -m tests.samples``.

Six waves of 20 s, from a third of the endpoint's capacity (4 servers of 20 ms: 200 requests a second) to beyond it; and
the search for that capacity which ``benchmark capacity --demo`` makes (``python -m tests.samples search``: it alone).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.packaged import demo_factories

SAMPLES = Path(__file__).parent.parent / "docs" / "samples"
FIRST_ROW = "capacity.png"
PAPER, GAP = 0.97, 12
KEPT = ("benchmark_plots.html", "benchmark_plots_times.png", "benchmark_plots_capacity.png")
KEPT_OF_SEARCH = ("capacity_curve.png", "capacity_search.png")
RATES = (60, 120, 160, 180, 190, 240)
CAPACITY, ATTEMPTS = 200, 4
VALID, INVALID = 0, 3
WATCHED = {
    "demo_endpoint_busy_servers": ["Average"],
    "demo_endpoint_queue_length": ["Average"],
    "demo_endpoint_service_seconds": ["Average"],
}


def benchmark(*arguments: object) -> int:
    """The command's exit code; anything but VALID and INVALID ends this program."""
    done = subprocess.run([sys.executable, "-m", "inference_benchmarker.cli", *map(str, arguments)], check=False)
    if done.returncode not in (VALID, INVALID):
        raise SystemExit(done.returncode)
    return done.returncode


def wave(rate: int, folder: Path) -> Path:
    """Its run directory. Below capacity, a wave that a busy machine made INVALID is sent again."""
    load = ("--client-rps", rate, "--arrivals", "poisson", "--seed", 5, "--obs-time", 20, "--warmup", 1)
    watch = ("--endpoint-config", folder / "metrics.json", "--sample-client-hw", "--quiet")
    factories = ("--factories-file", demo_factories(), "--max-in-flight", 60)
    for attempt in range(ATTEMPTS):
        made = folder / f"{rate}_a_second" / str(attempt)
        if benchmark(*factories, *load, *watch, "--output-dir", made) == VALID or rate > CAPACITY:
            return next(made.iterdir())
    raise SystemExit(f"{rate}/s is INVALID on this machine: quiet it first.")


def waves(folder: Path) -> list[Path]:
    """A run directory for each rate."""
    with start(EndpointConfig(service="lognormal", cv=0.5)) as endpoint:
        os.environ["BENCHMARK_DEMO_URL"] = endpoint.url
        page = {"stream": "prometheus", "scrape_url": f"{endpoint.url}/metrics", "interval": 1, "metrics": WATCHED}
        (folder / "metrics.json").write_text(json.dumps([page]))
        return [wave(rate, folder) for rate in RATES]


def keep_first_row(source: Path, target: Path) -> None:
    """Of a picture with a title, rows of panels and a legend: the first row and the legend."""
    picture = plt.imread(source)
    inked = np.flatnonzero((picture[..., :3] < PAPER).any(axis=(1, 2)))
    bands = np.split(inked, np.flatnonzero(np.diff(inked) > GAP) + 1)
    rows = [picture[band[0] - GAP // 2 : band[-1] + GAP] for band in (bands[1], bands[-1])]
    plt.imsave(target, np.concatenate(rows))


def comparison() -> None:
    """Make the waves, compare them, keep the page and two pictures."""
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
    keep_first_row(SAMPLES / "benchmark_plots_capacity.png", SAMPLES / FIRST_ROW)


def search() -> None:
    """Make a search, say what it found, keep its pictures."""
    with tempfile.TemporaryDirectory() as name:
        if benchmark("capacity", "--demo", "--quiet", "--output-dir", name) != VALID:
            raise SystemExit("The client was the limit on this machine: quiet it first.")
        folder = next(Path(name).iterdir())
        for kept in KEPT_OF_SEARCH:
            shutil.copy(folder / kept, SAMPLES / kept)


def main() -> None:
    """Make those that are asked for, by default all."""
    SAMPLES.mkdir(exist_ok=True)
    if sys.argv[1:] != ["search"]:
        comparison()
    search()


if __name__ == "__main__":
    main()
