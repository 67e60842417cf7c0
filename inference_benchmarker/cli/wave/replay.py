"""``benchmark replay``: describe a recording before it is sent, or write it as stages."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.flags import Flag, parse_path, read_flags
from inference_benchmarker.cli.core.terminal import print_result
from inference_benchmarker.cli.wave.wave_flags import REPLAY_FLAGS
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.exit_codes import OK
from inference_benchmarker.words.text import wrapped

if TYPE_CHECKING:
    from decimal import Decimal

    from inference_benchmarker.plan.recorded import Recorded
    from inference_benchmarker.plan.replay import Replay
    from inference_benchmarker.recording.profile import Profile

_DESCRIPTION = "Describes the rows, rates, bursts and conversations of a recording, before you send it with --replay."
_FLAGS = {
    "recording": REPLAY_FLAGS,
    "output": [
        Flag("--as-stages", "TIME", "print the mean rate over each TIME (60s, 5m) in the format of --stages"),
        Flag("--json", None, "print the description as JSON"),
    ],
}


@dataclass(frozen=True, slots=True)
class _Described:
    """The arrivals of a recording, and its conversations: each None where it has none."""

    profile: Profile | None
    recorded: Recorded | None

    def to_json(self) -> dict[str, Any]:
        """Both as one object."""
        fields = {} if self.profile is None else self.profile.to_json()
        return fields if self.recorded is None else {**fields, "conversations": asdict(self.recorded)}

    def to_text(self) -> str:
        """Both for people."""
        texts = [] if self.profile is None else [self.profile.to_text().rstrip("\n")]
        if self.recorded is not None:
            when = ["no times were recorded: send it with --conversations"] if self.profile is None else []
            lines = [self.recorded.found, self.recorded.lacking, *when]
            texts += ["", "   Conversations:", *(wrapped("; ".join(filter(None, lines)), 80, "   ", "   "))]
        return "\n".join(texts).lstrip("\n") + "\n"


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    parser = replay_parser()
    given = parser.parse_args(arguments)
    from inference_benchmarker.plan.replay import Replay
    from inference_benchmarker.recording.profile import parse_step

    problems: list[str] = []
    options = vars(given)
    values = read_flags(REPLAY_FLAGS, options, problems).of(Replay)
    replay = Replay(parse_path("FILE", given.file), **values)
    refuse([*problems, *replay.problems()])
    step = None if given.as_stages is None else parse_step(given.as_stages)
    found = _described(replay, step, has_flags=bool(values))
    if step is None or found.profile is None:
        print_result(found, as_json=given.json)
    else:
        print(found.profile.stages())
    return OK


def _described(replay: Replay, step: Decimal | None, *, has_flags: bool) -> _Described:
    """The arrivals and conversations of a recording; BenchmarkError for one that has neither."""
    from inference_benchmarker.recording.profile import profile

    recorded = None if step is not None else _recorded(replay.file)
    try:
        return _Described(profile(replay, step), recorded)
    except BenchmarkError:
        if recorded is None or has_flags:
            raise
        return _Described(None, recorded)


def _recorded(file: Path) -> Recorded | None:
    from inference_benchmarker.plan.recorded import Conversations
    from inference_benchmarker.recording.conversations.reading import are_in, read_conversations

    if not are_in(file):
        return None
    with TemporaryDirectory() as folder:
        return read_conversations(Conversations(file), None, Path(folder)).recorded


def replay_parser() -> Parser:
    """Its flags, and its help."""
    usage = "benchmark replay FILE [options]"
    parser = command_parser("benchmark replay", {}, usage=usage, description=_DESCRIPTION)
    parser.add_argument("file", metavar="FILE", help="CSV, JSON lines, parquet, an access log or an LLM trace")
    parser.add_flags(_FLAGS)
    return parser
