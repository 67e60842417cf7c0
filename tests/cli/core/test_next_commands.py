"""The search that a report proposes: with everything that shapes the wave's requests, or not at all."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from inference_benchmarker.cli.core.next_commands import next_commands
from inference_benchmarker.cli.wave.wave import wave_parser
from inference_benchmarker.plan.plan import limits_of
from tests.waves import wave


def proposed(monkeypatch: pytest.MonkeyPatch, *limits: str, **given: Any) -> list[str]:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    options = {**dict.fromkeys(wave_parser().flags), "factories_file": "f.py", **given}
    slos, of_server = limits_of(limits)
    sent = wave([[0.02] * 10] * 3)
    found = next_commands(replace(sent, plan=replace(sent.plan, slos=slos, server_limits=of_server)), options)
    assert found is not None
    return [each for each in found if "capacity" in each]


def test_the_search_has_every_limit_of_the_wave(monkeypatch: pytest.MonkeyPatch) -> None:
    (command,) = proposed(monkeypatch, "p99<1s", "p50<900ms")
    assert command == "benchmark capacity --factories-file f.py --slo 'p99<1s' --slo 'p50<900ms'"


@pytest.mark.parametrize(
    "flag", ["request_timeout", "client_timeout", "client_retries", "max_answer_size", "max_in_flight", "expect"]
)
def test_no_search_is_proposed_that_would_send_something_else(monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    assert proposed(monkeypatch, "p99<1s", **{flag: "5"}) == []


def test_no_search_is_proposed_without_a_limit_on_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proposed(monkeypatch, "p99<1s", "server.CPUUtilization<70%") == []
