"""The command as a user runs it, and the ends that it may come to while other hosts send for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.engine.hosts.plans import BEGUN, PATIENCE_S
from tests.hosts.host import Spec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.hosts.host import Host
    from tests.hosts.lab import Lab
    from tests.performance.stamp_server import StampServer

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("users_ssh")]


@pytest.fixture(scope="module")
def two(laboratory: Lab) -> Iterator[list[Host]]:
    hosts = laboratory.start(Spec("one"), Spec("other", clock_s=500))
    yield hosts
    laboratory.stop(*hosts)


class Running:
    """A wave of a minute from two hosts and this one, of which the server has had some requests."""

    def __init__(self, folder: Path, stamps: StampServer, hosts: str) -> None:
        self.folder = folder
        line = [sys.executable, "-m", "inference_benchmarker.cli", stamps.url, "--hosts", hosts]
        line += ["--client-rps", "100", "--obs-time", "60", "--output-dir", str(folder)]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        last = time.monotonic() + PATIENCE_S
        while len(stamps.log()) < BEGUN and self.process.poll() is None and time.monotonic() < last:
            time.sleep(0.02)

    def finish(self) -> tuple[int, str]:
        """The exit code and what was printed."""
        text, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, text


@contextmanager
def running(folder: Path, stamps: StampServer, hosts: str = "one,other*1,localhost*1") -> Iterator[Running]:
    wave = Running(folder, stamps, hosts)
    try:
        yield wave
    finally:
        wave.process.kill()
        wave.process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_a_wave_of_other_hosts(stamps: StampServer, two: list[Host], tmp_path: Path, times: int) -> None:
    with running(tmp_path, stamps) as wave:
        for _ in range(times):
            wave.process.send_signal(signal.SIGINT)
        code, text = wave.finish()
    assert code == 130, text
    assert len(list(tmp_path.glob("*/requests.parquet"))) == 1
    assert [host.left() for host in two] == [[], []]


def test_a_command_that_is_killed_leaves_nothing_on_any_host(
    stamps: StampServer, two: list[Host], tmp_path: Path
) -> None:
    with running(tmp_path, stamps) as wave:
        wave.process.kill()
        wave.finish()
        assert [host.left() for host in two] == [[], []]


@pytest.mark.slow
def test_a_primary_that_is_killed_ends_the_workers_of_every_host(
    stamps: StampServer, two: list[Host], tmp_path: Path
) -> None:
    with running(tmp_path, stamps) as wave:
        children = subprocess.run(
            ["pgrep", "-P", str(wave.process.pid), "-f", "engine.primary"], capture_output=True, text=True, check=True
        )
        os.kill(int(children.stdout), signal.SIGKILL)
        code, text = wave.finish()
    assert code == 3, text
    assert [host.left() for host in two] == [[], []]


@pytest.mark.slow
def test_logins_that_are_killed_lose_their_host_and_the_wave_says_so(
    stamps: StampServer, two: list[Host], tmp_path: Path
) -> None:
    with running(tmp_path, stamps) as wave:
        two[1].kill_sshd(sessions=True)
        time.sleep(1)
        two[1].start_sshd()
        wave.process.send_signal(signal.SIGINT)
        code, text = wave.finish()
    assert code == 130, text
    assert "other is lost: " in text
    assert "INVALID" in text
    assert [host.left() for host in two] == [[], []]
