"""Text for a terminal: long lines go on at a space, and nothing of them is lost."""

from __future__ import annotations

import os
import pty
import sys
import termios

import pytest

from inference_benchmarker.cli.core.terminal import print_report
from inference_benchmarker.words.text import folded


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("VALID: all is well\n", "VALID: all is well\n"),
        ("VALID: one two three four five six", "VALID: one two three\n  four five six"),
        ("   ! late: one two three four", "   ! late: one two\n     three four"),
        ("   Rate:  10/s target, 10/s sent", "   Rate:  10/s target,\n          10/s sent"),
        ("    1.0s  +2 s  alarm was so fired", "    1.0s  +2 s\n      alarm was so\n      fired"),
        ("  1.0s  alarm AlarmHigh has fired", "  1.0s  alarm\n        AlarmHigh has\n        fired"),
        ("   a-path/that/has/no/space/at/all", "   a-path/that/has/no/space/at/all"),
        ("", ""),
    ],
)
def test_a_long_line_goes_on_below_its_last_cell(text: str, shown: str) -> None:
    assert folded(text, 22) == shown
    assert folded(text, 22).split() == text.split()
    assert folded(text, 200) == text


def test_prose_is_no_wider_than_is_easily_read_and_a_table_may_be() -> None:
    table = "   Client    CPU  CPU wait  loop delay p99  longest block" + " " * 60 + "connections  open files"
    assert folded(table, 199) == table
    assert folded(f"   worker  12%  34%  20 MiB  {'▅' * 80}", 199) == f"   worker  12%  34%  20 MiB  {'▅' * 80}"
    assert max(map(len, folded("   ! late: " + "word " * 40, 199).splitlines())) <= 100


def test_a_report_is_folded_on_a_terminal_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "   ! late: " + "word " * 20 + "\n"
    print_report(line)
    assert capsys.readouterr().out == line
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 60))
    with open(slave, "w", encoding="utf-8") as terminal:  # noqa: PTH123 - a descriptor has no path
        monkeypatch.setattr(sys, "stdout", terminal)
        print_report(line)
        shown = os.read(master, 1000).decode().splitlines()
    os.close(master)
    assert len(shown) == 2
    assert max(map(len, shown)) < 60
