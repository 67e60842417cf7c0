"""A worker's batches are sent until they are acknowledged, and a link that is cut for long takes no more than a few."""

from __future__ import annotations

import pytest

from inference_benchmarker.engine.worker.outbox import MOST_UNHEARD, PROBE_S, RESEND_AFTER_S, Outbox

HIGH_WATER_MARK = 1_000  # of ZeroMQ


class Link:
    """A clock, and what was sent by it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sent: list[bytes] = []
        self.outbox = Outbox(self.sent.append, lambda: self.now)

    def run(self, seconds: float) -> None:
        """As a worker does: a batch each half second, and a look at those that were not acknowledged."""
        for _ in range(round(2 * seconds)):
            self.now += 0.5
            self.outbox.add(f"{self.outbox.next_sequence}".encode())
            self.outbox.resend()


def test_what_is_acknowledged_is_sent_once() -> None:
    link = Link()
    for sequence in range(20):
        link.run(0.5)
        link.outbox.acknowledge(sequence)
    assert link.sent == [f"{sequence}".encode() for sequence in range(20)]
    assert len(link.outbox) == 0


def test_what_is_not_acknowledged_is_sent_again() -> None:
    link = Link()
    link.outbox.add(b"first")
    link.now = RESEND_AFTER_S + 0.1
    link.outbox.resend()
    link.outbox.resend()
    assert link.sent == [b"first", b"first"]


def test_a_batch_that_cannot_be_sent_is_kept_and_no_other_takes_its_place() -> None:
    """As where a worker's memory is full: what a batch holds is in no other one."""
    sent: list[bytes] = []

    def send(batch: bytes) -> None:
        if not sent and batch == b"first" and now[0] == 0:
            raise MemoryError
        sent.append(batch)

    now = [0.0]
    outbox = Outbox(send, lambda: now[0])
    with pytest.raises(MemoryError):
        outbox.add(b"first")
    outbox.add(b"second")
    now[0] = RESEND_AFTER_S + 0.1
    outbox.resend()
    assert (sent, outbox.next_sequence) == ([b"second", b"first", b"second"], 2)


def test_behind_a_link_that_is_cut_for_an_hour_no_more_is_queued_than_fits() -> None:
    link = Link()
    link.run(3_600)
    assert len(link.sent) <= MOST_UNHEARD + 3_600 / PROBE_S + 1 < HIGH_WATER_MARK
    assert len(link.outbox) == 7_200


def test_once_the_link_is_mended_everything_comes_in_order_again() -> None:
    """The primary takes the next one only, so what came too early comes again."""
    link = Link()
    link.run(120)
    expected = 0
    for _ in range(4_000):
        waiting, link.sent[:] = link.sent[:], []
        for batch in waiting:
            if int(batch) <= expected:
                link.outbox.acknowledge(int(batch))
                expected = max(expected, int(batch) + 1)
        if not len(link.outbox):
            break
        link.now += 0.5
        link.outbox.resend()
    assert (len(link.outbox), expected) == (0, 240)
    assert link.now < 120 + 60
