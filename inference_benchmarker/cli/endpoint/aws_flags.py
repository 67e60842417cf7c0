"""The flags by which the embedded endpoint is AWS: its instances, their types and prices, its metrics and faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import Flag, parse_int, parse_number
from inference_benchmarker.embedded.config import LOGS_FAULTS, METRIC_FAULTS, PUBLISH_INTERVALS_S
from inference_benchmarker.embedded.synthetic_types import MOST_INSTANCES
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable


def _fault(flag: str, text: str) -> tuple[str, str]:
    """A metric, and the status that CloudWatch is to give it."""
    metric, _, status = text.partition("=")
    if not (metric and status):
        raise BenchmarkError(f"{flag} must be NAME=STATUS, as in ModelLatency={METRIC_FAULTS[0]}, not {text!r}.")
    if status not in METRIC_FAULTS:
        raise BenchmarkError(f"{flag} {text}: the status of {metric} must be one of {', '.join(METRIC_FAULTS)}.")
    return metric, status


def _of_type(parse: Callable[[str, str], Any], example: str) -> Callable[[str, str], tuple[str, Any]]:
    """The reader of TYPE=VALUE: an instance type and what is said of it."""

    def read(flag: str, text: str) -> tuple[str, Any]:
        kind, _, value = text.partition("=")
        if not (kind and value):
            raise BenchmarkError(f"{flag} must be TYPE=VALUE, as in {example}, not {text!r}.")
        return kind, parse(f"{flag} {kind}", value)

    return read


AWS_FLAGS = [
    Flag("--endpoint-name", "NAME", "endpoint to which POST /invocations is attributed"),
    Flag(
        "--instances",
        "N",
        "number of instances at the start (default {default}), which share the servers equally; an instance that is "
        "added later gets as many servers as each of them",
        parse_int,
    ),
    Flag(
        "--routing",
        "KIND",
        "where requests wait: shared (one queue for all); random or least_outstanding (one queue per instance)",
    ),
    Flag(
        "--instance-start",
        "S",
        "seconds until an added instance is in service",
        parse_number,
        sets="instance_start_s",
    ),
    Flag(
        "--time-factor",
        "X",
        "factor (at most 600) that speeds up the start of instances and Application Auto Scaling: with 60, a "
        "minute takes a second",
        parse_number,
    ),
    Flag(
        "--create-time",
        "S",
        "seconds until an endpoint that a client creates is in service (default {default}); --time-factor shortens "
        "them",
        parse_number,
        sets="create_s",
    ),
    Flag(
        "--type-servers",
        "TYPE=K",
        "servers per instance of this type, for endpoints that a client creates (repeatable)",
        _of_type(parse_int, "ml.m5.xlarge=2"),
        repeatable=True,
    ),
    Flag(
        "--type-speed",
        "TYPE=X",
        "speed of this type (repeatable): its requests take the --service-time divided by X",
        _of_type(parse_number, "ml.c5.xlarge=1.25"),
        repeatable=True,
    ),
    Flag(
        "--type-price",
        "TYPE=USD",
        "hourly price of this type in the price list (repeatable; default: none)",
        _of_type(parse_number, "ml.m5.xlarge=0.23"),
        repeatable=True,
    ),
    Flag(
        "--type-quota",
        "TYPE=N",
        f"maximum number of instances of this type (repeatable; default {MOST_INSTANCES})",
        _of_type(parse_int, "ml.m5.xlarge=4"),
        repeatable=True,
    ),
    Flag("--instance-type", "TYPE", "instance type (default: the smallest ml.g5 with one core per server)"),
    Flag(
        "--publish-interval",
        "S",
        f"seconds from one publication of metrics to the next: {', '.join(map(str, PUBLISH_INTERVALS_S))}",
        parse_int,
        sets="publish_interval_s",
    ),
    Flag(
        "--publication-delay",
        "S",
        "seconds from the end of an interval until its metrics are visible",
        parse_number,
        sets="publication_delay_s",
    ),
    Flag(
        "--models-in-memory",
        "N",
        "act as a multi-model endpoint that keeps this many models in memory (default: not a multi-model endpoint)",
        parse_int,
    ),
    Flag("--model-load", "S", "seconds to load another model", parse_number, sets="model_load_s"),
    Flag("--throttle-every", "N", "throttle every N-th GetMetricData call (default: none)", parse_int),
    Flag(
        "--metric-fault",
        "NAME=STATUS",
        f"give a metric this status (repeatable): {', '.join(METRIC_FAULTS)}",
        _fault,
        sets="metric_faults",
        repeatable=True,
    ),
    Flag("--logs-fault", "CODE", f"answer every FilterLogEvents with this: {', '.join(LOGS_FAULTS)}"),
    Flag(
        "--access-denied",
        None,
        "deny every call to CloudWatch, CloudWatch Logs, SageMaker and Application Auto Scaling",
    ),
]
