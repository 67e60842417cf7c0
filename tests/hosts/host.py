"""One host of the laboratory: what it is to be, what can be done to it, and what is left on it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.hosts.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hosts.cpu_quota import CpuQuota
    from tests.hosts.relay import Relay

LOGIN, OTHER = "load", "other"
_LISTENS = "0A"  # a TCP socket's state in /proc/net/tcp
_PATIENCE_S = 10.0
_COMMAND_PATIENCE_S = 60.0
_OWN = ("/run/lab", "/run/openssh", "/run/trees", "/run/without")


@dataclass(frozen=True, slots=True)
class Spec:
    """A host to be made, and its faults.

    Its CLOCK_MONOTONIC and CLOCK_BOOTTIME are ``clock_s`` ahead (whole seconds; behind by less than this machine is
    up). ``cpus``: its CPU quota; None: none. ``relayed``: the user's ssh reaches it through ``Host.relay``.
    ``sshd``: lines of sshd_config that come before the others, and so hold. ``bashrc``: its user's start-up file,
    which bash reads at each login. ``disk``: the size of its one disk, as tmpfs takes it. ``known``: its key is in
    the user's known_hosts. ``authorized``: the user's key is accepted there. ``has_python``: it sees the tests'
    environment at the path it has here; without it, there is no Python at all.
    """

    name: str
    clock_s: int = 0
    cpus: float | None = None
    relayed: bool = False
    sshd: tuple[str, ...] = ()
    bashrc: str = ""
    disk: str = "1g"
    read_only_home: bool = False
    known: bool = True
    authorized: bool = True
    has_python: bool = True


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a host: its id outside of the host, its arguments, and its environment as it started."""

    pid: int
    command: str
    environment: bytes


class Host:
    """A host that runs. ``address``: its own in the laboratory's network. ``relay``: where ``Spec.relayed``."""

    def __init__(
        self, spec: Spec, process: subprocess.Popen[bytes], address: str, cable: str, quota: CpuQuota | None
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self.address = address
        self.quota = quota
        self.relay: Relay | None = None
        self._process = process
        self.cable = cable
        self._of_the_lab: set[str] = set()
        self._processes_of_the_lab: set[int] = set()

    @property
    def pid(self) -> int:
        """The process that holds the host: when it is killed, the host and all that runs there is."""
        return self._process.pid

    @property
    def root(self) -> Path:
        """The host's file system as it is seen from here."""
        return Path(f"/proc/{self.pid}/root")

    @property
    def home(self) -> Path:
        """The home directory of the host's user as it is seen from here."""
        return self.root / "home" / LOGIN

    # ---- its life, which the laboratory begins ----

    def await_line(self, line: str) -> None:
        """Wait until the host says that it is so far. Raises LabError where it ends instead."""
        assert self._process.stdout is not None
        text = self._process.stdout.readline().decode().strip()
        if text != line:
            self._process.kill()
            _, errors = self._process.communicate()
            raise LabError(f"the host {self.name} was not made: {errors.decode().strip() or text}")

    def go_on(self) -> None:
        """Tell the host that its cable is there."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def remember(self) -> None:
        """From now on what there is already is the laboratory's own."""
        self._of_the_lab |= {*self.files(), *self.sockets()}
        self._processes_of_the_lab |= {process.pid for process in self.processes()}

    def stop(self) -> None:
        """End the host with everything that runs there; a second time does nothing."""
        if self.relay:
            self.relay.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()
        self._process.kill()
        self._process.wait()
        remove_cable(self.cable)
        if self.quota:
            self.quota.remove()

    # ---- faults ----

    def unplug(self) -> None:
        """Take the cable out: nothing reaches the host and nothing leaves it, and nobody learns of it."""
        subprocess.run(["ip", "link", "set", self.cable, "down"], check=True)

    def plug(self) -> None:
        """Put the cable in again."""
        subprocess.run(["ip", "link", "set", self.cable, "up"], check=True)

    def kill_sshd(self, *, sessions: bool = False) -> None:
        """Kill the sshd that listens, and with ``sessions`` the ones that hold logins; their commands are not."""
        pids = [process.pid for process in self._all_processes() if process.command.startswith("sshd: ")]
        listening = [pid for pid in pids if pid in self._processes_of_the_lab]
        for pid in pids if sessions else listening:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def start_sshd(self) -> None:
        """Start sshd again after ``kill_sshd``."""
        before = {process.pid for process in self.processes()}
        self.run("/run/lab/start-sshd", user="root", check=True)
        started = {process.pid for process in self.processes() if process.command.startswith("sshd: ")}
        self._processes_of_the_lab |= started - before

    def fill_disk(self) -> None:
        """Leave no byte free on the host's disk; ``(host.root / "var/tmp/full").unlink()`` makes room again."""
        with suppress(OSError), (self.root / "var/tmp/full").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))

    @contextmanager
    def half_open_logins(self, count: int) -> Iterator[None]:
        """So many connections to sshd that never log in: they count for its MaxStartups."""
        with ExitStack() as connections:
            for _ in range(count):
                connection = socket.create_connection((self.address, 22), _PATIENCE_S)
                connections.enter_context(connection)
                assert connection.recv(4) == b"SSH-"
            yield

    # ---- on the host ----

    def inside(self, *command: str, user: str = LOGIN) -> list[str]:
        """The words that run a command on the host without ssh, as that user: ``load``, ``other`` or ``root``.

        A process of this machine waits for the command: when that is killed, the command goes on.
        """
        names = {"mount": "mnt", "net": "net", "uts": "uts", "ipc": "ipc"}
        names |= {"pid": "pid_for_children", "time": "time_for_children"}
        spaces = [f"--{option}=/proc/{self.pid}/ns/{name}" for option, name in names.items()]
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]
        return ["nsenter", *spaces, *as_user, *command]

    def run(self, *command: str, user: str = LOGIN, check: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a command on the host without ssh and wait for its end."""
        return subprocess.run(
            self.inside(*command, user=user),
            capture_output=True,
            text=True,
            check=check,
            stdin=subprocess.DEVNULL,
            timeout=_COMMAND_PATIENCE_S,
        )

    # ---- what is left ----

    def processes(self) -> list[Process]:
        """What runs there and is not the laboratory's own."""
        return [process for process in self._all_processes() if process.pid not in self._processes_of_the_lab]

    def files(self) -> list[str]:
        """The files and folders on the host's own disk and in its memory that are not the laboratory's own."""
        return sorted(name for name in map(self._name, self._all_paths()) if name not in self._of_the_lab)

    def sockets(self) -> list[str]:
        """Where somebody listens on the host, as ``unix PATH`` (``@NAME``: abstract) and ``tcp PORT``."""
        unix = (line.split() for line in self._net("unix"))
        paths = {f"unix {words[7]}" for words in unix if len(words) > 7}
        tcp = (line.split() for name in ("tcp", "tcp6") for line in self._net(name))
        ports = {f"tcp {int(words[1].rpartition(':')[2], 16)}" for words in tcp if words[3] == _LISTENS}
        return sorted((paths | ports) - self._of_the_lab)

    def grep(self, secret: str) -> list[str]:
        """Where the secret stands: in which files, arguments and environments of the host."""
        wanted = secret.encode()
        found = [self._name(path) for path in self._all_paths() if wanted in _content(path) or secret in path.name]
        for process in self._all_processes():
            if secret in process.command:
                found.append(f"arguments of {process.pid}: {process.command}")
            if wanted in process.environment:
                found.append(f"environment of {process.pid}: {process.command}")
        return found

    def left(self, within_s: float = _PATIENCE_S) -> list[str]:
        """What is there still after that time: processes, listening sockets, files; [] as soon as nothing is."""
        last = time.monotonic() + within_s
        while True:
            found = [*(process.command for process in self.processes()), *self.sockets(), *self.files()]
            if not found or time.monotonic() > last:
                return found
            time.sleep(0.02)

    def _net(self, name: str) -> list[str]:
        return Path(f"/proc/{self.pid}/net/{name}").read_text().splitlines()[1:]

    def _all_processes(self) -> list[Process]:
        of_host = Path(f"/proc/{self.pid}/ns/pid_for_children").readlink()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # a process that has ended meanwhile
                if (folder / "ns" / "pid").readlink() == of_host:
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                    found.append(Process(int(folder.name), command, (folder / "environ").read_bytes()))
        return found

    def _all_paths(self) -> Iterator[Path]:
        own = tuple(f"{self.root}{path}" for path in _OWN)
        for place in (self.root / "run", self.root / "dev/shm"):
            for folder, folders, files in os.walk(place):
                folders[:] = [name for name in folders if not f"{folder}/{name}".startswith(own)]
                yield from (Path(folder, name) for name in (*folders, *files))

    def _name(self, path: Path) -> str:
        return "/" + str(path.relative_to(self.root)).removeprefix("run/disk/")


def remove_cable(name: str) -> None:
    """Remove a cable, if it is there: connections that a cut left half closed keep a host's network for minutes."""
    subprocess.run(["ip", "link", "delete", name], capture_output=True, check=False)


def _content(path: Path) -> bytes:
    with suppress(OSError):
        if path.is_file() and not path.is_symlink():
            return path.read_bytes()
    return b""
