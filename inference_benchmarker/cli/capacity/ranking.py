"""`benchmark capacity --vary`: a search of each variant, and the ranking of all.

Whoever makes endpoints sees before what that will cost, and is asked.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.pages import draw_ranking
from inference_benchmarker.cli.core.terminal import has_terminal, print_json, print_report, say
from inference_benchmarker.cli.core.unstored import code_of, stored
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.system.files import replace_file
from inference_benchmarker.words.wording import length_text, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inference_benchmarker.cli.capacity.vary_flags import VariantsRequest
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.experiments.ranking.children import Result
    from server_capacity.experiments.ranking.jobs import Job
    from server_capacity.experiments.ranking.preflight import Before
    from server_capacity.results.types.bounds import Spend
    from server_capacity.results.types.ranking import RankingResult, Recommender

    Tell = Callable[[str], None]

CHILD = "inference_benchmarker.cli.capacity.variant_process"
_SUSPENDING = (
    "--suspend-scaling is for an existing endpoint, and endpoint_factory creates one: leave the flag out, and "
    "let it make the endpoint without scaling."
)
_OF_THIS_PROCESS = (
    "vary",
    "demo",
    "config",
    "price",
    "price_file",
    "recommender",
    "max_cost",
    "parallel",
    "target_rps",
)


def rank(question: Question, jobs: Sequence[Job], asked: VariantsRequest, options: dict[str, Any], tell: Tell) -> int:
    """Search every variant, print the ranking, and give the exit code."""
    from inference_benchmarker.engine.processes.interrupts import counting_interrupts
    from inference_benchmarker.wave.run_dir import make_stamped_folder
    from server_capacity.experiments.ranking.children import run_jobs
    from server_capacity.experiments.ranking.collecting import Collector, quotas_of_target
    from server_capacity.experiments.ranking.jobs import to_child
    from server_capacity.results.ranking_folder import KIND

    recommender, beside = _recommended(options), before(question.longest_s, jobs, asked, tell)
    folder = make_stamped_folder(question.plan.output_dir, KIND)
    several = asked.parallel > 1
    handed = {**options, **dict.fromkeys(_OF_THIS_PROCESS), "json": True, "quiet": options["quiet"] or several}
    silent = bool(options["quiet"])
    order = partial(to_child, cores=asked.cores, silent=silent, compared=len(jobs) > 1)
    orders = [order(job, handed, str(folder), label=job.label if several else "") for job in jobs]
    created = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    collector = Collector(folder, jobs, asked.aim, asked.prices)
    results: dict[tuple[int, int], Result] = {}
    with counting_interrupts() as interrupts:

        def so_far(*, interrupted: bool) -> RankingResult:
            found = collector.ranking(results, interrupted=interrupted, created=created)
            return replace(found, recommender=recommender, quotas=beside.quotas, spend=beside.spend)

        for result in run_jobs(CHILD, orders, asked.parallel, interrupts):
            is_renewed = (result.job, result.place) in results
            results[result.job, result.place] = result
            found = so_far(interrupted=True)  # what it is if this command is killed now
            _, unsaved = stored(partial(_save, folder, found), found)
            if unsaved:
                tell(str(unsaved))
            if not (is_renewed or interrupts.count):
                found = so_far(interrupted=False)
                tell(f"{len(results)} of {len(found.rows)} variants: {found.headline}")
        found = so_far(interrupted=interrupts.count > 0)
        found = replace(found, quotas=[*beside.quotas, *quotas_of_target(found)])
        found, unsaved = stored(partial(_save, folder, found), found)
    _print(found, str(folder), as_json=options["json"])
    if not unsaved and (page := draw_ranking(found, folder, tell)):
        tell(f"Page: {page}")
    return code_of(found.exit_code, unsaved)


def _save(folder: Path, found: RankingResult) -> RankingResult:
    """Write a ranking, and give it with its digest. BenchmarkError where it cannot be written."""
    from server_capacity.results.ranking_folder import KIND, save
    from server_capacity.results.stored import writable
    from server_capacity.results.text.ranking_csv import to_csv

    found = save(folder, found)
    with writable(folder):
        replace_file(folder / f"{KIND}.csv", to_csv(found))
    return found


def before(load_s: float, jobs: Sequence[Job], asked: VariantsRequest, tell: Tell) -> Before:
    """Tell what making the endpoints will cost, and ask; BenchmarkError where it is not to be, or cannot.

    ``load_s``: the seconds of load of each variant.
    """
    from server_capacity.experiments.ranking.preflight import (
        Before,
        check_spend,
        count_problems,
        needed_by,
        planned_spend,
        quotas_for,
    )
    from server_capacity.results.text.spend import spend_text

    made = [job for job in jobs if job.arguments is not None]
    if not made:
        return Before([], None)
    suspending = [_SUSPENDING] if asked.suspends else []
    refuse([*suspending, *dict.fromkeys(text for job in made for text in count_problems(job.known))])
    if asked.demo:
        each = length_text(load_s * max(len(job.variants) for job in made))
        endpoints = pluralize(len(made), "endpoint", "endpoints")
        tell(f"The embedded endpoint creates {endpoints} (about {each} of load each); this costs nothing.")
        return Before([], None)
    needed = [needed_by(job.known) for job in made]
    spend = planned_spend(needed, load_s * max(len(job.variants) for job in made), asked.prices)
    check_spend(spend, asked.max_cost)
    quotas = quotas_for(needed, asked.parallel)
    refuse([each.text for each in quotas if each.text])
    sentence = f"endpoint_factory would create {spend_text(spend, asked.parallel)}."
    for line in ([sentence] if asked.sure else []) + asked.prices.remarks:
        tell(line)
    if not asked.sure and not _agreed(sentence, spend):
        raise BenchmarkError("Nothing was created.")
    return Before(quotas, spend)


def _agreed(sentence: str, spend: Spend) -> bool:
    """Ask whoever sits at the terminal; where nobody does, BenchmarkError."""
    if not has_terminal():
        raise BenchmarkError(f"{sentence} There is no terminal to ask on.", _how_to_agree(spend))
    say(sentence)
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _how_to_agree(spend: Spend) -> str:
    """The flags that agree beforehand, and bound what can be bounded."""
    from server_capacity.results.text.spend import UNTYPED

    if spend.unpriced == [UNTYPED]:
        return "Give --yes if it costs nothing, for example because it starts a process on this machine."
    priced = "" if spend.cost is not None else "--price TYPE=USD and "
    return f"Give --yes, with {priced}--max-cost USD to limit the cost."


def _recommended(options: dict[str, Any]) -> Recommender | None:
    if options["recommender"] is None:
        return None
    from server_capacity.planning.costs.recommender import recommendations

    return recommendations(options["recommender"])


def _print(found: RankingResult, folder: str, *, as_json: bool | None) -> None:
    from server_capacity.results.text.ranking import to_text

    if as_json:
        print_json(found)
    else:
        print_report(to_text(found, folder))
