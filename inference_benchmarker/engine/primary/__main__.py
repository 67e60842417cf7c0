"""The primary process: brings the workers together, starts the wave for all at one instant, spools their reports.

Standard input carries one JSON line (what to run), then commands of the parent: ``rate R`` or ``users N`` and ``end``
for a wave that is steered, ``stop``, ``abort``, ``aborted WHY`` (JSON), ``lost N`` and ``ping``, which is answered; its
end means that the parent is gone. What the parent must know goes to it as JSON lines.
"""

from __future__ import annotations

# Locust patches the process, so it comes before everything that opens sockets.
from inference_benchmarker.engine.patched import locust

# isort: split
import json
import logging
import os
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event
from gevent.fileobject import FileObject
from locust.env import Environment
from locust.exception import RPCError
from locust.stats import stats_history

from inference_benchmarker.engine.curve import PrimaryKeys
from inference_benchmarker.engine.leftovers import MARK, end_leftovers
from inference_benchmarker.engine.locust_runtime import (
    ACK,
    BATCH,
    CHANGE,
    READY,
    STOP,
    WaveUser,
    options,
    set_up_logging,
)
from inference_benchmarker.engine.locust_sockets import PrimarySocket, Visitors, listen_with
from inference_benchmarker.engine.primary.bounded import keep_small
from inference_benchmarker.engine.primary.members import Member, caps, problems
from inference_benchmarker.engine.primary.sampler import host_constants, sample_regularly
from inference_benchmarker.engine.primary.shape import TokenBucketShape
from inference_benchmarker.engine.primary.stats_files import StatsFiles
from inference_benchmarker.engine.primary.steering import LEAD_NS, Steering
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.steering import whole_ms
from inference_benchmarker.records.record import Report, redacted
from inference_benchmarker.units import NS
from inference_benchmarker.wave.recorded import scheduled
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.spool import ABORTED, COMMAND_GONE, DISK_FULL, PLANNED, STOP_ASKED, SpoolWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from locust.runners import MasterRunner

    from inference_benchmarker.facts.client_samples import Sample

STOP_NOTICE_NS = 50_000_000  # so that every worker hears of a stop before it takes effect
GRACE_NS = 10 * NS
ABORT_GRACE_NS = NS
SILENT_NS = 30 * NS

logger = logging.getLogger("inference_benchmarker.engine.primary")


class Primary:
    """Leads one wave."""

    def __init__(
        self, plan: WavePlan, run_dir: RunDir, keys: PrimaryKeys, commands: Iterable[bytes], status_fd: int
    ) -> None:
        self.plan = plan
        self._commands = commands
        self.run_dir = run_dir
        self.bucket = TokenBucket.of(plan)
        self._steering = Steering(plan)
        self.members = [Member() for _ in range(plan.workers)]
        self._status_fd = status_fd
        self._changed = Event()
        self._t0: int | None = None
        self._stop_at: int | None = None
        self._aborted_at: int | None = None
        self._orphaned = False
        self._spool = SpoolWriter(run_dir.spool)
        self._disk_full_told = False
        self.shape = TokenBucketShape(self.bucket)
        self._foreign_told = 0
        self._host = host_constants()  # asked while there are descriptors: strangers may take the last of them
        listen_with(keys, self._tell_of_visitors)
        self.environment, self.runner = self._make_runner()
        self.runner.register_message(READY, self._on_ready)
        self.runner.register_message(BATCH, self._on_batch)

    def run(self) -> None:
        """Lead the wave from the first worker to the last report."""
        with closing(self._spool):
            begun = self._lead()
        if self._orphaned:  # nobody else is left to do it
            end_leftovers(os.environ.get(MARK, ""), [member.pid for member in self.members if member.pid])
        if not begun:
            return
        self._tell("finished")
        self.shape.end()
        self.runner.greenlet.join(timeout=5)

    def _lead(self) -> bool:
        """The wave; False where it was not begun."""
        gevent.spawn(self._listen_to_parent)
        self._tell("listening", port=self.runner.server.port)
        if self.plan.ui:
            self._serve_page()
        if not self._gather():
            return False
        self._start_users()
        if self._cancelled():
            return False
        stats = StatsFiles(self.environment, self.run_dir.locust_stats)
        self._start_sampler()
        self._start_wave()
        self._follow()
        stats.finish()
        self._note_visitors(self.runner.server.visitors)
        self._note(event="end", at=self._now())
        return True

    def stop(self) -> None:
        """One Ctrl-C: nothing that is due later is sent; what is in flight is waited for."""
        self._broadcast_stop(STOP_ASKED, abort=False)

    def _make_runner(self) -> tuple[Environment, MasterRunner]:
        environment = Environment(
            user_classes=[WaveUser],
            events=locust.events,
            shape_class=self.shape,
            parsed_options=options(self.plan.url),
            host=self.plan.url,
        )
        try:
            runner = environment.create_master_runner("127.0.0.1", self.plan.port or 0)
        except RPCError as error:
            self._tell("failed", problems=[_port_problem(self.plan.port, error)])
            raise SystemExit(2) from None
        assert isinstance(runner.server, PrimarySocket), "Locust made a socket of its own, without keys"
        runner.handle_message = _surviving(runner.handle_message)
        return environment, runner

    def _listen_to_parent(self) -> None:
        for line in self._commands:
            words = line.decode().split()
            if words[0] == "ping":
                self._tell("alive")
            elif words[0] == "lost":
                self._lose(int(words[1]))
            elif words[0] in ("rate", "users"):
                self._change_rate(words[1])
            elif words[0] == "end":
                self._broadcast_stop(PLANNED, abort=False)
            elif words[0] == "stop":
                self.stop()
            elif words[0] == "aborted":
                self._broadcast_stop(ABORTED, abort=False, aborted=json.loads(line.partition(b" ")[2]))
            else:
                self._abort()
        self._orphaned = True
        _print_to_nobody()
        self._abort()

    def _gather(self) -> bool:
        """Wait for every worker to have loaded its target; False when there will be no wave."""
        while not all(member.ready or member.over for member in self.members):
            self._changed.wait()
            self._changed.clear()
            if self._cancelled():
                return False
            self._tell("gathering", missing=[n for n, member in enumerate(self.members) if not member.ready])
        if found := problems(self.members):
            self._tell("failed", problems=found)
            return False
        return True

    def _cancelled(self) -> bool:
        """Tells whether the user's patience ended before the wave began; the parent is told."""
        if self._stop_at is not None:
            self._tell("cancelled")
        return self._stop_at is not None

    def _start_users(self) -> None:
        """Let Locust bring up its one user a worker, and wait for them."""
        self.runner.start_shape()
        with gevent.Timeout(30, False):
            while not self.runner.spawning_completed and not any(member.over for member in self.members):
                gevent.sleep(0.005)
        if self.plan.ui:  # what its charts show
            gevent.spawn(stats_history, self.runner)
        gevent.spawn(keep_small, self.runner.stats, gevent.sleep)

    def _start_wave(self) -> None:
        lead = NS // 20 + self.plan.workers * NS // 100
        t0 = time.monotonic_ns() + lead + self.plan.warmup_ns
        wall = time.time_ns() + t0 - time.monotonic_ns()
        for member in self.members:
            member.last_report = t0
        port, most = self.runner.server.port, caps(self.plan, self.members)
        payloads = {"payloads": self.members[0].payloads, "in_turn": self.members[0].in_turn}
        known = {"caps": most, "port": port, "host": self._host, **payloads}
        self._spool.event(event="start", t0=t0, wall_ns=wall, **known)
        self.shape.hand_out(t0, dict(zip((member.client_id for member in self.members), most, strict=True)))
        self._t0 = t0
        self._tell("started", t0=t0)
        if self._stop_at is not None:  # it came while the workers were told to start
            self._stop_at = None
            self._broadcast_stop(COMMAND_GONE if self._orphaned else STOP_ASKED, abort=self._orphaned)

    def _follow(self) -> None:
        """Until every worker's last report is in or the worker is gone."""
        while not all(member.over for member in self.members):
            self._changed.wait(timeout=0.1)
            self._changed.clear()
            for number, member in enumerate(self.members):
                if not member.over and not member.overdue and self._is_overdue(member):
                    member.overdue = True
                    self._tell("overdue", worker=number)
                    if self._orphaned:  # nobody is left who would end it and say so
                        self._lose(number)

    def _is_overdue(self, member: Member) -> bool:
        """Tells whether a worker's last report should have come long ago: its event loop is blocked for good."""
        if self._aborted_at is not None:
            return self._now() > self._aborted_at + ABORT_GRACE_NS
        end = self.bucket.surely_over_ns(self._stop_at)
        if end is not None:
            silent = time.monotonic_ns() > member.last_report + GRACE_NS // 2  # one that reports is late, not gone
            return silent and self._now() > end + self.plan.drain_ns + GRACE_NS
        return time.monotonic_ns() > member.last_report + self.plan.drain_ns + SILENT_NS

    def _on_ready(self, msg: Any, **_: Any) -> None:
        member = self.members[msg.sender]
        member.client_id = msg.node_id
        member.pid, member.error = msg.data["pid"], msg.data["error"]
        member.payloads, member.in_turn = msg.data["payloads"], msg.data["in_turn"]
        member.descriptors = msg.data["descriptors"]
        member.ready = True
        self._changed.set()

    def _on_batch(self, msg: Any, **_: Any) -> None:
        """Spool a batch, each once and in order, and acknowledge it; one that came too early comes again.

        What is no batch of its sender's is an error that Locust logs: nothing reaches the spool unread.
        """
        member, report = self.members[msg.sender], Report.of(msg.data)
        if report.worker != msg.sender:
            raise ValueError(f"worker {msg.sender} sent a batch of worker {report.worker}")
        if report.sequence > member.next_sequence or (member.over and report.sequence == member.next_sequence):
            return
        if report.sequence == member.next_sequence:
            if not self._write(redacted(msg.data) if report.texts else msg.data):
                self._lose(msg.sender)
                return
            member.next_sequence += 1
            member.last_report = time.monotonic_ns()
            member.ledger = report.ledger
        self.runner.send_message(ACK, {"sequence": report.sequence}, msg.node_id)
        if report.final:
            member.over = True
            self._changed.set()

    def _write(self, batch: bytes) -> bool:
        """Spool a batch; False where no place is left for it, so that nobody may believe it stored."""
        written = True
        try:
            self._spool.batch(batch)
        except OSError:
            logger.exception("the batch of a worker cannot be written anywhere")
            written = False
        if self._spool.error is not None and not self._disk_full_told:
            self._disk_full_told = True
            logger.error("the run directory cannot be written: %s", self._spool.error)
            self._tell("disk", error=str(self._spool.error.strerror), spool=str(self._spool.path))
            self._broadcast_stop(DISK_FULL, abort=False)
        return written

    def _note(self, **event: Any) -> None:
        """Spool an event of the running wave; where it cannot be written, what is there tells as much."""
        with suppress(OSError):
            self._spool.event(**event)

    def _tell_of_visitors(self, visitors: Visitors) -> None:
        """Tell of the first foreign connection, the tenth, the hundredth; how many there were in the end is noted."""
        if visitors.foreign >= max(1, 10 * self._foreign_told):
            self._foreign_told = visitors.foreign
            self._tell("foreign_connections", count=visitors.foreign, port=visitors.port)
            if self._t0 is not None:
                self._note_visitors(visitors)

    def _note_visitors(self, visitors: Visitors) -> None:
        self._note(event="foreign_connections", count=visitors.foreign)

    def _lose(self, number: int) -> None:
        member = self.members[number]
        if not member.over:
            member.over = True
            if self._t0 is not None:
                self._note(event="lost", worker=number, at=self._now())
        self._changed.set()

    def _change_rate(self, text: str) -> None:
        """Another rate or number of users, as the parent's pilot asks: written down before any worker hears of it."""
        if self._t0 is None or self._stop_at is not None:
            return
        try:
            change = self._steering.change(text, self._now())
        except ValueError as error:
            self._tell("unchanged", reason=str(error))
            return
        if change is not None:
            facts = {"at": change.at_ns, "rate": str(change.rate)}
            self._spool.event(event="rate", **facts)
            self.runner.send_message(CHANGE, facts)

    def _abort(self) -> None:
        """A second Ctrl-C, or the parent is gone: end now, with what there is."""
        if self._aborted_at is None and self._t0 is not None:
            self._aborted_at = self._now()
        self._broadcast_stop(COMMAND_GONE if self._orphaned else STOP_ASKED, abort=True)

    def _broadcast_stop(self, cause: str, *, abort: bool, **facts: Any) -> None:
        """Tell the workers, and the spool with whatever ``facts`` belong to the cause."""
        if self._t0 is None:
            self._stop_at = 0
            self._changed.set()
            return
        planned = cause == PLANNED
        at = whole_ms(self._now() + LEAD_NS) if planned else self._now() + (0 if abort else STOP_NOTICE_NS)
        if self._stop_at is None or at < self._stop_at:
            self._stop_at = at
            self._note(event="stop", at=at, cause=cause, **facts)
        self.runner.send_message(STOP, {"at": self._stop_at, "abort": abort, "planned": planned})

    def _serve_page(self) -> None:
        from inference_benchmarker.engine.primary.page import serve_page

        port = serve_page(self.environment, lambda: [member.ledger for member in self.members], self.stop)
        self._tell("page", port=port)

    def _start_sampler(self) -> None:
        """Sample the host once a second; with --sample-client-hw also each process, into client.csv as well."""
        processes, path = {}, None
        if self.plan.sample_client_hw:
            processes = {"primary": os.getpid(), "benchmark": os.getppid()}
            processes |= {f"worker_{number}": member.pid for number, member in enumerate(self.members)}
            path = self.run_dir.client_csv
        gevent.spawn(sample_regularly, processes, gevent.sleep, self._note_samples, path)

    def _note_samples(self, samples: Iterable[Sample]) -> None:
        self._note(event="client", samples=list(samples))

    def _now(self) -> int:
        assert self._t0 is not None
        return time.monotonic_ns() - self._t0

    def _tell(self, event: str, **facts: Any) -> None:
        """Tell the parent; if it is gone, nobody is there to be told."""
        try:
            os.write(self._status_fd, json.dumps({"event": event, **facts}).encode() + b"\n")
        except BrokenPipeError:
            logger.warning("the parent is gone")


def _print_to_nobody() -> None:
    """Whoever took what this process prints is gone; a log line must not end what is left to do."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


def _port_problem(port: int | None, error: RPCError) -> dict[str, str]:
    """Why the primary cannot listen, and what to try."""
    if port is None:
        return {"message": f"The primary finds no free port on 127.0.0.1 ({error}).", "hint": ""}
    hint = "Give another port, or none: then any free one is taken."
    return {"message": f"--port {port} cannot be used ({error}).", "hint": hint}


def _surviving(handle: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
    """Locust's handling of a message; one that it cannot take would end its listener, and with it the wave."""

    def handle_message(client_id: str, msg: Any) -> None:
        try:
            handle(client_id, msg)
        except Exception:
            logger.exception("a message of worker %s cannot be handled", msg.sender)

    return handle_message


def main() -> None:
    """Run the primary as its parent's standard input says."""
    commands = FileObject(sys.stdin.fileno(), "rb", close=False)
    told = commands.readline()
    if not told:  # there is no wave after all
        return
    job = json.loads(told)
    run_dir = RunDir(Path(job["run_dir"]))
    plan = scheduled(WavePlan.from_json(job["plan"]), run_dir)
    set_up_logging(debug=plan.debug)
    keys = PrimaryKeys.from_json(job["keys"])
    primary = Primary(plan, run_dir, keys, commands, job["status_fd"])
    primary.run()


if __name__ == "__main__":
    main()
