"""`benchmark capacity --tier`: the capacities of several tiers in one command."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.capacity.capacity_flags import make_question
from inference_benchmarker.cli.capacity.searching import (
    cleaned,
    refuse_scaling,
    removed_if_empty,
    served,
    standing,
)
from inference_benchmarker.cli.core.next_commands import after_tiers
from inference_benchmarker.cli.core.pages import draw_capacity, draw_tiers
from inference_benchmarker.cli.core.terminal import print_json, print_report
from inference_benchmarker.cli.core.unstored import code_of, stored
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.exit_codes import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from inference_benchmarker.cli.capacity.tier_flags import TierLimits
    from inference_benchmarker.cli.wave.exporting import Export
    from server_capacity.experiments.capacity.tiers import Tier
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.experiments.ranking.jobs import Job
    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.tiers import TiersResult

    Tell = Callable[[str], None]
    Found = dict[str, tuple[Path, CapacityResult]]

_NOT_SEARCHED = "Not searched: the command was interrupted before"


def questions_of(tiers: Sequence[TierLimits], options: dict[str, Any], problems: list[str]) -> dict[str, Question]:
    """The search of each tier by its name, or one error with everything that is wrong with any of them."""
    found: dict[str, Question] = {}
    wrong: list[str] = []
    for tier in tiers:
        name, own = tier.name if options["name"] is None else f"{options['name']}, {tier.name}", list(problems)
        try:
            found[tier.name] = make_question({**options, "slo": list(tier.limits), "name": name}, own)
        except BenchmarkError:
            if not own:
                raise
            wrong += own
    refuse(list(dict.fromkeys(wrong)))
    return found


def search_tiers(asked: Mapping[str, Question], job: Job, options: dict[str, Any], tell: Tell, export: Export) -> int:
    """Search for every tier, print what was found, and give the exit code: that of the gravest."""
    from server_capacity.experiments.capacity.run import make_folder
    from server_capacity.experiments.capacity.tiers import Tier, find_tiers
    from server_capacity.results.tiers_folder import KIND

    tiers = [Tier(*each) for each in asked.items()]
    first = _with_all_server_limits(tiers)
    if job.arguments is None:
        refuse_scaling(first, options)
    folder, created = make_folder(first, KIND), f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    found: Found = {}

    def so_far() -> tuple[TiersResult, BenchmarkError | None]:
        return _saved(folder, tiers, found, created, options["name"])

    with (
        removed_if_empty(folder),
        served(first, job.arguments, job.known, folder, tell) as made,
        standing(made, options, folder, tell, export) as (stood, waves, suspension),
    ):
        there = [replace(tier, question=_at_endpoint(tier.question, stood)) for tier in tiers]
        for tier, place, answer in find_tiers(there, waves):
            found[tier.name] = place, answer
            so_far()  # what it is if this command is killed now
            if len(found) < len(tiers):
                tell(f"{tier.name}: {answer.headline}")
    _settle(found, folder, None if suspension is None else suspension.to_result())
    result, unsaved = so_far()
    _print(result, folder, as_json=options["json"])
    if not unsaved:
        _draw(result, found, folder, tell)
    return code_of(result.exit_code, unsaved)


def _with_all_server_limits(tiers: Sequence[Tier]) -> Question:
    """The question of the first tier with the server's limits of all, whose metrics are asked for."""
    first = tiers[0].question
    limits = dict.fromkeys(limit for tier in tiers for limit in tier.question.plan.server_limits)
    return replace(first, plan=replace(first.plan, server_limits=tuple(limits)))


def _at_endpoint(question: Question, stood: Question) -> Question:
    """The question about the endpoint that there is, or that was made for all tiers."""
    plan = replace(question.plan, endpoint_name=stood.plan.endpoint_name)
    return replace(question, plan=plan, endpoint=stood.endpoint, lost=stood.lost)


def _settle(found: Found, folder: Path, suspended: Any) -> None:
    """Each answer with what became of what was made or changed for all of them."""
    from server_capacity.results.capacity_folder import save
    from server_capacity.results.types.result_status import settled

    clean_up = cleaned(folder)
    for name, (place, answer) in found.items() if suspended or clean_up.state else ():
        whole = clean_up.added_to(replace(answer, suspended=suspended or answer.suspended))
        found[name] = place, save(place, settled(whole))


def _saved(
    folder: Path, tiers: Sequence[Tier], found: Found, created: str, name: str | None
) -> tuple[TiersResult, BenchmarkError | None]:
    """Write the answers so far; what is measured is shown all the same where that fails."""
    from server_capacity.results.tiers_checks import tier_row
    from server_capacity.results.tiers_folder import save, tiers_result
    from server_capacity.results.types.result_status import FAILED
    from server_capacity.results.types.tiers import TierRow

    rows = [
        tier_row(tier.name, found[tier.name][0].name, found[tier.name][1])
        if tier.name in found
        else TierRow(
            tier=tier.name,
            limits=[limit.expression for limit in tier.question.limits],
            outcome=FAILED,
            headline=_NOT_SEARCHED,
            exit_code=INTERRUPTED,
        )
        for tier in tiers
    ]
    result = tiers_result(rows, created, name, tiers[0].question.kind)
    return stored(lambda: save(folder, result), result)


def _print(result: TiersResult, folder: Path, *, as_json: bool | None) -> None:
    from server_capacity.results.text.tiers import to_text

    if as_json:
        print_json(result)
    else:
        print_report(to_text(result, str(folder)))


def _draw(result: TiersResult, found: Found, folder: Path, tell: Tell) -> None:
    """Draw the page of each tier and that of all."""
    for place, answer in found.values():
        draw_capacity(answer, place, tell)
    if page := draw_tiers(result, dict(found.values()), folder, tell):
        tell(f"Page: {page}")
    if sys.stdout.isatty() and (proposed := after_tiers(result, folder)):
        tell(f"Next: {proposed}")
