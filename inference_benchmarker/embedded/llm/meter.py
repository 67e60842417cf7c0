"""vLLM's metrics of the embedded LLM engine, under vLLM's names: https://docs.vllm.ai/en/latest/usage/metrics.html."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.embedded.prometheus_text import Histogram, family
from inference_benchmarker.embedded.protocols.dialects import MODEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.embedded.llm.rules import EngineRules
    from inference_benchmarker.embedded.llm.scheduler import Step
    from inference_benchmarker.embedded.llm.token_job import TokenJob

_LABELS = f'model_name="{MODEL}",engine="0"'
# vLLM's bounds, in seconds and tokens.
_TTFT = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1,
    2.5,
    5,
    7.5,
    10,
    20,
    40,
    80,
    160,
    640,
    2560,
)
_ITL = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_REQUEST = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
_STEP_TOKENS = tuple(float(2**power) for power in (0, *range(3, 15)))
_TOKENS = tuple(float(first * 10**power) for power in range(6) for first in (1, 2, 5))


class Meter:
    """The engine's counters and histograms, which it keeps up to date."""

    def __init__(self, rules: EngineRules) -> None:
        self._rules = rules
        self.steps = 0
        self.preemptions = 0
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.queried_tokens = 0
        self.output_tokens = 0
        self.requests = 0
        self.aborted = 0
        self._ttft, self._itl, self._tpot = Histogram(_TTFT), Histogram(_ITL), Histogram(_ITL)
        self._latency, self._queue, self._inference, self._prefill, self._decode = (
            Histogram(_REQUEST) for _ in range(5)
        )
        self._prompts, self._outputs = Histogram(_TOKENS, 1), Histogram(_TOKENS, 1)
        self._step_tokens = Histogram(_STEP_TOKENS, 1)

    def started(self, job: TokenJob) -> None:
        """A request has its place for the first time; its prompt was looked for in the cache."""
        assert job.start_ns is not None
        self.queried_tokens += job.prompt
        self.cached_tokens += job.cached or 0
        self._queue.observe(job.start_ns - job.arrival_ns)

    def stepped(self, step: Step, gap_ns: int) -> None:
        """A step ended so long after the one before, from which each of those that decode had its last token."""
        self.steps += 1
        self.output_tokens += step.decodes
        self._itl.observe(gap_ns, step.decodes)
        self._step_tokens.observe(step.decodes + sum(chunk.tokens for chunk in step.chunks))

    def began_answer(self, job: TokenJob) -> None:
        """A prompt is done, and the first token of its answer is there."""
        assert job.first_token_ns is not None
        self.prompt_tokens += job.prompt
        self.output_tokens += 1
        self._ttft.observe(job.first_token_ns - job.arrival_ns)

    def resumed(self, gap_ns: int) -> None:
        """The first token of a request since it was preempted, so long after the one before."""
        self.output_tokens += 1
        self._itl.observe(gap_ns)

    def finished(self, job: TokenJob) -> None:
        """A request has its last token."""
        assert job.start_ns is not None
        assert job.first_token_ns is not None
        assert job.finish_ns is not None
        self.requests += 1
        self._latency.observe(job.finish_ns - job.arrival_ns)
        self._inference.observe(job.finish_ns - job.start_ns)
        self._prefill.observe(job.first_token_ns - job.start_ns)
        self._decode.observe(job.finish_ns - job.first_token_ns)
        if job.output > 1:
            self._tpot.observe((job.finish_ns - job.first_token_ns) // (job.output - 1))
        self._prompts.observe(job.prompt)
        self._outputs.observe(job.output)

    def render(self, running: int, waiting: int, kv_used: float) -> str:
        """Everything in Prometheus' text format 0.0.4; the three as they stand."""
        return "".join(self._families(running, waiting, kv_used))

    def _families(self, running: int, waiting: int, kv_used: float) -> Iterator[str]:
        for name, meaning, value in (
            ("num_requests_running", "Requests in the batch.", running),
            ("num_requests_waiting", "Requests that wait for a place.", waiting),
            ("kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1.", kv_used),
        ):
            yield _single(name, "gauge", meaning, value)
        for name, meaning, value in (
            ("num_preemptions_total", "Requests that lost their place.", self.preemptions),
            ("prompt_tokens_total", "Tokens of prompts that are done.", self.prompt_tokens),
            ("prompt_tokens_cached_total", "Tokens of prompts that came from the cache.", self.cached_tokens),
            ("generation_tokens_total", "Tokens of answers.", self.output_tokens),
            ("prefix_cache_queries_total", "Tokens that the cache was asked for.", self.queried_tokens),
            ("prefix_cache_hits_total", "Tokens that it had.", self.cached_tokens),
        ):
            yield _single(name, "counter", meaning, value)
        ends = ((self.requests, "length"), (self.aborted, "abort"))
        name = "vllm:request_success_total"
        lines = [f'{name}{{{_LABELS},finished_reason="{reason}"}} {number}' for number, reason in ends]
        yield family(name, "counter", "Requests that are done.", lines)
        config = f',block_size="{self._rules.block_size}",num_gpu_blocks="{self._rules.blocks}"'
        yield _single("cache_config_info", "gauge", "The KV cache.", 1, config)
        for name, histogram, meaning in (
            ("time_to_first_token_seconds", self._ttft, "Arrival to first token."),
            ("inter_token_latency_seconds", self._itl, "Between tokens of an answer."),
            ("request_time_per_output_token_seconds", self._tpot, "Mean of that, by request."),
            ("e2e_request_latency_seconds", self._latency, "Arrival to last token."),
            ("request_queue_time_seconds", self._queue, "Arrival to first step."),
            ("request_inference_time_seconds", self._inference, "First step to last token."),
            ("request_prefill_time_seconds", self._prefill, "First step to first token."),
            ("request_decode_time_seconds", self._decode, "First token to last."),
            ("request_prompt_tokens", self._prompts, "Tokens of a prompt."),
            ("request_generation_tokens", self._outputs, "Tokens of an answer."),
            ("iteration_tokens_total", self._step_tokens, "Tokens that a step computed."),
        ):
            yield family(f"vllm:{name}", "histogram", meaning, histogram.lines(f"vllm:{name}", _LABELS))


def _single(name: str, kind: str, meaning: str, value: float, labels: str = "") -> str:
    return family(f"vllm:{name}", kind, meaning, [f"vllm:{name}{{{_LABELS}{labels}}} {value}"])
