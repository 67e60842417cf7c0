"""What the host and each process use up, a sample a second."""

from __future__ import annotations

import csv
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from inference_benchmarker.engine.hosts.sampler import INTERVAL_S, Sampler, host_constants, sample_regularly
from inference_benchmarker.facts.client_samples import HOST, Sample, Stretch
from inference_benchmarker.facts.client_use import HostUse
from inference_benchmarker.system import procfs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LINUX_ONLY = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="no /proc here")
STAT = """\
cpu  1000 200 300 9000 400 50 60 700 80 9
cpu0 600 100 200 4000 300 50 10 500 80 9
cpu1 300 50 50 2500 50 0 25 150 0 0
cpu3 100 50 50 2500 50 0 25 50 0 0
intr 123 4 5
ctxt 99
"""
V1 = """\
9:name=systemd:/
4:memory:/box
1:cpu,cpuacct:/box/inner
0::/elsewhere
"""
V1_MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:7 master:1 - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
V2_MOUNT = "29 22 0:26 {inside} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V2_STAT = "usage_usec 86\nuser_usec 73\nnr_periods 9\nnr_throttled 3\nthrottled_usec {usec}\n"


class EnoughError(Exception):
    """Ends a sampling that would go on for ever."""


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def sleeps(rounds: int, between: Callable[[], object] = lambda: None) -> Callable[[float], None]:
    """A sleep that takes no time and ends the sampling after some rounds."""
    left = iter(range(rounds))

    def sleep(seconds: float) -> None:
        assert seconds == INTERVAL_S
        between()
        if next(left, None) is None:
            raise EnoughError

    return sleep


def sampled(rounds: int, path: Path | None = None) -> list[list[Sample]]:
    noted: list[list[Sample]] = []
    with pytest.raises(EnoughError):
        sample_regularly({"this": os.getpid()}, sleeps(rounds), noted.append, path)
    return noted


def test_every_second_the_host_and_each_process_are_noted_and_written(tmp_path: Path) -> None:
    path = tmp_path / "client.csv"
    noted = sampled(2, path)
    assert [[sample.process for sample in samples] for samples in noted] == [[HOST, "this"]] * 2
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == Sample._fields
    assert [list(row.values()) for row in rows] == [
        ["" if value is None else str(value) for value in sample] for samples in noted for sample in samples
    ]


def test_the_header_is_there_before_the_first_second_is_over(tmp_path: Path) -> None:
    sampled(0, tmp_path / "client.csv")
    assert (tmp_path / "client.csv").read_text() == ",".join(Sample._fields) + "\n"


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(sampled(2)) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["/dev/full", "/nowhere/client.csv"])
def test_a_disk_that_takes_nothing_does_not_end_the_sampling(path: str) -> None:
    assert len(sampled(3, Path(path))) == 3


def test_a_disk_that_becomes_full_leaves_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "client.csv"
    noted: list[list[Sample]] = []

    def note(samples: list[Sample]) -> None:
        noted.append(samples)
        if len(noted) == 2:
            path.rename(tmp_path / "before.csv")
            path.symlink_to("/dev/full")
        elif len(noted) == 4:
            path.unlink()

    with pytest.raises(EnoughError):
        sample_regularly({}, sleeps(5), note, path)
    assert len(noted) == 5
    assert len((tmp_path / "before.csv").read_text().splitlines()) == 2
    assert not path.exists()


def test_a_round_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = iter(range(10))
    real = psutil.virtual_memory

    def sometimes() -> object:
        if next(rounds) == 1:
            raise PermissionError
        return real()

    monkeypatch.setattr(psutil, "virtual_memory", sometimes)
    assert len(sampled(3)) == 2


def test_the_host_has_all_that_is_known_of_it() -> None:
    sampler = Sampler({})
    (host,) = sampler.sample()
    assert abs(host.unix_s - time.time()) < 60
    assert host.memory_bytes > 1e6
    assert host.memory_available_bytes is not None
    assert 1e6 < host.memory_available_bytes < host_constants()["memory_total_bytes"]
    assert host.network_sent_bytes is not None
    if sys.platform == "linux":
        assert host.steal_percent is not None
        assert host.steal_percent >= 0
        assert host.time_wait is not None


def test_constants_and_samples_make_the_hosts_use() -> None:
    sampler = Sampler({})
    busy_for(0.3)
    constants = host_constants()
    use = HostUse.of({HOST: [Stretch.of(sample) for sample in sampler.sample()]}, **constants)
    assert use is not None
    assert use.cores == constants["cores"] >= 1
    assert 0 < use.cpu_share_max < 1.1
    if sys.platform == "linux":
        assert use.ephemeral_ports is not None
        assert 0 < use.ephemeral_ports <= 65536


def test_cpu_is_of_the_time_since_the_last_sample() -> None:
    sampler = Sampler({"this": os.getpid()})
    wall_s, cpu_s = time.monotonic(), time.process_time()
    busy_for(0.5)
    used = {sample.process: sample.cpu_percent for sample in sampler.sample()}
    share = (time.process_time() - cpu_s) / (time.monotonic() - wall_s)  # less than 1 on a busy machine
    assert used["this"] == pytest.approx(100 * share, abs=15)
    assert used[HOST] > 0.8 * used["this"]
    time.sleep(0.5)
    used = {sample.process: sample.cpu_percent for sample in sampler.sample()}
    assert used["this"] < 20


@LINUX_ONLY
def test_the_hosts_cpu_is_that_of_the_cores_we_may_use() -> None:
    everything = os.sched_getaffinity(0)
    one = min(everything)
    os.sched_setaffinity(0, {one})
    try:
        sampler = Sampler({})
        busy_for(0.5)
        (host,) = sampler.sample()
        assert host_constants()["cores"] == 1
        assert 50 < host.cpu_percent < 110
    finally:
        os.sched_setaffinity(0, everything)


def test_network_bytes_are_those_since_the_last_sample() -> None:
    sampler = Sampler({})
    list(sampler.sample())
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        with accepted:
            client.sendall(bytes(100_000))
            received = 0
            while received < 100_000:
                received += len(accepted.recv(1 << 16))
    (host,) = sampler.sample()
    assert host.network_sent_bytes is not None
    assert host.network_sent_bytes >= 100_000


@pytest.mark.parametrize("counters", [None, PermissionError()], ids=["none", "forbidden"])
def test_a_container_without_a_network(monkeypatch: pytest.MonkeyPatch, counters: Any) -> None:
    def net_io_counters(**_: object) -> None:
        if counters is not None:
            raise counters

    monkeypatch.setattr(psutil, "net_io_counters", net_io_counters)
    (host,) = Sampler({}).sample()
    assert (host.network_sent_bytes, host.network_received_bytes) == (None, None)


def test_counters_that_began_anew_are_no_negative_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = iter([(500, 500), (20, 700)])

    def net_io_counters(**_: object) -> SimpleNamespace:
        sent, received = next(totals)
        return SimpleNamespace(bytes_sent=sent, bytes_recv=received)

    monkeypatch.setattr(psutil, "net_io_counters", net_io_counters)
    (host,) = Sampler({}).sample()
    assert (host.network_sent_bytes, host.network_received_bytes) == (0, 200)


def test_where_there_is_no_proc_the_rest_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cpu_seconds", "time_wait", "port_range", "Throttling"):
        real = getattr(procfs, name)
        monkeypatch.setattr(procfs, name, lambda *given, real=real: real(*given, tmp_path))
    sampler = Sampler({"this": os.getpid()})
    busy_for(0.3)
    host, this = sampler.sample()
    assert (host.steal_percent, host.time_wait, host.throttled_s) == (None, None, None)
    assert host.cpu_percent > 20
    assert this.memory_bytes > 1e6
    assert host_constants()["ephemeral_ports"] is None


def test_a_process_that_ended_has_no_sample() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    sampler = Sampler({"child": child.pid, "this": os.getpid()})
    child.communicate(b"\n")
    assert [sample.process for sample in sampler.sample()] == [HOST, "this"]
    assert [sample.process for sample in Sampler({"child": child.pid}).sample()] == [HOST]


def test_a_process_that_ended_and_was_not_asked_for_has_no_sample() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    sampler = Sampler({"child": child.pid})
    assert [sample.process for sample in sampler.sample()] == [HOST, "child"]
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert [sample.process for sample in sampler.sample()] == [HOST]
    child.communicate()


def test_costs_little() -> None:
    """A sample of the host takes under a thousandth of the second that it stands for, on a busy machine as well."""
    sampler = Sampler({})
    began = time.thread_time()
    for _ in range(50):
        list(sampler.sample())
    assert (time.thread_time() - began) / 50 < 1e-3 * INTERVAL_S


@pytest.mark.parametrize(
    ("cores", "stat", "ticks"),
    [
        ({0, 1, 3}, STAT, (1610, 700)),  # 1000 + 200 + 300 + 50 + 60, of all cores
        ({0}, STAT, (960, 500)),
        ({1, 3}, STAT, (650, 200)),
        ({7}, STAT, None),
        ({0}, "cpu  10 2 3 90 4\ncpu0 10 2 3 90 4\n", (15, None)),
        ({0}, "", None),
    ],
)
def test_busy_and_stolen_time(tmp_path: Path, cores: set[int], stat: str, ticks: tuple[int, int | None] | None) -> None:
    hertz = os.sysconf("SC_CLK_TCK")
    expected = ticks and tuple(None if count is None else count / hertz for count in ticks)
    assert procfs.cpu_seconds(cores, write(tmp_path, {"proc/stat": stat})) == expected


@pytest.mark.parametrize(
    ("files", "seconds"),
    [
        pytest.param(
            {
                "proc/self/cgroup": V1,
                "proc/self/mountinfo": V1_MOUNTS,
                "sys/fs/cgroup/cpu,cpuacct/box/inner/cpu.stat": "nr_periods 5\nthrottled_time 2500000000\n",
                "sys/fs/cgroup/memory/box/inner/cpu.stat": "throttled_time 99000000000\n",
            },
            2.5,
            id="version 1",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "1:cpu:/docker/ab12\n",
                "proc/self/mountinfo": "32 31 0:29 /docker/ab12 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n",
                "sys/fs/cgroup/cpu/cpu.stat": "throttled_time 500000000\n",
            },
            0.5,
            id="version 1 in a container that sees the host's path",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/\n",
                "proc/self/mountinfo": V2_MOUNT.format(inside="/"),
                "sys/fs/cgroup/cpu.stat": V2_STAT.format(usec=1500),
            },
            0.0015,
            id="version 2 in a container",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/user.slice/run.scope\n",
                "proc/self/mountinfo": V2_MOUNT.format(inside="/"),
                "sys/fs/cgroup/user.slice/run.scope/cpu.stat": "usage_usec 5\n",
                "sys/fs/cgroup/user.slice/cpu.stat": V2_STAT.format(usec=7_000_000),
                "sys/fs/cgroup/cpu.stat": "usage_usec 5\n",
            },
            7,
            id="the limit is of a cgroup around ours",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/\n",
                "proc/self/mountinfo": V2_MOUNT.format(inside="/"),
                "sys/fs/cgroup/cpu.stat": "usage_usec 5\nuser_usec 3\n",
            },
            None,
            id="no limits of CPU",
        ),
        pytest.param({"proc/self/cgroup": "0::/\n"}, None, id="not mounted"),
        pytest.param({}, None, id="no cgroups"),
    ],
)
def test_throttled_time_of_the_cgroup(tmp_path: Path, files: dict[str, str], seconds: float | None) -> None:
    assert procfs.Throttling(write(tmp_path, files)).seconds() == seconds


def test_throttled_time_is_none_once_its_file_is_gone(tmp_path: Path) -> None:
    stat = "sys/fs/cgroup/cpu.stat"
    files = {"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": V2_MOUNT.format(inside="/")}
    throttling = procfs.Throttling(write(tmp_path, {**files, stat: V2_STAT.format(usec=5)}))
    (tmp_path / stat).unlink()
    assert throttling.seconds() is None


def busy_for(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@pytest.mark.parametrize(
    ("files", "left"),
    [
        pytest.param(
            {
                "proc/self/cgroup": V1,
                "proc/self/mountinfo": V1_MOUNTS,
                "sys/fs/cgroup/memory/box/memory.limit_in_bytes": "1000\n",
                "sys/fs/cgroup/memory/box/memory.usage_in_bytes": "700\n",
                "sys/fs/cgroup/memory/box/memory.stat": "cache 90\ntotal_inactive_file 50\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "5000\n",
            },
            350,
            id="version 1",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/user.slice/run.scope\n",
                "proc/self/mountinfo": V2_MOUNT.format(inside="/"),
                "sys/fs/cgroup/user.slice/run.scope/memory.max": "max\n",
                "sys/fs/cgroup/user.slice/run.scope/memory.current": "5\n",
                "sys/fs/cgroup/user.slice/memory.max": "1000\n",
                "sys/fs/cgroup/user.slice/memory.current": "400\n",
                "sys/fs/cgroup/user.slice/memory.stat": "anon 300\ninactive_file 100\n",
            },
            700,
            id="version 2, and the limit is of a cgroup around ours",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/\n",
                "proc/self/mountinfo": V2_MOUNT.format(inside="/"),
                "sys/fs/cgroup/memory.max": "1000\n",
                "sys/fs/cgroup/memory.current": "1200\n",
            },
            0,
            id="no statistics, and more than the limit",
        ),
        pytest.param({"proc/self/cgroup": "0::/\n"}, None, id="not mounted"),
        pytest.param({}, None, id="no cgroups"),
    ],
)
def test_memory_left_to_the_cgroup(tmp_path: Path, files: dict[str, str], left: int | None) -> None:
    assert procfs.cgroup_memory_left(write(tmp_path, files)) == left
