"""The folder of several tiers: what its rows say is what the searches below it found."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.core.next_commands import after_tiers
from inference_benchmarker.data.json_file import write_with_digest
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK
from inference_benchmarker.report.csv_rows import UNREADABLE
from server_capacity.results import tiers_folder
from server_capacity.results.capacity_folder import save
from server_capacity.results.text.tiers import headline, to_text
from server_capacity.results.tiers_checks import tier_row
from server_capacity.results.types.result_status import settled
from server_capacity.results.types.tiers import TierRow
from tests.capacities import searched, stretch
from tests.mentions import mentions
from tests.waves import drawn, stored, wave

if TYPE_CHECKING:
    from pathlib import Path

LOST = {"verdict": "fails", "rate": 168.2}
MISSING = TierRow(tier="bronze", limits=["p99<9s"], outcome="failed", headline="Not searched: x", exit_code=INTERRUPTED)


def row(folder: Path, tier: str, **more: Any) -> TierRow:
    """A tier that was searched, whose folder is there."""
    (folder / tier).mkdir(parents=True)
    return tier_row(tier, tier, save(folder / tier, settled(searched(**more))))


def made(folder: Path, *rows: TierRow) -> Path:
    tiers_folder.save(folder, tiers_folder.tiers_result(rows, "2026-11-27T12:00:00Z", None))
    return folder


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Gold and silver, of which silver's load was shared."""
    gold = row(tmp_path, "gold", rate=100.0, interval={"low": 95.0, "high": 105.0}, load_s=180.0)
    silver = row(tmp_path, "silver", load_s=170.0, shared_s=50.0)
    return made(tmp_path, gold, silver)


def test_each_tier_has_its_own_answer_and_all_are_reported_again(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(two)]) == OK
    lines = capsys.readouterr().out.splitlines()
    capacities = "gold 100/s (95% interval: 95 to 105), silver 174/s (95% interval: 168 to 180)"
    assert lines[0] == lines[-2] == f"Every tier has a confirmed capacity: {capacities}"
    assert lines[2].startswith("gold: Meets p99<100ms up to 100/s")
    (gold,) = (line.split() for line in lines if line.split()[:1] == ["gold"])
    assert gold == ["gold", "100/s", "95", "to", "105", "p99<100ms", "yes"]
    text = " ".join(" ".join(lines).split())
    assert "gold: 3 min of load. silver: 2 min of load, and 50 s sent for earlier tiers" in text

    assert cli.main(["report", str(two), "--json"]) == OK
    data = json.loads(capsys.readouterr().out)
    assert [each["interval"] for each in data["rows"]] == [{"low": 95.0, "high": 105.0}, {"low": 168.2, "high": 179.9}]
    assert data["headline"] == lines[0]


@pytest.mark.parametrize(("void_s", "said"), [(20.0, ", and 30 s sent for earlier tiers, judged by"), (50.0, ".")])
def test_only_load_that_counts_is_said_to_be_judged(tmp_path: Path, void_s: float, said: str) -> None:
    silver = row(tmp_path, "silver", load_s=170.0, shared_s=50.0, shared_void_s=void_s)
    text = to_text(tiers_folder.read(made(tmp_path, silver)))
    assert f"silver: 2 min of load{said}" in " ".join(text.split())


def test_the_gravest_exit_code_counts_and_a_tier_tells_why(tmp_path: Path) -> None:
    lost = row(tmp_path, "gold", confirmation=[LOST])
    found = tiers_folder.read(made(tmp_path, lost, row(tmp_path, "silver")))
    assert (found.exit_code, [each.exit_code for each in found.rows]) == (MISSED, [MISSED, OK])
    text = " ".join(to_text(found).split())
    assert found.headline == "No confirmed capacity of gold; silver 174/s (95% interval: 168 to 180)"
    assert "? gold: the confirming wave failed; so the exit code is 1." in text
    assert "? silver" not in text


def test_a_tier_whose_search_ended_early_and_was_confirmed_is_called_neither(tmp_path: Path) -> None:
    early = replace(row(tmp_path, "gold"), exit_code=INVALID)
    assert early.confirmed == "holds"
    found = tiers_folder.tiers_result([early, row(tmp_path, "silver")], "2026-11-27T12:00:00Z", None)
    assert headline(found) == "gold: exit code 3; silver 174/s (95% interval: 168 to 180)"


def test_tiers_of_users_are_whole_numbers_of_them(tmp_path: Path) -> None:
    users = {"in_": "users", "rate": 36.0, "interval": {"low": 31.0, "high": 44.0}, "arrivals": None}
    rows = [row(tmp_path, "gold", **users)]
    tiers_folder.save(tmp_path, tiers_folder.tiers_result(rows, "2026-11-27T12:00:00Z", None, "users"))
    found = tiers_folder.read(tmp_path)
    assert found.headline == "Every tier has a confirmed capacity: gold 36 users (95% interval: 31 to 44)"
    assert "36 users 31 to 44" in " ".join(to_text(found).split())
    assert after_tiers(found, tmp_path) is None, "a plan for users needs to know what they send"


def test_a_capacity_after_overload_is_not_said_to_have_a_95_percent_interval(tmp_path: Path) -> None:
    sides = {"below": {"rate": 0.25, "interval": {"low": 0.22, "high": 0.29}}, "above": {"rate": 0.136}, "differ": True}
    after = {"in_": "sessions", "rate": 0.136, "interval": {"low": 0.125, "high": 0.147}, "memory": sides}
    rows = [row(tmp_path, "gold", stretches=[stretch(0, 0.125, purpose="return")], **after)]
    found = tiers_folder.tiers_result(rows, "2026-11-27T12:00:00Z", None, "sessions")
    assert found.rows[0].after_overload
    assert found.headline.endswith("gold 0.136 sessions/s after overload (0.125 to 0.147)")
    assert "0.125 to 0.147, after overload" in " ".join(to_text(found).split())


def test_a_tier_that_was_not_searched_is_a_row_that_says_so(tmp_path: Path) -> None:
    found = tiers_folder.read(made(tmp_path, row(tmp_path, "gold"), MISSING))
    assert found.exit_code == INTERRUPTED
    assert found.headline.startswith("Interrupted; no confirmed capacity of bronze; gold 174/s")
    assert "bronze: Not searched: x" in to_text(found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data["rows"][0].update(rate=99.0), "gold has another answer than the row of gold"),
        (lambda data: data["rows"][0].update(rate=110.0), "the rate of gold"),
        (lambda data: data.update(exit_code=1), "its exit code is 1, and the gravest of its tiers 0"),
        (lambda data: data["rows"][1].update(tier="gold"), "two of its tiers have one name"),
        (lambda data: data["rows"][1].update(capacity="../x"), "'../x' is not a folder below this one"),
        (lambda data: data["rows"][1].update(capacity=None), "silver has an outcome, but no search"),
        (lambda data: data.update(rows=[]), "it has no tier"),
        (lambda data: data.update({"in": "users"}), "gold is a search in rps, not in users"),
    ],
)
def test_what_contradicts_itself_or_its_searches_is_refused(two: Path, change: Any, said: str) -> None:
    data = json.loads((two / "tiers.json").read_text())
    change(data)
    write_with_digest(two / "tiers.json", data)
    with pytest.raises(BenchmarkError, match=r"tiers\.json") as raised:
        tiers_folder.read(two)
    assert said in str(raised.value)


def test_a_search_that_was_replaced_is_refused(two: Path) -> None:
    save(two / "gold", searched(rate=120.0, interval={"low": 110.0, "high": 130.0}))
    with pytest.raises(BenchmarkError, match="gold does not match its digest"):
        tiers_folder.read(two)


def test_forms_of_a_run_are_refused_as_for_any_search(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("junit", "html"):
        assert cli.main(["report", str(two), "--format", form]) == 2
        assert f"so it has no {form}" in capsys.readouterr().err
    assert cli.main(["report", str(two), "--format", "markdown"]) == OK
    assert "gold: Meets" in capsys.readouterr().out


def test_a_tier_that_is_gone_is_an_unreadable_row_of_the_table(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = stored(wave(drawn(1, seconds=2)), two / "silver").path
    shutil.rmtree(two / "gold")
    assert cli.main(["report", str(two), "--format", "csv"]) == 2
    shown = capsys.readouterr()
    rows = [(each["run"], each["verdict"]) for each in csv.DictReader(io.StringIO(shown.out))]
    assert rows[0] == (str(two / "gold"), UNREADABLE)
    assert [each[0] for each in rows[1:]] == [str(run)]
    assert "gold: does not exist" in shown.err


def test_a_tier_that_sent_nothing_has_no_row_in_the_table(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = stored(wave(drawn(1, seconds=2)), two / "gold").path
    cli.main(["report", str(two), "--format", "csv"])
    assert [each["run"] for each in csv.DictReader(io.StringIO(capsys.readouterr().out))] == [str(run)]


ENDPOINT = {"name": "e", "instance_type": "ml.m5.xlarge", "instances": 1, "kind": "variant"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "has the tiers gold, bronze, and a plan is for the limits of one. Give --tier gold"),
        (["--tier", "copper"], "has the tiers gold, bronze, and none is called copper."),
        (["--tier", "bronze"], "bronze was not searched (Not searched: x)."),
    ],
)
def test_a_plan_is_for_one_tier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], said: str
) -> None:
    made(tmp_path / "t", row(tmp_path / "t", "gold", endpoint=ENDPOINT), MISSING)
    line = ["plan", str(tmp_path / "t"), "--target-rps", "500", "--output-dir", str(tmp_path / "out")]
    assert cli.main([*line, *flags]) == 2
    assert said in capsys.readouterr().err
    assert cli.main([*line[:1], str(tmp_path / "t" / "gold"), *line[2:], "--tier", "gold"]) == 2
    assert "has no tiers, and --tier gold names one" in capsys.readouterr().err


def test_a_plan_of_a_tier_rests_on_its_search_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = row(tmp_path / "t", "gold", endpoint=ENDPOINT), row(tmp_path / "t", "silver", confirmation=[LOST])
    line = ["plan", str(made(tmp_path / "t", *rows)), "--target-rps", "500", "--output-dir", str(tmp_path / "out")]
    assert cli.main([*line, "--tier", "gold", "--json"]) == OK
    data = json.loads(capsys.readouterr().out)
    assert data["endpoints"][0]["capacity"] == str(tmp_path / "t" / "gold")
    assert mentions(data["headline"], "5 instances of ml.m5.xlarge", "500/s"), "each at 70% of 168.2/s"


def test_a_tier_without_a_plan_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing: dict[str, Any] = {"outcome": "cannot_tell", "rate": None, "interval": None, "confirmation": []}
    folder = made(
        tmp_path / "t", row(tmp_path / "t", "gold", endpoint=ENDPOINT), row(tmp_path / "t", "never", **nothing)
    )
    line = ["plan", str(folder), "--target-rps", "500", "--output-dir", str(tmp_path / "out"), "--tier", "never"]
    assert cli.main(line) == MISSED
    assert "No plan: t/never: the search found no capacity" in capsys.readouterr().out
