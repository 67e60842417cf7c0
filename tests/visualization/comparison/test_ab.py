"""A and B: the order of their waves, and what a folder of them gives back."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from inference_benchmarker import Wave, cli
from inference_benchmarker.data.json_file import FOREIGN, write_with_digest
from inference_benchmarker.errors import BenchmarkError
from tests.case import case
from tests.waves import drawn, stored, wave
from visualization.comparison.ab import FILE, Experiment, is_ab, load, order
from visualization.comparison.headline import headline

if TYPE_CHECKING:
    from pathlib import Path


class TestOrder:
    def test_each_round_has_both(self) -> None:
        waves = list(order(50, seed=3))
        rounds = [waves[at : at + 2] for at in range(0, len(waves), 2)]
        assert [{number for number, _ in each} for each in rounds] == [{number} for number in range(50)]
        assert all(sorted(side for _, side in each) == ["A", "B"] for each in rounds)
        assert {each[0][1] for each in rounds} == {"A", "B"}

    def test_a_seed_repeats_it(self) -> None:
        assert list(order(20, seed=1)) == list(order(20, seed=1)) != list(order(20, seed=2))


def made(folder: Path, factor: float = 1.2, **more: Any) -> Experiment:
    """Four rounds, B slower by ``factor``, and a wave of A that does not count."""
    experiment = Experiment(folder, {"A": "old.py", "B": "new.py"}, repeats=4, seed=1, **more)
    for side, by in (("A", 1.0), ("B", factor)):
        (folder / side).mkdir(parents=True)
        for number in range(4):
            experiment.add(side, number, kept(folder / side, 10 * number + (side == "B"), by), counts=True)
    experiment.add("A", 3, kept(folder / "A", 99, 5, interrupted=True), counts=False)
    return experiment


def kept(folder: Path, seed: int, factor: float, *, interrupted: bool = False) -> Wave:
    made = replace(wave(drawn(seed, seconds=5) * factor), interrupted=interrupted)
    return Wave.load(stored(made, folder).path)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    found = made(tmp_path_factory.mktemp("ab"), limits=("p50=10%",))
    found.save(found.compare(found.read()), 1)
    return found


def forms_of(folder: Path, code: int, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """All that `report` and `plot` make of a folder; `report` exits with this code."""
    assert cli.main(["report", str(folder), "--json"]) == code
    fields = {"json": capsys.readouterr().out}
    for form in ("text", "markdown", "junit"):
        assert cli.main(["report", str(folder), "--format", form]) == code
        fields[form] = capsys.readouterr().out
    assert cli.main(["report", str(folder), "--format", "csv"]) == code  # whose rows are of its waves
    assert cli.main(["plot", str(folder), "--plot-format", "html", "--quiet"]) == 0
    capsys.readouterr()
    fields["page"] = unescape((folder / "benchmark_plots.html").read_text())
    return fields | {"markdown": fields["markdown"].replace("\\", "")}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """One wave of each side."""
    found = Experiment(tmp_path_factory.mktemp("pair"), {"A": "old.py", "B": "new.py"}, repeats=4, seed=1)
    for side in ("A", "B"):
        (found.folder / side).mkdir()
        found.add(side, 0, kept(found.folder / side, 1 + (side == "B"), 1), counts=True)
    return found


@pytest.mark.parametrize(
    ("cut", "code", "said"),
    [
        ({"aborted": "B after 2 s"}, 1, "Aborted (B after 2 s)"),
        ({"interrupted": True}, 130, "Interrupted"),
        ({"given_up": "three waves were INVALID"}, 3, "INVALID: three waves were INVALID"),
    ],
)
def test_one_without_a_wave_of_a_side_is_reported_as_it_ended(
    cut: dict[str, Any], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason and the exit code of the command, in every form, and no file that was asked for is missing."""
    found = Experiment(tmp_path, {"A": "old.py", "B": "new.py"}, repeats=4, seed=1, **cut)
    (tmp_path / "A").mkdir()
    found.add("A", 0, kept(tmp_path / "A", 1, 1), counts=True)
    found.save(None, code)
    for form in ("text", "markdown", "junit"):
        assert cli.main(["report", str(tmp_path), "--format", form]) == code
        shown = unescape(capsys.readouterr().out).replace("\\", "")
        assert f"{said}: no wave of B is usable, so nothing can be compared." in shown
    assert cli.main(["report", str(tmp_path), "--format", "junit", "--output", str(tmp_path / "out.xml")]) == code
    assert "<error" in (tmp_path / "out.xml").read_text()


def test_what_is_stored_is_read_again(experiment: Experiment) -> None:
    assert is_ab(experiment.folder)
    assert load(experiment.folder) == experiment
    data = json.loads((experiment.folder / FILE).read_text())
    data.pop("digest", None)
    assert (data["schema_version"], data["exit_code"], data["repeats"]) == (1, 1, 4)
    assert [each["counts"] for each in data["waves"]] == [True] * 8 + [False]
    assert data["comparison"]["headline"].startswith("FAILED: B is ")


def test_waves_that_do_not_count_are_in_no_number(experiment: Experiment) -> None:
    found = experiment.compare(experiment.read())
    assert (len(found.base.waves), len(found.new.waves)) == (4, 4)
    assert headline(found).startswith("FAILED: B is ")
    assert "% slower at p50, 95%: " in headline(found)


def test_the_ends_of_a_narrow_interval_are_distinguished(experiment: Experiment) -> None:
    found = experiment.compare(experiment.read())
    (row,) = [each for each in found.rows if each.name == "response_time.p50"]
    assert row.change is not None
    narrow = replace(row, low=row.change - 0.002, high=row.change + 0.002)
    reported = re.search(r"slower at p50, 95%: (\d+\.\d) to (\d+\.\d)%", headline(replace(found, rows=(narrow,))))
    assert reported is not None
    assert reported[1] != reported[2]


class TestCommands:
    def test_report_prints_it_again(self, experiment: Experiment, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["report", str(experiment.folder)]) == 1
        out, err = capsys.readouterr()
        assert "   A: old.py, 4 runs: VALID, 2,000 requests" in out
        assert out.splitlines()[-1] == "FAILED (1 of 1 limits violated)"
        assert err.splitlines() == ["1 wave left out: INVALID, aborted or interrupted.", f"Folder: {experiment.folder}"]

    def test_without_a_folder_it_is_the_one_made_last(
        self,
        experiment: Experiment,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        stored(wave(drawn(1, seconds=1)), tmp_path / ".tmp").path.rename(".tmp/20260101T000000Z_benchmark")
        (tmp_path / ".tmp" / "20260101T000001Z_ab").symlink_to(experiment.folder)
        assert cli.main(["report"]) == 1
        assert "   A: old.py, 4 runs: VALID" in capsys.readouterr().out
        assert cli.main(["plot", "--plot-format", "html"]) == 0
        assert (experiment.folder / "benchmark_plots.html").is_file()

    def test_plot_draws_the_runs_that_count(self, experiment: Experiment, tmp_path: Path) -> None:
        flags = ["--plot-format", "html", "--plot-output-dir", str(tmp_path), "--quiet"]
        assert cli.main(["plot", str(experiment.folder), *flags]) == 0
        page = (tmp_path / "benchmark_plots.html").read_text()
        assert all(f'"{name}"' in page for name in ("A 1", "A 4", "B 1", "B 4"))
        assert '"A 5"' not in page
        assert "FAILED: B is " in page

    @pytest.mark.parametrize(("given_up", "interrupted", "code"), [("A had 5", False, 3), ("", True, 130)])
    def test_what_is_missing_is_said(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, *, given_up: str, interrupted: bool, code: int
    ) -> None:
        cut = made(tmp_path, 1.0, given_up=given_up, interrupted=interrupted)
        cut.save(None, None)
        assert cli.main(["report", str(tmp_path)]) == code
        assert "the comparison uses what was measured by then." in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("end", "limits", "first"),
        [
            ({"interrupted": True}, True, "INTERRUPTED (2 of 8 waves counted)"),
            ({"interrupted": True}, False, "INTERRUPTED (2 of 8 waves counted)"),
            ({}, True, "INTERRUPTED (cut off, or still running; 2 of 8 waves counted)"),
            ({"given_up": "B: a|b: *no* disk"}, True, "INVALID (B: a|b: *no* disk; 2 of 8 waves counted)"),
            ({"aborted": "B after 2 s"}, True, "FAILED (aborted: B after 2 s; 2 of 8 waves counted)"),
            ({"aborted": "B after 2 s"}, False, "FAILED (aborted: B after 2 s; 2 of 8 waves counted)"),
        ],
    )
    def test_every_form_of_one_that_was_cut_short_begins_with_how_it_ended(
        self, pair: Experiment, capsys: pytest.CaptureFixture[str], end: dict[str, Any], first: str, *, limits: bool
    ) -> None:
        cut = Experiment(pair.folder, pair.what, 4, 1, ("p50=500%",) if limits else (), sent=pair.sent, **end)
        outcome = first.split(maxsplit=1)[0].lower()
        code = {"interrupted": 130, "invalid": 3, "failed": 1}[outcome]
        cut.save(cut.compare(cut.read()), code)
        reported = forms_of(cut.folder, code, capsys)
        for form, text in reported.items():
            with case(form):
                assert first in text
                assert "PASSED" not in text
        lines, read = reported["text"].splitlines(), json.loads(reported["json"])
        assert (lines[0].startswith(f"{first}: "), lines[-1].startswith(first[:-1])) == (True, True)
        assert (read["headline"], read["outcome"]) == (lines[0], outcome)
        assert json.loads((cut.folder / FILE).read_text())["comparison"] == read
        suite = ElementTree.fromstring(reported["junit"])  # noqa: S314 - our own
        red = [each.get("message") for each in suite.iter("failure" if code == 1 else "error")]
        assert red == [lines[0]]

    def test_one_that_was_killed_is_not_reported_as_whole(
        self, capsys: pytest.CaptureFixture[str], experiment: Experiment, tmp_path: Path
    ) -> None:
        data = json.loads((experiment.folder / FILE).read_text())
        data.pop("digest", None)
        (tmp_path / "waves").symlink_to(experiment.folder)
        waves = [{**each, "run": f"waves/{each['run']}"} for each in data["waves"]]
        (tmp_path / FILE).write_text(json.dumps({**data, "waves": waves[:7], "limits": [], "exit_code": None}))
        assert cli.main(["report", str(tmp_path)]) == 130
        assert "Cut off, or still running: the comparison uses what was measured by then." in capsys.readouterr().err

    def test_report_gives_the_forms_that_there_are(
        self, experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for form, begins in (("text", "FAILED: B is "), ("markdown", "### Benchmark comparison"), ("junit", "<?xml ")):
            file = tmp_path / form
            assert cli.main(["report", str(experiment.folder), "--format", form, "--output", str(file)]) == 1
            assert file.read_text().startswith(begins)
        assert cli.main(["report", str(experiment.folder), "--format", "csv"]) == 130
        assert len(capsys.readouterr().out.splitlines()) == 1 + 9
        assert cli.main(["report", str(experiment.folder), "--format", "html"]) == 2
        assert "so it has no html. --format text, markdown and junit give" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "change", "why"),
    [
        (0, {"counts": False}, "is listed as unusable, but is VALID"),
        (8, {"counts": True}, "is listed as usable, but was interrupted or aborted"),
        (0, {"verdict": "INVALID"}, "is VALID, not INVALID"),
    ],
)
def test_what_is_said_of_a_wave_is_held_against_it(
    experiment: Experiment, tmp_path: Path, place: int, change: dict[str, Any], why: str
) -> None:
    for side in ("A", "B"):
        (tmp_path / side).symlink_to(experiment.folder / side)
    data = json.loads((experiment.folder / FILE).read_text())
    data["waves"][place] |= change
    write_with_digest(tmp_path / FILE, data)
    with pytest.raises(BenchmarkError, match=why):
        load(tmp_path)


@pytest.mark.parametrize(
    ("said", "seen"), [({"exit_code": 0}, "its exit code is 0, but what it compares means 1"), ({}, "")]
)
def test_an_exit_code_is_that_of_what_is_compared(
    experiment: Experiment, tmp_path: Path, said: dict[str, Any], seen: str
) -> None:
    for side in ("A", "B"):
        (tmp_path / side).symlink_to(experiment.folder / side)
    write_with_digest(tmp_path / FILE, {**json.loads((experiment.folder / FILE).read_text()), **said})
    if not seen:
        load(tmp_path)
        return
    with pytest.raises(BenchmarkError, match=seen):
        load(tmp_path)


@pytest.mark.parametrize(
    ("settings", "what", "kept"),
    [
        (({}, {}), ("old.py", "b/new.py"), True),
        (({}, {}), ("b/new.py", "old.py"), False),
        (({"KIND": "a"}, {"KIND": "b"}), ("old.py (KIND=a)", "b/new.py (KIND=b, X-Key)"), True),
        (({"KIND": "a, b"}, {}), ("old.py (KIND=a, b)", "old.py"), True),
        (({"KIND": "a, b"}, {}), ("b/new.py (KIND=a, c)", "old.py"), False),
        (({"KIND": "a, M=b", "M": "z"}, {"M": "z"}), ("old.py (KIND=a, M=b)", "old.py"), True),
        (({"KIND": "a, M=b", "M": "z"}, {"M": "z"}), ("b/new.py (KIND=a, M=b)", "old.py"), False),
        (({"KIND": "a", "M": "z"}, {}), ("old.py (KIND=a, M=b)", "old.py (KIND=a)"), False),
        (({"SERVER": "http://a:1"}, {"SERVER": "http://b:1"}), ("http://b:1/p", "http://a:1/p"), False),
        (({"SERVER": "http://a:1"}, {"SERVER": "http://b:1"}), ("http://a:1/p", "http://b:1/p"), True),
        (({}, {}), ("elsewhere.py", "old.py"), False),
        (({}, {}), ("elsewhere.py", "neither.py"), True),
    ],
)
def test_a_side_is_what_its_waves_were_sent_to(
    tmp_path: Path, settings: tuple[dict[str, str], dict[str, str]], what: tuple[str, str], kept: bool
) -> None:
    experiment = Experiment(tmp_path, dict(zip("AB", what, strict=True)), 1, 1)
    for side, file, own in zip("AB", ("old.py", "b/new.py"), settings, strict=True):
        (tmp_path / side).mkdir()
        one = wave(drawn(3 + (side == "B"), seconds=2))
        plan = replace(one.plan, factories_file=tmp_path / file, factory_settings=own)
        experiment.add(side, 0, Wave.load(stored(replace(one, plan=plan), tmp_path / side).path), counts=True)
    experiment.save(None, 0)
    if kept:
        load(tmp_path)
        return
    with pytest.raises(BenchmarkError, match="was sent to"):
        load(tmp_path)


def test_an_earlier_versions_file_is_reported_to_have_no_digest(
    experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in ("A", "B"):
        (tmp_path / side).symlink_to(experiment.folder / side)
    data = json.loads((experiment.folder / FILE).read_text())
    del data["digest"]
    (tmp_path / FILE).write_text(json.dumps(data))
    assert cli.main(["report", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count(f"{tmp_path}: was stored without a digest") == 1
    assert cli.main(["report", str(experiment.folder)]) == 1
    assert "without a digest" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"waves": []}, "its exit code is 1, but what it compares means 130"),
        ({"waves": [{"side": "A", "round": 0, "run": "../x", "verdict": "VALID", "counts": True}]}, "is not below"),
        ({"waves": [{"side": "A"}]}, FOREIGN),
        ({"limits": [None]}, FOREIGN),
        ({"waves": [{"side": "A", "round": 0, "run": 1, "verdict": "VALID", "counts": True}]}, "cannot be read as"),
        ({"what": []}, FOREIGN),
    ],
)
def test_a_file_that_is_none_is_one_sentence(
    experiment: Experiment, tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    data = json.loads((experiment.folder / FILE).read_text())
    data.pop("digest", None)
    (tmp_path / FILE).write_text(json.dumps(data | change))
    with pytest.raises(BenchmarkError, match=why):
        load(tmp_path)
