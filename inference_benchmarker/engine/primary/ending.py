"""The end of a wave as the primary leads to it: by the plan, by a stop, or by an abort."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.locust.runtime import STOP
from inference_benchmarker.engine.primary.steering import LEAD_NS
from inference_benchmarker.plan.steering import whole_ms
from inference_benchmarker.wave.spool.spool import COMMAND_GONE, PLANNED, STOP_ASKED
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.engine.primary.clocks import Clocks
    from inference_benchmarker.engine.primary.launcher_channel import Parent
    from inference_benchmarker.engine.primary.logbook import Logbook
    from inference_benchmarker.engine.primary.members import Member, Members
    from inference_benchmarker.engine.primary.transport import Transport
    from inference_benchmarker.plan.pacing import TokenBucket

STOP_NOTICE_NS = 50_000_000  # so that every worker hears of a stop before it takes effect
GRACE_NS = 10 * NS
ABORT_GRACE_NS = NS
SILENT_NS = 30 * NS


class Ending:
    """Stops the wave, and knows whose last report is overdue. ``is_asked``: somebody stopped it."""

    def __init__(
        self,
        bucket: TokenBucket,
        drain_ns: int,
        *,
        members: Members,
        transport: Transport,
        logbook: Logbook,
        parent: Parent,
        clocks: Clocks,
    ) -> None:
        self._bucket = bucket
        self._drain_ns = drain_ns
        self._members = members
        self._transport = transport
        self._logbook = logbook
        self._parent = parent
        self._clocks = clocks
        self._stop_at: int | None = None
        self._aborted_at: int | None = None

    @property
    def is_asked(self) -> bool:
        """Tells whether the wave was stopped, before it began or since."""
        return self._stop_at is not None

    @property
    def is_aborted(self) -> bool:
        """Tells whether nothing is to be waited for any more."""
        return self._aborted_at is not None

    def stop(self, cause: str = STOP_ASKED, *, abort: bool = False, **facts: Any) -> None:
        """Nothing that is due later is sent; what is in flight is waited for, but where it is an ``abort``.

        The workers are informed, and the spool with whatever ``facts`` belong to the cause.
        """
        if not self._logbook.is_begun:
            self._stop_at = 0
            self._members.changed.set()
            return
        planned, now = cause == PLANNED, self._logbook.now()
        at = self._in_force(planned=planned, abort=abort, now=now)
        if self._stop_at is None or at < self._stop_at:
            self._stop_at = at
            self._logbook.note(event="stop", at=at, cause=cause, **facts)
        self._transport.send(STOP, {"at": self._stop_at, "abort": abort, "planned": planned})

    def _in_force(self, *, planned: bool, abort: bool, now: int) -> int:
        """The instant at which a stop that is sent now takes effect."""
        if planned:
            return whole_ms(now + LEAD_NS + self._clocks.lead_ns)
        return now if abort else now + STOP_NOTICE_NS + self._clocks.lead_ns

    def abort(self) -> None:
        """A second Ctrl-C, or the parent is gone: end now, with what there is."""
        if self._aborted_at is None and self._logbook.is_begun:
            self._aborted_at = self._logbook.now()
        self.stop(COMMAND_GONE if self._parent.is_gone else STOP_ASKED, abort=True)

    def make_up(self) -> None:
        """Stop the wave that has just begun, where a stop came while the start was sent to the workers."""
        if self._stop_at is not None:
            self._stop_at = None
            gone = self._parent.is_gone
            self.stop(COMMAND_GONE if gone else STOP_ASKED, abort=gone)

    def is_overdue(self, member: Member) -> bool:
        """Tells whether a worker's last report should have come long ago: its event loop is blocked for good."""
        if self._aborted_at is not None:
            return self._logbook.now() > self._aborted_at + ABORT_GRACE_NS
        end = self._bucket.surely_over_ns(self._stop_at)
        if end is not None:
            silent = time.monotonic_ns() > member.last_report + GRACE_NS // 2  # one that reports is late, not gone
            return silent and self._logbook.now() > end + self._drain_ns + GRACE_NS + self._clocks.patience_ns
        return time.monotonic_ns() > member.last_report + self._drain_ns + SILENT_NS + self._clocks.patience_ns
