"""The rows beside the findings: written for a full wave and a sparse one, and shown only where they say something."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.facts.client_use import Collections, Connections, HostUse, LoopDelay, ProcessUse, WorkerUse
from inference_benchmarker.report.client_table import HEADER, host_lines, notable, process_rows, worker_rows
from inference_benchmarker.report.text import to_text
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.wording import aligned
from tests.waves import observe, on_time, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts

MIB = 1 << 20
PLAN = open_plan("100", "2")
FULL_HOST = HostUse(
    cores=8,
    cpu_share_mean=0.256,
    cpu_share_max=0.5,
    steal_share_mean=0.0123,
    memory_available_bytes=3000 * MIB,
    memory_total_bytes=16_000 * MIB,
    throttled_s=0.0,
    time_wait=10,
    ephemeral_ports=28_232,
    network_sent_bytes_per_s=1.5e6,
    network_received_bytes_per_s=12_345_678.0,
)
SPARSE_HOST = replace(FULL_HOST, steal_share_mean=None, memory_available_bytes=None, throttled_s=None, time_wait=None)
FULL_WORKER = WorkerUse(
    max_rss_bytes=1234 * MIB,
    cpu_share=0.456,
    starved_share=0.0123,
    loop_delay=LoopDelay(count=1000, p50_s=0.0001, p95_s=0.001, p99_s=0.002, max_s=0.0345),
    collections=Collections(1234, 0.5, 0.0056),
    connections=Connections(opened=4321),
    descriptors=1100,
)
PROCESSES = (
    ProcessUse("host", 120.4, 400.0, 2000 * MIB, (0.0, 100.0, 200.0, 399.0, 400.0)),
    ProcessUse("worker_0", 49.6, 60.0, 150 * MIB, (0.0, 12.4, 12.5, 50.0, 99.9)),
)


def wave(*workers: WorkerUse, host: HostUse | None = FULL_HOST, **more: Any) -> WaveFacts:
    return observe(PLAN, on_time(PLAN), workers=workers, host=host, caps=(10_000,), **more)


def text_of(facts: WaveFacts) -> str:
    summary = summarise(facts)
    return to_text(facts, summary, judge(facts, summary))


class TestRows:
    def test_a_worker_of_which_all_is_known(self) -> None:
        header, row = worker_rows(wave(FULL_WORKER))
        assert header == list(HEADER)
        assert row == [
            "worker 0",
            "46%",
            "1.2%",
            "2 ms",
            "34.5 ms",
            "1,234 (max 5.6 ms)",
            "1,234 MiB",
            "4,321",
            "1,100",
        ]

    def test_what_is_not_known_is_a_dash_and_not_zero(self) -> None:
        _, row = worker_rows(wave(WorkerUse()))
        assert row == ["worker 0", "-", "-", "-", "-", "0", "0 MiB", "0", "0"]

    def test_each_worker_has_its_number(self) -> None:
        rows = worker_rows(wave(FULL_WORKER, WorkerUse(cpu_share=0.0)))
        assert [row[0] for row in rows] == ["Client", "worker 0", "worker 1"]
        assert rows[2][1] == "0.0%"

    @pytest.mark.parametrize(
        ("share", "text"), [(0.0, "0.0%"), (0.0999, "10.0%"), (0.1, "10%"), (1.0, "100%"), (1.234, "123%")]
    )
    def test_a_small_share_has_a_digit_more(self, share: float, text: str) -> None:
        assert worker_rows(wave(WorkerUse(starved_share=share)))[1][2] == text

    def test_rows_are_as_wide_as_their_header(self) -> None:
        rows = [*worker_rows(wave(FULL_WORKER, WorkerUse()))]
        assert {len(row) for row in rows} == {len(HEADER)}
        lines = list(aligned(rows))
        assert len({len(line) for line in lines}) == 1
        for cell in ("34.5 ms", "1,234 MiB", "1,100"):  # to the right, under their own heads
            column = rows[1].index(cell)
            assert lines[1].index(cell) + len(cell) == lines[0].index(HEADER[column]) + len(HEADER[column])


class TestHostLine:
    def test_a_host_of_which_all_is_known(self) -> None:
        assert list(host_lines(FULL_HOST)) == [
            "   host: CPU 26% of 8 cores (max 50%), 1.2% stolen by other guests, not throttled",
            "         3,000 of 16,000 MiB memory free, network 1.5 MB/s out, 12.3 MB/s in",
        ]

    def test_what_is_not_known_is_not_reported(self) -> None:
        assert list(host_lines(SPARSE_HOST)) == [
            "   host: CPU 26% of 8 cores (max 50%)",
            "         network 1.5 MB/s out, 12.3 MB/s in",
        ]

    def test_on_a_narrow_terminal_each_goes_on_below_its_first_word(self) -> None:
        assert list(host_lines(FULL_HOST, 60)) == [
            "   host: CPU 26% of 8 cores (max 50%), 1.2% stolen by other",
            "         guests, not throttled",
            "         3,000 of 16,000 MiB memory free, network 1.5 MB/s",
            "         out, 12.3 MB/s in",
        ]

    def test_throttling_is_reported_by_its_time(self) -> None:
        first, _ = host_lines(replace(FULL_HOST, throttled_s=0.25))
        assert "250 ms throttled by the cgroup" in first
        assert "not throttled" not in first


class TestProcessRows:
    def test_a_row_a_process_with_its_bars(self) -> None:
        assert list(process_rows(PROCESSES)) == [
            ["Process", "CPU mean", "CPU max", "memory max", "CPU over time"],
            ["host", "120%", "400%", "2,000 MiB", "▁▃▅██"],
            ["worker 0", "50%", "60%", "150 MiB", "▁▁▂▅█"],
        ]

    def test_less_than_a_core_is_drawn_against_a_core(self) -> None:
        _, row = process_rows((ProcessUse("p", 3.0, 3.0, 0, (3.0, 12.0)),))
        assert row[-1] == "▁▁"

    def test_without_a_process_there_is_the_header_alone(self) -> None:
        assert len(list(process_rows(()))) == 1


def paused(longest_s: float) -> WorkerUse:
    return WorkerUse(collections=Collections(1, longest_s, longest_s))


class TestNotable:
    @pytest.mark.parametrize(
        ("host", "worker", "expected"),
        [
            (FULL_HOST, WorkerUse(), False),
            (SPARSE_HOST, WorkerUse(), False),
            (None, WorkerUse(), False),
            (None, paused(0.01), False),
            (None, paused(0.0101), True),
            (FULL_HOST, paused(0.0101), True),
            (replace(FULL_HOST, steal_share_mean=0.02), WorkerUse(), False),
            (replace(FULL_HOST, steal_share_mean=0.021), WorkerUse(), True),
            (replace(FULL_HOST, throttled_s=0.001), WorkerUse(), True),
            (replace(FULL_HOST, memory_available_bytes=800 * MIB), WorkerUse(), False),
            (replace(FULL_HOST, memory_available_bytes=799 * MIB), WorkerUse(), True),
            (replace(FULL_HOST, memory_available_bytes=1), WorkerUse(), True),
        ],
    )
    def test_stolen_or_throttled_cpu_little_memory_and_long_pauses_are(
        self, host: HostUse | None, worker: WorkerUse, expected: bool
    ) -> None:
        facts = wave(WorkerUse(), worker, host=host)
        assert notable(facts) is expected
        assert ("worker 1" in text_of(facts)) is expected


class TestReconnects:
    """200 requests are sent."""

    @pytest.mark.parametrize(("opened", "expected"), [((100,), False), ((101,), True), ((50, 51), True), ((0,), False)])
    @pytest.mark.parametrize("host", [FULL_HOST, None])
    def test_a_connection_for_every_other_request_is_notable(
        self, host: HostUse | None, opened: tuple[int, ...], expected: bool
    ) -> None:
        facts = wave(*(WorkerUse(connections=Connections(opened=count)) for count in opened), host=host)
        assert notable(facts) is expected
        assert ("worker 0" in text_of(facts)) is expected

    @pytest.mark.parametrize(("opened", "expected"), [(20, False), (21, True)])
    def test_the_first_connections_of_a_short_wave_are_not(self, opened: int, expected: bool) -> None:
        plan = open_plan("10", "1")
        worker = WorkerUse(connections=Connections(opened=opened))
        facts = observe(plan, on_time(plan), workers=(worker,), host=FULL_HOST, caps=(10_000,))
        assert notable(facts) is expected


def test_a_host_without_any_memory_left_is_notable() -> None:
    assert notable(wave(host=replace(FULL_HOST, memory_available_bytes=0)))


class TestReport:
    def test_a_clean_wave_prints_nothing_of_the_client(self) -> None:
        text = text_of(wave(replace(FULL_WORKER, connections=Connections(opened=100))))
        assert "worker 0" not in text
        assert "host:" not in text

    def test_a_wave_that_the_client_limited_prints_its_table(self) -> None:
        facts = wave(replace(FULL_WORKER, cpu_share=0.95))
        text = text_of(facts)
        assert "CLIENT BOTTLENECK detected: worker_cpu, worker 0 used 95% of a core" in text
        for line in aligned(worker_rows(facts)):
            assert line in text.splitlines()
        assert set(host_lines(FULL_HOST)) <= set(text.splitlines())
        assert text.index("   host: ") < text.index("CLIENT BOTTLENECK") < text.index("VALID (client-limited)")
        assert "Process" not in text

    def test_without_a_host_its_line_is_left_out(self) -> None:
        text = text_of(wave(replace(FULL_WORKER, cpu_share=0.95), host=None))
        assert "worker 0  " in text
        assert "host:" not in text

    def test_a_wave_that_was_to_sample_prints_both_tables(self) -> None:
        facts = wave(FULL_WORKER, processes=PROCESSES)
        lines = text_of(facts).splitlines()
        for line in [*aligned(worker_rows(facts)), *aligned(list(process_rows(PROCESSES)))]:
            assert line in lines
        assert lines[-1] == "VALID"
