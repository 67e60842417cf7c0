"""Capacity folders as figures."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.errors import BenchmarkError
from server_capacity.results.capacity_folder import read
from tests.capacities import as_read, found, stretch
from tests.mentions import mentions
from visualization.figures.capacity import is_capacity, read_capacities
from visualization.figures.figures import Bars, Curves, Figures
from visualization.figures.runs import Run
from visualization.pages.series import make_figures, write_report

if TYPE_CHECKING:
    from pathlib import Path

    from server_capacity.results.types.capacity import CapacityResult

LIMIT = {
    "expression": "p99<100ms",
    "metric": "response_time",
    "bound": 0.1,
    "allowed": 0.01,
    "at_low": 0.06,
    "unit": "s",
}


def row(rate: float, **more: Any) -> dict[str, Any]:
    p99 = 0.02 + 0.08 * math.exp((rate - 174) / 30)
    times = {"mean": 0.02, "p50": 0.02, "p90": 0.03, "p95": 0.04, "p99": p99}
    return {"rate": rate, "seconds": 10.0, "share_over": [0.01 * math.exp((rate - 174) / 7), 0.0], **times, **more}


def folder(path: Path, **more: Any) -> Path:
    facts = found(
        schema_version=1, headline="Meets p99<100ms up to 174/s", curve=[row(rate) for rate in (160, 80, 170, 180)]
    )
    path.mkdir(parents=True)
    (path / "capacity.json").write_text(json.dumps({**facts, "limits": [LIMIT], **more}))
    return path


def taken(path: Path) -> CapacityResult:
    """What stands in a folder, though its parts are made up and may not agree."""
    return as_read(json.loads((path / "capacity.json").read_text()))


def figures(*paths: Path) -> Figures:
    return make_figures((), None, read_capacities(paths, {}, taken))


def charts(drawn: Figures, section: str) -> dict[str, Bars | Curves]:
    (found_,) = (each for each in drawn.sections if each.key == section)
    return {chart.title: chart for chart in found_.charts}


class TestOneSearch:
    def test_its_page_begins_with_the_answer(self, tmp_path: Path) -> None:
        drawn = figures(folder(tmp_path / "a_capacity"))

        assert (drawn.title, drawn.lead) == ("Capacity", "Meets p99<100ms up to 174/s")
        assert dict(drawn.runs[0].headline)["Capacity"] == "174/s"
        assert dict(drawn.runs[0].headline)["95%"] == "168–180"

    def test_its_tiles_are_the_answer_then_what_was_confirmed_then_what_saturates_then_the_model(
        self, tmp_path: Path
    ) -> None:
        resources = {"next": {"metric": "CPUUtilization", "rate": 200.0}, "all": []}
        drawn = figures(folder(tmp_path / "a_capacity", resources=resources))

        assert [tile.name for tile in drawn.tiles] == ["Capacity", "Confirmed", "First to saturate", "Queueing model"]
        assert [tile.value for tile in drawn.tiles] == ["174/s", "168/s", "CPUUtilization", "173.6/s"]
        assert [tile.large for tile in drawn.tiles] == [True, False, False, False]
        assert mentions(drawn.tiles[0].note, "p99<100ms", "168 to 180")
        assert not drawn.footer, "there are no bars"
        apart = {"fits": True, "rate": 300.0, "interval": {"low": 290.0, "high": 310.0}}
        assert "disagrees" in figures(folder(tmp_path / "b_capacity", twin=apart)).tiles[-1].note
        failed = [{"rate": 168.2, "verdict": "fails", "limits": []}]
        assert figures(folder(tmp_path / "c_capacity", confirmation=failed)).tiles[1].value == "no"

    def test_the_confirmed_rate_is_a_point_of_its_own(self, tmp_path: Path) -> None:
        wave = {"rate": 168.2, "verdict": "holds", "limits": [{"expression": "p99<100ms", "value": 0.0712}]}
        drawn = figures(folder(tmp_path / "a_capacity", confirmation=[wave]))
        chart = charts(drawn, "curve")["Response time against rate"]

        assert isinstance(chart, Curves)
        (line,) = (each for each in chart.lines if each.name == "confirmed")
        ((rate, value),) = line.points
        assert (line.statistic, rate) == ("p99", 168.2)
        assert value == pytest.approx(71.2)

    def test_the_curve_is_that_of_the_limit_with_the_interval_as_a_band(self, tmp_path: Path) -> None:
        chart = charts(figures(folder(tmp_path / "a_capacity")), "curve")["Response time against rate"]

        assert isinstance(chart, Curves)
        assert chart.bands == (("95% interval", 168.2, 179.9),)
        (curve,) = (line for line in chart.lines if line.run == 0 and line.statistic == "p99")
        assert [x for x, _ in curve.points] == [80, 160, 170, 180]
        (level,) = (line for line in chart.lines if line.name == "limit")
        assert level.points == ((80, 100.0), (180, 100.0))
        assert level.statistic == "p99"

    def test_a_share_of_nothing_has_no_place_on_a_scale_of_decades(self, tmp_path: Path) -> None:
        curve = [row(10, share_over=[0.0, 0.0]), row(160, share_over=[0.0001, 0.0]), row(180)]
        chart = charts(figures(folder(tmp_path / "a_capacity", curve=curve)), "curve")["Over the limit against rate"]

        assert isinstance(chart, Curves)
        assert chart.y.scale == "log"
        assert chart.lines[0].points[0] == (10, None)

    def test_the_fit_goes_through_its_points_between_the_curves_of_its_interval(self, tmp_path: Path) -> None:
        """The points are of a share that is 1% at 174/s and e times as much every 7/s."""
        fitted = {**LIMIT, "rate": 174.0, "interval": {"low": 168.2, "high": 179.9}, "slope": 174 / 7}
        model = {"fits": True, "rate": 172.5, "interval": {"low": 171.0, "high": 174.0}}
        drawn = figures(folder(tmp_path / "a_capacity", limits=[fitted], twin=model))
        chart = charts(drawn, "curve")["Over the limit against rate"]

        assert isinstance(chart, Curves)
        lines = {line.name: line for line in chart.lines}
        assert lines["fit"].points[0] == pytest.approx((174 - 7 * math.log(10), 0.1))
        assert [share for _, share in lines["fit"].points] == pytest.approx(
            [100 * row(rate)["share_over"][0] for rate, _ in lines["fit"].points]
        )
        shares = [
            [share for at, share in lines[name].points if share == pytest.approx(1.0)] for name in ("low", "high")
        ]
        assert shares == [[1.0], [1.0]]
        assert lines["low"].points[8][0] == 168.2
        assert lines["high"].points[8][0] == 179.9
        assert lines["model"].points == ((172.5, 1.0),)

    @pytest.mark.parametrize("slope", [5e-324, 1e-300, 0.01, 0.0, -3.0])
    def test_what_no_fit_can_be_is_not_drawn(self, slope: float, tmp_path: Path) -> None:
        fitted = {**LIMIT, "rate": 174.0, "interval": {"low": 168.2, "high": 179.9}, "slope": slope}
        chart = charts(figures(folder(tmp_path / "a_capacity", limits=[fitted])), "curve")[
            "Over the limit against rate"
        ]

        assert isinstance(chart, Curves)
        assert not {"fit", "low", "high"} & {line.name for line in chart.lines}

    def test_the_curves_of_the_interval_begin_where_its_band_does(self, tmp_path: Path) -> None:
        """A server that remembers has a wider interval than the fit of its limit."""
        fitted = {**LIMIT, "rate": 174.0, "interval": {"low": 172.0, "high": 176.0}, "slope": 25.0}
        chart = charts(figures(folder(tmp_path / "a_capacity", limits=[fitted])), "curve")[
            "Over the limit against rate"
        ]

        assert isinstance(chart, Curves)
        (_, low, high), lines = chart.bands[0], {line.name: line for line in chart.lines}
        assert (lines["low"].points[8][0], lines["high"].points[8][0]) == (low, high) == (168.2, 179.9)

    def test_two_searches_have_no_fit_of_one(self, tmp_path: Path) -> None:
        fitted = {**LIMIT, "rate": 174.0, "interval": {"low": 168.2, "high": 179.9}, "slope": 25.0}
        paths = [folder(tmp_path / f"{name}_capacity", limits=[fitted]) for name in "ab"]
        chart = charts(figures(*paths), "curve")["Over the limit against rate"]

        assert isinstance(chart, Curves)
        assert not {"fit", "low", "high"} & {line.name for line in chart.lines}

    def test_what_counts_for_nothing_is_a_gap_in_the_course(self, tmp_path: Path) -> None:
        stretches = [stretch(0, 50), stretch(1, 60, void="the client was the limit"), stretch(2, 0), stretch(3, 70)]
        chart = charts(figures(folder(tmp_path / "a_capacity", stretches=stretches)), "search")["Rate over the search"]

        assert isinstance(chart, Curves)
        assert chart.lines[0].points == ((0, 50), (2, None), (4, None), (6, 70), (8, 70))


class TestSeveral:
    def test_they_stand_side_by_side_with_their_intervals(self, tmp_path: Path) -> None:
        other = folder(tmp_path / "b_capacity", rate=220.0, interval={"low": 210.0, "high": 230.0})
        drawn = figures(folder(tmp_path / "a_capacity"), other)

        bars = charts(drawn, "found")["Capacity"]
        assert isinstance(bars, Bars)
        assert [(bar.value, bar.low, bar.high) for bar in bars.statistics[""]] == [
            (174.13, 168.2, 179.9),
            (220, 210, 230),
        ]

    def test_users_and_requests_a_second_share_no_axis(self, tmp_path: Path) -> None:
        users = folder(tmp_path / "b_capacity", rate=220, **{"in": "users"}, interval={"low": 210, "high": 230})
        drawn = figures(folder(tmp_path / "a_capacity"), users)

        curves = charts(drawn, "curve")
        assert {"Response time against rate", "Latency against users"} <= set(curves)
        of_users = curves["Latency against users"]
        assert isinstance(of_users, Curves)
        assert {line.run for line in of_users.lines if line.run is not None} == {1}
        assert set(charts(drawn, "search")) == {"Rate over the search", "Users over the search"}
        assert dict(drawn.runs[1].headline)["Capacity"] == "220 users"

    def test_beside_runs_they_come_last(self, tmp_path: Path) -> None:
        paths = [folder(tmp_path / "a_capacity"), folder(tmp_path / "b_capacity")]
        drawn = make_figures(
            [Run(tmp_path, "a wave"), Run(tmp_path, "another")], None, read_capacities(paths, {}, taken)
        )

        assert len(drawn.runs) == 4
        bars = charts(drawn, "found")["Capacity"]
        assert isinstance(bars, Bars)
        assert bars.first == 2
        assert drawn.title == "Benchmark comparison"


@pytest.mark.parametrize("flag", ["--output-dir", "--plot-output-dir"])
def test_a_folder_that_cannot_be_written_is_reported_with_the_flag_of_its_command(flag: str, tmp_path: Path) -> None:
    path = folder(tmp_path / "a_capacity", twin=None)
    (tmp_path / "file").touch()
    with pytest.raises(BenchmarkError) as raised:
        list(write_report(figures(path), ("html",), tmp_path / "file" / "in_it", lambda _: None, flag=flag))
    assert str(raised.value).endswith(f"Give another place with {flag}.")


@pytest.mark.parametrize("outcome", ["found", "at_least", "not_kept", "cannot_tell", "client_limited", "interrupted"])
def test_every_outcome_has_a_page_and_pictures(outcome: str, tmp_path: Path) -> None:
    least = {"rate": 500.0, "reason": "--max-rps was reached"}
    unknown = {} if outcome == "found" else {"rate": None, "interval": None, "limit": None, "at_least": least}
    path = folder(tmp_path / "a_capacity", outcome=outcome, twin=None, **unknown)

    written = list(write_report(figures(path), ("html", "png"), path, lambda _: None, "capacity"))

    assert [each.name for each in written] == ["capacity.html", "capacity_curve.png", "capacity_search.png"]


@pytest.mark.parametrize(
    "more",
    [
        {"curve": [{"rate": "fast"}, 7, None]},
        {"curve": None, "stretches": {"number": 1}},
        {"limits": [{"expression": "p99<100ms", "allowed": True, "bound": []}]},
        {"interval": [1, 2], "rate": 1e300},
        {"twin": "none", "at_least": 5, "reason": 7},
        {"curve": [row(10, share_over="all"), row(20, share_over=[None])]},
    ],
)
def test_a_damaged_file_is_refused_with_the_place_of_the_damage(more: dict[str, Any], tmp_path: Path) -> None:
    path = folder(tmp_path / "a_capacity", **more)

    with pytest.raises(BenchmarkError, match=r"capacity\.json: cannot be read as a file of this tool \(.* at `\$\."):
        read_capacities([path], {}, read)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"schema_version": 1}', b'{"schema_version": 99, "outcome": "found"}']
)
def test_a_file_that_is_no_answer_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "capacity.json").write_bytes(content)

    assert is_capacity(tmp_path)
    with pytest.raises(BenchmarkError):
        read_capacities([tmp_path], {}, read)
