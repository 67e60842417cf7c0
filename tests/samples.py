"""The sample reports in docs/samples, from real waves against the embedded endpoint: ``python -m tests.samples``.

Six waves of 20 s, from a third of the endpoint's capacity (4 servers of 20 ms: 200 requests a second) to beyond it; and
the search for that capacity which ``benchmark capacity --demo`` makes (``python -m tests.samples search``: it alone).
``terminal``: the recording of ``benchmark --demo``. ``page``: the page of a chat model whose load rises for a while.
``frontier``: two LLM engines at six loads each.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.system.packaged import demo_factories
from tests.browser import tab
from tests.terminal_recording import recorded, to_svg

SAMPLES = Path(__file__).parent.parent / "docs" / "samples"
PAGE, PANEL = "benchmark_plots.html", "capacity.png"
KEPT = (PAGE, "benchmark_plots_times.png")
TERMINAL = "terminal.svg"
KEPT_OF_SEARCH = ("capacity_curve.png", "capacity_search.png")
RATES = (60, 120, 160, 180, 190, 220)
CAPACITY, ATTEMPTS = 200, 4
RUN_PAGE, RUN_PAGE_HEIGHT = "run.png", 2165  # pixels: its verdict, tables, and first pictures over time
CHAT = ("--llm", "8b-h100", "--max-num-seqs", 16, "--port", 0)
RISING = (
    "--stages",
    "steady=6:25s, peak=6..24:15s, after=6:20s",
    "--seed",
    5,
    "--name",
    "A chat model under a rising load",
)
LENGTHS = ("--input-tokens", 500, "--output-tokens", 128)
LIMITS = ("--slo", "ttft.p99<1s", "--slo", "itl.p95<30ms", "--goodput", "ttft<1s,latency<5s")
FRONTIER = "pareto_frontier.png"
ENGINES = {"latency": "0:0:24:2.4", "throughput": "0:0:40:1"}
CONCURRENCIES = (1, 2, 4, 8, 16, 32)
VALID, MISSED, INVALID = 0, 1, 3
LIMIT = "p99<200ms"
WATCHED = {
    "demo_endpoint_busy_servers": ["Average"],
    "demo_endpoint_queue_length": ["Average"],
    "demo_endpoint_service_seconds": ["Average"],
}


def benchmark(*arguments: object) -> int:
    """The command's exit code; what is no answer ends this program."""
    done = subprocess.run([sys.executable, "-m", "inference_benchmarker.cli", *map(str, arguments)], check=False)
    if done.returncode not in (VALID, MISSED, INVALID):
        raise SystemExit(done.returncode)
    return done.returncode


def wave(rate: int, folder: Path) -> Path:
    """Its run directory. Below capacity, a wave that a busy machine made INVALID is sent again."""
    load = ("--client-rps", rate, "--arrivals", "poisson", "--seed", 5, "--obs-time", 20, "--warmup", 1, "--slo", LIMIT)
    watch = ("--endpoint-config", folder / "metrics.json", "--sample-client-hw", "--quiet")
    factories = ("--factories-file", demo_factories())
    for attempt in range(ATTEMPTS):
        made = folder / f"{rate}_a_second" / str(attempt)
        if benchmark(*factories, *load, *watch, "--output-dir", made) != INVALID or rate > CAPACITY:
            return next(made.iterdir())
    raise SystemExit(f"{rate}/s is INVALID on this machine: quiet it first.")


def waves(folder: Path) -> list[Path]:
    """A run directory for each rate."""
    with start(EndpointConfig(service="lognormal", cv=0.5)) as endpoint:
        os.environ["BENCHMARK_DEMO_URL"] = endpoint.url
        page = {"stream": "prometheus", "scrape_url": f"{endpoint.url}/metrics", "interval": 1, "metrics": WATCHED}
        (folder / "metrics.json").write_text(json.dumps([page]))
        return [wave(rate, folder) for rate in RATES]


def keep_best_panel(page: Path, target: Path) -> None:
    """Of the page the table of runs, and times against the rate."""
    others = "main > section:not(#capacity), #capacity figure:nth-child(n+3), #capacity figure details"
    with tab() as opened:
        opened.size(1180)
        opened.theme("light")
        opened.open(page)
        opened.ask(f"document.querySelectorAll('{others}').forEach((each) => each.remove())")
        opened.picture(target, "#overview, #capacity", margin=6)


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
    keep_best_panel(SAMPLES / PAGE, SAMPLES / PANEL)


def search() -> None:
    """Make a search, say what it found, keep its pictures."""
    with tempfile.TemporaryDirectory() as name:
        if benchmark("capacity", "--demo", "--quiet", "--output-dir", name) != VALID:
            raise SystemExit("The client was the limit on this machine: quiet it first.")
        folder = next(Path(name).iterdir())
        for kept in KEPT_OF_SEARCH:
            shutil.copy(folder / kept, SAMPLES / kept)


def terminal() -> None:
    """Record ``benchmark --demo`` in a terminal, until a wave is VALID."""
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
            frames, reported = recorded(
                [sys.executable, "-m", "inference_benchmarker.cli", "--demo"], "benchmark --demo"
            )
        if "VALID" in reported and "INVALID" not in reported:
            (SAMPLES / TERMINAL).write_text(to_svg(frames))
            return
    raise SystemExit("The client was the limit on this machine: quiet it first.")


def page() -> None:
    """Send a load that rises above what an LLM engine can serve, and keep the upper part of the page."""
    command = [sys.executable, "-m", "inference_benchmarker.cli", "endpoint", *map(str, CHAT)]
    with tempfile.TemporaryDirectory() as name, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        url = engine.stdout.readline().split()[2]
        benchmark(f"{url}/v1", *RISING, *LENGTHS, *LIMITS, "--quiet", "--output-dir", name)
        engine.terminate()
        run = next(Path(name).iterdir())
        benchmark("report", "--format", "html", "--output", Path(name) / "run.html", run)
        with tab() as opened:
            opened.size(1280, RUN_PAGE_HEIGHT)
            opened.theme("light")
            opened.open(Path(name) / "run.html")
            opened.screenshot(SAMPLES / RUN_PAGE)


def frontier() -> None:
    """Send the same loads to two engines, one of which is better for slow users, and keep the picture of both."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for engine, step_ms in ENGINES.items():
            sweep(folder / "runs" / engine, step_ms, folder / "sent")
        benchmark("pareto", folder / "runs", "--gpus", 1, "--price", "gpu=2.50", "--output-dir", folder / "out")
        (made,) = (folder / "out").iterdir()
        shutil.copy(made / FRONTIER, SAMPLES / FRONTIER)


def sweep(folder: Path, step_ms: str, sent: Path) -> None:
    """A wave for each number of requests in flight, below the folder."""
    folder.mkdir(parents=True)
    engine = ("--llm", "8b-h100", "--prefill-ms=0:0.01:2", f"--step-ms={step_ms}", "--port", 0)
    command = [sys.executable, "-m", "inference_benchmarker.cli", "endpoint", *map(str, engine)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        url = running.stdout.readline().split()[2]
        for concurrency in CONCURRENCIES:
            shutil.move(in_flight(url, concurrency, sent / f"{folder.name}_{concurrency}"), folder)
        running.terminate()


def in_flight(url: str, concurrency: int, sent: Path) -> Path:
    """The run directory of a wave; one that a busy machine made INVALID is sent again."""
    load = ("--input-tokens", 200, "--output-tokens", 64, "--warmup", 6, "--obs-time", 60, "--quiet")
    for attempt in range(ATTEMPTS):
        made = sent / str(attempt)
        if benchmark(f"{url}/v1", *load, "--concurrency", concurrency, "--output-dir", made) != INVALID:
            return next(made.iterdir())
    raise SystemExit(f"{concurrency} in flight are INVALID on this machine: quiet it first.")


def main() -> None:
    """Make those that are asked for, by default all."""
    SAMPLES.mkdir(exist_ok=True)
    parts = {"comparison": comparison, "search": search, "terminal": terminal, "page": page, "frontier": frontier}
    for make in [parts[name] for name in sys.argv[1:] or parts]:
        make()


if __name__ == "__main__":
    main()
