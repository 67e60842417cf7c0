"""The flags of `benchmark capacity`, and the question that they describe."""

from __future__ import annotations

from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.capacity.over_flags import OVER_FLAG
from inference_benchmarker.cli.capacity.tier_flags import TIER_FLAG
from inference_benchmarker.cli.capacity.users_flags import (
    REQUESTS,
    RPS,
    SESSIONS,
    USER_FLAGS,
    USERS,
    session_problems,
    stray_flags,
    users_asked,
)
from inference_benchmarker.cli.capacity.vary_flags import VARY_FLAGS
from inference_benchmarker.cli.core.chat_flags import MODEL_MIX
from inference_benchmarker.cli.core.expect_flags import EXPECT, refused_canaries
from inference_benchmarker.cli.core.flags import Flag, Reading, Table, parse_number, parse_share, read_flags, table_for
from inference_benchmarker.cli.core.hosts_flags import HOSTS_FLAGS, OF_HOSTS, placed, take_hosts
from inference_benchmarker.cli.core.url_flags import MAX_ANSWER_SIZE, URL_FLAGS
from inference_benchmarker.cli.wave.wave_flags import CONVERSATIONS, SLO_ON_RATE, URL_WITHOUT_AIPERF, WAVE_FLAGS
from inference_benchmarker.cli.wave.wave_plan import NO_CONFIG, parts_of_plan
from inference_benchmarker.engine.endpoint.source import has_sessions, source_problems
from inference_benchmarker.errors import BenchmarkError, Problem, refuse
from inference_benchmarker.plan.conversation import AS_IS, FRESH
from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of
from inference_benchmarker.plan.stage import LEAST_RATE, MAX_RATE
from inference_benchmarker.system.host import usable_cores
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.units import MAX_SECONDS
from server_capacity.experiments.measurements.question import Question, SessionShape
from server_capacity.search.limits import limits_of, user_limits_of
from server_capacity.search.settings import USUAL_TIME_S, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AUTO = "auto"
OF_ENDPOINTS = "create and compare endpoints"
WARM = "warm"
LEAST_TIME_S = 5.0
NOT_HERE = {
    "--client-rps": "the search chooses the rate: limit it with --start-rps and --max-rps",
    "--stages": "the search chooses the rates itself: leave it out",
    "--concurrency": "the search chooses the number of users: use --in users",
    "--obs-time": "give --time (how long the search may send)",
    "--num-requests": "give --time (how long the search may send) or --precision (how narrow the interval must be)",
    "--warmup": "each stretch discards what the previous one left behind: leave it out",
    "--replay": "a recording has its own rates, but a search chooses the rates: leave it out",
    "--replay-column": "only for --replay, which has its own rates: leave it out",
    "--speed": "only for --replay, which has its own rates: leave it out",
    "--window": "only for --replay, which has its own rates: leave it out",
    "--interactive": "the search changes the rate itself: leave it out",
    "--records": "the answer is computed from the record of each request: leave it out",
    "--abort-on": "the search itself ends waves that cannot help: leave it out",
    "--no-abort": "the search itself ends waves that cannot help: leave it out",
    "--calibrate": "a stretch in which this client is the limit is discarded, so nothing needs to be measured before",
    "--ui": "Locust's page shows one wave, but a search has several: leave it out",
    "--aiperf": "run aiperf at the rate that was found, in a wave of its own",
    "--aiperf-only": "run aiperf at the rate that was found, in a wave of its own",
    "--aiperf-args": "run aiperf at the rate that was found, in a wave of its own",
    "--aiperf-pause": "run aiperf at the rate that was found, in a wave of its own",
    "--api-key": "it is for aiperf, which is run at the rate that was found, in a wave of its own",
}
"""Flags of a wave that say what the search decides, and what to do instead."""

_SWITCHES = ("--interactive", "--no-abort", "--calibrate", "--ui", "--aiperf", "--aiperf-only")
_DEMO = {"slo": ["p99<100ms"], "time": "60"}


def _workers(flag: str, text: str) -> int | str:
    if text.strip() == AUTO:
        return AUTO
    if not (text.isascii() and text.strip().isdecimal()):
        raise BenchmarkError(f"{flag} must be a whole number or auto, not {quoted(text)}.")
    return int(text)


def _choice(*allowed: str) -> Any:
    def parse(flag: str, text: str) -> str:
        if text not in allowed:
            raise BenchmarkError(f"{flag} must be {', '.join(allowed[:-1])} or {allowed[-1]}, not {quoted(text)}.")
        return text

    return parse


def _cache(flag: str, text: str) -> str:
    parsed: str = _choice(AS_IS, WARM, FRESH)(flag, text)
    return parsed


_OF_A_WAVE = {flag.name: flag for flags in WAVE_FLAGS.values() for flag in flags}


def _of_a_wave(*names: str) -> list[Flag]:
    return [_OF_A_WAVE[name] for name in names]


CAPACITY_FLAGS: Table = table_for(
    WavePlan,
    Settings,
    table={
        "endpoint": [
            *_of_a_wave("factories_file", "endpoint_name", "set", "locust_file"),
            _OF_A_WAVE["url"]._replace(about=URL_WITHOUT_AIPERF),
            Flag(
                "--demo",
                None,
                "start the embedded endpoint, a small server that comes with the tool (4 requests at a time, 20 ms "
                "each), and use its factories file and its --slo unless you give others",
            ),
            Flag(
                "--llm",
                None,
                "with --demo: have conversations with an embedded LLM engine, and search for the number of users",
            ),
        ],
        "endpoint by URL, without a file": [*URL_FLAGS, _OF_A_WAVE["conversations"]._replace(about=CONVERSATIONS)],
        "limits": [
            *(each._replace(about=each.about.replace(SLO_ON_RATE, "")) for each in _of_a_wave("slo")),
            TIER_FLAG,
            *_of_a_wave("success_threshold", "goodput"),
        ],
        "search": [
            Flag(
                "--in",
                "WHAT",
                "what to maximize. rps or requests (default): requests per second; sessions: sessions (conversations) "
                "that start per second; users: slots of a closed loop or, with sessions, open sessions",
                _choice(RPS, REQUESTS, SESSIONS, USERS),
            ),
            *USER_FLAGS,
            OVER_FLAG,
            Flag(
                "--arrivals",
                "KIND",
                "{default} (default): random, as from independent users; constant: evenly spaced, which gives "
                "optimistic results",
            ),
            Flag(
                "--time",
                "S",
                "seconds of load to send, excluding the confirmation and steps spoilt by this client or a change of "
                f"the server (default {USUAL_TIME_S:g}; with --demo 60, with --demo --llm 75)",
                parse_number,
                sets="time_s",
            ),
            Flag(
                "--precision",
                "P%",
                "search until the interval's width is at most this share of the estimate. If you also give --time, the "
                "search ends at whichever comes first; otherwise no time limit applies",
                parse_share,
            ),
            Flag("--max-rps", "R", "the highest rate to try", parse_number),
            Flag("--start-rps", "R", "the first rate to try (default: a low one)", parse_number),
            Flag(
                "--soak",
                "S",
                "send the rate at the interval's lower end for S seconds, to find leaks and exhausted burst credits",
                parse_number,
                sets="soak_s",
            ),
            Flag(
                "--cache",
                "KIND",
                "as-is (default); warm: send each payload once before the search (with sessions: each shared prefix "
                "once before each wave); fresh: put a new word before the conversations of each wave, so that no "
                "earlier wave has cached them",
                _cache,
            ),
        ],
        "load": [
            *_of_a_wave("seed", "drain_timeout", "request_timeout", "client_timeout", "client_retries", "backoff"),
            *(MAX_ANSWER_SIZE, EXPECT, MODEL_MIX),
            *_of_a_wave("load_timeout", "max_in_flight"),
        ],
        OF_HOSTS: HOSTS_FLAGS,
        "server metrics": [
            *_of_a_wave("endpoint_config", "metrics_wait"),
            Flag(
                "--suspend-scaling",
                None,
                "suspend autoscaling of the production variants and inference components that --endpoint-config names, "
                "and always restore it (default: refuse an endpoint that scales)",
            ),
        ],
        OF_ENDPOINTS: VARY_FLAGS,
        "monitoring": _of_a_wave("export", "export_wait"),
        "processes and output": [
            Flag(
                "--workers",
                "W",
                "worker processes. auto (default) starts with one, and adds more (up to one per core) as long as the"
                " client is the bottleneck; with --hosts, all workers start at once",
                _workers,
                sets="workers_asked",
            ),
            *_of_a_wave("sample_client_hw", "port"),
            _OF_A_WAVE["output_dir"]._replace(about="where to create the search's folder"),
            *_of_a_wave("name", "json", "quiet", "debug", "config"),
            Flag("--verbose", None, "also print the queueing model that is fitted to the search"),
        ],
    },
)


def without_others(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments without flags of a wave that the search decides, and a problem for each of those."""
    kept, problems = [], []
    rest = iter(arguments)
    for argument in rest:
        flag, equals, _ = argument.partition("=")
        if flag not in NOT_HERE:
            kept.append(argument)
            continue
        problems.append(f"{flag} is not for a search: {NOT_HERE[flag]}.")
        if not equals and flag not in _SWITCHES:
            next(rest, None)
    return kept, problems


def fill_in_demo(options: dict[str, Any]) -> None:
    """Values of the demo for what is not given."""
    from inference_benchmarker.system.packaged import demo_factories, demo_metrics

    if options["factories_file"] is None and options["locust_file"] is None:
        options["factories_file"] = str(demo_factories(makes_endpoint=bool(options["vary"] or options["verify"])))
    if options["endpoint_config"] is None:
        options["endpoint_config"] = str(demo_metrics())
    for name, value in _DEMO.items():
        others = options["tier"] if name == "slo" else options["precision"] or options["verify"]
        if options[name] is None and not others:
            options[name] = value


def make_question(options: dict[str, Any], problems: list[str]) -> Question:
    """The question that the flags describe, or one error with everything that is wrong with them."""
    texts = [text for given in options["goodput"] or () for text in given.split(",")]
    flags = chain.from_iterable(flags for title, flags in CAPACITY_FLAGS.items() if title != OF_ENDPOINTS)
    given = read_flags(flags, {**options, "goodput": texts or None}, problems)
    asked = AUTO if given.values["workers_asked"] is None else given.values["workers_asked"]
    settings = Settings(**given.of(Settings))
    load: OpenLoop | ClosedLoop = OpenLoop(Decimal(1), settings.arrivals, steered=True)
    problems += stray_flags(options)
    sends_sessions = _sends_sessions(given.values)
    problems += session_problems(options, sends_sessions=sends_sessions)
    if given.values["cache"] == FRESH and not sends_sessions:
        problems.append(
            f"--cache fresh puts a new word before each conversation, and this search sends single requests: {AS_IS} "
            "is what fresh was before."
        )
    in_users = given.values["in"] == USERS
    if in_users:
        load, settings = users_asked(given, settings)
    parts = {**parts_of_plan(given, take_hosts(options, given, problems)), "workers": 1 if asked == AUTO else asked}
    plan = WavePlan(load, Bounds(), abort=False, **parts)  # the search ends its waves itself
    plan = placed(plan, None if asked == AUTO else plan.workers, problems)
    problems += given.problem_texts([*problems_of(plan), *_problems(given, settings)])
    if plan.server_limits and in_users:
        problems.append(
            f"--slo {plan.server_limits[0].expression}: a search in users cannot use a limit on the server."
        )
    if plan.server_limits and options["endpoint_config"] is None:
        problems.append(NO_CONFIG.format(plan.server_limits[0].expression))
    if options["suspend_scaling"] and options["endpoint_config"] is None:
        problems.append("--suspend-scaling needs --endpoint-config FILE: its blocks name the variant.")
    bare = "latency" if in_users else "response_time"
    limits = _limits(plan, problems, bare, of_sessions=sends_sessions)
    if problems or plan.factory_settings:
        problems += source_problems(plan.factories_file, plan.locust_file, plan.factory_settings)
    if not sends_sessions and plan.conversations is not None:
        problems.append("--conversations needs the URL of a chat API, or a file with a session_factory.")
    problems += refused_canaries(plan.expect, "for a search")
    refuse(problems)
    most = max(usable_cores(), 1) if asked == AUTO and not plan.hosts else plan.workers
    return Question(
        plan,
        limits,
        settings,
        most,
        given.values["soak_s"],
        warm=given.values["cache"] == WARM and not sends_sessions,
        cache=given.values["cache"] or "as-is",
        in_users=in_users,
        think=given.values["think"],
        sessions=SessionShape() if sends_sessions else None,
    )


def sends_payloads(options: dict[str, Any], addresses: Sequence[str]) -> bool:
    """Tells whether single payloads are sent, as far as flags and the file's own text show."""
    if options["turns"] is not None or options["conversations"] is not None:
        return False
    file = options["factories_file"]
    return bool(addresses) or file is None or not has_sessions(Path(file))


def _sends_sessions(values: dict[str, Any]) -> bool:
    """Tells whether the arrivals of the file, or of what stands for an address, are sessions."""
    file = values["factories_file"]
    return file is not None and has_sessions(file)


def _limits(plan: WavePlan, problems: list[str], bare: str, *, of_sessions: bool) -> Any:
    try:
        user_limits_of(plan.slos)
        return limits_of(plan.slos, plan.success_threshold, bare, of_sessions=of_sessions)
    except BenchmarkError as error:
        problems.append(str(error))
        return ()


def _problems(given: Reading, settings: Settings) -> Iterator[Problem]:
    """The problems of the search's own flags."""
    ranges = (
        ("time_s", "--time", settings.time_s, LEAST_TIME_S, MAX_SECONDS, "seconds"),
        ("soak_s", "--soak", given.values["soak_s"], LEAST_TIME_S, MAX_SECONDS, "seconds"),
        ("max_rps", "--max-rps", settings.max_rps, LEAST_RATE, MAX_RATE, "requests/s"),
        ("start_rps", "--start-rps", settings.start_rps, LEAST_RATE, MAX_RATE, "requests/s"),
    )
    for name, flag, value, least, most, unit in ranges:
        if value is not None and not least <= value <= most:
            yield Problem((name,), f"{flag} must be from {least:g} to {most:,} {unit}, not {value:g}.")
    if settings.precision is not None and not 0.001 <= settings.precision <= 1:
        yield Problem(("precision",), f"--precision must be from 0.1% to 100%, not {100 * settings.precision:g}%.")
    if settings.start_rps and settings.max_rps and settings.start_rps > settings.max_rps:
        yield Problem(("start_rps", "max_rps"), "--start-rps must not be above --max-rps.")
