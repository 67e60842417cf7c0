"""``benchmark capacity --vary``: flags, the question before money is spent, and what becomes of each variant."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli import ranking
from tests.bench import factories
from tests.fake_cloudwatch import alone

if TYPE_CHECKING:
    from pathlib import Path

MAKES = """
def endpoint_factory(servers: str, instance_type: str = "ml.m5.large", instances: int = 1, env=None):
    raise AssertionError("nobody makes it here")
    yield


def payload_factory(size: int = 1):
    return {"pre_computed": True, "input": [b"x"]}
"""
LINE = ("capacity", "--factories-file", "f.py", "--output-dir", "out", "--time", "60")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(factories("return None").split("def payload_factory")[0] + MAKES)
    monkeypatch.setattr(ranking, "CHILD", "tests.variant_child")


class Ran:
    """A command that has ended, and the ranking that it left."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        self.code = cli.main([*LINE, *arguments])
        self.out, self.err = capsys.readouterr()


def left(folder: Path) -> tuple[Path, dict[str, Any]]:
    (made,) = (folder / "out").glob("*_ranking")
    return made, json.loads((made / "ranking.json").read_text())


def test_variants_are_ranked_and_printed_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--vary", "servers=1,3,fails,dies", "--target-rps", "300", "--price", "ml.m5.large=0.1", "--yes")
    ran = Ran(capsys, *flags, "--parallel", "1")

    assert ran.code == 0
    folder, data = left(tmp_path)
    assert ran.out.splitlines()[0] == data["headline"]
    assert (
        data["headline"] == "servers=3 is cheapest for 300/s: 2 instances, $0.20/h (given); next servers=1, 150% more."
    )
    rows = {row["variant"]["servers"]: row for row in data["rows"]}
    assert [row["rank"] for row in rows.values()] == [1, 2, None, None]
    assert rows["fails"]["headline"].endswith("raised ValueError: no.")
    assert rows["dies"]["headline"] == "The process that searched it was ended by signal 9."
    assert (folder / rows["3"]["capacity"] / "capacity.json").is_file()
    assert rows["3"]["endpoint"]["arguments"] == {"servers": "3"}
    assert data["spend"]["endpoints"] == 4
    assert "endpoint_factory is to make 4 endpoints" in ran.err
    assert cli.main(["report", str(folder.relative_to(tmp_path))]) == 0
    assert capsys.readouterr().out == ran.out
    assert cli.main(["report", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == data


def test_traffics_share_an_endpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capsys, "--vary", "servers=1", "--vary", "payload.size=1,3", "--yes", "--json", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    data = json.loads(ran.out)
    assert data["payload_variants"]["equivalent"] is False
    assert len({row["capacity"].partition("-")[0] for row in data["rows"]}) == 1, "one process, one endpoint"
    assert [row["endpoint"]["payload_arguments"] for row in data["rows"]] == [{"size": 3}, {"size": 1}]
    assert data["spend"]["endpoints"] == 1


def test_traffics_of_an_endpoint_that_is_there_make_none(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capsys, "--vary", "payload.size=1,1000", "--endpoint-name", "mine")
    assert ran.code == 0
    assert "is to make" not in ran.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--vary", "servers=1"], "Nobody can be asked here. Say --yes, and --max-cost USD to bound it."),
        (["--vary", "servers=1", "--yes", "--max-cost", "1"], "--max-cost 1: there is no price of ml.m5.large."),
        (
            ["--vary", "servers=1,2", "--yes", "--max-cost", "0.1", "--price", "ml.m5.large=1"],
            "--max-cost 0.1: it may cost 0.54 USD.",
        ),
        (["--vary", "servrs=1", "--yes"], "--vary servrs: endpoint_factory takes no argument 'servrs'"),
        (["--vary", "instances=x", "--yes"], "endpoint_factory's instances: expected int"),
        (["--yes"], "endpoint_factory needs servers: give --vary servers=VALUE."),
        (["--vary", "payload.sice=1", "--endpoint-name", "e"], "payload_factory takes no argument 'sice'"),
        (["--vary", "servers=1", "--endpoint-name", "e"], "--endpoint-name names one that is there"),
        (["--vary", "a"], "--vary 'a': expected NAME=VALUE,VALUE"),
        (["--target-rps", "5"], "--target-rps is for --vary"),
        (["--vary", "servers=1", "--parallel", "1000"], "--parallel must be from 1 to the"),
        (["--vary", "servers=1", "--target-rps", "0"], "--target-rps must be above 0"),
        (["--vary", "servers=1", "--in", "users"], "--vary ranks by requests/s: leave --in users out."),
        (["--vary", "servers=1", "--utilisation", "120%"], "--utilisation must be above 0% and at most 100%"),
        (["--price", "x"], "--price must be TYPE=USD"),
        (["--vary", "servers=1", "--recommender", "job", "--yes"], "--recommender job: no AWS region is set."),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], said: str
) -> None:
    ran = Ran(capsys, *flags)
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("\n", 2), ("", 2)])
def test_whoever_sits_at_a_terminal_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    import io

    monkeypatch.setattr(ranking, "has_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    ran = Ran(capsys, "--vary", "servers=1", "--price", "ml.m5.large=0.1")
    assert ran.code == code
    assert "1 endpoint, about 16 min each: 0.27 instance hours, about $0.027" in ran.err
    assert ("Nothing was made." in ran.err) == (code == 2)


def test_an_interrupt_keeps_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def press() -> None:
        while not list(tmp_path.glob("out/*/*/waits")):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    ran = Ran(capsys, "--vary", "servers=1,waits,2", "--yes")

    _, data = left(tmp_path)
    assert (ran.code, data["exit_code"], data["interrupted"]) == (130, 130, True)
    outcomes = {row["variant"]["servers"]: row["outcome"] for row in data["rows"]}
    assert outcomes == {"1": "found", "waits": "interrupted", "2": "interrupted"}
    assert data["headline"].startswith("Interrupted after 1 of 3 variants; so far servers=1")
    assert ran.out.startswith(data["headline"])
