"""Queueing models, and what became of their jobs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from inference_benchmarker.embedded.queueing.model import QueueModel
from inference_benchmarker.embedded.queueing.rules import Rules

if TYPE_CHECKING:
    from inference_benchmarker.embedded.queueing.job import Job

LATER = 10**15
arrival_lists = st.lists(st.integers(0, 200), max_size=60).map(lambda gaps: list(accumulate(gaps)))
services = st.lists(st.integers(0, 300), min_size=60, max_size=60)
servers_of = st.integers(1, 5)


@dataclass(frozen=True)
class ServedJob:
    """What became of an accepted request."""

    arrival_ns: int
    start_ns: int
    finish_ns: int
    service_ns: int


def queue(servers: int, service_ns: int | list[int], limit: int | None = None, **rules: Any) -> QueueModel:
    times = repeat(service_ns) if isinstance(service_ns, int) else iter(service_ns)
    return QueueModel(Rules(servers, queue_limit=limit, **rules), lambda: next(times))


def accepted(model: QueueModel, arrivals: list[int]) -> list[Job]:
    return [job for at in arrivals if (job := model.offer(at))]


def served(model: QueueModel, jobs: list[Job]) -> list[ServedJob]:
    """The jobs when all of them are finished."""
    model.take_ready(LATER)
    return [reported(job) for job in jobs]


def reported(job: Job) -> ServedJob:
    assert job.start_ns is not None
    assert job.finish_ns is not None
    return ServedJob(job.arrival_ns, job.start_ns, job.finish_ns, job.service_ns)
