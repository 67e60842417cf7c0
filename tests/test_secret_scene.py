"""Every command that leaves files, in an environment full of secrets, against an endpoint that echoes them.

Whatever it leaves is opened, and no secret is found in any spelling that is promised.
"""

from __future__ import annotations

import ast
import json
import re
import sqlite3
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, PngImagePlugin

from inference_benchmarker import cli
from inference_benchmarker.cli.capacity import capacity_flags
from inference_benchmarker.cli.dispatch import COMMANDS
from tests.exported import read_page
from tests.proofs import planned
from tests.secret_scene import ASKED, FOUND, PLANTED, TELLING, Echo, Scene, holding, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench import Bench

pytestmark = pytest.mark.process
OUT = ("--output-dir", "runs")
FILE = ("--factories-file", "f.py", *OUT)
LOAD = ("--client-rps", 40, "--obs-time", 0.5, "--warmup", 0, "--workers", 1)
HEADERS = ("--header", f"Authorization: Bearer ${ASKED}", "--header", "X-Api-Key: $SERVICE_KEY")
LOCUST_FILE = f"""
import os
from locust import HttpUser, task
{TELLING}

class Teller(HttpUser):
    @task
    def tell(self):
        headers = {{"Authorization": "Bearer " + FOREST}}
        answer = self.client.post("/invocations", data=TOLD, headers=headers, name="task " + VALUES[2])
        if answer.status_code != 200:
            raise OSError(self.client.auth.password + answer.text)
"""
LEAVES_NOTHING = {
    "endpoint": "answers until it is ended",
    "completion": "prints a script of names",
    "manifests": "prints no secret, and makes a folder for them: tests/cli/wave/test_manifests.py searches both",
    "kubernetes": "leaves what a pod made, where every secret was hidden: tests/engine/pods searches it",
    "hosts": "installs on other hosts; what a wave leaves there is searched in tests/engine/hosts/test_shipping.py",
}
FORMS = ("text", "markdown", "html", "junit", "csv")


@pytest.fixture
def scene(bench: Bench) -> Iterator[Scene]:
    with Echo() as echo:
        yield Scene(bench, echo.url)


@pytest.fixture
def steady(bench: Bench) -> Iterator[Scene]:
    """One whose endpoint answers without an error, so that capacities are found."""
    with Echo(errors=0) as echo:
        yield Scene(bench, echo.url)


def test_a_wave_of_a_file_and_all_that_reads_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reported = scene.run(*FILE, *LOAD, "--debug", "--sample-client-hw")
    assert reported.run_dir is not None
    (run_dir,) = (scene.folder / "runs").iterdir()
    assert "[hidden]" in (run_dir / "summary.json").read_text()
    assert "[hidden]" in "".join(path.read_text() for path in (run_dir / "logs").iterdir())

    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(scene.folder)
    for form in FORMS:
        for output in ([], ["--output", f"report.{form}"]):
            assert cli.main(["report", str(run_dir), "--format", form, *output]) in (0, 1, 3)
    assert cli.main(["report", str(run_dir), "--json"]) in (0, 1, 3)
    assert cli.main(["plot", str(run_dir), "--plot-output-dir", "plots", "--plot-format", "html"]) == 0
    run_dir.rename(run_dir.with_name("other"))
    assert cli.main(["report", "runs/other"]) in (0, 1, 3)
    scene.printed += capsys.readouterr()
    scene.judge("what reads it")


def test_a_wave_of_an_address_and_one_that_fails(scene: Scene) -> None:
    scene.run(scene.url, "--body", "{}", *HEADERS, *OUT, *LOAD)
    (scene.folder / "f.py").write_text(
        (scene.folder / "f.py").read_text().replace("def invoke_factory", "raise OSError(TOLD)\n\ndef invoke_factory")
    )
    scene.run(*FILE, *LOAD, code=2)


def test_a_wave_of_a_locust_file_that_counts_and_pushes_its_figures(scene: Scene) -> None:
    """The collector of the figures answers with every secret, too."""
    (scene.folder / "users.py").write_text(LOCUST_FILE)
    url = scene.url.replace("://", "://me:4ddr3ss-p4ss@")
    flags = ("--locust-file", "users.py", "--url", url, *OUT, *LOAD, "--records", "none")
    with Echo(errors=1) as collector:
        reported = scene.run(*flags, "--export", f"otlp={collector.url}")
    assert "exports of metrics; the last failure: [hidden]" in reported.err
    assert "[hidden]" in (scene.one("*") / "summary.json").read_text()
    left = [opened(path) for path in scene.one("*").rglob("*") if path.is_file()]
    assert "4ddr3ss-p4ss" not in "".join((*left, *scene.printed))


@pytest.mark.slow
def test_check(bench: Bench) -> None:
    for errors in (0, 1):  # no answer is an error, each is one
        with Echo(errors) as echo:
            scene = Scene(bench, echo.url)
            scene.run("check", "--factories-file", "f.py")
            scene.run("check", scene.url, "--body", "{}", *HEADERS)
            scene.run("check", "--factories-file", "f.py", "--json")


@pytest.mark.slow
def test_a_demo_and_one_of_a_users_file(scene: Scene) -> None:
    scene.run("--demo", *OUT, *LOAD)
    scene.run("--demo", *FILE, *LOAD)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ab_compare_and_plot(scene: Scene) -> None:
    sides = ("ab", scene.url, scene.url, "--header-a", f"X-Key: ${ASKED}", "--header-b", "X-Key: $STORE_PASSWORD")
    outputs = ("--markdown", "ab.md", "--junit", "ab.xml", "--max-regression", "p99=10%")
    scene.run(*sides, "--body", "{}", *OUT, *LOAD, "--repeats", 2, *outputs)
    scene.run("ab", "f.py", "f.py", *OUT, *LOAD, "--repeats", 2)
    for _ in range(2):
        scene.run(*FILE, *LOAD)
    one, other = sorted((scene.folder / "runs").glob("*_benchmark*"))[:2]
    scene.run("compare", one, other, "--markdown", "c.md", "--junit", "c.xml")
    scene.run("compare", one, other, "--json")
    metadata = json.dumps({"legend": {one.name: f"legend {PLANTED[ASKED]}"}, "note": {one.name: PLANTED["PASS_CODE"]}})
    (scene.folder / "own.json").write_text(metadata)
    scene.run("plot", one, other, "--plot-output-dir", "plots", "--plot-metadata", "own.json", code=0)
    assert {path.suffix for path in (scene.folder / "plots").iterdir()} == {".html", ".png", ".svg"}
    scene.run("pareto", one, other, "--price", "gpu=2", *OUT)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_exported_figures(scene: Scene) -> None:
    flags = ("--export", "prometheus:0", "--export-wait", 60)
    variables = {**PLANTED, "TARGET": scene.url.removesuffix("/invocations")}
    running = scene.bench.start(*FILE, *LOAD, *flags, factories=None, environment=variables, folder=scene.folder)
    running.wait_for(lambda: "Waiting up to 60 s" in running.err, "its end")
    (url,) = re.findall(r"Figures for Prometheus: (\S+)\.\n", running.err)
    page = read_page(url)
    finished = running.finish()
    assert "[hidden]" in page
    scene.printed += [page, finished.out, finished.err]
    scene.judge("--export")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_searches_a_ranking_and_their_plans(steady: Scene) -> None:
    scene = steady
    short = ("--time", 8, "--slo", "p99<2s", "--max-rps", 60, "--workers", 1)
    scene.run("capacity", *FILE, *short)
    scene.run("capacity", scene.url, "--body", "{}", *HEADERS, *OUT, *short)
    scene.run("capacity", *FILE, *short, "--vary", "size=1,2", "--yes")
    logs = [path.read_text() for path in (scene.folder / "runs").rglob("endpoint_factory_*.log")]
    assert len(logs) == 2
    assert all("making it with [hidden]" in log for log in logs)
    tiers = ("--tier", "gold:p99<2s", "--tier", "silver:p99<3s")
    scene.run("capacity", *FILE, "--time", 8, "--max-rps", 60, "--workers", 1, *tiers, "--yes")
    for folder in sorted((scene.folder / "runs").glob("*_capacity*")):
        scene.run("plan", folder, "--target-rps", 20, *OUT)
        scene.run("report", folder)
    scene.run("report", scene.one("*_ranking"))
    scene.run("report", scene.one("*_tiers"))
    scene.run("plan", scene.one("*_tiers"), "--tier", "silver", "--target-rps", 20, *OUT)
    scene.run("plan", scene.one("*_ranking"), "--target-rps", 20, *OUT)
    scene.run("plot", *(scene.folder / "runs").glob("*_capacity*"), "--plot-output-dir", "plots")
    scene.run("endpoints", "clean", "runs")


@pytest.mark.slow
def test_a_proof(steady: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in {**PLANTED, "TARGET": steady.url.removesuffix("/invocations")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(steady.folder)
    monkeypatch.setattr(capacity_flags, "LEAST_TIME_S", 1.0)
    plan = planned(steady.folder, "--target-rps", "20")

    code = cli.main(["capacity", *FILE, "--verify", str(plan), "--time", "1", "--yes"])

    steady.printed += capsys.readouterr()
    assert code in (0, 1, 3), steady.printed
    assert "making it with [hidden]" in steady.printed[-1]
    assert (steady.one("*_proof") / "proof.json").is_file()
    steady.judge("--verify")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_this_client_can_send(scene: Scene) -> None:
    short = ("--step-time", 1, "--max-rps", 32, "--repeats", 4)
    scene.run("client", "worker-saturation", *FILE, *short)
    scene.run("client", "worker-saturation", scene.url, "--body", "{}", *HEADERS, *OUT, *short)
    scene.run("client", "limits")


@pytest.mark.slow
def test_metrics_a_recording_and_an_example(scene: Scene) -> None:
    config = {"stream": "prometheus", "url": scene.url, "queries": {"a": "up"}, "bearer_token_env": "MODEL_TOKEN"}
    (scene.folder / "config.json").write_text(json.dumps({"server": config}))
    scene.run("metrics", "--endpoint-config", "config.json", "--window", "-15m..now")
    rows = "".join(f"{json.dumps({'timestamp': time.time() + number / 50, 'prompt': 'a'})}\n" for number in range(40))
    (scene.folder / "recording.jsonl").write_text(rows)
    scene.run("replay", "recording.jsonl")
    scene.run(*FILE, "--replay", "recording.jsonl", "--workers", 1, "--endpoint-config", "config.json")
    (scene.folder / "copy.py").write_text(scene.run("factory", "http").out)
    scene.judge("factory")


class TestTheJudge:
    """It would find them."""

    def test_every_command_has_its_scene(self) -> None:
        """A new one is to be run here, or to be named among those that leave nothing."""
        calls = [node for node in ast.walk(ast.parse(Path(__file__).read_text())) if isinstance(node, ast.Call)]
        words = {word for call in calls for word in first_words(call)}
        assert {*COMMANDS, "plot"} - words == LEAVES_NOTHING.keys()

    def test_every_spelling(self) -> None:
        assert all(holding(f"before {each} after") for each in FOUND)
        assert not holding("[hidden]")

    @pytest.mark.parametrize("how", ["plain", "parquet", "metadata", "zip", "sqlite", "png"])
    def test_every_kind_of_file(self, how: str, tmp_path: Path) -> None:
        WRITERS[how](tmp_path / "file", f"in {PLANTED[ASKED]} it")
        assert holding(opened(tmp_path / "file"))


def first_words(call: ast.Call) -> list[object]:
    """The command of ``scene.run(...)`` or ``cli.main([...])``."""
    given = call.args[0] if call.args and ast.unparse(call.func) in ("scene.run", "cli.main") else None
    first = given.elts[0] if isinstance(given, ast.List) else given
    return [first.value] if isinstance(first, ast.Constant) else []


def _parquet(path: Path, text: str) -> None:
    pq.write_table(pa.table({"texts": pa.array([text] * 3).dictionary_encode()}), path, compression="zstd")


def _metadata(path: Path, text: str) -> None:
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({"note": text}), path)


def _zip(path: Path, text: str) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", text * 100)


def _sqlite(path: Path, text: str) -> None:
    with sqlite3.connect(path) as found:
        found.execute("create table a (b text)")
        found.execute("insert into a values (?)", (text,))


def _png(path: Path, text: str) -> None:
    note = PngImagePlugin.PngInfo()
    note.add_text("Comment", text, zip=True)
    Image.new("L", (1, 1)).save(path, "PNG", pnginfo=note)


WRITERS: dict[str, Any] = {
    "plain": lambda path, text: path.write_text(text),
    "parquet": _parquet,
    "metadata": _metadata,
    "zip": _zip,
    "sqlite": _sqlite,
    "png": _png,
}
