"""Kills at random instants: an endpoint's scaling is suspended by a program that is killed, or its keeper, or both.

Afterwards the scaling must be as it was before: by itself where the keeper or the program lived on, and by
``benchmark endpoints clean`` where nobody did. Half of the instants are drawn over the program's life, most of which is
its start, the others from the moment on at which the undo is on disk.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from server_capacity.provisioning.cleanup_file import NAME
from tests.performance.figures import Figure, Program, below, exactly
from tests.scaled import BEFORE, PATIENCE_S, SUSPENDED, Scaled, await_end, keeper_of, register, scaled, search

if TYPE_CHECKING:
    from collections.abc import Callable

    import psutil

    Killing = Callable[[subprocess.Popen[bytes], psutil.Process | None], None]

SECONDS_A_KILL = 2.0
AFTER_UNDO_S = 1.0
"""So long after its undo is on disk the change may be killed, which is being made then."""

ORDERLY = 5
"""So many that nobody kills are timed first."""

BEYOND = 1.3
"""The last instant, as a multiple of the time until scaling is suspended."""


@dataclass
class Counts:
    """What the kills met, and left."""

    kills: int = 0
    held: int = 0
    suspended: int = 0
    left: int = 0
    cleaned: int = 0
    left_after_cleaning: int = 0
    seconds: list[float] = field(default_factory=list)


def figures(seconds: float) -> list[Figure]:
    """As many kills as take about so long, a seed for all."""
    chance, counts = random.Random(20), Counts()
    with scaled() as one, tempfile.TemporaryDirectory() as folder:
        orderly = [_orderly(one, Path(folder) / f"orderly{number}") for number in range(ORDERLY)]
        until_suspended = median(first for first, _ in orderly)
        for number in range(round(seconds / SECONDS_A_KILL)):
            killing = KILLINGS[number // 2 % len(KILLINGS)]
            after_undo = number % 2 == 1
            at = chance.uniform(0, AFTER_UNDO_S if after_undo else BEYOND * until_suspended)
            _one(one, Path(folder) / f"{number}", killing, counts, at=at, after_undo=after_undo)
    return [
        Figure("kills", counts.kills),
        Figure("of them while an undo was on disk", counts.held),
        Figure("of them while scaling was suspended", counts.suspended),
        Figure("left suspended though command or keeper lived", counts.left, "", exactly(0)),
        Figure("both were killed, and endpoints clean put back", counts.cleaned),
        Figure("left suspended after endpoints clean", counts.left_after_cleaning, "", exactly(0)),
        Figure("put back after the kill, longest", max(counts.seconds), "s", below(PATIENCE_S)),
        Figure("program start to suspended, median", until_suspended, "s"),
        Figure("end of the search to put back, median", median(last for _, last in orderly), "s"),
    ]


def _orderly(one: Scaled, folder: Path) -> tuple[float, float]:
    """The seconds from a program's start until scaling is suspended, and from its end until it is put back."""
    folder.mkdir()
    begin = time.monotonic()
    with search(one.endpoint, folder) as program:
        assert program.stdout is not None
        program.stdout.readline()
        suspended = time.monotonic()
        program.send_signal(signal.SIGINT)
        program.wait()
        return suspended - begin, time.monotonic() - suspended


def _one(one: Scaled, folder: Path, killing: Killing, counts: Counts, *, at: float, after_undo: bool) -> None:
    """One program, killed so many seconds after its start, or after its undo is on disk."""
    folder.mkdir()
    register(one.scaling)
    begin = time.monotonic()
    with search(one.endpoint, folder) as program:
        while after_undo and not (folder / NAME).exists():
            time.sleep(0.002)
            begin = time.monotonic()
        time.sleep(max(0.0, begin + at - time.monotonic()))
        counts.kills += 1
        counts.held += (folder / NAME).exists()
        counts.suspended += one.state == SUSPENDED
        keeper = keeper_of(program)
        killed = time.monotonic()
        killing(program, keeper)
        program.wait()
        await_end(keeper)
    counts.seconds.append(time.monotonic() - killed)
    if one.state == BEFORE:
        return
    if killing is _both:
        counts.cleaned += 1
        command = [sys.executable, "-m", "inference_benchmarker.cli", "endpoints", "clean", str(folder)]
        done = subprocess.run(command, env={**os.environ, **one.endpoint.aws_environment}, check=False)
        counts.left_after_cleaning += done.returncode != 0 or one.state != BEFORE
    else:
        counts.left += 1


def _command(program: subprocess.Popen[bytes], _: psutil.Process | None) -> None:
    program.kill()


def _keeper(program: subprocess.Popen[bytes], keeper: psutil.Process | None) -> None:
    """Ctrl-C ends the program, which puts back what the keeper held."""
    if keeper is not None:
        keeper.kill()
    program.send_signal(signal.SIGINT)


def _both(program: subprocess.Popen[bytes], keeper: psutil.Process | None) -> None:
    if keeper is not None:
        keeper.kill()
    program.kill()


def _terminated(program: subprocess.Popen[bytes], keeper: psutil.Process | None) -> None:
    if keeper is not None:
        keeper.terminate()
    program.kill()


def _interrupted(program: subprocess.Popen[bytes], _: psutil.Process | None) -> None:
    program.send_signal(signal.SIGINT)


KILLINGS: tuple[Killing, ...] = (_command, _keeper, _both, _terminated, _interrupted)
PROGRAM = Program("Kills at random instants", figures, 200.0, 10.0)

if __name__ == "__main__":
    PROGRAM.main()
