"""Clients that try again, as processes: judged by the log of the endpoint that they were sent to."""

from __future__ import annotations

import signal
from collections import Counter
from contextlib import ExitStack

import pytest

from tests.bench import NS, Bench, Finished, factories, ids

pytestmark = pytest.mark.process

# Each third arrival fails twice after the server has answered it, each seventh with what nobody tries again.
FLAKY = factories(
    """
answer = post(payload)
seen[payload] += 1
if payload % 3 == 0 and seen[payload] < 3:
    raise ConnectionResetError
if payload % 7 == 1:
    raise ValueError
return answer
""",
    before="from collections import Counter\nseen = Counter()",
)
ARRIVALS = 60


def attempts(wave: Finished) -> list[tuple[int, int, str]]:
    return [(row["index"], row["attempt"], row["outcome"]) for row in wave.rows]


def waits(wave: Finished) -> dict[tuple[int, int], int]:
    """The nanoseconds from an attempt's end to when the next was due."""
    rows = {(row["index"], row["attempt"]): row for row in wave.rows}
    return {key: row["due"] - rows[key[0], key[1] - 1]["done"] for key, row in rows.items() if key[1]}


def test_each_attempt_is_seen_by_the_server_and_the_same_for_any_number_of_workers(bench: Bench) -> None:
    flags = ("--client-rps", 150, "--num-requests", ARRIVALS, "--client-retries", 4, "--client-timeout", 20)
    backoff = ("--backoff", "exponential:20ms..30ms", "--seed", 3)
    with ExitStack() as stack:
        endpoints = [stack.enter_context(bench.endpoint(service="none")) for _ in range(2)]
        started = [
            bench.start(*flags, *backoff, "--workers", workers, factories=FLAKY, target=endpoint)
            for workers, endpoint in zip((1, 2), endpoints, strict=True)
        ]
        waves = [running.finish() for running in started]
        logs = [Counter(ids(endpoint.arrivals())) for endpoint in endpoints]
    for wave, log in zip(waves, logs, strict=True):
        wave.check_books()
        assert Counter(row["index"] for row in wave.rows) == log
        ledger, repeats = wave.summary["ledger"], wave.summary["repeats"]
        assert (ledger["scheduled"], ledger["repeated"]) == (ARRIVALS, 2 * ARRIVALS // 3)
        assert (repeats["by_attempts"], repeats["requests"]) == ([40, 0, 20], log.total())
        assert repeats["success_by_user"] == sum(index % 7 != 1 for index in range(ARRIVALS)) / ARRIVALS
    assert attempts(waves[0]) == attempts(waves[1])
    assert waits(waves[0]) == waits(waves[1])
    assert len(set(waits(waves[0]).values())) > 30


def test_a_slow_endpoint_is_given_up_and_asked_again_while_it_works_on(bench: Bench) -> None:
    flags = ("--client-rps", 40, "--num-requests", 12, "--client-timeout", "150ms", "--client-retries", 2)
    with bench.endpoint(service_s=1.0, servers=100) as endpoint:
        wave = bench.run(*flags, target=endpoint)
        wave.check_books()
        log = Counter(ids(endpoint.arrivals()))
    assert set(log.values()) == {3}
    assert {row["error"] for row in wave.rows} == {"ClientTimeout"}
    assert min(row["done"] - row["sent"] for row in wave.rows) >= 0.15 * NS
    assert wave.summary["ledger"]["failed"] == wave.summary["ledger"]["sent"] == 36


def test_an_interrupt_ends_the_waits_and_nothing_more_is_sent(bench: Bench) -> None:
    flags = ("--client-rps", 50, "--obs-time", 60, "--client-retries", 9, "--backoff", "fixed:50s", "--workers", 2)
    with bench.endpoint(service="none", error_share=1.0, error_status=503) as endpoint:
        running = bench.start(*flags, target=endpoint)
        running.wait_for_arrivals(endpoint, 20)
        running.signal(signal.SIGINT)
        wave = running.finish(timeout=30)
        seen = len(endpoint.arrivals()["sequence"])
    wave.check_books()
    ledger = wave.summary["ledger"]
    assert wave.code == 130
    assert (ledger["repeated"], ledger["abandoned"]) == (0, 0)
    assert ledger["sent"] == ledger["failed"] == seen


def test_a_killed_workers_arrivals_are_balanced_by_what_was_repeated(bench: Bench) -> None:
    flags = ("--client-rps", 100, "--obs-time", 2.5, "--client-retries", 3, "--backoff", "fixed:20ms", "--workers", 2)
    with bench.endpoint(service="none", error_share=1.0, error_status=503) as endpoint:
        running = bench.start(*flags, target=endpoint)
        running.wait_for_arrivals(endpoint, 400)
        running.workers()[0].kill()
        wave = running.finish()
    ledger = wave.summary["ledger"]
    assert wave.code == 3
    assert ledger["lost"] > 0
    assert ledger["scheduled"] == 250
    for each in (ledger, *ledger["workers"]):
        assert each["scheduled"] + each["repeated"] == each["sent"] + each["dropped"] + each["lost"]
    assert "ledger_broken" not in {finding["code"] for finding in wave.summary["findings"]}
    (lost,) = wave.summary["lost_workers"]
    kept = [row for row in wave.rows if row["worker"] != lost]
    assert Counter(Counter(row["index"] for row in kept).values()) == {4: 125}
