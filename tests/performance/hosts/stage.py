"""The laboratory for measurements: its hosts, the user's ssh on the PATH, and a folder for what waves leave."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.hosts.errors import LabError
from tests.hosts.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def folder() -> Iterator[Path]:
    """An empty folder for what waves leave; removed in the end."""
    with tempfile.TemporaryDirectory(prefix="benchmark_perf_") as place:
        yield Path(place)


@contextmanager
def staged() -> Iterator[tuple[Lab, Path]]:
    """A laboratory without hosts, and an empty folder. Raises RuntimeError where it cannot be had."""
    try:
        laboratory = Lab()
    except LabError as error:
        raise RuntimeError(str(error)) from None
    with laboratory as lab, folder() as place, users_ssh(lab, place):
        yield lab, place


@contextmanager
def users_ssh(lab: Lab, place: Path) -> Iterator[None]:
    """``ssh`` is that of the user who can log in to the hosts."""
    ssh = shutil.which("ssh")
    assert ssh is not None
    (place / "bin").mkdir()
    (place / "bin" / "ssh").write_text(f'#!/bin/sh\nexec {shlex.join([*lab.session, ssh])} "$@"\n')
    (place / "bin" / "ssh").chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{place}/bin:{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before
