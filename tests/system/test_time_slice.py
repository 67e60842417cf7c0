"""A short time slice is asked for without a change of priority or scheduling class; and a process gives way."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

SHOWN = """
import os, sys
from inference_benchmarker.system.time_slice import ask_for_short_slices, slice_ns
if sys.argv[1] == "nice":
    os.nice(3)
if sys.argv[1] == "batch":
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
before = slice_ns()
taken = ask_for_short_slices()
print(int(taken), before, slice_ns(), os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0))
"""
KERNEL = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2] if part.isdecimal())

pytestmark = pytest.mark.skipif(
    KERNEL < (6, 12) or platform.machine() not in ("x86_64", "aarch64"), reason="the kernel has no slices of a process"
)


def shown(how: str) -> list[int]:
    command = [sys.executable, "-c", SHOWN, how]
    return list(map(int, subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()))


@pytest.mark.parametrize(("how", "more_nice"), [("plain", 0), ("nice", 3)])
def test_the_slice_is_short_and_the_priority_as_before(how: str, more_nice: int) -> None:
    taken, _, after, nice, policy = shown(how)
    if not taken:
        pytest.skip("this host allows no process to ask for a slice")
    assert after == 100_000
    assert (nice, policy) == (min(os.getpriority(os.PRIO_PROCESS, 0) + more_nice, 19), os.SCHED_OTHER)


def test_a_process_of_another_class_is_left_as_it_is() -> None:
    taken, before, after, _, policy = shown("batch")
    assert (taken, before, policy) == (0, after, os.SCHED_BATCH)


GIVING_WAY = """
import os
from inference_benchmarker.system.time_slice import give_way
print(int(give_way()), os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0), int(give_way()))
"""


def test_a_process_gives_way_once_and_keeps_its_priority() -> None:
    done = subprocess.run([sys.executable, "-c", GIVING_WAY], stdout=subprocess.PIPE, text=True, check=True)
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    assert list(map(int, done.stdout.split())) == [1, os.SCHED_BATCH, nice, 0]
