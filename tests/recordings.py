"""Recordings made up for tests, and waves that replay them without a process."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.replay import Replay
from inference_benchmarker.recording.reading import read
from inference_benchmarker.recording.rows import RowFile

if TYPE_CHECKING:
    from collections.abc import Iterable


def csv_of(path: Path, seconds: Iterable[object], column: str = "timestamp") -> Path:
    """A CSV file with these times and a number for each row."""
    lines = [f"{column},number", *(f"{each},{number}" for number, each in enumerate(seconds))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def taken(file: Path, *, seed: int = 1, number: int | None = None, **more: Any) -> Replay:
    """A recording that was read, its files beside it."""
    if "speed" in more:
        more["speed"] = Decimal(more["speed"])
    return read(Replay(file, **more), seed, number, file.parent / "read")


def dues_of(replay: Replay) -> list[int]:
    """All due times in ns."""
    assert replay.schedule is not None
    return [due for _, due in replay.schedule.dues(0, 1, 1 << 40)]


def rows_of(replay: Replay) -> list[dict[str, Any]]:
    """The rows in the order of their arrivals."""
    folder = getattr(getattr(replay.schedule, "kept", None), "folder", None)
    assert isinstance(folder, Path)
    assert replay.recording is not None
    found = RowFile(folder)
    return [found.row(index) for index in range(replay.recording.rows)]


def replay_plan(file: Path, *, number: int | None = None, seed: int = 1, **more: Any) -> WavePlan:
    """A plan whose recording was read."""
    plan = WavePlan(OpenLoop(replay=Replay(file)), Bounds(num_requests=number), seed=seed, **more)
    return replace(plan, seed=seed).with_replay(taken(file, seed=seed, number=number))
