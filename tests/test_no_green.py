"""No artefact of a command that does not end with 0 looks as if all was well: kind x end x form, as one table.

The first line of a red end is never that of the green one with the same numbers, and begins with none of its words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.plan.server_limit import ServerLimit
from inference_benchmarker.plan.slo import MaxRegression, Slo
from inference_benchmarker.report.headline import headline as headline_of_wave
from inference_benchmarker.report.junit import to_junit
from inference_benchmarker.report.markdown import in_a_fence, to_markdown
from inference_benchmarker.words.units import NS
from server_capacity.experiments.proof.result import concluded
from server_capacity.experiments.proof.text import to_text as text_of_proof
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import Aim, row_of
from server_capacity.results.text.capacity import to_text as text_of_search
from server_capacity.results.text.headline import headline as headline_of_search
from server_capacity.results.text.ranking import to_text as text_of_ranking
from server_capacity.results.text.surface import doubled_text
from server_capacity.results.text.surface import to_text as text_of_surface
from server_capacity.results.text.tiers import to_text as text_of_tiers
from server_capacity.results.tiers_checks import tier_row
from server_capacity.results.tiers_folder import tiers_result
from server_capacity.results.types.price import per_million
from server_capacity.results.types.result_status import UNSAVED, settled
from tests.capacities import searched
from tests.proofs import PLANNED, proof, ran
from tests.rankings import row
from tests.surfaces import row as searched_at
from tests.surfaces import surface
from tests.waves import chat, drawn, wave
from visualization.comparison.comparison import compare
from visualization.comparison.report import to_junit as junit_of_comparison
from visualization.comparison.report import to_markdown as markdown_of_comparison
from visualization.comparison.report import to_text as text_of_comparison
from visualization.comparison.result import result_of
from visualization.figures.capacity import Capacity, capacity_card
from visualization.pages.pareto import pareto_figures
from visualization.pages.ranking import ranking_figures
from visualization.pages.surface import surface_figures
from visualization.pareto.points import Configuration
from visualization.pareto.result import pareto_of
from visualization.pareto.text import to_text as text_of_pareto
from visualization.run_page import run_page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from inference_benchmarker.wave.wave import Wave

GREEN = ("Passed:", "PASSED:", "VALID:", "OK", "✓")


@dataclass(frozen=True, slots=True)
class Artefacts:
    """What is made of one end: its exit code, the first lines by form, and its JUnit where there is one."""

    exit_code: int
    lines: dict[str, str]
    junit: str | None = None


def of_search(**more: Any) -> Artefacts:
    found = settled(searched(**more))
    card = capacity_card(Capacity(Path("c"), "c", replace(found, headline=headline_of_search(found))))
    text = text_of_search(found)
    lines = {"text": text.splitlines()[0], "last": text.splitlines()[-1], "json": headline_of_search(found)}
    lines["markdown"] = in_a_fence(text).splitlines()[1]
    lines["card"] = f"{'✗' if card.doubtful else '!' if card.missed else ''} {card.verdict}"
    return Artefacts(found.exit_code, lines)


def of_ranking(**more: Any) -> Artefacts:
    found = settled(searched(**more))
    found = replace(found, headline=headline_of_search(found))
    rows = [row_of({"instance_type": "big"}, "big_capacity", found, None, Aim()), row("small", 20.0)]
    ranked = ranking(rows, Aim())
    text = text_of_ranking(ranked).splitlines()
    page = ranking_figures(ranked, Path("nowhere"), lambda _: found)
    return Artefacts(
        ranked.exit_code,
        {"text": text[0], "last": text[-1], "json": ranked.headline, "page": page.lead},
    )


def of_tiers(**more: Any) -> Artefacts:
    rows = [tier_row(name, name, settled(searched(**each))) for name, each in (("gold", {}), ("silver", more))]
    found = tiers_result(rows, "", None)
    text = text_of_tiers(found).splitlines()
    return Artefacts(found.exit_code, {"text": text[0], "last": text[-1], "json": found.headline})


def of_surface(**more: Any) -> Artefacts:
    held_out = surface().searches[2]
    rows = [searched_at(100, 80, **more), held_out]
    found = surface(searches=rows, exit_code=rows[0].exit_code)
    text = text_of_surface(found).splitlines()
    figures = surface_figures(found, doubled_text)
    lines = {"text": text[0], "last": text[-1], "json": found.headline, "page": figures.lead}
    return Artefacts(found.exit_code, lines)


def of_proof(plan_code: int = 0, **more: Any) -> Artefacts:
    found = concluded(replace(proof(ran(0.002), replace(PLANNED, exit_code=plan_code)), **more))
    text = text_of_proof(found).splitlines()
    return Artefacts(found.exit_code, {"text": text[0], "last": text[-1], "json": found.headline})


BASE = wave(drawn(1, seconds=20))
USE = ServerLimit.parse("server.use<70%")


def of_comparison(
    limit: str = "p50=50%", *, strict: bool = False, ended: Mapping[str, Any] = MappingProxyType({}), **more: Any
) -> Artefacts:
    new = replace(wave(drawn(2, seconds=20), **more), **ended)
    found = compare(BASE, new, [MaxRegression.parse(limit)], strict=strict)
    lines = {"text": text_of_comparison(found).splitlines()[0], "json": result_of(found).headline}
    lines["markdown"] = markdown_of_comparison(found).splitlines()[2].strip("*")
    return Artefacts(found.exit_code, lines, junit_of_comparison(found))


CHAT = chat()


def of_pareto(made: Wave) -> Artefacts:
    found = pareto_of([Configuration("A", (CHAT, made))], per_million)
    lines = {"text": text_of_pareto(found).splitlines()[0], "json": found.result.headline}
    lines["page"] = pareto_figures(found).lead
    return Artefacts(found.result.exit_code, lines)


def of_wave(made: Wave) -> Artefacts:
    summary, verdict = made.summary, made.verdict
    text = made.text()
    lines = {"text": text.splitlines()[0], "headline": headline_of_wave(summary, verdict)}
    lines["markdown"] = to_markdown(made, summary, verdict).splitlines()[0].removeprefix("### ")
    title = run_page(made).partition("<title>")[2].partition("</title>")[0]
    lines["title"] = f"{title.partition(': ')[2]}:"
    return Artefacts(verdict.exit_code, lines, to_junit(made, summary, verdict, "a run", text))


def waiting_for(limit: str) -> Wave:
    return wave(drawn(1, seconds=20), server_limits=(ServerLimit.parse(limit),))


def waves(verdict: str) -> list[dict[str, Any]]:
    return [{"rate": 168.2, "seconds": 60.0, "verdict": verdict, "limits": []}]


SEARCHES: dict[str, tuple[dict[str, Any], int]] = {
    "not confirmed": ({"confirmation": []}, 1),
    "a confirming wave failed": ({"confirmation": waves("fails")}, 1),
    "inconclusive confirmation": ({"confirmation": waves("cannot_tell")}, 1),
    "ended early": ({"failures": ["The search ended early: a worker was lost."]}, 3),
    "not stored": ({"failures": [f"The disk is full. {UNSAVED}"], "exit_code": 3}, 3),
    "left behind": ({"clean_up": "failed"}, 3),
    "the client": (
        {"outcome": "client_limited", "rate": None, "interval": None, "at_least": {"rate": 50.0}, "exit_code": 3},
        3,
    ),
    "interrupted": ({"outcome": "interrupted", "exit_code": 130}, 130),
}
SUCCESS: dict[str, Any] = {"outcomes": ["failed" if index % 4 == 0 else "ok" for index in range(2000)]}
ABORTED = Aborted("success<50%@3s", 0.4, 30, 3)
FRONTIERS: list[tuple[str, Callable[[Wave], Wave], int]] = [
    ("a run was interrupted", lambda made: replace(made, interrupted=True), 130),
    (
        "a run was aborted",
        lambda made: replace(made, aborted=ABORTED, window=replace(made.window, stopped_at_ns=20 * NS)),
        1,
    ),
    ("a run lost a worker", lambda made: replace(made, lost_workers=(0,)), 3),
    ("a run missed a limit", lambda made: replace(made, plan=replace(made.plan, slos=(Slo.parse("p99<1ms"),))), 1),
    ("a limit waits", lambda made: replace(made, plan=replace(made.plan, server_limits=(USE,))), 1),
]
_OF_SEARCHES: tuple[tuple[str, Callable[..., Artefacts]], ...] = (
    ("search", of_search),
    ("tiers", of_tiers),
    ("surface", of_surface),
    ("ranking", of_ranking),
)
ENDS: list[tuple[str, str, Callable[[], Artefacts], Callable[[], Artefacts], int]] = [
    *(
        (kind, end, make, lambda make=make, more=more: make(**more), code)
        for kind, make in _OF_SEARCHES
        for end, (more, code) in SEARCHES.items()
    ),
    *(("proof", f"its plan has {code}", of_proof, lambda code=code: of_proof(code), code) for code in (1, 3, 130)),
    ("proof", "left behind", of_proof, lambda: of_proof(clean_up="failed"), 3),
    ("comparison", "a limit is violated", of_comparison, lambda: of_comparison("success=1%", **SUCCESS), 1),
    ("comparison", "nothing to judge", of_comparison, lambda: of_comparison("ttft.p50=10%"), 1),
    ("comparison", "a run was aborted", of_comparison, lambda: of_comparison(ended={"aborted": ABORTED}), 1),
    ("comparison", "a run was interrupted", of_comparison, lambda: of_comparison(ended={"interrupted": True}), 130),
    ("comparison", "undecided", of_comparison, lambda: of_comparison("p50=1%", strict=True), 1),
    *(
        ("frontier", end, lambda: of_pareto(CHAT), lambda change=change: of_pareto(change(CHAT)), code)
        for end, change, code in FRONTIERS
    ),
    (
        "wave",
        "aborted",
        lambda: of_wave(BASE),
        lambda: of_wave(replace(BASE, aborted=ABORTED, window=replace(BASE.window, stopped_at_ns=20 * NS))),
        1,
    ),
    ("wave", "failures", lambda: of_wave(BASE), lambda: of_wave(wave(drawn(1, seconds=20), **SUCCESS)), 1),
    ("wave", "interrupted", lambda: of_wave(BASE), lambda: of_wave(replace(BASE, interrupted=True)), 130),
    ("wave", "a limit waits for the server", lambda: of_wave(BASE), lambda: of_wave(waiting_for("server.use<70%")), 1),
    ("wave", "a lost worker", lambda: of_wave(BASE), lambda: of_wave(replace(BASE, lost_workers=(0,))), 3),
]


@pytest.mark.parametrize(
    ("green", "red", "code"), [end[2:] for end in ENDS], ids=[f"{kind}, {end}" for kind, end, *_ in ENDS]
)
def test_what_did_not_end_well_looks_so_in_every_form(
    green: Callable[[], Artefacts], red: Callable[[], Artefacts], code: int
) -> None:
    good, bad = green(), red()
    assert (good.exit_code, bad.exit_code) == (0, code)
    for form, line in bad.lines.items():
        assert line != good.lines[form], form
        assert not line.startswith(GREEN), (form, line)
    if bad.junit is not None:
        assert good.junit is not None
        assert all(f'{key}="0"' in good.junit for key in ("failures", "errors"))
        assert not all(f'{key}="0"' in bad.junit for key in ("failures", "errors"))
