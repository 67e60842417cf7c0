"""``benchmark pareto``: the speed of a user against the tokens of a GPU, and which run is better for whom."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.cli.compare.compare import readable, without_copies
from inference_benchmarker.cli.compare.pareto_flags import PARETO_FLAGS, asked_of
from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.pages import draw_pareto
from inference_benchmarker.cli.core.terminal import (
    how_far,
    print_json,
    print_report,
    report_width,
    say,
    say_reservations,
)
from inference_benchmarker.cli.core.unstored import code_of, stored
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.exit_codes import OK
from inference_benchmarker.system.memory import give_back_large_blocks

if TYPE_CHECKING:
    from inference_benchmarker.cli.compare.pareto_flags import ParetoRequest
    from visualization.pareto.points import Configuration
    from visualization.pareto.result import Pareto

KIND = "pareto"
_DESCRIPTION = """\
Compares the tokens/s that each user gets with the tokens/s that each GPU generates, at every load of each RUN. Each
load is a point; it is on the Pareto frontier if no other point has more of both. The first line of the report names the
better run for each range of tokens/s per user or, if there is only one run, gives its tokens/s per GPU and per user.
Each run must be against an LLM that streams its answers.

  benchmark pareto runs/fp16 runs/fp8 --gpus 8 --price gpu=2.50
  benchmark pareto runs --gpus fp16=8 --gpus fp8=4

RUN is a run directory, a folder of runs at different loads (runs of the same load and requests are repetitions), a
folder of such folders, or the folder of an `ab`. A steady stage of --stages is a load of its own.
"""
_EPILOG = """\
exit codes: 0 every run is VALID and met its limits; 1 a run missed a limit or was aborted; 2 bad input; 3 a run is
INVALID, or the result could not be stored; 130 a run was interrupted. An `ab` counts as one run, with its own exit
code
"""


@how_far()
def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    options, problems = pareto_parser().parsed(arguments)
    if not options["runs"] and not problems:
        problems.append("pareto needs a RUN: a run directory, or a folder of runs.")
    asked = asked_of(options, problems)
    give_back_large_blocks()
    from inference_benchmarker.wave.run_dir import make_stamped_folder
    from server_capacity.results.types.price import per_million
    from visualization.pareto.configurations import ends_of, left_out
    from visualization.pareto.result import pareto_of

    paths = [Path(text) for text in options["runs"]]
    configurations = _configurations(paths, asked)
    found = pareto_of(
        configurations,
        per_million,
        asked.weights,
        remarks=[*left_out(paths), *asked.prices.remarks],
        gpus_given=bool(asked.gpus),
        ends=list(ends_of(paths)),
    )
    if not any(point.speeds for point in found.points) and found.result.exit_code == OK:
        raise _no_speed(configurations)
    folder = make_stamped_folder(asked.output_dir, KIND)
    _, unsaved = stored(lambda: _save(found, folder), None)
    if asked.as_json:
        print_json(found.result)
    else:
        _print(found)
    if not unsaved and (page := draw_pareto(found, folder, say)):
        say(f"Page: {page}")
    return code_of(found.result.exit_code, unsaved)


def _no_speed(configurations: list[Configuration]) -> BenchmarkError:
    """Why no point has a speed."""
    from visualization.pareto.result import UNRECORDED

    unrecorded = [wave.counts is not None for each in configurations for wave in each.waves]
    if all(unrecorded):
        return BenchmarkError(f"No user has a speed: {UNRECORDED}.", "Send the waves again without this flag.")
    some = f" Of {sum(unrecorded)} of {len(unrecorded)} runs {UNRECORDED}." if any(unrecorded) else ""
    return BenchmarkError(
        f"No request streamed its answer in several pieces, so no user has a speed.{some}",
        "Give waves to a language model that streams (see docs/tutorials/llm.md).",
    )


def _configurations(paths: list[Path], asked: ParetoRequest) -> list[Configuration]:
    """The waves of each, with its GPUs and its price; one error with everything that is wrong."""
    from inference_benchmarker.wave.wave import Wave
    from visualization.pareto.configurations import configurations_of
    from visualization.pareto.points import Configuration

    problems: list[str] = []
    runs = configurations_of(paths)
    problems += asked.problems(runs)
    waves = {name: list(readable(Wave.load, each, problems)) for name, each in runs.items()}
    refuse(problems)
    say_reservations([wave for each in waves.values() for wave in each])
    found = []
    for name, each in waves.items():
        own = Configuration(name, tuple(without_copies(each)), asked.gpus_of(name))
        found.append(_priced(own, asked, list(waves)))
    return found


def _priced(configuration: Configuration, asked: ParetoRequest, names: list[str]) -> Configuration:
    from dataclasses import replace

    known = asked.hour_of(configuration.name, names)
    if known is None:
        return configuration
    price, number = known
    times = f"{number} x " if number > 1 else ""
    origin = f"{times}{price.instance_type} at {price.per_hour:g}, {price.origin}"
    return replace(configuration, hour=price.per_hour * number, currency=price.currency, origin=origin)


def _save(found: Pareto, folder: Path) -> None:
    """Write its files. BenchmarkError where they cannot be written."""
    from inference_benchmarker.data.decoded import encoded
    from inference_benchmarker.data.json_file import write_json
    from inference_benchmarker.system.files import replace_file
    from inference_benchmarker.wave.run_dir import cannot_write
    from visualization.pareto.text import to_csv, to_text

    try:
        write_json(folder / f"{KIND}.json", encoded(found.result))
        replace_file(folder / f"{KIND}.csv", to_csv(found))
        replace_file(folder / f"{KIND}.txt", to_text(found))
    except OSError as error:
        raise cannot_write(folder, error) from None


def _print(found: Pareto) -> None:
    from visualization.pareto.text import to_text

    print_report(to_text(found, report_width()))


def pareto_parser() -> Parser:
    """Its flags, and its help."""
    parser = command_parser(
        "benchmark pareto",
        {},
        usage="benchmark pareto RUN [RUN ...] [--gpus N] [--price TYPE=USD] [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("runs", metavar="RUN", nargs="*", help="run directories, or folders of them")
    parser.add_flags(PARETO_FLAGS)
    return parser
