"""The flags of `benchmark endpoint`, and the endpoint that they describe."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.cli.flags import Flag, Reader
from inference_benchmarker.embedded.aws.boto3_settings import boto3_settings
from inference_benchmarker.embedded.config import (
    LOGS_FAULTS,
    METRIC_FAULTS,
    PUBLISH_INTERVALS_S,
    EndpointConfig,
    WrongEndpointError,
)
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable

ENDPOINT_EPILOG = """\
It answers POST /invocations, /endpoints/NAME/invocations (and invocations-response-stream), /v1/chat/completions,
/v1/completions and /v1/embeddings, /v2/models/NAME/infer (KServe), /predictions/NAME (TorchServe), GET /ping,
/metrics and /arrivals (what it saw, for checking), and POST /stall?seconds=2. To boto3 it is also Bedrock (Converse),
Lambda (Invoke), CloudWatch (GetMetricData, PutMetricData, ListMetrics), CloudWatch Logs
(FilterLogEvents) and SageMaker's control plane (DescribeEndpoint, DescribeEndpointConfig): it prints the line that
makes boto3 take it for AWS, and publishes what it really did as SageMaker's metrics, and its errors as log lines.
"""
PORT, HIGHEST_PORT = 8080, 65535
_DEFAULTS = {field.name: field.default for field in fields(EndpointConfig)}


class _Flag(NamedTuple):
    """A flag and the field of EndpointConfig that it sets."""

    flag: str
    field: str
    read: Callable[[Reader, str], Any]
    metavar: str | None
    text: str

    @property
    def option(self) -> str:
        """Its name among the options."""
        return self.flag[2:].replace("-", "_")

    @property
    def shown(self) -> Flag:
        """As help shows it, with its default where that is a number or a word."""
        default = _DEFAULTS[self.field]
        shown = f"{default:g}" if type(default) is float else default
        return self.flag, self.metavar, f"{self.text} (default {shown})" if type(shown) in (int, str) else self.text


def _text(read: Reader, name: str) -> Any:
    return read.options[name]


def _faults(read: Reader, name: str) -> dict[str, str] | None:
    """The status that CloudWatch is to give each named metric."""
    found: dict[str, str] = {}
    for text in read.options[name] or ():
        metric, _, status = text.partition("=")
        if not (metric and status):
            example = f"ModelLatency={METRIC_FAULTS[0]}"
            read.problems.append(f"--metric-fault must be NAME=STATUS, as in {example}, not {text!r}.")
        elif status not in METRIC_FAULTS:
            allowed = ", ".join(METRIC_FAULTS)
            read.problems.append(f"--metric-fault {text}: the status of {metric} must be one of {allowed}.")
        elif found.setdefault(metric, status) != status:
            read.problems.append(f"--metric-fault gives {metric} both {found[metric]} and {status}; give it one.")
    return found or None


_FLAGS: dict[str, list[_Flag]] = {
    "capacity": [
        _Flag("--servers", "servers", Reader.integer, "K", "requests in service at a time"),
        _Flag("--service", "service", _text, "KIND", "service time: none, fixed, exponential, lognormal or bimodal"),
        _Flag("--service-time", "service_s", Reader.number, "S", "its mean in seconds"),
        _Flag("--cv", "cv", Reader.number, "X", "standard deviation / mean of the lognormal service time"),
        _Flag("--slow-share", "slow_share", Reader.number, "F", "share of slow requests in the bimodal service time"),
        _Flag("--slow-factor", "slow_factor", Reader.number, "X", "how many times as long they take as the others"),
        _Flag(
            "--discipline",
            "discipline",
            _text,
            "KIND",
            "who is served next: fifo, lifo, or ps (processor sharing: all at once share the servers)",
        ),
        _Flag(
            "--queue-limit",
            "queue_limit",
            Reader.integer,
            "N",
            "requests that may wait; the next gets 503 (default: no limit)",
        ),
        _Flag("--batch-size", "batch_size", Reader.integer, "N", "requests that a server takes up together at most"),
        _Flag(
            "--batch-delay",
            "batch_delay_s",
            Reader.number,
            "S",
            "seconds a request waits for a batch to fill; the service time is the batch's",
        ),
        _Flag(
            "--cold-start", "cold_start_s", Reader.number, "S", "seconds the first request of each server takes longer"
        ),
        _Flag("--slow-start", "slow_start_s", Reader.number, "S", "seconds from the first request on that are slow"),
        _Flag("--slow-start-requests", "slow_start_requests", Reader.integer, "N", "requests at first that are slow"),
        _Flag(
            "--slow-start-factor",
            "slow_start_factor",
            Reader.number,
            "X",
            "how many times as long a request takes in a slow start",
        ),
        _Flag(
            "--pause-every",
            "pause_every_s",
            Reader.number,
            "S",
            "seconds from one pause of all servers to the next, as for a collection of garbage; 0: none",
        ),
        _Flag("--pause", "pause_s", Reader.number, "S", "seconds that a pause lasts"),
        _Flag("--tokens", "tokens", Reader.integer, "N", "tokens of a chat completion that sets no limit"),
        _Flag("--seed", "seed", Reader.integer, "N", "seed of everything drawn"),
    ],
    "faults": [
        _Flag("--error-share", "error_share", Reader.number, "F", "share of requests that get an error"),
        _Flag(
            "--error-status", "error_status", Reader.integer, "N", "its HTTP status (to boto3: as SageMaker says it)"
        ),
        _Flag(
            "--close-share",
            "close_share",
            Reader.number,
            "F",
            "share of requests whose connection closes within the answer",
        ),
        _Flag("--hang-share", "hang_share", Reader.number, "F", "share of requests that are never answered"),
        _Flag("--break-share", "break_share", Reader.number, "F", "share of streams that end with an error"),
    ],
    "as AWS": [
        _Flag("--endpoint-name", "endpoint_name", _text, "NAME", "the endpoint that POST /invocations is counted for"),
        _Flag("--instances", "instances", Reader.integer, "N", "instances that share the servers"),
        _Flag(
            "--instance-type",
            "instance_type",
            _text,
            "TYPE",
            "their type (default: the smallest ml.g5 with a core for each server)",
        ),
        _Flag(
            "--publish-interval",
            "publish_interval_s",
            Reader.integer,
            "S",
            f"seconds from one publication of its metrics to the next: {', '.join(map(str, PUBLISH_INTERVALS_S))}",
        ),
        _Flag(
            "--publication-delay",
            "publication_delay_s",
            Reader.number,
            "S",
            "seconds after an interval's end until its metrics are visible",
        ),
        _Flag(
            "--models-in-memory",
            "models_in_memory",
            Reader.integer,
            "N",
            "be a multi-model endpoint that keeps as many (default: none)",
        ),
        _Flag("--model-load", "model_load_s", Reader.number, "S", "seconds it takes to load another model"),
        _Flag(
            "--throttle-every",
            "throttle_every",
            Reader.integer,
            "N",
            "throttle every N-th GetMetricData (default: none)",
        ),
        _Flag(
            "--metric-fault",
            "metric_faults",
            _faults,
            "NAME=STATUS",
            f"give a metric this status, repeatable: {', '.join(METRIC_FAULTS)}",
        ),
        _Flag(
            "--logs-fault",
            "logs_fault",
            _text,
            "CODE",
            f"answer every FilterLogEvents with this: {', '.join(LOGS_FAULTS)}",
        ),
        _Flag("--access-denied", "access_denied", _text, None, "deny every call to CloudWatch, its logs and SageMaker"),
    ],
}
_BY_FIELD = {each.field: each for flags in _FLAGS.values() for each in flags}

ENDPOINT_FLAGS: dict[str, list[Flag]] = {
    "address": [("--port", "PORT", f"port on loopback; 0 for any free one (default {PORT})")],
    **{title: [each.shown for each in flags] for title, flags in _FLAGS.items()},
}


def endpoint_config(options: dict[str, Any], problems: list[str]) -> tuple[int, EndpointConfig]:
    """The port and what listens on it, or one error with everything that is wrong with the flags."""
    read = Reader(options, problems)
    port = read.integer("port", PORT)
    if not 0 <= (port or 0) <= HIGHEST_PORT:
        problems.append(f"--port is {port}: it must be from 0 to {HIGHEST_PORT}.")
    given = {field: each.read(read, each.option) for field, each in _BY_FIELD.items()}
    try:
        config = EndpointConfig(**{field: value for field, value in given.items() if value is not None})
    except WrongEndpointError as error:
        wrong = [f"{_BY_FIELD[field].flag} {problem}." for field, problem in error.problems]
        problems += [problem for problem in wrong if not read.stood_in_for(problem)]
    if problems:
        raise BenchmarkError("\n".join(problems))
    assert port is not None
    return port, config


def invitation(port: int) -> str:
    """What to paste into a terminal whose programs are to take the endpoint for AWS."""
    settings = boto3_settings(f"http://127.0.0.1:{port}")
    return "export " + " ".join(f"{name}={value}" for name, value in settings.items())
