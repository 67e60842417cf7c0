"""Locust's statistics of requests that were added in batches are those that an event for each would have given."""

from __future__ import annotations

import subprocess
import sys

import pytest

_BEGINNING = """
import random
from inference_benchmarker.engine.locust import runtime
from inference_benchmarker.engine.locust import statistics
from locust import stats as locust_stats
from locust.env import Environment

clock = [1_700_000_000.9]
statistics.time = lambda: clock[0]
locust_stats.time.time = lambda: clock[0]

def environment():
    made = Environment(user_classes=[])
    made.create_local_runner()
    return made

ours, theirs = environment(), environment()
reported = statistics.Statistics(ours)

def send(name, ms, length, error=None):
    clock[0] += draws.random() / 50
    reported.report(name, ms, length, error)
    theirs.events.request.fire(
        request_type="invoke", name=name, response_time=ms, response_length=length, exception=error, context={}
    )

def figures(stats):
    total = dict(vars(stats.total))
    entries = {key: dict(vars(entry)) for key, entry in stats.entries.items()}
    for one in (total, *entries.values()):
        for gone in ("stats", "start_time", "response_times_cache", "use_response_times_cache"):
            one.pop(gone, None)
        one["total_response_time"] = round(one["total_response_time"], 3)  # of floats that are added in another order
    errors = {key: error.to_dict() if hasattr(error, "to_dict") else vars(error) for key, error in stats.errors.items()}
    return total, entries, errors
"""
_RANDOM = """
for seed in range(40):
    draws = random.Random(seed)
    names, failing = [f"m{number}" for number in range(draws.choice((1, 1, 5)))], draws.choice((0, 0.1, 1))
    ours.stats.clear_all(), theirs.stats.clear_all()
    for _ in range(draws.choice((1, 255, 256, 257, 1_000))):
        error = ValueError("broken") if draws.random() < failing else None
        ms = draws.choice((0.3, 4, 60, 700, 8_000, 90_000)) * draws.random()
        send(draws.choice(names), ms, draws.randrange(99), error)
    reported.flush()
    assert figures(ours.stats) == figures(theirs.stats), seed
    assert ours.stats.total.num_requests > 0
"""
_LISTENER = """
draws, heard = random.Random(1), []
send("m", 1.0, 2)
assert ours.stats.total.num_requests == 0
ours.events.request.add_listener(lambda name, **event: heard.append((name, event["response_time"])))
send("n", 2.0, 3)
assert heard == [("n", 2.0)]
ours.events.request.remove_listener(ours.events.request._handlers[-1])
send("o", 3.0, 4)
reported.flush()
reported.flush()
assert heard == [("n", 2.0)]
assert figures(ours.stats) == figures(theirs.stats)
"""
_BUCKETS = """
import logging
logging.disable()
draws = random.Random(1)
of_locust, locust_stats.bucket_response_time = locust_stats.bucket_response_time, lambda ms: 1 / 0
for _ in range(300):
    reported.report("m", 1.0, 2, None)
reported.flush()
locust_stats.bucket_response_time = of_locust
ours.stats.clear_all()
send("m", 1.0, 2)
reported.flush()
assert figures(ours.stats) == figures(theirs.stats)
"""
_CASES = {"batches": _RANDOM, "a listener comes and goes": _LISTENER, "buckets of the file's own that raise": _BUCKETS}


@pytest.mark.process
@pytest.mark.parametrize("case", _CASES.values(), ids=_CASES)
def test_statistics_are_those_of_an_event_for_each_request(case: str) -> None:
    done = subprocess.run([sys.executable, "-c", _BEGINNING + case], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
