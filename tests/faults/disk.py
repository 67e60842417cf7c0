"""Disks that are full, and folders that go away."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench import factories
from tests.faults.fault import LONG, SHORT, THREE_S, Ending, Fault, Stage, wave

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.bench import Finished, Running

ELSEWHERE = "what was sent until then, stored in the temporary folder"
EVERYTHING_ELSEWHERE = "everything, stored in the temporary folder"
NOTHING, REST = "nothing", "the rest of the wave, which is not sent"
SLOW = {"servers": 60, "service_s": 1.5}
FAST = ("--client-rps", "300", "--obs-time", "60", "--workers", "2")


def remove(name: str) -> Callable[[Running], None]:
    """Delete what is there in mid-wave: a path below the folder of run directories, ``*`` for the run directory."""

    def act(running: Running) -> None:
        for path in (running.folder / "runs").glob(name):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return act


def removed_at_once(stage: Stage) -> Ending:
    """The run directory is deleted when its plan is there, while the processes start."""
    running = stage.start(*SHORT)
    while not any((running.folder / "runs").glob("*/plan.json")):
        time.sleep(0.005)
    remove("*")(running)
    return Ending(running.finish(), None, stored=False)


def remove_parent(running: Running) -> None:
    """The folder of run directories."""
    shutil.rmtree(running.folder / "runs")


def replace_parent(running: Running) -> None:
    """A file has the name of the folder of run directories, which is elsewhere."""
    rename_parent(running)
    (running.folder / "runs").touch()


def rename_parent(running: Running) -> None:
    """The folder of run directories is elsewhere."""
    (running.folder / "runs").rename(running.folder / "renamed")


def then_ctrl_c(act: Callable[[Running], object]) -> Callable[[Running], None]:
    """Something happens, and a second later there is a Ctrl-C."""

    def both(running: Running) -> None:
        act(running)
        time.sleep(1)
        running.signal(signal.SIGINT)

    return both


def mount(place: Path, *arguments: str) -> None:
    """Mount something there; the fault is skipped where that is not allowed."""
    if subprocess.run(["mount", *arguments, str(place)], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """A file system of 2 MB and 60 files: what a wave is reckoned to need fits."""
    place.mkdir()
    mount(place, "-t", "tmpfs", "-o", "size=2m,nr_inodes=60", "tmpfs")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path, leave: int = 0) -> None:
    """All that is left of a disk but for so many bytes."""
    with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while shutil.disk_usage(disk).free > leave:
            filler.write(bytes(4096))


def use_up_names(disk: Path) -> None:
    """As many empty files as there may be."""
    with suppress(OSError):
        for number in range(1000):
            (disk / f"filler_{number}").touch()


def on_a_small_disk(
    act: Callable[[Path], object], arrivals: int, *flags: object, **server: Any
) -> Callable[[Stage], Ending]:
    """A wave whose run directory is on a disk to which something happens; reported again, it says the same."""

    def play(stage: Stage) -> Ending:
        with small_disk(stage.folder / "runs") as disk, stage.server(server) as asked:
            running = stage.start(*flags, target=asked.url)
            asked.wait_for(arrivals, running)
            act(disk)
            finished = running.finish()
            again = stage.start("report", finished.folder.relative_to(stage.folder), text=None).finish()
            assert verdict_of(again) == verdict_of(finished)
            return Ending(finished, asked.arrived())

    return play


def full_everywhere(stage: Stage) -> Ending:
    """What is stored at the end fits nowhere, not in the temporary folder either; later there is room again."""
    labelled = factories("pass").replace('"pre_computed": True,', '"pre_computed": True, "label": str,')
    with stage.server() as asked:  # each label is a row of the summary, which is larger than the spool
        running = stage.start(*SHORT, text=labelled, target=asked.url, before=f"ulimit -f {16 * 1024 // 512}")
        finished = running.finish()
    assert "The wave could not be stored" in finished.err
    (run_dir,) = (stage.folder / "runs").iterdir()
    later = stage.start("report", run_dir.relative_to(stage.folder), text=None).finish()
    assert verdict_of(later) == verdict_of(finished)
    return Ending(replace(later, code=finished.code), asked.arrived(), apart=True)


def full_from_the_beginning(stage: Stage) -> Ending:
    """There is no room for a run directory."""
    with small_disk(stage.folder / "runs") as disk:
        use_up_names(disk)
        return Ending(stage.start(*SHORT).finish(), None, stored=False)


def read_only(stage: Stage) -> Ending:
    """The folder of run directories becomes read-only in the middle of the wave."""
    with stage.server() as asked:
        running = stage.start(*SHORT, target=asked.url)
        asked.wait_for(5, running)
        place = stage.folder / "runs"
        mount(place, "--bind", str(place))
        try:
            mount(place, "-o", "remount,bind,ro")
            return Ending(running.finish(), asked.arrived())
        finally:
            subprocess.run(["umount", "-l", str(place)], check=True)


def verdict_of(finished: Finished) -> list[str]:
    """The lines of a report that say VALID or INVALID."""
    return [line for line in finished.out.splitlines() if line.startswith(("VALID", "INVALID"))]


DISKS = (
    Fault(
        "run-directory-deleted",
        "the run directory is deleted in the middle of the wave",
        ELSEWHERE,
        REST,
        3,
        wave(*LONG, act=remove("*"), arrivals=60),
        says="The run directory cannot be written",
    ),
    Fault(
        "run-directory-deleted-at-once",
        "the run directory is deleted while the processes start",
        "nothing had begun",
        NOTHING,
        2,
        removed_at_once,
        slow=True,
        says="was deleted before the wave began. Do not delete it.",
    ),
    Fault(
        "parent-deleted",
        "the folder of run directories is deleted in the middle of the wave",
        ELSEWHERE,
        REST,
        3,
        wave(*LONG, act=remove_parent, arrivals=60),
        slow=True,
    ),
    Fault(
        "renamed",
        "the folder of run directories is renamed in the middle of the wave, and Ctrl-C",
        ELSEWHERE,
        REST,
        130,
        wave(*LONG, act=then_ctrl_c(rename_parent), arrivals=60),
        slow=True,
        says="the wave is stored in",
    ),
    Fault(
        "replaced",
        "a file takes the name of the folder of run directories in the middle of the wave, and Ctrl-C",
        ELSEWHERE,
        REST,
        130,
        wave(*LONG, act=then_ctrl_c(replace_parent), arrivals=60),
        slow=True,
        says="the wave is stored in",
    ),
    Fault(
        "spool-deleted",
        "the file of what was reported so far is deleted in the middle of the wave",
        "what was sent until then",
        REST,
        3,
        wave(*LONG, act=remove("*/spool.bin"), arrivals=60),
        slow=True,
    ),
    Fault(
        "logs-deleted",
        "the logs are deleted in the middle of the wave",
        "everything but the logs",
        "the logs",
        0,
        wave(*THREE_S, act=remove("*/logs"), arrivals=40),
        slow=True,
    ),
    Fault(
        "read-only",
        "the folder of run directories becomes read-only in the middle of the wave",
        EVERYTHING_ELSEWHERE,
        NOTHING,
        0,
        read_only,
        slow=True,
    ),
    Fault(
        "full",
        "the disk is full in the middle of the wave",
        ELSEWHERE,
        REST,
        3,
        on_a_small_disk(fill, 100, *FAST),
        says="The run directory cannot be written (No space left on device)",
    ),
    Fault(
        "no-names",
        "the disk has no room for another file (no inodes) in the middle of the wave",
        EVERYTHING_ELSEWHERE,
        NOTHING,
        0,
        on_a_small_disk(use_up_names, 40, *SHORT, **SLOW),
        slow=True,
        says="the wave is stored in",
    ),
    Fault(
        "full-at-the-end",
        "the disk is full in the last write only",
        EVERYTHING_ELSEWHERE,
        NOTHING,
        0,
        on_a_small_disk(lambda disk: fill(disk, leave=12288), 40, *SHORT, **SLOW),
        slow=True,
        says="the wave is stored in",
    ),
    Fault(
        "file-size",
        "a file may not grow beyond 80 kB (`ulimit -f`)",
        ELSEWHERE,
        REST,
        3,
        wave(*FAST, before=f"ulimit -f {80 * 1024 // 512}"),
        slow=True,
        says="The run directory cannot be written (File too large)",
    ),
    Fault(
        "full-everywhere",
        "the disk and the temporary folder are full in the last write only",
        "what is printed; `benchmark report` stores it when there is room",
        NOTHING,
        3,
        full_everywhere,
        slow=True,
    ),
    Fault(
        "full-before",
        "there is no room for a run directory",
        "nothing had begun",
        NOTHING,
        2,
        full_from_the_beginning,
        slow=True,
        says="cannot be written (No space left on device)",
    ),
)
