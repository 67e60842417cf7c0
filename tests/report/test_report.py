"""The report: the promised labels in the promised order, no number that looks better than it is."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import aligned, rate_text
from tests.mentions import mentions
from tests.situations import SITUATIONS, abandoning, failing, json_of, late, line, text_of, wave
from tests.waves import MS, closed_plan, observe, on_time, open_plan, streamed

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_the_fixed_block_stands_as_promised() -> None:
    plan = open_plan("10", "60")
    assert text_of(observe(plan, on_time(plan, 100 * MS))).startswith(
        "VALID: 600 of 600 answered, p99 100 ms\n"
        "\n"
        "RESULTS – InferenceBenchmarker\n"
        "------------------------------\n"
        "   Total requests fired: 600, all answered\n"
        "\n"
        "   Duration:         60.0s\n"
        "   Server RPS:       10.0 req/s\n"
        "   Success rate:     100.0% (✓ passed, 95% target)\n"
        "\n"
    )


def test_limits_that_were_met_are_listed() -> None:
    _, _, reported = text_of(wave(slos="p99<1s latency.p50<1s p50<1ms")).partition("Limits met:")
    met, _, _ = reported.partition("\n\n")
    assert mentions(" ".join(met.split()), "p99<1s", "p99 20 ms", "latency.p50<1s", "p50 20 ms")
    assert "p50<1ms" not in met
    assert "Limits met" not in text_of(wave())


def test_its_last_lines_are_verdict_and_run_directory() -> None:
    assert text_of(wave(), Path("/runs/x")).endswith("\n\nVALID\nRun directory: /runs/x\n")
    assert text_of(wave()).endswith("\n\nVALID\n")
    facts = wave(failing(*range(100)), slos="p50<1ms", interrupted=True)
    assert text_of(facts, Path("r")).endswith(
        "\nLIMIT MISSED (interrupted, 2 thresholds missed); the measurement is VALID\nRun directory: r\n"
    )
    assert text_of(wave(primary_lost=True)).endswith("\nINVALID\n")


@pytest.mark.parametrize(
    ("failures", "text"),
    [
        (0, "100.0% (✓ passed, 95% target)"),
        (1, "99.9% (✓ passed, 95% target)"),
        (50, "95.0% (✓ passed, 95% target)"),
        (51, "94.9% (✗ failed, 95% target)"),
        (1000, "0.0% (✗ failed, 95% target)"),
    ],
)
def test_the_success_rate_is_ok_over_fired(failures: int, text: str) -> None:
    assert line(text_of(wave(failing(*range(failures)))), "Success rate:") == f"Success rate:     {text}"


@pytest.mark.parametrize(
    ("sent", "ok", "text"),
    [
        (100_000, 99_999, "99.999% (✓ passed"),
        (10**9, 10**9 - 1, "99.9999999% (✓ passed"),
        (100_000, 94_999, "94.999% (✗ failed"),
    ],
)
def test_a_failure_is_never_rounded_away(sent: int, ok: int, text: str) -> None:
    facts = wave()
    ledger = replace(facts.ledgers[0], scheduled=sent, sent=sent, ok=ok, failed=sent - ok)
    assert f"Success rate:     {text}, 95% target)" in text_of(replace(facts, ledgers=(ledger,)))


def test_columns_are_aligned() -> None:
    *table, note = text_of(wave()).split("\n\n")[3].splitlines()
    assert note == "   A request's latency starts when it is sent, its response time when it is due."
    assert [row.split()[0] for row in table] == ["mean", "Latency", "Response"]
    assert len({len(row) for row in table}) == 1
    assert list(aligned([["", "a"], ["row", "1.5 ms"]])) == ["             a", "   row  1.5 ms"]


def test_latency_and_response_time_stand_side_by_side_in_the_open_loop_only() -> None:
    text = text_of(wave(late(4 * MS)))
    assert line(text, "Latency").split("  ")[-1].strip() == "20 ms"
    assert line(text, "Response time").split("  ")[-1].strip() == "24 ms"
    closed = text_of(observe(closed_plan(1), on_time(open_plan("10", "1"))))
    assert "Latency" in closed
    assert "Response time" not in closed
    assert "target," not in line(closed, "Rate:")


def test_lower_bounds_are_marked_wherever_they_stand() -> None:
    labelled = wave(lambda r: abandoning(999)(r)._replace(label="route"))
    text = text_of(labelled)
    for start in ("Latency", "Response time", "route"):
        row = line(text, start)
        assert row.count("≥") == 2, row  # the mean and the largest
        assert row.rsplit(maxsplit=2)[1].startswith("≥")
    assert "≥" not in text_of(wave()).replace("Errors", "")


def test_tokens_that_only_some_requests_reported_are_no_sum_over_all() -> None:
    plan = open_plan("10", None, 4)
    records = [streamed(n, 50, (10,), tokens_in=5 if n else None, tokens_out=4 if n == 1 else None) for n in range(3)]
    text = text_of(observe(plan, [*records, on_time(plan)[3]]))
    assert "Input tokens:     10 (the server's usage, of 2 of 4 ok requests" in text
    assert "Output tokens:    8 (usage and pieces, of 3 of 4 ok requests" in text


def test_a_wave_with_everything_has_every_section_in_order() -> None:
    plan = open_plan("10", "10", warmup_s=Decimal(1))
    reasons = dict.fromkeys((7, 8), "length")
    records = [
        streamed(n, 50, (10, 10), label=f"model {n % 2}", tokens_in=5, finish_reason=reasons.get(n, "stop"))
        for n in range(100)
    ]
    records[3] = records[3]._replace(outcome="failed", error="HTTPError 503")
    records[4] = records[4]._replace(outcome="abandoned", done=70 * NS)
    warm = [r for r in on_time(plan) if r.index < 0]
    text = text_of(observe(plan, [*warm, *records], error_texts={"HTTPError 503": ["Service\n\x1b[31mUnavailable"]}))
    starts = (
        "RESULTS",
        "Total requests fired: 100",
        "Latency",
        "\n   TTFT",
        "ITL",
        "TPOT",
        "Per request",
        "Input tokens:     490 (the server's usage, 49.0 tokens/s)",
        "Output tokens:    294 (counted pieces, 29.4 tokens/s)",
        "Finish reasons:   stop 96, length 2",
        "Label",
        "model 0",
        "Errors",
        "HTTPError 503: Service [31mUnavailable",
        "Rate:             10/s target, 10/s sent",
        "Schedule lag:     p50 0 ms, p99 0 ms, max 0 ms",
        "Abandoned:        1",
        "Warm-up:          10 requests in 1 s, 0 failed, latency p50 20 ms, p99 20 ms (not in the other numbers)",
        "! unfinished_requests: 1 request still in flight",
        "\n\nVALID",
    )
    places = [text.index(start) for start in starts]
    assert places == sorted(places)
    assert "\x1b" not in text


def test_the_p99_9_of_the_tokens_of_few_requests_is_not_printed() -> None:
    def p99_9(requests: int) -> str:
        records = [streamed(n, 50, (10, 10), tokens_in=5) for n in range(requests)]
        rows = text_of(observe(open_plan("10", None, requests), records)).splitlines()
        return next(row for row in rows if row.strip().startswith("Input tokens ")).split()[-2]

    assert (p99_9(999), p99_9(1000)) == ("-", "5")


def test_what_building_took_stands_apart_from_the_endpoints_times() -> None:
    text = text_of(wave(lambda r: r._replace(build_ns=MS * (1 + r.index % 2))))
    assert mentions(line(text, "Payload building:"), "p50", "1 ms", "p99", "2 ms", "2 ms")


def test_a_measured_rate_has_the_digits_that_can_be_read() -> None:
    plan = open_plan("36", None, 37)
    records = [record._replace(sent=record.due * 36 // 35) for record in on_time(plan)]
    row = line(text_of(observe(plan, records)), "Rate:")
    assert re.fullmatch(r"Rate: +36/s target, 36/s sent, 3\d\.\d\d/s completed", row)


def test_what_is_zero_or_absent_is_not_printed() -> None:
    text = text_of(wave())
    for word in ("Dropped", "Abandoned", "Lost", "In flight", "TTFT", "ITL", "tokens", "Label", "Errors", "Warm-up"):
        assert word not in text


def test_a_client_that_was_the_limit_is_named_first() -> None:
    text = text_of(SITUATIONS["an arrival dropped"][0])
    assert mentions(text, "✗", "dropped_arrivals", "1 arrival", "0.1%", "0")
    assert line(text, "Dropped:") == "Dropped:          1"


def test_many_labels_and_long_names_do_not_drown_the_report() -> None:
    text = text_of(wave(lambda r: r._replace(label=f"{r.index % 30:02} " + "x" * 500 + "\n")))
    assert max(map(len, text.splitlines())) < 200
    assert mentions(text, "10 more", "summary.json")


@pytest.mark.parametrize("rate", ["1,000,000", "123,456.7", "123.456", "0.1", "7.3"])
def test_a_rate_is_written_out(rate: str) -> None:
    plan = open_plan(rate.replace(",", ""), None, 3)
    row = line(text_of(observe(plan, on_time(plan))), "Rate:")
    assert f" {rate}/s target" in row
    assert "e+" not in row


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for item in value.values():
            yield from numbers(item)
    elif isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, float):
        yield value


@pytest.mark.parametrize("name", SITUATIONS)
def test_json_is_finite_and_says_its_version(name: str) -> None:
    data = json.loads(json.dumps(json_of(SITUATIONS[name][0]), allow_nan=False))
    assert data["schema_version"] == 1
    assert all(math.isfinite(number) for number in numbers(data))
    promised = (
        "verdict exit_code findings window environment ledger rates latency response_time lag ttft itl tpot "
        "labels errors server_metrics client"
    )
    assert set(promised.split()) <= set(data)
    assert (data["verdict"], data["exit_code"]) == SITUATIONS[name][2:]


def test_json_has_the_numbers_of_the_report() -> None:
    data = json_of(wave(failing(1), error_texts={"ValueError": ["text"]}))
    assert data["ledger"]["sent"] == 1000
    assert data["ledger"]["workers"] == [{k: v for k, v in data["ledger"].items() if k != "workers"}]
    assert data["errors"] == [{"key": "ValueError", "count": 1, "first_s": 0.03, "texts": ["text"]}]
    assert data["latency"]["p99_9"] == 0.02
    assert (data["ttft"], data["server_metrics"], data["success_rate"]) == (None, None, 0.999)
    assert data["window"]["planned_s"] == 10.0
    assert "⚠" not in json.dumps(data, ensure_ascii=False)


def test_no_record_of_an_empty_wave_is_made_up() -> None:
    text = text_of(observe(open_plan(), [], stopped_at=0))
    assert "Total requests fired: 0" in text
    assert "Latency" not in text
    assert mentions(text, "✗", "nothing_sent", "0 requests", "1")
    assert NS not in list(numbers(json_of(observe(open_plan(), [], stopped_at=0))))


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.0, "0/s"),
        (0.1, "0.1/s"),
        (49.333, "49.33/s"),
        (100.0, "100/s"),
        (999.94, "999.9/s"),
        (999.96, "1,000/s"),
        (1234.56, "1,234.6/s"),
        (20_000.0, "20,000/s"),
    ],
)
def test_a_rate_is_never_written_as_a_power_of_ten(rate: float, text: str) -> None:
    assert rate_text(rate) == text
