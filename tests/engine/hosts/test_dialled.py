"""Hosts that connect to the command by themselves: real agents on loopback, each with its key, and who has none."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
import zmq

from inference_benchmarker.engine.hosts import link
from inference_benchmarker.engine.hosts.dialling import _DialledLines
from inference_benchmarker.engine.hosts.host_keys import read_gatekeeper, read_keys_of_host, write_host_keys
from inference_benchmarker.engine.hosts.logins import keeping_logins
from inference_benchmarker.engine.hosts.reception import Reception
from inference_benchmarker.engine.hosts.socket_loop import SocketLoop
from inference_benchmarker.engine.launch import run_wave
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.hosts import JOIN_TIMEOUT_S, THIS_HOST
from inference_benchmarker.version import __version__
from tests.case import case
from tests.engine.hosts.plans import PATIENCE_S, a_plan, once_it_runs
from tests.mentions import mentions
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan

pytestmark = pytest.mark.process

NAMES = ("near", "far", "farther")


@pytest.fixture
def server() -> Iterator[StampServer]:
    with StampServer() as started:
        yield started


Joined = subprocess.Popen[str]


class Place:
    """Where hosts connect, and their keys."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.folder = folder
        self.keys = folder / "keys"
        self.own_keys = self.keys / f"{THIS_HOST}.json"
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        write_host_keys(self.keys, NAMES, THIS_HOST)

    def plan(self, url: str, *hosts: str, seconds: int = 1, join_timeout_s: Decimal = JOIN_TIMEOUT_S) -> WavePlan:
        """A wave of hosts that come here."""
        of_hosts = {"listen": self.address, "host_keys": self.own_keys, "join_timeout_s": join_timeout_s}
        return a_plan(self.folder, url, *hosts, seconds=seconds, of_hosts=of_hosts)

    @contextmanager
    def joining(self, *names: str, keys: Path | None = None, timeout_s: float = PATIENCE_S) -> Iterator[list[Joined]]:
        """Hosts that join, killed in the end."""
        line = [sys.executable, "-m", "inference_benchmarker.cli", "hosts", "join"]
        line += ["--address", self.address, "--join-timeout", f"{timeout_s:g}"]
        started = [
            subprocess.Popen(
                [*line, "--host-keys", str((keys or self.keys) / f"{name}.json")],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, "TMPDIR": str(self.temporary)},
            )
            for name in names
        ]
        try:
            yield started
        finally:
            for process in started:
                process.kill()
                process.communicate()

    def left(self) -> list[str]:
        """The folders that agents have left; that of a killed one is removed by a process beside it, soon."""
        until = time.monotonic() + PATIENCE_S
        while (left := sorted(path.name for path in self.temporary.iterdir())) and time.monotonic() < until:
            time.sleep(0.05)
        return left


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def ended(process: Joined) -> tuple[int, str]:
    """The exit code of a host that has joined, and what it printed."""
    text, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, text


def test_three_hosts_that_connect_send_the_waves_of_a_command_and_end_with_it(
    place: Place, server: StampServer
) -> None:
    """Both waves over the same connections; the first one is of two of them."""
    plans = [place.plan(server.url, *(f"{name}*1" for name in names)) for names in (NAMES[:2], NAMES)]
    with place.joining(*NAMES) as joined:
        with keeping_logins():
            waves = [run_wave(plan) for plan in plans]
            assert [process.poll() for process in joined] == [None] * 3
        assert [ended(process) for process in joined] == [(0, "")] * 3
    assert [wave.ledger.ok for wave in waves] == [200, 200]
    assert len(server.log()) == 400
    for wave, names in zip(waves, (NAMES[:2], NAMES), strict=True):
        assert [(host.name, host.lost) for host in wave.hosts] == [(name, None) for name in names]
        assert all(host.clock is not None for host in wave.hosts)
    assert place.left() == []


def test_a_host_that_is_killed_is_lost_at_once_and_the_others_go_on(place: Place, server: StampServer) -> None:
    with place.joining("near", "far") as (near, far):
        with once_it_runs(server, far.kill):
            wave = run_wave(place.plan(server.url, "near*1", "far*1", seconds=2))
        assert ended(near)[0] == 0
    assert (wave.lost_workers, wave.verdict.exit_code) == ((1,), 3)
    assert wave.ledgers[0].ok == 200
    assert (wave.hosts[0].lost, wave.hosts[1].lost) == (None, "its connection was closed without a message")
    assert place.left() == []


@pytest.mark.slow
def test_a_host_whose_command_is_gone_ends_its_workers(place: Place, server: StampServer) -> None:
    line = [
        sys.executable,
        "-m",
        "inference_benchmarker.cli",
        server.url,
        "--hosts",
        "near*1",
        "--listen",
        place.address,
    ]
    line += ["--host-keys", str(place.own_keys), "--client-rps", "50", "--obs-time", "60"]
    with place.joining("near") as (near,):
        command = subprocess.Popen([*line, "--output-dir", str(place.folder)], stdout=subprocess.DEVNULL)
        with once_it_runs(server, command.kill):
            command.wait(PATIENCE_S)
        assert ended(near)[0] == 0
    assert place.left() == []


def test_whoever_has_another_key_is_not_let_in(place: Place, tmp_path: Path) -> None:
    """One that the command does not know, and one that does not know the command."""
    write_host_keys(tmp_path / "others", NAMES, THIS_HOST)
    reception = Reception(f"tcp://{place.address}", read_gatekeeper(place.own_keys, NAMES))
    known = (place.keys / "near.json").read_bytes()
    other = (tmp_path / "others" / "near.json").read_bytes()
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "near.json").write_bytes(
        other[: other.index(b'"primary"')] + known[known.index(b'"primary"') :]
    )
    try:
        with place.joining("near", keys=tmp_path / "mixed") as (unknown,):
            code, text = ended(unknown)
            assert (code, mentions(text, place.address, "does not know the key", "--host-keys")) == (2, True)
        with place.joining("near", keys=tmp_path / "others", timeout_s=2) as (stranger,):
            code, text = ended(stranger)
            assert (code, mentions(text, "2 s", "--join-timeout", "--host-keys")) == (2, True)
    finally:
        reception.close()


def test_a_host_whose_connection_has_ended_waits_for_nobody_to_take_what_it_says(place: Place) -> None:
    reception = Reception(f"tcp://{place.address}", read_gatekeeper(place.own_keys, NAMES))
    lines = _DialledLines(place.address, read_keys_of_host(place.keys / "near.json"))
    try:
        lines.await_entry(PATIENCE_S)
        over, done = threading.Event(), threading.Event()
        lines.start(lambda *_: None, over.set)
        reception.close()
        assert over.wait(PATIENCE_S)
        lines.send({"say": "closed"})
        lines.start(lambda *_: None, done.set)  # after what was said before
        assert done.wait(PATIENCE_S)
    finally:
        reception.close()
        lines.end(0)


@pytest.mark.filterwarnings("error")
def test_an_exception_on_the_thread_of_a_socket_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    router = context.socket(zmq.ROUTER)
    loop = SocketLoop(router, zmq.Event.DISCONNECTED, lambda *_: None, lambda *_: None)
    loop.start()
    loop.do([].pop)
    loop.end(PATIENCE_S)
    assert [each.exc_type for each in raised] == [IndexError]
    assert (router.closed, context.closed) == (True, True)
    loop.do(list)  # nobody is there, and no descriptor of others is written to


@pytest.mark.slow
def test_a_second_host_with_the_same_key_is_let_go(place: Place, server: StampServer) -> None:
    with place.joining("near") as (near,), place.joining("near") as (second,):
        wave = run_wave(place.plan(server.url, "near*1"))
        assert [ended(near), ended(second)] == [(0, "")] * 2
    assert (wave.ledger.ok, len(server.log())) == (200, 200)


def test_a_host_of_another_version_is_refused_with_both(
    place: Place, server: StampServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "__version__", "99.1")
    with place.joining("near") as (near,):
        with pytest.raises(BenchmarkError) as caught:
            run_wave(place.plan(server.url, "near*1"))
        assert ended(near)[0] == 0
    assert mentions(caught.value.message, "near", __version__, "99.1", "benchmark hosts join")
    assert "prepare" not in caught.value.message
    assert len(server.log()) == 0


def test_a_host_that_does_not_come_is_named(place: Place, server: StampServer) -> None:
    """The other one, which has come, is let go."""
    plan = place.plan(server.url, "near*1", "far*1", join_timeout_s=Decimal(3))
    with place.joining("near") as (near,):
        with pytest.raises(BenchmarkError, match="far: it did not join within 3 s") as caught:
            run_wave(plan)
        assert ended(near)[0] == 0
    assert mentions(caught.value.hint, "benchmark hosts join")
    assert (len(server.log()), place.left()) == (0, [])


def test_a_port_that_is_taken_is_bad_input(place: Place, server: StampServer) -> None:
    taken = socket.create_server(("127.0.0.1", int(place.address.rpartition(":")[2])))
    with taken, pytest.raises(BenchmarkError, match=rf"--listen {place.address} cannot be used"):
        run_wave(place.plan(server.url, "near*1"))


def test_the_keys_are_their_owners_alone_and_are_never_replaced(place: Place) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in (place.keys, *place.keys.iterdir())}
    assert modes == {"keys": 0o700, **{f"{name}.json": 0o600 for name in (THIS_HOST, *NAMES)}}
    with pytest.raises(BenchmarkError, match="never replaced"):
        write_host_keys(place.keys, NAMES, THIS_HOST)


def test_what_holds_no_keys_is_bad_input_and_is_not_shown(place: Place) -> None:
    good = place.own_keys.read_text()
    secret = json.loads(good)["own"]["secret"]
    rows = {
        "another host's": ((place.keys / "near.json").read_text(), "it does not hold the keys of the host that runs"),
        "no key": (good.replace(secret, secret[1:]), "it does not hold"),
        "no JSON": (good[:-1], "it does not hold"),
        "one that lacks a host": (good, "it has no key of unknown"),
    }
    for name, (text, expected) in rows.items():
        with case(name):
            path = place.folder / "given.json"
            path.write_text(text)
            with pytest.raises(BenchmarkError, match=expected) as caught:
                read_gatekeeper(path, ["near", "unknown"])
            assert secret[1:] not in str(caught.value)
    with pytest.raises(BenchmarkError, match="the keys of a host that joins"):
        read_keys_of_host(place.own_keys)
    with pytest.raises(BenchmarkError, match="cannot be read"):
        read_keys_of_host(place.folder / "none.json")
