"""The primary process: brings the workers together, starts the wave for all at one instant, spools their reports.

Standard input carries one JSON line (what to run), then commands of the parent (see ``Commands``); its end means that
the parent is gone. What the parent must know goes to it as JSON lines.
"""

from __future__ import annotations

# Locust patches the process, so it comes before everything that opens sockets.
from inference_benchmarker.engine.locust.patched import locust

# isort: split
import gc
import json
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import gevent
from gevent.fileobject import FileObject

from inference_benchmarker.engine.hosts.primary_host import OwnHost
from inference_benchmarker.engine.hosts.sampler import host_constants
from inference_benchmarker.engine.locust.runtime import ARMED, BATCH, READY, set_up_logging
from inference_benchmarker.engine.locust.zmq_keys import PrimaryKeys
from inference_benchmarker.engine.primary.clocks import Clocks
from inference_benchmarker.engine.primary.commands import Commands
from inference_benchmarker.engine.primary.ending import Ending
from inference_benchmarker.engine.primary.launcher_channel import Parent
from inference_benchmarker.engine.primary.logbook import Logbook
from inference_benchmarker.engine.primary.members import Member, Members, caps, problems, unarmed
from inference_benchmarker.engine.primary.reports import Reports
from inference_benchmarker.engine.primary.shape import TokenBucketShape
from inference_benchmarker.engine.primary.stats_files import StatsFiles
from inference_benchmarker.engine.primary.transport import Transport
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.system.time_slice import give_way
from inference_benchmarker.wave.plan_file import scheduled
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.spool.spool import DISK_FULL
from inference_benchmarker.words.redact import prepare
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inference_benchmarker.facts.client_samples import Sample

ARM_S = 10.0  # beyond what a host's silence may take that is mended


class Primary:
    """Leads one wave: from the first worker to the last report."""

    def __init__(
        self,
        plan: WavePlan,
        run_dir: RunDir,
        *,
        keys: PrimaryKeys,
        parent: Parent,
        host: OwnHost,
        also: str | None,
    ) -> None:
        self._plan = plan
        self._run_dir = run_dir
        self._parent = parent
        self._host = host
        bucket = TokenBucket.of(plan)
        self._shape = TokenBucketShape(bucket)
        self._logbook = Logbook(run_dir.spool, parent)
        self._members = Members(plan.workers, self._note_lost)
        self._constants = host_constants()  # asked while there are descriptors: strangers may take the last of them
        self._transport = Transport(
            plan, keys, locust.events, shape=self._shape, parent=parent, logbook=self._logbook, also=also
        )
        self._clocks = Clocks(parent, asked=also is not None)
        members, transport, logbook = self._members, self._transport, self._logbook
        self._ending = Ending(
            bucket,
            plan.drain_ns,
            members=members,
            transport=transport,
            logbook=logbook,
            parent=parent,
            clocks=self._clocks,
        )
        logbook.on_full = lambda: self._ending.stop(DISK_FULL)
        self._commands = Commands(
            plan,
            parent,
            members=members,
            ending=self._ending,
            transport=transport,
            logbook=logbook,
            clocks=self._clocks,
        )
        transport.hear(READY, members.take_ready)
        transport.hear(ARMED, members.take_armed)
        transport.hear(BATCH, Reports(members, transport, logbook).take)

    def run(self) -> None:
        """Lead the wave, and leave nothing behind where nobody else is left to see to it."""
        with closing(self._logbook):
            begun = self._lead()
        if self._parent.is_gone:
            self._host.end_leftovers()
        if not begun:
            return
        self._parent.tell("finished")
        self._transport.end()

    def _lead(self) -> bool:
        """The wave; False where it was not begun."""
        gevent.spawn(self._commands.obey)
        self._parent.tell("listening", port=self._transport.port, also=self._transport.also)
        if self._plan.ui:
            self._serve_page()
        if not self._gather():
            return False
        self._transport.start_users(lambda: self._members.any_over)
        self._clocks.ask(self._is_given_up)
        most = caps(self._plan, self._members)
        if not self._arm(most):
            return False
        stats = StatsFiles(self._transport.environment, self._run_dir.locust_stats)
        table = self._run_dir.client_csv if self._plan.sample_client_hw else None
        gevent.spawn(self._host.sample, gevent.sleep, self._note_samples, table)
        gc.freeze()  # what is there by now stays
        self._start_wave(most)
        self._follow()
        stats.finish()
        self._clocks.ask(lambda: self._ending.is_aborted)
        self._note_hosts()
        self._transport.note_visitors()
        self._logbook.note(event="end", at=self._logbook.now())
        return True

    def _serve_page(self) -> None:
        from inference_benchmarker.engine.primary.page import serve_page

        port = serve_page(
            self._transport.environment, lambda: [member.ledger for member in self._members], self._ending.stop
        )
        self._parent.tell("page", port=port)

    def _gather(self) -> bool:
        """Wait for every worker to have loaded its target; False when there will be no wave."""
        members = self._members
        while not members.all_met:
            members.changed.wait()
            members.changed.clear()
            if self._is_cancelled():
                return False
            self._parent.tell("gathering", missing=members.missing)
        if found := problems(members):
            self._parent.tell("failed", problems=found, armed=False)
            return False
        return True

    def _is_cancelled(self) -> bool:
        """Tells whether the user's patience ended before the wave began; the parent is informed."""
        if self._ending.is_asked:
            self._parent.tell("cancelled")
        return self._ending.is_asked

    def _arm(self, most: list[int]) -> bool:
        """Have every worker acknowledge that it could fire; False where one does not, and then none ever does."""
        members, until = self._members, time.monotonic() + ARM_S + self._clocks.patience_ns / NS
        caps = dict(zip((member.client_id for member in members), most, strict=True))
        self._shape.hand_out(caps, members.canaries)
        while members.unarmed:
            if self._is_cancelled():
                return False
            if members.any_over or time.monotonic() > until:
                self._parent.tell("failed", problems=unarmed(members), armed=True)
                return False
            members.changed.wait(timeout=0.1)
            members.changed.clear()
        return not self._is_cancelled()

    def _start_wave(self, most: list[int]) -> None:
        """Start every worker at one instant, which is written down before any of them hears of it."""
        plan, members = self._plan, self._members
        lead = NS // 5 + plan.workers * NS // 100 + self._clocks.lead_ns  # a busy machine hears it in time, too
        t0 = time.monotonic_ns() + lead + plan.warmup_ns
        for member in members:
            member.last_report = t0
        first = members[0]
        payloads = {"payloads": first.payloads, "in_turn": first.in_turn, "sessions": first.sessions}
        warmed = {} if members.warmed is None else {"warmed": members.warmed}
        self._logbook.begin(t0, caps=most, port=self._transport.port, host=self._constants, **payloads, **warmed)
        starts = self._clocks.all_theirs(t0, range(plan.workers))
        self._shape.go(dict(zip((member.client_id for member in members), starts, strict=True)))
        self._logbook.set_start(t0)
        self._note_hosts()
        self._parent.tell("started", t0=t0)
        self._ending.make_up()

    def _follow(self) -> None:
        """Until every worker's last report is in or the worker is gone."""
        while not self._members.all_over:
            self._members.changed.wait(timeout=0.1)
            self._members.changed.clear()
            for number, member in enumerate(self._members):
                if not member.over and not member.overdue and self._ending.is_overdue(member):
                    self._tell_overdue(number, member)

    def _tell_overdue(self, number: int, member: Member) -> None:
        member.overdue = True
        self._parent.tell("overdue", worker=number)
        if self._parent.is_gone:  # nobody is left who would end it and say so
            self._members.lose(number)

    def _note_lost(self, number: int) -> None:
        if self._logbook.is_begun:
            self._logbook.note(event="lost", worker=number, at=self._logbook.now())

    def _is_given_up(self) -> bool:
        return self._ending.is_asked or self._members.any_over

    def _note_hosts(self) -> None:
        """Write down what is known of the hosts by now, with how far each worker's reports were ahead of our clock."""
        if self._clocks.hosts:
            ahead = [member.ahead_ns for member in self._members]
            self._logbook.note(event="hosts", hosts=self._clocks.hosts, ahead_ns=ahead)

    def _note_samples(self, samples: Iterable[Sample]) -> None:
        self._logbook.note(event="client", samples=list(samples))


def main() -> None:
    """Run the primary as its parent's standard input says."""
    commands = FileObject(sys.stdin.fileno(), "rb", close=False)
    line = commands.readline()
    if not line:  # there is no wave after all
        return
    job = json.loads(line)
    give_way()
    run_dir = RunDir(Path(job["run_dir"]))
    plan = scheduled(WavePlan.from_json(job["plan"]), run_dir)
    set_up_logging(debug=plan.debug)
    prepare()
    keys = PrimaryKeys.from_json(job["keys"])
    parent = Parent(commands, job["status_fd"])
    host = OwnHost.from_json(job["host"])
    Primary(plan, run_dir, keys=keys, parent=parent, host=host, also=job["also"]).run()


if __name__ == "__main__":
    main()
