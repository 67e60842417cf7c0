"""The recording of a terminal: what a program writes is what a screen shows."""

from __future__ import annotations

import re
import sys
from html import unescape

from tests.terminal_recording import ROWS, Terminal, recorded, to_svg


def shown(*written: str) -> list[str]:
    terminal = Terminal()
    for each in written:
        terminal.feed(each)
    return ["".join(text for text, _ in row).rstrip() for row in terminal.screen()]


def test_lines_are_overwritten_and_erased() -> None:
    assert shown("one\r\ntwo\r\x1b[Kt")[:2] == ["one", "t"]
    assert shown("one\r\ntwo\r\n\x1b[2A\x1b[Jnew")[:2] == ["new", ""]
    assert shown("abc\rX")[0] == "Xbc"


def test_the_screen_moves_up() -> None:
    lines = shown(*(f"{number}\r\n" for number in range(30)))
    assert (len(lines), lines[0], lines[-2]) == (ROWS, "7", "29")


def test_styles_last_until_they_are_reset() -> None:
    terminal = Terminal()
    terminal.feed("\x1b[1;32mVALID\x1b[0m: done")
    assert [run for run in terminal.screen()[0] if run[0]] == [("VALID", {"1", "32"}), (": done", frozenset())]


def test_a_command_becomes_an_svg_whose_last_screen_is_its_last() -> None:
    program = "import sys, time; print('first', flush=True); time.sleep(0.4); print('\\x1b[1;31mlast & least\\x1b[0m')"
    frames, reported = recorded([sys.executable, "-c", program], "a command")
    groups = re.findall(r"<g [^>]*>(.*?)</g>", to_svg(frames))
    texts = [unescape(re.sub("<[^>]*>", "", group)) for group in groups]
    assert "last & least" in reported
    assert "last" not in texts[0]
    assert texts[-1] == "$ a commandfirstlast & least"
