"""The flags that say which hosts a load comes from, and what goes there; every command that sends a wave has them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import Flag, parse_decimal, parse_path, read_flags, table_for
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.hosts import Hosts, hosts_in, hosts_in_lines
from inference_benchmarker.system.given import read_given

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from inference_benchmarker.cli.core.flags import Reading
    from inference_benchmarker.plan.hosts import PlannedHost
    from inference_benchmarker.plan.plan import WavePlan

OF_HOSTS = "load from other hosts"
_LONGEST_FILE = 1 << 20
_NOT_WITH_HOSTS = {
    "demo": "the embedded endpoint listens on this host's loopback, which no other host reaches: give an endpoint",
    "calibrate": "what this tool adds is measured on this host, and the load comes from others: run it there, alone",
    "aiperf": "aiperf sends from this host alone: run it in a command of its own",
    "aiperf_only": "aiperf sends from this host alone: leave --hosts out",
    "vary": "the searches of several endpoints would share the hosts: search one endpoint at a time",
}


def _listed(flag: str, text: str) -> tuple[PlannedHost, ...]:
    try:
        return hosts_in(text)
    except BenchmarkError as error:
        raise BenchmarkError(f"{flag}: {error.message}", error.hint) from None


def _in_file(flag: str, text: str) -> tuple[PlannedHost, ...]:
    path = parse_path(flag, text)
    try:
        return hosts_in_lines(read_given(path, _LONGEST_FILE).decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BenchmarkError(f"{flag} {path}: cannot be read ({reason}).", "Write one host per line.") from None
    except BenchmarkError as error:
        raise BenchmarkError(f"{flag} {path}: {error.message}", error.hint) from None


def _relative_path(flag: str, text: str) -> Path:
    """A path as it stands: below the current folder it is the same on every host."""
    path = parse_path(flag, text)
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


WHICH = [
    Flag(
        "--hosts",
        "LIST",
        "hosts that send the load, reached over ssh with your configuration: load1,load2*4,admin@load3; *N starts N "
        "workers there (default: one per core)",
        _listed,
        sets="named",
    ),
    Flag(
        "--hosts-file", "FILE", "the same from a file, one host per line; # starts a comment", _in_file, sets="in_file"
    ),
]
"""Those that name the hosts alone."""

HOSTS_FLAGS = table_for(
    Hosts,
    table={
        OF_HOSTS: [
            *WHICH,
            Flag(
                "--join-timeout",
                "S",
                "seconds to wait for every host to join, not counting the time to load the factories file",
                parse_decimal,
                sets="join_timeout_s",
            ),
            Flag(
                "--max-clock-error",
                "S",
                "a wave warns if a host's clock may be off by more than this (default 2ms), and is INVALID beyond ten "
                "times this",
                parse_decimal,
                sets="max_clock_error_s",
            ),
            Flag(
                "--listen",
                "ADDRESS",
                "address of this machine to which the workers connect by encrypted TCP; ssh only starts them. With "
                "--host-keys, give ADDRESS:PORT (any free port) both here and to `benchmark hosts join --address`",
            ),
            Flag(
                "--pass-env",
                "NAME",
                "pass this environment variable to the hosts (repeatable); its value appears in no argument, log or "
                "report",
                repeatable=True,
            ),
            Flag(
                "--with-file",
                "PATH",
                "copy this file to every host (repeatable); it must be below the current folder and gets the same "
                "relative path there",
                _relative_path,
                sets="with_files",
                repeatable=True,
            ),
            Flag(
                "--host-keys",
                "FILE",
                "this machine's key file, made by `benchmark hosts keys`. The hosts then connect to --listen "
                "themselves, without ssh",
                parse_path,
            ),
            Flag("--requirements", "FILE", "install this requirements.txt on each host", parse_path),
        ]
    },
)[OF_HOSTS]


def take_hosts(options: Mapping[str, Any], given: Reading | None, problems: list[str]) -> Hosts:
    """The hosts that the options name. What was not read is unread in ``given``, too: no other problem follows."""
    read = read_flags(HOSTS_FLAGS, dict(options), problems)
    if given is not None:
        given.unread.update("hosts" if name in ("named", "in_file") else name for name in read.unread)
    if options["hosts"] is not None and options["hosts_file"] is not None:
        problems.append("Give either --hosts or --hosts-file, not both.")
    hosts = Hosts(hosts=read.values["named"] or read.values["in_file"] or (), **_rest(read))
    if any(not host.is_this_host for host in hosts.hosts):
        problems += _refused(options)
    unset = [name for name in hosts.pass_env if name not in os.environ and "=" not in name]
    problems += [f"--pass-env {name}: there is no such variable in this command's environment." for name in unset]
    return hosts


def placed(plan: WavePlan, workers: int | None, problems: list[str]) -> WavePlan:
    """The plan with its workers on its hosts; ``workers``: how many of them in all, None where nobody said."""
    try:
        return plan.on(plan.hosts, workers)
    except BenchmarkError as error:
        problems.append(str(error))
        return plan.on(plan.hosts)


def _rest(read: Reading) -> dict[str, Any]:
    return {name: value for name, value in read.of(Hosts).items() if name != "hosts"}


def _refused(options: Mapping[str, Any]) -> Iterable[str]:
    """Flags whose work is on this host alone, each in a sentence."""
    for name, why in _NOT_WITH_HOSTS.items():
        if options.get(name):
            yield f"--{name.replace('_', '-')} is not for --hosts: {why}."
