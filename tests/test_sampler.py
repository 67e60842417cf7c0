"""client.csv: a row a second for the host and for each process."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from client_capacity.sampler import COLUMNS, Sampler, sample_regularly

if TYPE_CHECKING:
    from pathlib import Path


class EnoughError(Exception):
    """Ends a sampling that would go on for ever."""


def test_every_sample_has_the_host_and_each_process(tmp_path: Path) -> None:
    rounds = iter(range(3))

    def sleep(_: float) -> None:
        if next(rounds) == 2:
            raise EnoughError

    with pytest.raises(EnoughError):
        sample_regularly(tmp_path / "client.csv", {"this": os.getpid()}, sleep)
    with (tmp_path / "client.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["process"] for row in rows] == ["host", "this"] * 2
    assert tuple(rows[0]) == COLUMNS
    assert all(float(row["memory_bytes"]) > 1e6 for row in rows)
    assert all(int(row["network_sent_bytes"]) >= 0 for row in rows if row["process"] == "host")


def test_cpu_is_of_the_time_since_the_last_sample() -> None:
    sampler = Sampler({"this": os.getpid()})
    sum(range(3_000_000))
    busy = {row[1]: row[2] for row in sampler.sample()}
    assert busy["this"] > 5


def test_a_process_that_ended_has_no_row() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    sampler = Sampler({"child": child.pid, "this": os.getpid()})
    child.communicate(b"\n")
    assert [row[1] for row in sampler.sample()] == ["host", "this"]
