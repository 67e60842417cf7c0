"""The words that our files are made of: a run in which they are hidden, as somebody's key, cannot be read. Pure."""

from __future__ import annotations


def is_own_word(text: str) -> bool:
    """Tells whether it is one of them, or a part of one."""
    return " " not in text and text.lower() in _OWN


# The keys of plan.json, summary.json and the other files, their columns, and the words that stand there for a kind. One
# that is a part of another, as rate is of target_rate, is left out.
_OWN = """
true false null
abandoned abort_on aborted above advice alarm_s alone_s answers asked_s aside at_least at_low at_most
attempts_per_arrival average backoff base before_stage begun_per_s below block bounds broken buckets build by_attempts
by_input_length by_label cache cached_tokens_per_s calibration called caps clear_until_s closed cloudwatch collections
comparison completed_rate condition confirmation confirmed_at constant conversations counted counts cpu_percent
cpu_share current debug descriptor_limit descriptors desired diagnosis differ dimensions direction discarded
disk_error drain_timeout_s dropped duration_s end_s end_time endpoint_name environment errors even_arrivals
events exit_code exponential expression factories_file factory_settings failed_latency findings finish_reasons
hidden fired first_payload first_s fits fixed followed foreign_connections from_rps gauge gave_up given_up
goodput grace_period hardware headline high host idle improved in_flight_end input_config input_tokens_per_s
instances interrupted interval invalid islands kept_everywhere kind labels lag_p99_s late_changes latency_p50_s
latency_p99_s ledger left_behind limited_by limits_missed load_rose_s load_timeout_s locked loopback_down_s
locust_file lognormal longest_s looked_at loop_delay lost_workers lower_bound_from max_answer_size max_in_flight
max_rss_bytes mean measured memory namespace next none not_told num_requests number open_sessions opened outcome
output_dir output_tokens_per_s over_s overhead_s p99_9 pauses payload_arguments payloads pending phases
planned_s poisson port primary_lost processes prometheus purpose rates recorded records recovery refused remarks
repeated repeats replay request_latency request_throughput request_timeout_s requests_per_s resources
response_time_p99_s retries round routing rows run_dir runs sample_client_hw samples scheduled schema_version
seconds seed seen sent_each series_of served_s server_logs server_metrics server_rps servers service_20_shorter
severity share_over side silence_s since_s slos_met_share spans stages start_s start_time start_unix_ns
start_unix_s starved_share statistics status stdev steered step_s steps stopped_at_s stream stretches strict
success_by_user success_rate success_threshold suspended t0_monotonic_ns target texts times to_rps
tokens_in_per_request tokens_in_per_s tokens_out_per_request tokens_out_per_s_per_request tokens_per_s total_s
tpot ttft_p99_s twin unanswered unchanged undecided uniform textless unit unlike user_metrics user_time value
verdict void waiting warmup_s warning waves what_if where_time_went windows worse
built_on client.csv counts.parquet digest files instances.jsonl plan.json requests.parquet server_metrics.json
summary.txt timeline.csv
hosts join_timeout_s max_clock_error_s listen pass_env with_files requirements versions clock offset_s uncertainty_s
host_keys drift_ppm round_trip_s jump_s slew_ppm ahead_s steal
sessions session turn turns think think_s think_ns ended prompts
zone instance_type
expect model_mix schema share canary canary_differs canary_swapped
configurations cost_hour currency price_origin unusable cached_reported throughput frontier end_to_end_p90 uncached
pareto.json
tier tiers shared shared_s shared_void_s after_overload tiers.json
canaries characters per_request output_sd tokens_each token_costs reference equal asked comparable differing by_text
by_length ratio cost_per_million_output ranking.csv
stage refused searches engine grid what_if input_tokens output_tokens use predicted beyond constants streams idle
decodes context what surface.json judged_by aiperf/summary.json
"""
