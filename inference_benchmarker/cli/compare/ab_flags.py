"""The flags of ``benchmark ab``: its own, and those of a wave, which both sides have."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.compare.compare import add_gate
from inference_benchmarker.cli.core.address_flags import looks_like_address
from inference_benchmarker.cli.core.arguments import Parser
from inference_benchmarker.cli.core.config_file import with_config
from inference_benchmarker.cli.wave.export_flags import exports_of
from inference_benchmarker.cli.wave.wave import wave_of, wave_parser
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.plan.conversation import FRESH, new_salt
from inference_benchmarker.plan.server_limit import is_server_limit
from inference_benchmarker.plan.slo import MaxRegression
from inference_benchmarker.system.packaged import shown_path
from inference_benchmarker.url import SALT_SETTING
from inference_benchmarker.words.redact import HEADERS, hidden, quoted, redact

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence

    from inference_benchmarker.cli.core.flags import Flag
    from inference_benchmarker.cli.wave.export_flags import Exports
    from inference_benchmarker.plan.plan import WavePlan

REPEATS, WARMUP_S, LENGTH_S = 5, 2, 10
_MOST_REPEATS = 1000
_OF_AIPERF = "aiperf has runs of its own, as `benchmark --aiperf` starts them"
_SERVERS = "collect a run's server metrics afterwards, with `benchmark report RUN --endpoint-config FILE`"
NOT_HERE = {
    "--demo": "name two endpoints; `benchmark endpoint` starts one to try things against",
    "--factories-file": "A and B are the files",
    "--locust-file": "A and B are factories files, examples or URLs",
    "--url": "A and B are the URLs",
    "--interactive": "both sides get the same load",
    "--aiperf": _OF_AIPERF,
    "--aiperf-only": _OF_AIPERF,
    "--aiperf-args": _OF_AIPERF,
    "--aiperf-pause": _OF_AIPERF,
    "--calibrate": "both sides include the same overhead of this tool",
    "--endpoint-config": _SERVERS,
    "--metrics-wait": _SERVERS,
    "--ui": "Locust's page shows one wave",
    "--verbose": "the report of the comparison is always whole",
}
"""Flags of a wave that stand in no wave of A and B, and what to do instead, or why."""

OF_A_SIDE = ("--endpoint-name", "--set", "--header", "--model")
_LENGTHS = ("obs_time", "num_requests", "stages", "replay")
"""Options that say how long a wave lasts."""

DESCRIPTION = """\
Sends the same load to A and B several times, each time in random order, and says in one line which is faster.
A and B are factories files, names of examples, or URLs. Options of `benchmark` apply to both sides. To set
--endpoint-name, --set, --header or --model for one side, append -a or -b to the flag.

  benchmark ab old.py new.py --client-rps 100
  benchmark ab http://localhost:8080/a http://localhost:8081/a \\
      --client-rps 100 --max-regression p99=10%
  benchmark ab my_endpoint.py my_endpoint.py --client-rps 20 \\
      --endpoint-name-a blue --endpoint-name-b green
"""
EPILOG = """\
All flags of a wave: `benchmark --help-all`. Without --obs-time, a wave has 2 s of warm-up and 10 s of measured load.
An INVALID wave is discarded and sent again, at most --repeats times per side.

exit codes: 0 no limit is violated; 1 a limit is violated (or, with --strict, the comparison cannot tell); 2 bad input;
3 a side is INVALID; 130 interrupted (what was measured is reported)
"""


@dataclass(frozen=True, slots=True)
class AbRequest:
    """The two sides, their waves' plans and what the environment holds of their headers, and the outcome wanted.

    ``exports``: where the figures of all waves go. ``fresh``: no wave finds the prompts of another in a cache.
    """

    what: dict[str, str]
    plans: dict[str, WavePlan]
    headers: dict[str, str | None]
    repeats: int
    seed: int
    limits: tuple[str, ...]
    exports: Exports
    options: Namespace
    fresh: bool = False

    def plan(self, side: str, number: int) -> WavePlan:
        """The wave of a side in a round: both sides have the same arrivals and payloads, which no other round has."""
        plan = self.plans[side].with_seed((self.seed + number) % 2**32)
        salted = {**plan.factory_settings, SALT_SETTING: new_salt()}
        return replace(plan, factory_settings=salted) if self.fresh else plan


def ab_parser() -> Parser:
    """Its own flags, and its help."""
    parser = Parser(
        prog="benchmark ab",
        usage="benchmark ab A B [--repeats N] [options of benchmark]",
        description=DESCRIPTION,
        epilog=EPILOG,
        allow_abbrev=False,
    )
    add_own(parser)
    return parser


def add_own(parser: Parser) -> None:
    """Add its own flags."""
    parser.add_argument(
        "--repeats", metavar="N", default=str(REPEATS), help=f"number of waves per side (default {REPEATS})"
    )
    add_gate(parser)
    parser.add_argument("--quiet", action="store_true", help="print no progress")


def asked_for(arguments: Sequence[str]) -> AbRequest:
    """The sides and the load that the arguments describe, or one error with everything that is wrong with them."""
    from visualization.comparison.ab import SIDES  # which is slow to load: not for help

    own, rest = ab_parser().parse_known_args(list(arguments))
    given, sides = split(rest, wave_parser().flags)
    options = _of_both(given)
    problems = [f"{flag} is not for ab: {why}." for flag, why in NOT_HERE.items() if options[_name(flag)]]
    problems += [f"--slo {text} is not for ab: {_SERVERS}." for text in options["slo"] or () if is_server_limit(text)]
    if len(sides) != len(SIDES):
        problems.append(f"ab takes A and B, each a factories file or a URL, not {len(sides)} of them.")
    problems += (wrong := [*_problems(own)])
    refuse(problems if problems != wrong else [])
    own.json, own.quiet = own.json or bool(options["json"]), own.quiet or bool(options["quiet"])
    defaults = [*_defaults(options, own)]
    plans, headers = _described(dict(zip(SIDES, sides, strict=True)), given, defaults, problems)
    refuse(problems or [*_same_sides(plans, headers)])
    seed = plans["A"].seed if plans["A"].seed is not None else secrets.randbits(32)
    what = {side: redact(_side_text(each, given, side)) for side, each in zip(SIDES, sides, strict=True)}
    exports = exports_of(options, [])  # whose problems were those of both waves
    limits, fresh = tuple(own.max_regression), options["cache"] == FRESH
    return AbRequest(what, plans, headers, int(own.repeats), seed, limits, exports, own, fresh)


def _same_sides(plans: Mapping[str, WavePlan], headers: Mapping[str, str | None]) -> Iterator[str]:
    """The problem of sides that differ in a name alone, which their file does not use: A would be compared with A."""
    from inference_benchmarker.engine.endpoint.source import ignores_name

    first, *others = (replace(plan, endpoint_name=None) for plan in plans.values())
    names, file = {plan.endpoint_name for plan in plans.values()}, first.factories_file
    is_same = len(set(headers.values())) == 1 and all(plan == first for plan in others)
    if len(names) > 1 and is_same and file is not None and ignores_name(file):
        yield (
            f"--endpoint-name-a, --endpoint-name-b: invoke_factory of {shown_path(file)} does not use its "
            "endpoint_name, so both sides are the same endpoint. Use it there, or give --set-a and --set-b."
        )


def _side_text(endpoint: str, given: Sequence[str], side: str) -> str:
    """A side as it was given, with what was given for it alone: headers by their name."""
    of_both = list(of_side(given, ""))
    flags = (flag.partition("=") for flag in of_side(given, side) if flag not in of_both)
    own = [value.partition(":")[0] if flag == "--header" else value for flag, _, value in flags]
    return f"{endpoint} ({', '.join(own)})" if own else endpoint


def _of_both(given: Sequence[str]) -> dict[str, Any]:
    """The flags of both sides as text, from the command line and the configuration file."""
    parser = wave_parser()
    options, _ = parser.parsed(list(of_side(given, "")))
    return with_config(options, parser.flags)[0]


def _described(
    sides: Mapping[str, str], given: Sequence[str], defaults: Sequence[str], problems: list[str]
) -> tuple[dict[str, WavePlan], dict[str, str | None]]:
    """The plan and the headers of each side; what is wrong with both is a problem once."""
    plans, headers, of_environment = {}, {}, os.environ.get(HEADERS)
    wrong: dict[str, list[str]] = {}
    for side, endpoint in sides.items():
        try:
            plans[side] = wave_of([*_endpoint(endpoint), *of_side(given, side), *defaults], of_environment)
            headers[side] = os.environ.get(HEADERS)
        except BenchmarkError as error:
            for line in hidden(str(error)).splitlines():
                wrong.setdefault(line, []).append(side)
    problems += [line if len(of) == len(sides) else f"{of[0]}: {line}" for line, of in wrong.items()]
    return plans, headers


def split(arguments: Sequence[str], flags: Mapping[str, Flag]) -> tuple[list[str], list[str]]:
    """The flags with their values, and the words that are neither."""
    given: list[str] = []
    words: list[str] = []
    takes = False
    for argument in arguments:
        if takes or argument.startswith("-"):
            given.append(argument)
        else:
            words.append(argument)
        name = argument.removesuffix("-a").removesuffix("-b") if _stem(argument) else argument
        flag = flags.get(_name(name))
        valued = flag is None or flag.metavar is not None
        takes = not takes and argument.startswith("--") and "=" not in argument and valued
    return given, words


def _stem(argument: str) -> str:
    """The flag of one side without what says which: ``--set`` of ``--set-b=X=1``."""
    flag = argument.partition("=")[0]
    return flag[:-2] if flag[-2:] in ("-a", "-b") and flag[:-2] in OF_A_SIDE else ""


def of_side(given: Sequence[str], side: str) -> Iterator[str]:
    """The flags of both sides, and those of this one under the names that a wave has for them."""
    rest = iter(given)
    for argument in rest:
        stem = _stem(argument)
        if not stem:
            yield argument
            continue
        flag, equals, value = argument.partition("=")
        value = value if equals else next(rest, "")
        if flag[-1:].upper() == side:
            yield f"{stem}={value}"


def of_one_side(given: Sequence[str]) -> Iterator[str]:
    """The flags that are given for one side alone, each with its value."""
    rest = iter(given)
    for argument in rest:
        if _stem(argument):
            yield argument if "=" in argument else f"{argument}={next(rest, '')}"


def _defaults(options: Mapping[str, Any], own: Namespace) -> Iterator[str]:
    """Flags for what neither the command line nor the configuration file gives."""
    if not any(options[name] for name in _LENGTHS):
        yield f"--obs-time={LENGTH_S}"
    if options["warmup"] is None and options["replay"] is None:  # a recording has no rate before its first arrival
        yield f"--warmup={WARMUP_S}"
    if own.quiet:
        yield "--quiet"


def _name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _endpoint(text: str) -> list[str]:
    return [text] if looks_like_address(text) else [f"--factories-file={text}"]


def _problems(options: Namespace) -> Iterator[str]:
    if not (options.repeats.isascii() and options.repeats.isdigit() and 1 <= int(options.repeats) <= _MOST_REPEATS):
        yield f"--repeats must be a whole number from 1 to {_MOST_REPEATS:,}, not {quoted(options.repeats)}."
    for text in options.max_regression:
        try:
            MaxRegression.parse(text)
        except BenchmarkError as error:
            yield str(error)
