"""Interrupts that come while something is asked that may take long: none is lost, and none goes further."""

from __future__ import annotations

import os
import signal
import time

import pytest

from inference_benchmarker.engine.processes.interrupts import counting_interrupts, until_interrupted


def press(times: int = 1) -> None:
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)


def test_what_was_found_is_returned_and_later_interrupts_are_counted_again() -> None:
    with counting_interrupts() as interrupts:
        assert until_interrupted(lambda: [1, 2]) == [1, 2]
        press(3)
        assert interrupts.count == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_what_is_asked_with_nothing(number: int) -> None:
    def wait() -> list[int]:
        os.kill(os.getpid(), number)
        time.sleep(60)
        return [1]

    with counting_interrupts() as interrupts:
        assert until_interrupted(wait) == []
        press()
        assert interrupts.count == 1


def test_who_ends_its_waiting_by_itself_keeps_what_it_has() -> None:
    def wait() -> list[int]:
        try:
            press()
            time.sleep(60)
        except KeyboardInterrupt:
            return [1]
        return []

    with counting_interrupts():
        assert until_interrupted(wait) == [1]


def test_an_outer_count_is_the_inner_one() -> None:
    with counting_interrupts() as outer:
        press()
        with counting_interrupts() as inner:
            press()
        assert inner is outer
        assert outer.count == 2
