"""Strangers on the hosts of a wave: at the socket that leads to the primary, and at the address of ``--listen``."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING

import pytest
from pyarrow.parquet import read_table

from inference_benchmarker.wave.run_dir import RunDir
from tests.conftest import ROOT
from tests.engine.hosts.commands import Running, running
from tests.hosts.host import LOGIN, OTHER, Spec
from tests.waves import facts_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.hosts.host import Host
    from tests.hosts.lab import Lab
    from tests.performance.stamp_server import StampServer

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("users_ssh")]


@pytest.fixture(scope="module")
def host(laboratory: Lab) -> Iterator[Host]:
    (host,) = laboratory.start(Spec("attacked"))
    yield host
    laboratory.stop(host)


def attacked(lab: Lab, wave: Running, host: Host, address: str, user: str) -> RunDir:
    """What a wave stored, on whose host somebody said what the suite's strangers say before it was stopped."""
    done = host.run("sh", "-c", f"cd {ROOT} && exec {lab.python} -m tests.strangers {address}", user=user)
    assert done.returncode == 0, done.stderr
    wave.process.send_signal(signal.SIGINT)
    code, text = wave.finish()
    assert code == 130, text
    assert "is lost" not in text
    return RunDir(*wave.folder.glob("*_benchmark"))


def check_unharmed(stored: RunDir, stamps: StampServer, host: Host) -> None:
    """Every record is of a request that the server saw, and the strangers were counted."""
    summary = facts_of(stored)
    assert summary["ledger"]["ok"] == len(stamps.log()) == read_table(stored.requests).num_rows
    assert summary["foreign_connections"] >= 2
    assert host.left() == []


def test_strangers_at_a_hosts_socket_change_nothing_and_other_users_do_not_reach_it(
    laboratory: Lab, stamps: StampServer, host: Host, tmp_path: Path
) -> None:
    with running(tmp_path, stamps, "--hosts", "attacked*2") as wave:
        (path,) = (path for path in host.files() if path.endswith("/primary"))
        assert "Permission denied" in host.run("ls", path, user=OTHER).stderr
        stored = attacked(laboratory, wave, host, f"ipc://{path}", LOGIN)
    check_unharmed(stored, stamps, host)


@pytest.mark.slow
def test_strangers_at_the_address_of_the_primary_change_nothing(
    laboratory: Lab, stamps: StampServer, host: Host, tmp_path: Path
) -> None:
    with socket.create_server((laboratory.address, 0)) as taken:
        listen = f"{laboratory.address}:{taken.getsockname()[1]}"
    with running(tmp_path, stamps, "--hosts", "attacked*2", "--listen", listen) as wave:
        stored = attacked(laboratory, wave, host, f"tcp://{listen}", OTHER)
    check_unharmed(stored, stamps, host)
