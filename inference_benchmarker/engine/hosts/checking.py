"""Checks whether a wave can run on hosts: each is reached as a wave reaches it, and sends nothing."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.engine.hosts.logins import keeping_logins
from inference_benchmarker.system.host import raise_descriptor_limit, usable_cores
from inference_benchmarker.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.engine.hosts.clocks import ClockOffset
    from inference_benchmarker.engine.hosts.link import Link
    from inference_benchmarker.plan.hosts import Hosts

POLL_S = 0.02
CLOCK_S = 5.0  # that the exchanges with its clock may take


@dataclass(frozen=True, slots=True)
class Checked:
    """The answer of a host. ``problem``: why no worker can run there, a sentence without its end; None where one can.

    The rest is None where the host did not report it: ``clock``, too, of this host, whose clock is ours.
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
    with keeping_logins() as logins:
        links = {host.name: logins.link(host.name, needs_socket=True) for host in hosts.hosts if not host.is_this_host}
        patience_s = float(hosts.join_timeout_s)
        _await_clocks(list(links.values()), patience_s)
        return [
            _this_host(host.name) if host.is_this_host else _checked(links[host.name], patience_s)
            for host in hosts.hosts
        ]


def _await_clocks(links: Sequence[Link], patience_s: float) -> None:
    """Until each has said its first word and its clock was asked, or that is not to be."""
    deadline, asked_until = time.monotonic() + patience_s, dict[str, float]()
    while time.monotonic() < deadline:
        for link in links:
            if link.hello is not None and link.name not in asked_until:
                asked_until[link.name] = time.monotonic() + CLOCK_S
                link.measure_clock()
        if all(link.problem or _was_asked(link, asked_until.get(link.name)) for link in links):
            return
        time.sleep(POLL_S)


def _was_asked(link: Link, until: float | None) -> bool:
    return until is not None and (link.clock.offset() is not None or time.monotonic() > until)


def _checked(link: Link, patience_s: float) -> Checked:
    hello, problem = link.hello, link.problem
    if hello is None:
        words = " | ".join(link.words_of_the_way())
        problem = problem or f"it did not answer within {patience_s:g} s (--join-timeout)" + (words and f": {words}")
        return Checked(link.name, problem)
    versions = link.versions
    return Checked(
        link.name,
        problem,
        versions.get("benchmark"),
        versions.get("python"),
        link.cores,
        hello.get("open_files"),
        link.clock.offset(),
    )


def _this_host(name: str) -> Checked:
    return Checked(name, None, __version__, platform.python_version(), usable_cores(), raise_descriptor_limit())
