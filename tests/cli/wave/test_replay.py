"""``benchmark replay`` and the flags of a recording, as users type them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.cli import main
from inference_benchmarker.cli.wave.wave import wave_options, wave_parser
from inference_benchmarker.cli.wave.wave_plan import make_plan
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import BAD_INPUT, OK
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.system.packaged import demo_factories
from tests.recordings import csv_of

if TYPE_CHECKING:
    from pathlib import Path


FILE = str(demo_factories(chat=False))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return csv_of(tmp_path / "trace.csv", ["0.125", "0.500", "1.250", "61.000"])


def problems_of(*arguments: str) -> str:
    with pytest.raises(BenchmarkError) as reported:
        make_plan(*wave_options(wave_parser(), ["--factories-file", FILE, *arguments]))
    return str(reported.value)


def test_a_recording_is_described(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(file)]) == OK
    text = capsys.readouterr().out
    assert "CSV, timestamp in seconds since its beginning" in text
    assert "Rows:        4 over 60.9 s" in text
    assert main(["replay", str(file), "--json"]) == OK
    fields = json.loads(capsys.readouterr().out)
    assert (fields["rows"], fields["peak_rps"], fields["peak_minute"]) == (4, 2, 3)


def test_conversations_are_described_with_their_times_and_without_any(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [{"role": "user", "content": "a b c"}, {"role": "assistant", "content": "d"}]
    rows: dict[str, list[Any]] = {
        "talks": [{"messages": said * 2}] * 3 + [{"messages": 7}],
        "trace": [
            {"timestamp": 50 * at, "input_length": 520, "output_length": 2, "hash_ids": [1, at]} for at in range(4)
        ],
    }
    found: dict[str, Any] = {}
    for name, some in rows.items():
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in some), encoding="utf-8")
        assert main(["replay", str(file)]) == OK
        found[name] = " ".join(capsys.readouterr().out.split())
        assert main(["replay", str(file), "--json"]) == OK
        found[f"{name} in JSON"] = json.loads(capsys.readouterr().out)
    assert "OpenAI messages, 3 conversations with 6 turns; 1 line without a conversation" in found["talks"]
    assert "no times were recorded: send it with --conversations" in found["talks"]
    assert found["talks in JSON"].keys() == {"conversations"}
    assert "Rows: 4 over 0.15 s" in found["trace"] or "Rows: 4 over 150 ms" in found["trace"]
    assert "Mooncake's trace, 4 conversations with 4 turns" in found["trace"]
    assert (found["trace in JSON"]["rows"], found["trace in JSON"]["conversations"]["turns"]) == (4, 4)
    assert main(["replay", str(tmp_path / "talks.jsonl"), "--as-stages", "60s"]) == BAD_INPUT
    assert "no column has a usual name" in capsys.readouterr().err


def test_a_recording_as_stages_is_what_the_flag_takes(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(file), "--as-stages", "60s", "--window", "+0s..+2m"]) == OK
    text = capsys.readouterr().out.strip()
    options, problems = wave_options(wave_parser(), ["--factories-file", FILE, "--stages", text])
    load = make_plan(options, problems).load
    assert isinstance(load, OpenLoop)
    assert load.stages == (Stage.parse("0.05:60s"), Stage.parse("0.016666667:60s"))


def test_the_flags_make_a_plan(file: Path, tmp_path: Path) -> None:
    config = tmp_path / "wave.toml"
    config.write_text(
        f'replay = "{file}"\nspeed = 1.5\nreplay-column = "timestamp:s"\nobs-time = 9\n', encoding="utf-8"
    )
    for arguments in (
        ["--replay", str(file), "--speed", "1.5", "--replay-column", "timestamp:s"],
        ["--config", str(config), "--replay", str(file)],
    ):
        options, problems = wave_options(wave_parser(), ["--factories-file", FILE, *arguments])
        load = make_plan(options, problems).load
        assert isinstance(load, OpenLoop)
        assert load.replay is not None
        assert (load.replay.file, str(load.replay.speed), load.replay.column) == (file, "1.5", "timestamp:s")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--client-rps", "5"], "Give either --replay or --client-rps, not both."),
        (["--obs-time", "5"], "Give either --replay or --obs-time, not both."),
        (["--stages", "5:5s"], "Give either --replay or --stages, not both."),
        (["--concurrency", "5"], "Give either --replay or --concurrency, not both."),
        (["--arrivals", "poisson"], "Give either --replay or --arrivals, not both."),
        (["--warmup", "2"], "leave --warmup out"),
        (["--speed", "0"], "--speed must be from 0.001 to 1,000, not 0."),
        (["--speed", "fast"], "--speed must be a number, not 'fast'."),
        (["--window", "noon"], "--window: 'noon' is not a part of a recording."),
        (["--num-requests", "0"], "--num-requests must be from 1"),
    ],
)
def test_what_contradicts_a_recording_is_bad_input(file: Path, arguments: list[str], expected: str) -> None:
    assert problems_of("--replay", str(file), *arguments).count("\n") == 0
    assert expected in problems_of("--replay", str(file), *arguments)


def test_flags_of_a_recording_need_one(file: Path) -> None:
    reported = problems_of("--client-rps", "5", "--obs-time", "1", "--speed", "2", "--window", "+1s..+2s")
    assert reported == "--speed is for --replay.\n--window is for --replay."
    assert problems_of("--replay", str(file.parent / "no.csv")).endswith("no.csv: there is no such file.")


def test_aiperf_cannot_follow_a_recording(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--demo", "--replay", str(file), "--aiperf"]) == BAD_INPUT
    assert "aiperf has one rate: give --client-rps instead of --replay" in capsys.readouterr().err
