"""The worker process: loads the endpoint, joins the primary, sends its stripe of the wave, reports its records.

Standard input carries one JSON line (what to run) and then the primary's port; its end means that the parent
is gone.
"""

from __future__ import annotations

# Locust patches the process, so it comes before everything that opens sockets.
import locust

# isort: split
import faulthandler
import gc
import json
import logging
import os
import signal
import stat
import time
import traceback
from decimal import Decimal
from functools import partial
from itertools import starmap
from pathlib import Path
from socket import AF_INET, AF_INET6
from typing import TYPE_CHECKING, Any, BinaryIO

import gevent
from gevent.event import Event
from gevent.monkey import get_original
from locust.env import Environment

from inference_benchmarker.engine import endpoint
from inference_benchmarker.engine.curve import WorkerKeys
from inference_benchmarker.engine.locust_runtime import (
    ACK,
    BATCH,
    CHANGE,
    READY,
    START,
    STOP,
    WaveUser,
    options,
    set_up_logging,
)
from inference_benchmarker.engine.locust_sockets import connect_with
from inference_benchmarker.engine.worker.requests import InvokeRequests, Requests
from inference_benchmarker.engine.worker.retrying import RetryingRequests
from inference_benchmarker.engine.worker.scheduler import ClosedLoopScheduler, OpenLoopScheduler, Scheduler
from inference_benchmarker.engine.worker.watch import Watch, open_descriptors
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.host import die_with_parent, raise_descriptor_limit
from inference_benchmarker.plan.load import ClosedLoop, OpenLoop
from inference_benchmarker.plan.pacing import Arrival, TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.records.record import BatchWriter
from inference_benchmarker.redact import excerpt, secret_values
from inference_benchmarker.wave.recorded import scheduled
from inference_benchmarker.wave.run_dir import RunDir

if TYPE_CHECKING:
    from collections.abc import Callable

REPORT_INTERVAL_S = 0.5
RESEND_AFTER_S = 2.0
POLL_S = 0.002
SPARE_DESCRIPTORS = 16
MAX_ERROR_LENGTH = 2_000

logger = logging.getLogger("inference_benchmarker.engine.worker")


class Target:
    """The target of a worker: a loaded factories file or a Locust file's users, or why neither could be loaded."""

    def __init__(self, plan: WavePlan) -> None:
        self.endpoint: endpoint.Endpoint | None = None
        self.users: list[Any] = []
        self.error: dict[str, str] | None = None
        try:
            self._load(plan)
        except BenchmarkError as error:
            self.error = error.told(partial(excerpt, limit=MAX_ERROR_LENGTH, secrets=secret_values(os.environ)))

    @property
    def payload_count(self) -> int | None:
        """The number of pre-computed payloads; None where they are built for each request."""
        return None if self.endpoint is None or self.endpoint.payloads is None else len(self.endpoint.payloads)

    def _load(self, plan: WavePlan) -> None:
        if plan.locust_file is None:
            assert plan.factories_file is not None
            self.endpoint = endpoint.load(plan.factories_file, plan.endpoint_name, with_rows=_replays(plan))
            return
        from inference_benchmarker.engine.worker.locust_file import load_users

        self.users = load_users(plan.locust_file, plan.url)


class Worker:
    """One worker's part of a wave."""

    def __init__(self, plan: WavePlan, number: int, target: Target, port: int, run_dir: RunDir) -> None:
        self.plan = plan
        self.number = number
        self._target = target
        self._row_of = _row_of(plan, target, run_dir)  # opened before the wave begins, for it takes a while
        self._bucket = TokenBucket.of(plan)
        self._stripe = self._bucket.open_stripe(number) if isinstance(plan.load, OpenLoop) else None
        self._changes = 0
        self._writer = BatchWriter(secret_values(os.environ))
        if isinstance(plan.load, OpenLoop):
            self._writer.feed.set_stages(plan.load.stage_ends_ns)
        else:
            self._writer.feed.open_loop = False
        self._requests: Requests
        self._reporter: Any = None
        self._scheduler: Scheduler
        self._started = Event()
        self._aborted = False
        self._left = False
        self._t0 = 0
        self._sequence = 0
        self._unacknowledged: dict[int, tuple[float, bytes]] = {}
        self._watch = Watch()
        self._environment = Environment(
            user_classes=[WaveUser],
            events=locust.events,
            parsed_options=options(plan.url, custom=plan.locust_file is not None),
            host=plan.url,
        )
        self._runner = self._environment.create_worker_runner("127.0.0.1", port)
        listeners = {START: self._on_start, CHANGE: self._on_change, STOP: self._on_stop, ACK: self._on_ack}
        for message, listener in listeners.items():
            self._runner.register_message(message, listener)
        if plan.locust_file is not None:
            self._environment.events.init.fire(environment=self._environment, runner=self._runner, web_ui=None)

    def run(self) -> None:
        """Take part in the wave, from the first message to the last acknowledgement."""
        self._send_ready()
        self._started.wait()
        self._reporter = gevent.spawn(self._report_regularly)
        os.register_at_fork(after_in_child=self._be_no_worker)
        self._wait_until_over()
        if self._left:
            os._exit(0)
        self._reporter.kill()
        self._watch.stop()
        self._scheduler.close()
        self._requests.abandon()
        self._runner.stop()
        self._runner._send_stats()  # noqa: SLF001 - Locust reports every 3 s only; its total must be whole now
        self._send_batch(final=True)
        while self._unacknowledged:
            gevent.sleep(POLL_S)
            self._resend()

    def _be_no_worker(self) -> None:
        """In a process that the user's code forked: send nothing, report nothing, read nobody's answers."""
        self._left = True
        _let_go_of_connections()
        self._scheduler.leave()
        self._requests.stop()
        sending = [slot.greenlet for slot in self._requests.slots if slot.arrival is not None]
        others = {self._reporter, *self._runner.greenlet.greenlets, *sending} - {gevent.getcurrent()}
        gevent.killall(others, block=False)

    def _send_ready(self) -> None:
        ready = {
            "pid": os.getpid(),
            "error": self._target.error,
            "payloads": self._target.payload_count,
            "descriptors": _free_descriptors(),
        }
        self._runner.send_message(READY, ready)

    def _on_start(self, msg: Any, **_: Any) -> None:
        try:
            self._start(msg)
        except BaseException:  # Locust would log it and leave a worker behind that never sends
            logger.exception("the worker cannot start")
            os._exit(1)

    def _start(self, msg: Any) -> None:
        self._t0 = msg.data["t0"]
        self._requests = self._make_requests()
        self._scheduler = self._make_scheduler(msg.data["cap"])
        gevent.sleep(0)  # lets the first slots reach their place
        gc.collect()
        gc.freeze()
        self._watch.start()
        self._scheduler.start(self._t0)
        if self.plan.warmup_ns:
            gevent.spawn_later(max(0, -self._now()) / 1e9, self._watch.begin)
        else:
            self._watch.begin()
        self._started.set()

    def _on_change(self, msg: Any, **_: Any) -> None:
        """Another rate from an instant on. One that is over already is heard too late, and the ledger says so."""
        at, rate = msg.data["at"], Decimal(msg.data["rate"])
        assert self._stripe is not None
        assert isinstance(self._scheduler, OpenLoopScheduler)
        self._note_if_late(at)
        self._writer.feed.add_stage(at)
        changed = partial(self._stripe.changed, at, rate)
        self._scheduler.change(lambda first: starmap(Arrival, changed(first)))
        self._changes += 1

    def _note_if_late(self, at: int) -> None:
        if self._now() >= at:
            self._requests.ledger.late_changes += 1

    def _on_stop(self, msg: Any, **_: Any) -> None:
        if msg.data["planned"]:
            self._note_if_late(msg.data["at"])
        self._scheduler.stop(msg.data["at"])
        if msg.data["abort"] or not msg.data["planned"]:  # as at every planned end, clients go on while it drains
            self._requests.stop()
        self._aborted = self._aborted or msg.data["abort"]

    def _on_ack(self, msg: Any, **_: Any) -> None:
        self._unacknowledged.pop(msg.data["sequence"], None)

    def _make_requests(self) -> Requests:
        plan = self.plan
        seed = plan.seed or 0
        timeout = None if plan.request_timeout_s is None else float(plan.request_timeout_s)
        if self._target.endpoint is not None:
            make = partial(RetryingRequests, retries=plan.retries) if plan.retries.asked else InvokeRequests
            fire = self._environment.events.request.fire
            return make(self._target.endpoint, seed, fire, self._writer, timeout, row_of=self._row_of)
        from inference_benchmarker.engine.worker.locust_file import LocustRequests

        return LocustRequests(
            self._target.users,
            self._environment,
            self._writer,
            seed=seed,
            keep_wait_time=isinstance(plan.load, ClosedLoop),
            request_timeout_s=timeout,
        )

    def _make_scheduler(self, cap: int) -> Scheduler:
        plan = self.plan
        if isinstance(plan.load, OpenLoop):
            assert self._stripe is not None
            arrivals = starmap(Arrival, self._stripe.arrivals())
            end, steered = self._bucket.end_ns, plan.load.is_steered
            return OpenLoopScheduler(self._requests, arrivals, cap, end, steered=steered)
        kinds = self._requests.closed_kinds(plan.load.concurrency)[self.number :: plan.workers]
        return ClosedLoopScheduler(self._requests, self._bucket.stripe(self.number), plan.warmup_ns, kinds)

    def _wait_until_over(self) -> None:
        """Until the last arrival is sent and its request over, or the drain time or the user's patience is."""
        while not self._scheduler.exhausted.wait(timeout=0.25):
            if self._drained_out():
                return
        while (self._requests.in_flight or self._requests.waiting) and not self._drained_out():
            gevent.sleep(POLL_S)

    def _drained_out(self) -> bool:
        drain_from = self._scheduler.drain_from()
        return self._aborted or (drain_from is not None and self._now() > drain_from + self.plan.drain_ns)

    def _now(self) -> int:
        return time.monotonic_ns() - self._t0

    def _report_regularly(self) -> None:
        while True:
            gevent.sleep(REPORT_INTERVAL_S)
            self._send_batch()
            self._resend()

    def _send_batch(self, *, final: bool = False) -> None:
        """Send what was recorded since the last batch, with the ledger as it stands at this instant."""
        meta = {
            "worker": self.number,
            "sequence": self._sequence,
            "at": self._now(),
            "final": final,
            "ledger": self._requests.ledger.to_json(),
            "changes": self._changes,
            "use": self._watch.facts(self._requests, sending=not self._scheduler.exhausted.is_set()),
        }
        batch = self._writer.take(meta)
        self._unacknowledged[self._sequence] = (time.monotonic(), batch)
        self._sequence += 1
        self._runner.send_message(BATCH, batch)

    def _resend(self) -> None:
        """Send again what was not acknowledged in time; the primary takes each batch once, in order."""
        now = time.monotonic()
        for sequence, (sent_at, batch) in list(self._unacknowledged.items()):
            if now - sent_at > RESEND_AFTER_S:
                self._unacknowledged[sequence] = (now, batch)
                self._runner.send_message(BATCH, batch)


def _row_of(plan: WavePlan, target: Target, run_dir: RunDir) -> Callable[[int], dict[str, Any]] | None:
    """The function that gives the row of an arrival, where a recording is replayed and build takes one."""
    if target.endpoint is None or not target.endpoint.takes_row or not _replays(plan):
        return None
    from inference_benchmarker.recording.rows import RowFile

    return RowFile(run_dir.recorded_rows).row


def _replays(plan: WavePlan) -> bool:
    return isinstance(plan.load, OpenLoop) and plan.load.replay is not None


def _let_go_of_connections() -> None:
    """Put nothing in the place of every TCP connection that a forked process shares with its parent.

    An event that was pending at the fork would have it read an answer there, and the parent would wait for it in vain.
    """
    inherited = [number for number in map(int, os.listdir("/dev/fd")) if _is_connection(number)]  # noqa: PTH208
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in inherited:
        os.dup2(nothing, number, inheritable=False)
    os.close(nothing)


def _is_connection(number: int) -> bool:
    """Tells whether a descriptor is a TCP connection of this process."""
    try:
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            return False
        with get_original("socket", "socket")(fileno=os.dup(number)) as found:
            return found.family in (AF_INET, AF_INET6) and bool(found.getpeername())
    except OSError:  # it is closed, or connected to nobody
        return False


def _free_descriptors() -> int:
    """The number of descriptors that are left for requests."""
    return max(1, raise_descriptor_limit() - open_descriptors() - SPARE_DESCRIPTORS)


def _take_stdin() -> BinaryIO:
    """Takes what the parent says out of reach of the user's code, whose standard input is empty."""
    commands = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return commands


def _end_with_parent(commands: BinaryIO) -> None:
    watcher = gevent.get_hub().loop.io(commands.fileno(), 1)
    watcher.start(os._exit, 1)


def _tell_where_on_request() -> None:
    """SIGUSR1: print where the file that is being loaded is held up, computing or waiting."""
    loading = gevent.getcurrent()
    signal.signal(signal.SIGUSR1, lambda *_: traceback.print_stack(loading.gr_frame))
    faulthandler.register(signal.SIGUSR1, all_threads=False, chain=True)  # tells while no Python code can run


def main() -> None:
    """Run one worker as its parent's standard input says."""
    commands = _take_stdin()
    job = json.loads(commands.readline())
    die_with_parent(job["parent"])
    run_dir = RunDir(Path(job["run_dir"]))
    plan = scheduled(WavePlan.from_json(job["plan"]), run_dir)
    set_up_logging(debug=plan.debug)
    gevent.get_hub().SYSTEM_ERROR = ()  # a SystemExit in a greenlet of the user's file ends that greenlet, not us
    _tell_where_on_request()
    target = Target(plan)
    port = commands.readline()
    if not port:
        return
    _end_with_parent(commands)
    connect_with(WorkerKeys.from_json(job["keys"]))
    Worker(plan, job["worker"], target, int(port), run_dir).run()


if __name__ == "__main__":
    main()
