"""The numbers of sessions and of their turns, held against ones that are computed row by row."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.prompt_reuse import PromptReuse, TurnReuse
from inference_benchmarker.facts.server_metric import (
    PREFIX_HIT_RATE,
    PREFIX_HITS,
    PREFIX_QUERIES,
    ServerMetric,
    prefix_hit_share,
)
from inference_benchmarker.plan.load import ClosedLoop
from inference_benchmarker.plan.plan import limits_of
from inference_benchmarker.plan.recorded import Conversations, Recorded
from inference_benchmarker.plan.slo import LATER_TURNS, RequestLimit, Slo, Turns
from inference_benchmarker.records.record import Ledger, RequestRecord
from inference_benchmarker.report.server_metrics import prefix_lines
from inference_benchmarker.report.sessions import session_lines
from inference_benchmarker.report.summary_json import summary_of
from inference_benchmarker.report.text import to_text
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.summary.timeline import timeline
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.wave.report_check import check_report
from inference_benchmarker.words.units import NS
from tests.parts import in_parts
from tests.waves import MS, closed_plan, observe, open_plan, staged

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.records.columns import Records

PLAN = replace(open_plan("20", "10"), workers=2, goodput=(RequestLimit.parse("latency<100ms"),))


def wave(seed: int, sessions: int = 200, most: int = 9, plan: Any = PLAN, tokens: int = 100, **more: Any) -> WaveFacts:
    """A wave of sessions of up to so many turns, some of which fail, raise, or are open at the end."""
    draw = random.Random(seed)
    records: list[RequestRecord] = []
    for number in range(sessions):
        due = number * NS // 20
        turns = draw.randint(1, most)
        ending = draw.choice(["completed"] * 7 + ["failed", "raised", "thinking", "abandoned"])
        for turn in range(1, turns + 1):
            sent = due + draw.randint(0, MS)
            done = sent + draw.randint(MS, 130 * MS)
            record = RequestRecord(number, number % 2, due, sent, done, session=number, turn=turn)
            record = record._replace(
                think_ns=None if turn == 1 else due - records[-1].done,
                first_token=sent + MS // 2,
                last_token=done,
                chunks=1,
                tokens_in=tokens * turn,
                metrics={"cached_tokens": 10.0 * turn} if turn > 1 else None,
                gaps=(),
            )
            is_last = turn == turns
            if is_last and ending == "failed":
                record = record._replace(outcome="failed", error="E", ended="failed")
            elif is_last and ending == "abandoned":
                record = record._replace(outcome="abandoned", done=20 * NS)
            elif is_last and ending != "thinking":
                record = record._replace(ended=ending)
            elif draw.random() < 0.1 and not is_last:  # the first attempt fails, and the second is ok
                failed = record._replace(outcome="failed", error="E", done=sent + MS // 2, chunks=None, gaps=None)
                failed = failed._replace(first_token=None, last_token=None, tokens_in=None, metrics=None)
                records.append(failed)
                record = record._replace(attempt=1, due=failed.done, think_ns=None, sent=max(sent, failed.done))
            records.append(record)
            due = record.done + draw.randint(0, 300 * MS)
    return observe(plan, records, environment={"sessions": True}, **more)


def percentile(values: list[float], percent: int) -> float:
    return sorted(values)[max(-(-len(values) * percent // 100), 1) - 1]


def check(facts: WaveFacts, rows: list[RequestRecord]) -> None:
    """Every figure by session and by turn, computed without the tool's own code."""
    summary = summarise(facts)
    reported = summary.sessions
    assert reported is not None
    by_session = {number: [row for row in rows if row.session == number] for number in {row.session for row in rows}}
    end = max(row.done for row in rows)
    endings = {number: own[-1].ended or "open" for number, own in by_session.items()}
    counts = {
        name: sum(each == name for each in endings.values()) for name in ("completed", "failed", "raised", "open")
    }
    assert {name: getattr(reported, name) for name in counts} == counts
    assert reported.started == len(by_session)
    assert reported.success == pytest.approx(counts["completed"] / len(by_session))
    durations = [
        ((own[-1].done if endings[number] == "completed" else end) - own[0].due) / NS
        for number, own in by_session.items()
        if endings[number] in ("completed", "open")
    ]
    assert reported.duration is not None
    assert reported.turns is not None
    assert sorted(reported.duration.values) == pytest.approx(sorted(durations))
    assert reported.duration.percentile(95) == pytest.approx(percentile(durations, 95))
    turns = [own[-1].turn for number, own in by_session.items() if endings[number] in ("completed", "open")]
    assert reported.turns.mean == pytest.approx(np.mean([turn or 0 for turn in turns]))
    good = 0
    for number, own in by_session.items():
        finals = [
            row for row, after in zip(own, [*own[1:], None], strict=True) if after is None or after.turn != row.turn
        ]
        met = all(row.outcome == "ok" and row.done - row.sent < 100 * MS for row in finals)
        good += met and endings[number] == "completed"
    assert reported.good == good
    for turn in reported.by_turn:
        own = [row for row in rows if row.turn == turn.turn]
        assert turn.sent == len(own)
        assert turn.ok == sum(row.outcome == "ok" for row in own)
        assert turn.failed == sum(row.outcome == "failed" for row in own)
        latencies = [(row.done - row.sent) / NS for row in own if row.outcome != "failed"]
        assert turn.latency is not None
        assert sorted(turn.latency.values) == pytest.approx(sorted(latencies))
        firsts = [(row.first_token - row.sent) / NS for row in own if row.first_token and row.outcome != "failed"]
        assert turn.ttft is not None
        assert turn.ttft.percentile(99) == pytest.approx(percentile(firsts, 99))
        assert turn.context_tokens == pytest.approx(100 * turn.turn)
        assert turn.cached_share == (None if turn.turn == 1 else pytest.approx(0.1))
    cached = [(row.metrics["cached_tokens"], row.tokens_in or 0) for row in rows if row.metrics]
    assert reported.cached_share == pytest.approx(sum(each for each, _ in cached) / sum(each for _, each in cached))
    assert [turn.turn for turn in reported.by_turn] == sorted({row.turn or 0 for row in rows})
    later = [row for row in rows if (row.turn or 0) > 1]
    part = summary.of_turns[LATER_TURNS]
    assert part.ledger.sent == len(later)
    assert part.lag is not None
    assert part.lag.mean == pytest.approx(np.mean([(row.sent - row.due) / NS for row in later]))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rows", [None, 30])
def test_every_figure_by_session_and_by_turn_follows_from_the_rows(seed: int, rows: int | None) -> None:
    facts = wave(seed)
    records: Records = facts.records  # type: ignore[assignment]  # observe() makes them in memory
    parts = facts if rows is None else replace(facts, records=in_parts(records, rows))
    check(parts, list(records))


def test_the_recordings_own_reuse_stands_beside_what_was_cached() -> None:
    facts = wave(1)
    recorded = Conversations(Path("t"), Recorded("Mooncake's trace", 1, 2, 3, reuse=0.5))
    for talks, said in (
        (recorded, "% of the input tokens; 50% of the recorded input repeats earlier blocks"),
        (None, "% of the input"),
    ):
        reported = replace(facts, plan=replace(facts.plan, conversations=talks))
        summary = summarise(reported)
        lines = [line for line in session_lines(summary.sessions, summary.ledger) if "Cached:" in line]
        assert len(lines) == 1
        assert said in lines[0]


def test_the_share_that_could_have_been_cached_stands_beside_what_was() -> None:
    facts = wave(1)
    rows = (TurnReuse(1, 3, 100, 0, 0, 0, 0), TurnReuse(2, 3, 100, 60, 200, 150, 90), TurnReuse(3, 1, 9, 9, 40, 30, 9))
    answered = facts.ledger.ok
    reported = replace(facts, prompts=PromptReuse(32, answered, rows))
    summary = summarise(reported)
    assert summary.sessions is not None
    assert summary.sessions.reusable_share == pytest.approx(180 / 240)
    assert [row.reusable_share for row in summary.sessions.by_turn[:3]] == [0.0, 0.75, 0.75]
    (line,) = (line for line in session_lines(summary.sessions, summary.ledger) if "Cached:" in line)
    assert line.endswith("% of the input tokens; 75% could have been")
    none = replace(summary.sessions, cached_share=None)
    assert "   Cached:           75% of the input could have been cached" in session_lines(none, summary.ledger)
    few = replace(none, known_prompts=2)
    said = f"75% of the input could have been cached; prompts known for 2 of {answered:,} answered requests"
    assert f"   Cached:           {said}" in session_lines(few, summary.ledger)
    all_of_it = replace(summary.sessions, cached_share=0.76)
    assert "   Cached:           76% of the input tokens, all that could have been" in session_lines(
        all_of_it, summary.ledger
    )


def test_the_servers_own_count_of_hits_stands_beside_what_could_have_been() -> None:
    prompts = PromptReuse(32, 3, (TurnReuse(2, 3, 100, 83, 0, 0, 0),))
    counted = [
        ServerMetric("prometheus", name, {"Rate": 1.0, "Total": total}, dimensions={"engine": engine})
        for engine in "01"
        for name, total in (("prefix_cache_hits", 61.0), ("prefix_cache_queries", 100.0))
    ]
    said = ["   Prefix cache: 61% of the input tokens by the server's metrics; 83% could have been"]
    assert list(prefix_lines(counted, prompts)) == said
    rate = ServerMetric("prometheus", "prefix_cache_hit_rate", {"Average": 0.61})
    assert list(prefix_lines([rate], prompts)) == said
    assert list(prefix_lines([rate, rate], prompts)) == [], "two servers' shares have no sum"
    assert list(prefix_lines(counted, None)) == list(prefix_lines([], prompts)) == []


def server_row(name: str, value: float | None, unit: str | None = None, engine: str = "0") -> ServerMetric:
    statistic = "Average" if name == PREFIX_HIT_RATE else "Total"
    return ServerMetric("prometheus", name, {statistic: value}, unit, dimensions={"engine": engine})


QUERIES, HITS = server_row(PREFIX_QUERIES, 100.0), server_row(PREFIX_HITS, 61.0)


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        ([QUERIES, HITS], 0.61),
        ([QUERIES], None),
        ([HITS], None),
        ([QUERIES, server_row(PREFIX_HITS, None)], None),
        ([QUERIES, replace(HITS, complete=False)], None),
        ([server_row(PREFIX_QUERIES, None), HITS], None),
        ([QUERIES, HITS, server_row(PREFIX_QUERIES, 100.0, engine="1")], None),
        (
            [QUERIES, HITS, server_row(PREFIX_QUERIES, 100.0, engine="1"), server_row(PREFIX_HITS, None, engine="1")],
            None,
        ),
        ([QUERIES, HITS, server_row(PREFIX_QUERIES, 100.0, engine="1"), server_row(PREFIX_HIT_RATE, 0.61)], None),
        ([QUERIES, server_row(PREFIX_HITS, 61.0, engine="1")], None),
        ([replace(QUERIES, dimensions={"__name__": "q"}), replace(HITS, dimensions={"__name__": "h"})], 0.61),
        ([QUERIES, server_row(PREFIX_HITS, 500.0)], None),
        ([QUERIES, server_row(PREFIX_HITS, -1.0)], None),
        ([server_row(PREFIX_QUERIES, 0.0), server_row(PREFIX_HITS, 0.0)], None),
        ([QUERIES, server_row(PREFIX_HIT_RATE, 0.4)], None),
        ([server_row(PREFIX_HIT_RATE, 0.4, "Ratio")], 0.4),
        ([server_row(PREFIX_HIT_RATE, 1.0)], 1.0),
        ([server_row(PREFIX_HIT_RATE, 50.0)], None),
        ([server_row(PREFIX_HIT_RATE, 0.5, "Percent")], None),
        ([server_row(PREFIX_HIT_RATE, -0.1)], None),
        ([server_row(PREFIX_HIT_RATE, None)], None),
        ([server_row(PREFIX_HIT_RATE, float("nan"))], None),
    ],
)
def test_hits_that_are_not_known_are_no_share(rows: list[ServerMetric], share: float | None) -> None:
    assert prefix_hit_share(rows) == share


def test_tokens_that_no_prompt_has_are_in_no_share_and_in_no_mean() -> None:
    """Their sum is beyond 64 bits, and what comes of it may be any share."""
    reported = summarise(wave(1, sessions=1500, tokens=1 << 49)).sessions
    assert reported is not None
    assert {(row.context_tokens, row.cached_share) for row in reported.by_turn} == {(None, None)}
    assert reported.cached_share is None


@pytest.mark.parametrize("expected", [-1.0, -1e12, 1e12, float("nan")])
def test_cached_tokens_that_no_prompt_has_are_in_no_share(expected: float) -> None:
    """A user's own code may report any number by that name."""
    rows = [row._replace(metrics={"cached_tokens": expected}) if row.turn == 2 else row for row in wave(1).records]
    reported = summarise(observe(PLAN, rows, environment={"sessions": True})).sessions
    assert reported is not None
    assert [row.cached_share for row in reported.by_turn[:3]] == [None, None, pytest.approx(0.1)]
    assert reported.cached_share == pytest.approx(0.1)


def test_limits_on_sessions_and_turns() -> None:
    texts = (
        "session.success>=0.99",
        "session.p95<60s",
        "turn1.ttft.p95<1s",
        "turn2+.ttft.p95<400ms",
        "turn2-3.p50<1ms",
        "turn99.latency.p50<1s",
    )
    slos, _ = limits_of(texts)
    assert [(slo.metric, slo.stat, slo.turns) for slo in slos] == [
        ("session_success", "success", None),
        ("session", "p95", None),
        ("ttft", "p95", Turns(1, 1)),
        ("ttft", "p95", LATER_TURNS),
        ("default", "p50", Turns(2, 3)),
        ("latency", "p50", Turns(99, 99)),
    ]
    facts = wave(1, plan=replace(PLAN, slos=slos))
    summary = summarise(facts)
    missed = {each.limit: each.measured for each in judge(facts, summary).findings if each.code == "slo_missed"}
    assert set(missed) == {texts[0], texts[1], texts[4], texts[5]}
    assert missed[texts[1]].startswith("session.p95 ≥")  # of those that were open: nobody knows that it is kept
    assert missed[texts[0]].startswith("session.success ")
    assert missed[texts[4]].startswith("turn2-3 response time p50 ")
    assert missed[texts[5]] == "turn99.latency.p50 not measured"
    reported = encoded(summary_of(facts, summary, judge(facts, summary)))["sessions"]
    assert set(reported["of_turns"]) == {"turn1", "turn2+", "turn2-3"}


@pytest.mark.parametrize(
    "text",
    [
        "session.rate>=0.9",
        "session.ttft.p95<1s",
        "session.session.p95<1s",
        "turn0.p95<1s",
        "turn3-2.p95<1s",
        "turn1.rate>0.9",
        "turn1.session.p95<1s",
        "turn1.turn2.p95<1s",
        "turn70000.p95<1s",
        "turnx.p95<1s",
        "session.p95<1",
    ],
)
def test_what_is_no_limit_on_sessions_is_refused(text: str) -> None:
    with pytest.raises(BenchmarkError, match="--slo"):
        Slo.parse(text)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({}, []),
        ({"not_begun": 1200}, ["   Turns not begun:  1,200"]),
        (
            {"not_begun": 12, "turns_unknown": 4},
            ["   Turns not begun:  ≥12; 4 sessions did not say how many turns remained"],
        ),
        ({"turns_unknown": 1}, ["   Turns not begun:  ≥0; 1 session did not say how many turns remained"]),
    ],
)
def test_turns_that_were_not_begun_are_a_lower_bound_where_a_session_did_not_say_its_length(
    counts: dict[str, int], said: list[str]
) -> None:
    summary = summarise(wave(1))
    lines = session_lines(summary.sessions, replace(summary.ledger, **counts))
    assert [line for line in lines if "not begun" in line] == said


def test_lag_is_judged_apart_for_first_and_for_later_turns() -> None:
    facts = wave(2)
    late = [
        row._replace(sent=row.sent + 80 * MS, done=row.done + 80 * MS) if (row.turn or 0) == 1 else row
        for row in facts.records
    ]
    first = observe(PLAN, late, environment={"sessions": True})
    found = [each for each in judge(first, summarise(first)).findings if each.code == "schedule_lag"]
    assert [each.measured.split(":")[0] for each in found] == ["first turns"]
    assert not any(each.code == "schedule_lag" for each in judge(facts, summarise(facts)).findings)


@pytest.mark.parametrize(
    ("seconds", "turns", "plan", "advice"),
    [
        (2.5, 2, closed_plan(4, "20"), "Add --warmup 3, about as long as a session"),
        (0.2, 2, closed_plan(4, "1.9"), "Add --warmup 1, about as long as a session"),
        (2.5, 1, closed_plan(4, "20"), None),  # each begins with the turn that it has
        (1.9, 2, closed_plan(4, "20"), None),
        (2.5, 2, replace(closed_plan(4, "20"), warmup_s=Decimal(3)), None),
        (2.5, 2, replace(open_plan("1", "20"), workers=1), None),
    ],
)
def test_sessions_that_all_begin_with_their_first_turn_are_reported_of_in_a_short_wave(
    seconds: float, turns: int, plan: WavePlan, advice: str | None
) -> None:
    length = round(seconds * NS) // turns
    rows = [
        RequestRecord(number, 0, begun := number // 4 * turns * length + turn * length, begun, begun + length)._replace(
            session=number,
            turn=turn + 1,
            think_ns=0 if turn else None,
            ended="completed" if turn + 1 == turns else None,
        )
        for number in range(4)
        for turn in range(turns)
    ]
    facts = observe(plan, rows, environment={"sessions": True})
    found = [each for each in judge(facts, summarise(facts)).findings if each.code == "sessions_began_together"]
    assert [advice in each.advice for each in found if advice] == ([] if advice is None else [True])
    assert len(found) == (advice is not None)


def test_each_worker_has_all_counts_of_sessions_even_one_that_began_none() -> None:
    """As one that is lost before its first session has ended."""
    facts = replace(wave(1), ledgers=(Ledger(scheduled=3, lost=3), Ledger()))
    summary = summarise(facts)
    stored = encoded(summary_of(facts, summary, judge(facts, summary)))["ledger"]
    assert {name for name in stored if name != "workers"} == set(stored["workers"][0]) == set(stored["workers"][1])
    assert stored["workers"][0]["later_turns"] == stored["workers"][0]["sessions_completed"] == 0


def test_the_rates_have_the_turns_that_the_warm_ups_sessions_send_in_the_window() -> None:
    """Ten sessions a second of ten turns, 0.3 s apart: 100 requests a second, once they overlap."""
    limit = (RequestLimit.parse("latency<100ms"),)
    plan = replace(open_plan("10", "5"), workers=1, warmup_s=Decimal(4), goodput=limit)
    rows = [
        RequestRecord(number, 0, sent := (number * 100 + turn * 300 + 50) * MS, sent, sent + MS, session=number)
        ._replace(turn=turn + 1, think_ns=299 * MS if turn else None, ended="completed" if turn == 9 else None)
        ._replace(tokens_in=100, tokens_out=7)
        for number in range(-40, 50)
        for turn in range(10)
    ]
    facts = observe(plan, rows, environment={"sessions": True})
    summary = summarise(facts)
    before = [row for row in rows if row.index < 0]
    during = sum(0 <= row.sent < 5 * NS for row in before)
    own = sum(0 <= row.sent < 5 * NS for row in rows) - during
    rate = (own + during) / 5
    assert 90 < rate <= 100
    assert own / 5 < 80
    assert summary.warmup is not None
    assert (summary.warmup.sent_in_window, summary.warmup.answered_in_window) == (during, during)
    assert summary.warmup.rates.sent == pytest.approx(sum(row.sent < 0 for row in before) / 4)
    assert (summary.rates.sent, summary.rates.completed) == pytest.approx((rate, rate))
    assert summary.rates.server_rps == pytest.approx((len(rows) - len(before) + during) / summary.duration_s)
    assert summary.goodput is not None
    assert summary.goodput.rate == pytest.approx(rate)
    assert summary.tokens is not None
    assert (summary.tokens.tokens_in_per_s, summary.tokens.tokens_out_per_s) == pytest.approx((100 * rate, 7 * rate))
    assert (summary.tokens.tokens_in, summary.ledger.sent) == (50_000, 500)  # the samples are the window's own
    assert summary.latency is not None
    assert summary.latency.count == 500
    text = " ".join(to_text(facts, summary, judge(facts, summary)).split())
    assert f"{rate:g}/s sent, {rate:g}/s completed {during / 5:g}/s of it by the warm-up's sessions" in text
    assert f"Total requests: 500, and {during} of the warm-up's sessions" in text
    assert f"Warm-up: {len(before)} requests of sessions begun in 4 s, 0 failed" in text
    assert "(only rates count those in the window)" in text
    stored = encoded(summary_of(facts, summary, judge(facts, summary)))["warmup"]
    assert (stored["sent_in_window"], stored["answered_in_window"]) == (during, during)
    seconds = [row.split(",") for row in timeline(facts).splitlines()]
    by_second = [int(row[seconds[0].index("sent")]) for row in seconds[1:]]
    assert by_second == [sum(row.sent // NS == at for row in rows) for at in range(len(by_second))]


def test_a_run_whose_rates_left_out_the_warm_ups_sessions_still_loads() -> None:
    """As an earlier version stored it; what is no rate must be what the requests say."""
    facts = replace(wave(1), plan=replace(PLAN, warmup_s=Decimal(1)))
    summary = summarise(facts)
    found = encoded(summary_of(facts, summary, judge(facts, summary)))
    assert found["rates"]["over_s"] == 10
    old = {**found, "rates": {**found["rates"], "sent": 1.0}, "tokens": {**found["tokens"], "tokens_out_per_s": 2.0}}
    with pytest.raises(ValueError, match=r"rates\.sent"):
        check_report(old, found)
    del old["rates"]["over_s"]
    check_report(old, found)
    with pytest.raises(ValueError, match="success_rate"):
        check_report({**old, "success_rate": 0.5}, found)


def test_the_rates_of_a_stage_have_the_turns_of_sessions_of_before_it() -> None:
    """Of sessions of ten turns, a third of the requests of each second are of sessions that began in it."""
    plan = replace(staged("10:5s,10:5s"), workers=1)
    rows = [
        RequestRecord(number, 0, sent := (number * 100 + turn * 300 + 50) * MS, sent, sent + MS, session=number)
        ._replace(turn=turn + 1, think_ns=299 * MS if turn else None, ended="completed" if turn == 9 else None)
        ._replace(tokens_out=7)
        for number in range(100)
        for turn in range(10)
    ]
    first, second = (row.summary for row in summarise(observe(plan, rows, environment={"sessions": True})).stages)
    for start, part in ((0, first), (5, second)):
        sent = sum(start * NS <= row.sent < (start + 5) * NS for row in rows)
        assert (part.rates.sent, part.rates.completed) == pytest.approx((sent / 5, sent / 5))
        assert part.tokens is not None
        assert part.tokens.tokens_out_per_s == pytest.approx(7 * sent / 5)
        assert part.ledger.sent == 500


@pytest.mark.parametrize("warmup", [0, 3])
def test_rates_of_a_number_of_sessions_end_when_the_last_of_them_begins(warmup: int) -> None:
    """Four places; every tenth session lasts ten times as long as the others, so that the end has few open."""
    draw = random.Random(6)
    rows: list[RequestRecord] = []
    free = [-place * warmup * NS // 4 for place in range(4)] if warmup else [0] * 4
    before, number = -1, 0
    while number < 400:
        due = min(free)
        place = free.index(due)
        arrival = before if due < 0 else number
        before, number = before - (due < 0), number + (due >= 0)
        long = 10 if draw.random() < 0.1 else 1
        at = due
        for turn in range(1, 4):
            done = at + long * draw.randint(20, 60) * MS
            ended = "completed" if turn == 3 else None
            rows.append(RequestRecord(arrival, 0, at, at, done, session=arrival, turn=turn, ended=ended))
            rows[-1] = rows[-1]._replace(think_ns=None if turn == 1 else 0)
            at = done
        free[place] = at
    plan = replace(closed_plan(4, None, 400), workers=1, warmup_s=Decimal(warmup))
    facts = observe(plan, rows, environment={"sessions": True})
    facts = replace(facts, window=replace(facts.window, planned_ns=None))
    summary = summarise(facts)
    last = max(row.due for row in rows if row.turn == 1)
    seconds = last / NS
    assert summary.rates.over_s == pytest.approx(seconds)
    assert summary.rates.sent == pytest.approx(sum(0 <= row.due < last for row in rows) / seconds)
    assert summary.sessions is not None
    completed = sum(row.ended is not None and 0 <= row.done <= last for row in rows) / seconds
    assert summary.sessions.rates.completed == pytest.approx(completed)
    assert summary.sessions.rates.started == pytest.approx((400 if warmup else 396) / seconds)
    mean_s = sum(row.done - row.sent for row in rows if row.index >= 0) / 400 / NS
    assert summary.sessions.rates.completed == pytest.approx(4 / mean_s, rel=0.05)  # Little's law
    assert summary.planned_s is None
    text = " ".join(to_text(facts, summary, judge(facts, summary)).split())
    assert text.count("until the last session started)") == 2


def test_the_report_of_thirty_turns_fits_eighty_columns() -> None:
    facts = wave(3, most=30)
    summary = summarise(facts)
    lines = list(session_lines(summary.sessions, summary.ledger, 80))
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 20
    shown = [line.split()[0] for line in lines if line.split() and line.split()[0].isdigit()]
    assert shown == ["1", "2", "3", "4", "5", "10", "15", "20", "25", "30"]
    assert "… and 20 more turns, in summary.json" in lines[-1]
    assert "Sessions:" in to_text(facts, summary, judge(facts, summary), width=80)


def test_the_load_is_said_in_what_arrives() -> None:
    facts = wave(1)
    closed = replace(facts, plan=replace(PLAN, load=ClosedLoop(8)))
    assert (facts.load_text, closed.load_text) == ("20 sessions/s", "8 sessions open")
    assert observe(PLAN, []).load_text == "20 requests/s"


def test_a_wave_without_sessions_tells_nothing_of_them() -> None:
    facts = observe(open_plan("10", "1"), [RequestRecord(0, 0, 0, 0, MS)])
    summary = summarise(facts)
    assert (summary.sessions, summary.of_turns) == (None, {})
    assert summary.rates.target == 10.0
    sessions = wave(0)
    assert summarise(sessions).rates.target is None
    reported = summarise(sessions).sessions
    assert reported is not None
    assert reported.rates.target == reported.rates.scheduled == 20.0
    assert reported.rates.started == 20.0
    assert Decimal(reported.started) == 200
