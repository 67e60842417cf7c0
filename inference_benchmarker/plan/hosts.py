"""The hosts that a wave's load comes from, how many workers each has, and what goes there with the plan. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.errors import BenchmarkError, Problem
from inference_benchmarker.plan.load import seconds_problems
from inference_benchmarker.plan.numbers import exact, take_exactly
from inference_benchmarker.words.redact import excerpt, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

THIS_HOST = "localhost"
"""The name of this host among others: its workers are started here, without ssh."""
MOST_HOSTS = 1_000
JOIN_TIMEOUT_S = Decimal(60)
MAX_CLOCK_ERROR_S = Decimal("0.002")

_NAME = re.compile(r"(?:\w[\w.+\\-]{0,63}@)?(?:\w[\w.-]{0,253}|(?=[^@]*:[^@]*:)[0-9a-fA-F:.]{2,45}(?:%[\w.-]{1,15})?)")
_WORKERS = re.compile(r"[1-9][0-9]{0,3}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")
_ADDRESS = re.compile(
    r"(?:\[(?P<v6>[0-9a-fA-F:.]{2,45})\]|(?P<name>[\w.-]{1,253}))(?::(?P<port>[0-9]{1,5}))?", re.ASCII
)
_WRITE = "Write HOST, USER@HOST or HOST*WORKERS with commas between them; a port or a key goes into ~/.ssh/config."
_WITH_HOSTS = "it needs --hosts: give them, or leave it out."


@dataclass(frozen=True, slots=True)
class PlannedHost:
    """A host as the user's own ``ssh`` knows it. ``workers`` there; None: as many as it has cores."""

    name: str
    workers: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``load1``, ``load2*4`` or ``admin@load3``; BenchmarkError for what ssh could take for an option."""
        name, star, workers = text.strip().partition("*")
        if not name.isascii() or not _NAME.fullmatch(name):
            raise BenchmarkError(f"{quoted(text)} is not a host.", _WRITE)
        if star and not _WORKERS.fullmatch(workers):
            raise BenchmarkError(f"{quoted(text)}: {workers!r} is not a number of workers.", _WRITE)
        return cls(name, int(workers) if star else None)

    @property
    def text(self) -> str:
        """The text that ``parse`` reads."""
        return self.name if self.workers is None else f"{self.name}*{self.workers}"

    @property
    def is_this_host(self) -> bool:
        """Tells whether its workers are started without ssh."""
        return self.name == THIS_HOST

    @property
    def address(self) -> str:
        """The host without its user, as two names of one host are compared."""
        return self.name.rpartition("@")[2].lower()


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of a wave; none: the load comes from this one, as it always did.

    ``listen``: the address at which workers reach the primary by TCP instead of through ssh. ``pass_env``: the names of
    variables, whose values are handed on and stand in no file. ``with_files``: data files, by their path below the
    current folder, the same there. ``host_keys``: a file of keys, with which hosts connect to ``listen`` by themselves.
    """

    hosts: tuple[PlannedHost, ...] = ()
    join_timeout_s: Decimal = JOIN_TIMEOUT_S
    max_clock_error_s: Decimal = MAX_CLOCK_ERROR_S
    listen: str | None = None
    pass_env: tuple[str, ...] = ()
    with_files: tuple[Path, ...] = ()
    requirements: Path | None = None
    host_keys: Path | None = None

    def __post_init__(self) -> None:
        take_exactly(self, "join_timeout_s", "max_clock_error_s")

    def __bool__(self) -> bool:
        return bool(self.hosts)

    @property
    def workers(self) -> int:
        """All workers; of a host whose cores are not known yet, one."""
        return sum(host.workers or 1 for host in self.hosts)

    @property
    def uncounted(self) -> tuple[PlannedHost, ...]:
        """Those whose number of workers is that of their cores, which they have not reported yet."""
        return tuple(host for host in self.hosts if host.workers is None)

    @property
    def numbers(self) -> dict[str, range]:
        """The numbers of each host's workers by its name, one host after the other."""
        found, first = {}, 0
        for host in self.hosts:
            found[host.name] = range(first, first + (host.workers or 1))
            first += host.workers or 1
        return found

    def name_of(self, worker: int) -> str | None:
        """The host of a worker by its number; None without hosts, or where it is not known yet."""
        if self.uncounted:
            return None
        return next((name for name, numbers in self.numbers.items() if worker in numbers), None)

    def dealt(self, total: int) -> Self:
        """The same with ``total`` workers, those that no ``*N`` has dealt evenly. BenchmarkError where none can be."""
        rest, takers = total - sum(host.workers or 0 for host in self.hosts), len(self.uncounted)
        if not takers and rest:
            raise BenchmarkError(
                f"--workers {total} does not fit: --hosts gives a total of {total - rest}.",
                "Leave out --workers, or the *N of the host that should take the rest.",
            )
        if rest < takers:
            raise BenchmarkError(
                f"--workers {total} is too few: each of the {len(self.hosts)} hosts needs at least one, and --hosts "
                f"already gives {total - rest}.",
                f"Give --workers {total - rest + takers} or more, or fewer hosts.",
            )
        shares = iter([rest // takers + (place < rest % takers) for place in range(takers)])
        return self._with_workers({host.name: next(shares) for host in self.uncounted})

    def at_most(self, total: int) -> Self:
        """The same with so many workers at the most, taken from the hosts in turn; a host without one is left out."""
        if total >= self.workers:
            return self
        turns = sorted((turn, name) for name, numbers in self.numbers.items() for turn in range(len(numbers)))
        left = Counter(name for _, name in turns[:total])
        return replace(
            self, hosts=tuple(PlannedHost(each.name, left[each.name]) for each in self.hosts if left[each.name])
        )

    def with_cores(self, cores: Mapping[str, int]) -> Self:
        """The same with a worker for each core, by the host's name, where no number was given. KeyError: unknown."""
        return self._with_workers({host.name: max(cores[host.name], 1) for host in self.uncounted})

    def _with_workers(self, workers: Mapping[str, int]) -> Self:
        return replace(
            self, hosts=tuple(PlannedHost(host.name, workers.get(host.name, host.workers)) for host in self.hosts)
        )

    def problems(self) -> Iterator[Problem]:
        """Everything that is wrong with them."""
        if not self.hosts:
            yield from self._stray()
            return
        if len(self.hosts) > MOST_HOSTS:
            yield Problem(("hosts",), f"--hosts must be {MOST_HOSTS:,} at most, not {len(self.hosts):,}.")
        for address, times in Counter(host.address for host in self.hosts).items():
            if times > 1:
                yield Problem(("hosts",), f"--hosts: {address} appears {times} times: name it once, as {address}*N.")
        yield from seconds_problems("join_timeout_s", "--join-timeout", self.join_timeout_s, Decimal(1))
        yield from seconds_problems("max_clock_error_s", "--max-clock-error", self.max_clock_error_s, Decimal("1e-6"))
        if self.listen is not None and not is_address(self.listen):
            text = "must be an address of this host that the others can reach, with :PORT for a fixed port"
            shown = excerpt(self.listen, 100)
            yield Problem(("listen",), f"--listen {shown}: it {text}, as in 10.0.0.5 or 10.0.0.5:5557.")
        elif self.host_keys is not None:
            yield from self._problems_of_keys()
        elif self.listen is not None and _is_of_this_host_alone(self.listen) and not self._all_here:
            shown = f"--listen {self.listen}: the other hosts cannot reach it"
            yield Problem(("listen", "hosts"), f"{shown}: give an address that they use for this host, as in 10.0.0.5.")
        yield from self._shipping_problems()

    def _problems_of_keys(self) -> Iterator[Problem]:
        """The problems of hosts that connect by themselves, which may be processes of this machine."""
        match = _ADDRESS.fullmatch(self.listen or "")
        if match is None or match["port"] is None:
            text = "needs --listen ADDRESS:PORT, where the hosts connect to this one, as in 10.0.0.5:5557."
            yield Problem(("host_keys", "listen"), f"--host-keys {text}")
        elif (number := _number(match["v6"] or match["name"])) is not None and number.is_unspecified:
            shown = f"--listen {self.listen}: workers cannot reach it"
            yield Problem(("listen", "hosts"), f"{shown}: give an address of this host, as in 10.0.0.5:5557.")

    @property
    def _all_here(self) -> bool:
        return all(host.is_this_host for host in self.hosts)

    def _stray(self) -> Iterator[Problem]:
        """The flags that say something of hosts where there are none."""
        nothing = Hosts()
        for name, flag in _FLAGS.items():
            if getattr(self, name) != getattr(nothing, name):
                yield Problem((name, "hosts"), f"{flag}: {_WITH_HOSTS}")

    def _shipping_problems(self) -> Iterator[Problem]:
        for name in self.pass_env:
            if not _VARIABLE.fullmatch(name):
                text = "give only the name of a variable: its value is taken from this command's environment."
                yield Problem(("pass_env",), f"--pass-env {excerpt(name.partition('=')[0], 100)}: {text}")
        for path in self.with_files:
            if not is_below(path):
                text = "give a path below the current folder: the file gets the same relative path on each host."
                yield Problem(("with_files",), f"--with-file {path}: {text}")

    def to_json(self) -> dict[str, Any] | None:
        """A JSON object; nothing is rounded. None without hosts."""
        if not self.hosts:
            return None
        return {
            "hosts": [host.text for host in self.hosts],
            "join_timeout_s": f"{self.join_timeout_s:f}",
            "max_clock_error_s": f"{self.max_clock_error_s:f}",
            "listen": self.listen,
            "pass_env": list(self.pass_env),
            "with_files": [str(path) for path in self.with_files],
            "requirements": None if self.requirements is None else str(self.requirements),
            "host_keys": None if self.host_keys is None else str(self.host_keys),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> Self:
        """Those that ``to_json`` described."""
        if data is None:
            return cls()
        return cls(
            hosts=tuple(map(PlannedHost.parse, data["hosts"])),
            join_timeout_s=exact(data["join_timeout_s"]),
            max_clock_error_s=exact(data["max_clock_error_s"]),
            listen=data["listen"],
            pass_env=tuple(data["pass_env"]),
            with_files=tuple(map(Path, data["with_files"])),
            requirements=None if data["requirements"] is None else Path(data["requirements"]),
            host_keys=None if data.get("host_keys") is None else Path(data["host_keys"]),
        )


_FLAGS = {
    "join_timeout_s": "--join-timeout",
    "max_clock_error_s": "--max-clock-error",
    "listen": "--listen",
    "pass_env": "--pass-env",
    "with_files": "--with-file",
    "requirements": "--requirements",
    "host_keys": "--host-keys",
}


def is_below(path: Path) -> bool:
    """Tells whether a path is one below the current folder, as it is on every host."""
    return not path.is_absolute() and ".." not in path.parts


def hosts_in(text: str) -> tuple[PlannedHost, ...]:
    """The hosts of a list with commas. BenchmarkError for none, or the first that is none."""
    return tuple(PlannedHost.parse(part) for part in text.split(","))


def hosts_in_lines(text: str) -> tuple[PlannedHost, ...]:
    """The hosts of a file, one a line; what follows a ``#`` is a comment. BenchmarkError names the line."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if shown := line.partition("#")[0].strip():
            try:
                found.append(PlannedHost.parse(shown))
            except BenchmarkError as error:
                raise BenchmarkError(
                    f"line {number}: {error.message}", "Write one HOST, USER@HOST or HOST*WORKERS per line."
                ) from None
    if not found:
        raise BenchmarkError("there is no host in it.", "Write one HOST, USER@HOST or HOST*WORKERS per line.")
    return tuple(found)


def is_address(text: str, *, with_port: bool = False) -> bool:
    """Tells whether a text is an address or a name, maybe with a port; ``with_port``: surely."""
    match = _ADDRESS.fullmatch(text)
    if match is None or (match["v6"] and _number(match["v6"]) is None):
        return False
    return not with_port if match["port"] is None else 1 <= int(match["port"]) <= 65535


def _is_of_this_host_alone(listen: str) -> bool:
    """Tells whether an address means another host wherever it is used: ``localhost``, 127.0.0.1, 0.0.0.0."""
    match = _ADDRESS.fullmatch(listen)
    assert match is not None
    name = match["v6"] or match["name"]
    number = _number(name)
    return name == THIS_HOST if number is None else number.is_loopback or number.is_unspecified


def _number(address: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(address)
    except ValueError:
        return None
