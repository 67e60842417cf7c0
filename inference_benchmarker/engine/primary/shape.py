"""The wave as a Locust load shape: it owns the token bucket and says when the wave is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gevent.event import Event
from locust import LoadTestShape

from inference_benchmarker.engine.locust.runtime import START

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

    def hand_out(self, starts: dict[str, tuple[int, int]]) -> None:
        """Start every worker on its stripe: at wave start on its own monotonic clock, and with a limit in flight."""
        for client_id, (t0, cap) in starts.items():
            self.runner.send_message(START, {"t0": t0, "cap": cap}, client_id)

    def end(self) -> None:
        """Let the next tick end the test."""
        self._over.set()
