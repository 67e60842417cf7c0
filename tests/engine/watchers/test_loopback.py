"""A loopback interface that goes down ends a wave that has not begun, and is noted in one that has."""

from __future__ import annotations

import errno
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from inference_benchmarker.engine.watchers import watchers
from inference_benchmarker.engine.watchers.watchers import LOOPBACK_LATER_S, LoopbackWatcher
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.host import loopback_problems


def watched(monkeypatch: pytest.MonkeyPatch, t0: int | None) -> tuple[LoopbackWatcher, Any, list[str]]:
    said: list[str] = []
    monkeypatch.setattr(watchers, "loopback_problems", lambda: ["lo is down."])
    wave: Any = SimpleNamespace(t0=t0, now_ns=7, loopback_down_ns=None, live=SimpleNamespace(say=said.append))
    return LoopbackWatcher(wave), wave, said


def test_before_the_wave_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    watcher, _, _ = watched(monkeypatch, None)
    with pytest.raises(BenchmarkError, match="lo is down"):
        watcher.look(1.0)


def test_in_mid_wave_it_is_noted_and_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    watcher, wave, said = watched(monkeypatch, 1)
    for step in range(3):
        watcher.look(1.0 + step * LOOPBACK_LATER_S)
    assert said == ["During the wave: lo is down."]
    assert wave.loopback_down_ns == 7


@pytest.mark.parametrize(
    ("step", "number", "is_one"),
    [
        ("create_server", errno.EADDRNOTAVAIL, True),
        ("create_server", errno.EADDRINUSE, False),
        ("create_connection", errno.ENETUNREACH, True),
        ("create_connection", errno.EADDRNOTAVAIL, False),
        ("create_connection", errno.EMFILE, False),
    ],
)
def test_a_lack_of_ports_or_descriptors_is_none(
    step: str, number: int, is_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(socket, step, refused)
    assert bool(loopback_problems()) == is_one
