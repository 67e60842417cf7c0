"""vLLM's metrics: those that every report wants, the rest of them, and what follows from its counters.

https://docs.vllm.ai/en/latest/usage/metrics.html and https://docs.vllm.ai/en/latest/design/metrics.html
"""

from __future__ import annotations

from inference_benchmarker.facts.server_metric import PREFIX_HIT_RATE, PREFIX_HITS, PREFIX_QUERIES
from server_capacity.metrics.prometheus.items import Ratio, counter, gauge, sizes, times

VLLM = (
    gauge("queue_length", "Count", "vllm:num_requests_waiting", "ray_vllm_num_requests_waiting"),
    gauge("running_requests", "Count", "vllm:num_requests_running", "ray_vllm_num_requests_running"),
    gauge(
        "kv_cache_use",
        "Ratio",
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
        "ray_vllm_kv_cache_usage_perc",
        "ray_vllm_gpu_cache_usage_perc",
    ),
    counter("output_tokens", "vllm:generation_tokens_total", "ray_vllm_generation_tokens_total"),
    counter("input_tokens", "vllm:prompt_tokens_total", "ray_vllm_prompt_tokens_total"),
    counter("preemptions", "vllm:num_preemptions_total", "ray_vllm_num_preemptions_total", optional=True),
    times("queue_time", "vllm:request_queue_time_seconds", "ray_vllm_request_queue_time_seconds"),
    counter(
        PREFIX_QUERIES,
        "vllm:prefix_cache_queries_total",
        "vllm:gpu_prefix_cache_queries_total",
        "ray_vllm_prefix_cache_queries_total",
        optional=True,
    ),
    counter(
        PREFIX_HITS,
        "vllm:prefix_cache_hits_total",
        "vllm:gpu_prefix_cache_hits_total",
        "ray_vllm_prefix_cache_hits_total",
        optional=True,
    ),
    counter("speculative_drafts", "vllm:spec_decode_num_drafts_total", optional=True),
    counter("speculative_draft_tokens", "vllm:spec_decode_num_draft_tokens_total", optional=True),
    counter("speculative_accepted_tokens", "vllm:spec_decode_num_accepted_tokens_total", optional=True),
)

VLLM_RATIOS = (
    Ratio(PREFIX_HIT_RATE, PREFIX_HITS, PREFIX_QUERIES),
    Ratio("speculative_acceptance_rate", "speculative_accepted_tokens", "speculative_draft_tokens"),
    # tokens of a step: those accepted, and the one that the model itself adds
    Ratio("speculative_acceptance_length", "speculative_accepted_tokens", "speculative_drafts", 1.0, "Count"),
)

VLLM_DETAILED = (
    times("e2e_request_latency", "vllm:e2e_request_latency_seconds", optional=False),
    times("time_to_first_token", "vllm:time_to_first_token_seconds", optional=False),
    times("inter_token_latency", "vllm:inter_token_latency_seconds"),  # of an engine's step, which may give many tokens
    times("time_per_output_token", "vllm:request_time_per_output_token_seconds", "vllm:time_per_output_token_seconds"),
    times("inference_time", "vllm:request_inference_time_seconds"),
    times("prefill_time", "vllm:request_prefill_time_seconds"),
    times("decode_time", "vllm:request_decode_time_seconds"),
    sizes("request_prompt_tokens", "vllm:request_prompt_tokens"),
    sizes("request_generation_tokens", "vllm:request_generation_tokens"),
    sizes("request_max_generation_tokens", "vllm:request_max_num_generation_tokens"),
    sizes("request_prefill_kv_computed_tokens", "vllm:request_prefill_kv_computed_tokens"),
    sizes("request_params_n", "vllm:request_params_n"),
    sizes("request_params_max_tokens", "vllm:request_params_max_tokens"),
    sizes("iteration_tokens", "vllm:iteration_tokens_total"),
    counter("requests", "vllm:request_success_total", optional=True),
    counter("cached_input_tokens", "vllm:prompt_tokens_cached_total", optional=True),
    counter("input_tokens_by_source", "vllm:prompt_tokens_by_source_total", optional=True),
    counter("external_prefix_cache_queries", "vllm:external_prefix_cache_queries_total", optional=True),
    counter("external_prefix_cache_hits", "vllm:external_prefix_cache_hits_total", optional=True),
    counter("accepted_tokens_by_position", "vllm:spec_decode_num_accepted_tokens_per_pos_total", optional=True),
    counter("flops_per_gpu", "vllm:estimated_flops_per_gpu_total", optional=True),
    counter("read_bytes_per_gpu", "vllm:estimated_read_bytes_per_gpu_total", optional=True),
    counter("write_bytes_per_gpu", "vllm:estimated_write_bytes_per_gpu_total", optional=True),
    gauge("queue_length_by_reason", "Count", "vllm:num_requests_waiting_by_reason", optional=True),
)

VLLM_DETAILED_RATIOS = (
    Ratio("external_prefix_cache_hit_rate", "external_prefix_cache_hits", "external_prefix_cache_queries"),
)
