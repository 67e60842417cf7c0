"""The summary: records built by arithmetic, every figure known by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.facts.wave_facts import WaveFacts, Window, reconcile_ledgers
from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.records.record import Ledger, RequestRecord
from inference_benchmarker.report.by_name import label_lines
from inference_benchmarker.report.summary_json import summary_of, times
from inference_benchmarker.summary.statistics.distribution import Distribution, percentile_name
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.summary.timeline import timeline
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.wave.wave import Wave
from inference_benchmarker.words.units import NS
from tests.parts import in_memory
from tests.waves import MS, closed_plan, observe, on_time, open_plan, stored, streamed, wave

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan


class TestDistribution:
    @pytest.mark.parametrize(
        ("size", "percent", "rank"),
        [
            (1, 50, 1),
            (1, 99.9, 1),
            (2, 50, 1),
            (2, 50.1, 2),
            (3, 50, 2),
            (4, 25, 1),
            (10, 90, 9),
            (10, 99, 10),
            (99, 99, 99),
            (100, 99, 99),
            (100, 99.9, 100),
            (101, 99, 100),
            (999, 99.9, 999),
            (1000, 99.9, 999),
            (1001, 99.9, 1000),
            (1000, 99, 990),
            (1000, 0.1, 1),
            (1_000_000, 99.9, 999_000),
            (3_000_000, 99.9, 2_997_000),
        ],
    )
    def test_a_percentile_is_the_nearest_rank(self, size: int, percent: float, rank: int) -> None:
        distribution = Distribution.of(np.arange(size, 0, -1))
        assert distribution is not None
        assert distribution.percentile(percent) == rank

    @given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.floats(0.01, 99.999))
    def test_a_percentile_is_the_smallest_value_with_that_share_at_or_below_it(
        self, values: list[int], percent: float
    ) -> None:
        distribution = Distribution.of(values)
        assert distribution is not None
        found = distribution.percentile(percent)
        needed = percent * len(values) / 100 - 1e-6
        assert sum(value <= found for value in values) >= needed
        assert sum(value < found for value in values) < percent * len(values) / 100 + 1e-6

    def test_its_statistics_go_by_name(self) -> None:
        distribution = Distribution.of([4.0, 1.0, 3.0, 2.0])
        assert distribution is not None
        names = ("mean", "min", "max", "p50", "p75", "p99.9")
        assert [distribution.statistic(name) for name in names] == [2.5, 1.0, 4.0, 2.0, 3.0, 4.0]
        assert distribution.stdev == pytest.approx(math.sqrt(1.25))
        assert not distribution.is_lower_bound(4.0)

    def test_of_nothing_there_is_none(self) -> None:
        assert Distribution.of([]) is None
        assert Distribution.of([], []) is None

    def test_ages_of_abandoned_requests_are_lower_bounds_from_the_youngest_on(self) -> None:
        distribution = Distribution.of([1.0, 2.0, 5.0], [3.0, 4.0])
        assert distribution is not None
        assert distribution.count == 5
        assert distribution.lower_bound_from == 3.0
        assert [distribution.is_lower_bound(value) for value in (2.0, 3.0, 5.0)] == [False, True, True]
        assert distribution.percentile(40) == 2.0
        assert encoded(times(distribution))["lower_bound_from"] == 3.0

    def test_json_names_every_percentile(self) -> None:
        distribution = Distribution.of(range(1, 1001))
        assert distribution is not None
        assert encoded(times(distribution)) == {
            "count": 1000,
            "mean": 500.5,
            "stdev": pytest.approx(288.675, abs=0.001),
            "min": 1.0,
            "p50": 500.0,
            "p90": 900.0,
            "p95": 950.0,
            "p99": 990.0,
            "p99_9": 999.0,
            "max": 1000.0,
            "lower_bound_from": None,
        }
        assert [percentile_name(p) for p in (50.0, 99.9, 99.999)] == ["p50", "p99_9", "p99_999"]


class TestRates:
    @pytest.mark.parametrize(
        ("rate", "seconds", "number"),
        [
            ("10", "10", None),
            ("10", None, 100),
            ("7.3", "10", None),
            ("0.5", "4", None),
            ("10", None, 1),
            ("1000", "2", 50),
        ],
    )
    def test_n_arrivals_at_a_rate_are_that_rate(self, rate: str, seconds: str | None, number: int | None) -> None:
        plan = open_plan(rate, seconds, number)
        rates = summarise(observe(plan, on_time(plan))).rates
        assert rates.target == float(rate)
        assert rates.scheduled == pytest.approx(float(rate), rel=1e-9)
        assert rates.sent == pytest.approx(float(rate), rel=1e-9)
        assert rates.completed == pytest.approx(float(rate), rel=1e-9)

    def test_server_rps_is_answers_over_the_time_to_the_last_answer(self) -> None:
        plan = open_plan("10", "10")
        summary = summarise(observe(plan, on_time(plan, 100 * MS)))
        assert summary.duration_s == 10.0  # the last of 100 is due at 9.9 s
        assert summary.rates.server_rps == 10.0

    def test_a_straggler_moves_the_completed_rate_by_itself_alone(self) -> None:
        plan = open_plan("10", "10")
        records = on_time(plan)
        records[99] = records[99]._replace(done=60 * NS)
        summary = summarise(observe(plan, records))
        assert summary.rates.completed == 9.9
        assert summary.rates.server_rps == 100 / 60
        assert summary.duration_s == 60

    def test_a_slow_but_steady_server_completes_at_the_target_rate(self) -> None:
        plan = open_plan("10", "10")
        assert summarise(observe(plan, on_time(plan, 5 * NS))).rates.completed == 10.0

    def test_an_overloaded_server_completes_at_its_own_rate(self) -> None:
        plan = open_plan("100", "10")  # one server of 20 ms: the queue grows, 50/s come out
        records = [record._replace(done=(record.index + 1) * 20 * MS) for record in on_time(plan)]
        rates = summarise(observe(plan, records)).rates
        assert (rates.sent, rates.server_rps) == (100, 50)
        assert rates.completed == pytest.approx(50, rel=0.01)

    def test_failures_are_answers_but_not_completed(self) -> None:
        plan = open_plan("10", "10")
        records = [r._replace(outcome="failed", error="E") if r.index % 2 else r for r in on_time(plan, 100 * MS)]
        summary = summarise(observe(plan, records))
        assert summary.success_rate == 0.5
        assert (summary.ledger.completed, summary.rates.server_rps) == (100, 10.0)
        assert summary.rates.completed == pytest.approx(5, abs=0.1)
        assert summary.measured("rate", "rate") == pytest.approx(0.5, abs=0.01)

    def test_an_early_stop_is_held_against_the_time_until_it(self) -> None:
        plan = open_plan("10", "10")
        records = [record for record in on_time(plan) if record.due < 4 * NS]
        summary = summarise(observe(plan, records, stopped_at=4 * NS))
        assert (summary.planned_s, summary.ledger.scheduled) == (4.0, 40)
        assert summary.rates.sent == summary.rates.completed == 10.0

    @pytest.mark.parametrize(("late_ms", "rate"), [(0, 10.0), (100, 10.0), (104, 10.0), (105, 9.9), (1_000, 9.1)])
    def test_what_a_late_client_sends_after_the_end_is_not_its_rate(self, late_ms: int, rate: float) -> None:
        plan = open_plan("10", "10")  # the last of 100 is due 100 ms before the end
        records = [r._replace(sent=r.due + late_ms * MS, done=r.due + 9 * NS) for r in on_time(plan)]
        summary = summarise(observe(plan, records))
        assert (summary.rates.sent, summary.ledger.sent) == (rate, 100)

    def test_a_closed_loop_has_no_target(self) -> None:
        plan = closed_plan(1, "1")
        records = [RequestRecord(n, 0, n * 100 * MS, n * 100 * MS, (n + 1) * 100 * MS) for n in range(10)]
        summary = summarise(observe(plan, records))
        assert (summary.rates.target, summary.rates.scheduled, summary.completed_share) == (None, None, None)
        assert summary.rates.sent == summary.rates.completed == summary.rates.server_rps == 10.0

    def test_a_closed_loop_of_n_requests_is_measured_by_its_own_length(self) -> None:
        records = [RequestRecord(n, 0, n * 100 * MS, n * 100 * MS, (n + 1) * 100 * MS) for n in range(20)]
        summary = summarise(observe(closed_plan(1, None, 20), records))
        assert summary.planned_s is None
        assert summary.rates.sent == summary.rates.completed == summary.rates.server_rps == 10.0


class TestTimes:
    def test_latency_response_time_lag_and_build_are_four_things(self) -> None:
        plan = open_plan("10", None, 1)
        record = RequestRecord(0, 0, due=0, sent=70 * MS, done=100 * MS, build_ns=50 * MS)
        summary = summarise(observe(plan, [record]))
        measured = {name: summary.measured(name, "max") for name in ("latency", "response_time", "lag", "build")}
        assert measured == {"latency": 0.03, "response_time": 0.1, "lag": 0.02, "build": 0.05}

    def test_without_building_there_is_none(self) -> None:
        plan = open_plan()
        assert summarise(observe(plan, on_time(plan))).build is None

    def test_failed_requests_are_apart(self) -> None:
        plan = open_plan("10", None, 2)
        good, bad = on_time(plan)
        bad = bad._replace(outcome="failed", error="E", done=bad.sent + 9 * NS)
        summary = summarise(observe(plan, [good, bad]))
        assert summary.latency is not None
        assert summary.failed_latency is not None
        assert (summary.latency.count, summary.latency.maximum) == (1, 0.02)
        assert encoded(times(summary.failed_latency))["max"] == 9.0

    def test_abandoned_requests_count_with_their_age(self) -> None:
        plan = open_plan("10", None, 2)
        good, hung = on_time(plan)
        summary = summarise(observe(plan, [good, hung._replace(outcome="abandoned", sent=hung.due + NS, done=5 * NS)]))
        for name, age in (("latency", 3.9), ("response_time", 4.9)):
            distribution = getattr(summary, name)
            assert (distribution.count, distribution.maximum, distribution.lower_bound_from) == (2, age, age)
        assert summary.success_rate == 0.5
        assert summary.duration_s == 0.02

    def test_the_closed_loop_has_no_response_time(self) -> None:
        plan = closed_plan(1, "1")
        summary = summarise(observe(plan, [RequestRecord(0, 0, 0, 10 * MS, 30 * MS)]))
        assert summary.response_time is None
        assert summary.measured("default", "p50") == summary.measured("latency", "p50") == 0.02
        open_summary = summarise(observe(open_plan("1", None, 1), [RequestRecord(0, 0, 0, 10 * MS, 30 * MS)]))
        assert open_summary.measured("default", "p50") == 0.03

    @pytest.mark.parametrize(("rate", "service_ms", "stall_ms", "seconds"), [(200, 4, 2000, 20), (100, 5, 1000, 10)])
    def test_a_stall_shows_in_response_time_whoever_sends_late(
        self, rate: int, service_ms: int, stall_ms: int, seconds: int
    ) -> None:
        """D/D/1 with a stall: the work that piled up is served one after the other until the queue is empty."""
        plan = open_plan(str(rate), str(seconds))
        free, records = 0, []
        for record in on_time(plan):
            begin = max(record.due, free)
            if 5 * NS <= begin < 5 * NS + stall_ms * MS:
                begin = 5 * NS + stall_ms * MS
            free = begin + service_ms * MS
            records.append(record._replace(done=free))
        responses = sorted((record.done - record.due) / NS for record in records)
        honest = summarise(observe(plan, records)).response_time
        assert honest is not None
        assert honest.percentile(99) == responses[math.ceil(0.99 * len(responses)) - 1]
        period = 1000 / rate  # the k-th late arrival waits stall - k * (period - service)
        late = len(records) - math.ceil(0.99 * len(records))
        assert honest.percentile(99) == pytest.approx((stall_ms + service_ms - late * (period - service_ms)) / 1000)
        # a client that waits for each answer before it sends measures the same response time, a lovely latency
        waiting = [record._replace(sent=max(record.due, record.done - service_ms * MS)) for record in records]
        coordinated = summarise(observe(plan, waiting))
        assert coordinated.response_time == honest
        assert coordinated.measured("latency", "p99") == service_ms / 1000
        assert coordinated.measured("lag", "max") == pytest.approx(stall_ms / 1000)


class TestTokens:
    def test_first_token_gaps_and_time_per_token(self) -> None:
        plan = open_plan("10", None, 2)
        summary = summarise(observe(plan, [streamed(0, 50, (10, 20)), streamed(1, 70, (30,))]))
        assert (summary.ttft, summary.itl, summary.tpot) != (None, None, None)
        assert summary.measured("ttft", "max") == 0.07
        assert summary.itl is not None
        assert summary.itl.values.tolist() == [0.01, 0.02, 0.03]
        assert summary.tpot is not None
        assert summary.tpot.values.tolist() == [0.015, 0.03]
        assert summary.tokens is not None
        assert (summary.tokens.tokens_in, summary.tokens.tokens_out, summary.tokens.counted) == (None, 5, "pieces")
        assert summary.tokens.tokens_out_per_s == 25

    def test_the_servers_usage_goes_before_counted_pieces(self) -> None:
        plan = open_plan("10", None, 2)
        records = [streamed(0, 50, (10, 20), tokens_in=7, tokens_out=11), streamed(1, 50, (40,))]
        summary = summarise(observe(plan, records))
        assert summary.tpot is not None
        assert summary.tpot.values.tolist() == [0.003, 0.04]
        assert summary.tokens is not None
        assert (summary.tokens.tokens_in, summary.tokens.tokens_out) == (7, 13)
        assert summary.tokens.counted == "usage and pieces"

    @pytest.mark.parametrize(
        ("expected", "tokens", "counted"),
        [
            *((0, 3, "pieces"), (2, 3, "pieces"), (3, 3, "usage"), (9, 9, "usage")),
            *((10_000_000, 10_000_000, "usage"), (10_000_001, 3, "pieces"), (10**9, 3, "pieces")),
        ],
    )
    def test_a_usage_below_the_pieces_that_came_is_not_believed(self, expected: int, tokens: int, counted: str) -> None:
        facts = observe(open_plan("10", None, 1), [streamed(0, 50, (10, 20), tokens_out=expected)])
        summary = summarise(facts)
        assert summary.tokens is not None
        assert (summary.tokens.tokens_out, summary.tokens.counted) == (tokens, counted)
        assert summary.tpot is not None
        assert summary.tpot.values.tolist() == [0.03 / (tokens - 1)]
        assert in_memory(facts.records).int("tokens_out").tolist() == [expected], (
            "the record keeps what the server said"
        )

    def test_a_whole_answer_may_have_no_output_tokens(self) -> None:
        summary = summarise(observe(open_plan("10", None, 1), [on_time(open_plan())[0]._replace(tokens_out=0)]))
        assert summary.tokens is not None
        assert (summary.tokens.tokens_out, summary.tokens.counted) == (0, "usage")

    def test_tokens_of_each_request_and_how_fast_they_came(self) -> None:
        plan = open_plan("10", None, 4)
        plain = on_time(plan)[3]  # not a stream, without usage: in none of them
        records = [
            streamed(0, 50, (25, 25), tokens_in=7, tokens_out=20),  # 20 tokens in 100 ms
            streamed(1, 50, (50,), tokens_in=9),  # two pieces in 100 ms
            streamed(2, 50, (50,), outcome="failed", error="E", tokens_in=1000, tokens_out=1000),
            plain,
        ]
        tokens = summarise(observe(plan, records)).tokens
        assert tokens is not None
        assert tokens.tokens_in_per_request is not None
        assert tokens.tokens_in_per_request.values.tolist() == [7, 9]
        assert tokens.tokens_out_per_request is not None
        assert tokens.tokens_out_per_request.values.tolist() == [2, 20]
        assert tokens.tokens_out_per_s_per_request is not None
        assert tokens.tokens_out_per_s_per_request.values.tolist() == [20, 200]
        assert (tokens.tokens_in_per_s, tokens.tokens_out_per_s) == (16 / 0.4, 22 / 0.4)

    def test_an_overloaded_servers_tokens_a_second_are_its_own(self) -> None:
        plan = open_plan("100", "10")  # one server of 20 ms: the queue grows, 50/s come out
        records = [r._replace(done=(r.index + 1) * 20 * MS, tokens_out=3) for r in on_time(plan)]
        tokens = summarise(observe(plan, records)).tokens
        assert tokens is not None
        assert tokens.tokens_out == 3000
        assert tokens.tokens_out_per_s == pytest.approx(150, rel=0.01)

    def test_input_tokens_alone_say_nothing_of_where_output_tokens_come_from(self) -> None:
        plan = open_plan("10", None, 1)
        (record,) = on_time(plan)
        tokens = summarise(observe(plan, [record._replace(tokens_in=3)])).tokens
        assert tokens is not None
        assert (tokens.tokens_in, tokens.tokens_out, tokens.counted) == (3, None, None)
        assert (tokens.tokens_out_per_request, tokens.tokens_out_per_s_per_request) == (None, None)

    def test_many_tokens_in_one_piece_have_no_time_between_them(self) -> None:
        plan = open_plan("10", None, 1)
        summary = summarise(observe(plan, [streamed(0, 50, (), tokens_out=100)]))
        assert (summary.tpot, summary.itl) == (None, None)
        assert summary.measured("ttft", "p50") == 0.05
        assert summary.tokens is not None
        assert summary.tokens.tokens_out == 100

    def test_one_token_and_no_token(self) -> None:
        plan = open_plan("10", None, 2)
        none = streamed(1, 50, (), chunks=0, first_token=None, last_token=None, gaps=())
        summary = summarise(observe(plan, [streamed(0, 50, (), tokens_out=1), none]))
        assert summary.ttft is not None
        assert summary.ttft.count == 1
        assert summary.tpot is None

    def test_sums_of_the_largest_counts_are_exact(self) -> None:
        """Each fits a float and 64 bits; their sum does not, and was negative."""
        records = [RequestRecord(i, 0, i, i, i + MS, tokens_in=2**53, tokens_out=10**7) for i in range(1100)]
        tokens = summarise(observe(open_plan("10", None, 1100), records)).tokens
        assert tokens is not None
        assert (tokens.tokens_in, tokens.tokens_out) == (1100 * 2**53, 1100 * 10**7)
        assert (tokens.tokens_in_per_s or 0) > 0
        rows = timeline(observe(open_plan("10", None, 1100), records)).splitlines()
        column = rows[0].split(",").index("tokens_out")
        assert all(not row.split(",")[column].startswith("-") for row in rows)

    def test_usage_without_a_stream_has_tokens_but_no_token_times(self) -> None:
        plan = open_plan("10", None, 1)
        (record,) = on_time(plan)
        summary = summarise(observe(plan, [record._replace(tokens_in=3, tokens_out=0)]))
        assert (summary.ttft, summary.itl, summary.tpot) == (None, None, None)
        assert summary.tokens is not None
        assert (summary.tokens.tokens_in, summary.tokens.tokens_out, summary.tokens.counted) == (3, 0, "usage")

    def test_failed_streams_count_nowhere_among_them(self) -> None:
        plan = open_plan("10", None, 2)
        records = [streamed(0, 50, (10,)), streamed(1, 900, (900,), outcome="failed", error="E", tokens_out=9)]
        summary = summarise(observe(plan, records))
        assert summary.measured("ttft", "max") == 0.05
        assert summary.measured("itl", "max") == 0.01
        assert summary.tokens is not None
        assert summary.tokens.tokens_out == 2

    def test_an_abandoned_stream_counts_with_what_it_had(self) -> None:
        plan = open_plan("10", None, 3)
        waiting = streamed(1, 0, (), outcome="abandoned", first_token=None, last_token=None, chunks=0, gaps=())
        waiting = waiting._replace(done=waiting.sent + 2 * NS)
        begun = streamed(2, 60, (500,), outcome="abandoned")
        summary = summarise(observe(plan, [streamed(0, 50, (10,)), waiting, begun]))
        assert summary.ttft is not None
        assert summary.ttft.values.tolist() == [0.05, 0.06, 2.0]
        assert summary.ttft.lower_bound_from == 2.0
        assert summary.itl is not None
        assert summary.itl.values.tolist() == [0.01, 0.5]
        assert summary.tpot is not None
        assert summary.tpot.count == 1

    @pytest.mark.parametrize(("others", "counts"), [("streams", True), ("no streams", False)])
    def test_an_abandoned_request_of_which_nothing_is_known_is_what_the_others_are(
        self, others: str, counts: bool
    ) -> None:
        plan = open_plan("10", None, 3)
        first, other, unknown = streamed(0, 50, (10,)), streamed(1, 60, ()), on_time(plan)[2]
        if others == "no streams":
            other = on_time(plan)[1]
        unknown = unknown._replace(outcome="abandoned", done=unknown.sent + 2 * NS)
        summary = summarise(observe(plan, [first, other, unknown]))
        assert summary.ttft is not None
        assert (summary.ttft.maximum == 2.0) == counts
        assert (summary.ttft.lower_bound_from is None) != counts

    def test_a_wave_without_tokens_has_none(self) -> None:
        plan = open_plan()
        summary = summarise(observe(plan, on_time(plan)))
        assert (summary.tokens, summary.ttft, summary.itl, summary.tpot) == (None, None, None, None)


class TestRows:
    def test_a_row_for_each_label_the_largest_first(self) -> None:
        plan = open_plan("10", None, 6)
        labels = ("a", "b", "b", "b", "a", "")
        records = [r._replace(label=label) for r, label in zip(on_time(plan), labels, strict=True)]
        records[2] = records[2]._replace(outcome="failed", error="E")
        records[3] = records[3]._replace(outcome="abandoned", done=records[3].sent + NS)
        rows = summarise(observe(plan, records)).labels
        assert [(row.label, row.sent, row.ok, row.failed) for row in rows] == [
            ("b", 3, 1, 1),
            ("a", 2, 2, 0),
            ("(none)", 1, 1, 0),
        ]
        assert rows[0].latency is not None
        assert (rows[0].latency.count, rows[0].latency.lower_bound_from) == (2, 1.0)
        assert rows[0].response_time is not None

    def test_a_row_has_the_ttft_of_its_streams_and_none_without_any(self) -> None:
        plan = open_plan("10", None, 4)
        records = [streamed(number, 10 + number, (5, 5), label="ab"[number % 2]) for number in range(3)]
        records[0] = records[0]._replace(outcome="failed", error="E")
        records[2] = records[2]._replace(outcome="abandoned")
        facts = observe(plan, [*records, on_time(plan)[3]._replace(label="c")])
        summary = summarise(facts)
        rows = {row.label: row.ttft for row in summary.labels}
        fields = {
            name: None if ttft is None else [round(each, 9) for each in ttft.values] for name, ttft in rows.items()
        }
        assert fields == {"a": [0.012], "b": [0.011], "c": None}
        stored_rows = encoded(summary_of(facts, summary, judge(facts, summary)))["labels"]
        assert {row["label"]: "ttft" in row for row in stored_rows} == {"a": True, "b": True, "c": False}
        lines = list(label_lines(summary.labels, 80))
        assert "TTFT p50" in lines[0]
        assert max(map(len, lines)) <= 80

    def test_models_that_no_answer_tells_are_no_rows(self) -> None:
        plan = open_plan("10", None, 4)
        failed = [r._replace(outcome="failed", error="E", label="m") if r.index < 2 else r for r in on_time(plan)]
        assert summarise(observe(plan, failed)).labels == ()
        named = [*failed[:2], failed[2]._replace(label="m"), failed[3]._replace(label="n")]
        assert [(row.label, row.ok, row.failed) for row in summarise(observe(plan, named)).labels] == [
            ("m", 1, 2),
            ("n", 1, 0),
        ]
        all_failed = [r._replace(outcome="failed", error="E", label="m") for r in failed]
        assert [row.label for row in summarise(observe(plan, all_failed)).labels] == ["m"]

    def test_why_answers_ended_is_counted_of_ok_requests(self) -> None:
        reasons = ("stop", "length", "length", None, "eos_token", "stop", "length")
        plan = open_plan("10", None, len(reasons))
        records = [r._replace(finish_reason=reported) for r, reported in zip(on_time(plan), reasons, strict=True)]
        records[5] = records[5]._replace(outcome="failed", error="E")
        found = summarise(observe(plan, records)).finish_reasons
        assert list(found.items()) == [("length", 3), ("eos_token", 1), ("stop", 1)]
        assert summarise(observe(plan, on_time(plan))).finish_reasons == {}

    def test_without_labels_there_are_no_rows(self) -> None:
        plan = open_plan("10", "1", warmup_s=Decimal("0.1"))
        records = [r._replace(label="warm") if r.index < 0 else r for r in on_time(plan)]
        assert summarise(observe(plan, records)).labels == ()

    def test_a_row_for_each_error_with_its_first_time_and_texts(self) -> None:
        plan = open_plan("10", None, 5)
        keys = (None, "B", "A", "A", "C")
        records = [
            r if key is None else r._replace(outcome="failed", error=key)
            for r, key in zip(on_time(plan, 0), keys, strict=True)
        ]
        rows = summarise(observe(plan, records, error_texts={"A": ["text"]})).errors
        assert [(row.key, row.count, row.first_s, row.texts) for row in rows] == [
            ("A", 2, 0.2, ("text",)),
            ("B", 1, 0.1, ()),
            ("C", 1, 0.4, ()),
        ]


def test_the_warm_up_is_apart() -> None:
    plan = open_plan("10", "1", warmup_s=Decimal(1))
    records = [r._replace(done=r.sent + NS) if r.index < 0 else r for r in on_time(plan)]
    records[0] = records[0]._replace(outcome="failed", error="E")
    summary = summarise(observe(plan, records))
    assert summary.ledger == Ledger(scheduled=10, sent=10, ok=10)
    assert summary.measured("latency", "max") == 0.02
    assert summary.errors == ()
    warm = summary.warmup
    assert warm is not None
    assert (warm.ledger.sent, warm.ledger.ok, warm.ledger.failed) == (10, 9, 1)
    assert (warm.rates.sent, warm.duration_s, warm.measured("latency", "max")) == (10.0, 1.0, 1.0)


@pytest.mark.parametrize(("stopped_s", "lasted_s"), [(-0.4, 0.6), (-1.0, 0.0), (0.5, 1.0)])
def test_a_warm_up_that_was_stopped_lasted_until_then(stopped_s: float, lasted_s: float) -> None:
    plan = open_plan("10", "1", warmup_s=Decimal(1))
    stopped_at = round(stopped_s * NS)
    warm = summarise(observe(plan, [r for r in on_time(plan) if r.due <= stopped_at], stopped_at=stopped_at)).warmup
    assert warm is not None
    assert warm.duration_s == pytest.approx(lasted_s)
    assert warm.rates.sent == pytest.approx(warm.ledger.sent / lasted_s if lasted_s else 0.0)


@pytest.mark.parametrize("plan", [open_plan(), closed_plan(), closed_plan(1, None, 5)])
def test_an_empty_wave_has_none_everywhere_and_no_division_by_zero(plan: WavePlan) -> None:
    facts = observe(plan, [], stopped_at=0)
    summary = summarise(facts)
    names = ("latency", "response_time", "failed_latency", "lag", "build", "ttft", "itl", "tpot", "tokens", "warmup")
    assert [getattr(summary, name) for name in names] == [None] * len(names)
    assert summary.success_rate is None
    assert (summary.labels, summary.errors, summary.rates.sent, summary.rates.completed) == ((), (), 0, 0)


class TestLedgers:
    def test_each_worker_is_held_against_its_stripe(self) -> None:
        plan = open_plan("10", None, 7, workers=2)
        reported = [Ledger(sent=4, ok=4), Ledger(sent=2, ok=2, dropped=1)]
        settled = reconcile_ledgers(plan, reported, set(), None)
        assert [(ledger.scheduled, ledger.lost, ledger.balanced) for ledger in settled] == [(4, 0, True), (3, 0, True)]

    def test_what_a_dead_worker_did_not_send_is_lost(self) -> None:
        settled = reconcile_ledgers(
            open_plan("10", "10", workers=2), [Ledger(sent=50), Ledger(sent=20, dropped=1)], {1}, None
        )
        assert [(ledger.lost, ledger.balanced) for ledger in settled] == [(0, True), (29, True)]

    def test_a_count_that_does_not_add_up_is_not_hidden(self) -> None:
        for sent in (99, 101):
            (ledger,) = reconcile_ledgers(open_plan("10", "10"), [Ledger(sent=sent)], set(), None)
            assert not ledger.balanced

    @pytest.mark.parametrize(("sent", "lost"), [(40, 0), (43, 0), (37, 3)])
    def test_a_stop_that_came_late_or_at_once_breaks_no_ledger(self, sent: int, lost: int) -> None:
        (ledger,) = reconcile_ledgers(open_plan("10", "10"), [Ledger(sent=sent)], set(), 4 * NS)
        assert (ledger.scheduled, ledger.lost, ledger.balanced) == (max(40, sent), lost, True)

    def test_a_closed_loop_schedules_what_it_sends(self) -> None:
        (ledger,) = reconcile_ledgers(closed_plan(), [Ledger(sent=12, ok=12)], set(), None)
        assert (ledger.scheduled, ledger.lost, ledger.balanced) == (12, 0, True)


def test_a_window_survives_in_a_run_directory(tmp_path: Path) -> None:
    window = Window(1_763_650_000_123_456_789, 77, 10**10 // 3, 123_456_789_012, None)
    run_dir = stored(replace(wave([[0.02] * 20] * 2), window=window), tmp_path)
    assert Wave.load(run_dir.path).window == window
    assert window.start == "2025-11-20T14:46:40.123Z"


class TestTimeline:
    @staticmethod
    def rows(facts: WaveFacts) -> list[dict[str, str]]:
        head, *lines = timeline(facts).splitlines()
        return [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]

    def in_flight(self, facts: WaveFacts) -> list[float]:
        return [float(row["in_flight"]) for row in self.rows(facts)]

    @pytest.mark.parametrize(
        ("spans_ms", "expected"),
        [
            ([(200, 221)], [0.021]),
            ([(200, 221), (210, 710)], [0.521]),
            ([(600, 3250)], [0.4, 1, 1, 0.25]),
            ([(0, 1000), (1000, 2000)], [1, 1, 0]),
            ([(900, 1000), (1900, 2100)], [0.1, 0.1, 0.1]),
            ([(-500, 300), (400, 500)], [0.4]),
            ([(-800, -100), (400, 500)], [0.1]),
            ([(-500, 9000), (400, 500)], [1.1]),
        ],
        ids=["one", "overlap", "seconds", "edges", "gap", "warm-up", "before", "straggler of the warm-up"],
    )
    def test_in_flight_is_the_mean_over_the_second(
        self, spans_ms: list[tuple[int, int]], expected: list[float]
    ) -> None:
        records = [
            RequestRecord(number if sent >= 0 else number - len(spans_ms), 0, sent * MS, sent * MS, done * MS)
            for number, (sent, done) in enumerate(spans_ms)
        ]
        assert self.in_flight(observe(closed_plan(1, None, 1), records)) == expected

    def test_evenly_paced_requests_are_seen_in_flight(self) -> None:
        plan = open_plan("20", "3")
        assert self.in_flight(observe(plan, on_time(plan, 21 * MS))) == [0.42, 0.42, 0.42, 0]

    @given(st.lists(st.tuples(st.integers(-3000, 5000), st.integers(0, 4000)), max_size=30))
    def test_in_flight_is_the_sum_of_the_overlaps(self, spans_ms: list[tuple[int, int]]) -> None:
        early = sum(sent < 0 for sent, _ in spans_ms)
        records = [
            RequestRecord(number - early, 0, sent * MS, sent * MS, (sent + length) * MS)
            for number, (sent, length) in enumerate(sorted(spans_ms))
        ]
        found = self.in_flight(observe(closed_plan(1, "6"), records))
        for second, value in enumerate(found):
            overlaps = (min(r.done, (second + 1) * NS) - max(r.sent, second * NS) for r in records)
            assert round(value * NS) == sum(max(overlap, 0) for overlap in overlaps)

    def test_each_second_counts_what_happened_in_it(self) -> None:
        plan = open_plan("10", "2")
        rows = self.rows(observe(plan, on_time(plan, 150 * MS)))
        assert [(row["scheduled"], row["sent"], row["ok"]) for row in rows] == [
            ("10", "10", "9"),
            ("10", "10", "10"),
            ("0", "0", "1"),
        ]
        assert rows[0]["latency_p50_s"] == "0.150000"
        assert rows[2]["lag_p99_s"] == ""

    def test_tokens_and_good_requests_count_when_they_are_done(self) -> None:
        plan = open_plan("1", "2", goodput=(RequestLimit.parse("ttft<60ms"),))
        records = [streamed(0, 50, (10,), tokens_out=30), streamed(1, 70, (900,)), streamed(2, 50, (2,))]
        records[2] = records[2]._replace(outcome="failed", error="E")
        columns = ("ttft_p99_s", "tokens_out", "good")
        rows = self.rows(observe(plan, records))
        assert [[row[name] for name in columns] for row in rows[:2]] == [
            ["0.050000", "30", "1"],
            ["0.070000", "2", "0"],
        ]
        plain = self.rows(observe(open_plan("1", "1"), on_time(open_plan("1", "1"))))
        assert [plain[0][name] for name in columns] == ["", "", ""]

    def test_dropped_and_lost_arrivals_were_scheduled(self) -> None:
        plan = open_plan("10", "2", workers=2)
        records = [r for r in on_time(plan) if r.due < NS and r.worker == 0]
        rows = self.rows(observe(plan, records, dropped=[5, 0], lost_workers=(1,)))
        assert [row["scheduled"] for row in rows] == ["10", "10", "0"]
        assert [row["sent"] for row in rows] == ["5", "0", "0"]

    def test_a_stop_ends_the_schedule(self) -> None:
        plan = open_plan("10", "100")
        records = [r for r in on_time(plan) if r.due < 1_500 * MS]
        rows = self.rows(observe(plan, records, stopped_at=1_500 * MS))
        assert [row["scheduled"] for row in rows] == ["10", "5"]

    def test_abandoned_requests_leave_when_the_drain_ends(self) -> None:
        plan = open_plan("10", "1")
        records = on_time(plan)
        records[9] = records[9]._replace(outcome="abandoned", done=5 * NS + 1)
        rows = self.rows(observe(plan, records))
        assert self.in_flight(observe(plan, records)) == [0.28, 1, 1, 1, 1, 0]
        assert [row["abandoned"] for row in rows] == ["0"] * 5 + ["1"]

    def test_a_closed_loop_schedules_what_it_sends(self) -> None:
        records = [RequestRecord(n, 0, n * 100 * MS, n * 100 * MS, (n + 1) * 100 * MS) for n in range(10)]
        assert self.rows(observe(closed_plan(1, "1"), records))[0]["scheduled"] == "10"


def test_a_limit_asks_for_its_own_metric() -> None:
    plan = open_plan("10", None, 1)
    summary = summarise(observe(plan, [streamed(0, 50, (10,), sent=5 * MS)]))
    asked = {text: summary.measured(slo.metric, slo.stat) for text in ASKED for slo in (Slo.parse(text),)}
    assert asked == {
        "p99<1s": 0.06,
        "latency.p99<1s": 0.055,
        "ttft.max<1s": 0.045,
        "lag.mean<1s": 0.005,
        "success>=1": 1.0,
        "rate>=1": 1.0,
    }
    assert replace(summary, ttft=None).measured("ttft", "max") is None


ASKED = ("p99<1s", "latency.p99<1s", "ttft.max<1s", "lag.mean<1s", "success>=1", "rate>=1")


def test_a_jitter_below_the_gap_between_arrivals_does_not_move_the_completed_rate() -> None:
    plan = open_plan("10", "10")
    records = on_time(plan)
    wavering = [r._replace(done=r.done + (-1) ** r.index * 5 * MS) for r in records]
    assert summarise(observe(plan, wavering)).rates.completed == 10


def test_answers_in_bursts_between_which_the_interval_lies_are_completed() -> None:
    """Two bursts, further apart than the load is long: the mean of the latencies in the middle is between them."""
    plan = open_plan("2", "2")
    done = (2654, 2655, 4787, 4787)
    records = [r._replace(done=ms * MS, tokens_out=8, chunks=1) for r, ms in zip(on_time(plan), done, strict=True)]
    found = summarise(observe(plan, records))
    assert found.rates.completed == 1.0
    assert found.tokens is not None
    assert found.tokens.tokens_out_per_s == 8.0


def test_a_burst_at_the_end_of_a_drain_that_is_cut_short_completes_no_more_than_was_sent() -> None:
    plan = open_plan("20", "2")
    records = [r._replace(done=max(1750 * MS, r.due + MS)) for r in on_time(plan)]
    records[-1] = records[-1]._replace(outcome="abandoned", done=2050 * MS)
    rates = summarise(observe(plan, records)).rates
    assert rates.sent is not None
    assert 0 < rates.completed <= rates.sent == 20


FEW = st.lists(st.tuples(st.integers(0, 1999), st.integers(1, 9000)), min_size=1, max_size=12)


@given(FEW, st.integers(0, 20_000))
def test_what_was_answered_completes_at_a_rate_above_0_whatever_all_take_longer(
    few: list[tuple[int, int]], longer_ms: int
) -> None:
    def rate(more_ms: int) -> float:
        plan = replace(open_plan("1", "2"), workers=1)
        dues = sorted(few)
        records = [
            RequestRecord(place, 0, due * MS, due * MS, (due + takes + more_ms) * MS)
            for place, (due, takes) in enumerate(dues)
        ]
        return summarise(observe(plan, records)).rates.completed

    done = np.array([due + takes for due, takes in few]) * MS
    begin = float(np.median([takes for _, takes in few])) * MS - 2 * NS / len(few) / 2
    usual = np.count_nonzero((done >= begin) & (done < begin + 2 * NS)) / 2
    assert 0 < rate(0) <= len(few) / 2 + 1e-9
    assert not usual or rate(0) == pytest.approx(usual)
    assert rate(longer_ms) == pytest.approx(rate(0))


def test_a_drain_that_was_cut_short_ends_the_interval_of_the_completed_rate() -> None:
    """A server of 10/s is sent 20/s for 10 s and left to answer until 12 s."""
    plan = open_plan("20", "10")
    end = 12_000 * MS
    records = []
    for index, record in enumerate(on_time(plan)):
        done = (index + 1) * 100 * MS
        late = {"done": end, "outcome": "abandoned"} if done > end else {"done": done}
        records.append(record._replace(**late))
    assert summarise(observe(plan, records)).rates.completed == pytest.approx(10, rel=0.02)


def test_streams_that_hang_count_with_their_age_even_if_none_was_ok() -> None:
    plan = open_plan("10", "1")
    base = on_time(plan)
    never = [r._replace(outcome="abandoned", done=r.sent + 900 * MS) for r in base[:5]]
    begun = [
        r._replace(
            outcome="abandoned",
            done=r.sent + 900 * MS,
            first_token=r.sent + 10 * MS,
            last_token=r.sent + 20 * MS,
            chunks=2,
            gaps=(10_000,),
        )
        for r in base[5:]
    ]
    summary = summarise(observe(plan, never + begun))
    assert summary.ttft is not None
    assert (summary.ttft.count, summary.ttft.maximum, summary.ttft.lower_bound_from) == (10, 0.9, 0.9)
    assert summary.itl is not None
    assert (summary.itl.count, summary.itl.maximum, summary.itl.lower_bound_from) == (10, 0.88, 0.88)
