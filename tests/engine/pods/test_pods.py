"""The pods of a wave as real processes: each index runs the container's own command, with its environment and files.

What a node does is done here: paths of mounts and the address of the Service are those of this machine.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.engine.hosts.host_keys import write_host_keys
from inference_benchmarker.engine.hosts.protocol import NODE
from inference_benchmarker.engine.pods.objects import FETCHED, KEYS, PORT, RUNS, SAID
from inference_benchmarker.engine.pods.pods import Pods
from tests.engine.hosts.plans import PATIENCE_S, once_it_runs
from tests.engine.pods.waves import container
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.process

PODS = Pods(2, job="load")
Pod = subprocess.Popen[str]


@pytest.fixture
def server() -> Iterator[StampServer]:
    with StampServer() as started:
        yield started


class Node:
    """Runs the pods of a wave."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.folder = folder
        self.runs = folder / "runs"
        self.runs.mkdir()
        write_host_keys(folder / "secret", PODS.senders, PODS.primary)
        (folder / "bin").mkdir()
        program = folder / "bin" / "benchmark"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m inference_benchmarker.cli "$@"\n')
        program.chmod(0o755)

    @contextmanager
    def running(self, url: str, seconds: int, patience_s: float = PATIENCE_S) -> Iterator[list[Pod]]:
        """All pods of a wave of 200 requests/s, by their index; killed in the end."""
        words = [url, "--client-rps=200", f"--obs-time={seconds}", "--quiet", "--workers=2"]
        words += [f"--join-timeout={patience_s:g}"]
        made = container(PODS, arguments=[*words, f"--hosts={','.join(PODS.senders)}"], files={}, variables=())
        with ExitStack() as stack:
            yield [stack.enter_context(self._pod(made, index)) for index in range(PODS.pods + 1)]

    @contextmanager
    def _pod(self, made: dict[str, Any], index: int) -> Iterator[Pod]:
        variables = {each["name"]: each.get("value", "127.0.0.1") for each in made["env"]} | {NODE: f"node-{index}"}
        keys = made["volumeMounts"][0]["subPathExpr"].replace("$(JOB_COMPLETION_INDEX)", str(index))
        here = {
            KEYS: str(self.folder / "secret" / keys),
            RUNS: str(self.runs),
            SAID: str(self.folder / "wave"),
            f"{PODS.job}:{PORT}": f"127.0.0.1:{self._port}",
            f":{PORT}": f":{self._port}",
        }
        environment = {
            **os.environ,
            **{name: _with(here, value) for name, value in variables.items()},
            "JOB_COMPLETION_INDEX": str(index),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
        }
        pod = subprocess.Popen(
            [_with(here, word) for word in (*made["command"], *made["args"])],
            env=environment,
            cwd=self.runs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield pod
        finally:
            if pod.poll() is None:
                os.killpg(pod.pid, signal.SIGKILL)
            pod.communicate()

    def summary(self) -> dict[str, Any]:
        """The summary of the wave, once it is there."""
        until = time.monotonic() + PATIENCE_S
        while not (found := list(self.runs.glob("*_benchmark/summary.json"))):
            assert time.monotonic() < until, "there is no summary"
            time.sleep(0.05)
        summary = json.loads(found[0].read_text())
        assert isinstance(summary, dict)
        return summary


def _with(here: dict[str, str], text: str) -> str:
    for there, place in here.items():
        text = text.replace(there, place)
    return text


def test_the_pods_send_the_wave_and_the_first_keeps_the_results_until_they_are_fetched(
    server: StampServer, tmp_path: Path
) -> None:
    node = Node(tmp_path)
    with node.running(server.url, 1) as (primary, *senders):
        summary = node.summary()
        ended = [sender.communicate(timeout=PATIENCE_S)[0] for sender in senders]
        assert primary.poll() is None
        (node.runs / FETCHED.removeprefix(f"{RUNS}/")).touch()
        said, _ = primary.communicate(timeout=PATIENCE_S)
    assert (summary["ledger"]["ok"], len(server.log())) == (200, 200)
    assert [(host["name"], host["sent"]) for host in summary["hosts"]] == [("load-1", 100), ("load-2", 100)]
    assert [host["node"] for host in summary["hosts"]] == ["node-1", "node-2"]
    assert "load-1 (node-1)" in said
    assert [sender.returncode for sender in senders] == [0, 0]
    assert ended == ["", ""]
    assert primary.returncode == summary["exit_code"]
    assert "RESULTS" in said
    assert int((tmp_path / "wave" / "code").read_text()) == summary["exit_code"]


@pytest.mark.slow
def test_a_pod_that_is_asked_to_end_reports_first_and_then_waits_no_more(server: StampServer, tmp_path: Path) -> None:
    node = Node(tmp_path)
    with node.running(server.url, 60) as (primary, *_):
        with once_it_runs(server, lambda: primary.send_signal(signal.SIGTERM)):
            summary = node.summary()
        while primary.poll() is None:
            primary.send_signal(signal.SIGTERM)
            time.sleep(0.5)
        said, _ = primary.communicate(timeout=PATIENCE_S)
    assert (primary.returncode, summary["ledger"]["ok"]) == (130, len(server.log()))
    assert "RESULTS" in said


@pytest.mark.slow
def test_a_wave_that_could_not_begin_has_no_results_to_keep(server: StampServer, tmp_path: Path) -> None:
    node = Node(tmp_path)
    (tmp_path / "secret" / "load-2.json").write_text("{}")
    with node.running(server.url, 1, patience_s=8) as (primary, first, second):
        assert second.communicate(timeout=PATIENCE_S)[0].startswith("benchmark: --host-keys")
        first.kill()
        said, _ = primary.communicate(timeout=2 * PATIENCE_S)
    assert (primary.returncode, second.returncode, len(server.log())) == (2, 2, 0)
    assert "load-2" in said
    assert (tmp_path / "wave" / "words").read_text() == said
