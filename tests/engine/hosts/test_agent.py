"""The lease of a host's agent: a file that is touched keeps it alive as a message does."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

from inference_benchmarker.engine.hosts.agent import Agent
from inference_benchmarker.engine.hosts.protocol import LEASE, LEASE_S
from inference_benchmarker.engine.hosts.transport import Lines

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TOUCHED_S, PATIENCE_S = 30, 10


def lived_s(folder: Path, touched_s: float, monkeypatch: pytest.MonkeyPatch) -> float:
    """The seconds for which an agent lives that hears nothing, and whose lease is touched for so long."""
    now = 0.0

    def monotonic() -> float:
        nonlocal now
        now += 0.5
        if now < touched_s:
            os.utime(folder / LEASE, ns=(0, int(now * 1e9)))
        return now

    (reading, theirs), (heard, writing) = os.pipe(), os.pipe()
    monkeypatch.setattr("inference_benchmarker.engine.hosts.agent.time", SimpleNamespace(monotonic=monotonic))
    lines = Lines(reading, writing)
    Agent(lines, folder).run()
    lines.end(PATIENCE_S)
    for end in (theirs, heard):
        os.close(end)
    return now


def test_an_agent_lives_as_long_as_its_lease_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LEASE_S <= lived_s(tmp_path, 0.0, monkeypatch) < LEASE_S + 2
    assert TOUCHED_S + LEASE_S <= lived_s(tmp_path, TOUCHED_S, monkeypatch) + 2 < TOUCHED_S + LEASE_S + 4
