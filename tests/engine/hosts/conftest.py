"""What the tests of waves on separate hosts share: the user's own ssh, and a server that stamps what comes."""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.hosts.lab import Lab


@pytest.fixture
def users_ssh(laboratory: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``ssh`` is that of the user who can log in to the hosts, for this process and those that it starts."""
    ssh = shutil.which("ssh")
    assert ssh is not None
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(f'#!/bin/sh\nexec {shlex.join([*laboratory.session, ssh])} "$@"\n')
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


@pytest.fixture
def stamps(laboratory: Lab) -> Iterator[StampServer]:
    """A server that each host reaches, and that stamps the arrivals."""
    with StampServer(address=laboratory.address) as server:
        yield server
