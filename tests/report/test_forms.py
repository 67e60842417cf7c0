"""The report for pull requests, pipelines and spreadsheets: complete, of one form whatever happened, and harmless."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.facts.client_use import Answers, WorkerUse
from inference_benchmarker.plan.server_limit import ServerLimit
from inference_benchmarker.report.csv_rows import COLUMNS, csv_row, to_csv
from inference_benchmarker.report.headline import headline
from inference_benchmarker.report.junit import to_junit
from inference_benchmarker.report.markdown import escaped, in_a_fence, literal, to_markdown
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.limit_rows import limit_rows
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.units import NS
from tests.situations import SITUATIONS, failing, text_of, wave
from tests.waves import closed_plan, observe, on_time, open_plan, streamed, talks

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts

FOREIGN = "a|b `c` @team #12 <img src=x> *x* [y](z)\x1b[2J\u202e"


def markdown_of(facts: WaveFacts, run_dir: Path | None = None) -> str:
    summary = summarise(facts)
    return to_markdown(facts, summary, judge(facts, summary), run_dir)


def suite_of(facts: WaveFacts) -> ElementTree.Element:
    summary = summarise(facts)
    text = to_junit(facts, summary, judge(facts, summary), "a run", text_of(facts))
    return ElementTree.fromstring(text)  # noqa: S314 - our own


def row_of(facts: WaveFacts) -> dict[str, str]:
    summary = summarise(facts)
    (row,) = csv.DictReader(io.StringIO(to_csv([csv_row(facts, summary, judge(facts, summary), "runs/x")])))
    return row


@pytest.mark.parametrize("name", SITUATIONS)
def test_each_form_tells_the_verdict_of_every_wave(name: str) -> None:
    facts, codes, word, exit_code = SITUATIONS[name]
    summary = summarise(facts)
    first = markdown_of(facts).splitlines()[0]
    assert first == f"### {escaped(headline(summary, judge(facts, summary)))}"
    row = row_of(facts)
    assert (row["verdict"], row["exit_code"], row["findings"].split()) == (word, str(exit_code), codes)
    suite = suite_of(facts)
    verdict = suite.find("testcase[@name='the wave is VALID']")
    assert verdict is not None
    assert (verdict.find("error") is not None) == (exit_code in (3, 130))
    missed = sum(code in ("slo_missed", "success_below_threshold") for code in codes)
    assert int(suite.attrib["failures"]) == missed
    counted = {tag: len(list(suite.iter(tag))) for tag in ("testcase", "failure", "error", "skipped")}
    assert counted == {
        tag: int(suite.attrib[name])
        for tag, name in zip(counted, ("tests", "failures", "errors", "skipped"), strict=True)
    }


def test_limits_stand_with_what_was_measured() -> None:
    rows = limit_rows(facts := wave(failing(3), slos="p99<10ms p50<1s success>=1 ttft.p90<1s"), summarise(facts))
    assert [(row.expression, row.measured, row.outcome) for row in rows] == [
        ("success>=95%", "success rate 99.9%", "kept"),
        ("p99<10ms", "response time p99 20 ms", "missed"),
        ("p50<1s", "response time p50 20 ms", "kept"),
        ("success>=1", "success 99.9%", "missed"),
        ("ttft.p90<1s", "ttft.p90 not measured", "missed"),
    ]
    lines = markdown_of(facts).splitlines()
    assert "| `p99<10ms` | response time p99 20 ms | ✗ |" in lines
    assert "| `p50<1s` | response time p50 20 ms | ✓ |" in lines


def test_a_limit_that_too_few_samples_met_says_so_in_every_form() -> None:
    facts = wave(slos="p99.99<1s p50<1s p99.99<1ms")
    told = "response time p99.99 20 ms, of too few samples"
    lines = markdown_of(facts).splitlines()
    assert f"| `p99.99<1s` | {told} | ✓ |" in lines
    assert "| `p50<1s` | response time p50 20 ms | ✓ |" in lines
    assert "| `p99.99<1ms` | response time p99.99 20 ms | ✗ |" in lines
    assert suite_of(facts).findtext("testcase[@name='p99.99<1s']/system-out") == told


def test_a_limit_that_waits_for_the_server_is_an_error() -> None:
    plan = replace(open_plan("10", "1"), server_limits=(ServerLimit.parse("server.CPUUtilization<70%"),))
    facts = observe(plan, on_time(plan))
    (case,) = [each for each in suite_of(facts) if each.get("name") == "server.CPUUtilization<70%"]
    assert case.find("error") is not None
    assert row_of(facts)["verdict"] == "PENDING"


def test_markdown_and_csv_name_the_endpoint_of_an_address() -> None:
    plan = replace(open_plan("10", "1"), factory_settings={"SERVER": "http://h:1", "PATH": "/infer"})
    facts = observe(plan, on_time(plan))
    assert "\n`http://h:1/infer` · 10 requests/s" in markdown_of(facts)
    assert row_of(facts)["endpoint"] == "http://h:1/infer"
    secret = replace(plan, factory_settings={"SERVER": "http://h:1", "PATH": "/infer?token=sup3r-s3cret"})
    assert "`http://h:1/infer?token=[hidden]`" in markdown_of(observe(secret, on_time(secret)))


def test_markdown_has_the_table_of_times_and_the_errors() -> None:
    text = markdown_of(wave(failing(*range(60))), Path("/somewhere/20261120T144423Z_benchmark"))
    assert "| Latency | 20 ms | 20 ms | 20 ms | 20 ms | 20 ms | - | 20 ms |" in text, "940 have no p99.9"
    assert "| `ValueError` |  | 60 | 0.0 s |" in text
    assert "`20261120T144423Z_benchmark`" in text
    assert "/somewhere" not in text
    assert "**success_below_threshold**" in text.replace("\\", "")


def test_names_of_others_are_no_mark_up_and_mention_nobody() -> None:
    plan = open_plan("10", "1", name=FOREIGN)
    ok, *others = (record._replace(label=FOREIGN) for record in on_time(plan))
    failed = [record._replace(outcome="failed", error=FOREIGN) for record in others]
    text = markdown_of(observe(plan, [ok, *failed], error_texts={FOREIGN: [FOREIGN]}))
    assert all(line.isprintable() for line in text.splitlines())
    page = MarkdownIt("commonmark").enable("table").render(text)
    ours = {"h3", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "ul", "li", "strong"}
    assert set(re.findall("<([a-z0-9]+)", page)) <= ours
    tables = page.split("<table>")[1:]
    assert len(tables) == 4
    assert all(len({row.count("<t") for row in each.split("<tr>")[2:]}) == 1 for each in tables)
    assert escaped("@team") == "@<!-- -->team"
    assert literal("a`b") == "`` a`b ``"
    assert in_a_fence("```\nx").startswith("````text\n")


def test_junit_skips_the_verdict_of_answers_that_may_be_none() -> None:
    plan = open_plan("10", "1")
    shed = WorkerUse(answers=Answers(hidden={"503": 7}))
    (skipped,) = suite_of(observe(plan, on_time(plan), workers=(shed,))).iter("skipped")
    assert "7 of 10 ok requests received a response with a status from 400 on" in skipped.attrib["message"]
    assert not list(suite_of(observe(plan, on_time(plan))).iter("skipped"))


def test_junit_bears_any_name() -> None:
    plan = open_plan("10", "1", name=FOREIGN)
    suite = suite_of(observe(plan, on_time(plan)))
    assert suite.attrib["name"] == "a run"
    out = suite.find("system-out")
    assert out is not None
    assert out.text is not None
    assert "RESULTS" in out.text


def test_the_columns_of_the_table_are_these() -> None:
    """Spreadsheets and scripts know them by name: a column may be added at the end."""
    assert COLUMNS[:8] == ("run", "name", "start", "verdict", "exit_code", "limited_by", "interrupted", "findings")
    assert COLUMNS[8:14] == ("load", "concurrency", "workers", "endpoint", "planned_s", "duration_s")
    assert COLUMNS[14:21] == ("scheduled", "sent", "ok", "failed", "abandoned", "dropped", "lost")
    assert COLUMNS[21:28] == (
        *("success_rate", "target_rate", "sent_rate", "completed_rate", "server_rps", "goodput_rate", "goodput_share"),
    )
    assert COLUMNS[28:35] == tuple(f"latency_{name}_s" for name in ("mean", "p50", "p90", "p95", "p99", "p99_9", "max"))
    assert COLUMNS[70:78] == (
        *("tokens_in", "tokens_out", "tokens_out_per_s", "limits_kept", "limits_missed", "missed", "errors", "metrics"),
    )
    assert COLUMNS[78:80] == ("aborted", "sessions_started")
    assert COLUMNS[95:97] == ("turns_a_session", "labels")
    assert COLUMNS[97:104] == tuple(
        f"turn1_latency_{name}_s" for name in ("mean", "p50", "p90", "p95", "p99", "p99_9", "max")
    )
    assert (COLUMNS[104], COLUMNS[111], COLUMNS[118]) == (
        *("turn1_ttft_mean_s", "turn2+_latency_mean_s", "turn2+_ttft_mean_s"),
    )
    assert COLUMNS[125:] == ("later_turns", "not_begun", "outcome")
    assert len(set(COLUMNS)) == len(COLUMNS)


@pytest.mark.parametrize(("slos", "word"), [("", "VALID"), ("p99<1s", "PASSED"), ("p99<10ms", "LIMIT MISSED")])
def test_every_form_has_one_word_for_the_outcome(slos: str, word: str) -> None:
    facts = wave(slos=slos)
    report = suite_of(facts).findtext("system-out") or ""
    assert markdown_of(facts).startswith(f"### {word}: ")
    assert report.lstrip().startswith(f"{word}: ")
    assert row_of(facts)["outcome"] == word
    assert row_of(facts)["verdict"] == "VALID", "which does not change"


def test_a_row_has_numbers_and_empty_cells() -> None:
    row = row_of(wave(failing(3), slos="p99<10ms"))
    assert (row["run"], row["sent"], row["ok"], row["failed"]) == ("runs/x", "1000", "999", "1")
    assert float(row["latency_p99_s"]) == pytest.approx(0.02)
    assert (row["ttft_p50_s"], row["tokens_out"], row["concurrency"]) == ("", "", "")
    assert row["missed"] == "p99<10ms: response time p99 20 ms"
    assert row["errors"] == "ValueError: 1"
    closed = row_of(observe(closed_plan(3), [streamed(index, 10, (5, 5)) for index in range(4)]))
    assert (closed["concurrency"], closed["response_time_p50_s"], closed["target_rate"]) == ("3", "", "")
    assert float(closed["ttft_p50_s"]) == pytest.approx(0.01)


def test_a_row_has_the_sessions_and_their_first_and_later_turns() -> None:
    *records, last = talks(1, 2, 3)
    failed = last._replace(outcome="failed", error="E", ended="failed", first_token=None, last_token=None)
    records.append(failed._replace(chunks=None, gaps=None))
    row = row_of(observe(open_plan("1", "3"), records, environment={"sessions": True}))
    assert (row["sessions_started"], row["sessions_completed"], row["sessions_failed"]) == ("3", "2", "1")
    assert (row["scheduled"], row["sent"], row["later_turns"], row["not_begun"]) == ("3", "6", "3", "0")
    times = {
        "session_p95_s": 0.13,
        "turn1_latency_p95_s": 0.01,
        "turn1_ttft_p95_s": 0.001,
        "turn2+_latency_p95_s": 0.02,
        "turn2+_ttft_p95_s": 0.002,
    }
    assert {name: float(row[name]) for name in times} == pytest.approx(times)
    single = row_of(wave(failing(3)))
    assert {single[name] for name in (*times, "sessions_started", "later_turns", "not_begun")} == {""}
    first = row_of(observe(open_plan("1", "1"), talks(1), environment={"sessions": True}))
    assert (first["turn1_latency_p95_s"], first["turn2+_latency_p95_s"], first["later_turns"]) == ("0.01", "", "0")


def test_markdown_says_how_many_turns_its_table_leaves_out() -> None:
    text = markdown_of(observe(open_plan("1", "2"), talks(30, 30), environment={"sessions": True}))
    assert "\n\n… and 20 more turns, in summary.json\n\n" in text
    few = markdown_of(observe(open_plan("1", "2"), talks(3, 3), environment={"sessions": True}))
    assert "| 3 | 2 | 0 | 3 ms |" in few
    assert "more turns" not in few


def test_a_wave_that_was_aborted_says_so_in_every_form() -> None:
    plan = open_plan("10", "10", abort_on="success<50%@3s")
    aborted = Aborted("success<50%@3s", 0.4, 30, 3)
    facts = observe(plan, on_time(plan)[:50], stopped_at=5 * NS, aborted=aborted)
    text = "after 5.0 s: success 40% of 30 requests over 3 s"
    case = suite_of(facts).find("testcase[@name='aborted']/failure")
    assert case is not None
    assert case.attrib["message"] == text
    row = row_of(facts)
    assert (row["verdict"], row["exit_code"], row["aborted"]) == ("VALID", "1", text)
    assert row["findings"].split() == ["aborted", "too_few_samples"]
    assert f"LIMIT MISSED: aborted {text}" in re.sub(r"\\\\(.)", r"\\1", markdown_of(facts).splitlines()[0])
    assert row_of(wave(failing(3)))["aborted"] == ""


def test_a_name_is_no_formula() -> None:
    plan = open_plan("10", "1", name="=HYPERLINK(1)")
    assert row_of(observe(plan, on_time(plan)))["name"] == "'=HYPERLINK(1)"
