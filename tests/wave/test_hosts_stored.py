"""The hosts of a wave, in summary.json and back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import Wave
from inference_benchmarker.data.json_file import read_json, write_json
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.hosts import HostClock, HostFacts
from tests.waves import HOST, facts_of, stored, wave

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = (HostFacts("load1", (0,), {"python": "3.12.4"}, HOST, HostClock(1000.0, 0.0002, 12.5, 0.0004)),)


def test_hosts_are_stored_and_loaded(tmp_path: Path) -> None:
    run = stored(replace(wave([[0.1] * 10]), hosts=HOSTS), tmp_path)
    assert Wave.load(run.path).hosts == HOSTS
    assert read_json(run.summary)["hosts"][0]["clock"]["offset_s"] == 1000.0


def test_a_wave_of_this_host_alone_has_none(tmp_path: Path) -> None:
    run = stored(wave([[0.1] * 10]), tmp_path)
    assert read_json(run.summary)["hosts"] is None
    assert Wave.load(run.path).hosts == ()
    write_json(run.summary, {name: value for name, value in facts_of(run).items() if name != "hosts"})
    assert Wave.load(run.path).hosts == ()  # of an earlier version


@pytest.mark.parametrize("workers", [[], [0, 0], [1]])
def test_workers_that_no_wave_has_are_refused(tmp_path: Path, workers: list[int]) -> None:
    run = stored(replace(wave([[0.1] * 10]), hosts=HOSTS), tmp_path)
    facts = facts_of(run)
    facts["hosts"][0]["workers"] = workers
    write_json(run.summary, facts)
    with pytest.raises(BenchmarkError, match="the 1 workers once each"):
        Wave.load(run.path)
