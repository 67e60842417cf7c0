"""Tells of hosts whether a wave can run on them: each is reached as a wave reaches it, and sends nothing."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.engine.hosts.protocol import SOCKET
from inference_benchmarker.engine.hosts.remote import RemoteHost
from inference_benchmarker.engine.hosts.shipping import Cargo
from inference_benchmarker.engine.hosts.ssh import SshTransport
from inference_benchmarker.engine.processes.scratch import scratch_folder
from inference_benchmarker.system.host import raise_descriptor_limit, usable_cores
from inference_benchmarker.version import __version__
from inference_benchmarker.wave.run_dir import RunDir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.engine.hosts.clocks import ClockOffset
    from inference_benchmarker.plan.hosts import Hosts

POLL_S = 0.02
CLOCK_S = 5.0  # that the exchanges with its clock may take


@dataclass(frozen=True, slots=True)
class Checked:
    """The answer of a host. ``problem``: why no worker can run there, a sentence without its end; None where one can.

    The rest is None where it was not told: ``clock``, too, of this host, whose clock is ours.
    """

    name: str
    problem: str | None
    version: str | None = None
    python: str | None = None
    cores: int | None = None
    open_files: int | None = None
    clock: ClockOffset | None = None


def check_hosts(hosts: Hosts) -> list[Checked]:
    """Ask each host, all at a time, within the join timeout."""
    with scratch_folder("benchmark-") as folder:
        cargo = Cargo(environment={}, files=(), places={}, base=Path.cwd())
        remotes = {
            host.name: RemoteHost(host.name, SshTransport(host.name, folder / SOCKET), RunDir(folder), cargo)
            for host in hosts.hosts
            if not host.is_this_host
        }
        try:
            for remote in remotes.values():
                remote.connect_agent()
            patience_s = float(hosts.join_timeout_s)
            _until_told(list(remotes.values()), patience_s)
            return [
                _this_host(host.name) if host.is_this_host else _checked(remotes[host.name], patience_s)
                for host in hosts.hosts
            ]
        finally:
            for remote in remotes.values():
                remote.close()


def _until_told(remotes: Sequence[RemoteHost], patience_s: float) -> None:
    """Until each has said its first word and its clock was asked, or that is not to be."""
    deadline, asked_until = time.monotonic() + patience_s, dict[str, float]()
    while time.monotonic() < deadline:
        for remote in remotes:
            if remote.hello is not None and remote.name not in asked_until:
                asked_until[remote.name] = time.monotonic() + CLOCK_S
                remote.measure_clock()
            remote.keep()
        if all(remote.problem or _was_asked(remote, asked_until.get(remote.name)) for remote in remotes):
            return
        time.sleep(POLL_S)


def _was_asked(remote: RemoteHost, until: float | None) -> bool:
    return until is not None and (remote.clock.offset() is not None or time.monotonic() > until)


def _checked(remote: RemoteHost, patience_s: float) -> Checked:
    hello, problem = remote.hello, remote.problem
    if hello is None:
        words = " | ".join(remote.words_of_the_way())
        problem = problem or f"it did not answer within {patience_s:g} s (--join-timeout)" + (words and f": {words}")
        return Checked(remote.name, problem)
    versions = remote.versions
    return Checked(
        remote.name,
        problem,
        versions.get("benchmark"),
        versions.get("python"),
        remote.cores,
        hello.get("open_files"),
        remote.clock.offset(),
    )


def _this_host(name: str) -> Checked:
    return Checked(name, None, __version__, platform.python_version(), usable_cores(), raise_descriptor_limit())
