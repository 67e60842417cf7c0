"""The hosts of a plan, reached before its wave: all of them join, or none starts."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from inference_benchmarker.engine.hosts.protocol import SOCKET
from inference_benchmarker.engine.hosts.remote import RemoteHost
from inference_benchmarker.engine.hosts.shipping import cargo_of
from inference_benchmarker.engine.hosts.ssh import SshTransport
from inference_benchmarker.engine.processes.scratch import scratch_folder
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.hosts import THIS_HOST
from inference_benchmarker.plan.problems import check_plan
from inference_benchmarker.system.host import usable_cores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inference_benchmarker.engine.live import ShowsStart
    from inference_benchmarker.engine.processes.interrupts import Interrupts
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir

POLL_S = 0.02
KEEP_S = 0.1
TOGETHER_S = 2.0  # after the first host that cannot join, others are waited for: all of them are named at once
_LONGEST_SOCKET = 90  # bytes of a Unix socket's path; the system's own limit is some more


@dataclass(frozen=True, slots=True)
class Party:
    """The ``remotes`` that have joined for a wave, in the order of the plan; without hosts in it there are none.

    ``address``: in ZeroMQ's form, where their workers arrive.
    """

    remotes: tuple[RemoteHost, ...] = ()
    address: str | None = None

    def dealt(self, plan: WavePlan) -> WavePlan:
        """The plan with the workers that there will be. BenchmarkError where so many cannot share its load."""
        if not plan.hosts:
            return plan
        plan = plan.with_cores({THIS_HOST: usable_cores(), **{remote.name: remote.cores for remote in self.remotes}})
        check_plan(plan)
        return plan


@contextmanager
def joined(plan: WavePlan, run_dir: RunDir, interrupts: Interrupts, live: ShowsStart) -> Iterator[Party]:
    """The hosts of a plan, each with an agent that waits for work; nothing is left of one that is not ``close``d.

    Raises BenchmarkError with the name of each host that has not joined within the plan's time, and why;
    KeyboardInterrupt where a person does not wait for it.
    """
    if not plan.hosts:
        yield Party()
        return
    cargo = cargo_of(plan)
    with scratch_folder("benchmark-", _short_place()) as folder:
        place = folder / SOCKET if plan.hosts.listen is None else None
        remotes = [
            RemoteHost(host.name, SshTransport(host.name, place), run_dir, cargo, needs_socket=place is not None)
            for host in plan.hosts.hosts
            if not host.is_this_host
        ]
        with _kept(remotes):
            for remote in remotes:
                remote.connect_agent()
            _await_all(remotes, float(plan.hosts.join_timeout_s), interrupts, live)
            yield Party(tuple(remotes), _address(plan, place))


@contextmanager
def _kept(remotes: Sequence[RemoteHost]) -> Iterator[None]:
    """Have a thread renew the leases of hosts; in the end each is closed."""
    over = threading.Event()

    def keep() -> None:
        while not over.wait(KEEP_S):
            for remote in remotes:
                remote.keep()

    thread = threading.Thread(target=keep, name="leases", daemon=True)
    thread.start()
    try:
        yield
    finally:
        closing = [threading.Thread(target=remote.close, name="closing") for remote in remotes]
        for each in closing:
            each.start()
        for each in closing:
            each.join()
        over.set()
        thread.join()


def _await_all(remotes: Sequence[RemoteHost], patience_s: float, interrupts: Interrupts, live: ShowsStart) -> None:
    """Until each has said its first word, and can be used."""
    begun, failed = time.monotonic(), False
    deadline = begun + patience_s
    while missing := [remote for remote in remotes if remote.hello is None and remote.problem is None]:
        if interrupts.count:
            raise KeyboardInterrupt("Interrupted before the wave began; nothing was measured.")
        if not failed and any(remote.problem for remote in remotes):
            failed, deadline = True, min(deadline, time.monotonic() + TOGETHER_S)
        if time.monotonic() > deadline:
            break
        names = ", ".join(remote.name for remote in missing)
        live.starting(f"Waiting for {names} to join.", time.monotonic() - begun)
        time.sleep(POLL_S)
    found = [f"{remote.name}: it cannot be used: {remote.problem}." for remote in remotes if remote.problem]
    late = f"it has not joined within {patience_s:g} s (--join-timeout)" if not found else "it had not joined yet"
    found += [f"{remote.name}: {late}. {_last_words(remote)}" for remote in missing]
    if found:
        raise BenchmarkError("\n".join(found), "No load was sent; `benchmark hosts check` shows more.")


def _last_words(remote: RemoteHost) -> str:
    return f"Its last output: {' | '.join(remote.words_of_the_way()) or 'none'}."


def _address(plan: WavePlan, place: Path | None) -> str:
    return f"ipc://{place}" if plan.hosts.listen is None else address_to_listen(plan.hosts.listen)


def _short_place() -> str | None:
    """The folder for the socket: the system's temporary one, where its path leaves room."""
    return None if len(os.fsencode(tempfile.gettempdir())) < _LONGEST_SOCKET - 30 else "/tmp"  # noqa: S108 - a folder of ours is made in it


def address_to_listen(listen: str) -> str:
    """The address of ``--listen`` in ZeroMQ's form; without a port, any free one.

    BenchmarkError for a name that nobody knows.
    """
    split = urlsplit(f"//{listen}")
    name = split.hostname or ""
    try:
        number = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0]
    except OSError as error:
        raise BenchmarkError(f"--listen {listen}: no address has this name ({error.strerror}).") from None
    shown = f"[{number}]" if ":" in str(number) else number
    return f"tcp://{shown}:{split.port or 0}"
