"""The names that inference servers give queue length, running requests, cache, tokens and GPU on their metrics pages.

An item lists every name it has had; the first that is there counts. Sources: the servers' own documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["gauge", "counter", "histogram"]

DEFAULTS: dict[str, tuple[str, ...]] = {
    "gauge": ("Average", "Maximum", "Last"),
    "counter": ("Rate", "Total"),
    "histogram": ("Average", "p50", "p90", "p99", "Minimum", "Maximum"),
    "summary": ("Average", "Total"),
}
"""The statistics of a metric that names none: Rate is per second, Total the gain over the window."""


@dataclass(frozen=True, slots=True)
class Item:
    """One quantity: its name in reports, what it is, and its selectors, newest first. ``optional``: many lack it."""

    name: str
    kind: Kind
    sources: tuple[str, ...]
    unit: str | None = None
    optional: bool = False


def _gauge(name: str, unit: str, *sources: str, optional: bool = False) -> Item:
    return Item(name, "gauge", sources, unit, optional)


def _counter(name: str, *sources: str, optional: bool = False) -> Item:
    return Item(name, "counter", sources, None, optional)


def _times(name: str, *sources: str) -> Item:
    return Item(name, "histogram", sources, "Seconds", optional=True)


PRESETS: dict[str, tuple[Item, ...]] = {
    "vllm": (
        _gauge("queue_length", "Count", "vllm:num_requests_waiting", "ray_vllm_num_requests_waiting"),
        _gauge("running_requests", "Count", "vllm:num_requests_running", "ray_vllm_num_requests_running"),
        _gauge(
            "kv_cache_use",
            "Ratio",
            "vllm:kv_cache_usage_perc",
            "vllm:gpu_cache_usage_perc",
            "ray_vllm_kv_cache_usage_perc",
            "ray_vllm_gpu_cache_usage_perc",
        ),
        _counter("output_tokens", "vllm:generation_tokens_total", "ray_vllm_generation_tokens_total"),
        _counter("input_tokens", "vllm:prompt_tokens_total", "ray_vllm_prompt_tokens_total"),
        _counter("preemptions", "vllm:num_preemptions_total", "ray_vllm_num_preemptions_total", optional=True),
        _times("queue_time", "vllm:request_queue_time_seconds", "ray_vllm_request_queue_time_seconds"),
    ),
    "triton": (
        _gauge(
            "queue_length",
            "Count",
            'nv_trt_llm_request_metrics{request_type="waiting"}',
            "vllm:num_requests_waiting",
            "nv_inference_pending_request_count",
        ),
        _gauge(
            "running_requests",
            "Count",
            'nv_trt_llm_request_metrics{request_type="scheduled"}',
            'nv_trt_llm_request_metrics{request_type="active"}',
            "vllm:num_requests_running",
            optional=True,
        ),
        _gauge(
            "kv_cache_use",
            "Ratio",
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction"}',
            "vllm:kv_cache_usage_perc",
            "vllm:gpu_cache_usage_perc",
            optional=True,
        ),
        _counter(
            "output_tokens",
            "vllm:generation_tokens_total",
            'nv_llm_output_token_len_sum{response_metric_type="total_output_tokens"}',
            optional=True,
        ),
        _counter("requests", "nv_inference_request_success"),
        _counter("failed_requests", "nv_inference_request_failure"),
        _counter("queue_time_us", "nv_inference_queue_duration_us"),
        _counter("compute_time_us", "nv_inference_compute_infer_duration_us"),
        _gauge("gpu_use", "Ratio", "nv_gpu_utilization", optional=True),
        _gauge("gpu_memory_used", "Bytes", "nv_gpu_memory_used_bytes", optional=True),
        _gauge("gpu_memory_total", "Bytes", "nv_gpu_memory_total_bytes", optional=True),
    ),
    "dcgm": (
        _gauge("gpu_use", "Percent", "DCGM_FI_DEV_GPU_UTIL", "dcgm_gpu_utilization"),
        _gauge("gpu_engine_active", "Ratio", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", optional=True),
        _gauge("gpu_tensor_active", "Ratio", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", optional=True),
        _gauge("gpu_memory_bandwidth_use", "Percent", "DCGM_FI_DEV_MEM_COPY_UTIL", "dcgm_mem_copy_utilization"),
        _gauge("gpu_memory_used", "Mebibytes", "DCGM_FI_DEV_FB_USED", "dcgm_fb_used"),
        _gauge("gpu_memory_free", "Mebibytes", "DCGM_FI_DEV_FB_FREE", "dcgm_fb_free"),
        _gauge("gpu_power", "Watts", "DCGM_FI_DEV_POWER_USAGE", "dcgm_power_usage", optional=True),
    ),
    "tgi": (
        _gauge("queue_length", "Count", "tgi_queue_size"),
        _gauge("running_requests", "Count", "tgi_batch_current_size"),
        _gauge("batch_max_tokens", "Count", "tgi_batch_current_max_tokens", optional=True),
        _counter("output_tokens", "tgi_request_generated_tokens_sum"),
        _counter("input_tokens", "tgi_request_input_length_sum"),
        _times("queue_time", "tgi_request_queue_duration"),
    ),
    "sglang": (
        _gauge("queue_length", "Count", "sglang:num_queue_reqs"),
        _gauge("running_requests", "Count", "sglang:num_running_reqs"),
        _gauge("kv_cache_use", "Ratio", "sglang:token_usage"),
        _counter("output_tokens", "sglang:generation_tokens_total"),
        _counter("input_tokens", "sglang:prompt_tokens_total"),
        _gauge("prefix_cache_hit_rate", "Ratio", "sglang:cache_hit_rate", optional=True),
        _times("queue_time", "sglang:queue_time_seconds", "sglang:queue_time"),
    ),
    "torchserve": (
        _counter("requests", "ts_inference_requests_total"),
        _counter("queue_time_us", "ts_queue_latency_microseconds"),
        _counter("inference_time_us", "ts_inference_latency_microseconds"),
        _gauge("queue_time", "Milliseconds", "QueueTime", optional=True),
        _gauge("gpu_use", "Percent", "GPUUtilization", optional=True),
        _gauge("gpu_memory_use", "Percent", "GPUMemoryUtilization", optional=True),
        _gauge("gpu_memory_used", "Megabytes", "GPUMemoryUsed", optional=True),
        _gauge("cpu_use", "Percent", "CPUUtilization", optional=True),
        _gauge("memory_use", "Percent", "MemoryUtilization", optional=True),
    ),
}
