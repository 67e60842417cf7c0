"""The embedded LLM engine in time: steps of the scheduler, one after the other, as long as the rules say.

Pure, as the queueing model is: instants come in as arguments, and steps begin and end at the instants that the engine
computes, whenever the caller gets round to asking. So one engine serves simulations, which never wait, and the
endpoint, which does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.embedded.llm.meter import Meter
from inference_benchmarker.embedded.llm.scheduler import Scheduler, Step
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.embedded.llm.rules import EngineRules
    from inference_benchmarker.embedded.llm.token_job import TokenJob

_NS_PER_MS = NS // 1000


class Engine:
    """One engine, to which requests are offered. Instants given to it must never go backwards.

    A step begins when the one before ends, with all that have arrived until then, or with the arrival that ends
    idleness. Its operations are those of the queueing model; its one server is busy in a step.
    """

    servers = 1

    def __init__(self, rules: EngineRules) -> None:
        self.rules = rules
        self.meter = Meter(rules)
        self._scheduler = Scheduler(rules)
        self._now_ns = 0
        # The end of the step under way, or of the standstill before the next; None: nobody is there.
        self._at_ns: int | None = None
        self._step: Step | None = None
        self._stepped_ns = 0  # when the last step ended
        self._still_until_ns = 0
        self._ready: list[TokenJob] = []
        self._present = 0
        self._peak = 0
        self._present_ns = 0
        self._busy_ns = 0

    def fits(self, job: TokenJob) -> bool:
        """Tells whether there is room for the whole of its prompt and answer while nobody else is there."""
        return job.prompt + job.output <= self.rules.longest

    def offer(self, now_ns: int, job: TokenJob) -> TokenJob:
        """A request that fits arrives, and waits for its place in a step."""
        self._advance(now_ns)
        job.arrival_ns = now_ns
        self._scheduler.waiting.append(job)
        self._present += 1
        self._peak = max(self._peak, self._present)
        if self._at_ns is None:
            self._begin()
        return job

    def abort(self, now_ns: int, job: TokenJob) -> None:
        """A request that is not finished has nobody who waits for it any more."""
        self._advance(now_ns)
        self._scheduler.abort(job)
        self._ready = [each for each in self._ready if each is not job]
        self._present -= 1
        self.meter.aborted += 1

    def take_ready(self, now_ns: int) -> list[TokenJob]:
        """The jobs of whose answer a piece became ready since this was last asked, once for each piece, in order."""
        self._advance(now_ns)
        ready, self._ready = self._ready, []
        return ready

    def next_ns(self) -> int | None:
        """The next instant at which a piece may become ready while nobody arrives; None: there is none."""
        return self._at_ns

    def stall(self, now_ns: int, seconds: float) -> None:
        """It stands still from now for that long; what goes beyond the end of another standstill is added to that."""
        self._advance(now_ns)
        until = now_ns + round(seconds * NS)
        more = until - max(self._still_until_ns, now_ns)
        if more > 0:
            self._still_until_ns = until
            if self._at_ns is not None:
                self._at_ns += more

    def busy(self, now_ns: int) -> int:
        """1 in a step, else 0."""
        self._advance(now_ns)
        return int(self._step is not None)

    def queue_length(self, now_ns: int) -> int:
        """Requests without a place in the batch."""
        self._advance(now_ns)
        return len(self._scheduler.waiting)

    def present(self, now_ns: int) -> int:
        """Requests that are not finished."""
        self._advance(now_ns)
        return self._present

    def take_peak(self, now_ns: int) -> int:
        """The most requests that were present at any time since this was last asked."""
        self._advance(now_ns)
        peak, self._peak = self._peak, self._present
        return peak

    def present_ns(self, now_ns: int) -> int:
        """The integral of ``present`` up to now."""
        self._advance(now_ns)
        return self._present_ns

    def busy_ns(self, now_ns: int) -> int:
        """The time in steps up to now."""
        self._advance(now_ns)
        return self._busy_ns

    def server_ns(self, now_ns: int) -> int:
        """The time up to now."""
        self._advance(now_ns)
        return now_ns

    def kv_used(self) -> float:
        """The share of the KV cache's blocks that requests hold, from 0 to 1."""
        return self._scheduler.blocks.used / self._scheduler.blocks.count

    def metrics(self, now_ns: int) -> str:
        """The metrics of vLLM as they stand, in Prometheus' text format."""
        self._advance(now_ns)
        return self.meter.render(self._scheduler.running, len(self._scheduler.waiting), self.kv_used())

    def _advance(self, now_ns: int) -> None:
        """Everything that happens up to now, at its own instant."""
        while self._at_ns is not None and self._at_ns <= now_ns:
            self._pass_time(self._at_ns)
            if self._step is not None:
                self._end(self._step)
            self._begin()
        self._pass_time(now_ns)

    def _pass_time(self, at_ns: int) -> None:
        passed = at_ns - self._now_ns
        self._present_ns += passed * self._present
        if self._step is not None:
            self._busy_ns += passed
        self._now_ns = at_ns

    def _begin(self) -> None:
        self._step, self._at_ns = None, None
        if self._now_ns < self._still_until_ns:
            self._at_ns = self._still_until_ns
            return
        step = self._scheduler.begin()
        if step is None:
            return
        for chunk in step.chunks:
            job = chunk.job
            if job.start_ns is None:
                job.start_ns, job.cached = self._now_ns, chunk.done
                self.meter.started(job)
        for job in step.preempted:
            if job.interrupted_ns is None:
                job.interrupted_ns = self._stepped_ns
        self.meter.preemptions += len(step.preempted)
        self._step = step
        self._at_ns = self._now_ns + round(_NS_PER_MS * self._length_ms(step))

    def _length_ms(self, step: Step) -> float:
        length = 0.0
        if step.chunks:
            length = self.rules.prefill_ms[-1] + sum(self.rules.chunk_ms(done, new) for _, done, new in step.chunks)
        if step.decodes:
            length += self.rules.decode_ms(step.context, step.decodes)
        return length

    def _end(self, step: Step) -> None:
        jobs = self._scheduler.end()
        self.meter.stepped(step, self._now_ns - self._stepped_ns)
        self._stepped_ns = self._now_ns
        for job in jobs:
            if job.first_token_ns is None:
                job.first_token_ns = self._now_ns
                self.meter.began_answer(job)
            elif job.interrupted_ns is not None:
                self.meter.resumed(self._now_ns - job.interrupted_ns)
            job.interrupted_ns = None
            if job.produced == job.output:
                job.finish_ns = self._now_ns
                self._present -= 1
                self.meter.finished(job)
            if job.ends_piece:
                self._ready.append(job)
