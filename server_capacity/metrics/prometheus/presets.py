"""The names that inference servers give queue length, running requests, cache, tokens and GPU on their metrics pages.

An item lists every name it has had; the first that is there counts. Sources: the servers' own documentation.
"""

from __future__ import annotations

from inference_benchmarker.facts.server_metric import PREFIX_HIT_RATE
from server_capacity.metrics.prometheus.items import Item, Ratio, counter, gauge, times
from server_capacity.metrics.prometheus.vllm import VLLM, VLLM_DETAILED, VLLM_DETAILED_RATIOS, VLLM_RATIOS

DEFAULTS: dict[str, tuple[str, ...]] = {
    "gauge": ("Average", "Maximum", "Last"),
    "counter": ("Rate", "Total"),
    "histogram": ("Average", "p50", "p90", "p99", "Minimum", "Maximum"),
    "summary": ("Average", "Total"),
}
"""The statistics of a metric that names none: Rate is per second, Total the gain over the window."""


PRESETS: dict[str, tuple[Item, ...]] = {
    "vllm": VLLM,
    "vllm_detailed": VLLM_DETAILED,
    "triton": (
        gauge(
            "queue_length",
            "Count",
            'nv_trt_llm_request_metrics{request_type="waiting"}',
            "vllm:num_requests_waiting",
            "nv_inference_pending_request_count",
        ),
        gauge(
            "running_requests",
            "Count",
            'nv_trt_llm_request_metrics{request_type="scheduled"}',
            'nv_trt_llm_request_metrics{request_type="active"}',
            "vllm:num_requests_running",
            optional=True,
        ),
        gauge(
            "kv_cache_use",
            "Ratio",
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction"}',
            "vllm:kv_cache_usage_perc",
            "vllm:gpu_cache_usage_perc",
            optional=True,
        ),
        counter(
            "output_tokens",
            "vllm:generation_tokens_total",
            'nv_llm_output_token_len_sum{response_metric_type="total_output_tokens"}',
            optional=True,
        ),
        counter("requests", "nv_inference_request_success"),
        counter("failed_requests", "nv_inference_request_failure"),
        counter("queue_time_us", "nv_inference_queue_duration_us"),
        counter("compute_time_us", "nv_inference_compute_infer_duration_us"),
        gauge("gpu_use", "Ratio", "nv_gpu_utilization", optional=True),
        gauge("gpu_memory_used", "Bytes", "nv_gpu_memory_used_bytes", optional=True),
        gauge("gpu_memory_total", "Bytes", "nv_gpu_memory_total_bytes", optional=True),
    ),
    "dcgm": (
        gauge("gpu_use", "Percent", "DCGM_FI_DEV_GPU_UTIL", "dcgm_gpu_utilization"),
        gauge("gpu_engine_active", "Ratio", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", optional=True),
        gauge("gpu_tensor_active", "Ratio", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", optional=True),
        gauge("gpu_memory_bandwidth_use", "Percent", "DCGM_FI_DEV_MEM_COPY_UTIL", "dcgm_mem_copy_utilization"),
        gauge("gpu_memory_used", "Mebibytes", "DCGM_FI_DEV_FB_USED", "dcgm_fb_used"),
        gauge("gpu_memory_free", "Mebibytes", "DCGM_FI_DEV_FB_FREE", "dcgm_fb_free"),
        gauge("gpu_power", "Watts", "DCGM_FI_DEV_POWER_USAGE", "dcgm_power_usage", optional=True),
        gauge("gpu_sm_active", "Ratio", "DCGM_FI_PROF_SM_ACTIVE", optional=True),
        gauge("gpu_temperature", "Celsius", "DCGM_FI_DEV_GPU_TEMP", optional=True),
        gauge("gpu_memory_temperature", "Celsius", "DCGM_FI_DEV_MEMORY_TEMP", optional=True),
    ),
    "node": (
        gauge("load_1min", "Count", "node_load1"),
        gauge("memory_available", "Bytes", "node_memory_MemAvailable_bytes"),
    ),
    "tgi": (
        gauge("queue_length", "Count", "tgi_queue_size"),
        gauge("running_requests", "Count", "tgi_batch_current_size"),
        gauge("batch_max_tokens", "Count", "tgi_batch_current_max_tokens", optional=True),
        counter("output_tokens", "tgi_request_generated_tokens_sum"),
        counter("input_tokens", "tgi_request_input_length_sum"),
        times("queue_time", "tgi_request_queue_duration"),
    ),
    "sglang": (
        gauge("queue_length", "Count", "sglang:num_queue_reqs"),
        gauge("running_requests", "Count", "sglang:num_running_reqs"),
        gauge("kv_cache_use", "Ratio", "sglang:token_usage"),
        counter("output_tokens", "sglang:generation_tokens_total"),
        counter("input_tokens", "sglang:prompt_tokens_total"),
        gauge(PREFIX_HIT_RATE, "Ratio", "sglang:cache_hit_rate", optional=True),
        times("queue_time", "sglang:queue_time_seconds", "sglang:queue_time"),
    ),
    "torchserve": (
        counter("requests", "ts_inference_requests_total"),
        counter("queue_time_us", "ts_queue_latency_microseconds"),
        counter("inference_time_us", "ts_inference_latency_microseconds"),
        gauge("queue_time", "Milliseconds", "QueueTime", optional=True),
        gauge("gpu_use", "Percent", "GPUUtilization", optional=True),
        gauge("gpu_memory_use", "Percent", "GPUMemoryUtilization", optional=True),
        gauge("gpu_memory_used", "Megabytes", "GPUMemoryUsed", optional=True),
        gauge("cpu_use", "Percent", "CPUUtilization", optional=True),
        gauge("memory_use", "Percent", "MemoryUtilization", optional=True),
    ),
}

RATIOS: dict[str, tuple[Ratio, ...]] = {"vllm": VLLM_RATIOS, "vllm_detailed": VLLM_DETAILED_RATIOS}
"""The values that follow from two counters of a preset."""
