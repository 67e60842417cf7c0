"""A variable that the factories file reads and that another host lacks is named before any load."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import cli
from inference_benchmarker.engine.hosts.shipping import cargo_of
from inference_benchmarker.engine.launch import run_wave
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.redact import HEADERS
from tests.engine.hosts.plans import a_plan
from tests.hosts.host import Spec

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan
    from tests.hosts.lab import Lab
    from tests.performance.stamp_server import StampServer

SOURCE = """
import os
import beside
KEY, HOME = os.environ.get("UPSTREAM_NAME", ""), os.environ["HOME"]
def invoke_factory():
    return lambda payload: None
def payload_factory():
    return {"pre_computed": True, "input": [1]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UPSTREAM_NAME", "blue")
    monkeypatch.setenv("UPSTREAM_PLACE", "here")
    monkeypatch.setenv(HEADERS, '{"Authorization": "abc"}')
    (tmp_path / "f.py").write_text(SOURCE)
    (tmp_path / "beside.py").write_text(
        'import os\nPLACE = os.getenv("UPSTREAM_PLACE")\nUNSET = os.getenv("NO_SUCH")\n'
    )
    return tmp_path


def plan_of(folder: Path, url: str, *passed: str) -> WavePlan:
    plan = a_plan(folder, url, "load1*1", of_hosts={"pass_env": passed})
    return replace(plan, factories_file=folder / "f.py", factory_settings={})


def test_those_that_are_set_here_and_not_sent_are_asked_for(folder: Path) -> None:
    assert set(cargo_of(plan_of(folder, "")).asked) == {"HOME", "UPSTREAM_NAME", "UPSTREAM_PLACE"}
    cargo = cargo_of(plan_of(folder, "", "UPSTREAM_NAME"))
    assert set(cargo.asked) == {"HOME", "UPSTREAM_PLACE"}
    assert cargo.environment["UPSTREAM_NAME"] == "blue"
    assert HEADERS in cargo.environment  # of an address's --header


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ({"HOME", "UPSTREAM_NAME", "UPSTREAM_PLACE"}, None),
        ({"HOME", "UPSTREAM_NAME"}, "it lacks UPSTREAM_PLACE, .*: give --pass-env UPSTREAM_PLACE$"),
        ({"HOME"}, "give --pass-env UPSTREAM_NAME --pass-env UPSTREAM_PLACE$"),
    ],
)
def test_those_that_nobody_has_there_are_named(folder: Path, there: set[str], expected: str | None) -> None:
    lacking = cargo_of(plan_of(folder, "")).lacking(there)
    assert (lacking is None) if expected is None else re.search(expected, lacking or "")


@pytest.mark.process
@pytest.mark.usefixtures("users_ssh")
def test_no_load_is_sent(laboratory: Lab, stamps: StampServer, folder: Path) -> None:
    (host,) = laboratory.start(Spec("load1"))
    try:
        with pytest.raises(BenchmarkError, match="load1 cannot be used: it lacks UPSTREAM_NAME, UPSTREAM_PLACE"):
            run_wave(plan_of(folder, stamps.url))
        assert len(stamps.log()) == 0
        assert host.left() == []
    finally:
        laboratory.stop(host)


@pytest.mark.process
@pytest.mark.usefixtures("users_ssh")
def test_a_check_sends_one_request_from_each_host(
    laboratory: Lab,
    stamps: StampServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    host, locked = laboratory.start(Spec("load1"), Spec("locked", authorized=False))
    try:
        assert cli.main(["check", stamps.url, "--hosts", "load1*9,locked"]) == 2
        ok, failed = capsys.readouterr().out.splitlines()
        assert ok.startswith("✓ load1: answered in ")
        assert failed.startswith("✗ locked: load@")
        assert len(stamps.log()) == 1
        assert host.left() == []
        assert not list(tmp_path.glob("*_benchmark"))
    finally:
        laboratory.stop(host, locked)
