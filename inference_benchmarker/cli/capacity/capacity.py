"""``benchmark capacity``: the highest rate that keeps the limits."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.capacity.capacity_flags import (
    CAPACITY_FLAGS,
    WARM,
    fill_in_demo,
    make_question,
    sends_payloads,
    without_others,
)
from inference_benchmarker.cli.capacity.llm_demo import engine_of_demo, llm_problems
from inference_benchmarker.cli.capacity.over_flags import limit_problems, over_of, take_lengths
from inference_benchmarker.cli.capacity.ranking import before, rank
from inference_benchmarker.cli.capacity.searching import (
    cleaned,
    refuse_scaling,
    removed_if_empty,
    search,
    served,
    tidied,
)
from inference_benchmarker.cli.capacity.surface import Asked, search_surface
from inference_benchmarker.cli.capacity.tier_flags import tiers_of
from inference_benchmarker.cli.capacity.tiers import questions_of, search_tiers
from inference_benchmarker.cli.capacity.vary_flags import asked_of
from inference_benchmarker.cli.capacity.verifying import planned_by, refuse_several, verify
from inference_benchmarker.cli.core.address_flags import take_endpoint, without_addresses
from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.config_file import with_config
from inference_benchmarker.cli.core.demo import say_simulated
from inference_benchmarker.cli.core.embedded import embedded_endpoint
from inference_benchmarker.cli.core.next_commands import after_a_search
from inference_benchmarker.cli.core.pages import draw_capacity
from inference_benchmarker.cli.core.terminal import how_far, passing, print_json, print_report, say, say_nothing
from inference_benchmarker.cli.wave.export_flags import exports_of
from inference_benchmarker.cli.wave.exporting import exporting
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.system.memory import give_back_large_blocks
from inference_benchmarker.words.redact import HEADERS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inference_benchmarker.cli.capacity.vary_flags import VariantsRequest
    from inference_benchmarker.cli.wave.export_flags import Exports
    from inference_benchmarker.cli.wave.exporting import Export
    from inference_benchmarker.engine.endpoint.address_options import Described
    from inference_benchmarker.plan.plan import WavePlan
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.experiments.ranking.jobs import Job
    from server_capacity.models.surface.lengths import Over
    from server_capacity.results.types.capacity import CapacityResult

_DESCRIPTION = """\
Finds the highest rate at which an endpoint meets every limit, with a 95% confidence interval, and confirms
the interval's lower end with one more wave.

  benchmark capacity --demo                 try it: two minutes
  benchmark capacity --demo --llm           find how many users an LLM serves
  benchmark capacity --verify PLAN          test a plan at its target rate
  benchmark capacity URL --slo 'p99<200ms'
  benchmark capacity --factories-file FILE --target-rps 1000 \\
      --vary instance_type=ml.m5.xlarge,ml.c5.xlarge
"""
_EPILOG = """\
exit codes: 0 found (also if every limit is met at --max-rps); 1 no rate meets the limits, or inconclusive;
2 bad input; 3 limited by the client; 130 interrupted (what was found is reported)
"""


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    refuse_several(arguments)
    given = search_options(capacity_parser(), arguments)
    with engine_of_demo(*given):
        return _run(*given)


def _run(options: dict[str, Any], addresses: list[str], problems: list[str]) -> int:
    planned = planned_by(options, addresses)
    over = over_of(options, problems)
    questions, asked, exports, described = _understood(options, addresses, problems, over)
    question = next(iter(questions.values()))
    give_back_large_blocks()
    tell = say_nothing if options["quiet"] else say
    if described is not None and over is None:
        tell(f"{described.words}.")
    passing(f"Starting{' the embedded endpoint' if options['demo'] else ''}…", quiet=options["quiet"])
    with (
        exporting(exports, quiet=options["quiet"]) as export,
        embedded_endpoint(publish_interval_s=1) if options["demo"] else nullcontext(),
        how_far(quiet=options["quiet"]),
    ):
        say_simulated(options)
        if planned is not None:
            return verify(question, planned, asked, options, tell, export=export)
        from server_capacity.experiments.ranking.jobs import jobs_of

        jobs = jobs_of(question.plan, asked.endpoints, make=asked.ranked or not options["demo"])
        if asked.ranked:
            return rank(question, jobs, asked, options, tell)
        searches = len(over.fitted + over.held_out) if over else 1
        before(searches * sum(each.longest_s for each in questions.values()), jobs, asked, tell)
        if over is not None:
            return search_surface(Asked(over, question), jobs[0], options, tell, export)
        if options["tier"] is not None:
            return search_tiers(questions, jobs[0], options, tell, export)
        folder, found = _searched(question, jobs[0], options, tell, export)
        _print(found, str(folder), options)
        if page := draw_capacity(found, folder, tell):  # nobody waits for pictures to read the answer
            tell(f"Page: {page}")
        from server_capacity.results.capacity_folder import exit_code_of

        code = exit_code_of(found)
        if sys.stdout.isatty() and (proposed := after_a_search(found, folder, code)):
            tell(f"Next: {proposed}")
        return code


def search_options(parser: Parser, arguments: list[str]) -> tuple[dict[str, Any], list[str], list[str]]:
    """Flags as text, from the command line and the configuration file; the addresses beside them, and what is wrong."""
    arguments, problems = without_others(arguments)
    arguments, addresses = without_addresses(arguments, parser.flags)
    options, unknown = parser.parsed(arguments)
    options, wrong = with_config(options, parser.flags)
    return options, addresses, [*problems, *unknown, *wrong, *llm_problems(options, addresses)]


def search_of(arguments: list[str]) -> WavePlan:
    """The plan of the waves of a search or a proof, as a command line describes it; BenchmarkError where it does not.

    Also where an endpoint would be made for it. The headers of its address are in the environment then.
    """
    from server_capacity.experiments.ranking.jobs import jobs_of

    os.environ.pop(HEADERS, None)
    options, addresses, problems = search_options(capacity_parser(), arguments)
    planned = planned_by(options, addresses)
    if options["over"] is not None:
        problems.append("--over is not for pods: send from this machine, or from --hosts.")
    if options["tier"] is not None:
        problems.append("--tier is not for pods: search each tier with --slo, or send from this machine or --hosts.")
    questions, asked, *_ = _understood(options, addresses, problems)
    plan = next(iter(questions.values())).plan
    jobs = jobs_of(plan, asked.endpoints, make=True) if planned is None else [planned.job(plan.factories_file)]
    if any(job.arguments is not None for job in jobs):
        raise BenchmarkError(
            "endpoint_factory would make an endpoint, which stays if the pod that made it is lost.",
            "Make it before, and give --endpoint-name NAME.",
        )
    return plan


def _understood(
    options: dict[str, Any], addresses: list[str], problems: list[str], over: Over | None = None
) -> tuple[dict[str, Question], VariantsRequest, Exports, Described | None]:
    """The search of each tier, or the only one; the endpoints to make, where figures go, the requests to an address.

    One error with everything that is wrong.
    """
    if options["demo"]:
        fill_in_demo(options)
    if over is not None:
        take_lengths(over, options, addresses, problems)
    cache = options["cache"]
    if cache == WARM and sends_payloads(options, addresses):
        options["cache"] = None  # the search sends them, and no constant of the file
    described = take_endpoint(options, problems, addresses, os.environ)
    options["cache"] = cache
    asked = asked_of(options, problems)
    exports = exports_of(options, problems)
    if exports.asked and options["vary"]:
        problems.append("--export is for one search, and --vary runs several, each in a process of its own.")
    tiers = tiers_of(options, problems)
    questions = questions_of(tiers, options, problems) if tiers else {"": make_question(options, problems)}
    if over is not None:
        refuse([*limit_problems(questions[""])])
    return questions, asked, exports, described


def _searched(
    question: Question, job: Job, options: dict[str, Any], tell: Callable[[str], None], export: Export
) -> tuple[Path, CapacityResult]:
    """The folder of a search and what stands in its ``capacity.json``; its endpoint is there, or made for it."""
    from server_capacity.experiments.capacity.run import make_folder

    if job.arguments is None:
        refuse_scaling(question, options)
    folder = make_folder(question)
    with removed_if_empty(folder), served(question, job.arguments, job.known, folder, tell) as asked:
        found = search(asked, options, folder, tell, export)
    return folder, tidied(folder, found, cleaned(folder))


def _print(found: CapacityResult, folder: str, options: dict[str, Any]) -> None:
    if options["json"]:
        print_json(found)
    else:
        from server_capacity.results.text.capacity import to_text

        print_report(to_text(found, folder, verbose=bool(options["verbose"])))


def capacity_parser() -> Parser:
    """Its flags, and its help."""
    return command_parser(
        "benchmark capacity",
        CAPACITY_FLAGS,
        usage="benchmark capacity [--demo | URL | --factories-file FILE] [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
