"""`benchmark capacity --vary`: a search of each variant, and the ranking of all.

Whoever makes endpoints is told before what that will cost, and is asked.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.pages import draw_ranking
from inference_benchmarker.cli.terminal import has_terminal, print_report, say
from inference_benchmarker.errors import BenchmarkError, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.cli.vary_flags import Asked
    from server_capacity.capacity.question import Question
    from server_capacity.variants.children import Result
    from server_capacity.variants.jobs import Job

    Tell = Callable[[str], None]

CHILD = "inference_benchmarker.cli.measuring"
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


def rank(question: Question, jobs: Sequence[Job], asked: Asked, options: dict[str, Any], tell: Tell) -> int:
    """Search every variant, print the ranking, and give the exit code."""
    from inference_benchmarker.engine.processes import counting_interrupts
    from inference_benchmarker.wave.run_dir import make_stamped_folder
    from server_capacity.variants.children import run_jobs
    from server_capacity.variants.collecting import Collector, quotas_of_target
    from server_capacity.variants.folder import KIND, save
    from server_capacity.variants.jobs import to_child

    beside = {"recommender": _recommended(options), **before(question.longest_s, jobs, asked, tell)}
    folder = make_stamped_folder(question.plan.output_dir, KIND)
    several = asked.parallel > 1
    handed = {**options, **dict.fromkeys(_OF_THIS_PROCESS), "json": True, "quiet": options["quiet"] or several}
    silent = bool(options["quiet"])
    told = [
        to_child(job, handed, str(folder), cores=asked.cores, label=job.label if several else "", silent=silent)
        for job in jobs
    ]
    created = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    collector = Collector(folder, jobs, asked.aim, asked.prices)
    results: dict[tuple[int, int], Result] = {}
    with counting_interrupts() as interrupts:

        def so_far() -> dict[str, Any]:
            return collector.ranking(results, interrupted=interrupts.count > 0, created=created, **beside)

        for result in run_jobs(CHILD, told, asked.parallel, interrupts):
            results[result.job, result.place] = result
            data = so_far()
            save(folder, data)
            _tell_of(data, len(results), tell)
        data = so_far()
        data["quotas"] = [*data["quotas"], *quotas_of_target(data)]
        save(folder, data)
    _print(data, str(folder), as_json=options["json"])
    draw_ranking(folder, tell)
    return int(data["exit_code"])


def before(load_s: float, jobs: Sequence[Job], asked: Asked, tell: Tell) -> dict[str, Any]:
    """Tell what making the endpoints will cost, and ask; BenchmarkError where it is not to be, or cannot.

    ``load_s``: the seconds of load of each variant.
    """
    made = [job for job in jobs if job.arguments is not None]
    if not made:
        return {"quotas": [], "spend": None}
    from server_capacity.costs.spend import spend_text
    from server_capacity.variants.before import check_spend, needed_by, planned_spend, quotas_for

    needed = [needed_by(job.known) for job in made]
    spend = planned_spend(needed, load_s * max(len(job.variants) for job in made), asked.prices)
    check_spend(spend, asked.max_cost)
    quotas = quotas_for(needed, asked.parallel)
    refuse([each["text"] for each in quotas if each["text"]])
    sentence = f"endpoint_factory is to make {spend_text(spend, asked.parallel)}."
    for line in ([sentence] if asked.sure else []) + asked.prices.remarks:
        tell(line)
    if not asked.sure and not _agreed(sentence):
        raise BenchmarkError("Nothing was made.")
    return {"quotas": quotas, "spend": spend}


def _agreed(sentence: str) -> bool:
    """Ask whoever sits at the terminal; where nobody does, BenchmarkError."""
    if not has_terminal():
        raise BenchmarkError(f"{sentence} Nobody can be asked here.", "Say --yes, and --max-cost USD to bound it.")
    say(sentence)
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _recommended(options: dict[str, Any]) -> dict[str, Any] | None:
    if options["recommender"] is None:
        return None
    from server_capacity.costs.recommender import recommendations

    return recommendations(options["recommender"])


def _tell_of(data: dict[str, Any], done: int, tell: Tell) -> None:
    if not data["interrupted"]:
        tell(f"{done} of {len(data['rows'])} variants: {data['headline']}")


def _print(data: dict[str, Any], folder: str, *, as_json: bool | None) -> None:
    from server_capacity.variants.text import to_text

    if as_json:
        print(json.dumps(data, indent=2), flush=True)
    else:
        print_report(to_text(data, folder))
