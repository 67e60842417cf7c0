"""Debian's sshd, unpacked instead of installed, so that the machine itself serves nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.hosts.errors import LabError

CACHE = Path(__file__).parent.parent.parent / "build" / "openssh"
_PACKAGES = ("openssh-server", "libwrap0")
_PATIENCE_S = 120


def openssh() -> Path:
    """The folder with the unpacked openssh-server and what it needs. Raises LabError where it was never fetched."""
    if not CACHE.exists():
        raise LabError("separate hosts need an sshd: `python -m tests.hosts` fetches Debian's, once, and installs none")
    return CACHE


def fetch() -> None:
    """Download and unpack it. Raises LabError."""
    fresh = CACHE.with_name("openssh-fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        try:
            _run("apt-get", "download", *_PACKAGES, folder=fresh)
        except subprocess.CalledProcessError:  # what apt knows of the packages may be old, or nothing
            _run("apt-get", "update", folder=fresh)
            _run("apt-get", "download", *_PACKAGES, folder=fresh)
        for package in fresh.glob("*.deb"):
            _run("dpkg-deb", "-x", str(package), str(fresh), folder=fresh)
            package.unlink()
    except (OSError, subprocess.SubprocessError) as error:
        reported = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
        raise LabError(f"Debian's openssh-server cannot be fetched: {reported}") from error
    shutil.rmtree(CACHE, ignore_errors=True)
    fresh.rename(CACHE)


def _run(*line: str, folder: Path) -> None:
    subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True, timeout=_PATIENCE_S)
