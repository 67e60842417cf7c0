"""A worker that takes all memory: when it is seen, and that the wave ends with its records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import psutil
import pytest

from inference_benchmarker.engine.hosts.local import LocalHost
from inference_benchmarker.engine.launch import run_wave
from inference_benchmarker.engine.watchers.memory_forecast import MemoryForecast
from inference_benchmarker.errors import BenchmarkError
from tests.bench import ids
from tests.waves import open_plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.bench import Bench

MB = 1 << 20
ROOM = 700 * MB  # of the host of these waves; a worker begins with less than 100 MB

GROWING = """
import os, time
import requests

KEPT = []


def invoke_factory():
    session = requests.Session()

    def invoke(payload):
        answer = session.post(os.environ["TARGET"] + "/invocations", "{}", headers={"X-Request-Id": str(payload)})
        if payload >= 40:
            KEPT.append(b"x" * (6 << 20))
        return answer.status_code

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": list(range(1000))}
"""
GROWING_WHILE_LOADING = """
import time

KEPT = []


def invoke_factory():
    while True:
        KEPT.append(b"x" * (20 << 20))
        time.sleep(0.05)


def payload_factory():
    return {"pre_computed": True, "input": [0]}
"""


class Memories:
    """What is left at each look, and the sizes of the workers, which stay."""

    def __init__(self, lefts: Sequence[int | None], sizes: Sequence[int]) -> None:
        self._lefts, self._sizes = iter(lefts), sizes
        self.workers = range(len(sizes))

    def memory_left(self) -> int | None:
        return next(self._lefts)

    def memory_of(self, worker: int) -> int:
        return self._sizes[worker]


@pytest.mark.parametrize(
    ("room", "left", "sizes", "found"),
    [
        (1000, 101, [100, 800], None),
        (1000, 100, [100, 800], (1, 800)),
        (1000, 0, [250, 251], (1, 251)),
        (1000, 0, [250, 250], None),  # others took it
        (None, 5, [100, 800], None),
        (1000, None, [100, 800], None),
        (1000, 0, [0, 0], None),  # all have ended
    ],
)
def test_the_largest_worker_is_named_once_hardly_anything_is_left(
    room: int | None, left: int | None, sizes: list[int], found: tuple[int, int] | None
) -> None:
    assert MemoryForecast(Memories([room, left], sizes)).look(0.0) == found


@pytest.mark.parametrize(
    ("lefts", "ends_at"),
    [
        ([1000, 900, 800, 700, 600, 500, 400, 300, 200, 150], 6),  # 100 in each 0.2 s: 500 a second
        ([1000, 990, 980, 970, 400, 390, 380, 370, 360, 350], None),  # a jump
        ([1000, 400, 400, 400, 400, 400, 400, 400, 400, 400], None),
        ([1000, 1000, 101, 101, 101, 100], 5),
        ([1000, 300, 290, 700, 690, 680, 670, 660, 650, 640], None),
    ],
)
def test_memory_that_will_be_used_up_within_a_second_is_as_good_as_used_up(
    lefts: list[int], ends_at: int | None
) -> None:
    forecast = MemoryForecast(Memories(lefts, [600]))
    looks = [forecast.look(0.2 * number) for number in range(1, len(lefts))]
    assert next((number for number, each in enumerate(looks, 1) if each), None) == ends_at


def _left_of_room() -> int:
    """What a host of that size would have left, beside the processes of the wave."""
    taken = 0
    for child in psutil.Process().children(recursive=True):
        try:
            taken += child.memory_info().rss
        except psutil.Error:
            continue
    return max(ROOM - taken, 0)


@pytest.mark.process
def test_a_wave_ends_before_a_worker_has_all_memory(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalHost, "memory_left", lambda _: _left_of_room())
    file = tmp_path / "growing.py"
    file.write_text(GROWING)
    plan = open_plan("40", "60", factories_file=file, output_dir=tmp_path / "runs")
    with bench.endpoint(service="none") as endpoint:
        monkeypatch.setenv("TARGET", endpoint.url)
        wave = run_wave(plan)
        seen = ids(endpoint.arrivals())
    (finding,) = [each for each in wave.verdict.findings if each.code == "worker_memory"]
    assert finding.severity == "invalid"
    assert "worker 0 took" in finding.measured
    assert wave.verdict.limited_by == "client"
    assert not wave.lost_workers
    assert 40 < wave.ledger.ok <= wave.ledger.sent == len(seen) < 40 * 50
    assert wave.run_dir is not None
    stored = json.loads((wave.run_dir.path / "summary.json").read_text())
    assert stored["aborted"]["worker"] == 0
    assert type(wave).load(wave.run_dir.path).verdict == wave.verdict


@pytest.mark.process
def test_a_file_that_takes_all_memory_while_it_is_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalHost, "memory_left", lambda _: _left_of_room())
    file = tmp_path / "greedy.py"
    file.write_text(GROWING_WHILE_LOADING)
    with pytest.raises(BenchmarkError, match=r"greedy\.py: worker 0 took .* MiB while it loaded it"):
        run_wave(open_plan("40", "60", factories_file=file, output_dir=tmp_path / "runs"))
