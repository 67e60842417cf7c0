"""``benchmark report``: print a run again, or finalise one that was cut off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.compare.ab_report import print_again
from inference_benchmarker.cli.core.arguments import Parser
from inference_benchmarker.cli.core.forms import CSV, FORMS, TEXT, hand_out
from inference_benchmarker.cli.core.last_run import OF_ANSWERS, last_run
from inference_benchmarker.cli.core.next_commands import next_commands
from inference_benchmarker.cli.core.terminal import how_far, print_wave, say, say_reservations
from inference_benchmarker.cli.report.report_forms import form_of, of_a_folder, table_of_runs
from inference_benchmarker.cli.wave.aiperf import print_aiperf
from inference_benchmarker.cli.wave.server_metrics import print_with_metrics, sources_of
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.exit_codes import OK, worst_exit_code
from inference_benchmarker.system.memory import give_back_large_blocks

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.aiperf.export import AiperfResult
    from server_capacity.results.stored import Loaded


@how_far()
def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    options = report_parser().parse_args(arguments)
    _check(options)
    options.dir = options.dir or last_run("benchmark report", *OF_ANSWERS)
    give_back_large_blocks()
    stored = _stored(options.dir)
    if options.format == CSV:
        table, exit_code = table_of_runs(options.dir, _searches(options.dir, stored))
        hand_out(table, options.output, CSV)
        return worst_exit_code(exit_code, OK if stored is None else int(stored.found.exit_code))
    if stored is not None:
        return _again(stored, options)
    from visualization.comparison import ab

    if ab.is_ab(options.dir):
        experiment = ab.load(options.dir)
        for clause in ab.not_checked(options.dir):
            say(f"{options.dir}: {clause}.")
        return print_again(experiment, options.format, options.output, as_json=options.json)
    return _of_a_run(options)


def _stored(folder: Path) -> Loaded[Any] | None:
    """The answer of a search, a plan, a proof, a ranking, several tiers or a surface, where the folder has one."""
    from server_capacity.experiments.proof import folder as of_proof
    from server_capacity.planning import folder as of_plan
    from server_capacity.results import capacity_folder as of_capacity
    from server_capacity.results import ranking_folder as of_ranking
    from server_capacity.results import surface_folder as of_surface
    from server_capacity.results import tiers_folder as of_tiers

    kinds: tuple[tuple[Callable[[Path], bool], Callable[[Path], Loaded[Any]]], ...] = (
        (of_capacity.is_capacity, of_capacity.load),
        (of_plan.is_plan, of_plan.load),
        (of_proof.is_proof, of_proof.load),
        (of_ranking.is_ranking, of_ranking.load),
        (of_surface.is_surface, of_surface.load),
        (of_tiers.is_tiers, of_tiers.load),
    )
    return next((load(folder) for is_one, load in kinds if is_one(folder)), None)


def _searches(folder: Path, stored: Loaded[Any] | None) -> list[Path]:
    """The folders of the searches in it, where it has the answers of several."""
    from server_capacity.results import ranking_folder, surface_folder, tiers_folder
    from server_capacity.results.types.plan import PlanResult
    from server_capacity.results.types.ranking import RankingResult
    from server_capacity.results.types.surface import SurfaceResult
    from server_capacity.results.types.tiers import TiersResult

    match stored and stored.found:
        case TiersResult() as found:
            return tiers_folder.searches(folder, found)
        case SurfaceResult() as found:
            return surface_folder.searches(folder, found)
        case RankingResult() as found:
            return ranking_folder.searches(folder, found)
        case PlanResult():
            raise BenchmarkError(f"{folder}: is a plan, which has no runs.", "Give a search, or leave --format out.")
    return []


def _of_a_run(options: Namespace) -> int:
    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.stored_verdict import JUDGED_AGAIN, of_other_rules
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.aiperf.export import AiperfResult

    if RunDir(options.dir).is_of_the_original:
        return _of_the_original(RunDir(options.dir), options)
    run_dir = RunDir.find(options.dir)
    result = AiperfResult.load(run_dir.aiperf) or _cut_off(run_dir)
    wave = None if result is not None and run_dir.aiperf_alone else Wave.load(options.dir)
    say_reservations([] if wave is None else [wave])
    sources = sources_of(options.endpoint_config, wave.plan.server_limits if wave else (), afterwards=True)
    shaped = _is_shaped(options)
    if wave is not None and sources:
        options_of_wave = {"json": options.json or shaped, "quiet": False, "verbose": options.verbose}
        was_of_other_rules = bool(of_other_rules(wave.verdict))
        wave = print_with_metrics(wave, sources, options_of_wave)
        if was_of_other_rules:
            say(f"{options.dir}: {JUDGED_AGAIN}.")
    elif wave is not None and not options.json and not shaped:
        print_wave(wave, as_json=False, next_commands=next_commands(wave, vars(options)))
    if shaped:
        text = form_of(_the_wave(wave, run_dir), options.format, result)
        hand_out(text, options.output, options.format)
    elif result is not None:
        print_aiperf(wave, result, as_json=options.json)
    elif wave is not None and options.json:
        print_wave(wave, as_json=True)
    return worst_exit_code(OK if wave is None else wave.verdict.exit_code, OK if result is None else result.exit_code)


def report_parser() -> Parser:
    """Its flags, and its help."""
    parser = Parser(
        prog="benchmark report", description="Prints the report of a run again, or recovers a run that was interrupted."
    )
    of_what = "a run directory, or the folder of a search or a plan (default: the last one in .tmp)"
    parser.add_argument("dir", metavar="DIR", nargs="?", type=Path, help=of_what)
    parser.add_argument("--json", action="store_true", help="print summary.json instead of the report")
    again = "collect the server's metrics again for the time of the wave, and store them with the run"
    parser.add_argument("--endpoint-config", metavar="FILE", help=again)
    form = (
        "text, markdown for a pull request, html (a page), junit for a pipeline, csv (a row per run; DIR may hold many)"
    )
    parser.add_argument("--format", metavar="FORM", choices=FORMS, default=TEXT, help=form)
    parser.add_argument("--output", metavar="FILE", type=Path, help="write it to this file, which is overwritten")
    whole = "on a terminal, print the whole report; for a search, also the queueing model fitted to it"
    parser.add_argument("--verbose", action="store_true", help=whole)
    return parser


def _check(options: Namespace) -> None:
    """Refuse what has no meaning together."""
    problems = []
    if options.json and _is_shaped(options):
        problems.append("--json prints summary.json: leave --format and --output out, and redirect it with > FILE.")
    if options.format == CSV and options.endpoint_config:
        problems.append("--format csv has no column of a server's metrics: leave --endpoint-config out.")
    refuse(problems)


def _is_shaped(options: Namespace) -> bool:
    """Tells whether the report goes elsewhere than to a person at a terminal."""
    return options.format != TEXT or options.output is not None


def _the_wave(wave: Wave | None, run_dir: RunDir) -> Wave:
    if wave is None:
        what = f"{run_dir.path}: aiperf ran in it without a wave, and for such a run there is only the text report."
        raise BenchmarkError(what, "Leave --format and --output out.")
    return wave


def _of_the_original(run_dir: RunDir, options: Namespace) -> int:
    """Tells the measurements of its aiperf, which are all it has of today's; BenchmarkError where that has not run."""
    from inference_benchmarker.plan.plan import SUCCESS_THRESHOLD
    from inference_benchmarker.wave.run_dir import ORIGIN, of_the_original
    from server_capacity.aiperf.export import read_export

    export = read_export(run_dir.aiperf, SUCCESS_THRESHOLD, interrupted=False)
    if export is None or _is_shaped(options):
        raise of_the_original(run_dir.path)
    say(f"{run_dir.path} {ORIGIN} What its aiperf measured, judged by today's default target:")
    print_aiperf(None, export[0], as_json=options.json)
    return export[0].exit_code


def _again(stored: Loaded[Any], options: Namespace) -> int:
    """The answer of a search or a plan, as it was found."""
    from inference_benchmarker.data.digest import KEY, WITHOUT
    from inference_benchmarker.wave.provenance import not_checked
    from server_capacity.planning.folder import changed_since
    from server_capacity.results.text.capacity import to_text
    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.plan import PlanResult

    found, text, data = stored
    if options.verbose and isinstance(found, CapacityResult):
        text = to_text(found, str(options.dir), verbose=True)
    if KEY not in data:
        say(f"{options.dir}: {WITHOUT}.")
    changed = changed_since(found) if isinstance(found, PlanResult) else ()
    for clause in filter(None, (not_checked(options.dir, data), *changed)):
        say(f"{options.dir}: {clause}.")
    if options.json:
        print(json.dumps(data, indent=2), flush=True)
    else:
        hand_out(of_a_folder(text, options.format, options.dir), options.output, options.format)
    return int(found.exit_code)


def _cut_off(run_dir: RunDir) -> AiperfResult | None:
    """Reads what aiperf had done by the time it was cut off, if it was."""
    from inference_benchmarker.system.files import is_folder
    from inference_benchmarker.wave.reader import read_plan
    from server_capacity.aiperf.export import read_export

    if not is_folder(run_dir.aiperf):
        return None
    export = read_export(run_dir.aiperf, read_plan(run_dir).success_threshold, interrupted=True)
    return None if export is None else export[0]
