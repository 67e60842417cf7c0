"""`benchmark capacity --verify`: the plan that is proven, and how its proof is run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.ranking import before
from inference_benchmarker.cli.searching import check_one, refuse_scaling, removed_if_empty, served, standing
from inference_benchmarker.cli.terminal import print_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.cli.vary_flags import Asked
    from server_capacity.capacity.question import Question
    from server_capacity.proof.planned import Planned

    Tell = Callable[[str], None]


def planned_by(options: dict[str, Any]) -> Planned | None:
    """The plan that --verify names, whose file and limits are taken where none are given; None without the flag."""
    if options["verify"] is None:
        return None
    from server_capacity.proof.planned import read_planned

    planned = read_planned(Path(options["verify"]))
    if options["factories_file"] is None and options["locust_file"] is None and planned.factories_file is not None:
        options["factories_file"] = str(planned.factories_file)
    if options["slo"] is None:
        options["slo"] = list(planned.limits)
    return planned


def verify(question: Question, planned: Planned, asked: Asked, options: dict[str, Any], tell: Tell) -> int:
    """Prove the plan, print the answer, and give the exit code."""
    from server_capacity.proof.folder import save
    from server_capacity.proof.length import length_of
    from server_capacity.proof.run import make_folder, prove
    from server_capacity.proof.text import to_text

    job = planned.job(question.plan.factories_file, question.plan.endpoint_name)
    question = replace(question, plan=replace(question.plan, payload_arguments=job.payloads[0]))
    length = length_of(planned, question.limits, question.settings.time_s)
    beside = before(length.seconds + length.warmup_s, [job], asked, tell)
    if job.arguments is None:
        refuse_scaling(question, options)
    folder = make_folder(question, planned)
    with removed_if_empty(folder), served(question, job.arguments, job.known, folder, tell) as there:
        if job.arguments is None:
            check_one(there.plan)
        with standing(there, options, folder, tell) as (known, waves, suspended):
            data = prove(known, planned, waves, **beside)
        if suspended is not None:
            data["suspended"] = suspended
            save(folder, data)
    if options["json"]:
        print(json.dumps(data, indent=2), flush=True)
    else:
        print_report(to_text(data, str(folder)))
    return int(data["exit_code"])
