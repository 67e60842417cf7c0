"""Several runs a side: the error that their scatter tells, and how often a change is called where there is none."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from shutil import copytree
from statistics import stdev
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker import cli
from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.plan.slo import MaxRegression, Slo
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.summary.statistics.student_t import student_t
from inference_benchmarker.wave.run_folders import latest_runs, runs_of
from tests.mentions import mentions
from tests.waves import drawn, stored, wave
from visualization.comparison.changes import MetricChange, with_intervals
from visualization.comparison.comparison import compare
from visualization.comparison.estimates import Ratio
from visualization.comparison.headline import headline
from visualization.comparison.repeats import Repeated, over_runs
from visualization.comparison.report import to_text
from visualization.comparison.result import result_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inference_benchmarker import Wave


def dropping() -> Wave:
    """An INVALID wave of two seconds."""
    return replace(wave(drawn(1, seconds=2, rate=5)), ledgers=(Ledger(scheduled=20, sent=10, ok=10, dropped=10),))


TRIES, REPEATS = 400, 5


def runs(*values: float, error: float = 0.0, blocks: int = 10) -> list[Ratio]:
    return [Ratio(value, error, blocks) for value in values]


def both(base: Sequence[Ratio], new: Sequence[Ratio]) -> tuple[Repeated, Repeated]:
    before, after = over_runs(base, new)
    assert isinstance(before, Repeated)
    assert isinstance(after, Repeated)
    return before, after


class TestOverRuns:
    def test_a_run_at_twice_the_value_and_one_at_half_of_it_even_out(self) -> None:
        before, after = both(runs(1, 4), runs(2, 2))
        assert [before.value, after.value] == pytest.approx([2, 2])

    def test_the_error_is_that_of_a_mean(self) -> None:
        values = (0.020, 0.021, 0.019, 0.0205)
        before, _ = both(runs(*values), runs(1, 1))
        assert before.error == pytest.approx(stdev(map(math.log, values)) / 2)
        assert (before.freedom, before.runs) == (3, 4)

    def test_it_is_no_less_than_the_blocks_say(self) -> None:
        before, _ = both(runs(1.0, 1.0001, error=0.1), runs(1, 1))
        assert before.error == pytest.approx(0.1 / math.sqrt(2), rel=0.01)

    def test_a_single_run_is_taken_to_scatter_as_the_others_do(self) -> None:
        several, single = both(runs(1.0, 1.1, 0.9), runs(2.0))
        assert single.error == pytest.approx(several.error * math.sqrt(3))
        assert single.freedom == 2
        reported = with_intervals([MetricChange("latency", "p50", several, single)])[0]
        assert reported.high is not None
        t = math.log1p(reported.high) - math.log(2 / several.value)
        assert t == pytest.approx(student_t(0.95, 2) * math.hypot(several.error, single.error))

    def test_of_two_single_runs_only_their_blocks_are_known(self) -> None:
        base, new = Ratio(1, 0.1, 20), Ratio(2, 0.1, 20)
        assert over_runs([base], [new]) == (base, new)

    def test_what_a_run_lacks_its_side_lacks(self) -> None:
        assert over_runs([*runs(1), None], runs(1, 1))[0] is None

    def test_a_value_of_nothing_has_no_logarithm(self) -> None:
        before, after = both(runs(0.0, 0.5), runs(1.0, 1.0))
        assert (before.value, after.value) == (0.25, 1)
        assert before.ends(1)[0] == 0.0

    def test_what_one_run_does_not_bound_its_side_does_not(self) -> None:
        open_end = [Ratio(1, 0, 10), Ratio(1, 0, 10, is_lower_bound=True)]
        assert both(open_end, runs(1, 1))[0].ends(1)[1] == math.inf

    @given(st.lists(st.floats(0.01, 100), min_size=2, max_size=8), st.lists(st.floats(0.01, 100), min_size=1))
    def test_the_ends_hold_the_value(self, base: list[float], new: list[float]) -> None:
        for side in both(runs(*base), runs(*new)):
            low, high = side.ends(2)
            assert low <= side.value * (1 + 1e-9)
            assert side.value <= high * (1 + 1e-9)


def reported(change: float, seed: int, repeats: int = REPEATS) -> list[MetricChange]:
    """A comparison of sides whose runs scatter by 2%, in twelve metrics that go along with each other in part."""
    random = np.random.default_rng(seed)

    def side(shift: float) -> list[list[Ratio]]:
        common = random.normal(0, 0.014, (repeats, 1))
        logs = shift + common + random.normal(0, 0.014, (repeats, 12))
        return [[Ratio(float(value), 0.01 * float(value), 10) for value in run] for run in np.exp(logs).T]

    pairs = enumerate(zip(side(0), side(math.log1p(change)), strict=True))
    return with_intervals(
        [
            MetricChange("latency", f"p{number}", *over_runs(base, new), primary=number < 2)
            for number, (base, new) in pairs
        ]
    )


def test_of_equal_sides_a_change_of_anything_is_called_in_a_twentieth_at_most() -> None:
    called = sum(any(row.outcome in ("worse", "improved") for row in reported(0, seed)) for seed in range(TRIES))
    assert called <= 0.07 * TRIES


def test_a_tenth_is_found() -> None:
    found = sum(reported(0.1, seed)[0].outcome == "worse" for seed in range(TRIES // 4))
    assert found >= 0.9 * TRIES / 4


def several(seed: int, number: int = 4, factor: float = 1.0, **more: Any) -> list[Wave]:
    random = np.random.default_rng(seed)
    return [
        wave(drawn(1000 * seed + run, seconds=5) * factor * random.lognormal(0, 0.01), **more) for run in range(number)
    ]


class TestSides:
    def test_a_slower_side_is_reported_in_the_first_line(self) -> None:
        found = compare(several(1), several(2, factor=1.15))
        first, *_ = to_text(found).splitlines()
        assert first.startswith("new is ")
        assert "% slower at p50, 95%: " in first
        assert first.endswith("%.") or ";" in first
        assert max(map(len, to_text(found).splitlines())) <= 80

    def test_equal_sides_are_as_fast_as_each_other(self) -> None:
        found = compare(several(1, 6), several(2, 6), names=("A", "B"))
        assert headline(found).startswith("B is as fast as A at p50 within ")
        assert encoded(result_of(found))["headline"] == headline(found)
        assert encoded(result_of(found))["base"]["called"] == "A"
        assert [len(encoded(result_of(found))[side]["runs"]) for side in ("base", "new")] == [6, 6]

    def test_a_single_run_a_side_says_what_it_does_not_know(self) -> None:
        one, other = wave(drawn(1)), wave(drawn(2))
        assert "each side is a single run: they are too narrow" in " ".join(to_text(compare(one, other)).split())
        assert "too narrow" not in to_text(compare([one, other], other))

    def test_short_runs_tell_where_there_are_several(self) -> None:
        single = compare(several(1, 1), several(2, 1))
        assert headline(single) == (
            "Cannot tell whether new is slower than base: the changes in the table have no intervals "
            "(one run a side needs 20 s of load at one rate)."
        )
        limited = replace(single, checks=compare(several(1, 1), several(2, 1), [MaxRegression.parse("p50=1%")]).checks)
        assert "cannot tell: one run a side needs 20 s of load at one rate" in to_text(limited)
        assert compare(several(1), several(2)).rows[0].low is not None

    def test_a_first_line_without_an_interval_denies_none_of_the_table(self) -> None:
        found = compare(several(1), several(2))
        bare = [
            replace(row, low=None, high=None) if row.primary and row.metric != "success" else row for row in found.rows
        ]
        assert any(row.interval for row in bare)
        assert headline(replace(found, rows=tuple(bare))) == (
            "Cannot tell whether new is slower than base: the changes at p50 and at p99 have no intervals."
        )

    def test_limits_say_what_the_first_line_is_about(self) -> None:
        def primary(limits: Sequence[str] = (), *, slos: tuple[str, ...] = ()) -> set[str]:
            given = [MaxRegression.parse(text) for text in limits]
            base, new = (wave(drawn(1, seconds=2), slos=tuple(map(Slo.parse, slos))) for _ in range(2))
            return {row.name for row in compare(base, new, given).rows if row.primary}

        usual = {"response_time.p50", "response_time.p99", "success"}
        assert primary() == usual
        assert primary(["latency.p90=5%", "rate=1%"]) == {"latency.p90", "rate", "success"}
        assert primary(["rate=1%"]) == usual | {"rate"}
        assert primary(slos=("p95<1s", "latency.max<2s", "lag.p99<9ms")) == {"response_time.p95", "success"}
        assert primary(["p99=5%"], slos=("p95<1s",)) == {"response_time.p99", "success"}

    def test_failures_are_reported_first(self) -> None:
        failing = ["ok"] * 500
        failing[::20] = ["failed"] * 25
        found = compare(several(1), several(2, outcomes=failing))
        assert mentions(headline(found), "5.0%", "95%", "4.8", "5.1%")

    @pytest.mark.parametrize("factor", [2.0, 10.0, 1e4])
    def test_runs_that_lie_far_apart_tell_nothing_and_break_nothing(self, factor: float) -> None:
        base, new = ([wave(drawn(seed, seconds=5) * by) for by in (1.0, factor)] for seed in (1, 2))
        found = compare(base, new, [MaxRegression.parse("p99=10%")])
        assert {row.outcome for row in found.rows if row.metric == "latency"} == {"cannot tell"}
        assert "p99=10%: response_time.p99 " in to_text(found)
        assert max(map(len, to_text(found).splitlines())) <= 80
        json.dumps(encoded(result_of(found)), allow_nan=False)
        if factor > 2:
            assert "at p99 by an unknown factor" in headline(found)

    @pytest.mark.parametrize(("requests", "outcome"), [(5, "cannot tell"), (100, "unchanged")])
    def test_no_failure_among_few_is_no_proof(self, requests: int, outcome: str) -> None:
        base, new = ([wave(drawn(seed + 9 * side, rate=requests, seconds=5)) for seed in (1, 2)] for side in (0, 1))
        found = compare(base, new, [MaxRegression.parse("success=1%")])
        (row,) = (row for row in found.rows if row.metric == "success")
        assert (row.outcome, found.checks[0].state) == (outcome, "kept" if outcome == "unchanged" else "undecided")

    def test_the_lag_is_shown_as_the_clients(self) -> None:
        found = compare(several(1), several(2))
        assert [row.name for row in found.client] == ["lag.p50", "lag.p99"]
        assert not any(row.metric == "lag" for row in found.rows)
        assert "The clients (not judged)" in to_text(found)

    def test_one_invalid_run_makes_its_side_invalid(self) -> None:
        found = compare([*several(1), dropping()], several(2))
        assert found.outcome == "invalid"
        assert headline(found) == "INVALID (base): these are not the endpoint's numbers."
        assert "INVALID (1 of them), dropped_arrivals" in to_text(found)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("sides")
    for name, factor in (("base", 1.0), ("new", 1.15)):
        (parent / name).mkdir()
        for run in several(1 + (name == "new"), 3, factor):
            stored(run, parent / name)
    return parent


class TestCommand:
    def test_a_side_is_a_folder_of_runs(self, folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
        code = cli.main(["compare", str(folders / "base"), str(folders / "new"), "--max-regression", "p50=5%"])
        out = capsys.readouterr().out
        assert code == 1
        assert f"base: {folders}/base, 3 runs: VALID, 1,500 requests" in out
        assert "95%, from how the runs of a side" in " ".join(out.split())

    def test_or_so_many_runs(self, folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
        sides = [*(str(run) for run in runs_of(folders / "base"))], [*(str(run) for run in runs_of(folders / "new"))]
        listed = cli.main(["compare", "--base", *sides[0], "--new", *sides[1]]), capsys.readouterr().out
        folder = cli.main(["compare", str(folders / "base"), str(folders / "new")]), capsys.readouterr().out
        assert listed == folder

    def test_a_run_that_is_named_twice_is_one(self, folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
        first, *_ = runs_of(folders / "base")
        new = str(folders / "new")
        assert cli.main(["compare", "--base", str(folders / "base"), str(first), "--new", new]) == 0
        assert "base, 3 runs: VALID" in capsys.readouterr().out
        assert cli.main(["compare", "--base", str(first), "--new", new, str(first)]) == 0
        assert "! 1 run is on both sides: they hide part of the change." in capsys.readouterr().out

    def test_a_copy_of_a_run_is_that_run(
        self, folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first, *_ = runs_of(folders / "base")
        copies = [copytree(first, tmp_path / name) for name in ("copy", "other")]
        assert cli.main(["compare", "--base", str(first), str(copies[0]), "--new", str(folders / "new")]) == 0
        out, err = capsys.readouterr()
        assert f"base: {first}: VALID, 500 requests" in out
        assert err == f"{copies[0]} is a copy of {first}: they count as one run.\n"
        assert cli.main(["compare", str(folders / "base"), str(copies[0])]) == 0
        assert "! 1 run is on both sides: they hide part of the change." in capsys.readouterr().out
        assert cli.main(["compare", *map(str, copies)]) == 0
        assert "! A run is compared with itself: nothing can have changed." in capsys.readouterr().out

    @pytest.mark.parametrize("lost", ["plan.json", "summary.json", "requests.parquet"])
    def test_a_run_of_a_folder_that_lost_a_file_is_not_left_out(
        self, folders: Path, lost: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Without its plan.json a slow run was no run any more, and the gate passed without a word."""
        new = copytree(folders / "new", tmp_path / "new")
        *_, last = runs_of(new)
        (last / lost).unlink()
        assert cli.main(["compare", str(folders / "base"), str(new), "--max-regression", "p50=50%"]) == 2
        assert str(last) in capsys.readouterr().err
        assert cli.main(["report", str(new), "--format", "csv"]) == 2
        assert str(last) in capsys.readouterr().out
        assert latest_runs(new, 1)[0].path == last

    def test_the_last_runs_are_the_last(self, folders: Path) -> None:
        found = runs_of(folders / "base")
        assert [each.path for each in latest_runs(folders / "base", 2)] == found[-2:]
        assert runs_of(found[0]) == found[:1]
