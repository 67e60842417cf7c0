"""The time of a request at the interval's lower end, split into service and waiting."""

import pytest

from server_capacity.experiments.server_side.time_breakdown import time_breakdown
from server_capacity.results.types.search_waves import Point
from tests.waves import wave


@pytest.mark.parametrize(
    ("metric", "name"), [("response_time", "response time"), ("latency", "latency"), ("ttft", "TTFT")]
)
def test_the_sentence_names_the_time_that_it_splits(metric: str, name: str) -> None:
    ms = 10**6
    at_low = wave([[0.035] * 100] * 2, first_token=[number * 10 * ms + 35 * ms for number in range(200)])
    found = time_breakdown([Point(rate=10.0, sent=100, mean=0.024)], 100.0, [at_low], metric, "100/s")

    assert found is not None
    parts = "24 ms (as at low rates) plus 11 ms of queueing."
    sentence = f"At 100/s the mean {name} is 35 ms: {parts}"
    assert " ".join(" ".join(found.lines).split()).startswith(sentence)
