"""The operating system's limits of this client, and how much load they allow: ``find_file_descriptors_limit``."""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from client_capacity.deprecated_names import FormerKeys
from inference_benchmarker.plan.plan import DEFAULT_MAX_IN_FLIGHT
from inference_benchmarker.system import procfs
from inference_benchmarker.system.host import raise_descriptor_limit
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.words.wording import aligned

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KIND = "limits"
TITLE = "LIMITS – InferenceBenchmarker"
TIME_WAIT_S = 60  # TCP_TIMEWAIT_LEN, a constant of the Linux kernel
WORKER_OPEN = 14  # what a worker has open before its first request
SPARE = 16  # what a worker keeps free for the user's code
NO_LIMIT = sys.maxsize  # as Linux writes it
MANY_WAIT = 0.5  # of the ports
_REUSE = {  # values of net.ipv4.tcp_tw_reuse
    1: "more on this host: ports are reused after 1 s (net.ipv4.tcp_tw_reuse = 1)",
    2: "more on loopback, where ports are reused after 1 s",
}


@dataclass(frozen=True, slots=True)
class Limits(FormerKeys):
    """Counts of open files (descriptors) and ports; None where this system does not say, 2^63-1 for no limit.

    ``usable``: what a worker raises its own limit to. ``process_ceiling`` is the highest hard limit there may be,
    ``time_wait_reuse`` net.ipv4.tcp_tw_reuse. Sockets are those of all processes of the host or container.
    """

    soft: int
    hard: int
    usable: int
    open_now: int | None
    system_open: int | None
    system_max: int | None
    process_ceiling: int | None
    first_port: int | None
    last_port: int | None
    tcp_in_use: int | None
    time_wait: int | None
    time_wait_reuse: int | None

    def former(self) -> dict[str, Any]:
        """The keys of old: open files of the whole system, and of this process. Its parts may be None, as here."""
        return {
            "system_wide": {"current": self.system_open, "hard": self.system_max},
            "per_process": {"soft": self.soft, "hard": self.hard, "usable": self.usable, "open": self.open_now},
        }

    @property
    def ephemeral_ports(self) -> int | None:
        """The number of local ports the kernel has for connections to one address."""
        if self.first_port is None or self.last_port is None:
            return None
        return self.last_port - self.first_port + 1

    @property
    def in_flight_per_worker(self) -> int:
        """Requests that one worker may have in flight, a descriptor each."""
        return max(1, self.usable - WORKER_OPEN - SPARE)

    @property
    def in_flight_to_one_address(self) -> int | None:
        """Requests that all workers together may have in flight to one address and port, a connection each."""
        return self.ephemeral_ports

    @property
    def new_connections_per_s(self) -> float | None:
        """Connections to one address and port that may be opened, and closed by this client, each second for ever."""
        return None if self.ephemeral_ports is None else self.ephemeral_ports / TIME_WAIT_S

    def advice(self) -> tuple[str, ...]:
        """Advice on what is tight, a line each; or that nothing is."""
        return tuple(_advice(self)) or (f"The limits suffice for {DEFAULT_MAX_IN_FLIGHT:,} requests in flight.",)

    def to_json(self) -> dict[str, Any]:
        """All of it; numbers as they are held here."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": KIND,
            "process": {
                "soft": self.soft,
                "hard": self.hard,
                "usable": self.usable,
                "open": self.open_now,
                "ceiling": self.process_ceiling,
            },
            "system": {"open": self.system_open, "max": self.system_max},
            "ports": {"first": self.first_port, "last": self.last_port, "count": self.ephemeral_ports},
            "tcp": {
                "in_use": self.tcp_in_use,
                "time_wait": self.time_wait,
                "time_wait_s": TIME_WAIT_S,
                "time_wait_reuse": self.time_wait_reuse,
            },
            "allows": {
                "in_flight_per_worker": self.in_flight_per_worker,
                "in_flight_to_one_address": self.in_flight_to_one_address,
                "new_connections_per_s_to_one_address": self.new_connections_per_s,
            },
            "advice": list(self.advice()),
        }

    def to_text(self) -> str:
        """A table and the advice."""
        rows = list(_rows(self))
        table = list(aligned([(label, _text(value)) for label, value, _ in rows]))
        width = max(len(line) for line in table)
        lines = [f"{line:{width}}   {note}".rstrip() for line, (_, _, note) in zip(table, rows, strict=True)]
        return "\n".join([TITLE, "-" * len(TITLE), *lines, "", *self.advice()]) + "\n"


def find_file_descriptors_limit() -> Limits:
    """The limits that hold for this process, and for the workers of a wave that is started as it was."""
    soft, hard = (NO_LIMIT if limit == resource.RLIM_INFINITY else limit for limit in _own_limits())
    return read_limits(soft, hard, _usable())


def read_limits(soft: int, hard: int, usable: int, root: Path = procfs.ROOT) -> Limits:
    """The limits of a process with these limits of open files on the host whose file system begins at ``root``."""
    kernel = root / "proc/sys"
    allocated = procfs.integers(kernel / "fs/file-nr")  # in use, free among them, the limit
    ports = procfs.port_range(root)
    return Limits(
        soft=soft,
        hard=hard,
        usable=usable,
        open_now=_open_now(root),
        system_open=allocated[0] - allocated[1] if len(allocated) == 3 else None,
        system_max=_first(procfs.integers(kernel / "fs/file-max")),
        process_ceiling=_first(procfs.integers(kernel / "fs/nr_open")),
        first_port=ports[0] if ports else None,
        last_port=ports[-1] if ports else None,
        tcp_in_use=procfs.tcp_in_use(root),
        time_wait=procfs.time_wait(root),
        time_wait_reuse=_first(procfs.integers(kernel / "net/ipv4/tcp_tw_reuse")),
    )


def _own_limits() -> tuple[int, int]:
    return resource.getrlimit(resource.RLIMIT_NOFILE)


def _usable() -> int:
    """The limit that a worker gets when it raises its own: tried out, because macOS grants less than it names."""
    before = _own_limits()
    usable = raise_descriptor_limit()
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    return usable


def _open_now(root: Path) -> int | None:
    """The number of descriptors this process has open; the one that lists them is not counted."""
    for folder in ("proc/self/fd", "dev/fd"):
        try:
            return sum(1 for _ in (root / folder).iterdir()) - 1
        except OSError:
            continue
    return None


def _first(numbers: list[int]) -> int | None:
    return numbers[0] if numbers else None


def _rows(limits: Limits) -> Iterator[tuple[str, float | str | None, str]]:
    """Label, number and what is to be known of it."""
    yield "Open files of a process, soft limit", limits.soft, "a wave raises its own to the hard limit"
    granted = "" if limits.usable == limits.hard else f"of which the system grants {_text(limits.usable)}"
    yield "  hard limit", limits.hard, granted
    yield "  highest hard limit there may be", limits.process_ceiling, "fs.nr_open"
    yield "  open now in this process", limits.open_now, ""
    yield "Open files of the whole system", limits.system_open, f"of {_text(limits.system_max)} (fs.file-max)"
    yield "Local ports for connections", limits.ephemeral_ports, _range_text(limits)
    yield "TCP sockets in use", limits.tcp_in_use, ""
    yield "  in TIME_WAIT", limits.time_wait, f"each holds its port for {TIME_WAIT_S} s (fixed in Linux)"
    yield "", "", ""
    yield "This allows", "", ""
    yield "  requests in flight, per worker", limits.in_flight_per_worker, "a descriptor each"
    yield "  requests in flight to one address", limits.in_flight_to_one_address, "a port each, all workers together"
    rate_note = f"ports / {TIME_WAIT_S} s; no limit for connections kept alive"
    yield "  new connections/s to one address", limits.new_connections_per_s, rate_note
    if limits.time_wait_reuse in _REUSE:
        yield "", "", _REUSE[limits.time_wait_reuse]


def _range_text(limits: Limits) -> str:
    if limits.ephemeral_ports is None:
        return ""
    return f"{limits.first_port} to {limits.last_port} (net.ipv4.ip_local_port_range)"


def _advice(limits: Limits) -> Iterator[str]:
    in_flight, ports = limits.in_flight_per_worker, limits.ephemeral_ports
    if in_flight < DEFAULT_MAX_IN_FLIGHT:
        yield (
            f"The hard limit is tight: a worker can have {in_flight:,} requests in flight; "
            f"a wave has up to {DEFAULT_MAX_IN_FLIGHT:,}, over all workers."
        )
        yield (
            "Use more --workers, or raise it (`ulimit -Hn`): /etc/security/limits.conf, LimitNOFILE= of systemd, "
            "docker --ulimit."
        )
    elif limits.soft - WORKER_OPEN - SPARE < DEFAULT_MAX_IN_FLIGHT:
        yield f"The soft limit is low but needs no change: a wave raises its own to {_text(limits.usable)}."
    if ports is not None and ports < DEFAULT_MAX_IN_FLIGHT:
        yield (
            f"Local ports are tight: {ports:,} connections to one address. For more: sysctl -w "
            'net.ipv4.ip_local_port_range="15000 60999".'
        )
    if ports and limits.time_wait is not None and limits.time_wait > MANY_WAIT * ports:
        yield (
            f"{limits.time_wait:,} sockets in TIME_WAIT hold ports: wait {TIME_WAIT_S} s before the next wave, and let "
            "invoke keep its connections."
        )
    if limits.system_open is not None and limits.system_max is not None:
        free = limits.system_max - limits.system_open
        if free < DEFAULT_MAX_IN_FLIGHT:
            yield f"The whole system can open only {free:,} more files: raise fs.file-max with sysctl -w."


def _text(value: float | str | None) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "not known here"
    return "no limit" if value >= NO_LIMIT else f"{value:,.0f}"
