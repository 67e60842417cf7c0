"""A result of results keeps the digests of those that it is built on, whatever kind it is."""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

import pytest

from inference_benchmarker.cli import main
from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.data.json_file import write_with_digest
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.wave.files import identity
from inference_benchmarker.wave.provenance import WITHOUT, not_checked
from server_capacity.planning.folder import read_search
from server_capacity.planning.measured import Measured
from server_capacity.results import capacity_folder as of_capacity
from server_capacity.results import ranking_folder as of_ranking
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import Aim, row_of
from tests.capacities import found, searched
from tests.faults.stored import swapped
from tests.rankings import CURVE, row
from tests.waves import drawn, stored, wave
from visualization.comparison import ab
from visualization.comparison.result import Sent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from server_capacity.results.types.ranking import RankingResult


def search(folder: Path, seed: int) -> Path:
    """A search with two waves in its folder."""
    folder.mkdir()
    for number in range(2):
        stored(wave(drawn(10 * seed + number, seconds=2)), folder)
    of_capacity.save(folder, searched(headline="Meets p99<100ms up to 174/s", rate=170.0 + seed))
    return folder


def ranking_of(folder: Path) -> RankingResult:
    return ranking([row_of({"kind": "a"}, folder.name, of_capacity.read(folder), None, Aim())], Aim())


def waves_of(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.is_dir())


def replaced(folder: Path) -> None:
    one, _ = waves_of(folder)
    shutil.rmtree(one)
    another = stored(wave(drawn(99, seconds=2)), folder)
    another.path.rename(one)


def cut(folder: Path) -> None:
    requests = waves_of(folder)[1] / "requests.parquet"
    requests.write_bytes(requests.read_bytes()[:-100])


def lost(folder: Path) -> None:
    (waves_of(folder)[0] / "requests.parquet").unlink()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: swapped(*waves_of(folder)), "does not match its digest"),
        (replaced, "does not match its digest"),
        (cut, "requests.parquet was changed"),
        (lost, "has lost its requests.parquet"),
    ],
    ids=["swapped", "replaced", "cut", "lost"],
)
def test_a_search_whose_waves_are_not_its_own_is_refused(
    tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    folder = search(tmp_path / "one_capacity", 1)
    assert not isinstance(read_search(folder, 1, "m"), str)
    damage(folder)
    for read in (of_capacity.load, lambda each: read_search(each, 1, "m")):
        with pytest.raises(BenchmarkError, match=said):
            read(folder)


def test_a_plan_tells_of_waves_that_are_gone(tmp_path: Path) -> None:
    folder = search(tmp_path / "one_capacity", 1)
    shutil.rmtree(waves_of(folder)[0])
    gone = "1 of the 2 results that it is built on is missing, and cannot be checked"
    assert not_checked(folder, of_capacity.load(folder).data) == gone
    measured = read_search(folder, 1, "m")
    assert isinstance(measured, Measured)
    assert gone in measured.warnings


def tier_after(folder: Path) -> Path:
    """The search of a later tier, beside that of an earlier one whose waves are among its evidence."""
    earlier, later = search(folder / "gold", 1), folder / "silver"
    later.mkdir()
    own = stored(wave(drawn(30, seconds=2)), later).path
    names = {"exploration": [own.name], "shared": [each.name for each in waves_of(earlier)]}
    of_capacity.save(later, searched(headline="Meets p99<100ms up to 174/s", waves=names))
    return later


@pytest.mark.parametrize(
    ("damage", "said"), [(replaced, "does not match its digest"), (cut, "requests.parquet was changed")]
)
def test_a_tier_is_built_on_the_waves_of_the_tiers_before_it(
    tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    later = tier_after(tmp_path)
    assert [name for name in of_capacity.read(later).built_on or () if name.startswith("../")] == [
        f"../gold/{each.name}" for each in waves_of(tmp_path / "gold")
    ]
    damage(tmp_path / "gold")
    for read in (of_capacity.load, lambda each: read_search(each, 1, "m")):
        with pytest.raises(BenchmarkError, match=said):
            read(later)


def test_waves_of_earlier_tiers_that_are_gone_are_said(tmp_path: Path) -> None:
    later = tier_after(tmp_path)
    assert not_checked(later, of_capacity.load(later).data) == ""
    shutil.rmtree(tmp_path / "gold")
    gone = "2 of the 3 results that it is built on are missing, and cannot be checked"
    assert not_checked(later, of_capacity.load(later).data) == gone
    measured = read_search(later, 1, "m")
    assert isinstance(measured, Measured)
    assert gone in measured.warnings


def test_each_wave_of_several_tiers_is_counted_once(tmp_path: Path) -> None:
    tier_after(tmp_path)
    data = {"built_on": {"gold": "0", "silver": "1"}}
    shutil.rmtree(tmp_path / "silver" / waves_of(tmp_path / "silver")[0].name)
    assert not_checked(tmp_path, data).startswith("1 of the 5 results"), "two searches and three waves"


@pytest.mark.parametrize("name", ["..", "../x", "../../x/y", "../x/../y", "x/../y", "../x/y/z"])
def test_nothing_else_is_reached_outside_of_the_folder(tmp_path: Path, name: str) -> None:
    folder = search(tmp_path / "one_capacity", 1)
    data = json.loads((folder / "capacity.json").read_text())
    write_with_digest(folder / "capacity.json", {**data, "built_on": {name: "0"}})
    with pytest.raises(BenchmarkError, match="is not a folder below this one"):
        of_capacity.load(folder)


def test_what_is_asked_of_a_wave_afterwards_changes_nothing(tmp_path: Path) -> None:
    folder = search(tmp_path / "one_capacity", 1)
    summary = waves_of(folder)[0] / "summary.json"
    fields = json.loads(summary.read_text())
    fields["files"]["summary.txt"] = "of another report"
    write_with_digest(
        summary, {**{key: value for key, value in fields.items() if key != "digest"}, "server_metrics": []}
    )
    of_capacity.load(folder)


def test_a_ranking_is_not_built_on_a_search_that_still_goes_on_beside_it(tmp_path: Path) -> None:
    search(tmp_path / "a_capacity", 0)
    other = search(tmp_path / "b_capacity", 1)
    of_ranking.save(tmp_path, ranking_of(tmp_path / "a_capacity"))
    of_capacity.save(other, replace(of_capacity.read(other), name="stored again"))
    assert list(of_ranking.read(tmp_path).built_on or ()) == ["a_capacity"]


def test_a_ranking_whose_searches_were_swapped_is_refused(tmp_path: Path) -> None:
    one, other = (search(tmp_path / f"{name}_capacity", seed) for seed, name in enumerate("ab"))
    of_ranking.save(tmp_path, ranking_of(tmp_path / "a_capacity"))
    of_ranking.load(tmp_path)
    swapped(one, other)
    with pytest.raises(BenchmarkError, match="a_capacity does not match its digest"):
        of_ranking.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"interval": {"low": 1.0, "high": 180.0}}, "a_capacity/capacity.json was changed after the search was stored"),
        ({"digest": "0"}, "a_capacity does not match its digest"),
        ({"digest": None}, "a_capacity does not match its digest"),
    ],
)
def test_a_ranking_whose_search_was_changed_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    for seed, name in enumerate("ab"):
        search(tmp_path / f"{name}_capacity", seed)
    of_ranking.save(tmp_path, ranking_of(tmp_path / "a_capacity"))
    file = tmp_path / "a_capacity" / "capacity.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(BenchmarkError, match=said):
        of_ranking.load(tmp_path)


def test_the_summary_of_a_wave_two_levels_down_is_held_against_its_own_digest(tmp_path: Path) -> None:
    one, _ = (search(tmp_path / f"{name}_capacity", seed) for seed, name in enumerate("ab"))
    of_ranking.save(tmp_path, ranking_of(one))
    file = waves_of(one)[0] / "summary.json"
    fields = json.loads(file.read_text())
    file.write_text(json.dumps({**fields, "ledger": {**fields["ledger"], "ok": 1}}))
    with pytest.raises(BenchmarkError, match=r"summary\.json was changed after the wave was stored"):
        of_ranking.load(tmp_path)
    with pytest.raises(BenchmarkError, match=r"summary\.json was changed after the wave was stored"):
        of_capacity.load(one)


def test_a_ranking_is_held_against_the_waves_of_its_searches_too(tmp_path: Path) -> None:
    one, _ = (search(tmp_path / f"{name}_capacity", seed) for seed, name in enumerate("ab"))
    of_ranking.save(tmp_path, ranking_of(tmp_path / "a_capacity"))
    assert not_checked(tmp_path, of_ranking.load(tmp_path).data) == ""
    shutil.rmtree(waves_of(one)[0])
    gone = "1 of the 3 results that it is built on is missing, and cannot be checked"
    assert not_checked(tmp_path, of_ranking.load(tmp_path).data) == gone
    (waves_of(one)[0] / "requests.parquet").write_bytes(b"")
    with pytest.raises(BenchmarkError, match=r"requests\.parquet was changed"):
        of_ranking.load(tmp_path)


def test_a_file_that_cannot_be_read_was_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = (search(tmp_path / f"{name}_capacity", seed) for seed, name in enumerate("ab"))
    of_ranking.save(tmp_path, ranking_of(one))

    def closed(path: Path, _: Path) -> IO[bytes]:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(identity, "opened", closed)
    with pytest.raises(BenchmarkError, match=r"plan\.json cannot be read \(Permission denied\)"):
        of_ranking.load(tmp_path)


@pytest.mark.parametrize(("expected", "kept"), [("a", True), ("b", False)])
def test_a_row_is_of_the_variant_that_its_search_was_sent_to(tmp_path: Path, expected: str, kept: bool) -> None:
    folder = tmp_path / "x_m5_capacity"
    folder.mkdir()
    endpoint = {"name": "e", "arguments": {"kind": "a", "servers": 2}}
    made = row("m5", 100.0, endpoint=endpoint)
    interval = encoded(made.interval)
    search = searched(headline="103/s", endpoint=endpoint, rate=made.rate, interval=interval, curve=CURVE)
    of_capacity.save(folder, search)
    of_ranking.save(tmp_path, ranking([replace(made, variant={"kind": expected, "servers": "2.0"})], Aim()))
    if kept:
        of_ranking.load(tmp_path)
    else:
        with pytest.raises(BenchmarkError, match="was searched with kind=a, not kind=b"):
            of_ranking.load(tmp_path)


def test_sides_of_a_and_b_that_were_swapped_are_refused(tmp_path: Path) -> None:
    experiment = ab.Experiment(tmp_path, {"A": "old.py", "B": "new.py"}, repeats=1, seed=1)
    runs = []
    for seed, side in enumerate(ab.SIDES):
        (tmp_path / side).mkdir()
        run = stored(wave(drawn(seed, seconds=2)), tmp_path / side)
        experiment.sent = (
            *experiment.sent,
            Sent(side, 0, str(run.path.relative_to(tmp_path)), "VALID", counts=True),
        )
        runs.append(run.path)
    experiment.save(None, 0)
    ab.load(tmp_path)
    once = experiment.sent
    experiment.sent = (*once, once[0])
    experiment.save(None, 0)
    with pytest.raises(BenchmarkError, match="is listed twice"):
        ab.load(tmp_path)
    shutil.copytree(runs[0], tmp_path / "A" / "again")
    experiment.sent = (*once, Sent("A", 1, "A/again", "VALID", counts=True))
    experiment.save(None, 0)
    with pytest.raises(BenchmarkError, match="A/again is the same wave as A/"):
        ab.load(tmp_path)
    experiment.sent = (*once, Sent("A", 1, f"A/.{once[0].run[1:]}", "VALID", counts=True))
    experiment.save(None, 0)
    with pytest.raises(BenchmarkError, match="is not below its folder"):
        ab.load(tmp_path)
    experiment.sent = once
    experiment.save(None, 0)
    swapped(*runs)
    with pytest.raises(BenchmarkError, match="does not match its digest"):
        ab.load(tmp_path)


@pytest.mark.parametrize("name", ["..", "/etc", "a/../../b", ""])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    reported = found(schema_version=1, headline="Meets p99<100ms up to 174/s", built_on={name: "0"})
    (tmp_path / "capacity.json").write_text(json.dumps(reported))
    with pytest.raises(BenchmarkError, match="is not a folder below this one"):
        of_capacity.load(tmp_path)


def older(folder: Path, file: str, **more: Any) -> None:
    """Make a result one of an earlier version, which stored no digests of what it is built on."""
    data = {**json.loads((folder / file).read_text()), **more}
    del data["built_on"]
    write_with_digest(folder / file, data)


def test_an_older_search_is_held_against_its_waves_and_said_to_have_no_digests_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = search(tmp_path / "x_capacity", 1)
    names = [each.name for each in waves_of(folder)]
    older(folder, of_capacity.FILE, waves={"exploration": names[:1], "confirmation": names[1:]})
    assert main(["report", str(folder)]) == 0
    assert f"{folder}: {WITHOUT}." in capsys.readouterr().err
    planned = read_search(folder, None, "")
    assert isinstance(planned, Measured)
    assert planned.warnings == [WITHOUT]
    cut(folder)
    assert main(["report", str(folder)]) == 2
    assert "requests.parquet was changed" in capsys.readouterr().err
    shutil.rmtree(waves_of(folder)[1])
    gone = "1 of the 2 results that it is built on is missing, and cannot be checked"
    assert not_checked(folder, of_capacity.load(folder).data) == f"{gone}; {WITHOUT}"
    shutil.rmtree(waves_of(folder)[0])
    assert not_checked(folder, of_capacity.load(folder).data).startswith("2 of the 2 results")
    assert WITHOUT not in not_checked(folder, of_capacity.load(folder).data)


def test_an_older_ranking_tells_of_its_searches_and_of_their_waves(tmp_path: Path) -> None:
    one = search(tmp_path / "x_m5_capacity", 0)
    loaded = of_capacity.read(one)
    of_ranking.save(tmp_path, ranking([row_of({"kind": "a"}, one.name, loaded, None, Aim())], Aim()))
    older(tmp_path, of_ranking.FILE)
    assert not_checked(tmp_path, of_ranking.load(tmp_path).data) == WITHOUT
    for each in waves_of(one):
        shutil.rmtree(each)
    assert not_checked(tmp_path, of_ranking.load(tmp_path).data).startswith("2 of the 3 results")
    (waves_of(tmp_path)[0] / "capacity.json").write_text("[1]")
    with pytest.raises(BenchmarkError):
        of_ranking.read(tmp_path)
    shutil.rmtree(one)
    assert not_checked(tmp_path, of_ranking.load(tmp_path).data).startswith("1 of the 1 result")


def test_a_plan_tells_of_damage_to_the_waves_of_its_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = search(tmp_path / "x_capacity", 1)
    assert main(["plan", str(folder), "--target-rps", "300", "--output-dir", str(tmp_path / "out")]) == 0
    (plan,) = (tmp_path / "out").glob("*_plan")
    assert main(["report", str(plan)]) == 0
    assert "damaged" not in capsys.readouterr().err
    cut(folder)
    assert main(["report", str(plan)]) == 0
    assert "the search that it was made from is damaged: " in (reported := capsys.readouterr().err)
    assert "requests.parquet was changed" in reported
    (folder / "capacity.json").unlink()
    os.mkfifo(folder / "capacity.json")
    assert main(["report", str(plan)]) == 0
    assert "is no longer the search that the plan was made from" in capsys.readouterr().err


def test_a_wave_without_its_own_digest_is_refused_from_above_as_it_is_by_itself(tmp_path: Path) -> None:
    """Only the digest was gone, and what its summary says was believed of a changed one."""
    folder = search(tmp_path / "a_capacity", 1)
    summary = waves_of(folder)[0] / "summary.json"
    facts = json.loads(summary.read_text())
    del facts["digest"]
    summary.write_text(json.dumps({**facts, "success_rate": 0.123}))
    with pytest.raises(BenchmarkError, match="has digests of other files but none of its own"):
        of_capacity.read(folder)
