"""The keys of --interactive: what each does, what is said, and that the terminal comes back as it was."""

from __future__ import annotations

import os
import pty
import select
import signal
import termios
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli.live.key_pilot import MEANING, MERGED_NS, KeyPilot, rounded
from inference_benchmarker.cli.live.keys import Keys
from inference_benchmarker.engine.pilot import End, Rate
from inference_benchmarker.plan.load import MAX_STAGES
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator

STATE = SpoolState([], 1)


class Person:
    """Presses keys at instants and reads what is shown."""

    def __init__(self, rate: str = "100") -> None:
        self.keys = ""
        self.shown: list[str] = []
        self.pilot = KeyPilot(self._press, Decimal(rate), self.shown.append)

    def _press(self) -> str:
        keys, self.keys = self.keys, ""
        return keys

    def at(self, seconds: float, keys: str = "") -> list[str]:
        """The commands that follow."""
        self.keys = keys
        return [order.command for order in self.pilot.orders(STATE, int(seconds * NS))]


@pytest.mark.parametrize(
    ("rate", "key", "expected"),
    [
        ("100", "+", "110"),
        ("100", "=", "110"),
        ("110", "-", "100"),
        ("100", "_", "90.9"),
        ("100", "2", "200"),
        ("99", "/", "49.5"),
        ("333.333", "+", "367"),
        ("0.5", "/", "0.25"),
        ("0.000001", "+", "0.000001"),
        ("999999", "2", "1000000"),
    ],
)
def test_a_key_changes_the_rate_at_once(rate: str, key: str, expected: str) -> None:
    person = Person(rate)
    orders = person.at(1, key)
    assert orders == ([] if expected == rate else [f"rate {Decimal(expected)}"])
    assert person.shown[-1].startswith(f"Target {Decimal(expected):,f}/s. ")


@pytest.mark.parametrize("first", [1, 7, 100, 2500])
def test_minus_takes_back_what_plus_did(first: int) -> None:
    rates = [Decimal(first)]
    for _ in range(12):
        rates.append(rounded(rates[-1] * Decimal("1.1")))
    back = rates[-1]
    for rate in reversed(rates[:-1]):
        back = rounded(back / Decimal("1.1"))
        assert abs(back / rate - 1) < Decimal("0.01")


def test_keys_within_fifty_milliseconds_are_one_change() -> None:
    person = Person()
    assert person.at(1, "++") == ["rate 121"]
    assert person.at(1.02, "+") == []
    assert person.shown[-1].startswith("Target 133/s"), "but each is answered"
    assert person.at(1.04, "+") == []
    assert person.at(1 + MERGED_NS / NS) == ["rate 146"]
    assert person.at(2) == []
    assert person.at(3, "+-") == []


def test_keys_before_the_start_hold_from_the_start_on() -> None:
    person = Person()
    assert person.at(-0.5, "2") == []
    assert person.shown[-1] == "Target 200/s. It applies from the start of the wave."
    assert person.at(-0.01, "+") == []
    assert person.at(0) == ["rate 220"]


def test_q_ends_the_wave_and_nothing_after_it_counts() -> None:
    person = Person()
    assert person.at(1, "q2") == ["end"]
    assert person.at(9, "2qq") == []
    assert person.shown[-1] == "Ending: waiting for requests in flight."
    assert Person().at(-1, "Q") == ["end"]


def test_a_key_that_does_nothing_is_answered_with_the_reason_for_a_while() -> None:
    person = Person("1000000")
    for key, said in (
        ("x", "x has no meaning here; keys are + - 2 / q."),
        ("\0", "That has no meaning here"),
        ("+", "This is the maximum."),
    ):
        assert person.at(1, key) == []
        assert said in person.shown[-1]
    person.at(7)
    assert person.shown[-1] == f"Target 1,000,000/s. {MEANING}"
    least = Person("0.000001")
    assert least.at(1, "/") == []
    assert "This is the minimum." in least.shown[-1]


def test_beyond_the_most_stages_a_key_is_answered_with_the_reason() -> None:
    person = Person()
    changes = [person.at(second, "+-"[second % 2]) for second in range(MAX_STAGES)]
    assert sum(map(len, changes)) == MAX_STAGES - 1
    assert "It was changed 999 times, which is the limit." in person.shown[-1]


def test_a_line_that_cannot_be_shown_loses_nothing() -> None:
    def fail(_: str) -> None:
        raise OSError

    pilot = KeyPilot(lambda: "2", Decimal(1), fail)
    assert pilot.orders(STATE, 0) == [Rate(Decimal(2))]
    assert KeyPilot(lambda: "q", Decimal(1), fail).orders(STATE, 0) == [End()]


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    master, slave = pty.openpty()
    yield master, slave
    for descriptor in (master, slave):
        os.close(descriptor)


def wait_for(slave: int) -> bool:
    """Until what was pressed has come."""
    return bool(select.select([slave], [], [], 10)[0])


class TestTerminal:
    def test_keys_come_one_by_one_without_echo_and_it_is_as_it_was_afterwards(self, terminal: tuple[int, int]) -> None:
        master, slave = terminal
        before = termios.tcgetattr(slave)
        with suppress(ZeroDivisionError), Keys(slave) as keys:
            assert keys.pressed() == ""
            os.write(master, b"+q")
            assert wait_for(slave)
            assert keys.pressed() == "+q"
            assert not termios.tcgetattr(slave)[3] & (termios.ECHO | termios.ICANON)
            assert termios.tcgetattr(slave)[3] & termios.ISIG, "Ctrl-C stays Ctrl-C"
            raise ZeroDivisionError
        assert termios.tcgetattr(slave) == before

    @pytest.mark.parametrize(
        ("parts", "expected"),
        [
            ([b"\x1b[2~+"], ["\0+"]),
            ([b"\x1b[A", b"2"], ["\0", "2"]),
            ([b"\x1b", b"[2~"], ["", "\0"]),
            ([b"\x1bOP\x1b[1;5C-"], ["\0\0-"]),
            ([b"\x1b", b"+"], ["", "\x1b+"]),
            ([b"\xff\xc3\xa9"], ["\ufffd\xe9"]),
        ],
    )
    def test_an_arrow_or_a_function_key_presses_none_of_its_characters(
        self, terminal: tuple[int, int], parts: list[bytes], expected: list[str]
    ) -> None:
        master, slave = terminal
        found = []
        with Keys(slave) as keys:
            for part in parts:
                os.write(master, part)
                assert wait_for(slave)
                found.append(keys.pressed())
        assert found == expected

    def test_one_that_goes_away_ends_the_wave_for_nobody_else_could(self) -> None:
        master, slave = pty.openpty()
        with Keys(slave) as keys:
            pilot = KeyPilot(keys.pressed, Decimal(5), lambda _: None)
            assert pilot.orders(STATE, 0) == []
            os.close(master)
            assert [pilot.orders(STATE, second * NS) for second in range(3)] == [[End()], [], []]
            with pytest.raises(EOFError):
                keys.pressed()
        os.close(slave)

    def test_what_was_pressed_too_late_is_not_left_for_the_shell(self, terminal: tuple[int, int]) -> None:
        master, slave = terminal
        with Keys(slave):
            os.write(master, b"rm -rf\n")
            assert wait_for(slave)
        os.set_blocking(slave, False)
        with pytest.raises(BlockingIOError):
            os.read(slave, 100)

    def test_a_job_that_is_suspended_gives_it_back_and_takes_it_again(
        self, terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _, slave = terminal
        before, suspended = termios.tcgetattr(slave), signal.getsignal(signal.SIGTSTP)
        stopped: list[tuple[bool, object]] = []

        def stop(_pid: int, number: int) -> None:
            stopped.append((termios.tcgetattr(slave) == before, signal.getsignal(number)))

        with Keys(slave) as keys:
            with monkeypatch.context() as patched:
                patched.setattr(os, "kill", stop)
                signal.raise_signal(signal.SIGTSTP)
            assert stopped == [(True, signal.SIG_DFL)]
            with monkeypatch.context() as patched:
                patched.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + 1)
                assert keys.pressed() == "", "in the background"
                assert termios.tcgetattr(slave) == before
            assert keys.pressed() == ""
            assert not termios.tcgetattr(slave)[3] & termios.ICANON
        assert [termios.tcgetattr(slave), signal.getsignal(signal.SIGTSTP)] == [before, suspended]
