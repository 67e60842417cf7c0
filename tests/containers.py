"""The container image, without a container program: its stages are made in bare Debian roots and run by unshare.

Debian's own Python takes the place of that of the base image.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCKERFILE = ROOT / "Dockerfile"
_DEBIAN = "bookworm"
_PACKAGES = "python3,python3-venv,ca-certificates"
_VARIABLES = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


def instructions() -> list[tuple[str, str]]:
    """The lines of the Dockerfile: instruction and the rest."""
    lines = DOCKERFILE.read_text().splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line and not line.startswith("#")]


def context() -> list[Path]:
    """The tracked files that the build is given, as .dockerignore says: everything is left out but what is let in."""
    first, *rest = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    let_in = tuple(line[1:] for line in rest if line.startswith("!"))
    assert first == "*"
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True).stdout
    return [
        Path(name) for name in tracked.splitlines() if name in let_in or name.startswith(tuple(f"{x}/" for x in let_in))
    ]


def make_root(root: Path) -> None:
    """A bare Debian with Python."""
    subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={_PACKAGES}", _DEBIAN, root], check=True)


def in_root(root: Path, *command: str, variables: dict[str, str], user: str = "0:0", **options: Any) -> list[str]:
    """The command line that runs a command in a root, as the first process of its own; ``volume`` lies at /runs."""
    volume, folder = options.get("volume"), options.get("folder", "/")
    mounts = [f"mount -t proc proc {root}/proc", f"mount --rbind /dev {root}/dev"]
    mounts += [f"mount --bind {shlex.quote(str(volume))} {root}/runs"] if volume else []
    words = [*("env", "-i"), *(f"{name}={value}" for name, value in variables.items())]
    words += ["chroot", f"--userspec={user}", str(root), "sh", "-c", 'cd "$0" && exec "$@"', folder, *command]
    script = f"{' && '.join(mounts)} && exec {shlex.join(words)}"
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]


@dataclass(frozen=True)
class Image:
    """The image, as a folder. ``added`` is what it has beside its base."""

    root: Path
    added: Path

    def command(self, *arguments: str, user: str | None = None, volume: Path | None = None) -> list[str]:
        """The command line of a container."""
        said = dict(instructions())
        (entry,) = json.loads(said["ENTRYPOINT"])
        variables = _VARIABLES | _environment(said["ENV"])
        return in_root(
            self.root,
            *(entry, *arguments),
            variables=variables,
            user=user or said["USER"],
            folder=said["WORKDIR"],
            volume=volume,
        )

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """A container, to its end."""
        return subprocess.run(
            self.command(*arguments, **options), capture_output=True, text=True, check=False, timeout=120
        )


def _environment(said: str) -> dict[str, str]:
    """What ENV says, with $PATH put in."""
    return {
        name: value.replace("$PATH", _VARIABLES["PATH"])
        for name, value in (word.split("=", 1) for word in said.split())
    }


def build(folder: Path) -> Image:
    """Both stages of the Dockerfile. What pip needs is downloaded beforehand, by this machine's pip."""
    first, last = folder / "build", folder / "image"
    make_root(first)
    subprocess.run(["cp", "-a", first, last], check=True)
    for path in context():
        (first / "source" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, first / "source" / path)
    _download(first)
    (step,) = [rest for name, rest in instructions() if name == "RUN"]
    variables = _VARIABLES | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"}
    subprocess.run(in_root(first, *step.split(), variables=variables), check=True)
    subprocess.run(["cp", "-a", f"{first}/image/.", last], check=True)
    return Image(last, first / "image")


def _download(root: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    version = next(root.glob("usr/lib/python3.*")).name.removeprefix("python")
    only = ["--quiet", "--only-binary=:all:", f"--python-version={version}", "--dest", str(root / "wheels")]
    subprocess.run([sys.executable, "-m", "pip", "download", *only, *wanted], check=True)


def size_bytes(folder: Path) -> int:
    """On a disk of whole blocks."""
    return sum(1024 * int(line.split()[0]) for line in _du(folder))


def _du(folder: Path) -> Iterator[str]:
    yield from re.findall(
        r"^\d+", subprocess.run(["du", "-sk", folder], capture_output=True, text=True, check=True).stdout
    )
