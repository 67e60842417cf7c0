"""`benchmark capacity --verify`: the plan that is proven, and how its proof is run."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.capacity.ranking import before
from inference_benchmarker.cli.capacity.searching import (
    check_one,
    cleaned,
    refuse_scaling,
    removed_if_empty,
    served,
    standing,
)
from inference_benchmarker.cli.core.address_flags import too_many
from inference_benchmarker.cli.core.embedded import DEMO_URL
from inference_benchmarker.cli.core.terminal import print_json, print_report
from inference_benchmarker.cli.core.unstored import code_of, stored
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.packaged import demo_factories

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.cli.capacity.vary_flags import VariantsRequest
    from inference_benchmarker.cli.wave.exporting import Export
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.experiments.proof.planned import Planned
    from server_capacity.results.types.proof import ProofResult

    Tell = Callable[[str], None]


def refuse_several(arguments: Sequence[str]) -> None:
    """BenchmarkError where --verify has several plans, as a pattern of the shell gives them."""
    if "--verify" not in arguments:
        return
    rest = arguments[arguments.index("--verify") + 1 :]
    given = list(takewhile(lambda each: not each.startswith("-") and not each.endswith(".py"), rest))
    if len(given) > 1:
        newest = max(given, key=lambda each: Path(each).name)
        raise BenchmarkError(f"--verify takes one plan, and {len(given)} were given: the newest is {newest}.")


def planned_by(options: dict[str, Any], addresses: list[str]) -> Planned | None:
    """The plan that --verify names, whose requests and limits are taken where none are given; None without the flag.

    ``addresses`` loses the one that is taken for the address of the plan's requests.
    """
    if options["verify"] is None:
        return None
    if several := too_many(addresses):
        raise BenchmarkError(*several)
    from inference_benchmarker.cli.capacity.requests_of_plan import NOT_HELD, take_limits, take_requests
    from server_capacity.experiments.proof.planned import read_planned

    planned = read_planned(Path(options["verify"]))
    is_inherited = options["factories_file"] is None and options["locust_file"] is None
    is_there = take_requests(planned, options, addresses)
    take_limits(planned, options)
    _refuse_demo_alone(options)
    if is_inherited and planned.requests is None:
        planned = replace(planned, warnings=(*planned.warnings, NOT_HELD))
    return replace(planned, is_there=is_there)


def as_elsewhere(options: dict[str, Any], addresses: list[str], tell: Tell) -> dict[str, Any]:
    """The options of a proof that runs elsewhere: they name the file of the plan's search, which goes there.

    What else was given with that file is named, too, since the plan is of another path. A URL says all by itself.
    ``tell``: hears what the plan's search leaves open, which may not be known there.
    """
    found = dict(options)
    planned = planned_by(found, [*addresses])
    if planned is None:
        return options
    from inference_benchmarker.cli.capacity.requests_of_plan import is_of_url

    for clause in planned.warnings:
        tell(f"{planned.file}: {clause}.")
    given = dict(options)
    if not is_of_url(Path(found["factories_file"] or "")):
        is_moved = addresses or options["url"]
        given |= {name: found[name] for name in ("factories_file", "locust_file")} if is_moved else found
    return {**given, "verify": str(planned.file)}


def _refuse_demo_alone(options: dict[str, Any]) -> None:
    """BenchmarkError where the factories file needs the embedded endpoint, and there is none."""
    of_demo = [str(demo_factories(makes_endpoint=makes)) for makes in (False, True)]
    there = options["demo"] or options["endpoint_name"] or DEMO_URL in os.environ
    if options["factories_file"] in of_demo and not there:
        raise BenchmarkError(
            f"--verify {options['verify']}: its search used the embedded endpoint, which is not running.",
            "Add --demo, or give --factories-file FILE.",
        )


def verify(
    question: Question, planned: Planned, asked: VariantsRequest, options: dict[str, Any], tell: Tell, *, export: Export
) -> int:
    """Prove the plan, print the answer, and give the exit code."""
    from inference_benchmarker.cli.capacity.requests_of_plan import differing, require_headers
    from server_capacity.experiments.proof.length import length_of
    from server_capacity.experiments.proof.result import concluded
    from server_capacity.experiments.proof.run import make_folder, prove

    require_headers(planned, question.plan)
    planned = replace(planned, differences=differing(planned, question.plan))
    job = planned.job(question.plan.factories_file)
    question = replace(question, plan=replace(question.plan, payload_arguments=job.payloads[0]))
    length = length_of(planned, question.limits, question.settings.time_s)
    asked.prices.fall_back_on(planned.price)
    beside = before(length.seconds + length.warmup_s, [job], asked, tell)
    if job.arguments is None:
        refuse_scaling(question, options)
    folder = make_folder(question, planned)
    with removed_if_empty(folder), served(question, job.arguments, job.known, folder, tell) as there:
        if job.arguments is None:
            check_one(there.plan)
        with standing(there, options, folder, tell, export) as (known, waves, suspension):
            found = prove(_called(known), planned, waves, beside)
        found = replace(found, suspended=None if suspension is None else suspension.to_result())
    end = cleaned(folder)
    found = replace(found, clean_up=end.state, hidden=[*(found.hidden or []), *end.troubles] or None)
    return _reported(folder, concluded(found), as_json=options["json"])


def _reported(folder: Path, found: ProofResult, *, as_json: bool | None) -> int:
    """Store the answer, print it, and give the exit code."""
    from server_capacity.experiments.proof.folder import save
    from server_capacity.experiments.proof.text import to_text

    found, unsaved = stored(lambda: save(folder, found), found)
    if as_json:
        print_json(found)
    else:
        print_report(to_text(found, str(folder)))
    return code_of(found.exit_code, unsaved)


def _called(question: Question) -> Question:
    """The question about an endpoint that is called by its address where it has no name."""
    if question.endpoint is None or question.endpoint.name:
        return question
    return replace(question, endpoint=replace(question.endpoint, name=question.plan.endpoint))
