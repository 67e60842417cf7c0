"""``benchmark`` without a command: one wave, and aiperf after it or instead of it."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.address_flags import is_addressed, take_endpoint, without_addresses
from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.config_file import with_config
from inference_benchmarker.cli.core.demo import (
    ADDRESS_DEFAULTS,
    MODEL_DEFAULTS,
    fill_in_demo,
    fill_in_load,
    say_simulated,
)
from inference_benchmarker.cli.core.deprecated_flags import in_todays_words
from inference_benchmarker.cli.core.embedded import embedded_endpoint
from inference_benchmarker.cli.core.flags import read_flags
from inference_benchmarker.cli.core.next_commands import next_commands
from inference_benchmarker.cli.core.terminal import (
    at_the_keys,
    has_keys,
    how_far,
    live_view,
    passing,
    print_wave,
    say,
)
from inference_benchmarker.cli.wave.aiperf import aiperf_stage, run_aiperf
from inference_benchmarker.cli.wave.aiperf_flags import take_aiperf
from inference_benchmarker.cli.wave.export_flags import exports_of
from inference_benchmarker.cli.wave.exporting import exporting
from inference_benchmarker.cli.wave.help_screens import COMMANDS, EXIT_CODES, FIRST_SCREEN, SET_UP, add_help
from inference_benchmarker.cli.wave.server_metrics import (
    beside,
    follower_of,
    print_with_metrics,
    say_warnings,
    sources_of,
)
from inference_benchmarker.cli.wave.wave_flags import WAVE_FLAGS
from inference_benchmarker.cli.wave.wave_plan import make_plan
from inference_benchmarker.exit_codes import INVALID, OK, worst_exit_code
from inference_benchmarker.system.memory import give_back_large_blocks
from inference_benchmarker.version import __version__
from inference_benchmarker.words.redact import HEADERS
from inference_benchmarker.words.text import plain
from server_capacity.aiperf.options import API_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.cli.wave.export_flags import Exports
    from inference_benchmarker.cli.wave.exporting import Export
    from inference_benchmarker.engine.endpoint.address_options import Described
    from inference_benchmarker.engine.progress_listener import Live
    from inference_benchmarker.facts.server_metric import Source
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.aiperf.options import AiperfOptions

_DESCRIPTION = """\
Sends a wave (a period of load at an exact rate) to an inference endpoint, and
reports the results and whether to trust them.

  benchmark --demo                        try it: no endpoint is needed
  benchmark http://localhost:8080/ping    any HTTP endpoint
  benchmark http://localhost:8000/v1      an LLM with an OpenAI-compatible API
  benchmark --factories-file FILE --client-rps 10 --obs-time 60
"""


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    parser = wave_parser()
    if not arguments:
        print(FIRST_SCREEN, end="")
        return OK
    plan, aiperf, exports, options = _understood(parser, arguments)
    passing(f"Starting{' the embedded endpoint' if options['demo'] else ''}…", quiet=options["quiet"])
    give_back_large_blocks()
    with (
        exporting(exports, quiet=options["quiet"]) as export,
        _embedded_endpoint(plan) if options["demo"] else nullcontext(plan) as plan,
        aiperf_stage(aiperf, plan, options) as stage,
        how_far(quiet=options["quiet"]),
    ):
        say_simulated(options)
        if options["endpoint_config"]:
            passing("Loading the reader of the server's metrics…", quiet=options["quiet"])
        sources = sources_of(options["endpoint_config"], plan.server_limits, options["metrics_wait"])
        if stage is None:
            return _exit_code(_offered(plan, sources, options, export, last=True))
        wave = None if stage.options.only else _offered(stage.plan, sources, options, export, last=False)
        return run_aiperf(stage, wave, sources, options)


def wave_of(arguments: list[str], headers: str | None = None) -> WavePlan:
    """The wave that a command line describes, from the first word after ``benchmark``; BenchmarkError where it is none.

    The headers of its address are in the environment then, in place of those of an address before it; beside them
    ``headers``, which the user's environment has.
    """
    os.environ.pop(HEADERS, None)
    if headers:
        os.environ[HEADERS] = headers
    plan, *_ = _understood(wave_parser(), arguments)
    return plan


def _understood(parser: Parser, arguments: list[str]) -> tuple[WavePlan, AiperfOptions | None, Exports, dict[str, Any]]:
    """The wave, the run of aiperf, where figures go, and the options, or one error with all problems."""
    arguments, addresses = without_addresses(arguments, parser.flags)
    options, problems = wave_options(parser, arguments, addresses)
    if options["api_key"]:
        os.environ[API_KEY] = options["api_key"]  # where invoke may read it, and where what hides secrets looks
    addressed = is_addressed(options, addresses)
    options["address"] = options["url"] or next(iter(addresses), None)
    options["own_set"] = options["set"]  # the settings of an address come beside them
    described = take_endpoint(options, problems, addresses, os.environ)
    chosen: dict[str, str] = {}
    if described is not None or (addressed and not options["locust_file"]):  # of a bad one, too: no load is missing
        is_model = described is not None and described.is_model
        chosen = fill_in_load(options, MODEL_DEFAULTS if is_model else ADDRESS_DEFAULTS)
    if options["demo"]:
        fill_in_demo(options)
    if options["calibrate"] and options["locust_file"]:
        problems.append("--calibrate measures the overhead with a factories file, not with a --locust-file.")
    if options["interactive"] and not has_keys():
        problems.append("--interactive needs a terminal, to show the wave and to read keys; there is none.")
    aiperf = take_aiperf(options, problems, os.environ)
    exports = exports_of(options, problems)
    options |= read_flags(WAVE_FLAGS["server metrics"], options, problems).values
    plan = make_plan(options, problems, endpoint_needed=aiperf is None or not aiperf.stands_alone)
    if described is not None and not options["quiet"]:
        _say_what_is_sent(described, chosen)
    return plan, aiperf, exports, options


def _say_what_is_sent(described: Described, chosen: dict[str, str]) -> None:
    """The requests to an address in a line, and in another the load that was chosen where none was given."""
    say(f"{described.words}.")
    if chosen:
        flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in chosen.items())
        say(f"Chosen by default: {flags}.")


def wave_parser() -> Parser:
    """Its flags, and its help."""
    parser = command_parser(
        "benchmark",
        {},
        usage="benchmark [--demo | URL | --factories-file FILE] [options]",
        description=_DESCRIPTION,
        epilog=f"{COMMANDS}\n{SET_UP}\n{EXIT_CODES}",
        add_help=False,
    )
    add_help(parser)
    parser.add_argument("--version", action="version", version=f"benchmark {__version__}")
    parser.add_flags(WAVE_FLAGS)
    return parser


def wave_options(
    parser: Parser, arguments: list[str], addresses: Sequence[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    """Flags as text (nothing converted yet), from the command line and the configuration file.

    ``addresses``: those that were given beside them.
    """
    options, problems = parser.parsed(in_todays_words(arguments))
    options, found = with_config(options, parser.flags)
    if found and not is_addressed(options, addresses):  # what the file should have said is not missing
        fill_in_demo(options)
    return options, problems + found


@contextmanager
def _embedded_endpoint(plan: WavePlan) -> Iterator[WavePlan]:
    """With ``--demo``: the embedded endpoint while the wave runs; a Locust file without a host is sent to it.

    It publishes its metrics as often as it can, so that even a short wave has whole intervals.
    """
    with embedded_endpoint(publish_interval_s=1) as url:
        yield replace(plan, url=url) if plan.locust_file is not None and plan.url is None else plan


def _exit_code(wave: Wave) -> int:
    """The verdict's; a wave that could be stored nowhere is a broken harness."""
    if wave.run_dir is not None:
        return wave.verdict.exit_code
    return worst_exit_code(wave.verdict.exit_code, INVALID)


def _offered(plan: WavePlan, sources: list[Source], options: dict[str, Any], export: Export, *, last: bool) -> Wave:
    """Run a wave and print it; where it is not the ``last`` of the run, its JSON waits for what comes."""
    from inference_benchmarker.engine.launch import resolve, run_wave
    from inference_benchmarker.engine.processes.interrupts import counting_interrupts

    if recorded := options["replay"] or options["conversations"]:
        if not options["quiet"]:
            say(f"Reading {plain(recorded)}.")
        plan = resolve(plan)  # everything that follows asks how long it lasts
    follower = follower_of(sources, plan.expected_s)
    live = live_view(plan, [*sources, follower], quiet=options["quiet"])
    if plan.recording is not None:
        live.say(f"{plan.recording.rows:,} arrivals were recorded: {plan.recording.found}.")
    if plan.conversations is not None and plan.conversations.recorded is not None:
        found = plan.conversations.recorded
        live.say(". ".join(filter(None, (found.found, found.lacking))) + ".")
    if not options["quiet"]:
        say_warnings(options["endpoint_config"], sources, plan.expected_s)
    calibration = _calibration(plan, live) if options["calibrate"] else None
    with counting_interrupts():  # a wave that was measured is printed, whatever is pressed meanwhile
        for source in sources:
            source.begin()
        with at_the_keys(plan, live) as pilot:
            followed = export.follow(plan, live)
            wave = run_wave(plan, followed, calibration, pilot, beside=export.beside(beside(follower)))
        export.finish(wave)
        if sources:
            wave = print_with_metrics(wave, sources, options, follower)
            export.finish(wave)
        elif not options["json"]:
            print_wave(wave, as_json=False, next_commands=next_commands(wave, options))
        if options["json"] and last:
            print_wave(wave, as_json=True)
    return wave


def _calibration(plan: WavePlan, live: Live) -> dict[str, Any]:
    from client_capacity.calibration import calibrate

    return calibrate(plan, live).to_json()
