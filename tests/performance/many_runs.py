"""How much a page of twenty runs weighs, and how soon a browser has drawn it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from statistics import median

from inference_benchmarker.wave.wave import Wave
from tests.browser import tab
from tests.performance.figures import Figure, Program, below
from tests.waves import START, make_run
from visualization.figures.reading import read_runs
from visualization.pages.html import page
from visualization.pages.series import make_figures

RUNS, RATE, METRICS, WORKERS, OPENED = 20, 50, 8, 4, 5
_READY = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"


def run_directories(folder: Path, seconds: int) -> list[Path]:
    """Streams of so many seconds, each slower than the one before, some failing, some INVALID."""
    paths = []
    for number in range(RUNS):
        path = folder / f"run_{number + 1:02}"
        failed, dropped = 5 * (number % 4 == 3), 400 * (number % 7 == 6)
        make_run(
            path, RATE * seconds, RATE, middle_ms=20 + 7 * number, stream=True, failed=failed * number, dropped=dropped
        )
        processes = ["host", *(f"worker_{worker}" for worker in range(WORKERS))]
        rows = [f"{START + at},{name},{at % 90}" for at in range(seconds) for name in processes]
        (path / "client.csv").write_text("\n".join(["unix_s,process,cpu_percent", *rows]), encoding="utf-8")
        metrics = [_metric(f"metric_{metric}", number, seconds) for metric in range(METRICS)]
        fields = {"schema_version": 1, "metrics": metrics}
        (path / "server_metrics.json").write_text(json.dumps(fields), encoding="utf-8")
        paths.append(path)
    return paths


def _metric(name: str, number: int, seconds: int) -> dict[str, object]:
    series = [[START + at, 1 + number + at % 7] for at in range(seconds)]
    return {"name": name, "stream": "prometheus", "unit": "", "statistics": {"Average": 4.0 + number, "Maximum": 20.0},
            "series_of": "Average", "series": series}  # fmt: skip


def drawn_s(path: Path) -> float:
    """Seconds from the navigation to the second frame after the page was complete, the median of several."""
    with tab() as opened:
        opened.size(1280)
        found: list[float] = []
        for _ in range(OPENED):
            opened.open(path)
            found.append(opened.ask(_READY) / 1000)
    return median(found)


def figures(seconds: float) -> list[Figure]:
    """Weight and time of a page of runs of so many seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = read_runs(run_directories(folder, round(seconds)), {}, Wave.load, lambda _: None)
        text = page(make_figures(runs))
        (folder / "page.html").write_text(text, encoding="utf-8")
        return [
            Figure(f"a page of {RUNS} runs", len(text.encode()) / 1e6, "MB", below(2)),
            Figure("from its opening to drawn", drawn_s(folder / "page.html"), "s", below(2)),
        ]


PROGRAM = Program("a page of twenty runs", figures, seconds=600, quick_seconds=30)

if __name__ == "__main__":
    PROGRAM.main()
