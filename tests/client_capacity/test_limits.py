"""The limits of open files and ports, of a host that is written down here and of the real one."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from client_capacity import limits
from client_capacity.limits import NO_LIMIT, SPARE, WORKER_OPEN, Limits, find_file_descriptors_limit, read_limits
from inference_benchmarker.system import procfs
from inference_benchmarker.version import SCHEMA_VERSION
from tests.bench import ROOT

AMPLE = Limits(
    soft=1_048_576,
    hard=1_048_576,
    usable=1_048_576,
    open_now=5,
    system_open=1000,
    system_max=NO_LIMIT,
    process_ceiling=1_073_741_816,
    first_port=32768,
    last_port=60999,
    tcp_in_use=12,
    time_wait=3,
    time_wait_reuse=2,
)
NOTHING_KNOWN = replace(
    AMPLE,
    open_now=None,
    system_open=None,
    system_max=None,
    process_ceiling=None,
    first_port=None,
    last_port=None,
    tcp_in_use=None,
    time_wait=None,
    time_wait_reuse=None,
)
FILES = {
    "proc/sys/fs/file-nr": "1283\t64\t9223372036854775807\n",
    "proc/sys/fs/file-max": "9223372036854775807\n",
    "proc/sys/fs/nr_open": "1048576\n",
    "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
    "proc/sys/net/ipv4/tcp_tw_reuse": "2\n",
    "proc/net/sockstat": "sockets: used 24\nTCP: inuse 12 orphan 0 tw 5 alloc 12 mem 130\nUDP: inuse 1 mem 0\n",
    "proc/net/sockstat6": "TCP6: inuse 3\nUDP6: inuse 0\n",
    "proc/self/fd/0": "",
    "proc/self/fd/1": "",
    "proc/self/fd/3": "",  # stands for the descriptor of the listing
}
LINUX_ONLY = pytest.mark.skipif(not Path("/proc/net/sockstat").exists(), reason="no /proc/net/sockstat here")


def host(root: Path) -> Path:
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_reads_what_linux_tells(tmp_path: Path) -> None:
    found = read_limits(1024, 4096, 4096, host(tmp_path))
    assert found == Limits(
        soft=1024,
        hard=4096,
        usable=4096,
        open_now=2,
        system_open=1219,
        system_max=NO_LIMIT,
        process_ceiling=1_048_576,
        first_port=32768,
        last_port=60999,
        tcp_in_use=15,
        time_wait=5,
        time_wait_reuse=2,
    )


@pytest.mark.parametrize("text", ["", "\n\n", "nonsense\n", "TCP: inuse\n", "1 x 3\n", None], ids=repr)
def test_files_that_do_not_tell_give_none(tmp_path: Path, text: str | None) -> None:
    root = host(tmp_path)
    for name in FILES:
        if name.startswith(("proc/sys", "proc/net")):
            (root / name).unlink() if text is None else (root / name).write_text(text)
    assert read_limits(1, 1, 1, root) == replace(NOTHING_KNOWN, soft=1, hard=1, usable=1, open_now=2)


@pytest.mark.parametrize(
    ("change", "in_flight", "to_one_address", "new_per_s"),
    [
        ({}, 1_048_576 - WORKER_OPEN - SPARE, 28232, pytest.approx(470.5, abs=0.1)),
        ({"soft": 128, "hard": 1024, "usable": 1024}, 1024 - WORKER_OPEN - SPARE, 28232, pytest.approx(470.5, abs=0.1)),
        ({"usable": 20}, 1, 28232, pytest.approx(470.5, abs=0.1)),
        ({"first_port": 50000, "last_port": 50599}, 1_048_546, 600, 10),
        ({"first_port": None, "last_port": None}, 1_048_546, None, None),
    ],
)
def test_what_the_limits_allow(
    change: dict[str, int], in_flight: int, to_one_address: int | None, new_per_s: float | None
) -> None:
    found = replace(AMPLE, **change)
    assert found.in_flight_per_worker == in_flight
    assert found.in_flight_to_one_address == to_one_address
    assert found.new_connections_per_s == new_per_s


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ["The limits suffice"]),
        ({"soft": 1024}, ["soft limit is low but needs no change: a wave raises its own to 1,048,576"]),
        ({"soft": 1024, "hard": 4096, "usable": 4096}, ["can have 4,066 requests", "LimitNOFILE="]),
        ({"first_port": 50000, "last_port": 50599}, ["600 connections to one address"]),
        ({"time_wait": 20_000}, ["20,000 sockets in TIME_WAIT"]),
        ({"system_open": 95_000, "system_max": 100_000}, ["only 5,000 more files"]),
    ],
)
def test_advice_is_about_what_is_tight(change: dict[str, int], said: list[str]) -> None:
    advice = replace(AMPLE, **change).advice()
    assert len(advice) == len(said)
    assert all(words in line for words, line in zip(said, advice, strict=True))


def test_text_is_a_short_table_with_the_advice_below() -> None:
    tight = replace(AMPLE, soft=1024, hard=4096, usable=2048, time_wait=27_000, system_max=2000)
    text = tight.to_text()
    assert len(text.splitlines()) <= 22
    assert max(len(line) for line in text.splitlines()) <= 120
    assert text.endswith("\n".join(tight.advice()) + "\n")
    assert "of which the system grants 2,048" in text
    assert "32768 to 60999" in text
    assert "no limit (fs.file-max)" in AMPLE.to_text()


def test_text_says_what_is_not_known() -> None:
    lines = NOTHING_KNOWN.to_text().splitlines()
    assert sum("not known here" in line for line in lines) == 8
    assert "None" not in NOTHING_KNOWN.to_text()
    assert lines[-1].startswith("The limits suffice")


@pytest.mark.parametrize("found", [AMPLE, NOTHING_KNOWN], ids=["all", "nothing"])
def test_json_has_it_all(found: Limits) -> None:
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert data["schema_version"] == SCHEMA_VERSION
    assert data["process"]["usable"] == 1_048_576
    assert data["ports"]["count"] == data["allows"]["in_flight_to_one_address"] == found.ephemeral_ports
    assert data["allows"]["in_flight_per_worker"] == found.in_flight_per_worker
    assert data["advice"] == list(found.advice())


def limits_after(shell: str) -> dict[str, int]:
    """The process's limits as a new process tells them that a shell's words came before."""
    code = (
        "import json; from client_capacity.limits import *; print(json.dumps(find_file_descriptors_limit().to_json()))"
    )
    done = subprocess.run(
        ["bash", "-c", f'{shell}; exec "$0" -c "$1"', sys.executable, code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    data = json.loads(done.stdout)
    return {**data["process"], "in_flight": data["allows"]["in_flight_per_worker"]}


def test_a_lowered_soft_limit_takes_nothing_away() -> None:
    before, lowered = limits_after("true"), limits_after("ulimit -Sn 128")
    assert lowered["soft"] == 128
    assert lowered["hard"] == before["hard"]
    assert lowered["in_flight"] == before["in_flight"]


def test_a_lowered_hard_limit_does() -> None:
    lowered = limits_after("ulimit -Sn 100; ulimit -Hn 128")
    assert (lowered["soft"], lowered["hard"], lowered["usable"]) == (100, 128, 128)
    assert lowered["in_flight"] == 128 - WORKER_OPEN - SPARE


def test_asking_leaves_the_limits_as_they_are() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    find_file_descriptors_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def test_counts_the_files_this_process_has_open() -> None:
    before = find_file_descriptors_limit().open_now
    with ExitStack() as files:
        for _ in range(50):
            files.enter_context(Path(os.devnull).open())
        assert before is not None
        assert find_file_descriptors_limit().open_now == before + 50
    assert find_file_descriptors_limit().open_now == before


@LINUX_ONLY
def test_counts_sockets_in_time_wait() -> None:
    # Enough of them to stand out where other tests' sockets come to their end meanwhile.
    before = procfs.time_wait()
    leave_in_time_wait(500)
    after = find_file_descriptors_limit().time_wait
    assert before is not None
    assert after is not None
    assert after - before > 250


def leave_in_time_wait(count: int) -> None:
    """Close that many connections on the side that opened them, before the other side does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(count):
            client = socket.create_connection(server.getsockname())
            accepted, _ = server.accept()
            client.close()
            assert accepted.recv(1) == b""
            accepted.close()


def test_needs_no_heavy_import() -> None:
    code = "import sys, client_capacity.limits; print({'psutil', 'numpy', 'locust', 'gevent'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_keeps_as_much_free_as_a_worker_does() -> None:
    code = "from inference_benchmarker.engine.worker.process import SPARE_DESCRIPTORS; print(SPARE_DESCRIPTORS)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == limits.SPARE
