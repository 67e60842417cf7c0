"""A page's numbers are those of summary.json: metrics of the user's own, labels and kinds of errors."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import Wave
from inference_benchmarker.wave import writer
from inference_benchmarker.wave.plan_file import save_plan
from inference_benchmarker.wave.run_dir import RunDir
from tests.waves import MS, observe, on_time, open_plan
from visualization.figures.figures import STATISTICS
from visualization.figures.reading import read_runs
from visualization.pages.html import page
from visualization.pages.series import make_figures

if TYPE_CHECKING:
    from pathlib import Path

LABELS, ERRORS = ("hot", "other <b>"), ("HttpError 503", "Timeout")


def made(path: Path, slow: int) -> dict[str, Any]:
    """The summary.json of a stored wave of 400 requests, some of which failed, more where they are slow."""
    path.mkdir()
    plan = open_plan("20", "20")
    rows = []
    for each in on_time(plan):
        reported = {"score": math.sin(each.index) * slow, "hit": float(each.index % 3 == 0)}
        latency = (10 + each.index % 17 * slow) * MS
        row = each._replace(label=LABELS[each.index % 5 == 0], done=each.sent + latency, metrics=reported)
        if each.index % 8 < slow:
            row = row._replace(outcome="failed", error=ERRORS[each.index % 3 == 0], metrics=None)
        rows.append(row)
    facts = observe(plan, rows)
    save_plan(RunDir(path), plan, {})
    writer.save(Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__}), RunDir(path))
    found: dict[str, Any] = json.loads(RunDir(path).summary.read_text())
    return found


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """The summaries of two runs, and the charts of their page by section and title."""
    folder = tmp_path_factory.mktemp("runs")
    summaries = [made(folder / name, slow) for name, slow in (("a", 1), ("b", 4))]
    html = page(make_figures(read_runs([folder / "a", folder / "b"], {}, Wave.load, lambda _: None)))
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    sections = json.loads(data)["sections"]
    return summaries, {each["key"]: {chart["title"]: chart for chart in each["charts"]} for each in sections}


def values(chart: dict[str, Any], statistic: str) -> list[float | None]:
    return [bar["value"] for bar in chart["statistics"][statistic]]


def test_metrics_of_the_user_s_own(reported: tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]) -> None:
    summaries, charts = reported
    assert [each["metrics"]["score"]["count"] for each in summaries] == [350, 200]
    shown = {choice: key for choice, key in STATISTICS.items() if choice != "p99.9"}
    assert [*charts["metrics"]["metric.score"]["statistics"]] == [*shown], "350 values have no p99.9"
    for choice, key in shown.items():
        expected = [each["metrics"]["score"][key] for each in summaries]
        assert values(charts["metrics"]["metric.score"], choice) == pytest.approx(expected, rel=1e-5)


def test_labels(reported: tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]) -> None:
    summaries, charts = reported
    assert list(charts["labels"]) == list(LABELS)
    for label in LABELS:
        rows = [next(row for row in each["labels"] if row["label"] == label) for each in summaries]
        for choice in ("mean", "median", "p99", "max"):
            expected = [1e3 * row["latency"][STATISTICS[choice]] for row in rows]
            assert values(charts["labels"][label], choice) == pytest.approx(expected, rel=1e-5)


def test_kinds_of_errors(reported: tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]) -> None:
    summaries, charts = reported
    for error in ERRORS:
        counts = [next(row["count"] for row in each["errors"] if row["key"] == error) for each in summaries]
        assert values(charts["errors"][error], "") == counts
        assert min(counts) > 0
    assert [sum(row["count"] for row in each["errors"]) for each in summaries] == [50, 200]
