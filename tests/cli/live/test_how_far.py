"""How far a long computation is: a line of a terminal, and only there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli.core import terminal
from inference_benchmarker.cli.core.terminal import how_far
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.system.progress import listening, tell
from inference_benchmarker.wave.wave import Wave
from tests.parts import in_parts
from tests.waves import spooled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RECORDS = Records.of(RequestRecord(index, 0, index, index, index + 5) for index in range(10))


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A terminal of 20 columns, and a clock that stands still until it is set."""
    monkeypatch.setattr(terminal, "_width", lambda _: 20)

    def be(seconds: float) -> None:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        monkeypatch.setattr(terminal, "monotonic", lambda: seconds)

    return be


def test_what_goes_through_records_says_how_far_it_is() -> None:
    reported: list[tuple[str, int, int]] = []
    with listening(lambda *what: reported.append(what)):
        for _ in in_parts(RECORDS, 4).between(1, 10).parts("due"):
            pass
        next(in_parts(RECORDS, 4).parts("due")).int("due")  # and is given up
    whole = "Going through 10 requests"
    assert reported == [
        *(("Going through 9 requests", done, 9) for done in (3, 7, 9, 9)),
        (whole, 10, 10),
    ]
    tell("nobody listens", 1, 2)
    assert len(reported) == 5


def test_a_spool_and_a_file_of_requests_say_how_far_they_are_read(tmp_path: Path) -> None:
    run_dir = spooled(tmp_path)
    for what in ("Reading what was reported", "Checking 20 requests"):
        reported: list[tuple[str, int, int]] = []
        with listening(lambda *what, reported=reported: reported.append(what)):
            Wave.load(run_dir.path)
        assert {name for name, _, _ in reported} == {what}
        assert all(0 <= done <= of for _, done, of in reported)
        assert reported[-1][1] == reported[-1][2]


def test_nothing_is_said_of_what_is_quick_then_the_line_is_written_again_and_again(
    now: Callable[[float], None], capsys: pytest.CaptureFixture[str]
) -> None:
    now(100)
    with how_far():
        tell("Going through it", 1, 10)
        now(101.9)
        tell("Going through it", 2, 10)
        assert capsys.readouterr().err == ""
        now(102)
        tell("Going through it", 3, 10)
        now(102.1)
        tell("Going through it", 4, 10)
        now(102.3)
        tell("Going through it", 5, 10)
        tell("Going through it", 10, 10)
        assert capsys.readouterr().err.split("\r\x1b[K") == ["", "Going through it: 3", "Going through it: 5", ""]


def test_the_line_is_empty_after_an_interrupt(now: Callable[[float], None], capsys: pytest.CaptureFixture[str]) -> None:
    @how_far()
    def interrupted() -> None:
        tell("Reading", 1, 10)
        now(103)
        tell("Reading", 2, 10)
        raise KeyboardInterrupt

    now(100)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert capsys.readouterr().err == "\r\x1b[KReading: 20%\r\x1b[K"


def test_elsewhere_and_where_it_is_unwanted_nothing_is_said(
    now: Callable[[float], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for quiet, is_terminal in ((True, True), (False, False)):
        now(100)
        monkeypatch.setattr(sys.stderr, "isatty", lambda found=is_terminal: found)
        with how_far(quiet=quiet):
            tell("Reading", 1, 10)
            monkeypatch.setattr(terminal, "monotonic", lambda: 103)
            tell("Reading", 2, 10)
    assert capsys.readouterr().err == ""
