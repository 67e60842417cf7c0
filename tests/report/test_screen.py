"""The short report of a terminal: at 80x24 its last screen answers what was asked, in this order."""

from __future__ import annotations

import re
import shlex
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.cli.live.colours import coloured
from inference_benchmarker.facts.server_metric import Hardware, ServerMetric
from inference_benchmarker.report.text import to_text
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.text import folded
from tests.situations import failing, wave

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts

ROWS = 24
NEXT = ("benchmark report --format html --output report.html", "benchmark capacity --demo")
ENDPOINTS = "/aws/sagemaker/Endpoints"


def metric(name: str, average: float | None, maximum: float | None = None, **more: Any) -> ServerMetric:
    statistics = {"Average": average, "Maximum": average if maximum is None else maximum}
    more = {"hardware": Hardware("ml.g5.xlarge", 1, 4, 1), **more}
    return ServerMetric("cloudwatch", name, statistics, "Percent", ENDPOINTS, **more)


WELL = (metric("CPUUtilization", 200.0), metric("MemoryUtilization", 40.0), metric("GPUUtilization", 40.0))


def report(facts: WaveFacts, *, short: bool = True) -> list[str]:
    summary = summarise(facts)
    folder = Path(".tmp/20261123T134241Z_benchmark")
    text = to_text(facts, summary, judge(facts, summary), folder, 79, next_commands=NEXT if short else None)
    return folded(text, 79).splitlines()  # as a terminal's are


def place(lines: list[str], pattern: str) -> int:
    return next(number for number, line in enumerate(lines) if re.search(pattern, line))


def shown_from(lines: list[str], first: int) -> str:
    """A statement that goes on in lines that begin with two spaces."""
    rest = takewhile(lambda line: re.match("  [^ ]", line), lines[first + 1 :])
    return " ".join(map(str.strip, [lines[first], *rest]))


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (wave(slos="p99<1s", server_metrics=WELL), "PASSED"),
        (wave(slos="p50<1ms", server_metrics=WELL), "LIMIT MISSED"),
        (wave(failing(*range(1000)), server_metrics=WELL), "FAILED"),
    ],
)
def test_the_last_screen_answers(facts: WaveFacts, word: str) -> None:
    lines = report(facts)[1 - ROWS :]
    verdict = place(lines, f"^{word}: ")
    assert max(map(len, lines)) <= 79
    assert place(lines, r"p50<1ms|p99<1s|success_below") < verdict, "limits"
    assert re.fullmatch(rf"{word}: .*; the measurement is VALID", shown_from(lines, verdict)), (
        "whether to believe it last"
    )
    if word != "FAILED":
        assert place(lines, r"^   p50 .*, p99 .* \(response time\); 100/s completed of 100/s") > verdict
    assert verdict < place(lines, f"Next: {NEXT[0]}") < place(lines, NEXT[1]) < place(lines, "^Run directory: ")
    assert lines[-1].startswith("Run directory: ")


def test_a_plain_wave_is_one_screen_from_its_counts_on() -> None:
    lines = report(wave(slos="p99<1s", server_metrics=WELL))
    order = [r"fired: 1000, all answered", "Success rate:", "^   Latency ", "Rate:", "Server metrics:", "Limits met:"]
    found = [place(lines, pattern) for pattern in order]
    assert found == sorted(found)
    assert len(lines) - found[0] < ROWS
    assert "Total requests: " not in "\n".join(lines)


@pytest.mark.parametrize(("failing", "told"), [(0, "all answered"), (7, "7 failed"), (1000, "all failed")])
def test_requests_that_failed_are_not_told_as_answered(failing: int, told: str) -> None:
    lines = report(
        wave(lambda r: r._replace(outcome="failed", error="ConnectionRefusedError") if r.index < failing else r)
    )
    assert place(lines, f"Total requests fired: 1000, {told}$")


def test_counts_that_differ_are_two_lines() -> None:
    lines = report(wave(lambda r: r._replace(outcome="abandoned") if r.index < 5 else r))
    assert place(lines, "Total requests fired: 1000$") < place(lines, "Total requests:   995")


def test_metrics_of_a_server_that_needs_nothing_are_one_line() -> None:
    short, whole = report(wave(server_metrics=WELL)), report(wave(server_metrics=WELL), short=False)
    assert [line for line in short if "CPU" in line or "emory" in line] == [
        "   Server metrics:   CPU 50%, memory 40%, GPU 40% (--verbose)"
    ]
    assert place(whole, "CPUUtilization: Average=200") < place(whole, r"→ CPU: 50% \(200% of 400%\)")


@pytest.mark.parametrize(
    "metrics",
    [
        (metric("CPUUtilization", 320.0),),
        (metric("CPUUtilization", 100.0, 390.0),),
        (metric("CPUUtilization", None, None, reason="no data"),),
        (metric("CPUUtilization", 200.0, complete=False),),
        (metric("CPUUtilization", 200.0, bounds={"Average": "about"}),),
        (),
    ],
)
def test_metrics_that_need_a_look_are_all_there(metrics: tuple[ServerMetric, ...]) -> None:
    short = report(wave(server_metrics=metrics))
    assert not any("--verbose" in line for line in short)
    assert any("CPUUtilization: " in line for line in short) == bool(metrics)


def test_a_missed_limit_shows_every_metric() -> None:
    assert any("CPUUtilization: " in line for line in report(wave(slos="p50<1ms", server_metrics=WELL)))


def test_a_wave_that_failed_has_another_colour_than_one_that_is_too_slow() -> None:
    assert coloured("FAILED: all 20 requests failed") == "\x1b[1;31mFAILED\x1b[0m: all 20 requests failed"
    assert coloured("LIMIT MISSED: p99<10ms") == "\x1b[1;33mLIMIT MISSED\x1b[0m: p99<10ms"
    assert coloured("FAILED requests") == "FAILED requests"


def test_first_and_last_verdict_are_the_same_and_coloured() -> None:
    lines = report(wave(slos="p50<1ms"))
    shown = coloured("\n".join(lines)).splitlines()
    verdicts = [line for line in shown if line.startswith("\x1b[1;33mLIMIT MISSED\x1b[0m: ")]
    assert len(verdicts) == 2
    assert not any("\x1b" in line for line in lines)


def test_a_command_that_goes_on_in_the_next_line_can_be_copied() -> None:
    command = "benchmark capacity http://127.0.0.1:8080/invocations --body '{\"a\": 1}' --slo 'p99 < 200ms'"
    facts = wave()
    summary = summarise(facts)
    text = to_text(facts, summary, judge(facts, summary), None, 79, next_commands=(command,))
    shown = folded(text, 79).partition("Next: ")[2]
    assert max(map(len, shown.splitlines())) <= 79
    assert shlex.split(shown.replace("\\\n", "")) == shlex.split(command)  # as a shell reads it


def test_a_percentile_of_too_few_is_not_printed() -> None:
    def cells(count: int) -> list[str]:
        lines = report(wave(lambda r: r if r.index < count else r._replace(outcome="failed", error="E")))
        return next(re.split(r"  +", line.strip()) for line in lines if line.startswith("   Latency "))

    assert (cells(999)[6], cells(1000)[6]) == ("-", "20 ms")
