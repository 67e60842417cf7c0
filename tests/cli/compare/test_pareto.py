"""``benchmark pareto``: which runs it takes, what it leaves, and what it says of wrong input."""

from __future__ import annotations

import csv
import errno
import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow.parquet as pq
import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.compare.pareto import pareto_parser
from inference_benchmarker.cli.compare.pareto_flags import asked_of
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.wave.wave import Wave
from tests.case import case
from tests.counted import unrecorded
from tests.mentions import mentions
from tests.waves import MS, chat, drawn, observe, open_plan, stored, streamed, wave
from visualization.comparison.ab import Experiment
from visualization.pareto.configurations import configurations_of, left_out

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inference_benchmarker.cli.compare.pareto_flags import ParetoRequest
    from tests.bench import Bench


def make_run(parent: Path, rate: int, gap_ms: int, **more: Any) -> Path:
    """A run directory of so many streams a second."""
    step = 1000 // rate * MS
    records = [
        streamed(place, 20, (gap_ms,) * 5, tokens_out=6, tokens_in=10)._replace(index=place)
        for place in range(rate * 25)
    ]
    shifted = [
        each._replace(
            due=place * step,
            sent=place * step,
            first_token=place * step + 20 * MS,
            last_token=place * step + (20 + 5 * gap_ms) * MS,
            done=place * step + (20 + 5 * gap_ms) * MS,
        )
        for place, each in enumerate(records)
    ]
    facts = observe(open_plan(str(rate), "25", **more), shifted)
    members = {name: getattr(facts, name) for name in facts.__dataclass_fields__}
    return stored(Wave(**members), parent).path


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A is faster with one request a second, B with ten."""
    parent = tmp_path_factory.mktemp("runs")
    for name, gaps in (("a", {1: 10, 10: 60}), ("b", {1: 20, 10: 30})):
        for rate, gap in gaps.items():
            make_run(parent / name, rate, gap)
    return parent


def pareto(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> tuple[str, str]:
    assert cli.main(["pareto", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    return out, err


def test_an_answer_that_cannot_be_stored_is_printed(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("inference_benchmarker.system.files.replace_file", full)
    out, err = pareto(capsys, folders, "--gpus", "b=2", "--price", "gpu=3.6", "--output-dir", tmp_path, code=3)
    assert out.startswith("a is better at every speed")
    assert err.endswith("cannot be written (No space left on device). The results exist only in the printed text.\n")


def test_a_folder_of_runs_is_a_configuration_and_its_runs_are_points(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = pareto(capsys, folders, "--gpus", "b=2", "--price", "gpu=3.6", "--output-dir", tmp_path)
    assert out.startswith("a is better at every speed")
    (folder,) = tmp_path.iterdir()
    names = {path.name for path in folder.iterdir()}
    pictures = {f"pareto_{part}.{kind}" for part in ("frontier", "speeds", "cost") for kind in ("png", "svg")}
    assert names == {"pareto.json", "pareto.csv", "pareto.txt", "pareto.html"} | pictures
    assert mentions(err, "Page:", "pareto.html")
    found = json.loads((folder / "pareto.json").read_text())
    assert [(each["name"], each["gpus"], each["cost_hour"]) for each in found["configurations"]] == [
        ("a", 1, 3.6),
        ("b", 2, 7.2),
    ]
    speeds = [each["speed"]["median"]["value"] for each in found["points"]]
    assert speeds == pytest.approx([100, 1000 / 60, 50, 1000 / 30])
    per_gpu = [each["per_gpu"]["output"]["value"] for each in found["points"]]
    assert per_gpu == pytest.approx([6, 60, 3, 30], rel=0.1)
    rows = list(csv.DictReader((folder / "pareto.csv").read_text().splitlines()))
    assert [float(row["speed_median"]) for row in rows] == speeds
    assert out.splitlines()[0] == found["headline"] == (folder / "pareto.txt").read_text().splitlines()[0]


def test_json_is_the_stored_result(folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = pareto(capsys, folders / "a", folders / "b", "--json", "--output-dir", tmp_path)
    (folder,) = tmp_path.iterdir()
    assert json.loads(out) == json.loads((folder / "pareto.json").read_text())


def test_runs_of_one_name_are_one_configuration(tmp_path: Path) -> None:
    given = [
        make_run(tmp_path / str(rate), rate, 10, name=name) for rate, name in ((1, "x"), (2, "x"), (4, "y"), (5, None))
    ]
    found = configurations_of(given)
    assert list(found.values()) == [given[:2], given[2:3], given[3:]]
    assert [*found][:2] == ["x", "y"]
    assert configurations_of([*given, given[0]]) == found, "a run that is named twice is one"


def test_folders_of_runs_beside_runs_are_named_as_left_out(tmp_path: Path) -> None:
    own = [make_run(tmp_path, rate, 10) for rate in (1, 2)]
    for name in ("a", "b"):
        make_run(tmp_path / name, 4, 10)
    assert [*configurations_of([tmp_path]).values()] == [own]
    (said,) = left_out([tmp_path])
    assert mentions(said, "folders of runs are left out: a, b", "name them")
    assert not list(left_out([tmp_path / "a", *own]))


def test_a_run_whose_plan_is_lost_is_not_passed_over(folders: Path, tmp_path: Path) -> None:
    for name in ("good", "lost"):
        shutil.copytree(folders / "a", tmp_path / name)
    for run in (tmp_path / "lost").iterdir():
        (run / "plan.json").unlink()
    assert {*configurations_of([tmp_path])} == {"good", "lost"}
    assert cli.main(["pareto", str(tmp_path)]) == 2


def asked(*flags: str) -> ParetoRequest:
    options, problems = pareto_parser().parsed(list(flags))
    return asked_of(options, problems)


def hours(asked_for: ParetoRequest, *names: str) -> Iterator[float | None]:
    for name in names:
        known = asked_for.hour_of(name, names)
        yield None if known is None else known[0].per_hour * known[1]


PRICES: dict[tuple[str, ...], list[float | None]] = {
    (): [None, None],
    ("--price", "gpu=2"): [2, 2],
    ("--price", "gpu=2", "--gpus", "4"): [8, 8],
    ("--price", "gpu=2", "--gpus", "4", "--gpus", "b=1"): [8, 2],
    ("--price", "a=10", "--price", "gpu=2", "--gpus", "4"): [10, 8],
    ("--price", "a=10"): [10, None],
    ("--price", "a=10", "--price", "b=4"): [10, 4],
    ("--price", "a=10", "--price", "ml.p5.4xlarge=90"): [10, 90],
    ("--price", "ml.p5.4xlarge=90", "--gpus", "8"): [90, 90],
    ("--price", "p5=90", "--instance-type", "p5", "--gpus", "8"): [90, 90],
    ("--price", "p5=90", "--instances", "b=2"): [90, 180],
    ("--price", "p5=90", "--price", "g6=5", "--instance-type", "a=p5", "--instance-type", "g6"): [90, 5],
}


def test_the_cost_of_an_hour() -> None:
    for flags, expected in PRICES.items():
        with case(flags):
            found = asked(*flags)
            assert list(found.problems(["a", "b"])) == []
            assert list(hours(found, "a", "b")) == expected


WRONG = {
    (): "needs a RUN",
    ("a", "--gpus", "c=2"): "no run is called c",
    ("a", "--gpus", "0"): "--gpus must be from 1",
    ("a", "--gpus", "1", "--gpus", "2"): "given twice",
    ("a", "--price", "x"): "--price must be TYPE=USD",
    ("a", "--price", "x=1", "--price", "y=2"): "no run is of it",
    ("a", "b", "--price", "bb=10"): "--price bb: no run is of it. It must be gpu, one of a, b,",
    ("a", "b", "--price", "a=10", "--price", "bb=10"): "--price bb: no run is of it",
    ("a", "--instances", "b=1"): "no run is called b",
    ("a", "--instance-type", "a="): "--instance-type must be a type",
    ("a", "--token-weights", "1:2"): "INPUT:CACHED:OUTPUT",
    ("a", "--token-weights", "0:0:0"): "INPUT:CACHED:OUTPUT",
    ("nowhere",): "does not exist",
    ("a", "--gpu", "2"): "Did you mean --gpus",
}


def test_wrong_input_is_a_line(
    folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folders)
    for arguments, part in WRONG.items():
        with case(arguments):
            out, err = pareto(capsys, *arguments, code=2)
            assert out == ""
            assert mentions(err, "benchmark: ", part)
            assert all(line.startswith("benchmark: ") for line in err.splitlines())
    assert {path.name for path in folders.iterdir()} == {"a", "b"}


def test_waves_without_streams_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = stored(wave(drawn(1)), tmp_path / "runs").path
    _, err = pareto(capsys, run, "--output-dir", tmp_path / "out", code=2)
    assert mentions(err, "No request streamed")
    assert not (tmp_path / "out").exists()


def test_a_run_that_missed_its_limit_is_marked_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "runs", 2, 10)
    make_run(tmp_path / "runs", 4, 40, slos=(Slo.parse("ttft.p50<5ms"),))
    out, _ = pareto(capsys, tmp_path / "runs", "--output-dir", tmp_path / "out", code=1)
    (folder,) = (tmp_path / "out").iterdir()
    assert mentions(out, "1 of 2 runs is not usable: LIMIT MISSED")
    assert mentions(out, "✗ runs, 4/s: LIMIT MISSED")
    found = json.loads((folder / "pareto.json").read_text())
    assert found["exit_code"] == 1
    assert [each["unusable"] for each in found["points"]] == [[], ["LIMIT MISSED"]]
    assert mentions((folder / "pareto.csv").read_text(), "LIMIT MISSED")
    assert mentions((folder / "pareto.html").read_text(), "✗ LIMIT MISSED")


def of_ab(folder: Path, *sent: tuple[str, int, dict[str, Any], bool], **ended: Any) -> Path:
    """The folder of an ``ab``: a wave of each side, rate and fields, and whether it counts there."""
    experiment = Experiment(folder, {"A": "old.py", "B": "new.py"}, repeats=2, seed=1, **ended)
    folder.mkdir()
    for number, (side, rate, fields, counts) in enumerate(sent):
        made = Wave.load(stored(replace(chat(rate, seed=number), **fields), folder / side).path)
        experiment.add(side, number, made, counts=counts)
    compared = None if experiment.missing else experiment.compare(experiment.read())
    code = experiment.cut_code if compared is None else compared.exit_code
    experiment.save(compared, code)
    return folder


CUT, LOST = {"interrupted": True}, {"lost_workers": (0,)}
GOOD: dict[str, Any] = {}
ENDS: dict[str, tuple[list[tuple[str, int, dict[str, Any], bool]], dict[str, Any], int, tuple[str, ...]]] = {
    "before B's first wave": (
        [("A", 2, GOOD, True)],
        CUT,
        130,
        ("x_ab: INTERRUPTED (1 of 4 waves counted); B has no wave.", "A: "),
    ),
    "in B's first wave": (
        [("A", 2, GOOD, True), ("B", 2, CUT, False)],
        CUT,
        130,
        (
            "x_ab: INTERRUPTED (1 of 4 waves counted).",
            "1 of 2 runs is not usable: interrupted",
            "✗ B, 2/s: interrupted",
        ),
    ),
    "in the fourth wave": (
        [("A", 2, GOOD, True), ("B", 2, GOOD, True), ("A", 2, GOOD, True), ("B", 2, CUT, False)],
        CUT,
        130,
        ("x_ab: INTERRUPTED (3 of 4 waves counted).", "1 of 4 runs is not usable: interrupted"),
    ),
    "no wave is VALID": (
        [("A", 2, LOST, False), ("B", 2, LOST, False)],
        {"given_up": "three waves were INVALID"},
        3,
        ("x_ab: INVALID (three waves were INVALID; 0 of 4 waves counted).", "No point is usable", "✗ A, 2/s: INVALID"),
    ),
    "as planned": (
        [("A", 2, GOOD, True), ("B", 2, GOOD, True), ("A", 2, GOOD, True), ("B", 2, GOOD, True)],
        {},
        0,
        ("is better",),
    ),
    "a limit of the comparison": (
        [("A", 2, GOOD, True), ("B", 2, GOOD, True), ("A", 2, GOOD, True), ("B", 2, GOOD, True)],
        {"limits": ("success=0%",), "strict": True},
        1,
        ("x_ab: FAILED (by its comparison).",),
    ),
}


def test_an_ab_has_its_waves_that_do_not_count_its_end_and_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place, (end, (sent, ended, code, said)) in enumerate(ENDS.items()):
        with case(end):
            (tmp_path / str(place)).mkdir()
            folder = of_ab(tmp_path / str(place) / "x_ab", *sent, **ended)
            out, _ = pareto(capsys, folder, "--output-dir", tmp_path / "out", code=code)
            assert mentions(" ".join(out.split()), *said)
            assert out.startswith("x_ab: ") == bool(code), "the end comes first"
    of_folder, _ = pareto(capsys, folder.parent, "--output-dir", tmp_path / "out", code=code)
    assert of_folder == out, "in a folder of folders, too"


def test_an_ab_without_any_wave_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = of_ab(tmp_path / "x_ab", interrupted=True)
    out, err = pareto(capsys, folder, "--output-dir", tmp_path / "out", code=2)
    assert out == ""
    assert mentions(err, "no run", "x_ab: INTERRUPTED (0 of 4 waves counted)")


def test_runs_without_records_are_refused_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = stored(unrecorded(), tmp_path / "runs").path
    _, err = pareto(capsys, run, "--output-dir", tmp_path / "out", code=2)
    assert mentions(err, "requests were not recorded (--records none)")
    assert not mentions(err, "streamed")


@pytest.mark.process
def test_the_numbers_are_those_of_the_engine_s_log(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """A step of 20 ms: 50 tokens a second, whatever the client saw; tokens as the engine counted them."""
    engine: dict[str, Any] = {"llm": "8b-h100", "step_ms": (0, 0, 20, 0), "prefill_ms": (0, 0, 5)}
    with bench.endpoint(**engine) as endpoint:
        load = ("--concurrency", 2, "--obs-time", 3, "--warmup", 0, "--output-dir", "runs/a", "--model", "demo")
        command = bench.start(f"{endpoint.url}/v1", "--input-tokens", 30, "--output-tokens", 8, *load, factories=None)
        command.finish()
        arrivals = endpoint.arrivals()
    (run,) = (command.folder / "runs" / "a").iterdir()
    summary = json.loads((run / "summary.json").read_text())
    out, _ = pareto(capsys, run, "--json", "--output-dir", command.folder / "out", code=summary["exit_code"])
    (found,) = json.loads(out)["points"]
    rows = pq.read_table(run / "requests.parquet").to_pylist()
    speeds = sorted((row["tokens_out"] - 1) / (row["last_token"] - row["first_token"]) * 1e9 for row in rows)
    assert found["speed"]["median"]["value"] == pytest.approx(speeds[len(speeds) - -(-len(speeds) // 2)])
    assert sum(row["tokens_out"] for row in rows) == sum(arrivals["output_tokens"])
    assert sum(row["tokens_in"] for row in rows) == sum(arrivals["prompt_tokens"])
    start, planned_s = summary["window"]["t0_monotonic_ns"], summary["window"]["planned_s"]
    made = 0.0
    for begin, end, tokens in zip(
        *(arrivals[name] for name in ("arrival_ns", "finish_ns", "output_tokens")), strict=True
    ):
        within = min(end, start + planned_s * 1e9) - max(begin, start)
        made += tokens * max(within, 0) / (end - begin)
    assert found["per_gpu"]["output"]["value"] == pytest.approx(made / planned_s, rel=0.05)
