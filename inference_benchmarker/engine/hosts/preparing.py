"""Installs on hosts what a worker of this version needs, made for their Python, processor and glibc; or removes it."""

from __future__ import annotations

import base64
import json
import platform
import secrets
import shlex
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inference_benchmarker.engine.hosts.ssh import OPTIONS, PREPARED, mends
from inference_benchmarker.engine.hosts.transport import in_command
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.output import EndlessOutputError, output_of
from inference_benchmarker.system.packaged import packaged
from inference_benchmarker.words.redact import redact
from inference_benchmarker.words.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO

AT_A_TIME = 8  # logins: of more, sshd drops some (its MaxStartups)
LOOK_S, INSTALL_S, FETCH_S = 60, 600, 600
LEAST_PYTHON = (3, 11)
NEEDED = ("locust", "geventhttpclient", "jsonschema-rs", "msgspec", "psutil", "pyzmq")
"""The distributions that a worker imports; those that they need come with them."""

_PACKAGES = ("inference_benchmarker", "factories")
_OLDEST_GLIBC = 5  # manylinux_2_5 is the oldest tag
_NEWEST_GLIBC = 999  # pip is given a tag for each version up to a host's
_NOT_SENT = ("__pycache__",)
_NOT_ASKED = "it answered something else than it was asked: what answers there is no ordinary shell"
_FACTS = (
    "import json,platform,sys;"
    "print({marker!r}.replace('-','')+json.dumps([list(sys.version_info[:3]),platform.machine(),platform.libc_ver()]))"
)
_Facts = tuple[tuple[int, int, int], str, tuple[str, str]]
# Of the Pythons there, the one that is like ours, else the first that is new enough.
_FIND = (
    "for python in {pythons}; do "
    'if "$python" -c {new_enough} 2>/dev/null; then exec "$python" {arguments}; fi; done; '
    "echo {none} >&2; exit 127"
)
_NEW_ENOUGH = f"import sys; sys.exit(sys.version_info < {LEAST_PYTHON})"
_NO_PYTHON = f"there is no Python {'.'.join(map(str, LEAST_PYTHON))} or newer"


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of host that wheels are made for: Python's version, the processor, the glibc's minor version."""

    python: tuple[int, int]
    machine: str
    glibc: int

    @property
    def arguments(self) -> list[str]:
        """Those by which pip takes wheels for it."""
        version = f"{self.python[0]}{self.python[1]}"
        platforms = [f"manylinux_2_{minor}_{self.machine}" for minor in range(self.glibc, _OLDEST_GLIBC - 1, -1)]
        older = [f"{name}_{self.machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1", "linux")]
        flags = ["--only-binary=:all:", "--implementation", "cp", "--python-version", ".".join(map(str, self.python))]
        for abi in (f"cp{version}", "abi3", "none"):
            flags += ["--abi", abi]
        for name in (*platforms, *older):
            flags += ["--platform", name]
        return flags

    @property
    def text(self) -> str:
        """Python 3.11, x86_64, glibc 2.36."""
        return f"Python {'.'.join(map(str, self.python))}, {self.machine}, glibc 2.{self.glibc}"


@dataclass(frozen=True, slots=True)
class HostOutcome:
    """A host that was worked on: ``size`` of its environment in bytes, or the ``problem`` without its end."""

    name: str
    text: str = ""
    size: int | None = None
    problem: str | None = None


def prepare_hosts(
    names: Sequence[str], wheels: Path | None, requirements: Path | None, tell: Callable[[str], None]
) -> list[HostOutcome]:
    """Install what a worker needs on each host; wheels of a kind are fetched once.

    ``wheels``: a folder to take them from, and nowhere else; else pip's own index. BenchmarkError without ssh.
    """
    with ThreadPoolExecutor(AT_A_TIME) as pool, tempfile.TemporaryDirectory(prefix="benchmark-wheels-") as folder:
        looked = list(pool.map(_look, names))
        kinds = dict.fromkeys(found for found in looked if isinstance(found, Kind))
        fetched: dict[Kind, Path | HostOutcome] = {}
        for number, kind in enumerate(kinds):
            tell(f"Fetching wheels for {kind.text}.")
            fetched[kind] = _fetch(kind, Path(folder) / str(number), wheels, requirements)
        jobs = [found if isinstance(found, HostOutcome) else (found, fetched[found]) for found in looked]
        return list(pool.map(_install, names, jobs))


def clean_hosts(names: Sequence[str]) -> list[HostOutcome]:
    """Remove every environment that was made on these hosts, whichever version's."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(_clean, names))


def _look(name: str) -> Kind | HostOutcome:
    """The kind of a host, or why nothing can be installed there."""
    marker = secrets.token_hex(8)
    line = _with_python("-c", _FACTS.format(marker=in_command(marker)))
    answer, problem = _reply(name, line, marker, None, LOOK_S)
    if problem is not None:
        return HostOutcome(name, problem=problem)
    found = kind_of(answer)
    return found if isinstance(found, Kind) else HostOutcome(name, problem=found)


def kind_of(facts: object) -> Kind | str:
    """The kind of a host by what it answered, which may be anything, or why nothing can be installed there. Pure."""
    try:
        (major, minor, _), machine, (libc, version) = msgspec.convert(facts, _Facts)
        if libc != "glibc":
            return "it has no glibc, for which wheels are made: install this tool there by hand"
        glibc = int(version.split(".")[1])
    except (ValueError, IndexError):  # msgspec's own error is a ValueError
        return _NOT_ASKED
    return Kind((major, minor), machine, glibc) if glibc <= _NEWEST_GLIBC else _NOT_ASKED


def _fetch(kind: Kind, folder: Path, wheels: Path | None, requirements: Path | None) -> Path | HostOutcome:
    """The tar that is sent to each host of this kind, or why there is none."""
    place = folder / "wheels"
    place.mkdir(parents=True)
    pins = folder / "constraints.txt"
    pins.write_text("".join(f"{name}=={version}\n" for name, version in _installed()))
    source = [] if wheels is None else ["--no-index", "--find-links", str(wheels)]
    wanted = [*NEEDED, *([] if requirements is None else ["--requirement", str(requirements)])]
    line = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    line += ["--constraint", str(pins), "--dest", str(place), *kind.arguments, *source, *wanted]
    try:
        done = output_of(line, FETCH_S)
    except subprocess.TimeoutExpired:
        return HostOutcome("", problem=f"pip did not fetch the wheels for {kind.text} within {FETCH_S} s")
    except EndlessOutputError as error:
        return HostOutcome("", problem=f"pip fetched no wheels for {kind.text}: {error}")
    if done.returncode:
        words = _last_of(done.stderr.decode(errors="replace"), 2)
        return HostOutcome("", problem=f"pip found no wheels for {kind.text}: {words}")
    archive = folder / "sent.tar"
    with tarfile.open(archive, "w") as sent:
        sent.add(place, "wheels")
        for package in _PACKAGES:
            sent.add(packaged(package), f"packages/{package}", filter=_sent)
    return archive


def _sent(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """A file of ours as it is sent: whose it is here is nobody's there."""
    if Path(member.name).name in _NOT_SENT:
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


@lru_cache
def _installed() -> tuple[tuple[str, str], ...]:
    """The versions here: other ones there would be another client."""
    found = {each.metadata["Name"]: each.version for each in distributions() if each.metadata["Name"]}
    return tuple(sorted(pair for pair in found.items() if pair[0].lower().replace("_", "-") != "inference-benchmarker"))


def _install(name: str, job: HostOutcome | tuple[Kind, Path | HostOutcome]) -> HostOutcome:
    if isinstance(job, HostOutcome):
        return job
    kind, archive = job
    if isinstance(archive, HostOutcome):
        return HostOutcome(name, kind.text, problem=archive.problem)
    marker = secrets.token_hex(8)
    source = base64.b64encode(Path(__file__).with_name("unpacking.py").read_bytes()).decode()
    code = f"import base64; exec(compile(base64.b64decode({source!r}), 'unpacking.py', 'exec'))"
    with archive.open("rb") as sent:
        answer, problem = _reply(
            name, _with_python("-c", code, f"~/{PREPARED}", in_command(marker)), marker, sent, INSTALL_S
        )
    if problem is None and not (isinstance(answer, dict) and {"failed", "bytes"} & set(answer)):
        problem = _NOT_ASKED
    if problem is not None or "failed" in answer:
        return HostOutcome(name, kind.text, problem=plain(redact(problem or answer["failed"])))
    return HostOutcome(name, kind.text, size=answer["bytes"])


def _clean(name: str) -> HostOutcome:
    marker = secrets.token_hex(8)
    folder, here = PREPARED.rpartition("/")[0], in_command(marker).replace("-", "''")
    script = f"cd && rm -rf {folder} && {{ rmdir {folder.rpartition('/')[0]} 2>/dev/null; echo {here}null; }}"
    _, problem = _reply(name, script, marker, None, LOOK_S)
    return HostOutcome(name, problem=problem)


def _with_python(*arguments: str) -> str:
    """The line of a shell that runs a Python there: the one like ours, else one that is new enough."""
    here = ".".join(platform.python_version_tuple()[:2])
    pythons = dict.fromkeys([f"python{here}", "python3", *(f"python3.{minor}" for minor in range(20, 10, -1))])
    return _FIND.format(
        pythons=" ".join([*pythons, shlex.quote(sys.executable)]),
        new_enough=shlex.quote(_NEW_ENOUGH),
        arguments=shlex.join(arguments),
        none=shlex.quote(_NO_PYTHON),
    )


def _reply(name: str, script: str, marker: str, sent: IO[bytes] | None, patience_s: float) -> tuple[Any, str | None]:
    """The JSON that a line of shell there prints after the marker, or why it printed none, in ssh's last words."""
    line = ["ssh", *OPTIONS, "--", name, f"exec /bin/sh -c {shlex.quote(script)}"]
    try:
        done = output_of(line, patience_s, sent or subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None, f"it did not answer within {patience_s} s"
    except EndlessOutputError as error:
        return None, str(error)
    except OSError as error:
        raise BenchmarkError(f"ssh cannot be started ({error.strerror}).", "Install OpenSSH's client.") from None
    _, found, answer = done.stdout.decode(errors="replace").partition(marker)
    if found and not done.returncode:
        try:
            return json.loads(answer.splitlines()[0]), None
        except (ValueError, IndexError, RecursionError):
            return None, _NOT_ASKED
    said = done.stderr.decode(errors="replace")
    words = _last_of("\n".join([said.rstrip(), *mends(name, said)]), 3)
    return None, words or (f"ssh ended with {done.returncode}" if done.returncode else _NOT_ASKED)


def _last_of(said: str, most: int) -> str:
    """The last lines of what a program said, hidden as in the whole of it."""
    lines = redact(said).strip().splitlines()[-most:]
    return " | ".join(plain(line.strip())[:300] for line in lines if line.strip())
