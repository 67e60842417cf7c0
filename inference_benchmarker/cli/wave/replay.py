"""``benchmark replay``: describe a recording before it is sent, or write it as stages."""

from __future__ import annotations

from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.flags import Flag, parse_path, read_flags
from inference_benchmarker.cli.core.terminal import print_result
from inference_benchmarker.cli.wave.wave_flags import REPLAY_FLAGS
from inference_benchmarker.errors import refuse
from inference_benchmarker.exit_codes import OK

_DESCRIPTION = "Describes a recording before a wave with --replay sends it: its rows, rates and bursts."
_FLAGS = {
    "recording": REPLAY_FLAGS,
    "output": [
        Flag("--as-stages", "TIME", "print its rate over each TIME (60s, 5m) as a --stages text"),
        Flag("--json", None, "print the description as JSON"),
    ],
}


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    parser = replay_parser()
    given = parser.parse_args(arguments)
    from inference_benchmarker.plan.replay import Replay
    from inference_benchmarker.recording.profile import parse_step, profile

    problems: list[str] = []
    options = vars(given)
    values = read_flags(REPLAY_FLAGS, options, problems).of(Replay)
    replay = Replay(parse_path("FILE", given.file), **values)
    refuse([*problems, *replay.problems()])
    step = None if given.as_stages is None else parse_step(given.as_stages)
    found = profile(replay, step)
    if step is None:
        print_result(found, as_json=given.json)
    else:
        print(found.stages())
    return OK


def replay_parser() -> Parser:
    """Its flags, and its help."""
    usage = "benchmark replay FILE [options]"
    parser = command_parser("benchmark replay", {}, usage=usage, description=_DESCRIPTION)
    parser.add_argument("file", metavar="FILE", help="CSV, JSON lines, parquet, an access log or an LLM trace")
    parser.add_flags(_FLAGS)
    return parser
