"""``benchmark report``: print a run again, or finalise one that was cut off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.aiperf import print_aiperf
from inference_benchmarker.cli.arguments import Parser
from inference_benchmarker.cli.server_metrics import print_with_metrics, sources_of
from inference_benchmarker.cli.terminal import how_far, print_report, print_wave, say
from inference_benchmarker.exit_codes import OK, worst_exit_code
from inference_benchmarker.memory import give_back_large_blocks

if TYPE_CHECKING:
    from inference_benchmarker.wave.run_dir import RunDir
    from server_capacity.aiperf.export import AiperfResult


@how_far()
def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    options = report_parser().parse_args(arguments)
    give_back_large_blocks()
    from server_capacity.capacity import folder as of_capacity
    from server_capacity.plan import folder as of_plan
    from server_capacity.proof import folder as of_proof
    from server_capacity.variants import folder as of_ranking

    if of_capacity.is_capacity(options.dir):
        return _again(of_capacity.load(options.dir), as_json=options.json)
    if of_plan.is_plan(options.dir):
        return _again(of_plan.load(options.dir), as_json=options.json)
    if of_proof.is_proof(options.dir):
        return _again(of_proof.load(options.dir), as_json=options.json)
    if of_ranking.is_ranking(options.dir):
        return _again(of_ranking.load(options.dir), as_json=options.json)
    from inference_benchmarker.wave import store
    from inference_benchmarker.wave.run_dir import RunDir
    from server_capacity.aiperf.export import AiperfResult

    if RunDir(options.dir).is_of_the_original:
        return _of_the_original(RunDir(options.dir), as_json=options.json)
    run_dir = RunDir.find(options.dir)
    result = AiperfResult.load(run_dir.aiperf) or _cut_off(run_dir)
    wave = None if result is not None and not run_dir.has_wave else store.load(options.dir)
    sources = sources_of(options.endpoint_config, wave.plan.server_limits if wave else (), afterwards=True)
    if wave is not None and sources:
        wave = print_with_metrics(wave, sources, {"json": options.json, "quiet": False})
    elif wave is not None and not options.json:
        print_wave(wave, as_json=False)
    if result is not None:
        print_aiperf(wave, result, as_json=options.json)
    elif wave is not None and options.json:
        print_wave(wave, as_json=True)
    return worst_exit_code(OK if wave is None else wave.verdict.exit_code, OK if result is None else result.exit_code)


def report_parser() -> Parser:
    """Its flags, and its help."""
    parser = Parser(prog="benchmark report", description="Print a run again; finalise one that was cut off.")
    parser.add_argument("dir", metavar="DIR", type=Path, help="a run directory, or the folder of a search or a plan")
    parser.add_argument("--json", action="store_true", help="print summary.json instead of the report")
    again = "ask for the server's metrics of the wave's window once more, and store them with it"
    parser.add_argument("--endpoint-config", metavar="FILE", help=again)
    return parser


def _of_the_original(run_dir: RunDir, *, as_json: bool) -> int:
    """Tells the measurements of its aiperf, which are all it has of today's; BenchmarkError where that has not run."""
    from inference_benchmarker.plan.plan import SUCCESS_THRESHOLD
    from inference_benchmarker.wave.run_dir import ORIGIN, of_the_original
    from server_capacity.aiperf.export import read_export

    export = read_export(run_dir.aiperf, SUCCESS_THRESHOLD, interrupted=False)
    if export is None:
        raise of_the_original(run_dir.path)
    say(f"{run_dir.path} {ORIGIN} What its aiperf measured is told by today's default target:")
    print_aiperf(None, export[0], as_json=as_json)
    return export[0].exit_code


def _again(stored: tuple[dict[str, Any], str], *, as_json: bool) -> int:
    """The answer of a search or a plan, as it was found."""
    data, text = stored
    if as_json:
        print(json.dumps(data, indent=2), flush=True)
    else:
        print_report(text)
    return int(data["exit_code"])


def _cut_off(run_dir: RunDir) -> AiperfResult | None:
    """Reads what aiperf had done by the time it was cut off, if it was."""
    from inference_benchmarker.files import is_folder
    from inference_benchmarker.wave.store import read_plan
    from server_capacity.aiperf.export import read_export

    if not is_folder(run_dir.aiperf):
        return None
    export = read_export(run_dir.aiperf, read_plan(run_dir).success_threshold, interrupted=True)
    return None if export is None else export[0]
