"""``benchmark --plot``: a page and pictures of one run or many, side by side."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inference_benchmarker.cli.arguments import Parser, add_flags, parsed
from inference_benchmarker.cli.plot_flags import PLOT, make_plot
from inference_benchmarker.cli.terminal import say, say_nothing

if TYPE_CHECKING:
    from collections.abc import Callable

SLOW_S = 2.0


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    parser = Parser(
        prog="benchmark --plot",
        usage="benchmark --plot DIR [DIR ...] [options]",
        description="Compare run directories: a page to look at (no network needed), pictures for documents.",
        allow_abbrev=False,
    )
    parser.add_argument("--plot", metavar="DIR", nargs="*", action="extend", help="run directories")
    add_flags(parser, PLOT)
    options, problems = parsed(parser, arguments)
    plot = make_plot(options, problems)
    from inference_benchmarker.wave.wave import Wave
    from visualization.runs import read_runs
    from visualization.series import make_figures, write_report

    tell = say_nothing if options["quiet"] else _say_when_slow(time.monotonic() + SLOW_S)
    runs = read_runs(plot.runs, plot.metadata, Wave.load, tell)
    for found in runs:
        for problem in found.problems:
            say(f"{found.label}: {problem}")
    figures = make_figures(runs, plot.fields)
    for path in write_report(figures, plot.formats, plot.output_dir, tell):
        print(path, flush=True)
    return 0


def _say_when_slow(from_then: float) -> Callable[[str], None]:
    """Progress of what is usually done before anyone would ask."""
    return lambda message: say(message) if time.monotonic() > from_then else None
