"""The command as a user runs it, and the ends that it may come to while other hosts send for it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.engine.hosts.commands import running
from tests.hosts.host import Spec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.hosts.host import Host
    from tests.hosts.lab import Lab
    from tests.performance.stamp_server import StampServer

HOSTS = ("--hosts", "one,other*1,localhost*1")

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("users_ssh")]


@pytest.fixture(scope="module")
def two(laboratory: Lab) -> Iterator[list[Host]]:
    hosts = laboratory.start(Spec("one"), Spec("other", clock_s=500))
    yield hosts
    laboratory.stop(*hosts)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_a_wave_of_other_hosts(stamps: StampServer, two: list[Host], tmp_path: Path, times: int) -> None:
    with running(tmp_path, stamps, *HOSTS) as wave:
        for _ in range(times):
            wave.process.send_signal(signal.SIGINT)
        code, text = wave.finish()
    assert code == 130, text
    assert len(list(tmp_path.glob("*/requests.parquet"))) == 1
    assert [host.left() for host in two] == [[], []]


def test_a_command_that_is_killed_leaves_nothing_on_any_host(
    stamps: StampServer, two: list[Host], tmp_path: Path
) -> None:
    with running(tmp_path, stamps, *HOSTS) as wave:
        wave.process.kill()
        wave.finish()
        assert [host.left() for host in two] == [[], []]


@pytest.mark.slow
def test_a_primary_that_is_killed_ends_the_workers_of_every_host(
    stamps: StampServer, two: list[Host], tmp_path: Path
) -> None:
    with running(tmp_path, stamps, *HOSTS) as wave:
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
    with running(tmp_path, stamps, *HOSTS) as wave:
        two[1].kill_sshd(sessions=True)
        time.sleep(1)
        two[1].start_sshd()
        wave.process.send_signal(signal.SIGINT)
        code, text = wave.finish()
    assert code == 130, text
    assert "other is lost: " in text
    assert "INVALID" in text
    assert [host.left() for host in two] == [[], []]
