"""``benchmark --plot``: a page and pictures of one run or many, side by side."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING

from inference_benchmarker.cli.compare.plot_flags import PLOT, make_plot
from inference_benchmarker.cli.core.arguments import Parser
from inference_benchmarker.cli.core.deprecated_flags import in_todays_words
from inference_benchmarker.cli.core.last_run import OF_WAVES, last_run
from inference_benchmarker.cli.core.terminal import SLOW_S, how_far, say, say_nothing
from inference_benchmarker.errors import refuse
from inference_benchmarker.exit_codes import BAD_INPUT, OK
from inference_benchmarker.system.memory import give_back_large_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.cli.compare.plot_flags import Plot
    from visualization.figures.runs import Run


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    plot = _asked(arguments)
    give_back_large_blocks()
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.results.capacity_folder import read
    from visualization.figures.capacity import is_capacity, read_capacities
    from visualization.figures.loads import in_order
    from visualization.figures.reading import read_runs, runs_among
    from visualization.pages.series import make_figures, page_of_one, write_report
    from visualization.pages.sides import two_sides

    tell = say_nothing if plot.quiet else _say_when_slow(time.monotonic() + SLOW_S)
    searched = [path for path in plot.runs if is_capacity(path)]
    waves = [path for path in plot.runs if path not in searched]
    paths, others = runs_among(waves) if waves or not searched else ((), ())
    for left_out in (*(f"Skipped: {other}" for other in others), *(() if plot.quiet else plot.notes)):
        say(left_out)
    load = cache(Wave.load) if len(paths) <= 2 else Wave.load  # the report of one and the change of two need it again
    with how_far(quiet=plot.quiet):
        runs = in_order(read_runs(paths, plot.metadata, load, tell))
    _say_problems(runs, are_all=not searched)
    capacities = read_capacities(searched, plot.metadata, read)
    two = two_sides(runs, load, plot.limits, strict=plot.strict)
    figures = make_figures(runs, plot.fields, capacities, two, plot.cut)
    # fields that are chosen are bars, which the report of a single run has none of
    page = page_of_one(runs, load) if "html" in plot.formats and not searched and plot.fields is None else ""
    folder = plot.output_dir or (*paths, *searched)[0]
    for path in write_report(figures, plot.formats, folder, tell, page=page, flag="--plot-output-dir"):
        print(path, flush=True)
    return BAD_INPUT if any(found.is_damaged for found in runs) else OK


def _asked(arguments: list[str]) -> Plot:
    """The plot that the arguments ask for: of the last run where they name none. BenchmarkError with every problem."""
    options, problems = plot_parser().parsed(in_todays_words(arguments))
    options["plot"] = [*(options.pop("runs") or ()), *(options["plot"] or ())]
    if not options["plot"] and not problems:
        options["plot"] = [str(last_run("benchmark plot", *OF_WAVES, quiet=options["quiet"]))]
    return make_plot(options, problems)


def _say_problems(runs: Sequence[Run], *, are_all: bool) -> None:
    """Say what is wrong with runs; BenchmarkError where none can be drawn, and they ``are_all`` that is asked for."""
    problems = [f"{run.label}: {problem}" for run in runs for problem in run.problems]
    if are_all and runs and all(run.is_refused for run in runs):
        refuse(problems)
    for problem in (*problems, *(f"{run.path}: {clause}." for run in runs for clause in run.reservations)):
        say(problem)


def plot_parser() -> Parser:
    """Its flags, and its help."""
    parser = Parser(
        prog="benchmark plot",
        usage="benchmark plot [DIR ...] [options]",
        description="Draws runs side by side, on an HTML page that needs no network, and as images.",
        allow_abbrev=False,
    )
    which = "run directories, or folders of them (default: the last run in .tmp)"
    parser.add_argument("runs", metavar="DIR", nargs="*", help=which)
    parser.add_argument(
        "--plot", metavar="DIR", nargs="*", action="extend", help="the same as DIR: `benchmark --plot DIR` works, too"
    )
    parser.add_flags(PLOT)
    return parser


def _say_when_slow(from_then: float) -> Callable[[str], None]:
    """Progress of what is usually done before anyone would ask."""
    return lambda message: say(message) if time.monotonic() > from_then else None
