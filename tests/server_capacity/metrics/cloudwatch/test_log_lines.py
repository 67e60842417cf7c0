"""Lines of a server's log: which are of one kind, which look like errors, what a traceback comes to."""

from __future__ import annotations

import base64
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.words.redact import HIDDEN
from server_capacity.metrics.cloudwatch.log_lines import MOST_LINES, MOST_TEXT, LineCounts, kind_of, looks_like_error

TORCHSERVE = "2026-11-22T00:00:{second:02d},12{second} [INFO ] W-900{second}-model_1.0-stdout MODEL_LOG - "
PLAIN = (
    "Traceback (most recent call last):",
    '  File "/opt/ml/code/inference.py", line 12, in predict',
    "    raise ValueError(f'wrong input {x}')",
    "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
)
LAST = PLAIN[-1]


def counted(*events: str, stream: str = "AllTraffic/i-0") -> list[tuple[int, str]]:
    counts = LineCounts()
    for event in events:
        counts.add(stream, event)
    return [(line.count, line.text) for line in counts.most_frequent()]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2026-11-22 00:00:01,123 worker 3 failed", "2026-11-23 10:59:59,001 worker 17 failed"),
        ("2026-11-22T00:00:01.5Z x", "2026-11-22T00:00:01.123456Z x"),
        (
            "request 0d5a1f0e-95c4-4d8e-8b0e-0a3f0c7b2f11 failed",
            "request 7c1b9e1a-0000-4000-8000-00000000000a failed",
        ),
        ("at 0x7f3a5c0a", "at 0xdeadbeef01"),
        ("id deadbeef1234abcd", "id 0123456789abcdef0123"),
        ("trace 1-5f84c7a1-0c2b3e4d5f6a7b8c9d0e1f2a", "trace 1-6a84c7a1-aaaaaaaaaaaaaaaaaaaa1f2a"),
        ("no file /opt/ml/input/9f3/x1.json", "no file /opt/ml/input/a0b1c2/y22.json"),
        ("wrote /tmp/tmpabcdefgh/out", "wrote /tmp/tmphgfedcba/out"),
        ('10.0.1.2 - "POST /invocations HTTP/1.1" 500 17', '10.0.77.2 - "POST /invocations HTTP/1.1" 500 2048'),
    ],
)
def test_lines_of_one_kind(one: str, other: str) -> None:
    assert kind_of(one) == kind_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("RuntimeError: a", "RuntimeError: b"),
        ('"POST /invocations HTTP/1.1" 200', '"POST /invocations HTTP/1.1" 500'),
        ("worker was killed by signal 9", "worker was killed by signal 15"),
        ("exit code: 1", "exit code: 137"),
    ],
)
def test_lines_of_different_kinds(one: str, other: str) -> None:
    assert kind_of(one) != kind_of(other)


@pytest.mark.parametrize(
    "line",
    [
        "[ERROR] worker 3",
        "2026-11-22 00:00:00 CRITICAL x",
        "java.lang.OutOfMemoryError: Java heap space",
        "botocore.exceptions.ClientError: x",
        "E1122 12:00:00.123 1 server.cc:101] model is not ready",
        "Out of memory: Killed process 4711 (python)",
        "Worker (pid:12) was sent SIGKILL! Perhaps out of memory?",
        "upstream timed out (110: Connection timed out) while reading",
        "connect() failed (111: Connection refused) while connecting to upstream",
        "Segmentation fault (core dumped)",
        "Status: 500 InternalServerException",
        '{"level": "error", "message": "x"}',
        "3 errors in batch",
    ],
)
def test_what_looks_like_an_error(line: str) -> None:
    assert looks_like_error(line)


@pytest.mark.parametrize(
    "line",
    [
        '10.0.1.2 - "POST /invocations HTTP/1.1" 200 17',
        "[INFO] model loaded in 2 s",
        "batch done, errors: 0",
        "done with no errors, 0 errors",
        '{"level": "info", "error": null}',
        "error=None status=ok",
        "E112 is a colour",
        "mirrors are terrorised",
    ],
)
def test_what_does_not(line: str) -> None:
    assert not looks_like_error(line)


@pytest.mark.parametrize(
    "events",
    [
        PLAIN,
        ("\n".join(PLAIN),),
        ("\r".join(PLAIN) + "\r",),
        ("\n".join(f"\x1b[31m{line}\x1b[0m" for line in PLAIN),),
        (*PLAIN[:2], '10.0.0.1 - "POST /invocations HTTP/1.1" 200 1', *PLAIN[2:]),
        (*PLAIN[:1], "INFO:     10.0.0.1 - 200", *PLAIN[1:]),
        PLAIN[1:],
        (PLAIN[0], PLAIN[1], "KeyError: 'x'", "", "During handling of the above exception, another", "", *PLAIN),
    ],
    ids=["lines", "one event", "returns", "colours", "access log between", "level between", "cut", "a chain"],
)
def test_of_a_traceback_the_last_line_counts(events: tuple[str, ...]) -> None:
    found = counted(*events)
    assert (1, LAST) in found
    assert {text for _, text in found} <= {LAST, "KeyError: 'x'"}


def test_an_exception_whose_name_does_not_say_so() -> None:
    assert counted(*PLAIN[:-1], "my.package.Interrupted") == [(1, "my.package.Interrupted")]


def test_tracebacks_behind_a_prefix_that_differs_from_line_to_line() -> None:
    events = [TORCHSERVE.format(second=second) + line for second in range(3) for line in PLAIN]
    assert counted(*events) == [(3, TORCHSERVE.format(second=0) + LAST)]


def test_streams_are_distinguished() -> None:
    counts = LineCounts()
    for line in PLAIN:
        for number in range(4):
            counts.add(f"AllTraffic/i-{number}", line)
    assert [(line.count, line.text) for line in counts.most_frequent()] == [(4, LAST)]


def test_a_stack_of_java() -> None:
    found = counted("java.lang.IllegalStateException: x", "\tat com.acme.Error.run(Error.java:12)", "\t... 12 more")
    assert found == [(1, "java.lang.IllegalStateException: x")]


def test_a_traceback_without_an_end_does_not_swallow_the_log() -> None:
    assert counted(*PLAIN[:2], *["    pretty: 1"] * 60) == [(10, "pretty: 1")]


def test_errors_come_before_what_is_more_frequent() -> None:
    access = ['10.0.0.1 "POST /invocations HTTP/1.1" 200'] * 100
    errors = [f"[ERROR] request {n} failed" for n in range(3)]
    assert counted(*access, *errors, LAST) == [(3, errors[0]), (1, LAST)]


def test_where_nothing_looks_like_an_error_the_most_frequent_lines_are_reported() -> None:
    counts = LineCounts()
    for number in range(20):
        counts.add("s", "ping\n" + "pong\n" * 2 + f"{'abcdefghijklmnopqrstuvwxyz'[number]}\n")
    assert not counts.any_error
    assert [(line.count, line.text) for line in counts.most_frequent()][:2] == [(40, "pong"), (20, "ping")]
    assert len(counts.most_frequent()) == MOST_LINES


def test_as_frequent_as_its_message_what_was_raised_comes_first() -> None:
    assert counted("[ERROR] exception on /invocations", *PLAIN)[0] == (1, LAST)


def test_secrets_and_what_breaks_a_line_are_in_no_example() -> None:
    counts = LineCounts(["hunter2hunter2"])
    counts.add(
        "s", "ERROR \x1b]0;owned\x07\x1b[2J\x9b31m\u202e Authorization: Bearer abcdefghijklmnop of hunter2hunter2\x00"
    )
    (line,) = counts.most_frequent()
    assert line.text.isprintable()
    assert line.text.endswith(f"Authorization: Bearer {HIDDEN} of {HIDDEN}")


@pytest.mark.parametrize("before", ["ERROR\n", "ERROR " + "x" * 32_750, "x" * 32_750 + "\n"])
def test_a_secret_on_lines_or_at_a_cut_is_in_no_example(before: str) -> None:
    secret = "Zq9xW8vU7tS6rQ5p" * 6
    counts = LineCounts([secret])
    on_lines = base64.encodebytes(secret.encode()).decode()
    counts.add("s", before + on_lines + secret + "\n" + "y" * 40_000)
    text = " ".join(line.text for line in counts.most_frequent())
    assert not any(part in text for part in (secret[:8], secret[-8:], *on_lines.split()))


@pytest.mark.parametrize(
    "event",
    [
        "ERROR " + "x" * 1_000_000,
        "a." * 500_000,
        "a-" * 500_000,
        "\x1b[" * 500_000,
        'File "' * 200_000,
        "/" * 500_000 + "1",
        " " * 1_000_000,
        "ERROR\n" * 200_000,
        "error" + " " * 500_000 + "= 0",
        "0x" * 500_000,
    ],
    ids=range(10),
)
def test_an_event_of_a_megabyte_takes_no_time(event: str) -> None:
    began = time.process_time()
    found = counted(event)
    assert time.process_time() - began < 5
    assert all(len(text) <= MOST_TEXT for _, text in found)


LINE = st.text(st.sampled_from("aE1/\\-.: \"'\t\r\n\x1b[éx0f") | st.characters(), max_size=60) | st.sampled_from(
    [*PLAIN, "ERROR", '  File "x", line 1', "INFO: x", "\tat a.b(c)"]
)


@given(st.lists(st.tuples(st.sampled_from("ab"), LINE), max_size=20))
@settings(max_examples=200)
def test_any_log_comes_to_a_few_plain_lines(events: list[tuple[str, str]]) -> None:
    counts = LineCounts()
    for stream, event in events:
        counts.add(stream, event)
    found = counts.most_frequent()
    assert len(found) <= MOST_LINES
    assert all(line.text.isprintable() and line.text and len(line.text) <= MOST_TEXT for line in found)
    assert sum(line.count for line in found) <= sum(max(1, len(event.splitlines())) for _, event in events)
    assert bool(found) >= counts.any_error
