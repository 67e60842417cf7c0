"""The flags of `benchmark plan`, and the questions that they describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.capacity.vary_flags import PRICE_FLAGS, UTILISATION_ABOUT
from inference_benchmarker.cli.core.flags import (
    Flag,
    Table,
    parse_int,
    parse_number,
    parse_path,
    parse_share,
    read_flags,
    table_for,
)
from inference_benchmarker.cli.wave.wave_flags import REPLAY_FLAGS, WAVE_FLAGS
from inference_benchmarker.embedded.llm.rules import BASE, PROFILES
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.replay import Replay
from inference_benchmarker.words.redact import hidden
from server_capacity.planning.mix import read_mix
from server_capacity.planning.request import LEAST_OUTSTANDING, PREFIX_AWARE, RANDOM, PlanRequest, parse_growth

if TYPE_CHECKING:
    from collections.abc import Sequence

_OF_A_WAVE = {flag.name: flag for flags in WAVE_FLAGS.values() for flag in flags}
_OF_A_REPLAY = ("window", "replay_column")


def _counts(flag: str, text: str) -> tuple[int, ...]:
    return tuple(parse_int(flag, part) for part in text.split(","))


PLAN_FLAGS: Table = table_for(
    PlanRequest,
    WavePlan,
    table={
        "load": [
            Flag(
                "--target-rps",
                "R",
                "requests per second to plan for (default: the peak of --stages or --replay)",
                parse_number,
            ),
            _OF_A_WAVE["stages"]._replace(
                about="the load over a day or a spike: 50:30s, 50..400:2m, spike=2000:10s. It gives the minimum and "
                "the maximum number of instances"
            ),
            _OF_A_WAVE["replay"]._replace(
                about="the same from a recording: CSV, JSON lines, parquet, access logs, LLM traces"
            ),
            *REPLAY_FLAGS,
            Flag(
                "--growth",
                "SHARE",
                "how fast the load may grow, such as 20%/min: the plan keeps headroom until new instances are in "
                "service",
                parse_growth,
                sets="growth_per_min",
            ),
            Flag(
                "--compare-policies",
                None,
                "simulate every scaling policy under the stages, the recording or the growth (default: only the "
                "planned one and a fixed number of instances)",
            ),
            Flag("--mix", "FILE", "several endpoints, each with its own target rate, as JSON or TOML", parse_path),
        ],
        "users": [
            Flag(
                "--users",
                "N",
                "plan for this many users who have conversations, from a search with --in users or --in sessions",
                parse_int,
            ),
            Flag("--conversations-per-day", "N", "conversations that each user begins in a day", parse_number),
            Flag(
                "--peak-factor",
                "F",
                "1 to 24: conversations that begin in the busiest hour, divided by those of an average hour",
                parse_number,
            ),
            Flag(
                "--kv-tokens",
                "N",
                f"tokens of an instance's KV cache, to simulate --routing {RANDOM} and {PREFIX_AWARE} (default: "
                f"{PROFILES[BASE].kv_tokens:,})",
                parse_int,
            ),
        ],
        "headroom": [
            Flag(
                "--utilisation",
                "P%",
                UTILISATION_ABOUT,
                parse_share,
            ),
            Flag("--spare", "N", "number of instances that may fail while the limit is still met", parse_int),
            Flag(
                "--minimum",
                "N",
                "minimum number of instances (default: what the lowest load needs, and at least 2 if the peak needs 2)",
                parse_int,
            ),
            Flag("--maximum", "N", "maximum number of instances (default: from the peak)", parse_int),
            Flag(
                "--seconds-to-create",
                "S",
                "time until a new instance is in service (default: as measured by a search that created endpoints)",
                parse_number,
            ),
        ],
        "endpoint": [
            Flag(
                "--instances",
                "N[,N]",
                "number of instances in each search, if the search did not record it",
                _counts,
            ),
            Flag("--instance-type", "TYPE", "type of these instances, if the search did not record it"),
            Flag(
                "--routing",
                "KIND",
                f"how requests are routed to instances, {RANDOM} or {LEAST_OUTSTANDING} (default: as measured). With "
                f"--users: {RANDOM} (default) or {PREFIX_AWARE}, which keeps a conversation on one instance",
            ),
            Flag("--tier", "NAME", "the tier to plan for, if the folder is that of `benchmark capacity --tier`"),
            Flag("--endpoint-name", "NAME", "endpoint name to write into the scaling policies"),
        ],
        "cost": PRICE_FLAGS,
        "output": [
            Flag("--output-dir", "DIR", "where to create the plan's folder", parse_path),
            Flag("--json", None, "print the plan as JSON"),
        ],
    },
)


def make_questions(options: dict[str, Any], capacities: Sequence[str]) -> tuple[list[PlanRequest], Path]:
    """The question about each endpoint, and where the folder goes; one error with everything that is wrong."""
    problems: list[str] = []
    flags = [flag for flags in PLAN_FLAGS.values() for flag in flags if flag not in PRICE_FLAGS]
    texts = [part for given in options["stages"] or () for part in given.split(",")]
    given = read_flags(flags, {**options, "stages": texts or None}, problems)
    mix: Path | None = given.values["mix"]
    values = given.of(PlanRequest)
    values["replay"] = None if given.values["file"] is None else Replay(**given.of(Replay))
    asked = PlanRequest(tuple(Path(each) for each in capacities), **values)
    if asked.replay is None:
        stray = [name for name in _OF_A_REPLAY if options[name] is not None]
        problems += [f"--{name.replace('_', '-')} is for --replay." for name in stray]
    else:
        problems += asked.replay.problems()
    if asked.stages:
        problems += [problem.text for problem in OpenLoop(stages=asked.stages).problems()]
    questions = _questions(asked, mix, problems)
    if options["compare_policies"] and not any(map(_varies, questions)):
        problems.append("--compare-policies needs a load that changes: give --stages, --replay or --growth.")
    if mix is None:
        problems += given.problem_texts(asked.problems())
    refuse(problems)
    return questions, given.values["output_dir"]


def _varies(asked: PlanRequest) -> bool:
    return bool(asked.stages or asked.replay or asked.growth_per_min)


def _questions(asked: PlanRequest, mix: Path | None, problems: list[str]) -> list[PlanRequest]:
    if mix is None:
        return [asked]
    if asked.users is not None:
        problems.append("--users is for one search, and --mix for several: give the folder of one.")
    if asked.capacities:
        problems.append(f"Give either folders or --mix, not both: {asked.capacities[0]} can be an entry of {mix}.")
    try:
        return read_mix(mix, asked)
    except BenchmarkError as error:
        problems += hidden(str(error)).splitlines()
        return []
