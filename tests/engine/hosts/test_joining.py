"""Hosts that cannot join: each is named, with the reason, and no load is sent."""

from __future__ import annotations

import platform
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.engine.hosts import joining, link
from inference_benchmarker.engine.hosts.link import Link
from inference_benchmarker.engine.hosts.ssh import MACHINE, PREPARED, SshTransport, mends
from inference_benchmarker.engine.launch import run_wave
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.version import __version__
from tests.engine.hosts.plans import PATIENCE_S, a_plan
from tests.hosts.host import Spec

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hosts.lab import Lab
    from tests.performance.stamp_server import StampServer

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("users_ssh")]

REASONS = {
    "stranger": "Host key verification failed. | accept its key once with `ssh stranger`",
    "locked": "Permission denied (publickey). | install your key there once with `ssh-copy-id locked`",
    "no-socket": "forwards no Unix socket",
    "no-python": "InferenceBenchmarker was found there: `benchmark hosts prepare` installs one",
    "full": "No usable temporary directory found",
}


def test_hosts_that_cannot_join_are_named_with_the_reason(
    lab: Lab, stamps: StampServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home that cannot be written is none: nothing of the agent's lies there."""
    monkeypatch.setattr(joining, "TOGETHER_S", PATIENCE_S)
    hosts = lab.start(
        Spec("stranger", known=False),
        Spec("locked", authorized=False),
        Spec("no-socket", sshd=("AllowStreamLocalForwarding no",)),
        Spec("no-python", has_python=False),
        Spec("full", disk="1m"),
        Spec("read-only", read_only_home=True),
    )
    hosts[4].fill_disk()
    names = [f"{host.name}*1" for host in hosts]
    with pytest.raises(BenchmarkError) as caught:
        run_wave(a_plan(tmp_path, stamps.url, *names))
    fields = {line.partition(" ")[0]: line for line in caught.value.message.splitlines()}
    assert {*fields} == {*REASONS}
    assert {name: fields[name] for name, reason in REASONS.items() if reason not in fields[name]} == {}
    assert len(stamps.log()) == 0
    left = {host.name: host.left(2) for host in hosts if host.name != "full"}
    assert left == {name: [] for name in left}
    assert list(tmp_path.glob("*_benchmark")) == []


def test_nobody_is_told_to_accept_a_key_that_has_changed() -> None:
    said = "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed."
    assert mends("load1", said) == []
    assert mends("a b", "Host key verification failed.") == ["accept its key once with `ssh 'a b'`"]


def test_a_host_of_another_version_is_named_with_both(
    lab: Lab, stamps: StampServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "__version__", "99.1")
    (other,) = lab.start(Spec("other"))
    with pytest.raises(
        BenchmarkError, match=rf"other cannot be used: it has version {__version__}, and this host has 99\.1"
    ):
        run_wave(a_plan(tmp_path, stamps.url, "other*1"))
    assert (len(stamps.log()), other.left()) == (0, [])


def test_what_was_prepared_for_another_processor_is_refused_with_both(
    lab: Lab, stamps: StampServer, tmp_path: Path
) -> None:
    (other,) = lab.start(Spec("other"))
    prepared = other.home / PREPARED
    prepared.mkdir(parents=True)
    (prepared / MACHINE).write_text("s390x")
    other.remember()
    with pytest.raises(
        BenchmarkError, match=rf"other cannot be used: .* it for s390x, and the processor is {platform.machine()}:"
    ):
        run_wave(a_plan(tmp_path, stamps.url, "other*1"))
    assert (len(stamps.log()), other.left()) == (0, [])


@pytest.mark.parametrize("sign", ["benchmark-", "primary"])
def test_a_login_that_ends_as_soon_as_it_made_something_there_leaves_nothing(
    lab: Lab, tmp_path: Path, sign: str
) -> None:
    """A login makes a folder, and a socket in it; here nothing is known of either as yet."""
    (host,) = lab.start(Spec("ended", relayed=True))
    assert host.relay is not None
    host.relay.delay(0.1)
    login = SshTransport("ended", tmp_path / "primary")
    Link("ended", login).open()
    until = time.monotonic() + PATIENCE_S
    while not any(sign in path for path in host.files()):
        assert time.monotonic() < until
        time.sleep(0.01)
    login.close(0)
    assert host.left() == []


def test_a_socket_that_ssh_cannot_ask_for_is_refused_with_its_words(tmp_path: Path) -> None:
    problem = SshTransport("nobody", tmp_path / "primary").lead_here("/srv/x")
    assert problem is not None
    assert re.match("ssh cannot ask for a Unix socket there: .*ControlPath", problem)


def test_a_host_that_does_not_answer_is_not_waited_for_longer_than_was_asked(
    lab: Lab, stamps: StampServer, tmp_path: Path
) -> None:
    lab.start(Spec("hanging", bashrc="sleep 1000\n"))
    with pytest.raises(BenchmarkError, match=r"hanging: it did not join within 1 s \(--join-timeout\)"):
        run_wave(a_plan(tmp_path, stamps.url, "hanging*1", of_hosts={"join_timeout_s": Decimal(1)}))


def test_a_host_that_has_not_joined_when_another_cannot_is_named_with_it(
    lab: Lab, stamps: StampServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "TOGETHER_S", 0.1)
    lab.start(Spec("hanging", bashrc="sleep 1000\n"), Spec("locked", authorized=False))
    with pytest.raises(BenchmarkError) as caught:
        run_wave(a_plan(tmp_path, stamps.url, "hanging*1", "locked*1"))
    lines = sorted(caught.value.message.splitlines())
    assert lines[0].startswith("hanging: it had not joined yet.")
    assert lines[1].startswith("locked cannot be used: ")


@pytest.mark.slow
def test_a_login_that_a_crowded_sshd_drops_is_tried_again(lab: Lab, stamps: StampServer, tmp_path: Path) -> None:
    (crowded,) = lab.start(Spec("crowded", sshd=("MaxStartups 1:100:1",)))
    with ExitStack() as stack:
        stack.enter_context(crowded.half_open_logins(1))
        threading.Timer(1, stack.pop_all().close).start()
        wave = run_wave(a_plan(tmp_path, stamps.url, "crowded*1"))
    assert wave.ledger.ok == 200 == len(stamps.log())


@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_hosts_that_do_not_join(lab: Lab, stamps: StampServer, tmp_path: Path) -> None:
    lab.start(Spec("hanging", bashrc="sleep 1000\n"))
    line = [sys.executable, "-m", "inference_benchmarker.cli", stamps.url, "--hosts", "hanging*1"]
    line += ["--client-rps", "10", "--obs-time", "5", "--output-dir", str(tmp_path)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        while not list(tmp_path.glob("*_benchmark")):
            time.sleep(0.02)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=30)
    assert process.returncode == 130, text
    assert "nothing was measured" in text
    assert list(tmp_path.glob("*_benchmark")) == []
