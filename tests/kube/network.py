"""The network of the pods: a bridge of this machine, and a cable for each pod."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from contextlib import suppress
from pathlib import Path

from tests.hosts.claims import claimed, ip, lives
from tests.hosts.cpu_quota import remove_groups
from tests.hosts.errors import LabError

_PREFIX = "bmk"  # with the number of the cluster it is the name of all that is made on this machine
_SUBNET = "10.214"  # and the number of the cluster
_FIRST, _LAST = 11, 254


class Network:
    """A network that this machine and the pods share; ``address`` is this machine's, ``folder`` is for files of pods.

    Raises LabError where it cannot be made. What a dead process left is removed first.
    """

    def __init__(self) -> None:
        self.folder = claimed(_PREFIX, _SUBNET, _remove)
        self.name = self.folder.name
        self.subnet = f"{_SUBNET}.{self.name.removeprefix(_PREFIX)}"
        self.address = f"{self.subnet}.1"
        self._lock = threading.Lock()
        self._next: int = _FIRST
        self._taken: set[int] = set()
        try:
            ip(f"link add {self.name} type bridge", f"address add {self.address}/24 dev {self.name}")
            ip(f"link set {self.name} up")
        except BaseException:
            self.close()
            raise

    def take(self) -> int:
        """The number of a new pod: that of its address. One that was freed comes again as late as possible."""
        with self._lock:
            numbers = [*range(self._next, _LAST), *range(_FIRST, self._next)]
            number: int = next(each for each in numbers if each not in self._taken)
            self._taken.add(number)
            self._next = number + 1
            return number

    def free(self, number: int) -> None:
        """The pod of this number is gone, and its cable with it."""
        with self._lock:
            self._taken.discard(number)

    def address_of(self, number: int) -> str:
        """The address of a pod."""
        return f"{self.subnet}.{number}"

    def connect(self, number: int, pid: int) -> None:
        """Lay the cable to the network namespace of a process."""
        cable = self.cable(number)
        # An address has one hardware address for ever: another one would be unknown until the old one is forgotten.
        hardware = "02:00:" + ":".join(f"{int(part):02x}" for part in self.address_of(number).split("."))
        ip(
            f"link add {cable} type veth peer name eth0 address {hardware} netns {pid}",
            f"link set {cable} master {self.name} up",
        )

    def cut(self, number: int, *, is_cut: bool = True) -> None:
        """Let nothing through a cable any more, or let it through again."""
        with suppress(LabError):  # the pod may have ended
            ip(f"link set {self.cable(number)} {'down' if is_cut else 'up'}")

    def cable(self, number: int) -> str:
        """Its name on this machine."""
        return f"{self.name}p{number}"

    def close(self) -> None:
        """Remove all that was made; a second time does nothing."""
        if self.folder.exists():
            _remove(self.folder)


def _remove(folder: Path) -> None:
    for file in folder.glob("pods/*/pid"):
        if lives(file):
            os.kill(int(file.read_text().split()[0]), signal.SIGKILL)
    for cable in Path("/sys/class/net").glob(f"{folder.name}p*"):
        with suppress(LabError):
            ip(f"link delete {cable.name}")
    remove_groups(f"{folder.name}p")
    if Path("/sys/class/net", folder.name).exists():
        ip(f"link delete {folder.name}")
    shutil.rmtree(folder, ignore_errors=True)
