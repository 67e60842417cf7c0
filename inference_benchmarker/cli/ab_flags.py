"""The flags of ``benchmark ab``: its own, and those of a wave, which both sides have."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.cli.arguments import Parser
from inference_benchmarker.cli.compare import add_gate
from inference_benchmarker.cli.url_flags import looks_like_address
from inference_benchmarker.cli.wave import wave_of, wave_parser
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.plan.slo import MaxRegression
from inference_benchmarker.redact import HEADERS, redact

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence

    from inference_benchmarker.cli.flags import Flag
    from inference_benchmarker.plan.plan import WavePlan

REPEATS, WARMUP_S, LENGTH_S = 5, 2, 10
_MOST_REPEATS = 1000
_NOT_HERE = (
    *("--demo", "--interactive", "--aiperf", "--aiperf-only", "--calibrate", "--endpoint-config"),
    *("--factories-file", "--locust-file", "--url"),
)
OF_A_SIDE = ("--endpoint-name", "--set", "--header", "--model")
_LENGTHS = ("--obs-time", "--num-requests", "--stages", "--replay")
"""Flags that say how long a wave lasts; and the configuration file may."""

DESCRIPTION = """\
Sends the same load to A and B in turn, in a random order, several times, and tells in a line which is faster.
A and B are factories files, names of shipped examples, or addresses. Every flag of a wave is one of both sides;
--endpoint-name, --set, --header and --model with -a or -b behind them are one of that side alone.

  benchmark ab old.py new.py --client-rps 100
  benchmark ab http://localhost:8080/a http://localhost:8081/a --client-rps 100 --max-regression p99=10%
  benchmark ab my_endpoint.py my_endpoint.py --endpoint-name-a blue --endpoint-name-b green --client-rps 20
"""
EPILOG = """\
All flags of a wave: `benchmark --help`. Without --obs-time a wave lasts 10 seconds, after a --warmup of 2.
A wave that is INVALID does not count and is sent again, for each side as often as there are repeats.
exit codes: 0 no limit is broken, 1 one is (with --strict: or cannot be told), 2 bad input,
            3 a side is INVALID, 130 interrupted (after what was measured)
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """The two sides, their waves' plans and what the environment holds of their headers, and the outcome wanted."""

    what: dict[str, str]
    plans: dict[str, WavePlan]
    headers: dict[str, str | None]
    repeats: int
    seed: int
    limits: tuple[str, ...]
    options: Namespace


def ab_parser() -> Parser:
    """Its own flags, and its help."""
    import argparse

    parser = Parser(
        prog="benchmark ab",
        usage="benchmark ab A B [--repeats N] [options of a wave]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--repeats", metavar="N", default=str(REPEATS), help=f"waves of each side (default {REPEATS})")
    add_gate(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def asked_for(arguments: Sequence[str]) -> Asked:
    """The sides and the load that the arguments describe, or one error with everything that is wrong with them."""
    from visualization.ab import SIDES  # which is slow to load: not for help

    options, rest = ab_parser().parse_known_args(list(arguments))
    wave_flags = wave_parser().flags
    given, sides = _split(rest, wave_flags)
    problems = [f"{flag} is not for ab." for flag in _NOT_HERE if _has(given, flag)]
    if len(sides) != 2:
        problems.append(f"ab takes A and B, each a factories file or an address, not {len(sides)} of them.")
    refuse(problems)
    problems = list(_problems(options))
    plans, headers, of_environment = {}, {}, os.environ.get(HEADERS)
    wrong: dict[str, list[str]] = {}
    for side, endpoint in zip(SIDES, sides, strict=True):
        try:
            wave = [*_endpoint(endpoint), *_of_side(given, side), *_defaults(given, options)]
            plans[side] = wave_of(wave, of_environment)
            headers[side] = os.environ.get(HEADERS)
        except BenchmarkError as error:
            for line in str(error).splitlines():
                wrong.setdefault(line, []).append(side)
    refuse([*problems, *(line if len(of) == len(SIDES) else f"{of[0]}: {line}" for line, of in wrong.items())])
    seed = plans["A"].seed if plans["A"].seed is not None else secrets.randbits(32)
    what = {side: redact(each) for side, each in zip(SIDES, sides, strict=True)}
    return Asked(what, plans, headers, int(options.repeats), seed, tuple(options.max_regression), options)


def _split(arguments: Sequence[str], flags: Mapping[str, Flag]) -> tuple[list[str], list[str]]:
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
        flag = flags.get(name.removeprefix("--").replace("-", "_"))
        valued = flag is None or flag.metavar is not None
        takes = not takes and argument.startswith("--") and "=" not in argument and valued
    return given, words


def _stem(argument: str) -> str:
    """The flag of one side without what says which: ``--set`` of ``--set-b=X=1``."""
    flag = argument.partition("=")[0]
    return flag[:-2] if flag[-2:] in ("-a", "-b") and flag[:-2] in OF_A_SIDE else ""


def _of_side(given: Sequence[str], side: str) -> Iterator[str]:
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


def _defaults(given: Sequence[str], options: Namespace) -> Iterator[str]:
    if not _has(given, "--config"):  # which may have them, and which the command line would win over
        if not any(_has(given, flag) for flag in _LENGTHS):
            yield f"--obs-time={LENGTH_S}"
        if not _has(given, "--warmup"):
            yield f"--warmup={WARMUP_S}"
    if options.quiet:
        yield "--quiet"


def _has(given: Sequence[str], flag: str) -> bool:
    return any(argument.partition("=")[0] == flag for argument in given)


def _endpoint(text: str) -> list[str]:
    return [text] if looks_like_address(text) else [f"--factories-file={text}"]


def _problems(options: Namespace) -> Iterator[str]:
    if not (options.repeats.isascii() and options.repeats.isdigit() and 1 <= int(options.repeats) <= _MOST_REPEATS):
        yield f"--repeats must be a whole number from 1 to {_MOST_REPEATS:,}, not {options.repeats[:100]!r}."
    for text in options.max_regression:
        try:
            MaxRegression.parse(text)
        except BenchmarkError as error:
            yield str(error)
