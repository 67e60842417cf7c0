"""``--locust-file``: a Locust file's users as the requests of a wave; one task execution is one arrival, one record.

Each slot's greenlet runs one User by Locust's own loop (on_start, task weights, nested and sequential task
sets, on_stop); before every task that is a function, it waits for an arrival. In the open loop the schedule sets
the pace, so ``wait_time`` is left out; in the closed loop it passes before the arrival goes back.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import gevent
from locust.exception import InterruptTaskSet, RescheduleTask, RescheduleTaskImmediately, StopUser
from locust.user.task import DefaultTaskSet, TaskSet
from locust.util.load_locustfile import load_locustfile

from inference_benchmarker.engine.endpoint.source import describe_error
from inference_benchmarker.engine.worker.requests import AbandonedError, Requests, RequestTimeout, Turn
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.numbers import uniform
from inference_benchmarker.records.response import MAX_COUNT
from inference_benchmarker.system.given import resolved

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from locust import User
    from locust.env import Environment

    from inference_benchmarker.engine.worker.in_flight import Slot
    from inference_benchmarker.engine.worker.requests import Report
    from inference_benchmarker.records.batch_writer import BatchWriter

_CONTROL_FLOW = (InterruptTaskSet, RescheduleTask, RescheduleTaskImmediately, StopUser)
_KIND_STREAM = 0x10C  # keeps the draw of User classes apart from other draws of the same seed


class StoppedUserError(Exception):
    """A User stopped itself before it ran any task, so the arrival it was meant for was not sent."""


def load_users(path: Path, url: str | None) -> list[type[User]]:
    """The User classes of a Locust file; ``url`` is the host of those that have none."""
    try:
        classes, _ = load_locustfile(str(resolved(path)))
    except BaseException as error:
        raise describe_error(resolved(path), "importing it", error) from error
    users = [user for user in classes.values() if user.weight > 0 or user.fixed_count > 0]
    if not users:
        raise BenchmarkError(f"{path}: has no User class.", "Define at least one subclass of HttpUser or User in it.")
    for user in users:
        user.host = user.host or url
    return users


class LocustSessions:
    """Sessions of one turn, which is a task execution of a Locust user; one user a slot. See ``Sessions``."""

    def __init__(
        self,
        users: list[type[User]],
        environment: Environment,
        report: Report,
        writer: BatchWriter,
        *,
        seed: int,
        keep_wait_time: bool,
        request_timeout_s: float | None = None,
    ) -> None:
        self.requests = Requests(partial(_report_abandoned, report), writer, request_timeout_s)
        self._turn: Turn = self.requests.execute
        self._writer = writer
        self.kinds = len(users)
        self._users = users
        self._environment = environment
        self._seed = seed
        self._weights = tuple(accumulate(user.fixed_count or user.weight for user in users))
        self._slot_of: dict[int, Slot] = {}
        environment.events.request.add_listener(self._on_event)
        _mute_warmup(environment, self._current_slot)
        _gate_tasks(self._run_task, keep_wait_time=keep_wait_time)

    def kind(self, index: int) -> int:
        """Which User class sends this arrival, drawn by the classes' weights."""
        return bisect_right(self._weights, uniform(self._seed ^ _KIND_STREAM, index) * self._weights[-1])

    def closed_kinds(self, concurrency: int) -> list[int]:
        """The class of each of C users: each class gets the share nearest to its weight."""
        total = self._weights[-1]
        return [bisect_right(self._weights, (number + 0.5) * total / concurrency) for number in range(concurrency)]

    def serve(self, slot: Slot) -> None:
        """Run one User; one that stops or fails to start is replaced by the next, until the wave is over."""
        self._slot_of[id(gevent.getcurrent())] = slot
        while True:
            user = self._users[slot.kind](self._environment)
            user.benchmark_slot, user.benchmark_tasks, user.benchmark_over = slot, 0, False
            failure: BaseException = StoppedUserError("the user stopped itself in on_start")
            try:
                user.run()
            except BaseException as error:
                failure = error
            if user.benchmark_over or isinstance(failure, gevent.GreenletExit):
                return
            if user.benchmark_tasks == 0 and not self._fail_next(slot, failure):
                return

    def _fail_next(self, slot: Slot, error: BaseException) -> bool:
        arrival = slot.take()
        if arrival is None:
            return False

        def attempt(_: Slot) -> None:
            raise error

        self._turn(slot, arrival, attempt)
        return True

    def _run_task(self, task_set: TaskSet, task: Any, run: Callable[[TaskSet, Any], None]) -> None:
        """Run one task when an arrival allows it. What it raises is Locust's to handle, as ever."""
        user = task_set.user
        arrival = user.benchmark_slot.take()
        if arrival is None:
            user.benchmark_over = True
            raise StopUser
        user.benchmark_tasks += 1
        raised: BaseException | None = None

        def attempt(slot: Slot) -> None:
            nonlocal raised
            slot.label = self._writer.labels[getattr(task, "__name__", type(task).__name__)]
            try:
                run(task_set, task)
            except _CONTROL_FLOW as error:
                raised = error
            except BaseException as error:
                raised = error
                raise

        self._turn(user.benchmark_slot, arrival, attempt)
        if raised is not None and not isinstance(raised, RequestTimeout):
            raise raised

    def _current_slot(self) -> Slot | None:
        return self._slot_of.get(id(gevent.getcurrent()))

    def _on_event(self, response_length: int = 0, exception: BaseException | None = None, **_: Any) -> None:
        """A request event of the task that runs in this greenlet."""
        slot = self._current_slot()
        if slot is None or slot.arrival is None:
            return
        slot.size = min(max(slot.size, 0) + max(_whole(response_length), 0), MAX_COUNT)
        if isinstance(exception, BaseException) and not isinstance(exception, AbandonedError):
            slot.failure = slot.failure or exception


def _report_abandoned(report: Report, name: str, response_ms: float, length: int, error: Exception | None) -> None:
    """The file's own events stand for ours; only an abandoned task has none."""
    if isinstance(error, AbandonedError):
        report(name, response_ms, length, error)


def _whole(length: Any) -> int:
    """The length of an event as its file gives it; 0 where that is no number."""
    try:
        return int(length or 0)
    except BaseException:
        return 0


def _gate_tasks(run_task: Callable[..., None], *, keep_wait_time: bool) -> None:
    """Make every task of the file's users wait for an arrival; task sets, which only hold tasks, run as ever."""
    for holder in (TaskSet, DefaultTaskSet):
        holder.execute_task = _gated(holder.execute_task, run_task)
    if not keep_wait_time:
        TaskSet.wait = _never_waiting(TaskSet.wait)


def _gated(
    execute_task: Callable[[TaskSet, Any], None], run_task: Callable[..., None]
) -> Callable[[TaskSet, Any], None]:
    def gated(self: TaskSet, task: Any) -> None:
        is_task_set = isinstance(task, type) and issubclass(task, TaskSet)
        if is_task_set or not hasattr(self.user, "benchmark_slot"):
            execute_task(self, task)
        else:
            run_task(self, task, execute_task)

    return gated


def _never_waiting(wait: Callable[[TaskSet], None]) -> Callable[[TaskSet], None]:
    def no_wait(self: TaskSet) -> None:
        if not hasattr(self.user, "benchmark_slot"):
            wait(self)

    return no_wait


def _mute_warmup(environment: Environment, current_slot: Callable[[], Slot | None]) -> None:
    """Keep events of warm-up tasks out of Locust's statistics."""
    stats = environment.stats

    def counted(log: Callable[..., None]) -> Callable[..., None]:
        def unless_warmup(*args: Any, **kwargs: Any) -> None:
            slot = current_slot()
            if slot is None or slot.arrival is None or slot.arrival.index >= 0:
                log(*args, **kwargs)

        return unless_warmup

    stats.log_request = counted(stats.log_request)
    stats.log_error = counted(stats.log_error)
