"""Recorded arrivals: due when they were recorded, the same for any number of workers; and what tells of a recording."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.numbers import uniform
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of
from inference_benchmarker.plan.replay import Replay
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.recording.order import uniforms
from inference_benchmarker.recording.profile import parse_step, profile
from inference_benchmarker.recording.reading import is_read, read
from inference_benchmarker.recording.schedule import RecordedSchedule
from inference_benchmarker.wave import reader
from inference_benchmarker.wave.plan_file import save_plan
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.words.units import NS
from tests.bench import ROOT
from tests.mentions import mentions
from tests.recordings import csv_of, dues_of, replay_plan, rows_of, taken
from tests.waves import merged

if TYPE_CHECKING:
    from pathlib import Path

times = st.lists(st.decimals(0, 50, places=3), min_size=1, max_size=60)
HOURS = [f"2026-03-01T{time}+02:00" for time in ("09:59:59.999", "10:00:00.000", "10:30:00.000", "11:00:00.000")]


@given(
    recorded=times,
    speed=st.decimals("0.001", 1000, places=6).filter(bool),
    number=st.none() | st.integers(1, 70),
    workers=st.integers(1, 5),
    instants=st.lists(st.integers(-NS, 60 * NS), max_size=5),
)
@settings(max_examples=60)
def test_arrivals_are_due_when_they_were_recorded_for_any_number_of_workers(  # noqa: PLR0917 - hypothesis names them
    tmp_path_factory: pytest.TempPathFactory,
    recorded: list[Decimal],
    speed: Decimal,
    number: int | None,
    workers: int,
    instants: list[int],
) -> None:
    folder = tmp_path_factory.mktemp("replay")
    file = csv_of(folder / "a.csv", [f"{each:.3f}" for each in recorded], "seconds_time")
    replay = taken(file, speed=speed, number=number, column="seconds_time")
    load = OpenLoop(replay=replay)
    assert replay.recording is not None
    bounds = Bounds(replay.recording.length_s, number)
    found, alone = (TokenBucket(load, bounds, workers=each) for each in (workers, 1))
    since = [Fraction(each) - Fraction(min(recorded)) for each in sorted(recorded)]
    exact = [int(each * NS / Fraction(speed)) for each in since][:number]
    dues = [arrival.due for arrival in merged(found)]
    assert merged(found) == list(alone.arrivals(0))
    assert dues == exact
    assert sum(found.count()) == len(dues) == replay.recording.rows
    assert found.counts(sorted(instants)) == [sum(due < at for due in dues) for at in sorted(instants)]
    assert found.duration_ns() == replay.recording.length_ns > dues[-1]
    assert (most := found.most_arrivals()) is not None
    assert most >= len(dues)


def test_rows_follow_their_arrivals_where_they_are_out_of_order_and_through_all_blocks(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    recorded = [f"{each:.6f}" for each in np.arange(5000) / 100 + draw.uniform(0, 20, 5000)]
    replay = taken(csv_of(tmp_path / "a.csv", recorded))
    rows = rows_of(replay)
    assert [row["number"] for row in rows] == np.argsort([float(each) for each in recorded], kind="stable").tolist()
    assert all(a <= b for a, b in pairwise(dues_of(replay)))


def test_the_spread_is_that_of_each_row_alone() -> None:
    for seed in (0, 1, 2**63 - 1):
        assert uniforms(seed, 5, 4).tolist() == [uniform(seed, index) for index in range(5, 9)]


@pytest.mark.parametrize(
    ("window", "numbers", "first_s", "length_s"),
    [
        ("10:00..11:00", [1, 2], 0.0, 3600),
        ("10:00:00..10:15", [1], 0.0, 900),
        ("+1ms..+10m", [1], 0.0, 599.999),
        ("2026-03-01T08:15Z..2026-03-01T09:00:00.001Z", [2, 3], 900.0, 2700.001),
        ("2026-03-01T10:15..2026-03-01T11:00", [2], 900.0, 2700),
    ],
)
def test_a_window_speaks_the_recordings_zone(
    tmp_path: Path, window: str, numbers: list[int], first_s: float, length_s: float
) -> None:
    replay = taken(csv_of(tmp_path / "a.csv", HOURS), window=window, speed="2")
    assert replay.recording is not None
    assert [row["number"] for row in rows_of(replay)] == numbers
    assert dues_of(replay)[0] == first_s / 2 * NS
    assert replay.recording.length_ns == int(Decimal(str(length_s)) / 2 * NS)


def test_a_window_after_midnight_is_the_next_days(tmp_path: Path) -> None:
    file = csv_of(tmp_path / "a.csv", ["2026-03-01T23:30:00.000Z", "2026-03-02T00:10:00.000Z"])
    assert [row["number"] for row in rows_of(taken(file, window="00:00..01:00"))] == [1]
    assert [row["number"] for row in rows_of(taken(file, window="23:00..00:05"))] == [0]


@pytest.mark.parametrize(
    ("times_", "window", "expected"),
    [
        (HOURS, "12:00..13:00", r"contains no row\. Its rows were read from 2026-03-01 09:59:59 to .* \(\+02:00\)"),
        ([0.125, 1], "10:00..11:00", r"the recording has no time of day\. .* \+10m\.\.\+20m"),
        (HOURS, "+10m..+5m", r"it ends before it begins"),
        ([0.125, 1], "+5s..+6s", r"contains no row\. Its rows were read from 0.125 s to 1 s\."),
    ],
)
def test_a_window_without_rows_is_bad_input(tmp_path: Path, times_: list[object], window: str, expected: str) -> None:
    with pytest.raises(BenchmarkError, match=expected):
        taken(csv_of(tmp_path / "a.csv", times_), window=window)


def test_a_recording_that_is_too_long_for_a_wave_is_reported(tmp_path: Path) -> None:
    file = csv_of(tmp_path / "a.csv", ["2026-01-01T00:00:00.000Z", "2026-06-01T00:00:00.000Z"])
    with pytest.raises(BenchmarkError, match=r"would last 302\.0 days, and a wave may last 30\. Take a part"):
        taken(file)


def test_a_plan_survives_its_json_but_for_the_schedule(tmp_path: Path) -> None:
    plan = replay_plan(csv_of(tmp_path / "a.csv", [0.125, 0.5, 2]), factories_file=tmp_path / "a.csv")
    assert not problems_of(plan)
    again = WavePlan.from_json(plan.to_json())
    assert again == plan
    assert plan.target_rate == pytest.approx(3 / 2.8125)
    with pytest.raises(ValueError, match="has not been read"):
        TokenBucket.of(again)


def test_what_contradicts_a_recording_is_reported(tmp_path: Path) -> None:
    file = csv_of(tmp_path / "a.csv", [0.125, 0.5])

    def reported(load: OpenLoop, **more: object) -> str:
        plan = WavePlan(load, more.pop("bounds", Bounds()), factories_file=file, **more)  # type: ignore[arg-type]
        return " ".join(problem.text for problem in problems_of(plan))

    assert reported(OpenLoop(replay=Replay(file))) == ""
    assert "leave --warmup out" in reported(OpenLoop(replay=Replay(file)), warmup_s=Decimal(1))
    assert "leave --obs-time out" in reported(OpenLoop(replay=Replay(file)), bounds=Bounds(Decimal(1)))
    assert "not both" in reported(OpenLoop(Decimal(5), replay=Replay(file)))
    assert "not both" in reported(OpenLoop(arrivals="poisson", replay=Replay(file)))
    assert "there is no such file" in reported(OpenLoop(replay=Replay(tmp_path / "b")))
    assert mentions(reported(OpenLoop(replay=Replay(file, Decimal(0)))), "--speed", "0.001", "1,000")
    assert "6 digits" in reported(OpenLoop(replay=Replay(file, Decimal("1.0000001"))))
    assert "is not a part of a recording" in reported(OpenLoop(replay=Replay(file, window="10")))


@pytest.mark.parametrize("dues", [[5, 3], [-1, 3], [0, 10], [0, 1, 2], []])
def test_due_times_of_somebody_else_are_held_against_the_plan(tmp_path: Path, dues: list[int]) -> None:
    (tmp_path / "dues").write_bytes(np.array(dues, "<i8").tobytes())
    with pytest.raises(ValueError, match="due times"):
        RecordedSchedule.open(tmp_path / "dues", 10, 2)


HOSTILE = {
    "length 0": {"length_ns": 0},
    "a negative length": {"length_ns": -5},
    "a longer one": {"length_ns": 10**30},
    "a text": {"rows": "many"},
    "other rows": {"rows": 4},
    "no number": {"span_ns": None},
    "no such zone": {"zone": ["x"]},
}


@pytest.mark.parametrize("changed", HOSTILE.values(), ids=HOSTILE)
def test_a_run_directory_of_somebody_else_is_refused_in_a_sentence(tmp_path: Path, changed: dict[str, object]) -> None:
    run_dir = RunDir.create(tmp_path / "runs")
    plan = replay_plan(csv_of(tmp_path / "a.csv", [0.125, 0.5, 2]))
    save_plan(run_dir, plan, {})
    assert TokenBucket.of(reader.read_plan(run_dir)).count() == [3]
    fields = json.loads(run_dir.plan.read_text())
    fields["load"]["replay"]["recording"] |= changed
    run_dir.plan.write_text(json.dumps(fields))
    with pytest.raises(BenchmarkError, match=r"plan\.json"):
        reader.read_plan(run_dir)


@pytest.mark.parametrize("content", [None, b"", b"1234567", b"\xff" * 24, "a link"])
def test_its_due_times_are_held_against_its_plan(tmp_path: Path, content: bytes | str | None) -> None:
    run_dir = RunDir.create(tmp_path / "runs")
    save_plan(run_dir, replay_plan(csv_of(tmp_path / "a.csv", [0.125, 0.5, 2])), {})
    kept = run_dir.arrivals.rename(tmp_path / "kept")
    if isinstance(content, bytes):
        run_dir.arrivals.write_bytes(content)
    elif content:
        run_dir.arrivals.symlink_to(kept)
    with pytest.raises(BenchmarkError, match=r"plan\.json"):
        reader.read_plan(run_dir)


class TestProfile:
    def test_it_tells_the_rates_and_the_bursts(self, tmp_path: Path) -> None:
        counts = [10, 0, 0, 30] * 30
        recorded = [f"{second + place / 100:.3f}" for second, count in enumerate(counts) for place in range(count)]
        found = profile(Replay(csv_of(tmp_path / "a.csv", recorded)))
        assert (found.recording.rows, found.recording.peak_rps, found.peak_minute) == (1200, 30, 600)
        whole = counts[: found.recording.length_ns // NS]
        assert found.dispersion == pytest.approx(np.var(whole, ddof=1) / np.mean(whole))
        line, seconds = found.sparkline
        assert (len(line), seconds) == (60, 2)
        text = found.to_text()
        assert "timestamp in seconds since its beginning" in text
        assert "1,200 over 119 s" in text

    def test_poisson_arrivals_have_a_dispersion_of_about_one(self, tmp_path: Path) -> None:
        gaps = np.random.default_rng(5).exponential(0.02, 20_000)
        found = profile(Replay(csv_of(tmp_path / "a.csv", [f"{each:.6f}" for each in np.cumsum(gaps)])))
        assert found.dispersion == pytest.approx(1, abs=0.25)

    def test_as_stages_it_has_as_many_arrivals_in_each(self, tmp_path: Path) -> None:
        recorded = [f"{each:.3f}" for each in (0, 0.1, 0.25, 7, 7.5, 8, 12.125)]
        text = profile(Replay(csv_of(tmp_path / "a.csv", recorded)), parse_step("5s")).stages()
        stages = [Stage.parse(each) for each in text.split(",")]
        assert [round(stage.arrivals, 6) for stage in stages] == [3, 3, 1]
        load = OpenLoop(stages=tuple(stages))
        assert not list(load.problems())
        assert load.stages_s == Decimal("14.145833334")

    @pytest.mark.parametrize("text", ["", "5d", "0s", "-1s", "31d", "s", "1e3s"])
    def test_what_is_no_time_for_a_stage_is_refused(self, text: str) -> None:
        with pytest.raises(BenchmarkError, match="--as-stages must be"):
            parse_step(text)


def test_more_rows_within_a_minute_than_a_wave_sends_are_refused_before_they_fill_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference_benchmarker.recording.order.MOST_WAITING", 3_000)
    equal = csv_of(tmp_path / "equal.csv", [1_700_000_000] * 9_000)
    with pytest.raises(
        BenchmarkError, match=r"line 4,097: more than 3,000 rows are within one minute.*column timestamp"
    ):
        taken(equal)
    assert not list(tmp_path.glob(".replay_*"))
    spread = csv_of(tmp_path / "spread.csv", [1_700_000_000 + number for number in range(9_000)])
    assert len(dues_of(taken(spread))) == 9_000


@pytest.mark.parametrize(
    ("each", "more", "expected"),
    [
        ("1700000000.25", {"number": 10}, None),  # one instant: the first rows are the first
        (
            "1700000000",
            {"number": 10},
            "line 16,385: more than 14,000 rows are within one minute",
        ),  # spread over a second
        ("1700000100.5", {"window": "+0..+1s"}, None),
    ],
)
def test_reading_stops_or_refuses_when_no_row_that_is_wanted_can_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, each: str, more: dict[str, Any], expected: str | None
) -> None:
    """The rows of a crowd end with one whose time nobody can read: it is not reached."""
    monkeypatch.setattr("inference_benchmarker.recording.order.MOST_NEEDLESS", 8_000 if expected is None else 14_000)
    monkeypatch.setattr("inference_benchmarker.recording.order.MOST_NEEDLESS_TOGETHER", 14_000)
    crowd = csv_of(tmp_path / "a.csv", [*["1700000000.125"] * 12, *[each] * 40_000, "never"])
    if expected is None:
        assert rows_of(taken(crowd, **more))[9]["number"] == 9
    else:
        with pytest.raises(BenchmarkError, match=expected):
            taken(csv_of(tmp_path / "b.csv", [*[each] * 40_000, "never"]), **more)


@given(times, st.integers(1, 70))
@settings(max_examples=40)
def test_the_first_rows_are_those_of_the_whole_recording(
    tmp_path_factory: pytest.TempPathFactory, recorded: list[Decimal], number: int
) -> None:
    file = csv_of(tmp_path_factory.mktemp("replay") / "a.csv", [*(f"{each:.3f}" for each in recorded)] * 60)
    whole, part = taken(file), taken(file, number=number)
    assert dues_of(part) == dues_of(whole)[:number]
    assert rows_of(part) == rows_of(whole)[:number]


READING = """
import sys
from pathlib import Path
from inference_benchmarker.plan.replay import Replay
from inference_benchmarker.recording.reading import read

replay = read(Replay(Path(sys.argv[1])), 1, None, Path(sys.argv[2]))
print("read", flush=True)
sys.stdin.read()
"""


@pytest.mark.process
def test_what_a_killed_command_left_of_a_recording_is_removed_by_the_next_and_what_is_read_stays(
    tmp_path: Path,
) -> None:
    recorded, parent = csv_of(tmp_path / "a.csv", [1_700_000_000 + number for number in range(50)]), tmp_path / "runs"
    with ExitStack() as ending:
        readers = []
        for _ in range(2):
            command = [sys.executable, "-c", READING, str(recorded), str(parent)]
            readers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT))
            ending.enter_context(readers[-1])
            ending.callback(readers[-1].kill)
            assert readers[-1].stdout is not None
            assert readers[-1].stdout.readline() == b"read\n"
        killed, living = sorted(parent.glob(".replay_*"), key=lambda each: each.stat().st_ctime_ns)
        readers[0].kill()
        readers[0].wait()
        for folder in (killed, living):
            os.utime(folder, (0, 0))
        mine = read(Replay(recorded), 1, None, parent)
        assert not killed.exists()
        assert living.is_dir()
        assert is_read(mine)
