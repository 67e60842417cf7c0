"""``benchmark compare``: what changed between two runs or two sets of runs, and a gate for pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.arguments import Parser
from inference_benchmarker.cli.core.last_run import why_last
from inference_benchmarker.cli.core.output_flags import OUTPUT_DIR
from inference_benchmarker.cli.core.terminal import (
    how_far,
    print_json,
    print_report,
    report_width,
    say,
    say_reservations,
)
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.system.given import resolved
from inference_benchmarker.system.memory import give_back_large_blocks

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.comparison import Comparison

_DESCRIPTION = """\
Compares NEW with BASE. For each metric it prints both values, the change with its interval, and one of: worse,
improved, unchanged, or cannot tell. Each side is a run directory or a folder of several runs. Give several runs per
side to show how far runs of one version differ. Without arguments, it compares the last two runs in .tmp/.

  benchmark compare runs/base runs/new --max-regression p99=10%
  benchmark compare --base monday/* --new tuesday/*
"""
_EPILOG = """\
A limit is met if the whole interval is within it. It is violated if the change exceeds it and the interval does not
contain zero (no change). Otherwise the comparison cannot tell.

exit codes: 0 no limit is violated; 1 a limit is violated (or, with --strict, the comparison cannot tell); 2 bad input;
3 a run is INVALID
"""
_MAX_REGRESSION_HELP = (
    "how much worse a metric may get, relative to BASE (repeatable): p99=10%%, latency.mean=5%%, ttft.p90=10%%, "
    "rate=3%%, success=1%%, session.p95=10%%, turn2+.ttft.p95=10%%"
)
_FILES = (
    ("--markdown", "write the comparison as Markdown, for a pull request"),
    ("--junit", "write it as JUnit XML: a test case for each limit, and for each metric"),
)


@how_far()
def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    options = compare_parser().parse_intermixed_args([argument for argument in arguments if argument != "--compare"])
    give_back_large_blocks()
    from inference_benchmarker.plan.slo import MaxRegression
    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison import report
    from visualization.comparison.comparison import compare

    problems: list[str] = []
    limits = list(readable(MaxRegression.parse, options.max_regression, problems))
    base, new = ([*readable(Wave.load, side, problems)] for side in _sides(options, problems))
    refuse(problems)
    say_reservations([*base, *new])
    base, new = without_copies(base), without_copies(new)
    found = compare(base, new, limits, strict=options.strict)
    print_comparison(found, as_json=options.json)
    write_files(options, lambda: report.to_markdown(found), lambda: report.to_junit(found))
    return found.exit_code


def print_comparison(found: Comparison, *, as_json: bool) -> None:
    """Print it as text, or as JSON."""
    from visualization.comparison import report
    from visualization.comparison.result import result_of

    if as_json:
        print_json(result_of(found))
    else:
        print_report(report.to_text(found, report_width()))


def write_files(options: argparse.Namespace, markdown: Callable[[], str], junit: Callable[[], str]) -> None:
    """Write the files that were asked for."""
    for path, made in ((options.markdown, markdown), (options.junit, junit)):
        if path is not None:
            _write(path, made())


def compare_parser() -> Parser:
    """Its flags, and its help."""
    parser = Parser(
        prog="benchmark compare",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        usage="benchmark compare [BASE NEW | --base DIR... --new DIR...] [options]",
        allow_abbrev=False,
    )
    both = "the baseline and the new runs, each a run directory or a folder of runs"
    parser.add_argument("runs", metavar="BASE NEW", type=Path, nargs="*", help=both)
    for flag, text in (("--base", "the runs to compare with"), ("--new", "the runs that are judged")):
        parser.add_argument(flag, metavar="DIR", type=Path, nargs="+", action="extend", default=[], help=text)
    add_gate(parser)
    return parser


def add_gate(parser: Parser) -> None:
    """Add what makes a comparison a gate, and its files."""
    parser.add_argument("--max-regression", metavar="LIMIT", action="append", default=[], help=_MAX_REGRESSION_HELP)
    parser.add_argument("--strict", action="store_true", help="count a limit as violated if the comparison cannot tell")
    for flag, text in _FILES:
        parser.add_argument(flag, metavar="FILE", type=Path, help=text)
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")


def _sides(options: argparse.Namespace, problems: list[str]) -> tuple[list[Path], list[Path]]:
    """The run directories of both sides; without any, the last two."""
    from inference_benchmarker.wave.run_folders import latest_runs

    if not (options.runs or options.base or options.new):
        base, new = latest_runs(OUTPUT_DIR, 2)
        say(f"The last two runs: {base.path} and {new.path}{why_last(base, new)}.")
        return [base.path], [new.path]
    sides = ([options.runs[0]], [options.runs[1]]) if len(options.runs) == 2 else (options.base, options.new)
    several = bool(options.base or options.new)
    if not all(sides) or (several and options.runs):
        given = f", not {len(options.runs)} of them" if options.runs and not several else ""
        problems.append(
            f"compare takes BASE and NEW, each a run directory or a folder of runs{given}. "
            "For several of each: `--base DIR... --new DIR...`. For any number side by side: `benchmark --plot DIR...`."
        )
        return [], []
    base_runs, new_runs = (
        _each_once(run for runs in readable(counting_runs, side, problems) for run in runs) for side in sides
    )
    return base_runs, new_runs


def counting_runs(path: Path) -> list[Path]:
    """A run directory, or those in a folder: in that of a search without the confirmations that it repeated."""
    from inference_benchmarker.wave.run_folders import runs_of
    from server_capacity.results.capacity_folder import is_capacity, read
    from server_capacity.results.types.result_status import repeated_waves

    runs = runs_of(path)
    repeated = repeated_waves(read(path)) if is_capacity(path) else {}
    for run in runs:
        if run.name in repeated:
            say(f"{run} is left out, because the search repeated it: {repeated[run.name].rstrip('.')}.")
    return [run for run in runs if run.name not in repeated]


def _each_once(runs: Iterable[Path]) -> list[Path]:
    """A run that is named twice is still one: as two it would seem that runs do not differ."""
    return list({resolved(run): run for run in runs}.values())


def without_copies(waves: list[Wave]) -> list[Wave]:
    """The runs of a side without the copies of each, which would hide how much runs differ; these are named."""
    from visualization.comparison.comparison import identity

    found: dict[object, Wave] = {}
    for wave in waves:
        first = found.setdefault(identity(wave), wave)
        if first is not wave and first.run_dir is not None and wave.run_dir is not None:
            say(f"{wave.run_dir.path} is a copy of {first.run_dir.path}: they count as one run.")
    return list(found.values())


def readable(read: Callable[[Any], Any], given: Iterable[Any], problems: list[str]) -> Iterator[Any]:
    """Yields those that can be read; the rest becomes problems."""
    for one in given:
        try:
            yield read(one)
        except BenchmarkError as error:
            problems.append(str(error))


def _write(path: Path, text: str) -> None:
    from inference_benchmarker.system.files import write_given

    try:
        write_given(path, text)
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be written ({error.strerror}).", "Give another file.") from None
