"""The worker process: loads the endpoint, joins the primary, sends its stripe of the wave, reports its records.

Standard input carries one JSON line (what to run) and then the primary's address; its end means that the parent
is gone.
"""

from __future__ import annotations

# Locust patches the process, so it comes before everything that opens sockets.
from inference_benchmarker.engine.locust.patched import locust

# isort: split
import gc
import json
import logging
import os
import time
from contextlib import suppress
from decimal import Decimal
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event
from locust.env import Environment

from inference_benchmarker.engine.locust.runtime import (
    ACK,
    ARMED,
    BATCH,
    CHANGE,
    GO,
    READY,
    START,
    STOP,
    WaveUser,
    options,
    set_up_logging,
)
from inference_benchmarker.engine.locust.sockets import connect_with
from inference_benchmarker.engine.locust.statistics import Statistics
from inference_benchmarker.engine.locust.zmq_keys import WorkerKeys
from inference_benchmarker.engine.processes.leftovers import MARK
from inference_benchmarker.engine.worker.conversations import Conversations, TurnRequests
from inference_benchmarker.engine.worker.outbox import Outbox, report_interval_s
from inference_benchmarker.engine.worker.population import PopulationScheduler
from inference_benchmarker.engine.worker.process import (
    end_with_parent,
    free_descriptors,
    let_go_of_connections,
    take_stdin,
    tell_where_on_request,
)
from inference_benchmarker.engine.worker.scheduler import ClosedLoopScheduler, OpenLoopScheduler, Scheduler
from inference_benchmarker.engine.worker.session_scheduler import SessionPlaces, SessionScheduler
from inference_benchmarker.engine.worker.sessions import Sessions, invoke_sessions
from inference_benchmarker.engine.worker.target import Target, row_of
from inference_benchmarker.engine.worker.watch import Watch
from inference_benchmarker.plan.load import ClosedLoop, OpenLoop
from inference_benchmarker.plan.pacing import Arrival, TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.population import PopulationStripe
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.counting import CountingBatchWriter
from inference_benchmarker.system.host import LOOPBACK, brand, die_with_parent
from inference_benchmarker.system.time_slice import ask_for_short_slices
from inference_benchmarker.wave.plan_file import scheduled
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.words.redact import own_secrets, prepare

if TYPE_CHECKING:
    from inference_benchmarker.engine.worker.requests import Requests

POLL_S = 0.002

logger = logging.getLogger("inference_benchmarker.engine.worker")


class Worker:
    """One worker's part of a wave."""

    def __init__(self, plan: WavePlan, number: int, target: Target, run_dir: RunDir) -> None:
        self.plan = plan
        self.number = number
        self._target = target
        self._row_of = row_of(plan, target.endpoint, run_dir)  # opened before the wave begins, for it takes a while
        self._bucket = TokenBucket.of(plan)
        self._changes = 0
        self._writer = _writer(plan)
        if isinstance(plan.load, OpenLoop):
            self._writer.feed.set_stages(plan.load.stage_ends_ns)
        else:
            self._writer.feed.open_loop = False
        self._sessions: Sessions
        self._requests: Requests
        self._reporter: Any = None
        self._scheduler: Scheduler
        self._started = Event()
        self._aborted = False
        self._left = False
        self._t0 = 0
        self._watch = Watch()
        self._environment = Environment(
            user_classes=[WaveUser],
            events=locust.events,
            parsed_options=options(plan.url, custom=plan.locust_file is not None),
            host=plan.url,
        )
        self._runner = self._environment.create_worker_runner(LOOPBACK, 0)  # its socket knows where
        self._statistics = Statistics(self._environment)
        self._outbox = Outbox(partial(self._runner.send_message, BATCH))
        listeners = {
            START: self._on_start,
            GO: self._on_go,
            CHANGE: self._on_change,
            STOP: self._on_stop,
            ACK: self._on_ack,
        }
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
        self._statistics.flush()
        self._runner._send_stats()  # noqa: SLF001 - Locust reports every 3 s only; its total must be whole now
        self._send_batch(final=True)
        while self._outbox:
            gevent.sleep(POLL_S)
            self._outbox.resend()

    def _be_no_worker(self) -> None:
        """In a process that the user's code forked: send nothing, report nothing, read nobody's answers."""
        self._left = True
        let_go_of_connections()
        self._scheduler.leave()
        self._requests.stop()
        sending = [slot.greenlet for slot in self._requests.slots if slot.arrival is not None]
        others = {self._reporter, *self._runner.greenlet.greenlets, *sending} - {gevent.getcurrent()}
        gevent.killall(others, block=False)

    def _send_ready(self) -> None:
        is_first = self.number == 0
        canaries, warmed = (self._target.ask_canaries(), self._target.warm()) if is_first else (None, None)
        ready = {
            "error": self._target.error,
            "canaries": canaries,
            "warmed": warmed,
            **self._target.payloads,
            "descriptors": free_descriptors(),
        }
        self._runner.send_message(READY, ready)

    def _on_start(self, msg: Any, **_: Any) -> None:
        try:
            self._arm(msg.data["cap"], msg.data["canaries"])
        except BaseException:  # Locust would log it and leave a worker behind that never sends
            logger.exception("the worker cannot start")
            os._exit(1)
        self._runner.send_message(ARMED)

    def _arm(self, cap: int, canaries: list[str | None] | None) -> None:
        """Have all in place that takes a while; nothing is sent before the primary says go."""
        self._sessions = self._make_sessions(canaries)
        self._requests = self._sessions.requests
        if isinstance(self._requests, TurnRequests):
            self._requests.note_before(self._target.warmed)
        self._scheduler = self._make_scheduler(cap)
        gevent.sleep(0)  # lets the first slots reach their place
        gc.collect()
        gc.freeze()

    def _on_go(self, msg: Any, **_: Any) -> None:
        """The wave begins at an instant of this host's clock, for which every worker is armed."""
        self._t0 = msg.data["t0"]
        self._note_if_late(-self.plan.warmup_ns)
        self._watch.start()
        self._scheduler.start(self._t0)
        if self.plan.warmup_ns:
            gevent.spawn_later(max(0, -self._now()) / 1e9, self._watch.begin)
        else:
            self._watch.begin()
        self._started.set()

    def _on_change(self, msg: Any, **_: Any) -> None:
        """Another rate or number of users from then on. What is over already is heard too late, says the ledger."""
        at, rate = msg.data["at"], Decimal(msg.data["rate"])
        self._note_if_late(at)
        self._writer.feed.add_stage(at)
        self._scheduler.change(at, rate)
        self._changes += 1

    def _note_if_late(self, at: int) -> None:
        if self._now() >= at:
            self._requests.ledger.late_changes += 1

    def _on_stop(self, msg: Any, **_: Any) -> None:
        if msg.data["planned"] and msg.data["at"] > 0:  # in the warm-up nothing is sent that would count
            self._note_if_late(msg.data["at"])
        self._scheduler.stop(msg.data["at"])
        if msg.data["abort"] or not msg.data["planned"]:  # as at every planned end, clients go on while it drains
            self._requests.stop()
            self._scheduler.cut()
        self._aborted = self._aborted or msg.data["abort"]

    def _on_ack(self, msg: Any, **_: Any) -> None:
        self._outbox.acknowledge(msg.data["sequence"])

    def _make_sessions(self, canaries: list[str | None] | None) -> Sessions:
        """``canaries``: the answers to them, as the first worker got them."""
        plan = self.plan
        seed = plan.seed or 0
        timeout = None if plan.request_timeout_s is None else float(plan.request_timeout_s)
        if self._target.endpoint is not None:
            return invoke_sessions(
                self._target.endpoint,
                seed,
                self._statistics.report,
                self._writer,
                timeout_s=timeout,
                retries=plan.retries if plan.retries.asked else None,
                row_of=self._row_of,
                think=plan.load.think,
                check=self._target.check,
                canaries=self._target.canaries(canaries),
                mix=plan.model_mix,
            )
        from inference_benchmarker.engine.worker.locust_file import LocustSessions

        return LocustSessions(
            self._target.users,
            self._environment,
            self._statistics.report,
            self._writer,
            seed=seed,
            keep_wait_time=isinstance(plan.load, ClosedLoop),
            request_timeout_s=timeout,
        )

    def _make_scheduler(self, cap: int) -> Scheduler:
        plan, sessions = self.plan, self._sessions
        if isinstance(plan.load, OpenLoop):
            stripe = self._bucket.open_stripe(self.number)
            arrivals, changed = starmap(Arrival, stripe.arrivals()), stripe.changed if plan.load.is_steered else None
            if isinstance(sessions, Conversations):
                return SessionScheduler(sessions, arrivals, cap, self._bucket.end_ns, changed)
            return OpenLoopScheduler(sessions, arrivals, cap, self._bucket.end_ns, changed)
        if isinstance(sessions, Conversations):
            places = {"first": self.number, "step": plan.workers, "places": plan.load.concurrency}
            most = cap if plan.load.is_steered else None
            return SessionPlaces(sessions, self._bucket.stripe(self.number), plan.warmup_ns, **places, cap=most)
        if plan.load.has_users:
            users = PopulationStripe(self._bucket, self.number)
            most = cap if plan.load.steered else self._bucket.stripe(self.number).arrivals
            return PopulationScheduler(self._sessions, users, most, steered=plan.load.is_steered)
        kinds = self._sessions.closed_kinds(plan.load.concurrency)[self.number :: plan.workers]
        return ClosedLoopScheduler(self._sessions, self._bucket.stripe(self.number), plan.warmup_ns, kinds)

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
        interval_s = report_interval_s(self.plan.workers)
        while True:
            gevent.sleep(interval_s)
            with suppress(MemoryError):  # the user's code may have taken it all for a while: the next turn sends more
                self._send_batch()
                self._outbox.resend()

    def _send_batch(self, *, final: bool = False) -> None:
        """Send what was recorded since the last batch, with the ledger as it stands at this instant."""
        self._statistics.flush()
        meta = {
            "worker": self.number,
            "sequence": self._outbox.next_sequence,
            "at": self._now(),
            "final": final,
            "ledger": self._requests.ledger.to_json(),
            "changes": self._changes,
            "use": self._watch.facts(self._requests, sending=not self._scheduler.exhausted.is_set()),
        }
        batch = self._writer.take(meta | self._requests.unreported())
        self._requests.mark_reported()
        self._watch.mark_reported()
        self._outbox.add(batch)


def _writer(plan: WavePlan) -> BatchWriter:
    secrets = own_secrets(with_numbers=True)
    return CountingBatchWriter(secrets, warmup=plan.warmup_ns > 0) if plan.counts_requests else BatchWriter(secrets)


def main() -> None:
    """Run one worker as its parent's standard input says."""
    commands = take_stdin()
    line = commands.readline()
    if not line:  # there is no wave after all
        return
    job = json.loads(line)
    die_with_parent(job["parent"])
    brand(os.environ[MARK])
    ask_for_short_slices()
    run_dir = RunDir(Path(job["run_dir"]))
    plan = scheduled(WavePlan.from_json(job["plan"]), run_dir)
    set_up_logging(debug=plan.debug)
    gevent.get_hub().SYSTEM_ERROR = ()  # a SystemExit in a greenlet of the user's file ends that greenlet, not us
    tell_where_on_request()
    target = Target(plan)
    prepare()
    address = commands.readline().decode().strip()
    if not address:
        return
    end_with_parent(commands)
    connect_with(WorkerKeys.from_json(job["keys"]), address)
    Worker(plan, job["worker"], target, run_dir).run()


if __name__ == "__main__":
    main()
