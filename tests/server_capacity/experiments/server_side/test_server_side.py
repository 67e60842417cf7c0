"""Waiting for what the server tells late, and who ends it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from inference_benchmarker.engine.processes.interrupts import counting_interrupts
from inference_benchmarker.plan.server_limit import ServerLimit
from inference_benchmarker.wave.wave import Wave
from server_capacity.experiments.measurements.evidence import SearchEvidence
from server_capacity.experiments.server_side.server_side import ServerSide, waited
from tests.waves import observe, on_time, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.facts.server_metric import Interval


class Interrupted:
    """A source that somebody presses Ctrl-C at; it ends its waiting with what there is, and that is nothing."""

    def __init__(self) -> None:
        self.asked = 0

    def collect(self, _interval: Interval, _say: object) -> list[Any]:
        self.asked += 1
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        return []


@pytest.mark.parametrize("limits", [(), (ServerLimit.parse("server.CPUUtilization<70%"),)])
def test_one_ctrl_c_ends_the_waiting_for_all_waves(
    limits: tuple[ServerLimit, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = open_plan()
    facts = observe(plan, on_time(plan))
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    explored = SearchEvidence(1, waves=[wave, wave])
    source = Interrupted()
    server = ServerSide([], {}, limits)
    server._late = cast("Any", [source])
    monkeypatch.setattr("server_capacity.experiments.server_side.server_side.all_waves", lambda *_: [wave, wave])
    monkeypatch.setattr(server, "_stored", lambda reported: reported)

    with counting_interrupts() as interrupts:
        waited(server, explored, [], interrupts)

    assert source.asked == 1
    assert explored.interrupted == bool(limits), "an answer that lacks none of its limits is the answer"
