"""The instances that serve one endpoint: their queue, what it remembers, their metrics, and what scales them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.aws.gauges import Gauges
from inference_benchmarker.embedded.aws.models import ModelCache
from inference_benchmarker.embedded.aws.scaling import EndpointScaling
from inference_benchmarker.embedded.aws.telemetry import ONLY_VARIANT, Place, Telemetry
from inference_benchmarker.embedded.body_cache import BodyCache
from inference_benchmarker.embedded.exchange import Alarm
from inference_benchmarker.embedded.http.messages import HttpError
from inference_benchmarker.embedded.llm.engine import Engine
from inference_benchmarker.embedded.queueing.routed import queues
from inference_benchmarker.embedded.service_times import service_times
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from inference_benchmarker.embedded.aws.metric_store import MetricStore
    from inference_benchmarker.embedded.config import EndpointConfig
    from inference_benchmarker.embedded.http.messages import Request
    from inference_benchmarker.embedded.llm.token_job import TokenJob
    from inference_benchmarker.embedded.queueing.job import Job
    from inference_benchmarker.embedded.queueing.model import QueueModel
    from inference_benchmarker.embedded.queueing.routed import RoutedQueues


class Fleet:
    """The instances of an endpoint as ``config`` has them.

    ``advance`` gets the fleet and an instant at which answers may be due. ``is_serverless``: it has no instances
    that anybody scales, and a request for which there is no room is throttled.
    """

    def __init__(
        self,
        config: EndpointConfig,
        store: MetricStore,
        loop: asyncio.AbstractEventLoop,
        advance: Callable[[Fleet, int], None],
        place: Place = ONLY_VARIANT,
        *,
        is_serverless: bool = False,
    ) -> None:
        self.config = config
        self.is_serverless = is_serverless
        self.queue = _queue(config)
        self.cache = BodyCache(config.cache_size, config.cache_speedup)
        self.models = (
            None
            if config.models_in_memory is None
            else ModelCache(config.models_in_memory, round(config.model_load_s * NS))
        )
        self.telemetry = Telemetry(config, store, place)
        self.traffic = self.telemetry.traffic(config.endpoint_name)
        self.scaling = EndpointScaling(
            config, self.telemetry, store, self._serve_with, loop, present_ns=self.queue.present_ns
        )
        self.alarm = Alarm(loop, lambda: advance(self, time.monotonic_ns()))
        self._gauges = Gauges(config, self.queue, self.models, self.telemetry, time.monotonic_ns())
        self._advance = advance
        self._is_retired = False

    @property
    def full_status(self) -> int:
        """Of the answer to a request for which there is no room."""
        return 429 if self.is_serverless else 503

    def check(self, request: Request) -> None:
        """Raises HttpError, in vLLM's words, where an LLM engine has no room for the tokens that a request needs."""
        job, engine = request.job, self.queue
        if job is None or not isinstance(engine, Engine) or engine.fits(job):
            return
        both = f"{job.prompt} in the input and {job.output} in the output"
        longest = f"This model's maximum context length is {engine.rules.longest} tokens"
        raise HttpError(400, f"{longest}. However, you requested {job.prompt + job.output} tokens ({both}).")

    def offer(self, request: Request, pieces: int) -> Job | TokenJob | None:
        """The job of a request, or None where the queue is full; what the cache has takes a part of its time."""
        if isinstance(self.queue, Engine):
            assert request.job is not None
            if pieces == 1:
                request.job.tokens_per_piece = request.job.output
            return self.queue.offer(request.complete_ns, request.job)
        digest = self.cache.digest(request.body)
        job = self.queue.offer(request.complete_ns, pieces, self.cache.part(digest))
        if job is not None:
            self.cache.keep(digest)
        return job

    def look_ahead(self) -> None:
        """All that is ready was taken: be woken when something is again; a retired fleet ends with its last."""
        next_ns = self.queue.next_ns()
        if self._is_retired and next_ns is None:
            self.alarm.close()
        else:
            self.alarm.set(next_ns)

    def sample(self, now_ns: int) -> None:
        """Once a second."""
        self._gauges.sample(now_ns)

    def publish(self, now_ns: int) -> None:
        """Hand over to CloudWatch whatever interval has ended."""
        self._gauges.publish(now_ns)
        self.telemetry.flush(now_ns)

    def retire(self, now_ns: int) -> None:
        """Nobody is sent here any more: publish what there is, scale no more, and answer those that are here."""
        self.publish(now_ns)
        self.telemetry.hand_over(now_ns)
        self.scaling.close()
        self._is_retired = True
        self.look_ahead()

    def close(self) -> None:
        """Nothing happens any more."""
        self.scaling.close()
        self.alarm.close()

    def _serve_with(self, now_ns: int, instances: int) -> None:
        """There are that many instances from now on."""
        assert not isinstance(self.queue, Engine), "nobody can ask for instances of an engine"
        self.queue.resize(now_ns, self.config.servers_of(instances))
        self._advance(self, now_ns)


def _queue(config: EndpointConfig) -> QueueModel | RoutedQueues | Engine:
    if config.engine is not None:
        return Engine(config.engine)
    return queues(config.rules, service_times(config), config.routing, config.instances, config.seed)
