"""The plan that the flags of a wave describe."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import read_flags
from inference_benchmarker.cli.core.hosts_flags import placed, take_hosts
from inference_benchmarker.cli.wave.wave_flags import PARTS_OF_A_PLAN, WAVE_FLAGS
from inference_benchmarker.errors import refuse
from inference_benchmarker.plan.endpoint_problems import session_problem
from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of
from inference_benchmarker.plan.replay import Replay
from inference_benchmarker.plan.retries import Retries
from inference_benchmarker.plan.server_limit import ServerLimit
from inference_benchmarker.plan.slo import Slo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.cli.core.flags import Flag, Reading
    from inference_benchmarker.plan.hosts import Hosts

_LISTS = ("goodput", "stages")
NO_CONFIG = "--slo {}: give an --endpoint-config that names the source of the server's metrics."
_OF_A_REPLAY = ("speed", "window", "replay_column")
_NOT_INTERACTIVE = ("stages", "replay", "concurrency", "quiet")


def make_plan(options: dict[str, Any], problems: list[str], *, endpoint_needed: bool = True) -> WavePlan:
    """The plan that the flags describe, or one error with everything that is wrong with them."""
    lists = {name: [text for given in options[name] or () for text in given.split(",")] for name in _LISTS}
    several = {name: texts or None for name, texts in lists.items()}
    given = read_flags(_flags_of_a_plan(), {**options, **several}, problems)
    plan = WavePlan(
        _load(options, given, problems),
        Bounds(**given.of(Bounds)),
        abort=not options["no_abort"],
        **parts_of_plan(given, take_hosts(options, given, problems)),
    )
    plan = placed(plan, None if options["workers"] is None else plan.workers, problems)
    if plan.server_limits and options["endpoint_config"] is None:
        problems.append(NO_CONFIG.format(plan.server_limits[0].expression))
    problems += given.problem_texts(problems_of(plan, endpoint_needed=endpoint_needed))
    problems += [*_session_problems(plan, options), *_recorded_problems(plan)]
    if problems or plan.factory_settings:
        from inference_benchmarker.engine.endpoint.source import source_problems

        problems += source_problems(plan.factories_file, plan.locust_file, plan.factory_settings)
    refuse(problems)
    return plan


def _session_problems(plan: WavePlan, options: dict[str, Any]) -> list[str]:
    """The problems of a plan with a file that has sessions, or has none, as far as its text shows that."""
    from inference_benchmarker.engine.endpoint.source import has_sessions

    sessions = plan.factories_file is not None and has_sessions(plan.factories_file)
    found = session_problem(plan, has_sessions=sessions)
    lines = [" ".join(filter(None, found))] if found else []
    if sessions and (options.get("aiperf") or options.get("aiperf_only")):
        lines.append("--aiperf sends single requests, and the arrivals of this file are sessions: leave it out.")
    if plan.model_mix is not None and (options.get("aiperf") or options.get("aiperf_only")):
        lines.append("--model-mix: aiperf asks one model; leave one of them out.")
    return lines


def _recorded_problems(plan: WavePlan) -> Iterator[str]:
    """The problem of conversations of one file and instants of another."""
    replay = plan.load.replay if isinstance(plan.load, OpenLoop) else None
    if plan.conversations is not None and replay is not None and plan.conversations.file != replay.file:
        yield f"Give --replay {plan.conversations.file} to send its conversations when they began, or a rate."


def parts_of_plan(given: Reading, hosts: Hosts) -> dict[str, Any]:
    """The fields of a plan that flags give, but for its load and bounds."""
    limits = given.values["slos"] or ()
    slos = tuple(limit for limit in limits if isinstance(limit, Slo))
    of_server = tuple(limit for limit in limits if isinstance(limit, ServerLimit))
    retries = Retries(**given.of(Retries))
    settings = dict(given.values["factory_settings"] or ())
    parts = {"slos": slos, "server_limits": of_server, "retries": retries, "factory_settings": settings}
    return {**given.of(WavePlan), **parts, "hosts": hosts}


def _flags_of_a_plan() -> list[Flag]:
    names = {each.name for kind in PARTS_OF_A_PLAN for each in fields(kind)}
    return [flag for flags in WAVE_FLAGS.values() for flag in flags if flag.field in names]


def _load(options: dict[str, Any], given: Reading, problems: list[str]) -> OpenLoop | ClosedLoop:
    """The load model; where there is no good one, something in its place, whose own problems are not reported."""
    if options["stages"] is not None or options["replay"] is not None:
        given.unread.add("duration_s")  # they say how long the wave lasts
    if options["interactive"]:
        given.unread.add("duration_s")  # it lasts until it is ended
        both = [f"--{name.replace('_', '-')}" for name in _NOT_INTERACTIVE if options[name]]
        problems += [f"Give either --interactive or {flag}, not both." for flag in both]
    if options["replay"] is not None:
        return _replay(options, given, problems)
    stray = [name for name in _OF_A_REPLAY if options[name] is not None]
    problems += [f"--{name.replace('_', '-')} is for --replay." for name in stray]
    if options["concurrency"] is not None:
        others = {"--client-rps": "client_rps", "--stages": "stages", "--arrivals": "arrivals"}
        both = [flag for flag, name in others.items() if options[name] is not None]
        problems += [f"Give either --concurrency or {flag}, not both." for flag in both]
        return ClosedLoop(**{"concurrency": 1, **given.of(ClosedLoop)})
    if options["stages"] is not None:
        others = {"--client-rps": "client_rps", "--obs-time": "obs_time"}
        problems += [f"Give either --stages or {flag}, not both." for flag, name in others.items() if options[name]]
        read = {**given.of(OpenLoop), "rate": Decimal(0)}
        return OpenLoop(**read) if read.get("stages") else OpenLoop(Decimal(1))
    if options["client_rps"] is None:
        open_loop = "--client-rps R, --stages TEXT or --replay FILE (open loop)"
        problems.append(f"No load: give {open_loop}, or --concurrency C (closed loop).")
        given.unread.add("rate")
    return OpenLoop(**{"rate": Decimal(1), **given.of(OpenLoop)})


def _replay(options: dict[str, Any], given: Reading, problems: list[str]) -> OpenLoop:
    """The load of a recording; whatever else says how much to send, or when, is a problem."""
    others = ("client_rps", "stages", "concurrency", "arrivals", "obs_time")
    flags = [f"--{name.replace('_', '-')}" for name in others if options[name] is not None]
    problems += [f"Give either --replay or {flag}, not both." for flag in flags]
    if "file" in given.unread:
        return OpenLoop(Decimal(1))
    return OpenLoop(replay=Replay(**given.of(Replay)))
