"""The live view on a terminal: whatever happens, what stays there is what was said, and the report."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.cli.live.screen import Screen
from tests.bench import ROOT
from tests.emulated import Emulated
from tests.person import Person

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inference_benchmarker.embedded.running import RunningEndpoint
    from tests.bench import Bench, Running

TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=90)
ACTS = st.one_of(st.lists(TEXTS, min_size=1, max_size=12), TEXTS.filter(str.strip))


class Written(Screen):
    """A screen on an emulated terminal."""

    def __init__(self, terminal: Emulated) -> None:
        self.terminal = terminal
        super().__init__(self, colours=False)  # type: ignore[arg-type]  # it writes to itself

    def size(self) -> tuple[int, int]:
        return self.terminal.width, self.terminal.height

    def write(self, text: str) -> None:
        self.terminal.write(text.replace("\n", "\r\n"))

    def flush(self) -> None:
        """Nothing is kept back."""


@given(st.integers(20, 80), st.integers(5, 30), st.lists(ACTS, max_size=8))
def test_what_was_said_stays_once_and_what_was_shown_does_not(width: int, height: int, acts: list[Any]) -> None:
    """A list of lines is shown, a text is said; how often either comes, and how high the terminal is."""
    screen = Written(Emulated(width, height))
    screen.write("$ benchmark\n")
    for act in acts:
        if isinstance(act, str):
            screen.print(act)
        else:
            screen.show([[(line, "")] for line in act])
            expected = [line if len(line) < width else line[: width - 2] + "…" for line in act[: height - 1]]
            shown = screen.terminal.lines[-1 - len(expected) : -1]
            assert [line.rstrip() for line in shown] == [line.rstrip() for line in expected]
    screen.clear()
    said = "".join(act for act in acts if isinstance(act, str))
    assert "".join(screen.terminal.lines).replace(" ", "") == f"$benchmark{said}".replace(" ", "")
    assert screen.terminal.cursor_shown


def resize(person: Person, width: int, height: int) -> None:
    fcntl.ioctl(person.slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


@pytest.fixture
def person() -> Iterator[Person]:
    made = Person()
    resize(made, 80, 40)
    yield made
    made.leave()


def start(bench: Bench, person: Person, endpoint: RunningEndpoint, **environment: str) -> Running:
    """A wave on the person's terminal with all that it prints."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), person.streams["stdin"])
    flags = ("--client-rps", 50, "--obs-time", 1.5, "--slo=p99<9s", "--slo=p50<1us")
    return bench.start(*flags, target=endpoint, streams=streams, environment=environment)


def left(person: Person) -> list[str]:
    """What stands on the terminal and in its scrollback."""
    return Emulated(80, 40).write(person.seen_since(0)).lines


@pytest.mark.process
def test_a_wave_leaves_its_report_alone_on_the_terminal(bench: Bench, person: Person) -> None:
    with bench.endpoint(service="none") as endpoint:
        running = start(bench, person, endpoint)
        person.see("Loading the endpoint's code: 0 of 1 worker is ready.")
        person.see("✓ p99<9s")
        resize(person, 60, 40)
        place = person.place
        running.finish()
    person.see("Run directory: ")
    assert re.match(r"LIMIT MISSED: |INVALID(?:: |, client-limited: )", left(person)[0])
    assert max(map(len, left(person))) < 80
    assert not [line for line in left(person) if re.search("running|Loading|so far", line)]
    *drawn, _ = person.seen_since(place).split("\x1b[J")[1:]
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", "".join(drawn)).splitlines()
    assert max(map(len, lines), default=0) < 60, "from the next time on that it is drawn"


@pytest.mark.process
def test_an_interrupt_in_the_first_half_second_leaves_one_word(tmp_path: Path, person: Person) -> None:
    command = ["setsid", "--ctty", sys.executable, "-m", "inference_benchmarker.cli", "--demo"]
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), person.streams["stdin"])
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, **streams) as running:
        os.close(person.streams["stdin"])
        person.see("Starting the embedded endpoint…")
        person.press("\x03")
        assert running.wait(60) == 130
    person.see("Interrupted.")
    assert [line.replace("^C", "") for line in left(person) if line] == ["Interrupted."]
    assert not list(tmp_path.glob(".tmp/*"))


@pytest.mark.process
@pytest.mark.slow
def test_a_terminal_without_the_signs_gets_signs_that_are_like_them(bench: Bench, person: Person) -> None:
    with bench.endpoint(service="none") as endpoint:
        running = start(bench, person, endpoint, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
        person.see("+ p99<9s")
        running.finish()
    person.see("Run directory: ")
    assert person.screen.isascii()
    assert "===" in person.screen
    assert "x p50<1us" in person.screen
