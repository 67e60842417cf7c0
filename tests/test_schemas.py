"""The schemas in docs/reference/schemas are those of the types, and what is stored is as they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.plan.retries import Retries
from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.report.summary_json import summary_of
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.verdict import judge
from server_capacity.planning.measured import Refused
from server_capacity.planning.totals import content
from server_capacity.results.tiers_checks import tier_row
from server_capacity.results.tiers_folder import tiers_result
from tests import schemas
from tests.capacities import searched
from tests.plans import planned
from tests.proofs import proof, ran
from tests.rankings import ranked
from tests.surfaces import surface
from tests.waves import drawn, observe, on_time, staged, wave
from visualization.comparison.comparison import compare
from visualization.comparison.result import AbResult, Sent, result_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.report.summary_types import SummaryResult

TESTS = Path(__file__).parent
RECORDED = [
    *sorted((TESTS / "server_capacity" / "results" / "recorded_answers").rglob("*.json")),
    *sorted(TESTS.glob("culprits/evidence/*/summary.json")),
    *sorted(TESTS.glob("wave/recorded_runs/*/summary.json")),
]


def compared() -> AbResult:
    """Four rounds of A and B."""
    base, new = ([wave(drawn(10 * side + n, seconds=2)) for n in range(4)] for side in (0, 1))
    reported = result_of(compare(base, new))
    sent = [Sent(side, n, f"{side}/{n}", "VALID", counts=True) for n in range(4) for side in "AB"]
    return AbResult(
        schema_version=1,
        what={"A": "old.py", "B": "new.py"},
        repeats=4,
        seed=1,
        limits=["p50=10%"],
        strict=False,
        interrupted=False,
        given_up="",
        aborted="",
        waves=sent,
        exit_code=0,
        comparison=reported,
    )


def summed_up() -> SummaryResult:
    """A wave with stages, limits, and sessions in which users tried again."""
    more = {"goodput": (RequestLimit.parse("latency<100ms"),), "retries": Retries(retries=2)}
    plan = staged("10:2s,20:2s", slos=tuple(map(Slo.parse, ["p50<1s", "turn1.p95<1s"])), **more)
    first = [row._replace(session=row.index, turn=1) for row in on_time(plan)]
    rows = [row for each in first for row in (each, each._replace(turn=2, think_ns=0, due=each.done, ended="failed"))]
    rows[-1] = rows[-1]._replace(outcome="failed", error="E: no")
    rows.append(rows[-1]._replace(attempt=1, outcome="ok", error=None, ended="completed", think_ns=None))
    facts = observe(plan, rows, environment={"sessions": True})
    found = summarise(facts)
    return summary_of(facts, found, judge(facts, found))


REFUSED = Refused("x: why.")
MADE: dict[str, Callable[[], Any]] = {
    "ab": compared,
    "capacity": searched,
    "surface": surface,
    "tiers": lambda: tiers_result([tier_row("gold", "gold", searched())], "2026-11-27T12:00:00Z", "x"),
    "ranking": lambda: ranked(1000, ("m5", 300, 0.32), ("c5", 250, 0.204)),
    "fleet_plan": lambda: content([planned(target_rps=1000)], [REFUSED], created="", utilisation=0.7, spare=1),
    "proof": lambda: proof(ran(0.002)),
    "summary": summed_up,
}


def schema(name: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((schemas.REFERENCE / "schemas" / f"{name}.schema.json").read_text())
    return fields


def test_the_schemas_are_those_of_the_types() -> None:
    made = {path.name: path.read_text() for path in (schemas.REFERENCE / "schemas").iterdir()}
    assert made == schemas.schemas(), "python -m tests.schemas writes them"
    assert (schemas.REFERENCE / "schemas.md").read_text() == schemas.page()


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_commands_stored_is_as_they_say(path: Path) -> None:
    data = json.loads(path.read_text())
    jsonschema.Draft202012Validator(schema(path.stem)).validate(data)
    assert set(data) <= set(schema(path.stem)["properties"])


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_is_as_they_say_and_the_same_when_it_is_read(name: str) -> None:
    made = MADE[name]()
    stored = json.loads(json.dumps(encoded(made), allow_nan=False))
    jsonschema.Draft202012Validator(schema(name)).validate(stored)
    assert decoded(stored, type(made)) == made
    assert list(encoded(decoded(stored, type(made)))) == list(stored)


@pytest.mark.parametrize(
    ("name", "wrong", "where"),
    [
        ("capacity", {"rate": "fast"}, ["rate"]),
        ("capacity", {"interval": {"low": -1.0, "high": 2.0}}, ["interval", "low"]),
        ("ranking", {"rows": [{"rank": 0}]}, ["rows", 0, "rank"]),
        ("proof", {"outcome": "splendid"}, ["outcome"]),
    ],
)
def test_a_wrong_value_is_found_where_it_is(name: str, wrong: dict[str, Any], where: list[str | int]) -> None:
    fields = {**json.loads(json.dumps(encoded(MADE[name]()))), **wrong}
    (error,) = jsonschema.Draft202012Validator(schema(name)).iter_errors(fields)
    assert list(max([error, *(error.context or [])], key=lambda each: len(each.absolute_path)).absolute_path) == where
