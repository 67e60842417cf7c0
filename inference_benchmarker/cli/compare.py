"""``benchmark --compare``: what changed between two runs, and a gate for pipelines."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.arguments import Parser
from inference_benchmarker.cli.terminal import how_far
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.exit_codes import INVALID, MISSED, OK
from inference_benchmarker.memory import give_back_large_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_DESCRIPTION = """\
Holds the run directory NEW against BASE: each metric of both, the change with its interval, and whether it is
worse, improved, unchanged, or cannot be told from noise.
"""
_EPILOG = """\
A limit is broken where the metric got worse by more than it allows, and beyond noise.
exit codes: 0 no limit is broken, 1 one is, 2 bad input, 3 either run is INVALID
"""
_MAX_REGRESSION_HELP = (
    "how much worse a metric may be, repeatable: p99=10%%, latency.mean=5%%, ttft.p90=10%%, rate=3%%, success=1%%"
)
_FILES = (
    ("--markdown", "write the comparison as Markdown, for a pull request"),
    ("--junit", "write it as JUnit XML: a test case for each limit and each metric"),
)


@how_far()
def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    options = compare_parser().parse_intermixed_args([argument for argument in arguments if argument != "--compare"])
    give_back_large_blocks()
    from inference_benchmarker.plan.slo import MaxRegression
    from inference_benchmarker.wave import store
    from visualization import comparison_report
    from visualization.comparison import compare

    problems: list[str] = []
    limits = list(_good(MaxRegression.parse, options.max_regression, problems))
    if len(options.runs) != 2:
        problems.append(
            f"--compare takes two run directories, BASE and NEW, not {len(options.runs)}. "
            "For any number side by side: `benchmark --plot DIR...`."
        )
    waves = list(_good(store.load, options.runs, problems))
    refuse(problems)
    base, new = waves
    found = compare(base, new, limits)
    if options.json:
        print(json.dumps(comparison_report.to_json(found), indent=2, allow_nan=False), flush=True)
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        print(comparison_report.to_text(found, colour=colour), end="", flush=True)
    for path, text in (
        (options.markdown, comparison_report.to_markdown(found)),
        (options.junit, comparison_report.to_junit(found)),
    ):
        if path is not None:
            _write(path, text)
    return {"invalid": INVALID, "failed": MISSED, "passed": OK}[found.outcome]


def compare_parser() -> Parser:
    """Its flags, and its help."""
    parser = Parser(
        prog="benchmark --compare",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="benchmark --compare BASE NEW [options]",
        allow_abbrev=False,
    )
    both = "the run directory to compare with, and the one that is judged"
    parser.add_argument("runs", metavar="BASE NEW", type=Path, nargs="*", help=both)
    parser.add_argument("--max-regression", metavar="LIMIT", action="append", default=[], help=_MAX_REGRESSION_HELP)
    for flag, text in _FILES:
        parser.add_argument(flag, metavar="FILE", type=Path, help=text)
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    return parser


def _good(read: Callable[[Any], Any], given: Iterable[Any], problems: list[str]) -> Iterator[Any]:
    """Yields those that can be read; the rest becomes problems."""
    for one in given:
        try:
            yield read(one)
        except BenchmarkError as error:
            problems.append(str(error))


def _write(path: Path, text: str) -> None:
    from inference_benchmarker.files import FOR_ANYBODY, replace_file

    try:
        replace_file(path, text, mode=FOR_ANYBODY)
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be written ({error.strerror}).", "Give another file.") from None
