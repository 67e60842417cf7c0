"""The workers' reports: each is written down once and in order, and then acknowledged."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.hosts.clocks import FASTEST_DRIFT
from inference_benchmarker.engine.locust.runtime import ACK
from inference_benchmarker.records.batch import Report

if TYPE_CHECKING:
    from inference_benchmarker.engine.primary.logbook import Logbook
    from inference_benchmarker.engine.primary.members import Members
    from inference_benchmarker.engine.primary.transport import Transport


class Reports:
    """Takes the workers' batches."""

    def __init__(self, members: Members, transport: Transport, logbook: Logbook) -> None:
        self._members = members
        self._transport = transport
        self._logbook = logbook

    def take(self, msg: Any) -> None:
        """Spool a batch, each once and in order, and acknowledge it; one that came too early comes again.

        What is no batch of its sender's is an error that Locust logs: nothing reaches the spool unread.
        """
        member, report = self._members[msg.sender], Report.of(msg.data)
        if report.worker != msg.sender:
            raise ValueError(f"worker {msg.sender} sent a batch of worker {report.worker}")
        if report.sequence > member.next_sequence or (member.over and report.sequence == member.next_sequence):
            return
        if report.sequence == member.next_sequence:
            if not self._logbook.take_batch(report.batch):
                self._members.lose(msg.sender)
                return
            member.next_sequence += 1
            member.last_report = time.monotonic_ns()
            member.ledger = report.ledger
            ours = self._logbook.now()
            ahead = report.at - ours - round(FASTEST_DRIFT * max(ours, 0))
            member.ahead_ns = ahead if member.ahead_ns is None else max(member.ahead_ns, ahead)
        self._transport.send(ACK, {"sequence": report.sequence}, msg.node_id)
        if report.final:
            member.over = True
            self._members.changed.set()
