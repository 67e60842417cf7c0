"""The disk of the run directory, before a wave and while it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inference_benchmarker.engine.launch import run_wave
from inference_benchmarker.engine.watchers.disk import DiskForecast, free_bytes, room_problems, room_warning
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.disk_space import stored
from tests.mentions import mentions
from tests.waves import closed_plan, open_plan

MB = 1_000_000
PLAN = open_plan("10000", "3600", output_dir=Path("/data/runs"))  # 36 million requests: 1.9 GB reported, 2.6 in all


@pytest.mark.parametrize(
    ("free_mb", "refused", "warned"),
    [(1_000, True, True), (1_900, True, True), (1_910, False, True), (3_000, False, True), (3_300, False, False)],
)
def test_only_what_cannot_fit_is_refused_and_what_may_not_is_said(free_mb: int, refused: bool, warned: bool) -> None:
    assert (bool(room_problems(PLAN, free_mb * MB)), bool(room_warning(PLAN, free_mb * MB))) == (refused, warned)


def test_the_sentences_say_what_is_needed_and_what_is_there() -> None:
    (problem,) = room_problems(PLAN, 1_100 * MB)
    assert mentions(problem, "data/runs", "2.6 GB", "1.1 GB")
    assert mentions(problem, "53 bytes", "36,000,000 requests")
    assert mentions(room_warning(PLAN, 2_000 * MB), "data/runs", "2.6 GB", "2.0 GB")


def test_a_wave_that_counts_its_requests_is_never_refused_and_needs_no_more_for_streams() -> None:
    plan = replace(PLAN, records="none")
    assert room_problems(plan, MB) == []
    assert mentions(room_warning(plan, 60 * MB), "data/runs", "77 MB", "60 MB")


def test_where_nobody_tells_the_free_bytes_or_the_requests_nothing_is_said() -> None:
    assert (room_problems(PLAN, None), room_warning(PLAN, None)) == ([], None)
    endless = closed_plan(8, "10")
    assert (room_problems(endless, 0), room_warning(endless, 0)) == ([], None)


def test_the_free_bytes_are_those_of_the_disk_that_a_folder_will_be_on(tmp_path: Path) -> None:
    there, later = free_bytes(tmp_path), free_bytes(tmp_path / "not" / "yet" / "there")
    assert there is not None
    assert later is not None
    assert abs(there - later) < 1_000 * MB


def test_a_wave_that_fits_on_no_disk_is_refused_before_it_begins(tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text("def invoke_factory():\n    return print\n\n\ndef payload_factory():\n    return {}\n")
    plan = open_plan("1000000", "2592000", factories_file=file, output_dir=tmp_path / "runs")
    with pytest.raises(BenchmarkError, match=r"needs about 189\.2 TB of disk, .* are free"):
        run_wave(plan)
    assert not (tmp_path / "runs").exists()


class TestDiskWatch:
    def test_less_than_a_minutes_growth_is_said_once(self) -> None:
        watch = DiskForecast("/data/run")
        said = [watch.look(second, (1_000 - 4 * second) * MB) for second in range(0, 250, 5)]
        assert [sentence for sentence in said if sentence] == [
            "/data/run: 220 MB of disk is free, and 4.0 MB are taken each second: at that rate it is full in "
            "about 55 s. A wave that still runs then cannot be stored there; it is stopped when the disk is full."
        ]

    def test_what_storing_the_wave_will_take_counts_as_taken(self) -> None:
        watch = DiskForecast("/data/run")
        said = [watch.look(second, (1_000 - 4 * second) * MB, second * MB) for second in range(0, 250, 5)]
        assert [sentence for sentence in said if sentence] == [
            "/data/run: 420 MB of disk is free, 145 MB of them for the file that is stored in the end, and 5.0 MB are "
            "taken each second: at that rate it is full in about 55 s. A wave that still runs then cannot be stored "
            "there; it is stopped when the disk is full."
        ]
        assert stored(53 * MB) == 20 * MB

    def test_a_disk_that_was_freed_is_watched_again(self) -> None:
        watch = DiskForecast("/data/run")
        free = [100 - 4 * second for second in range(0, 20, 5)] + [900 - 4 * second for second in range(0, 220, 5)]
        said = [watch.look(5 * place, each * MB) for place, each in enumerate(free)]
        assert sum(sentence is not None for sentence in said) == 2

    def test_a_disk_that_does_not_fill_or_tell_is_nothing_to_speak_of(self) -> None:
        watch = DiskForecast("/data/run")
        assert not any(watch.look(second, 5 * MB + second) for second in range(0, 300, 5))
        assert not any(watch.look(second, None) for second in range(300, 400, 5))
