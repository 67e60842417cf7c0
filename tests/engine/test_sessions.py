"""Sessions of several turns, as processes: judged by the log of the endpoint that they were sent to."""

from __future__ import annotations

import csv
import json
import math
import signal
from collections import Counter, defaultdict
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.wave.wave import Wave
from inference_benchmarker.words.wording import percent_text
from tests.bench import NS, Bench, Finished

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inference_benchmarker.embedded.running import RunningEndpoint

pytestmark = pytest.mark.process


def sessions(turns: str, think: str = "0.02", invoke: str = "return post(payload)", before: str = "") -> str:
    """A factories file whose sessions have so many turns; a payload is ``number.turn``."""
    lines = "\n        ".join(invoke.strip().splitlines())
    return f"""
import time
from inference_benchmarker import Turn
from sender import post
{before}

def invoke_factory():
    def invoke(payload):
        number, turn = map(int, payload.split("."))
        {lines}

    return invoke


def session_factory():
    def session(number):
        for turn in range(1, 1 + {turns}):
            label = "first" if turn == 1 else "later"
            answer = yield Turn(f"{{number}}.{{turn}}", think_s={think}, label=label, left={turns} - turn)
            assert type(answer) is bytes
            if number % 13 == 5:
                raise KeyError(number)

    return session
"""


# Some sessions fail in their second turn, with what nobody tries again, others raise in their own code.
MIXED = sessions(
    "1 + 7 * number % 5",
    think="0.02 + (number + turn) % 7 * 0.005",
    invoke="""
answer = post(payload)
if number % 11 == 3 and turn == 2:
    raise ValueError
return answer
""",
)


def expected(number: int) -> tuple[int, str]:
    """The number of turns that a session of MIXED has, and its end."""
    turns = 1 + 7 * number % 5
    if number % 13 == 5:
        return 1, "raised"
    return (2, "failed") if number % 11 == 3 and turns >= 2 else (turns, "completed")


def by_session(wave: Finished) -> dict[int, list[dict[str, Any]]]:
    return by_session_of(wave.rows)


def by_session_of(rows: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["session"]].append(row)
    return found


def seen(endpoint: RunningEndpoint) -> list[tuple[int, int]]:
    """Session and turn of each request, in the order in which the server received them."""
    return [
        (int(number), int(turn)) for number, turn in (reported.split(".") for reported in endpoint.arrivals()["id"])
    ]


def check_books(wave: Finished, turns_of: Callable[[int], int] | None = None) -> None:
    """The ledger balances by session and by turn, and the rows are what it says.

    ``turns_of``: the turns that the code of a session has; each is sent, found no slot, or is not begun.
    """
    found = by_session(wave)
    ledger = wave.ledger
    for books in (ledger, *ledger["workers"]):
        turns = books["sent"] - books["repeated"]
        assert books["scheduled"] == turns - books["later_turns"] + books["dropped"] + books["lost"]
        assert books["sent"] == books["ok"] + books["failed"] + books["abandoned"] + books["in_flight"]
    endings = Counter(rows[-1]["ended"] for rows in found.values())
    for name in ("completed", "failed", "raised"):
        assert ledger[f"sessions_{name}"] == endings[name], name
    if not wave.summary["lost_workers"]:
        assert ledger["later_turns"] == sum(row["turn"] > 1 and not row["attempt"] for row in wave.rows)
    if turns_of is not None:
        begun = sum(1 for row in wave.rows if not row["attempt"]) + ledger["dropped_turns"]
        assert begun + ledger["not_begun"] == sum(map(turns_of, found))
        assert ledger["turns_unknown"] == 0
    for rows in found.values():
        for before, row in pairwise(rows):
            assert before["ended"] is None
            assert row["worker"] == before["worker"]
            if row["turn"] == before["turn"]:
                assert (row["attempt"], row["think_ns"]) == (before["attempt"] + 1, None)
            else:
                assert (row["turn"], row["attempt"], before["outcome"]) == (before["turn"] + 1, 0, "ok")
                assert row["due"] - before["done"] == row["think_ns"]
            assert row["due"] <= row["sent"] - row["build_ns"]


def anderson_darling(gaps: list[float], rate: float) -> float:
    """The statistic of gaps that are exponential with a known rate (Anderson and Darling, 1954)."""
    shares = sorted(-math.expm1(-gap * rate) for gap in gaps)
    number = len(shares)
    terms = (
        (2 * place + 1) * (math.log(share) + math.log1p(-shares[number - 1 - place]))
        for place, share in enumerate(shares)
    )
    return -number - sum(terms) / number


def percentile(values: list[float], percent: float) -> float:
    return sorted(values)[max(math.ceil(round(percent * len(values) / 100, 9)), 1) - 1]


def check_times(fields: dict[str, Any] | None, values: list[float]) -> None:
    """A distribution of summary.json against the values that it is of."""
    assert (fields is None) == (not values)
    if fields is not None:
        assert (fields["count"], fields["max"]) == (len(values), pytest.approx(max(values)))
        assert fields["mean"] == pytest.approx(sum(values) / len(values))
        for name, percent in (("p50", 50), ("p90", 90), ("p95", 95), ("p99", 99), ("p99_9", 99.9)):
            assert fields[name] == pytest.approx(percentile(values, percent)), name


def check_figures(wave: Finished) -> None:
    """Every figure by session and by turn in summary.json follows from the rows of requests.parquet."""
    found, reported, end = by_session(wave), wave.summary["sessions"], max(row["done"] for row in wave.rows)
    endings = Counter(rows[-1]["ended"] or "open" for rows in found.values())
    assert {name: reported[name] for name in ("completed", "failed", "raised", "open")} == {
        name: endings[name] for name in ("completed", "failed", "raised", "open")
    }
    assert reported["started"] == len(found)
    assert reported["success"] == pytest.approx(endings["completed"] / len(found))
    durations, turns = [], []
    for rows in found.values():
        if rows[-1]["ended"] in ("completed", None):
            over = rows[-1]["done"] if rows[-1]["ended"] else end
            durations.append((over - rows[0]["due"]) / NS)
            turns.append(float(rows[-1]["turn"]))
    check_times(reported["duration"], durations)
    check_times(reported["turns_a_session"], turns)
    assert [row["turn"] for row in reported["by_turn"]] == sorted({row["turn"] for row in wave.rows})
    for turn in reported["by_turn"]:
        own = [row for row in wave.rows if row["turn"] == turn["turn"]]
        assert turn["sent"] == len(own)
        assert (turn["ok"], turn["failed"]) == tuple(
            sum(row["outcome"] == each for row in own) for each in ("ok", "failed")
        )
        answered = [row for row in own if row["outcome"] != "failed"]
        check_times(turn["latency"], [(row["done"] - row["sent"]) / NS for row in answered])
        pieces = [row for row in answered if row["first_token"] is not None]
        check_times(turn["ttft"], [(row["first_token"] - row["sent"]) / NS for row in pieces])
        contexts = [row["context_tokens"] for row in own if row["context_tokens"] is not None]
        assert turn["context_tokens"] == (pytest.approx(sum(contexts) / len(contexts)) if contexts else None)
        cached = [row for row in own if row.get("metric.cached_tokens") is not None]
        assert (turn["cached_share"] is None) == (not cached)
        if cached:
            share = sum(row["metric.cached_tokens"] for row in cached) / sum(row["context_tokens"] for row in cached)
            assert turn["cached_share"] == pytest.approx(share)
    for name, part in reported["of_turns"].items():
        own = [row for row in wave.rows if (row["turn"] == 1) == (name == "turn1")]
        assert part["sent"] == len(own)
        check_times(part["lag"], [(row["sent"] - row["build_ns"] - row["due"]) / NS for row in own])
        check_times(part["latency"], [(row["done"] - row["sent"]) / NS for row in own if row["outcome"] != "failed"])


def test_each_turn_is_seen_by_the_server_in_order_and_the_same_for_any_number_of_workers(bench: Bench) -> None:
    flags = ("--client-rps", 150, "--arrivals", "poisson", "--num-requests", 300, "--seed", 3)
    several = (("--workers", 1), ("--hosts", "localhost*2"), ("--workers", 5))
    with ExitStack() as stack:
        endpoints = [stack.enter_context(bench.endpoint(service="none")) for _ in range(3)]
        started = [
            bench.start(*flags, *workers, factories=MIXED, target=endpoint)
            for workers, endpoint in zip(several, endpoints, strict=True)
        ]
        waves = [running.finish() for running in started]
        logs = [seen(endpoint) for endpoint in endpoints]
    for wave, log in zip(waves, logs, strict=True):
        check_books(wave, lambda number: 1 + 7 * number % 5)
        check_figures(wave)
        assert wave.ledger["not_begun"] == sum(1 + 7 * number % 5 - expected(number)[0] for number in range(300)) > 50
        assert f"Turns not begun:  {wave.ledger['not_begun']}\n" in wave.out
        found = by_session(wave)
        assert sorted(found) == list(range(300))
        assert sorted(log) == [(row["session"], row["turn"]) for row in wave.rows]
        order = defaultdict(list)
        for number, turn in log:
            order[number].append(turn)
        for number, rows in found.items():
            turns, ended = expected(number)
            assert order[number] == [row["turn"] for row in rows] == list(range(1, turns + 1))
            assert rows[-1]["ended"] == ended
            thought = [round((0.02 + (number + turn) % 7 * 0.005) * NS) for turn in range(2, turns + 1)]
            assert [row["think_ns"] for row in rows] == [None, *thought]
        reported = wave.summary["sessions"]
        endings = Counter(expected(number)[1] for number in range(300))
        assert {name: reported[name] for name in ("started", *endings)} == {"started": 300, **endings}
        assert {row["label"]: row["sent"] for row in wave.summary["labels"]} == Counter(
            "first" if turn == 1 else "later" for _, turn in log
        )
        assert "sessions_raised" in wave.findings
    firsts = [[rows[0]["due"] for rows in by_session(wave).values()] for wave in waves]
    assert firsts[0] == firsts[1] == firsts[2]
    for dues in firsts:
        gaps = [(after - before) / NS for before, after in pairwise(dues)]
        assert anderson_darling(gaps, 150.0) < 3.857  # the 1% point


def test_attempts_of_a_turn_are_the_same_request_and_its_session_goes_on_after_them(bench: Bench) -> None:
    flaky = sessions(
        "3",
        invoke="""
answer = post(payload)
tries[payload] += 1
if number % 3 == 1 and turn == 2 and tries[payload] < 3:
    raise ConnectionResetError
if number % 4 == 2 and turn == 3:
    raise ConnectionResetError
return answer
""",
        before="from collections import Counter\ntries = Counter()",
    )
    flags = ("--client-rps", 60, "--num-requests", 36, "--workers", 2, "--client-retries", 2, "--backoff", "fixed:30ms")
    with bench.endpoint(service="none") as endpoint:
        wave = bench.run(*flags, factories=flaky, target=endpoint)
        log = Counter(seen(endpoint))
    check_books(wave, lambda _: 3)
    assert Counter((row["session"], row["turn"]) for row in wave.rows) == log
    for number, rows in by_session(wave).items():
        if number % 13 == 5:
            continue
        times = [1, 3 if number % 3 == 1 else 1, 3 if number % 4 == 2 else 1]
        assert [log[number, turn] for turn in (1, 2, 3)] == times
        assert rows[-1]["ended"] == ("failed" if number % 4 == 2 else "completed")
    check_figures(wave)
    repeats = wave.summary["repeats"]
    assert repeats["arrivals"] == wave.ledger["sent"] - wave.ledger["repeated"]


def test_an_interrupt_cuts_the_sessions_that_think_and_nothing_more_is_sent(bench: Bench) -> None:
    flags = ("--client-rps", 40, "--obs-time", 60, "--workers", 2)
    with bench.endpoint(service="none") as endpoint:
        running = bench.start(*flags, factories=sessions("4", think="0.2 * number"), target=endpoint)
        running.wait_for_arrivals(endpoint, 60)
        running.signal(signal.SIGINT)
        wave = running.finish(timeout=30)
        log = seen(endpoint)
    check_books(wave, lambda _: 4)
    assert wave.code == 130
    assert sorted(log) == [(row["session"], row["turn"]) for row in wave.rows]
    reported = wave.summary["sessions"]
    check_figures(wave)
    assert wave.ledger["not_begun"] > reported["open"] > 10
    assert reported["open"] == sum(rows[-1]["ended"] is None for rows in by_session(wave).values())
    assert {"sessions_open"} <= set(wave.findings)


def test_a_killed_workers_open_sessions_are_counted(bench: Bench) -> None:
    flags = ("--client-rps", 60, "--obs-time", 2.5, "--workers", 2)
    with bench.endpoint(service="none") as endpoint:
        running = bench.start(*flags, factories=sessions("3", think="0.3"), target=endpoint)
        running.wait_for_arrivals(endpoint, 150)
        running.workers()[0].kill()
        wave = running.finish()
        log = Counter(seen(endpoint))
    check_books(wave)
    assert wave.code == 3
    assert wave.ledger["lost"] > 0
    (lost,) = wave.summary["lost_workers"]
    assert {row["worker"] for rows in by_session(wave).values() if rows[-1]["ended"] is None for row in rows} == {lost}
    for number, rows in by_session(wave).items():
        if rows[0]["worker"] != lost:
            assert len(rows) == sum(log[number, turn] for turn in (1, 2, 3)) == (1 if number % 13 == 5 else 3)
    assert Wave.load(wave.folder).to_json()["sessions"] == wave.summary["sessions"]


def test_sessions_that_are_open_when_the_drain_ends_are_lower_bounds(bench: Bench) -> None:
    flags = ("--client-rps", 20, "--obs-time", 1, "--drain-timeout", "0.5s")
    with bench.endpoint(service="none") as endpoint:
        wave = bench.run(*flags, factories=sessions("2", think="5 * (number % 2)"), target=endpoint)
    check_books(wave, lambda _: 2)
    reported = wave.summary["sessions"]
    assert (reported["started"], reported["open"], reported["completed"]) == (20, 9, 9)  # the others raise
    assert wave.ledger["not_begun"] == 11
    assert reported["duration"]["lower_bound_from"] is not None
    assert reported["duration"]["count"] == 18
    assert "≥" in wave.out.split("Session duration:")[1].splitlines()[0]


def test_sessions_whose_clients_wait_to_try_again_when_the_drain_ends_are_open(bench: Bench) -> None:
    refused = """
answer = post(payload)
if number % 4 == 1 and turn == 2:
    raise ConnectionResetError
return answer
"""
    flags = ("--client-rps", 20, "--obs-time", 1, "--drain-timeout", 1, "--client-retries", 2, "--backoff", "fixed:9s")
    with bench.endpoint(service="none") as endpoint:
        wave = bench.run(*flags, factories=sessions("4", invoke=refused), target=endpoint)
        log = Counter(seen(endpoint))
    check_books(wave, lambda _: 4)
    check_figures(wave)
    assert Counter((row["session"], row["turn"]) for row in wave.rows) == log
    assert wave.summary["sessions"]["open"] == 4  # of the five the last raises
    assert wave.ledger["not_begun"] == 4 * 2 + 2 * 3


def test_a_session_that_thinks_holds_no_slot_and_one_without_a_slot_is_dropped(bench: Bench) -> None:
    flags = ("--num-requests", 24, "--obs-time", 20)
    with bench.endpoint(service="none") as quick, bench.endpoint(service_s=0.4, servers=9) as slow:
        started = [
            bench.start("--client-rps", 60, *flags, "--max-in-flight", 9, factories=file, target=quick)
            for file in (sessions("2", think="1"),)
        ]
        dropping = sessions("2", think="0.3 * (number < 3) + 0.01")
        started.append(bench.start("--client-rps", 10, *flags, "--max-in-flight", 3, factories=dropping, target=slow))
        thinking, dropped = [running.finish() for running in started]
    for wave in (thinking, dropped):
        check_books(wave, lambda _: 2)
    assert thinking.ledger["dropped"] == thinking.ledger["dropped_turns"] == 0
    assert dropped.ledger["dropped"] + dropped.ledger["dropped_turns"] > 0
    assert "dropped_arrivals" in dropped.invalid


# A server that says how many tokens each answer has.
COUNTED = sessions(
    "2 + number % 5",
    think="0.05 + (number + turn) % 7 * 0.03",
    invoke="post(payload)\nreturn Response(tokens_in=100 * turn, tokens_out=10 + turn + number % 7)",
    before="from inference_benchmarker import Response",
).replace("assert type(answer) is bytes", "assert answer.tokens_in == 100 * turn")


def test_rates_are_what_the_server_had_whoever_began_the_sessions(bench: Bench) -> None:
    loads = (
        ("--client-rps", 40, "--arrivals", "poisson", "--seed", 4, "--obs-time", 2),
        ("--concurrency", 20, "--obs-time", 2),
        ("--concurrency", 20, "--num-requests", 60),
    )
    flags = ("--warmup", 1, "--workers", 2)
    with ExitStack() as stack:
        endpoints = [stack.enter_context(bench.endpoint(service_s=0.004, servers=50)) for _ in loads]
        started = [
            bench.start(*load, *flags, factories=COUNTED, target=endpoint)
            for load, endpoint in zip(loads, endpoints, strict=True)
        ]
        finished = [
            (running.finish(), endpoint.arrivals()) for running, endpoint in zip(started, endpoints, strict=True)
        ]
    for wave, log in finished:
        check_rates(wave, log)


def check_rates(wave: Finished, log: dict[str, list[Any]]) -> None:
    """Rates by the server's clock: they differ by requests that were on their way at an end of the time alone."""
    check_books(wave)
    t0 = wave.summary["window"]["t0_monotonic_ns"]
    rows = {f"{row['session']}.{row['turn']}": row for row in wave.everything}
    assert sorted(log["id"]) == sorted(rows)
    came, answered = (
        {name: at - t0 for name, at in zip(log["id"], log[column], strict=True)}
        for column in ("arrival_ns", "answered_ns")
    )
    rates, planned = wave.summary["rates"], wave.summary["window"]["planned_s"]
    seconds = rates["over_s"]
    assert seconds == (wave.summary["sessions"]["rates"]["over_s"] if planned is None else planned)

    def had(at_server: dict[str, int], here: Callable[[str], int], end_ns: float, begin_ns: float) -> list[str]:
        """The names of those in a span by the server's clock, put right by those on their way at its ends."""
        inside = {name for name, at in at_server.items() if begin_ns <= at < end_ns}
        other = {name for name in rows if begin_ns <= here(name) < end_ns}
        for name in inside ^ other:
            at, noted = sorted((at_server[name], here(name)))
            assert at < begin_ns <= noted or at < end_ns <= noted
        return sorted(other)

    sent = had(came, lambda name: int(rows[name]["due"]), seconds * NS, 0)
    late = [
        name for name in sent if rows[name]["sent"] - rows[name]["build_ns"] >= seconds * NS + 5_000_000
    ]  # of a busy machine
    assert rates["sent"] * seconds == pytest.approx(len(sent) - len(late))
    assert wave.summary["warmup"]["sent_in_window"] >= 20
    assert sum(rows[name]["index"] < 0 for name in set(sent) - set(late)) == wave.summary["warmup"]["sent_in_window"]

    latencies = sorted(row["done"] - row["sent"] for row in wave.rows)
    middle = (latencies[(len(latencies) - 1) // 2] + latencies[len(latencies) // 2]) / 2
    begin = middle - seconds * NS / (len(wave.rows) + wave.summary["warmup"]["sent_in_window"]) / 2
    done = had(answered, lambda name: int(rows[name]["done"]), begin + seconds * NS, begin)
    assert rates["completed"] * seconds == pytest.approx(len(done))
    assert any(rows[name]["index"] < 0 for name in done)
    turns = [tuple(map(int, name.split("."))) for name in done]
    tokens = wave.summary["tokens"]
    assert tokens["tokens_in_per_s"] * seconds == pytest.approx(sum(100 * turn for _, turn in turns))
    assert tokens["tokens_out_per_s"] * seconds == pytest.approx(sum(10 + turn + n % 7 for n, turn in turns))

    duration = wave.summary["window"]["duration_s"]
    over = had(answered, lambda name: int(rows[name]["done"]), duration * NS + 1, 0)
    assert rates["server_rps"] * duration == pytest.approx(len(over))
    assert wave.summary["latency"]["count"] == len(wave.rows)
    with (wave.folder / "timeline.csv").open() as lines:
        by_second = list(csv.DictReader(lines))
    assert sum(int(row["sent"]) for row in by_second) == sum(row["sent"] >= 0 for row in rows.values())
    if planned is None:
        sessions_rate = wave.summary["sessions"]["rates"]
        ends = [own[-1] for own in by_session_of(wave.everything).values()]
        completed = sum(0 <= row["done"] <= seconds * NS and row["ended"] == "completed" for row in ends)
        assert sessions_rate["completed"] * seconds == pytest.approx(completed)
        assert sessions_rate["started"] * seconds == pytest.approx(60)


def test_a_closed_loop_has_so_many_sessions_open_at_a_time(bench: Bench) -> None:
    flags = ("--concurrency", 5, "--obs-time", 1.5, "--warmup", 0.6, "--workers", 2)
    with bench.endpoint(service="none") as endpoint:
        wave = bench.run(*flags, factories=sessions("3", think="0.1"), target=endpoint)
        log = endpoint.arrivals()["id"]
    check_books(wave)
    assert sorted(map(str, log)) == sorted(f"{row['session']}.{row['turn']}" for row in wave.everything)
    changes = []
    for rows in by_session(wave).values():
        assert rows[-1]["ended"] in ("completed", "raised")
        changes += [(rows[0]["due"], 1), (rows[-1]["done"], -1)]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    assert most == 5
    first: dict[int, int] = {}
    for row in wave.everything:
        first.setdefault(row["session"], row["due"])
    begun = sorted(due for number, due in first.items() if -6 < number < 0)
    assert begun[:1] == [-600_000_000]
    assert wave.ledger["sessions_completed"] + wave.ledger["sessions_raised"] == wave.ledger["scheduled"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--records", "none"], "--records none only counts requests; the result of a session is computed from"),
        (["--aiperf", "--url", "http://127.0.0.1:9"], "--aiperf sends single requests"),
        (["--locust-file", "sender.py"], "not both"),
    ],
)
def test_what_does_not_go_with_sessions_is_refused_in_a_sentence(flags: list[str], said: str, bench: Bench) -> None:
    refused = bench.run("--client-rps", 5, "--obs-time", 1, *flags, factories=sessions("2"))
    assert (refused.code, said in refused.err, "Traceback" in refused.err) == (2, True, False), refused.err
    assert not refused.run_dir


def test_an_address_gets_the_same_conversations_from_any_number_of_workers(bench: Bench) -> None:
    with bench.endpoint(service_s=0.002) as endpoint:
        flags = (
            *(f"{endpoint.url}/v1", "--turns", "uniform:2..4", "--think-time", "30ms", "--client-rps", 60),
            *("--num-requests", 30, "--input-tokens", 20, "--output-tokens", 3, "--seed", 5, "--model", "demo"),
            *("--shared-prefix", "50:groups=3", "--history", "recorded", "--session-header", "X-Request-Id"),
            *("--output-dir", "runs"),
        )
        waves = [bench.run(*flags, "--workers", workers, factories=None) for workers in (1, 2)]
        log = Counter(map(str, endpoint.arrivals()["id"]))
    for wave in waves:
        check_figures(wave)
    reported = [
        [(row["session"], row["turn"], row["tokens_in"], row["think_ns"]) for row in wave.rows] for wave in waves
    ]
    assert reported[0] == reported[1]
    assert log == Counter(f"5-{session}" for wave in waves for session in (row["session"] for row in wave.rows))
    assert set(log.values()) == {4, 6, 8}
    assert {row["tokens_in"] for row in waves[0].rows} == {50 + 20 + 23 * turn for turn in range(4)}


def test_recorded_conversations_follow_their_answers_from_any_number_of_workers(bench: Bench, tmp_path: Path) -> None:
    """First turns come when they were recorded, later ones after their answers, with the lengths of the file."""
    rows = [
        {"session_id": at % 4, "timestamp": 50 * at, "input_length": 520 + 40 * (at // 4), "output_length": 2 + at % 3}
        | {"hash_ids": [at % 4, 9 + at % 4]}
        for at in range(12)
    ]
    file = tmp_path / "trace.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, {"hash_ids": "?"}]), encoding="utf-8")
    with bench.endpoint(service_s=0.002) as endpoint:
        address = (f"{endpoint.url}/v1", "--model", "demo", "--output-dir", "runs", "--session-header", "X-Request-Id")
        waves = [bench.run(*address, "--replay", file, "--workers", workers, factories=None) for workers in (1, 2)]
        again = bench.run(*address, "--conversations", file, "--client-rps", 40, "--num-requests", 6, factories=None)
        log = Counter(map(str, endpoint.arrivals()["id"]))
    for wave in waves:
        check_books(wave)
        reported = [
            (row["session"], row["turn"], row["tokens_in"], row["tokens_out"], row["think_ns"]) for row in wave.rows
        ]
        assert reported == [
            (at % 4, 1 + at // 4, 520 + 40 * (at // 4), 2 + at % 3, 200 * NS // 1000 if at // 4 else None)
            for at in sorted(range(12), key=lambda at: (at % 4, at))
        ]
        for turns in by_session(wave).values():
            assert all(later["due"] == earlier["done"] + later["think_ns"] for earlier, later in pairwise(turns))
            assert turns[0]["due"] == turns[0]["session"] * 50 * NS // 1000
        assert "trace.jsonl: Mooncake's trace, 4 conversations with 12 turns" in " ".join(wave.out.split())
        assert "left out, the first is line 13: has no input_length" in " ".join(wave.out.split())
        assert not (wave.folder / "recorded_rows").exists()
    assert [row["tokens_in"] for row in again.rows] == [520, 560, 600] * 6, "after the last comes the first again"
    assert log.total() == 12 * 2 + 18


ENDLESS = """
from inference_benchmarker import Turn


def invoke_factory():
    def invoke(payload):
        while True:
            yield 7 if payload == "numbers" else "a" * 1000
    return invoke


def session_factory():
    def session(number):
        yield Turn("numbers" if number % 2 else "texts")
    return session
"""


def test_an_answer_without_end_fails_its_turn_and_is_not_kept(bench: Bench) -> None:
    with bench.endpoint(service="none") as endpoint:
        flags = ("--client-rps", 20, "--num-requests", 4, "--max-answer-size", "100KiB")
        wave = bench.start(*flags, factories=ENDLESS, target=endpoint).finish()
    assert [row["error"] for row in wave.rows] == ["AnswerTooLargeError"] * 4
    check_books(wave)


def test_a_repeat_is_seen_by_what_the_cache_had_before(bench: Bench) -> None:
    """A fixed seed finds the first wave's prompts in the server's cache; --cache fresh, and another seed, do not."""
    with bench.endpoint(service_s=0.002, prefix_cache=1_000_000) as endpoint:
        flags = (
            *(f"{endpoint.url}/v1", "--turns", 2, "--client-rps", 40, "--num-requests", 6, "--input-tokens", 40),
            *("--output-tokens", 9, "--model", "demo", "--output-dir", "runs"),
        )
        seeds = [("--seed", 5), ("--seed", 5), ("--seed", 5, "--cache", "fresh"), ("--seed", 6)]
        waves = [bench.run(*flags, *seed, factories=None) for seed in seeds]
    check_figures(waves[1])
    codes = [{each["code"] for each in wave.summary["findings"]} for wave in waves]
    assert ["cache_from_before" in found for found in codes] == [False, True, False, False]
    firsts = [[row["metric.cached_tokens"] for row in wave.rows if row["turn"] == 1] for wave in waves]
    assert firsts == [[0] * 6, [32] * 6, [0] * 6, [0] * 6]
    assert {row["metric.cached_tokens"] for row in waves[2].rows if row["turn"] == 2} == {48}, "of its own first turn"


@pytest.mark.parametrize(("room", "answer"), [(10_000_000, 100), (400, 20)])
def test_the_server_reuses_what_it_could_have_or_what_it_has_room_for(bench: Bench, room: int, answer: int) -> None:
    """A cache without end has, to a block of its own, what was sent before, by whichever worker; a small one less.

    Long answers tell whether they are among what was there before.
    """
    with bench.endpoint(service_s=0.002, prefix_cache=room) as endpoint:
        flags = (
            *(f"{endpoint.url}/v1", "--turns", "uniform:2..4", "--client-rps", 40, "--num-requests", 60),
            *("--input-tokens", 60, "--output-tokens", answer, "--shared-prefix", "300:groups=4", "--workers", 2),
            *("--model", "demo", "--output-dir", "runs"),
        )
        wave = bench.run(*flags, factories=None)
    prompts, reported = wave.summary["prompts"], wave.summary["sessions"]
    assert prompts["requests"] == sum(row["requests"] for row in prompts["by_turn"]) == len(wave.rows)
    for row in prompts["by_turn"]:
        own = [each for each in wave.rows if each["turn"] == row["turn"]]
        assert row["tokens"] == sum(each["tokens_in"] for each in own)
        assert row["cached_tokens"] == sum(each["metric.cached_tokens"] for each in own)
        if room > 400:
            assert abs(row["reusable_tokens"] - row["cached_tokens"]) <= 16 * len(own)
    if room == 400:
        assert reported["cached_share"] < reported["reusable_share"] - 0.1
    assert f"{percent_text(reported['cached_share'])} of the input tokens" in wave.out
    assert Wave.load(wave.folder).to_json()["prompts"] == prompts


FLAKY = sessions(
    "1 + number % 3",
    think="0.05 + (number + turn) % 7 * 0.01",
    invoke="""
answer = post(payload)
tries[payload] += 1
if number % 17 == 4 and turn == 2 and tries[payload] < 2:
    raise ConnectionResetError
if number % 11 == 3 and turn == 2:
    raise ValueError
return answer
""",
    before="from collections import Counter\ntries = Counter()",
)
LONG = ("--client-rps", 400, "--arrivals", "poisson", "--num-requests", 10_000, "--workers", 2, "--seed", 8)
RETRIED = ("--client-retries", 2, "--backoff", "fixed:20ms")


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["never", "interrupt", "kill"])
def test_ten_thousand_sessions_are_those_of_the_servers_log(cut: str, bench: Bench) -> None:
    """With failures and retries; to the end, to a Ctrl-C, and with a worker that is killed."""
    with bench.endpoint(service="none") as endpoint:
        running = bench.start(*LONG, *RETRIED, factories=FLAKY, target=endpoint)
        if cut != "never":
            running.wait_for_arrivals(endpoint, 12_000)
            running.signal(signal.SIGINT) if cut == "interrupt" else running.workers()[0].kill()
        wave = running.finish(timeout=120)
        log = seen(endpoint)
    check_books(wave)
    check_figures(wave)
    found, order = by_session(wave), defaultdict(list)
    lost = set(wave.summary["lost_workers"])
    for number, turn in log:
        order[number].append(turn)
    for number, rows in found.items():
        if rows[0]["worker"] not in lost:
            assert order[number] == [row["turn"] for row in rows]
    if cut == "kill":
        assert len(lost) == 1
        assert all(len(rows) <= len(order[number]) for number, rows in found.items())
        return
    assert len(log) == len(wave.rows)
    if cut == "never":
        assert sorted(found) == list(range(10_000))
        gaps = [(after[0]["due"] - before[0]["due"]) / NS for before, after in pairwise(found.values())]
        assert anderson_darling(gaps, 400.0) < 3.857
    else:
        assert wave.code == 130
        assert wave.ledger["not_begun"] > 0


UNWRITABLE = """
from inference_benchmarker import Turn


class Loud:
    def __str__(self):
        raise RuntimeError("no text")


LOOP = {}
LOOP["self"] = LOOP


def invoke_factory():
    return lambda payload: "ok"


def session_factory():
    def session(number):
        for turn in range(2):
            content = [{("a", 1): "x"}, Loud(), LOOP, "word " * 100][number % 4]
            yield Turn({"messages": [{"role": "user", "content": content}]})
    return session
"""


def test_a_payload_that_is_no_json_is_sent_and_counted_as_any_other(bench: Bench) -> None:
    """The user's own client takes it; of its prompt nothing is known, and the report says for how many it is."""
    with bench.endpoint(service="none") as endpoint:
        flags = ("--client-rps", 20, "--num-requests", 8, "--drain-timeout", 3)
        wave = bench.start(*flags, factories=UNWRITABLE, target=endpoint).finish()
    assert {row["outcome"] for row in wave.rows} == {"ok"}
    assert (len(wave.rows), wave.ledger["abandoned"], wave.ledger["sessions_completed"]) == (16, 0, 8)
    check_books(wave)
    assert wave.summary["prompts"]["requests"] == 4
    assert "could have been cached; prompts known for 4 of 16 answered requests" in wave.out


def test_a_cache_is_warmed_before_the_wave_and_in_none_of_its_numbers(bench: Bench) -> None:
    """Every first turn has its prefix from the cache, also the first of each group; the server saw it once before."""
    with bench.endpoint(service_s=0.002, prefix_cache=10_000_000) as endpoint:
        flags = (
            *(f"{endpoint.url}/v1", "--turns", 2, "--client-rps", 40, "--num-requests", 20, "--cache", "warm"),
            *("--input-tokens", 40, "--output-tokens", 9, "--shared-prefix", "160:groups=4", "--workers", 2),
            *("--model", "demo", "--output-dir", "runs"),
        )
        wave = bench.run(*flags, factories=None)
        assert len(endpoint.arrivals()["id"]) == 4 + len(wave.rows)
    warmed = wave.summary["environment"]["warmed"]
    assert warmed["requests"] == 4
    assert "Cache warmed:     4 requests in " in wave.out
    assert len(wave.everything) == len(wave.rows) == wave.ledger["sent"] == 40
    assert {row["metric.cached_tokens"] for row in wave.rows if row["turn"] == 1} == {160}
    assert "cache_from_before" not in {each["code"] for each in wave.summary["findings"]}
    (first, _) = wave.summary["prompts"]["by_turn"]
    assert abs(first["reusable_tokens"] - first["cached_tokens"]) <= 16 * 20
    assert first["requests"] == 20


WARMED = """
from sender import post


def invoke_factory():
    def invoke(payload):
        if payload == "cold":
            raise ValueError("no such prefix")
        return post(payload)

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": ["a"]}


def warm_factory():
    return %s
"""


def test_a_file_says_what_is_sent_before_the_wave(bench: Bench) -> None:
    with bench.endpoint(service="none") as endpoint:
        flags = ("--client-rps", 20, "--num-requests", 3)
        wave = bench.start(*flags, factories=WARMED % '["w1", "w2"]', target=endpoint).finish()
        assert list(endpoint.arrivals()["id"]) == ["w1", "w2", "a", "a", "a"]
        assert wave.summary["environment"]["warmed"]["requests"] == 2
        for made, said in (
            ('["w1", "cold"]', "a request that was sent before the load failed: ValueError"),
            ('"w1"', "warm_factory returned"),
        ):
            failed = bench.start(*flags, factories=WARMED % made, target=endpoint).finish()
            assert failed.code == 2
            assert said in failed.err
