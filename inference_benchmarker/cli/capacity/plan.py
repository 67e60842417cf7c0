"""``benchmark plan``: from measured capacities to instances, scaling policies and money."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from inference_benchmarker.cli.capacity.plan_flags import PLAN_FLAGS, make_questions
from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.pages import draw_plan
from inference_benchmarker.cli.core.terminal import how_far, print_json, print_report, report_width, say
from inference_benchmarker.cli.core.unstored import code_of, stored
from inference_benchmarker.system.memory import give_back_large_blocks

if TYPE_CHECKING:
    from pathlib import Path

_DESCRIPTION = """\
Plans what to deploy for a load: the number of instances (with its minimum and maximum), a scaling policy, and the
cost.

  benchmark plan .tmp/<timestamp>_capacity --target-rps 1000
  benchmark plan DIR --target-rps 1000 --growth 20%/min \\
      --seconds-to-create 240 --price ml.m5.xlarge=0.23

To plan instances for a number of users, give a search with --in users or --in sessions:

  benchmark plan DIR --users 10000 --conversations-per-day 3 --peak-factor 3
"""
_EPILOG = """\
The plan is based on the lower end of the interval that the search reports.

exit codes: 0 planned; 1 the measurements are not sufficient; 2 bad input;
3 the plan could not be stored
"""


@how_far()
def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    parser = plan_parser()
    given = vars(parser.parse_intermixed_args(arguments, argparse.Namespace(**dict.fromkeys(parser.flags))))
    questions, output_dir = make_questions(given, given["capacity_dir"])
    give_back_large_blocks()
    from inference_benchmarker.wave.run_dir import make_stamped_folder
    from server_capacity.planning.costs.prices import prices_of
    from server_capacity.planning.folder import KIND, save
    from server_capacity.planning.making import make_plan
    from server_capacity.planning.text import WIDTH, to_text

    made = make_plan(questions, prices_of(given), say, compare=given["compare_policies"])
    folder: Path = make_stamped_folder(output_dir, KIND)
    found, unsaved = stored(lambda: save(folder, made.found, made.files), made.found)
    if given["json"]:
        print_json(found)
    else:
        print_report(to_text(found, str(folder), report_width() or WIDTH))
    if not unsaved and (page := draw_plan(found, folder, say)):
        say(f"Page: {page}")
    return code_of(found.exit_code, unsaved)


def plan_parser() -> Parser:
    """Its flags, and its help."""
    parser = command_parser(
        "benchmark plan",
        {},
        usage="benchmark plan CAPACITY_DIR [CAPACITY_DIR ...] [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument(
        "capacity_dir",
        metavar="CAPACITY_DIR",
        nargs="*",
        help="the folder of a search, of a ranking with --vary (its first row is planned), or of a search of tiers "
        "(choose one with --tier). With several folders, each plan serves the whole load (--mix splits it)",
    )
    parser.add_flags(PLAN_FLAGS)
    return parser
