"""No value of a secret is in what a keeper writes, or tells the command: its logs, cleanup.json, its answers."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.engine.processes.leftovers import new_mark
from inference_benchmarker.exit_codes import MISSED
from inference_benchmarker.words.redact import ADDRESSES, hide_values_of
from server_capacity.provisioning.cleaning import clean
from server_capacity.provisioning.cleanup_file import NAME, OF_FILE, CleanupFile
from server_capacity.provisioning.making import Making
from server_capacity.provisioning.messages import EndpointOrder
from server_capacity.provisioning.undo import CommandLine, Processes

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "open-sesame-and-close"
FACTORY = """
import os
def endpoint_factory():
    print("made with", os.environ["FOREST_PASSWORD"], flush=True)
    yield "http://me:p1ne-needles@forest"
    print("removed with", "p1ne-needles", flush=True)
    raise RuntimeError("not removed with " + os.environ["FOREST_PASSWORD"])
"""


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREST_PASSWORD", SECRET)
    monkeypatch.setenv(ADDRESSES, "")


def test_the_reason_of_a_failed_removal_has_none(tmp_path: Path) -> None:
    with CleanupFile.taken(tmp_path) as cleanup:
        cleanup.fail(cleanup.hold("endpoint", CommandLine(("false",)), None), f"curl said: {SECRET} is wrong")
    written = (tmp_path / NAME).read_text()
    assert SECRET not in written
    assert json.loads(written)["entries"][0]["reason"] == "curl said: [hidden] is wrong"


@pytest.mark.process
def test_what_an_endpoint_factory_prints_and_raises_has_none(tmp_path: Path) -> None:
    file = tmp_path / "factories_forest.py"
    file.write_text(FACTORY)
    folder = tmp_path / "search"
    folder.mkdir()
    ours, theirs = socket.socketpair()
    ours.settimeout(60)
    with CleanupFile.taken(folder) as cleanup, ours, ours.makefile("rb") as heard:
        making = Making(cleanup, EndpointOrder(str(file), {}, "r", {}), theirs, {})
        making.start()
        said = []
        for line in heard:
            said.append(json.loads(line))
            if "made" in said[-1] or "failed" in said[-1]:
                making.end()
        making.join(60)
    (log,) = folder.glob("endpoint_factory_*.log")
    assert "made with [hidden]" in log.read_text()
    assert "removed with [hidden]" in log.read_text()
    assert any("[hidden]" in each.get("warn", "") for each in said)
    everything = json.dumps(said) + "".join(path.read_text() for path in folder.iterdir())
    assert SECRET not in everything


def test_what_a_clean_up_says_hides_what_the_factories_file_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, file = "Qv7xK2pR9mT4wZ8nB3cY", tmp_path / "factories_gate.py"
    monkeypatch.setenv("GATEWAY_ACCESS", key)
    monkeypatch.setenv("BENCHMARK_ASKED_FOR", "")
    hide_values_of(os.environ)
    file.write_text('import os\nACCESS = os.environ["GATEWAY_ACCESS"]\n')
    folder = tmp_path / "search"
    folder.mkdir()
    with CleanupFile.taken(folder) as cleanup:
        cleanup.hold(f"{OF_FILE}{file}", Processes(new_mark()), None)
        cleanup.hold("endpoint", CommandLine(("sh", "-c", f"echo {key} is wrong >&2; false")), None)
    said: list[str] = []
    assert clean(folder, said.append, 0.1) == MISSED
    assert key not in (folder / NAME).read_text().replace(f"echo {key}", "")
    assert key not in " ".join(said).replace(f"echo {key}", "")
    assert "is wrong" in (folder / NAME).read_text()
