"""A container as a real process: in namespaces of its own, with a root folder that holds what the image holds.

The root has this machine's programs, the Python of the tests' environment at the place that the image has its own, and
the packages of this project. Nothing else of this machine is in it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conftest import ROOT
from tests.containers import instructions
from tests.hosts.claims import identity
from tests.hosts.cpu_quota import CpuQuota

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.kube.network import Network

_SPACES = ("--mount", "--net", "--uts", "--ipc", "--pid")
_DIES = "--pdeathsig=KILL"  # with the process that has started it; whoever changes users must say it again
# Its child is the first process of the PID namespace. The shell's own word on a signal is none of the container's log.
_SUPERVISOR = f'exec 3>&2 2>/dev/null; setpriv {_DIES} sh -c "$0" 2>&3 3>&-; exit $?'
_ENTER = ("--mount", "--net", "--uts", "--ipc", "--pid", "--root")
_PACKAGES = ("inference_benchmarker", "server_capacity", "client_capacity", "visualization", "factories")
_INSTALLED, _SOURCE = "/opt/benchmark", "/opt/source"
_MAKERS = ("chroot", "setpriv", "env")  # which make way for the container's command
_DEVICES = ("null", "zero", "full", "random", "urandom")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PATIENCE_S = 10.0
SIGNALLED = 128  # and the number of the signal: the exit code of a container that it ended


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine at a place of the container."""

    source: Path
    place: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Spec:
    """A container as it is to be started.

    ``user``, ``group``, ``groups``: of its processes. ``cpus``: the limit, in cores, or None. ``environment``: without
    that of the image. ``folder``: in which the command begins; empty: that of the image.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    mounts: Sequence[Mount]
    user: int
    group: int
    groups: Sequence[int]
    read_only: bool
    cpus: float | None
    log: Path


def image() -> dict[str, Any]:
    """The image as the Dockerfile describes it: its variables, its folder, its user and its entry."""
    said = dict(instructions())
    pairs = [word.split("=", 1) for word in said["ENV"].split()]
    variables = {name: value.replace("$PATH", _PATH) for name, value in pairs}
    user, _, group = said["USER"].partition(":")
    return {"env": variables, "folder": said["WORKDIR"], "user": int(user), "group": int(group), "entry": "benchmark"}


class Sandbox:
    """A running container; ``place`` is a folder for its own files, ``number`` that of its cable."""

    def __init__(self, spec: Spec, place: Path, network: Network, number: int) -> None:
        self.spec = spec
        self._root = place / "root"
        self._quota = CpuQuota(network.cable(number), spec.cpus) if spec.cpus else None
        self._environment = {**image()["env"], **spec.environment}
        _write_etc(place, spec.name, network.address_of(number))
        script = _script(spec, place, f"{network.address_of(number)}/24")
        with spec.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._joining, "setpriv", _DIES, "unshare", *_SPACES, "sh", "-c", _SUPERVISOR, script],
                env=self._environment,
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (place / "pid").write_text(identity(self._process.pid))
        self._first = self._awaited_first()
        network.connect(number, self._first)
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.close()
        self._await_root()

    @property
    def _joining(self) -> tuple[str, ...]:
        return self._quota.joining if self._quota else ()

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        code = self._process.wait()
        if self._quota:
            self._quota.remove()
        return SIGNALLED - code if code < 0 else code

    def ended(self) -> bool:
        """Tells whether it has."""
        return self._process.poll() is not None

    def send(self, number: signal.Signals) -> None:
        """Send its first process a signal."""
        if not self.ended():
            os.kill(self._first, number)

    def freeze(self, *, is_frozen: bool = True) -> None:
        """Stop all its processes, or let them go on."""
        if self.ended():
            return
        space = Path(f"/proc/{self._first}/ns/pid").readlink()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "ns/pid").readlink() == space:
                    os.kill(int(folder.name), signal.SIGSTOP if is_frozen else signal.SIGCONT)
            except OSError:  # it has just ended
                continue

    def execute(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start another command in it, with pipes."""
        line = [*self._joining, "nsenter", f"--target={self._first}", *_ENTER]
        return subprocess.Popen(
            [*line, *_as_user(self.spec), *command],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def _await_root(self) -> None:
        """Until its first process is the container's own, in its root: before, it would hear no signal."""
        here, until = Path("/").stat(), time.monotonic() + _PATIENCE_S
        while time.monotonic() < until and not self.ended():
            with suppress(OSError):
                program = Path(f"/proc/{self._first}/cmdline").read_bytes().partition(b"\0")[0].decode()
                is_inside = not os.path.samestat(Path(f"/proc/{self._first}/root").stat(), here)
                if is_inside and program not in _MAKERS:
                    return
            time.sleep(0.002)

    def _awaited_first(self) -> int:
        """The first process of its namespaces, which are there as soon as it is."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until and self._process.poll() is None:
            for child in children.read_text().split():
                return int(child)
            time.sleep(0.002)
        raise RuntimeError(f"the container {self.spec.name} does not start: {self.spec.log.read_text()}")


def _write_etc(place: Path, name: str, address: str) -> None:
    (place / "root").mkdir()
    (place / "hosts").write_text(f"127.0.0.1\tlocalhost\n{address}\t{name}\n")
    (place / "hostname").write_text(f"{name}\n")
    (place / "resolv.conf").write_text("")
    (place / "benchmark").write_text(
        f"#!{_INSTALLED}/bin/python\nimport sys\nfrom inference_benchmarker.cli import main\nsys.exit(main())\n"
    )
    (place / "benchmark").chmod(0o755)
    (place / "source.pth").write_text(f"{_SOURCE}\n")


def _script(spec: Spec, place: Path, address: str) -> str:
    """The commands of the container's first process, which becomes that of the container."""
    root = place / "root"
    lines = [
        ["read", "-r", "_"],  # until the cable is there
        ["hostname", spec.name],
        ["ip", "link", "set", "lo", "up"],
        ["ip", "address", "add", address, "dev", "eth0"],
        ["ip", "link", "set", "eth0", "up"],
        ["mount", "-n", "-t", "tmpfs", "-o", "mode=755", "root", str(root)],
        *_system(root),
        *_python(root, place),
        *(_bind(root, Mount(place / name, f"/etc/{name}", False)) for name in ("hosts", "hostname", "resolv.conf")),
        *(_bind(root, mount) for mount in sorted(spec.mounts, key=lambda mount: mount.place.count("/"))),
        *([["mount", "-n", "-o", "remount,ro", str(root)]] if spec.read_only else []),
    ]
    flat = [line if isinstance(line, str) else shlex.join(line) for line in lines]
    last = shlex.join(["chroot", str(root), *_as_user(spec, _DIES), *spec.command])
    return " && ".join(["umask 022", *flat, f"exec {last} </dev/null"])


def _system(root: Path) -> list[list[str] | str]:
    """The programs of this machine, and what every container has."""
    made: list[list[str] | str] = [
        ["mkdir", *(str(root / name) for name in ("proc", "sys", "dev", "tmp", "run", "runs"))]
    ]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc"):
        path = Path("/", name)
        if path.is_symlink():
            made.append(["cp", "-a", str(path), str(root)])
        elif path.exists():
            made.append(_bind(root, Mount(path, str(path), True)))
    made.append(["chmod", "1777", str(root / "tmp"), str(root / "runs")])
    made.append(["mount", "-n", "-t", "proc", "proc", str(root / "proc")])
    made.append(["mount", "-n", "-t", "sysfs", "-o", "ro", "sysfs", str(root / "sys")])
    made.append(["mount", "-n", "--rbind", "/sys/fs/cgroup", str(root / "sys/fs/cgroup")])
    made.append(["mount", "-n", "-t", "tmpfs", "-o", "mode=755", "dev", str(root / "dev")])
    made.append(["mkdir", "-m", "1777", str(root / "dev/shm")])
    made += [_bind(root, Mount(Path("/dev", name), f"/dev/{name}", False)) for name in _DEVICES]
    for name, target in {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}.items():
        made.append(["ln", "-s", f"/proc/self/{target}", str(root / "dev" / name)])
    return made


def _python(root: Path, place: Path) -> list[str]:
    """The environment of the tests where the image has its own, and this project's packages."""
    python = Path(sys.executable).resolve()
    trees = [Path(sys.prefix)] if sys.prefix == sys.base_prefix else [Path(sys.base_prefix)]
    made = [_bind(root, Mount(tree, str(tree), True)) for tree in trees if not tree.is_relative_to("/usr")]
    assert python.exists()
    made.append(_bind(root, Mount(Path(sys.prefix), _INSTALLED, True)))
    made += [_bind(root, Mount(ROOT / name, f"{_SOURCE}/{name}", True)) for name in _PACKAGES]
    made.append(_bind(root, Mount(place / "benchmark", f"{_INSTALLED}/bin/benchmark", True)))
    for path in Path(sys.prefix).glob("lib/python3*/site-packages/*.pth"):
        if str(ROOT) in path.read_text():
            there = f"{_INSTALLED}/{path.relative_to(sys.prefix)}"
            made.append(_bind(root, Mount(place / "source.pth", there, True)))
    return made


def _bind(root: Path, mount: Mount) -> str:
    """Its commands; the place is made where it is missing."""
    place = root / mount.place.lstrip("/")
    make = ["mkdir", "-p", str(place if mount.source.is_dir() else place.parent)]
    lines = [make]
    if not mount.source.is_dir():
        lines.append(["touch", "-a", str(place)])
    lines.append(["mount", "-n", "--rbind", str(mount.source), str(place)])
    if mount.read_only:
        lines.append(["mount", "-n", "-o", "remount,bind,ro", str(place)])
    made = [shlex.join(line) for line in lines]
    if not mount.source.is_dir():
        made[1] = f"{{ test -e {shlex.quote(str(place))} || {made[1]}; }}"
    return " && ".join(made)


def _as_user(spec: Spec, *more: str) -> list[str]:
    """The words before a command in the container's root: it is run by its user, without privileges."""
    groups = f"--groups={','.join(map(str, spec.groups))}" if spec.groups else "--clear-groups"
    line = ["setpriv", *more, f"--reuid={spec.user}", f"--regid={spec.group}", groups, "--no-new-privs"]
    line += ["--bounding-set=-all", "--inh-caps=-all"]
    return [*line, "env", f"--chdir={spec.folder or image()['folder']}"]


def can_run() -> str | None:
    """The reason why no container can be run here, or None."""
    if os.geteuid():
        return "pods in namespaces of their own need root"
    missing = [program for program in ("ip", "nsenter", "setpriv", "unshare") if shutil.which(program) is None]
    if missing:
        return f"pods in namespaces of their own need {', '.join(missing)}"
    done = subprocess.run(["unshare", *_SPACES, "true"], capture_output=True, text=True, check=False)
    return f"no namespaces can be made here: {done.stderr.strip()}" if done.returncode else None
