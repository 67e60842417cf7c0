"""Waves of files whose ``invoke`` returns less than its answers say: the report says so."""

from __future__ import annotations

import pytest

from tests.bench import Bench, Finished, factories

pytestmark = pytest.mark.process


def measured(wave: Finished, code: str) -> list[str]:
    return [finding["measured"] for finding in wave.summary["findings"] if finding["code"] == code]


def test_failed_responses_and_streams_without_text_count_but_not_in_silence(bench: Bench) -> None:
    before = """
import requests
session = requests.Session()
"""
    invoke = """
session.get(os.environ["TARGET"] + "/nowhere").text
return iter([object()])
"""
    with bench.endpoint() as endpoint:
        wave = bench.run(
            *("--client-rps", 20, "--obs-time", 1, "--warmup", "0.5"),
            factories=factories(invoke, before),
            target=endpoint,
        )
    assert (wave.ledger["sent"], wave.ledger["ok"]) == (20, 20)
    assert measured(wave, "hidden_statuses") == [
        "20 of 20 ok requests received a response with a status from 400 on (404: 20)"
    ]
    assert measured(wave, "textless_streams") == ["20 streams had pieces that show no text"]
    assert not measured(wave, "no_connection")
    assert {row["chunks"] for row in wave.rows} == {None}
    (use,) = wave.summary["client"]["workers"]
    assert (use["answers"], use["connections"]["seen"]) == ({"hidden": {"404": 20}, "textless": 20}, True)


def test_a_wave_that_sends_nothing_says_so(bench: Bench) -> None:
    wave = bench.run("--client-rps", 20, "--obs-time", 1, "--workers", 2, factories=factories("return {}"))
    assert wave.ledger["ok"] == 20
    assert len(measured(wave, "no_connection")) == 1
    assert not measured(wave, "hidden_statuses")
