"""The sentence that a page of runs begins with."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.plan.load import ClosedLoop
from inference_benchmarker.wave.wave import Wave
from tests.mentions import mentions
from tests.summaries import plan_with, summary_with
from tests.waves import make_run
from visualization.figures.cards import facts
from visualization.figures.limits import limits_of_runs
from visualization.figures.loads import in_order
from visualization.figures.reading import read_runs
from visualization.figures.runs import Run
from visualization.pages.lead import lead
from visualization.pages.series import make_figures
from visualization.pages.sides import sides, two_sides

if TYPE_CHECKING:
    from collections.abc import Sequence

SAMPLE = Path(__file__).parents[3] / "docs" / "samples" / "benchmark_plots.html"


def run(name: str, rate: float, p99_s: float | None, *slos: str, missed: str = "", **more: Any) -> Run:
    """A run whose p99 of response time and latency are the same. ``server``: where `benchmark URL` sent to."""
    findings = [{"code": "slo_missed", "severity": "missed", "measured": missed, "limit": slos[0]}] if missed else []
    facts = {
        "verdict": more.pop("verdict", "VALID"),
        "findings": findings,
        "latency": {"p99": p99_s},
        "response_time": {"p99": p99_s},
        "rates": more.pop("rates", None),
        "ledger": {"sent": more.pop("sent", 0)},
        "environment": {"file_sha256": more.pop("file", "one")},
    }
    load = {"kind": "open", "rate": f"{rate:g}"}
    settings = {"SERVER": more.pop("server", "http://one"), "PATH": "/infer"}
    plan = {"load": load, "slos": list(slos), "success_threshold": 0.95, "factory_settings": settings}
    return Run(Path(f"/runs/{name}"), name, summary=summary_with(**facts), plan=plan_with(**plan), **more)


def reported(*runs: Run, change: str = "") -> str:
    return lead(runs, limits_of_runs(runs), change)


def overloaded(name: str, rate: float, completed: float, *slos: str, **more: Any) -> Run:
    """One of 1000 requests, with the rate that it completed."""
    return run(name, rate, 0.05, *slos, rates={"scheduled": rate, "completed": completed}, sent=1000, **more)


def cut(*given: Any, **more: Any) -> Run:
    """One that was interrupted."""
    made = run(*given, **more)
    assert made.summary is not None
    return replace(made, summary=replace(made.summary, interrupted=True))


P99 = "p99<200ms"
KEEPS = run("a", 100, 0.05, P99)
MISSES = run("b", 200, 0.3, P99, missed="response time p99 300 ms")
INVALID = run("c", 300, 0.9, P99, verdict="INVALID")
ALL = "All runs are INVALID: their numbers are not the endpoint's."


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        ((KEEPS,), ""),
        ((KEEPS, MISSES), "100/s meets p99<200ms (50 ms); 200/s does not: response time p99 300 ms (limit p99<200ms)."),
        ((run("z", 50, 0.04, P99), KEEPS), "100/s meets p99<200ms (50 ms); no higher load was sent."),
        (
            (KEEPS, INVALID),
            "100/s meets p99<200ms (50 ms); no VALID run had a higher load. "
            "1 of 2 runs (c) is INVALID: its numbers are not the endpoint's.",
        ),
        (
            (KEEPS, cut("f", 300, 0.06, P99)),
            "100/s meets p99<200ms (50 ms); no higher load was sent to its end. 1 of 2 runs (f) was interrupted.",
        ),
        (
            (cut("f", 50, 0.06, P99), KEEPS),
            "100/s meets p99<200ms (50 ms); no higher load was sent. 1 of 2 runs (f) was interrupted.",
        ),
        (
            (KEEPS, cut("b", 200, 0.3, P99, missed="response time p99 300 ms")),
            "100/s meets p99<200ms (50 ms); 200/s does not: response time p99 300 ms (limit p99<200ms). "
            "1 of 2 runs (b) was interrupted.",
        ),
        (
            (cut("f", 50, 0.06, P99), cut("g", 60, 0.06, P99)),
            "No load was sent to its end. 2 of 2 runs (f, g) were interrupted.",
        ),
        (
            (KEEPS, cut("f", 100, 0.06, P99)),
            "Response time p99 goes from 50 ms (a) to 60 ms (f). 2 of 2 VALID runs meet every limit. "
            "1 of 2 runs (f) was interrupted.",
        ),
        (
            (MISSES, run("d", 400, 0.9, P99, missed="response time p99 900 ms")),
            "Even 200/s does not meet p99<200ms: response time p99 300 ms (limit p99<200ms).",
        ),
        ((INVALID, run("d", 400, 0.9, verdict="INVALID (client-limited)")), ALL),
        ((run("a", 100, 0.05), run("b", 200, 0.06)), "200/s meets success>=95%; no higher load was sent."),
        (
            tuple(overloaded(f"r{rate}", rate, min(rate, 200)) for rate in (100, 190, 240, 320)),
            "The endpoint keeps up with 190/s; of 240/s it completes 200/s. 320/s meets success>=95%; no "
            "higher load was sent.",
        ),
        (
            (*(overloaded("a", rate, rate, P99) for rate in (100, 190)), overloaded("c", 300, 200, P99, missed="x")),
            "190/s meets p99<200ms (50 ms); 300/s does not: x (limit p99<200ms).",
        ),
        ((run("a", 100, 0.05), run("b", 100, 0.06)), "Latency p99 goes from 50 ms (a) to 60 ms (b)."),
        (
            (KEEPS, run("b", 100, 0.3, P99, missed="response time p99 300 ms")),
            "Response time p99 goes from 50 ms (a) to 300 ms (b). 1 of 2 VALID runs meet every limit.",
        ),
        ((KEEPS, run("e", 100, None, verdict="UNREADABLE")), "1 of 2 runs (e) cannot be read."),
        ((run("a", 1, 0.05), run("b", 2, 0.06, file="two")), "Latency p99 goes from 50 ms (a) to 60 ms (b)."),
    ],
)  # fmt: skip
def test_it_is_the_answer_and_says_of_which_runs_it_is_not(runs: Sequence[Run], sentence: str) -> None:
    assert reported(*runs) == sentence


def test_a_load_whose_wave_was_aborted_kept_no_limit() -> None:
    aborted = {"code": "aborted", "severity": "missed", "measured": "after 3 s: p99 2 s", "limit": "p99>1s@2s"}
    assert MISSES.summary is not None
    worse = replace(MISSES, summary=replace(MISSES.summary, findings=summary_with(findings=[aborted]).findings))
    assert mentions(reported(worse, INVALID), "200/s", "3 s", "p99", "2 s", "p99>1s@2s")
    assert mentions(reported(KEEPS, worse), "200/s", "3 s", "p99", "2 s", "p99>1s@2s")


def test_where_no_run_is_valid_no_change_is_reported() -> None:
    assert reported(INVALID, INVALID, change="new is as fast as base.") == ALL


def test_two_addresses_make_no_ladder() -> None:
    other = run("b", 200, 0.3, P99, missed="response time p99 300 ms", server="http://two")
    assert mentions(reported(KEEPS, other), "p99", "50 ms", "300 ms", "1", "2", "VALID")
    assert [facts(each)["address"] for each in (KEEPS, other)] == ["http://one/infer", "http://two/infer"]


def test_a_change_stands_in_place_of_it_and_names_the_invalid_side_itself() -> None:
    of_valid = "new is 14% slower at p99, 95%: 9 to 19%."
    assert reported(KEEPS, INVALID, change=of_valid).startswith(f"{of_valid} 1 of 2 runs (c) is INVALID")
    changed = "INVALID (c): these are not the endpoint's numbers."
    assert reported(KEEPS, run("c", 100, 0.9, P99, verdict="INVALID"), change=changed) == changed


@pytest.mark.parametrize(
    ("rates", "order"), [((120, 30, 60), (30, 60, 120)), ((120, 30), (120, 30)), ((120, 30, 30), (120, 30, 30))]
)
def test_runs_of_different_loads_stand_in_the_order_of_these(rates: tuple[int, ...], order: tuple[int, ...]) -> None:
    runs = in_order([run(str(rate), rate, 0.1) for rate in rates])
    assert [each.label for each in runs] == [str(rate) for rate in order]


def test_two_sides_are_two_runs_or_two_folders_of_one_load(tmp_path: Path) -> None:
    def made(folder: str, label: str, rate: float = 100) -> Run:
        return replace(run(label, rate, 0.1), path=tmp_path / folder / label)

    one, other = made("base", "base 1"), made("new", "new 1")
    assert sides([one, other]) == {"base 1": [one], "new 1": [other]}
    more = made("new", "new 2")
    assert sides([one, other, more]) == {"base": [one], "new": [other, more]}
    assert other.summary is not None
    late = replace(made("new", "new 3"), summary=replace(other.summary, verdict="INVALID"))
    assert sides([one, other, late]) == {"base": [one], "new": [other]}, "an INVALID run is no part of the answer"
    assert sides([one, replace(one, label="base 2"), late]) is None, "a side without a VALID run has none"
    assert sides([one, other, made("third", "third 1")]) is None
    assert sides([one, made("new", "new 1", rate=200)]) is None, "another load is no change of the endpoint"
    assert sides([one, replace(other, problems=("damaged",))]) is None
    assert sides([made("new", "x"), made("new", "y"), one]) is None, "they are not called by their folders"


def test_the_change_is_that_of_the_comparison(tmp_path: Path) -> None:
    for name, middle_ms in (("a", 20), ("b", 30)):
        make_run(tmp_path / name, middle_ms=middle_ms)
    runs = read_runs([tmp_path / "a", tmp_path / "b"], {}, Wave.load, lambda _: None)
    found = two_sides(runs, Wave.load)
    assert found is not None
    assert found.change.startswith("b is ")
    assert "slower at p50" in found.change
    assert found.of == (0, 1)
    drawn = make_figures(runs, two=found)
    assert drawn.sides == (0, 1), "a colour for each side"
    (plot,) = drawn.answer
    assert (plot.signed, plot.head[1:3]) == (True, ("a", "b"))
    middle = next(row for row in plot.rows if row.cells[0] == "response_time.p50")
    assert middle.bar is not None
    assert middle.bar.value == pytest.approx(50, rel=0.1)
    assert (middle.bar.low or 0) < 50 < (middle.bar.high or 0)


def test_the_answer_of_the_sample_page_is_that_of_its_runs() -> None:
    (content,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', SAMPLE.read_text(), re.DOTALL)
    page = json.loads(content)
    passed = [run["label"] for run in page["runs"] if run["verdict"].startswith("PASSED")]
    (missed,) = (run["label"] for run in page["runs"] if run["label"] not in passed)
    reported = re.match(
        rf"([\d.]+/s) meets p99<200ms \(([\d.]+) ms\); {missed} does not: response time p99 ([\d.]+) s ", page["lead"]
    )
    assert reported is not None, page["lead"]
    assert reported[1] == max(passed, key=lambda label: float(label.removesuffix("/s")))
    assert float(reported[2]) < 200 < 1000 * float(reported[3])


def test_of_requests_in_flight_it_says_from_where_more_bring_nothing() -> None:
    runs = []
    for users, completed in ((2, 100), (4, 200), (8, 199), (16, 200)):
        made = overloaded(f"u{users}", users, completed)
        assert made.plan is not None
        runs.append(replace(made, plan=replace(made.plan, load=ClosedLoop(users))))
    assert reported(*runs) == (
        "More than 4 in flight brings no more answers than 200/s. 16 in flight meets success>=95%; no "
        "higher load was sent."
    )
