"""The hosts of a plan, reached before its wave: all of them join, or none starts."""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from inference_benchmarker.engine.hosts.logins import keeping_logins
from inference_benchmarker.engine.hosts.remote import RemoteHost
from inference_benchmarker.engine.hosts.shipping import cargo_of
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.hosts import THIS_HOST
from inference_benchmarker.plan.problems import check_plan
from inference_benchmarker.system.host import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inference_benchmarker.engine.hosts.logins import Logins
    from inference_benchmarker.engine.processes.interrupts import Interrupts
    from inference_benchmarker.engine.progress_listener import FaultTolerantView
    from inference_benchmarker.plan.hosts import Hosts
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir

POLL_S = 0.02
TOGETHER_S = 2.0  # after the first host that cannot join, others are waited for: all of them are named at once


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
        there = {remote.name: remote.link.cores for remote in self.remotes}
        plan = plan.with_cores({THIS_HOST: usable_cores(), **there})
        check_plan(plan)
        return plan


@contextmanager
def joined(plan: WavePlan, run_dir: RunDir, interrupts: Interrupts, live: FaultTolerantView) -> Iterator[Party]:
    """The hosts of a plan, each with an agent that waits for work; in the end nothing of the wave is left there.

    Within ``keeping_logins`` the agents stay for the next wave, but for those that are lost. Raises BenchmarkError with
    the name of each host that has not joined within the plan's time, and why; KeyboardInterrupt where a person does
    not wait for it.
    """
    if not plan.hosts:
        yield Party()
        return
    cargo = cargo_of(plan)
    names = [host.name for host in plan.hosts.hosts if not host.is_this_host]
    with keeping_logins() as logins:
        if plan.hosts.host_keys is not None:
            logins.receive(names, plan.hosts.host_keys, address_to_listen(plan.hosts.listen or ""))

        def linked(name: str) -> RemoteHost:
            return RemoteHost(logins.link(name, needs_socket=plan.hosts.listen is None), run_dir, cargo)

        def linked_again(remote: RemoteHost) -> RemoteHost:
            live.say(f"{remote.name}: {remote.problem}; logging in again.")
            logins.end([remote.link])
            return linked(remote.name)

        remotes = [linked(name) for name in names]
        try:
            for remote in remotes:
                remote.prepare()
            _await_all(remotes, linked_again, plan.hosts, interrupts, live)
            yield Party(tuple(remotes), _address(plan, logins))
        finally:
            for remote in remotes:
                remote.close()
            logins.end(remote.link for remote in remotes if remote.problem or not remote.is_ready)


def _await_all(
    remotes: list[RemoteHost],
    linked_again: Callable[[RemoteHost], RemoteHost],
    hosts: Hosts,
    interrupts: Interrupts,
    live: FaultTolerantView,
) -> None:
    """Until each can be given workers; one that was lost since the wave before is replaced by a new login."""
    patience_s, begun, failed = float(hosts.join_timeout_s), time.monotonic(), False
    deadline = begun + patience_s
    while True:
        for place, remote in enumerate(remotes):
            if remote.link.problem and remote.link.waves > 1:
                remotes[place] = linked_again(remote)
                remotes[place].prepare()
        missing = [remote for remote in remotes if not remote.is_ready and remote.problem is None]
        if not missing:
            break
        if interrupts.count:
            raise KeyboardInterrupt("Interrupted before the wave began; nothing was measured.")
        if not failed and any(remote.problem for remote in remotes):
            failed, deadline = True, min(deadline, time.monotonic() + TOGETHER_S)
        if time.monotonic() > deadline:
            break
        names = ", ".join(remote.name for remote in missing)
        live.starting(f"Waiting for {names} to join.", time.monotonic() - begun)
        time.sleep(POLL_S)
    found = [f"{remote.name} cannot be used: {remote.problem}." for remote in remotes if remote.problem]
    late = f"it did not join within {patience_s:g} s (--join-timeout)" if not found else "it had not joined yet"
    found += [f"{remote.name}: {late}. {_last_words(remote)}" for remote in missing]
    if found:
        more = (
            "`benchmark hosts check` shows more" if hosts.host_keys is None else "each host runs `benchmark hosts join`"
        )
        raise BenchmarkError("\n".join(found), f"No load was sent; {more}.")


def _last_words(remote: RemoteHost) -> str:
    return f"Its last output: {' | '.join(remote.link.words_of_the_way()) or 'none'}."


def _address(plan: WavePlan, logins: Logins) -> str:
    if plan.hosts.listen is None:
        return f"ipc://{logins.socket}"
    address = address_to_listen(plan.hosts.listen)
    # Hosts that connect by themselves do so at its port; their workers come to another one.
    return address if plan.hosts.host_keys is None else f"{address.rpartition(':')[0]}:0"


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
