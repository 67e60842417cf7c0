"""The wave as a Locust load shape: it owns the token bucket and says when the wave is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gevent.event import Event
from locust import LoadTestShape

from inference_benchmarker.engine.locust.runtime import GO, START

if TYPE_CHECKING:
    from inference_benchmarker.plan.pacing import TokenBucket


class TokenBucketShape(LoadTestShape):
    """Keeps one user a worker alive while the bucket has arrivals.

    Locust asks a shape about once a second how many users it wants, too coarse to pace by, so the shape hands
    the bucket to the workers, whose schedulers spend it, and only ends the wave.
    """

    abstract = False

    def __init__(self, bucket: TokenBucket) -> None:
        super().__init__()
        self.bucket = bucket
        self._asked = False
        self._over = Event()

    def tick(self) -> tuple[int, float] | None:
        """One user a worker at first; then nothing changes until the wave is over."""
        if not self._asked:
            self._asked = True
            return self.bucket.workers, float(self.bucket.workers)
        self._over.wait()
        return None

    def hand_out(self, caps: dict[str, int], canaries: list[str | None] | None) -> None:
        """Have every worker make ready for its stripe, with a limit in flight and the answers to its canaries."""
        for client_id, cap in caps.items():
            self.runner.send_message(START, {"cap": cap, "canaries": canaries}, client_id)

    def go(self, starts: dict[str, int]) -> None:
        """Start every worker, at wave start on its own monotonic clock."""
        for client_id, t0 in starts.items():
            self.runner.send_message(GO, {"t0": t0}, client_id)

    def end(self) -> None:
        """Let the next tick end the test."""
        self._over.set()
