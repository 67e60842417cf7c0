"""What a wave used up: it comes back from JSON as it went, and samples become means, maxima or None."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.facts import client_samples
from inference_benchmarker.facts.client_samples import HOST, MOST_STRETCHES, Sample, Samples
from inference_benchmarker.facts.client_use import (
    SERIES_LENGTH,
    Answers,
    Collections,
    Connections,
    HostUse,
    LoopBlock,
    LoopDelay,
    ProcessUse,
    WorkerUse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

seconds = st.floats(0, 1e6)
counts = st.integers(0, 2**40)
shares = st.none() | st.floats(0, 2)
worker_uses = st.builds(
    WorkerUse,
    cpu_s=seconds,
    max_rss_bytes=counts,
    cpu_share=shares,
    starved_share=shares,
    silence_s=seconds,
    loop_delay=st.none()
    | st.builds(LoopDelay, count=counts, p50_s=seconds, p95_s=seconds, p99_s=seconds, max_s=seconds),
    block=st.none()
    | st.builds(
        LoopBlock,
        part=st.sampled_from(["invoke", "payload", "tool"]),
        share=seconds,
        longest_s=seconds,
        stack=st.lists(st.text(max_size=5), max_size=3).map(tuple),
    ),
    collections=st.builds(Collections, pauses=counts, total_s=seconds, longest_s=seconds),
    connections=st.builds(
        Connections,
        opened=counts,
        discarded=counts,
        looked_at=counts,
        waiting=counts,
        retries=counts,
        refused=st.dictionaries(st.sampled_from(["EMFILE", "EPERM"]), counts),
        seen=st.none() | st.booleans(),
    ),
    answers=st.builds(Answers, hidden=st.dictionaries(st.sampled_from(["404", "503"]), counts), textless=counts),
    descriptors=counts,
    descriptor_limit=counts,
)


@given(worker_uses)
def test_a_workers_use_comes_back_from_json_as_it_went(use: WorkerUse) -> None:
    reported = encoded(use)
    assert json.loads(json.dumps(reported)) == reported, "as a file has it"
    assert decoded(json.loads(json.dumps(reported)), WorkerUse) == use


def test_nothing_known_comes_back_as_nothing_known() -> None:
    assert decoded(json.loads(json.dumps(encoded(WorkerUse()))), WorkerUse) == WorkerUse()


def test_reading_leaves_what_was_read_as_it_was() -> None:
    data = encoded(WorkerUse(block=LoopBlock("tool", "here", 1.0, 0.5, ("a", "b"))))
    before = json.dumps(data)
    decoded(data, WorkerUse)
    assert json.dumps(data) == before


process_uses = st.builds(
    ProcessUse,
    cpu_percent_mean=seconds,
    cpu_percent_max=seconds,
    memory_bytes_max=counts,
    cpu_series=st.lists(seconds, max_size=60).map(tuple),
)


@given(process_uses)
def test_a_processes_use_comes_back_from_json_as_it_went(use: ProcessUse) -> None:
    assert decoded(json.loads(json.dumps(encoded(use))), ProcessUse) == use


def kept(samples: Iterable[Sample]) -> Samples:
    found = Samples()
    for sample in samples:
        found.add(sample)
    return found


def of_host(cpu_percent: float, **more: Any) -> Sample:
    return Sample(0.0, HOST, cpu_percent, 1000)._replace(**more)


def host_use(*samples: Sample, cores: int = 4, ephemeral_ports: int | None = 28_232) -> HostUse | None:
    return HostUse.of(kept(samples).within(0, 1), cores=cores, memory_total_bytes=5000, ephemeral_ports=ephemeral_ports)


class TestHostUse:
    def test_it_is_of_the_hosts_samples_alone(self) -> None:
        assert host_use() is None
        assert host_use(Sample(0.0, "worker_0", 90.0, 1)) is None
        alone = host_use(of_host(40.0))
        assert host_use(Sample(0.0, "worker_0", 90.0, 1, 10**9, 10**9), of_host(40.0)) == alone

    def test_shares_are_of_all_cores(self) -> None:
        use = host_use(of_host(40.0, steal_percent=4.0), of_host(200.0, steal_percent=12.0), cores=4)
        assert use is not None
        assert use.cpu_share_mean == pytest.approx(0.3)
        assert use.cpu_share_max == pytest.approx(0.5)
        assert use.steal_share_mean == pytest.approx(0.02)

    def test_memory_is_the_least_time_wait_the_most_and_throttling_the_sum(self) -> None:
        use = host_use(
            of_host(1.0, memory_available_bytes=700, time_wait=5, throttled_s=0.25),
            of_host(1.0, memory_available_bytes=300, time_wait=9, throttled_s=0.5),
            of_host(1.0, memory_available_bytes=900, time_wait=2, throttled_s=0.0),
        )
        assert use is not None
        assert (use.memory_available_bytes, use.memory_total_bytes) == (300, 5000)
        assert (use.time_wait, use.ephemeral_ports, use.throttled_s) == (9, 28_232, 0.75)

    def test_the_network_is_the_mean_of_all_seconds(self) -> None:
        use = host_use(
            of_host(1.0, network_sent_bytes=100, network_received_bytes=10),
            of_host(1.0, network_sent_bytes=500, network_received_bytes=30),
        )
        assert use is not None
        assert (use.network_sent_bytes_per_s, use.network_received_bytes_per_s) == (300, 20)

    def test_what_no_sample_tells_is_none_and_not_zero(self) -> None:
        use = host_use(of_host(1.0), of_host(1.0), ephemeral_ports=None)
        assert use is not None
        assert (use.steal_share_mean, use.memory_available_bytes, use.throttled_s) == (None, None, None)
        assert (use.time_wait, use.ephemeral_ports) == (None, None)

    def test_what_some_samples_tell_is_of_those(self) -> None:
        use = host_use(
            of_host(1.0, steal_percent=8.0, memory_available_bytes=7, time_wait=0, throttled_s=0.0), of_host(1.0)
        )
        assert use is not None
        assert use.steal_share_mean == pytest.approx(0.02)
        assert use.memory_available_bytes == 7
        assert (use.time_wait, use.throttled_s) == (0, 0.0)

    def test_it_comes_back_from_json_as_it_went(self) -> None:
        for use in (host_use(of_host(1.0)), host_use(of_host(40.0, steal_percent=4.0, time_wait=3, throttled_s=0.1))):
            assert use is not None
            assert HostUse(**json.loads(json.dumps(encoded(use)))) == use


def seconds_of(process: str, *cpu: float, memory: int = 100) -> list[Sample]:
    return [Sample(float(second), process, percent, memory + second) for second, percent in enumerate(cpu)]


def uses_of(samples: list[Sample]) -> tuple[ProcessUse, ...]:
    return ProcessUse.of(kept(samples).within(0, len(samples)))


class TestSamples:
    """A wave may last for days: what is kept of it does not grow, and says the same."""

    @given(
        st.lists(
            st.builds(
                of_host,
                st.integers(0, 800).map(float),
                network_sent_bytes=st.integers(0, 10**9) | st.none(),
                steal_percent=st.integers(0, 100).map(float) | st.none(),
                memory_available_bytes=st.integers(0, 10**9) | st.none(),
                time_wait=st.integers(0, 10) | st.none(),
                throttled_s=st.integers(0, 2).map(float) | st.none(),
            ),
            min_size=1,
            max_size=100,
        )
    )
    def test_joined_samples_say_of_the_host_what_each_of_them_does(self, samples: list[Sample]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            whole = host_use(*samples)
            patch.setattr(client_samples, "MOST_STRETCHES", 4)
            assert host_use(*samples) == whole

    def test_ten_hours_take_no_more_than_seventeen_minutes(self) -> None:
        hours = kept(seconds_of("worker_0", *(10.0 for _ in range(36_000))))
        (stretches,) = hours.within(0, 36_000).values()
        assert len(stretches) <= MOST_STRETCHES
        assert sum(stretch.samples for stretch in stretches) == 36_000
        assert [stretch.unix_s for stretch in stretches] == [64.0 * place for place in range(len(stretches))]

    def test_the_series_of_a_long_wave_is_of_means_in_order(self) -> None:
        (use,) = uses_of(seconds_of("p", *map(float, range(3600))))
        assert use.cpu_percent_mean == 1799.5
        assert use.cpu_percent_max == 3599.0
        assert use.memory_bytes_max == 100 + 3599
        assert len(use.cpu_series) <= SERIES_LENGTH
        assert list(use.cpu_series) == sorted(use.cpu_series)

    def test_what_is_outside_of_the_window_does_not_count_unless_there_is_nothing_else(self) -> None:
        samples = kept(seconds_of("p", 1.0, 2.0, 3.0))
        assert [stretch.cpu_percent for stretch in samples.within(1, 1.5)["p"]] == [2.0]
        assert len(samples.within(7, 9)["p"]) == 3


class TestProcessUse:
    def test_each_process_has_one_in_the_order_in_which_they_appear(self) -> None:
        samples = [*seconds_of("b", 1.0), *seconds_of("a", 2.0, 4.0), *seconds_of("b", 3.0)]
        first, second = ProcessUse.of(kept(samples).within(0, 1))
        assert (first.process, first.cpu_series) == ("b", (1.0, 3.0))
        assert (second.process, second.cpu_series) == ("a", (2.0, 4.0))

    def test_without_a_sample_there_is_none(self) -> None:
        assert ProcessUse.of({}) == ()

    def test_it_has_the_mean_and_the_maxima(self) -> None:
        (use,) = uses_of(seconds_of("worker_0", 10.0, 60.04, 20.0))
        assert (use.cpu_percent_mean, use.cpu_percent_max, use.memory_bytes_max) == (30.0, 60.04, 102)

    @pytest.mark.parametrize(
        ("samples", "series"), [(1, 1), (59, 59), (60, 60), (61, 31), (120, 60), (121, 41), (3600, 60)]
    )
    def test_the_series_is_never_longer_than_a_line(self, samples: int, series: int) -> None:
        (use,) = uses_of(seconds_of("p", *[7.0] * samples))
        assert use.cpu_series == (7.0,) * series

    def test_a_longer_series_is_of_means_in_order(self) -> None:
        (use,) = uses_of(seconds_of("p", *map(float, range(2 * SERIES_LENGTH))))
        assert use.cpu_series == tuple(2 * second + 0.5 for second in range(SERIES_LENGTH))

    def test_the_last_mean_is_of_what_is_left(self) -> None:
        (use,) = uses_of(seconds_of("p", *[10.0] * 60, 90.0))
        assert use.cpu_series[-1] == 90.0

    @given(st.lists(st.floats(0, 800), min_size=1, max_size=400))
    def test_no_value_of_the_series_is_outside_of_what_was_sampled(self, cpu: list[float]) -> None:
        (use,) = uses_of(seconds_of("p", *cpu))
        assert len(use.cpu_series) <= SERIES_LENGTH
        assert min(cpu) - 0.051 <= min(use.cpu_series)
        assert max(use.cpu_series) <= max(cpu) + 0.051
        assert use.cpu_percent_max == max(cpu)
