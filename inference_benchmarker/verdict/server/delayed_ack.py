"""The pattern of a server that waits for delayed acknowledgements. Pure.

A server that writes an answer in two pieces (its head, then its body) without TCP_NODELAY holds the second one back
until the first is acknowledged (Nagle's algorithm, RFC 896). The client's system delays that acknowledgement, by 40 ms
on Linux (TCP_DELACK_MIN; RFC 1122 allows 500 ms), but not for the first answers of a connection. So the latencies of
the very same requests have two clusters, 40 ms apart, and next to nothing between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.verdict.server.platform_metrics import Remark
from inference_benchmarker.words.wording import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.summary.summary import Summary

DELAY_S = 0.04
_FAST_S = 0.02  # the cluster without the delay ends there, from the fastest on
_SLOW_S = (0.0395, 0.055)  # the one with it lies there: timers are late, never early
_LEAST_FAST = 5
_LEAST_SLOW = 0.5
"""Seen of http.server: 58 to 86% at 40 to 150 requests a second. A part of the answers that sleeps 40 ms is less."""
_MOST_BETWEEN = 0.02


def delayed_ack(summary: Summary) -> Iterator[Remark]:
    """The remark where the latencies of the ok requests have that pattern.

    At least five are within 20 ms of the fastest, at most 2% lie between, and half and more come 39.5 to 55 ms after
    the fastest.
    """
    latency = summary.latency
    if latency is None:
        return
    fastest, number = latency.minimum, latency.count
    fast, early, late = (latency.below(fastest + after) for after in (_FAST_S, *_SLOW_S))
    slow = (late - early) / number
    if fast >= _LEAST_FAST and early - fast <= _MOST_BETWEEN * number and slow >= _LEAST_SLOW:
        yield Remark(
            "delayed_ack",
            f"{slow:.0%} of the answers took {duration_text(DELAY_S)} longer than the fastest "
            f"({duration_text(fastest)}), with hardly any in between, as if the server sent an answer in several small "
            "writes and waited for a delayed acknowledgement",
            "If nothing there takes 40 ms by itself, set TCP_NODELAY on the server's connections (in a handler of "
            "Python's http.server: disable_nagle_algorithm = True), or send head and body in one write.",
        )
