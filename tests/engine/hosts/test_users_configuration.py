"""The user's own ~/.ssh/config counts, jumps too; nothing in it changes what a login is used for."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.engine.launch import run_wave
from tests.engine.hosts.plans import a_plan, once_it_runs
from tests.hosts.host import Spec

if TYPE_CHECKING:
    from tests.hosts.lab import Lab
    from tests.performance.stamp_server import StampServer

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("users_ssh")]

CONFIG = """Host hidden
  HostName {address}
  HostKeyAlias behind
  ProxyJump jump
  ControlMaster auto
  ControlPath {place}/mux
  ControlPersist yes
  RemoteCommand echo mine
  RequestTTY force
  PermitLocalCommand yes
  LocalCommand touch {place}/local
  ExitOnForwardFailure yes
  LocalForward 127.0.0.1:{taken} 127.0.0.1:9
"""


def test_a_host_behind_a_jump_is_reached_whatever_else_the_user_has_set_for_it(
    lab: Lab, stamps: StampServer, tmp_path: Path
) -> None:
    jump, behind = lab.start(Spec("jump"), Spec("behind", clock_s=300))
    config = Path(lab.home, ".ssh", "config")
    place = tmp_path / "user"
    place.mkdir()
    through: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config.write_text(CONFIG.format(address=behind.address, place=place, taken=port) + config.read_text())
        with once_it_runs(stamps, lambda: through.extend(each.command for each in jump.processes())):
            wave = run_wave(a_plan(tmp_path, stamps.url, "hidden*1"))
    assert wave.ledger.ok == 200 == len(stamps.log())
    assert any(command.startswith("sshd: load") for command in through)
    assert list(place.iterdir()) == []
    assert (jump.left(), behind.left()) == ([], [])
