"""What a report on a terminal proposes: each a command that measures the endpoint that was measured, in few words."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.cli.core.next_commands import after_a_search, next_commands
from inference_benchmarker.plan.plan import limits_of
from inference_benchmarker.wave.wave import Wave
from tests.capacities import searched
from tests.situations import failing, wave

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts

URL = "http://127.0.0.1:8080/invocations"
SEARCH = f"benchmark capacity {URL} --slo 'p99<200ms'"


def proposed(facts: WaveFacts, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[str] | None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    return next_commands(Wave(**{each.name: getattr(facts, each.name) for each in fields(facts)}), options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"demo": True, "factories_file": "demo.py"}, ["benchmark capacity --demo"]),
        ({"factories_file": "my file.py"}, ["benchmark capacity --factories-file 'my file.py' --slo 'p99<200ms'"]),
        ({"factories_file": "f.py", "own_set": ["MODEL=llama"]}, []),
        ({"address": URL, "set": ["BODY={}"]}, [SEARCH]),  # the address's own settings
        ({"address": URL, "body": "{}"}, [f"benchmark capacity {URL} --body '{{}}' --slo 'p99<200ms'"]),
        ({"address": URL, "body": "x" * 41}, []),
        ({"address": URL, "header": ["A: b"]}, []),
        *(
            ({"address": URL, name: "5"}, [])
            for name in ("api_key", "request_timeout", "client_retries", "max_in_flight")
        ),
        ({}, []),
    ],
)
def test_the_search_for_what_the_endpoint_can_take(
    options: dict[str, Any], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert proposed(wave(), monkeypatch, **options) == expected


def test_the_search_has_every_limit_of_the_wave_and_needs_one_that_a_client_measures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = wave()
    for limits, ends in (
        (["p99<1s", "p50<900ms"], "--slo 'p99<1s' --slo 'p50<900ms'"),
        (["server.x<1", "p99<1s"], None),
    ):
        slos, of_server = limits_of(limits)
        limited = replace(sent, plan=replace(sent.plan, slos=slos, server_limits=of_server))
        for options, endpoint in (({"address": URL}, URL), ({"demo": True, "factories_file": "demo.py"}, "--demo")):
            found = proposed(limited, monkeypatch, **options)
            assert found == ([f"benchmark capacity {endpoint} {ends}"] if ends else [])


@pytest.mark.parametrize(("limit", "is_proposed"), [("p99<15ms", False), ("p99<30ms", True)])
def test_no_search_for_a_limit_that_even_the_fastest_request_of_an_idle_endpoint_missed(
    limit: str, monkeypatch: pytest.MonkeyPatch, *, is_proposed: bool
) -> None:
    sent = wave(slos=limit)
    assert proposed(sent, monkeypatch, address=URL) == ([f"benchmark capacity {URL} --slo '{limit}'"] * is_proposed)


def test_where_nothing_succeeded_one_request_is_checked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proposed(wave(failing(*range(1000))), monkeypatch, address=URL) == [f"benchmark check {URL}"]


@pytest.mark.parametrize(
    ("more", "code", "command"),
    [
        ({}, 0, "benchmark plan 'my runs/x_capacity' --target-rps 1000"),
        ({}, 1, None),
        ({"rate": None, "interval": None, "outcome": "cannot_tell"}, 0, None),
        ({"in": "users"}, 0, None),
    ],
)
def test_after_a_search_comes_the_plan(more: dict[str, Any], code: int, command: str | None) -> None:
    assert after_a_search(searched(**more), Path("my runs/x_capacity"), code) == command
