"""The original tool, as far as this one promises to go on from it: its names, and its run directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.fake_aiperf import STATISTICS, record

if TYPE_CHECKING:
    from pathlib import Path

FLAGS = [
    "--endpoint-config",
    "--factories-file",
    "--client-rps",
    "--concurrency",
    "--obs-time",
    "--num-requests",
    "--workers",
    "--port",
    "--locust-file",
    "--no-postprocess",
    "--parent-dir",
    "--success-threshold",
    "--debug",
    "--sample-client-hw",
    "--aiperf",
    "--aiperf-only",
    "--url",
    "--api-key",
    "--aiperf-args",
    "--plot",
    "--plot-output-dir",
    "--plot-fields",
    "--plot-metadata",
    "--theme",
    "--init",
]
METRICS_FLAGS = ["--endpoint", "--start", "--end", "--end-pad", "--region", "--json"]
FILES = [
    "find_rps.log",
    "wave_window.txt",
    "locust_stats/locust_stats.csv",
    "locust_logs/",
    "requests_fired/worker_N.txt",
    "aiperf/input.jsonl",
    "aiperf/args.json",
    "aiperf/aiperf_console.log",
    "aiperf/profile_export_aiperf.csv",
    "aiperf/profile_export_aiperf.json",
    "aiperf/profile_export.jsonl",
    "aiperf/logs/aiperf.log",
]
FIELDS = (
    "Latency (ms)",
    "Duration (sec)",
    "Client RPS (req/s)",
    "Server RPS (req/s)",
    "Total Requests",
    "Total Requests Fired",
)
PARAMETERS = {
    "find_worker_saturation": [
        "factories_file",
        "start_users",
        "end_users",
        "user_step",
        "confidence_samples",
        "confidence_users_scale",
        "sample_interval_seconds",
        "client_idle_max_wait_config",
    ],
    "find_rps_saturation": [
        "factories_file",
        "saturation_users",
        "start_workers",
        "end_workers",
        "worker_step",
        "plateau_threshold",
        "confidence_samples",
        "confidence_users_scale",
        "sample_interval_seconds",
        "client_idle_max_wait_config",
    ],
}
KEYS = {
    "find_worker_saturation": [
        "saturation_users",
        "confidence_users",
        "confidence_samples",
        "mean_fired",
        "std_fired",
        "min_fired",
        "max_fired",
        "fired_counts",
        "hw_metrics",
        "hw_metrics_list",
        "hw_deltas",
        "baseline",
        "run_dir",
    ],
    "find_rps_saturation": [
        "saturation_workers",
        "saturation_requests",
        "users_per_worker",
        "results",
        "confidence_workers",
        "confidence_samples",
        "confidence_fired",
        "confidence_mean",
        "confidence_std",
        "confidence_hw_list",
        "run_dir",
    ],
    "find_file_descriptors_limit": ["system_wide", "per_process"],
}
FUNCTIONS = {
    "client_capacity.client_metrics.establish_client_baseline": ["sample_seconds", "sample_interval_seconds"],
    "client_capacity.client_metrics.sample_client_metrics": ["duration_seconds", "sample_interval_seconds"],
    "client_capacity.client_metrics.wait_for_client_idle": ["max_wait_config", "check_interval", "print_header"],
    "client_capacity.aiperf_extension.payload_factory_to_jsonl": ["factories_file", "output_path"],
}
WAIT_KEYS = ["wait_limit", "max_wait_seconds", "cpu_threshold", "cpu_tolerance", "memory_threshold", "memory_tolerance"]
EXAMPLES = ["factories_cnn", "factories_ic", "factories_llm_textgeneration", "factories_llm_textgeneration_stream"]
LOCUST_FILES = [
    "locust_user",
    "locust_user_concurrency",
    "locust_user_num_requests",
    "locust_user_concurrency_num_requests",
]


def original_run(folder: Path, *, aiperf: bool = True) -> Path:
    """A run directory as the original tool leaves it: of a wave, and of aiperf after it."""
    for name in ("locust_stats", "locust_logs", "requests_fired", "aiperf"):
        (folder / name).mkdir(parents=True)
    (folder / "find_rps.log").write_text("RESULTS\n")
    (folder / "wave_window.txt").write_text("1763900000.0\n1763900060.0\n")
    (folder / "locust_stats" / "locust_stats.csv").write_text("Type,Name,Request Count\n,Aggregated,60\n")
    (folder / "requests_fired" / "worker_0.txt").write_text("60")
    if aiperf:
        (folder / "aiperf" / "args.json").write_text("{}")
        (folder / "aiperf" / "profile_export.jsonl").write_text(json.dumps(record(100, 101)) + "\n")
        (folder / "aiperf" / "profile_export_aiperf.json").write_text(json.dumps(STATISTICS))
        (folder / "aiperf" / "profile_export_aiperf.csv").write_text(
            "Metric,avg,p99\nTime to First Token (ms),2.0,3.5\n"
        )
    return folder
