"""The laboratory itself: its hosts are separate, its faults are there, and nothing is left of it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.embedded.running import EndpointConfig, start
from tests.conftest import ROOT
from tests.hosts.claims import claiming, lives
from tests.hosts.host import Spec
from tests.hosts.lab import Lab
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.hosts.host import Host

pytestmark = pytest.mark.process

NS = 1_000_000_000
PATIENCE_S = 20.0
CLOCKS = {"load1": 0, "load2": 1000, "load3": -100}
FAULTS = (
    Spec("noisy", bashrc="echo Welcome; echo to load >&2\n"),
    Spec("hanging", bashrc="sleep 1000\n"),
    Spec("stranger", known=False),
    Spec("locked", authorized=False),
    Spec("no-socket", sshd=("AllowStreamLocalForwarding no",)),
    Spec("no-port", sshd=("AllowTcpForwarding no",)),
    Spec("crowded", sshd=("MaxStartups 2:100:2",)),
    Spec("no-python", has_python=False),
    Spec("full", disk="1m"),
    Spec("read-only", read_only_home=True),
    Spec("dead"),
)


@pytest.fixture(scope="module")
def three(laboratory: Lab) -> Iterator[list[Host]]:
    """Three hosts of different clocks; the last one is weak, and reached through a relay."""
    hosts = laboratory.start(
        Spec("load1"), Spec("load2", clock_s=CLOCKS["load2"]), Spec("load3", CLOCKS["load3"], cpus=0.5, relayed=True)
    )
    yield hosts
    laboratory.stop(*hosts)


@pytest.fixture(scope="module")
def faulty(laboratory: Lab) -> Iterator[dict[str, Host]]:
    """A host for each fault."""
    hosts = laboratory.start(*FAULTS)
    yield {host.name: host for host in hosts}
    laboratory.stop(*hosts)


@contextmanager
def running(line: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A command whose standard input and output are pipes; killed in the end."""
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1) as process:
        try:
            yield process
        finally:
            process.kill()


def answer(process: subprocess.Popen[str], line: str) -> str:
    """What comes back for a line that is sent to ``cat``."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line)
    return process.stdout.readline()


def await_true(what: Callable[[], bool]) -> None:
    last = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < last
        time.sleep(0.02)


def test_the_users_own_ssh_logs_in_to_each_host(laboratory: Lab, three: list[Host]) -> None:
    reported = [laboratory.ssh(host.name, "hostname; id -un; pwd").stdout for host in three]
    assert reported == [f"{name}\nload\n/home/load\n" for name in CLOCKS]
    assert [host.left() for host in three] == [[], [], []]


def test_a_command_of_the_user_is_the_process_that_was_started(laboratory: Lab) -> None:
    """A signal to it reaches the command itself, in the folder it was started in."""
    with running([*laboratory.session, "sh", "-c", "echo $$ $HOME ~root $PWD"]) as process:
        reported, _ = process.communicate()
    assert reported.split() == [str(process.pid), str(laboratory.home), str(laboratory.home), str(Path.cwd())]


def test_the_clocks_of_the_hosts_are_apart_as_was_asked(laboratory: Lab, three: list[Host]) -> None:
    code = "import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.clock_gettime_ns(time.CLOCK_BOOTTIME))"
    for host in three:
        before = time.monotonic_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        reported = laboratory.ssh(host.name, f"{laboratory.python} -c '{code}'").stdout.split()
        after = time.monotonic_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        there = [int(word) - CLOCKS[host.name] * NS for word in reported]
        assert all(first < ours < last for first, ours, last in zip(before, there, after, strict=True))


def test_hosts_share_no_file_no_process_and_no_loopback(laboratory: Lab, three: list[Host]) -> None:
    one, two, _ = three
    for path in ("/tmp/mine", "/home/load/mine", "/var/tmp/mine", "/dev/shm/mine"):
        one.run("touch", path, check=True)
        assert two.run("test", "-e", path).returncode == 1
        assert not Path(path).exists()
        assert one.files() == [path]
        assert one.run("rm", path).returncode == 0
    assert one.run("touch", str(ROOT / "mine")).returncode == 1
    listen = "import socket, time; s = socket.create_server(('127.0.0.1', 7777)); time.sleep(1000)"
    with running(one.inside(laboratory.python, "-c", listen)):
        await_true(lambda: "tcp 7777" in one.sockets())
        assert [each.command.split()[0] for each in one.processes()] == [laboratory.python]
        assert (two.sockets(), two.processes()) == ([], [])
        for each in one.processes():
            os.kill(each.pid, signal.SIGKILL)
    assert one.left() == []


def test_a_secret_is_found_wherever_it_stands_on_a_host(three: list[Host]) -> None:
    one, two, _ = three
    secret = "s3cr3t-of-the-test"
    one.run("sh", "-c", f"echo {secret} >/tmp/note", check=True)
    with (
        running(one.inside("sh", "-c", f": {secret}; sleep 1000 & read -r _; kill $!")) as arguments,
        running(one.inside("env", f"NAME={secret}", "cat", user="other")) as environment,
    ):
        # A shell's child shows its parent's arguments until it has become another program: the third place comes late.
        expected = ["/tmp/note", "arguments", "environment"]
        await_true(lambda: sorted(place.split(" of ")[0] for place in one.grep(secret)) == expected)
        arguments.communicate("\n")
        environment.communicate("")
    one.run("rm", "/tmp/note")
    assert (one.grep(secret), two.grep(secret)) == ([], [])
    assert one.left() == []


def test_a_unix_socket_is_forwarded_to_a_host(laboratory: Lab, three: list[Host], tmp_path: Path) -> None:
    host = three[1]
    folder = laboratory.ssh(host.name, "mktemp -d /tmp/fwd.XXXXXX").stdout.strip()
    assert host.files() == [folder]
    there = f"{folder}/s"
    code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect('{there}'); print(s.recv(9).decode())"
    with closing(socket.socket(socket.AF_UNIX)) as ours:
        ours.bind(str(laboratory.home / "s"))
        ours.listen()
        ours.settimeout(PATIENCE_S)
        answering = threading.Thread(target=lambda: ours.accept()[0].sendall(b"from here"))
        answering.start()
        done = laboratory.ssh("-R", f"{there}:{laboratory.home}/s", host.name, f'{laboratory.python} -c "{code}"')
        answering.join()
    assert done.stdout == "from here\n", done.stderr
    assert host.files() == [folder, there]  # sshd leaves the file behind
    laboratory.ssh(host.name, f"rm -r {folder}")
    assert host.left() == []


def test_a_server_of_ours_is_reached_from_each_host(laboratory: Lab, three: list[Host]) -> None:
    post = """
import sys, urllib.request
for url in sys.argv[2:]:
    urllib.request.urlopen(url, sys.argv[1].encode()).read()
"""
    with (
        start(EndpointConfig(), host=laboratory.address) as endpoint,
        StampServer(address=laboratory.address) as stamps,
    ):
        for number, host in enumerate(three):
            urls = (f"{endpoint.url}/invocations", stamps.url)
            host.run(laboratory.python, "-c", post, str(number), *urls, check=True)
        assert len(endpoint.arrivals()["id"]) == 3
        assert stamps.log()["id"].tolist() == [0, 1, 2]


def test_a_weak_host_gets_no_more_than_its_quota(laboratory: Lab, three: list[Host]) -> None:
    code = """
import time
start = time.monotonic()
while time.monotonic() < start + 0.6: pass
print(time.process_time(), time.monotonic() - start)
"""
    used_s, wall_s = map(float, laboratory.ssh("load3", f"{laboratory.python} -c '{code}'").stdout.split())
    assert used_s <= 0.5 * wall_s + 0.1  # what one period allows may be used up at once, at each end


def test_a_relay_delays_each_way_and_a_short_cut_is_survived(laboratory: Lab, three: list[Host]) -> None:
    relay = three[2].relay
    assert relay is not None
    with running([*laboratory.session, "ssh", "load3", "cat"]) as process:
        assert answer(process, "one\n") == "one\n"
        relay.delay(0.1, 0.01)
        sent = time.monotonic()
        assert answer(process, "two\n") == "two\n"
        assert time.monotonic() - sent >= 0.2
        relay.delay(0)
        relay.cut()
        threading.Timer(0.5, relay.mend).start()
        sent = time.monotonic()
        assert answer(process, "three\n") == "three\n"
        assert time.monotonic() - sent >= 0.4
    assert three[2].left() == []


@pytest.mark.parametrize("way", ["relay", "cable"])
def test_a_cut_is_noticed_by_ssh_and_mended(laboratory: Lab, three: list[Host], way: str) -> None:
    host = three[2]
    assert host.relay is not None
    alive = ("-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=1")
    cut, mend = (host.relay.cut, host.relay.mend) if way == "relay" else (host.unplug, host.plug)
    with running([*laboratory.session, "ssh", *alive, "load3", "cat"]) as process:
        assert answer(process, "one\n") == "one\n"
        cut()
        try:
            _, errors = process.communicate(timeout=PATIENCE_S)
            assert (process.returncode, "not responding" in errors) == (255, True)
            assert host.processes() != []  # the other side heard nothing
        finally:
            mend()
    assert laboratory.ssh("load3", "hostname").stdout == "load3\n"
    assert host.left() == []


def test_start_up_files_are_noisy_or_hang(laboratory: Lab, faulty: dict[str, Host]) -> None:
    done = laboratory.ssh("noisy", "hostname")
    assert (done.stdout, "to load" in done.stderr) == ("Welcome\nnoisy\n", True)
    with running([*laboratory.session, "ssh", "-o", "BatchMode=yes", "hanging", "hostname"]) as process:
        await_true(lambda: any(process.command == "sleep 1000" for process in faulty["hanging"].processes()))
        assert process.poll() is None


@pytest.mark.parametrize(
    ("name", "words"), [("stranger", "Host key verification failed"), ("locked", "Permission denied (publickey)")]
)
def test_a_login_is_refused(laboratory: Lab, faulty: dict[str, Host], name: str, words: str) -> None:
    done = laboratory.ssh(name, "hostname")
    assert (done.returncode, done.stdout) == (255, "")
    assert words in done.stderr


@pytest.mark.parametrize(
    ("name", "forward", "refused"),
    [
        ("no-socket", "/tmp/s:/tmp/none", True),
        ("no-socket", "0:127.0.0.1:9", False),
        ("no-port", "0:127.0.0.1:9", True),
    ],
)
def test_forwarding_is_refused(
    laboratory: Lab, faulty: dict[str, Host], name: str, forward: str, refused: bool
) -> None:
    done = laboratory.ssh("-o", "ExitOnForwardFailure=yes", "-R", forward, name, "hostname")
    assert (done.returncode, done.stdout) == ((255, "") if refused else (0, f"{name}\n"))
    assert ("remote port forwarding failed" in done.stderr) == refused


def test_a_crowded_sshd_drops_a_login(laboratory: Lab, faulty: dict[str, Host]) -> None:
    with faulty["crowded"].half_open_logins(2):
        assert laboratory.ssh("crowded", "hostname").returncode == 255
    await_true(lambda: laboratory.ssh("crowded", "hostname").returncode == 0)


def test_a_host_without_python_has_none(laboratory: Lab, faulty: dict[str, Host]) -> None:
    done = laboratory.ssh("no-python", f"{laboratory.python} -V || python3 -V || ls /usr/bin/python*")
    assert (done.returncode, done.stdout) == (2, "")
    assert laboratory.ssh("no-python", "ls /usr/bin/env").stdout == "/usr/bin/env\n"


def test_a_disk_is_full_or_a_home_is_read_only(laboratory: Lab, faulty: dict[str, Host]) -> None:
    faulty["full"].fill_disk()
    for place in ("/home/load", "/tmp"):
        assert "No space left" in laboratory.ssh("full", f"cat /etc/bash.bashrc >{place}/x").stderr
    assert "Read-only file system" in laboratory.ssh("read-only", "touch x").stderr
    assert laboratory.ssh("read-only", "touch /tmp/x").returncode == 0


def test_a_killed_sshd_leaves_its_sessions_and_can_be_started_again(laboratory: Lab, faulty: dict[str, Host]) -> None:
    dead = faulty["dead"]
    with running([*laboratory.session, "ssh", "dead", "cat"]) as process:
        assert answer(process, "one\n") == "one\n"
        dead.kill_sshd()
        assert answer(process, "two\n") == "two\n"
        assert "Connection refused" in laboratory.ssh("dead", "hostname").stderr
        dead.kill_sshd(sessions=True)
        assert process.wait(PATIENCE_S) == 255
    dead.start_sshd()
    assert laboratory.ssh("dead", "hostname").stdout == "dead\n"
    assert dead.left() == []


def traces(name: str) -> list[str]:
    """What there is of a laboratory on this machine: its network, its groups, its folder."""
    places = ("/run", "/sys/class/net", "/sys/fs/cgroup", "/sys/fs/cgroup/cpu")
    found = [path for place in places for path in Path(place).glob(f"{name}*")]
    return sorted(str(path) for path in found if path.name == name or path.name.startswith(f"{name}h"))


def test_nothing_is_left_of_a_laboratory() -> None:
    with Lab() as lab:
        (host,) = lab.start(Spec("load1", cpus=1, relayed=True))
        host.run("sh", "-c", "sleep 1000 >/dev/null 2>&1 &")
        pids = [host.pid, *(process.pid for process in host.processes())]
        assert (len(pids), len(traces(lab.name))) == (2, 4)
    assert traces(lab.name) == []
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_what_a_killed_laboratory_left_is_removed_by_the_next_one() -> None:
    code = (
        "from tests.hosts.lab import Lab; from tests.hosts.host import Spec; lab = Lab();"
        "host, = lab.start(Spec('load1', cpus=1)); print(lab.name, host.pid, flush=True); input()"
    )
    with running([sys.executable, "-c", code]) as process:
        assert process.stdout is not None
        name, pid = process.stdout.readline().split()
        with claiming():  # another process's laboratory would remove it meanwhile
            process.kill()
            process.wait()
            await_true(lambda: not Path(f"/proc/{pid}").exists())  # its hosts end with it
            assert {f"/run/{name}", f"/sys/class/net/{name}"} <= {*traces(name)}
    with Lab() as lab:
        assert traces(name) == [] or lives(Path("/run", name, "owner"))  # it has a new owner, who may be this one
        assert len(traces(lab.name)) == 2


def test_an_address_that_was_another_hosts_is_reached_at_once(lab: Lab) -> None:
    first, _ = lab.start(Spec("first"), Spec("beside"))  # without any host the network forgets at once
    assert lab.ssh("first", "hostname").stdout == "first\n"
    lab.stop(first)
    (second,) = lab.start(Spec("second"))
    assert second.address == first.address
    assert lab.ssh("-o", "ConnectTimeout=3", "second", "hostname").stdout == "second\n"
