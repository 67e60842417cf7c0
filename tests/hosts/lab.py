"""The laboratory: its network, the user whose ssh knows the hosts, and the end of it all, whatever happens."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.hosts.claims import claimed, identity, ip, lives
from tests.hosts.cpu_quota import CpuQuota, remove_groups
from tests.hosts.errors import LabError
from tests.hosts.host import LOGIN, OTHER, Host, Spec, remove_cable
from tests.hosts.openssh import openssh
from tests.hosts.relay import Relay

if TYPE_CHECKING:
    from types import TracebackType

_HERE = Path(__file__).parent
_CLONE = _HERE.parent.parent
_PREFIX = "bmh"  # with the number of the laboratory it is the name of all that is made on this machine
_PROGRAMS = ("apt-get", "ip", "mount", "nsenter", "setpriv", "ssh", "ssh-keygen", "unshare")
_SPACES = ("--mount", "--net", "--uts", "--ipc", "--pid", "--time", "--fork", "--kill-child")
_SUBNET = "10.213"  # and the number of the laboratory
_ADDRESSES = range(11, 255)

_PASSWD = f"""root:x:0:0:root:/root:/bin/bash
{LOGIN}:x:20001:20001::/home/{LOGIN}:/bin/bash
{OTHER}:x:20002:20002::/home/{OTHER}:/bin/bash
sshd:x:20003:65534::/run/sshd:/usr/sbin/nologin
nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin
"""
_SSHD_CONFIG = f"""Port 22
HostKey /run/lab/host_key
PidFile /run/sshd.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
LogLevel VERBOSE
AllowUsers {LOGIN}
"""


class Lab:
    """Hosts on a network of their own: ``with Lab() as lab: one, two = lab.start(Spec("load1"), Spec("load2"))``.

    ``address``: this machine's own in that network. ``session``: the words before a command that is to be run by the
    user who can log in to the hosts; ``home``: that user's home directory. Raises LabError where it cannot be had.
    """

    def __init__(self) -> None:
        if os.geteuid():
            raise LabError("separate hosts need root")
        missing = [program for program in _PROGRAMS if shutil.which(program) is None]
        if missing:
            raise LabError(f"separate hosts need {', '.join(missing)}")
        self._sshd = openssh()
        self.folder = claimed(_PREFIX, _SUBNET, _remove)
        self.name = self.folder.name
        self.hosts: dict[str, Host] = {}
        self._subnet = f"{_SUBNET}.{self.name.removeprefix(_PREFIX)}"
        self.address = f"{self._subnet}.1"
        self.home = self.folder / "home"
        try:
            _try_spaces()
            self._make_network()
            self._make_user()
        except BaseException:
            self.close()
            raise

    @property
    def session(self) -> tuple[str, ...]:
        """The words before a command: ssh takes the home directory from /etc/passwd, so that is another one there."""
        code = f'mount --bind {self.folder}/passwd /etc/passwd && export HOME={self.home} && exec "$@"'
        return ("unshare", "--mount", "sh", "-c", code, "sh")

    @property
    def python(self) -> str:
        """The Python of the tests' environment, at the path it has on every host that has one."""
        return sys.executable

    def ssh(self, *arguments: str, timeout_s: float = 30) -> subprocess.CompletedProcess[str]:
        """The user's own ssh, run to its end; it cannot ask anything."""
        line = [*self.session, "ssh", "-o", "BatchMode=yes", *arguments]
        return subprocess.run(
            line, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=timeout_s
        )

    def start(self, *specs: Spec) -> list[Host]:
        """Make these hosts, all at the same time; they have logins by the time this returns. Raises LabError."""
        made: list[Host] = []
        for spec in specs:
            assert spec.name not in self.hosts
            self.hosts[spec.name] = host = self._made(spec)
            made.append(host)
        for host in made:
            host.await_line("made")
            self._connect(host)
            host.go_on()
        for host in made:
            host.await_line("ready")
            host.remember()
            if host.spec.relayed:
                host.relay = Relay(self.address, (host.address, 22))
        self._tell_user()
        return made

    def stop(self, *hosts: Host) -> None:
        """End these hosts, and with them whatever runs there."""
        for host in hosts:
            host.stop()
            self.hosts.pop(host.name, None)
            shutil.rmtree(self.folder / host.name, ignore_errors=True)
        self._tell_user()

    def close(self) -> None:
        """End every host and remove all that was made; a second time does nothing."""
        if self.folder.exists():
            for host in self.hosts.values():
                host.stop()
            self.hosts.clear()
            _remove(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _make_network(self) -> None:
        ip(f"link add {self.name} type bridge", f"address add {self.address}/24 dev {self.name}")
        ip(f"link set {self.name} up")

    def _make_user(self) -> None:
        ssh = self.home / ".ssh"
        ssh.mkdir(parents=True, mode=0o700)
        passwd = Path("/etc/passwd").read_text()
        (self.folder / "passwd").write_text(re.sub(r"(?m)^(root:.*):[^:]*:([^:]*)$", rf"\1:{self.home}:\2", passwd))
        _make_key(ssh / "id_ed25519")
        self._tell_user()

    def _tell_user(self) -> None:
        """Write the user's ssh configuration and known_hosts for the hosts there are."""
        config, known = [], []
        for host in self.hosts.values():
            address, port = (self.address, host.relay.port) if host.relay else (host.address, 22)
            config.append(f"Host {host.name}\n  HostName {address}\n  Port {port}\n  HostKeyAlias {host.name}\n")
            if host.spec.known:
                key = self.folder / host.name / "given" / "host_key.pub"
                known.append(f"{host.name} {key.read_text()}")
        config.append(f"Host *\n  User {LOGIN}\n")
        (self.home / ".ssh" / "config").write_text("".join(config))
        (self.home / ".ssh" / "known_hosts").write_text("".join(known))

    def _made(self, spec: Spec) -> Host:
        """The host's first process, which waits for its cable."""
        taken = {host.address for host in self.hosts.values()}
        number = next(number for number in _ADDRESSES if f"{self._subnet}.{number}" not in taken)
        address = f"{self._subnet}.{number}"
        cable = f"{self.name}h{number}"
        folder = self.folder / spec.name
        self._write_given(spec, folder, address)
        quota = CpuQuota(cable, spec.cpus) if spec.cpus else None
        clock = [f"--{name}={spec.clock_s}" for name in ("monotonic", "boottime")]
        trees = {str(tree): None for tree in (_CLONE, sys.prefix, sys.base_prefix)} if spec.has_python else {}
        environment = {
            "PATH": os.environ["PATH"],
            "GIVEN": str(folder),
            "SSHD": str(self._sshd),
            "TREES": "\n".join(trees),
            "ADDRESS": address,
            "NAME": spec.name,
            "LOGIN": LOGIN,
            "DISK": spec.disk,
            "PYTHON": str(int(spec.has_python)),
            "READ_ONLY_HOME": str(int(spec.read_only_home)),
        }
        process = subprocess.Popen(
            [*(quota.joining if quota else ()), "unshare", *_SPACES, *clock, "bash", str(_HERE / "host.sh")],
            env=environment,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        (folder / "pid").write_text(identity(process.pid))
        return Host(spec, process, address, cable, quota)

    def _write_given(self, spec: Spec, folder: Path, address: str) -> None:
        given = folder / "given"
        (folder / "run").mkdir(parents=True)
        (given / "home" / ".ssh").mkdir(parents=True)
        _make_key(given / "host_key")
        (given / "passwd").write_text(_PASSWD)
        names = [line.split(":")[0] for line in _PASSWD.splitlines()]
        (given / "shadow").write_text("".join(f"{name}:*:19000:0:99999:7:::\n" for name in names))
        groups = f"root:x:0:\n{LOGIN}:x:20001:\n{OTHER}:x:20002:\nnogroup:x:65534:\n"
        (given / "group").write_text(groups)
        (given / "hosts").write_text(f"127.0.0.1 localhost\n{address} {spec.name}\n")
        (given / "sshd_config").write_text("\n".join([*spec.sshd, _SSHD_CONFIG]))
        key = (self.home / ".ssh" / "id_ed25519.pub").read_text()
        (given / "home" / ".ssh" / "authorized_keys").write_text(key if spec.authorized else "")
        (given / "home" / ".bashrc").write_text(spec.bashrc)
        shutil.copy(_HERE / "start-sshd.sh", given / "start-sshd")
        (given / "start-sshd").chmod(0o755)

    def _connect(self, host: Host) -> None:
        # An address has one hardware address for ever: another one would be unknown until the old one is forgotten.
        hardware = f"02:00:0a:{':'.join(f'{int(number):02x}' for number in host.address.split('.')[1:])}"
        ip(
            f"link add {host.cable} type veth peer name eth0 address {hardware} netns {host.pid}",
            f"link set {host.cable} master {self.name} up",
        )


def _try_spaces() -> None:
    done = subprocess.run(["unshare", *_SPACES, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"no namespaces can be made here: {done.stderr.strip()}")


def _remove(folder: Path) -> None:
    """Remove all that a laboratory made on this machine; its hosts' own things end with their first process."""
    for file in folder.glob("*/pid"):
        if lives(file):
            os.kill(int(file.read_text().split()[0]), signal.SIGKILL)
    for cable in Path("/sys/class/net").glob(f"{folder.name}h*"):
        remove_cable(cable.name)
    remove_groups(f"{folder.name}h")
    if Path("/sys/class/net", folder.name).exists():
        ip(f"link delete {folder.name}")
    shutil.rmtree(folder, ignore_errors=True)


def _make_key(path: Path) -> None:
    line = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)]
    subprocess.run(line, check=True, stdin=subprocess.DEVNULL)
