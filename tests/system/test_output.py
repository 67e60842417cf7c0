"""What another program prints is taken whole or not at all: one that prints without end is ended."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.engine.hosts.preparing import clean_hosts
from inference_benchmarker.system.output import MOST, EndlessOutputError, output_of
from server_capacity.provisioning.performing import NotDoneError, _run

if TYPE_CHECKING:
    from pathlib import Path

ENDLESS = ("sh", "-c", "exec head -c 1000000000 /dev/zero >&{}")


def test_both_streams_and_the_exit_code_are_reported() -> None:
    code = "import sys; print('o' * 300_000); print('e' * 300_000, file=sys.stderr); sys.exit(3)"
    done = output_of([sys.executable, "-c", code], 60)
    assert (done.returncode, len(done.stdout), len(done.stderr)) == (3, 300_001, 300_001)


def test_it_reads_what_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "given").write_bytes(b"given")
    with (tmp_path / "given").open("rb") as given:
        assert output_of(["cat"], 60, given).stdout == b"given"


@pytest.mark.parametrize("stream", [1, 2])
def test_one_that_prints_without_end_is_ended(stream: int) -> None:
    with pytest.raises(EndlessOutputError, match="more than 4 MiB"):
        output_of([part.format(stream) for part in ENDLESS], 60)


def test_one_that_says_nothing_is_ended_in_time() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        output_of(["sleep", "1000"], 0.1)


def test_one_that_closes_its_streams_is_ended_in_time() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        output_of(["sh", "-c", "exec sleep 1000 >&- 2>&-"], 0.5)


def test_one_that_is_not_there_raises() -> None:
    with pytest.raises(FileNotFoundError):
        output_of(["/no/such/program"], 1)


@pytest.mark.parametrize("stream", [1, 2])
def test_a_host_that_prints_without_end_is_reported(
    stream: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ssh").write_text(f"#!/bin/sh\nexec head -c {8 * MOST} /dev/zero >&{stream}\n")
    (tmp_path / "ssh").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (done,) = clean_hosts(["h1"])
    assert done.problem == "it printed more than 4 MiB"


def test_a_command_that_prints_without_end_does_not_remove() -> None:
    with pytest.raises(NotDoneError, match="it printed more than 4 MiB"):
        _run(tuple(part.format(2) for part in ENDLESS))
