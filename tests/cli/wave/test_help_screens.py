"""``benchmark`` alone, ``--help`` and ``--help-all``: each has its place, and none names a flag that does not exist."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

from inference_benchmarker.cli import main
from inference_benchmarker.cli.dispatch import COMMANDS
from inference_benchmarker.cli.wave.help_screens import COMMANDS as LISTED
from inference_benchmarker.cli.wave.help_screens import FIRST_SCREEN, common_help
from inference_benchmarker.cli.wave.wave_flags import WAVE_FLAGS

ALL = {flag.flag: flag for flags in WAVE_FLAGS.values() for flag in flags}


def test_alone_it_says_what_it_is_then_five_commands_then_where_help_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    what = next(number for number, line in enumerate(lines) if "load tester" in line)
    commands = [number for number, line in enumerate(lines) if line.startswith("  benchmark ")]
    help_is = [number for number, line in enumerate(lines) if "--help" in line]
    assert len(commands) - len(help_is) == 5
    assert what < commands[0] < commands[4] < help_is[0]


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_shows_the_common_flags_by_task(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([flag])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 80
    tasks = [line.split(" (")[0].rstrip(":") for line in lines if line and not line.startswith(" ")]
    assert tasks[1:7] == ["the endpoint", "the load", "the limits", "the server's metrics", "the output", "commands"]


def test_the_common_flags_are_those_of_a_wave() -> None:
    shown = re.findall(r"^  (--[a-z-]+)(?: (\S.*?))?  ", common_help(), re.MULTILINE)
    assert len(shown) > 20
    assert [(flag, metavar or None) for flag, metavar in shown if flag != "--help-all"] == [
        (flag, ALL[flag].metavar) for flag, _ in shown if flag != "--help-all"
    ]


def test_every_flag_that_a_screen_mentions_exists() -> None:
    known = {*ALL, "--kubernetes", "--help", "--help-all", "--format", "--output"}
    assert set(re.findall(r"--[a-z][a-z-]+", FIRST_SCREEN + common_help())) <= known


def test_every_command_is_listed() -> None:
    assert {*re.findall(r"^  benchmark ([a-z]+)", LISTED, re.MULTILINE)} == {*COMMANDS, "plot"}


def test_help_all_shows_every_flag(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main(["--help-all"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert set(ALL) <= {*re.findall(r"--[a-z][a-z0-9-]+", out)}
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_the_help_of_a_command_fits_80_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with suppress(SystemExit):
        main([command, "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
