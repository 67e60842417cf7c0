"""``benchmark --plot``: which files it writes, and what it says of wrong input."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from inference_benchmarker.cli import main
from inference_benchmarker.cli.compare import plot as plotting
from inference_benchmarker.data.json_file import write_json
from inference_benchmarker.plan.load import Bounds, ClosedLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.wave.wave import Wave
from tests.bench import ROOT
from tests.mentions import mentions
from tests.waves import make_run
from visualization.figures.bars import FORMER_NAMES, all_bars, choose
from visualization.figures.reading import read_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLE = ROOT / "visualization" / "hover_configs" / "example.json"
PNG = b"\x89PNG"


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    make_run(tmp_path / "a", 300)
    make_run(tmp_path / "b", 300, 150, dropped=20)
    return [tmp_path / "a", tmp_path / "b"]


def plot(paths: Sequence[Path], *flags: object) -> int:
    return main(["--plot", *map(str, [*paths, *flags])])


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_page_and_pictures_go_to_the_first_run(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert plot(runs) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(written) == sorted(runs[0].glob("benchmark_plots*"))
    names = [path.name for path in written]
    assert names[0] == "benchmark_plots.html"
    assert {"benchmark_plots_load.png", "benchmark_plots_times.png", "benchmark_plots_capacity.png"} <= set(names)
    pictures = {kind: [path for path in written if path.suffix == kind] for kind in (".png", ".svg")}
    assert all(path.read_bytes().startswith(PNG) for path in pictures[".png"])
    assert [path.stem for path in pictures[".svg"]] == [path.stem for path in pictures[".png"]]


def test_the_page_of_one_run_is_its_report_unless_fields_are_chosen(runs: list[Path], tmp_path: Path) -> None:
    legend = ("--plot-metadata", json.dumps({"a": {"legend": "the only <one>"}}), "--plot-format", "html")

    def titled(*flags: object) -> str:
        assert plot(runs[:1], "--plot-output-dir", tmp_path / "out", *flags) == 0
        found = re.search(
            "<title>(.*)</title>", (tmp_path / "out" / "benchmark_plots.html").read_text(encoding="utf-8")
        )
        assert found is not None
        return found[1]

    assert titled(*legend) == "the only &lt;one&gt;: VALID"
    assert titled("--plot-fields", '{"locust": ["Latency (ms)"]}', "--plot-format", "html") == "Benchmark comparison"
    (runs[0] / "summary.json").write_text("{")
    assert plot(runs[:1], "--plot-format", "html") == 2


def test_the_runs_of_the_command_may_stand_after_its_flags(runs: list[Path], tmp_path: Path) -> None:
    assert (
        main(["plot", "--quiet", "--plot-format", "html", "--plot-output-dir", str(tmp_path / "o"), *map(str, runs)])
        == 0
    )
    assert '<p class="lead">' in (tmp_path / "o" / "benchmark_plots.html").read_text()


def test_folders_stand_for_the_runs_in_them_which_are_called_by_them(tmp_path: Path) -> None:
    times = [tmp_path / side / f"2026112{number}T144423Z_benchmark" for number, side in enumerate(("base", "new"))]
    for number, path in enumerate(times):
        make_run(path, 300 + number)
    folders = [str(path.parent) for path in times]
    assert main(["plot", *folders, "--plot-output-dir", str(tmp_path), "--plot-format", "html"]) == 0
    page = (tmp_path / "benchmark_plots.html").read_text(encoding="utf-8")
    assert all(f'"label":"{name}"' in page for name in ("base", "new"))


def test_the_page_needs_nothing_else(runs: list[Path], tmp_path: Path) -> None:
    assert plot(runs, "--plot-output-dir", tmp_path / "new" / "folder", "--plot-format", "html") == 0
    (page,) = (tmp_path / "new" / "folder").iterdir()
    text = page.read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\s\"']+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}, "the name of SVG, which nobody fetches"
    assert page.stat().st_size < 1_000_000


@pytest.mark.filterwarnings("error")
def test_svg_is_well_formed_whatever_the_names_and_the_same_each_time(runs: list[Path], tmp_path: Path) -> None:
    metadata = {"a": {"legend": "日本 🚀 \x1b[31m\n\x00 ]]> --" + "x" * 300}, "b": {"legend": "_hidden"}}
    flags = ("--plot-metadata", json.dumps(metadata), "--plot-format", "svg")
    for name in ("one", "two"):
        assert plot(runs, *flags, "--plot-output-dir", tmp_path / name) == 0
    pictures = sorted((tmp_path / "one").iterdir())
    assert {path.suffix for path in pictures} == {".svg"}
    for picture in pictures:
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")  # noqa: S314 - our own
        assert picture.read_bytes() == (tmp_path / "two" / picture.name).read_bytes()


def test_no_name_breaks_out_of_page_or_picture(runs: list[Path], tmp_path: Path) -> None:
    metadata = {"a": {"legend": "</script><script>alert(1)</script> $x_1$ \\", "note": "<b>$"}}
    flags = ("--plot-metadata", json.dumps(metadata), "--plot-output-dir", tmp_path / "out")
    assert plot(runs, *flags) == 0
    assert "<script>alert" not in (tmp_path / "out" / "benchmark_plots.html").read_text(encoding="utf-8")


def test_the_fields_of_the_readme_work_without_aiperf(runs: list[Path]) -> None:
    fields = '{"locust": ["Latency (ms)"], "aiperf": ["Server RPS"]}'
    assert plot(runs, "--plot-fields", fields, "--plot-format", "html") == 0
    page = (runs[0] / "benchmark_plots.html").read_text(encoding="utf-8")
    assert '"source":"aiperf"' in page
    assert '"field":"Duration (s)"' not in page


def test_fields_are_known_by_their_former_names(runs: list[Path]) -> None:
    known = all_bars(read_runs(runs, {}, Wave.load, lambda _: None))
    bars = choose(known, {"locust": [*FORMER_NAMES], "aiperf": [*FORMER_NAMES]})
    assert [each.field for each in bars] == [*FORMER_NAMES.values()] * 2
    assert [each.measured for each in bars] == [each.source == "locust" for each in bars]


def test_a_run_of_aiperf_alone_is_shown_by_its_bars(runs: list[Path], tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    (alone / "aiperf").mkdir(parents=True)
    write_json(alone / "plan.json", WavePlan(ClosedLoop(3), Bounds(None, 5)).to_json())
    times = {"inter_chunk_latency": {"avg": 1.5, "p99": 7.5}, "inter_token_latency": {"avg": 1.25}}
    (alone / "aiperf" / "profile_export_aiperf.json").write_text(json.dumps({"schema_version": "1.0", **times}))
    (run,) = read_runs([alone], {}, Wave.load, lambda _: None)
    assert (run.verdict, run.doubtful, run.problems) == ("aiperf only", False, ())
    bars = {each.field: each for each in choose(all_bars([run]), None)}
    assert set(bars) == {"ITL (ms)", "TPOT (ms)"}
    assert [bars["ITL (ms)"].statistics[name][0].value for name in ("mean", "p99")] == [1.5, 7.5]
    assert bars["TPOT (ms)"].statistics["mean"][0].value == 1.25
    for paths in ([alone], [alone, *runs]):
        assert plot(paths, "--plot-output-dir", tmp_path / f"out{len(paths)}", "--plot-format", "html") == 0
        page = (tmp_path / f"out{len(paths)}" / "benchmark_plots.html").read_text(encoding="utf-8")
        assert "UNREADABLE" not in page
    (alone / "aiperf" / "profile_export_aiperf.json").unlink()
    (run,) = read_runs([alone], {}, Wave.load, lambda _: None)
    assert "profile_export_aiperf.json" in run.problems[0]


def test_metadata_may_be_a_file(runs: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "metadata.json"
    file.write_text('{"a": {"legend": "the base", "instance": "g5"}}')
    assert plot(runs, "--plot-metadata", file, "--plot-format", "html") == 0
    page = (runs[0] / "benchmark_plots.html").read_text(encoding="utf-8")
    assert '"label":"the base"' in page
    assert '"instance: g5"' in page


def test_the_shipped_example_is_metadata() -> None:
    example = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    assert all("legend" in lines for lines in example.values())
    assert all(re.fullmatch(r"\d{8}T\d{6}Z_benchmark", name) for name in example)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--plot-metadata", "{"], "--plot-metadata: is not JSON"),
        (["--plot-metadata", "missing.json"], "--plot-metadata missing.json: cannot be read (No such file"),
        (["--plot-metadata", '{"a": "base"}'], "--plot-metadata must be an object with an object for each run"),
        (["--plot-fields", "Latency (ms)"], "--plot-fields: is not JSON"),
        (["--plot-fields", '{"locust": "Latency (ms)"}'], "--plot-fields must be an object with a list"),
        (["--plot-fields", "[]"], "--plot-fields must be an object with a list"),
        (["--plot-fields", '{"locust": ["Speed"]}'], "locust has no field 'Speed'. Its fields are Duration (s),"),
        (["--plot-format", "html,pdf"], "--plot-format: 'pdf' is not one of html, png, svg."),
        (["--demo"], "Unknown argument '--demo'"),
        (["--plot-output-dir", "/proc/none"], "/proc/none: cannot be written"),
    ],
)
def test_wrong_input_is_one_line_each(
    runs: list[Path], flags: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plot(runs, *flags) == 2
    (line,) = said(capsys)
    assert line.startswith("benchmark: ")
    assert expected in line
    assert not list(runs[0].glob("benchmark_plots*"))


def test_what_takes_long_says_how_it_goes_on(
    runs: list[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plotting, "SLOW_S", -1.0)
    assert plot(runs, "--plot-format", "html") == 0
    assert "Reading b (2 of 2)" in capsys.readouterr().err.splitlines()
    assert plot(runs, "--plot-format", "html", "--quiet") == 0
    assert capsys.readouterr().err == ""


def test_every_problem_is_reported_at_once(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert plot(runs, "--plot-metadata", "{", "--plot-fields", "{", "--plot-format", "gif") == 2
    assert len(said(capsys)) == 3


def test_metadata_of_runs_that_are_not_plotted_is_left_out_with_a_note(
    runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    metadata = json.dumps({"a": {"legend": "the base"}, "c": {}, "d": {"legend": "x"}})
    assert plot(runs, "--plot-metadata", metadata, "--plot-format", "html") == 0
    assert mentions(capsys.readouterr().err, "--plot-metadata", "'c'", "'d'")
    assert '"label":"the base"' in (runs[0] / "benchmark_plots.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("first", [True, False])
def test_what_is_no_run_is_skipped_with_a_warning(
    first: bool, runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert plot([other, *runs] if first else [*runs, other], "--plot-format", "html", "--quiet") == 0
    captured = capsys.readouterr()
    assert captured.out == f"{runs[0] / 'benchmark_plots.html'}\n"
    assert captured.err.startswith(f"Skipped: {other}: is not a run directory")
    assert len(captured.err.splitlines()) == 1


def test_where_no_directory_is_a_run_nothing_is_plotted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").mkdir()
    assert plot([tmp_path / "other", tmp_path / "none"]) == 2
    reported = said(capsys)
    assert ["other: is not a run directory" in reported[0], "none: does not exist." in reported[1]] == [True, True]


def test_directories_may_stand_in_one_argument_with_commas_between_them(runs: list[Path], tmp_path: Path) -> None:
    make_run(tmp_path / "c, d", 300)
    paths = [Path(f"{runs[0]},{runs[1]}"), tmp_path / "c, d"]
    assert plot(paths, "--plot-format", "html") == 0
    page = (runs[0] / "benchmark_plots.html").read_text(encoding="utf-8")
    assert all(f'"label":"{name}"' in page for name in ("a", "b", "c, d"))


def test_what_is_no_directory_at_all_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert plot([]) == 2
    assert "There is no run in .tmp" in said(capsys)[0]
