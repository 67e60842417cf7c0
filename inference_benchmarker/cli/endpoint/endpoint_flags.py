"""The flags of `benchmark endpoint`, and the endpoint that they describe."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import Flag, parse_int, parse_number, read_flags, table_for
from inference_benchmarker.embedded.aws.boto3_settings import boto3_settings
from inference_benchmarker.embedded.config import (
    LOGS_FAULTS,
    METRIC_FAULTS,
    PUBLISH_INTERVALS_S,
    EndpointConfig,
    WrongEndpointError,
)
from inference_benchmarker.embedded.type_table import MOST_INSTANCES
from inference_benchmarker.errors import BenchmarkError, Problem, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ENDPOINT_EPILOG = """\
It answers POST /invocations, /endpoints/NAME/invocations (and invocations-response-stream), /v1/chat/completions,
/v1/completions, /v1/responses, /v1/embeddings and /v1/rerank, /rerank (TEI), /v2/models/NAME/infer and generate_stream
(KServe), /predictions/NAME (TorchServe), GET /ping, /metrics and /arrivals (what it saw, for checking), and POST
/stall?seconds=2. To boto3 it is also Bedrock (Converse),
Lambda (Invoke), CloudWatch (GetMetricData, PutMetricData, ListMetrics, DescribeAlarms, DescribeAlarmHistory),
CloudWatch Logs (FilterLogEvents), SageMaker's control plane (CreateEndpoint, DescribeEndpoint, ListEndpoints,
DeleteEndpoint and so on, of models, endpoint configurations, endpoints, inference components and tags), Service Quotas
and the price list (of instances, as the flags say), and Application Auto Scaling (scalable targets, target tracking
policies, activities): it prints the line that makes boto3 take it for AWS, and publishes what it really did as
SageMaker's metrics, and its errors as log lines.
"""
PORT, HIGHEST_PORT = 8080, 65535


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


_BY_NAME = ("metric_faults", "type_servers", "type_speed", "type_price", "type_quota")
"""Fields that map names to values, each given by a flag of its own."""

ENDPOINT_FLAGS = table_for(
    EndpointConfig,
    table={
        "address": [Flag("--port", "PORT", "port on loopback; 0 for any free one", parse_int, default=PORT)],
        "capacity": [
            Flag("--servers", "K", "requests in service at a time", parse_int),
            Flag("--service", "KIND", "service time: none, fixed, exponential, lognormal or bimodal"),
            Flag("--service-time", "S", "its mean in seconds", parse_number, sets="service_s"),
            Flag("--cv", "X", "standard deviation / mean of the lognormal service time", parse_number),
            Flag("--slow-share", "F", "share of slow requests in the bimodal service time", parse_number),
            Flag("--slow-factor", "X", "how many times as long they take as the others", parse_number),
            Flag(
                "--discipline",
                "KIND",
                "who is served next: fifo, lifo, or ps (processor sharing: all at once share the servers)",
            ),
            Flag("--queue-limit", "N", "requests that may wait; the next gets 503 (default: no limit)", parse_int),
            Flag("--batch-size", "N", "requests that a server takes up together at most", parse_int),
            Flag(
                "--batch-delay",
                "S",
                "seconds a request waits for a batch to fill; the service time is the batch's",
                parse_number,
                sets="batch_delay_s",
            ),
            Flag(
                "--most-servers",
                "K",
                "servers up to which one is added at a time when requests pile up (default: none is)",
                parse_int,
            ),
            Flag(
                "--grow-queue",
                "N",
                "requests that wait above which one is added (default: twice the batch size)",
                parse_int,
            ),
            Flag(
                "--grow-delay",
                "S",
                "seconds from when it is added until it serves",
                parse_number,
                sets="grow_delay_s",
            ),
            Flag(
                "--grow-keep",
                "S",
                "seconds for which the others have to be enough until it goes",
                parse_number,
                sets="grow_keep_s",
            ),
            Flag("--cache-size", "N", "different bodies that it remembers; 0: none", parse_int),
            Flag(
                "--cache-speedup",
                "X",
                "how many times as fast a request is served whose body it remembers",
                parse_number,
            ),
            Flag(
                "--cold-start",
                "S",
                "seconds the first request of each server takes longer",
                parse_number,
                sets="cold_start_s",
            ),
            Flag(
                "--slow-start",
                "S",
                "seconds from the first request on that are slow",
                parse_number,
                sets="slow_start_s",
            ),
            Flag("--slow-start-requests", "N", "requests at first that are slow", parse_int),
            Flag("--slow-start-factor", "X", "how many times as long a request takes in a slow start", parse_number),
            Flag("--slow-start-gradual", None, "let a slow start get faster evenly, instead of all at once"),
            Flag(
                "--cool-down",
                "S",
                "seconds without a request after which cold and slow start begin anew; 0: never",
                parse_number,
                sets="cool_down_s",
            ),
            Flag(
                "--burst",
                "S",
                "seconds of service that can be given at full speed beyond the baseline; 0: without end",
                parse_number,
                sets="burst_s",
            ),
            Flag("--burst-baseline", "F", "share of full speed that is left, and is saved up when idle", parse_number),
            Flag(
                "--pause-every",
                "S",
                "seconds from one pause of all servers to the next, as for a collection of garbage; 0: none",
                parse_number,
                sets="pause_every_s",
            ),
            Flag("--pause", "S", "seconds that a pause lasts", parse_number, sets="pause_s"),
            Flag("--tokens", "N", "tokens of a chat completion that sets no limit", parse_int),
            Flag("--seed", "N", "seed of everything drawn", parse_int),
        ],
        "faults": [
            Flag("--error-share", "F", "share of requests that get an error", parse_number),
            Flag("--error-status", "N", "its HTTP status (to boto3: as SageMaker says it)", parse_int),
            Flag("--close-share", "F", "share of requests whose connection closes within the answer", parse_number),
            Flag("--hang-share", "F", "share of requests that are never answered", parse_number),
            Flag("--break-share", "F", "share of streams that end with an error", parse_number),
            Flag("--finish-reason", "WORD", "why every chat and text that tells it ends, as abort (default: its own)"),
            Flag("--gzip", None, "compress every answer, whether it is accepted or not"),
        ],
        "as AWS": [
            Flag("--endpoint-name", "NAME", "the endpoint that POST /invocations is counted for"),
            Flag(
                "--instances", "N", "instances that share the servers; one more brings as many as each has", parse_int
            ),
            Flag(
                "--routing",
                "KIND",
                "where requests wait: shared (one queue), or in a queue of each instance: random, least_outstanding",
            ),
            Flag(
                "--instance-start",
                "S",
                "seconds from when a further instance is asked for until it serves",
                parse_number,
                sets="instance_start_s",
            ),
            Flag(
                "--time-factor",
                "X",
                "how many times as fast as the clock instances start and Application Auto Scaling goes, up to 600: "
                "with 60, a minute takes a second",
                parse_number,
            ),
            Flag(
                "--create-time",
                "S",
                "seconds from when an endpoint is created here until it is in service; time goes as for instances",
                parse_number,
                sets="create_s",
            ),
            Flag(
                "--type-servers",
                "TYPE=K",
                "servers of an instance of this type, of endpoints that are created here, repeatable",
                _of_type(parse_int, "ml.m5.xlarge=2"),
                repeatable=True,
            ),
            Flag(
                "--type-speed",
                "TYPE=X",
                "how many times as fast they are as --service-time says, repeatable",
                _of_type(parse_number, "ml.c5.xlarge=1.25"),
                repeatable=True,
            ),
            Flag(
                "--type-price",
                "TYPE=USD",
                "price of an instance of this type for an hour, in the price list, repeatable (default: none)",
                _of_type(parse_number, "ml.m5.xlarge=0.23"),
                repeatable=True,
            ),
            Flag(
                "--type-quota",
                "TYPE=N",
                f"most instances of this type, repeatable (default {MOST_INSTANCES})",
                _of_type(parse_int, "ml.m5.xlarge=4"),
                repeatable=True,
            ),
            Flag("--instance-type", "TYPE", "their type (default: the smallest ml.g5 with a core for each server)"),
            Flag(
                "--publish-interval",
                "S",
                f"seconds from one publication of its metrics to the next: {', '.join(map(str, PUBLISH_INTERVALS_S))}",
                parse_int,
                sets="publish_interval_s",
            ),
            Flag(
                "--publication-delay",
                "S",
                "seconds after an interval's end until its metrics are visible",
                parse_number,
                sets="publication_delay_s",
            ),
            Flag("--models-in-memory", "N", "be a multi-model endpoint that keeps as many (default: none)", parse_int),
            Flag("--model-load", "S", "seconds it takes to load another model", parse_number, sets="model_load_s"),
            Flag("--throttle-every", "N", "throttle every N-th GetMetricData (default: none)", parse_int),
            Flag(
                "--metric-fault",
                "NAME=STATUS",
                f"give a metric this status, repeatable: {', '.join(METRIC_FAULTS)}",
                _fault,
                sets="metric_faults",
                repeatable=True,
            ),
            Flag("--logs-fault", "CODE", f"answer every FilterLogEvents with this: {', '.join(LOGS_FAULTS)}"),
            Flag(
                "--access-denied",
                None,
                "deny every call to CloudWatch, its logs, SageMaker and Application Auto Scaling",
            ),
        ],
    },
)


def endpoint_config(options: dict[str, Any], problems: list[str]) -> tuple[int, EndpointConfig]:
    """The port and what listens on it, or one error with everything that is wrong with the flags."""
    given = read_flags(chain.from_iterable(ENDPOINT_FLAGS.values()), options, problems)
    port = given.values["port"]
    if not 0 <= port <= HIGHEST_PORT:
        problems.append(f"--port is {port}: it must be from 0 to {HIGHEST_PORT}.")
    flags = {flag.field: flag.flag for table in ENDPOINT_FLAGS.values() for flag in table}
    named = {field: _by_name(flags[field], given.values[field] or (), problems) for field in _BY_NAME}
    try:
        config = EndpointConfig(**{**given.of(EndpointConfig), **named})
    except WrongEndpointError as error:
        problems += given.told(Problem((field,), f"{flags[field]} {problem}.") for field, problem in error.problems)
    refuse(problems)
    return port, config


def _by_name(flag: str, given: Iterable[tuple[str, Any]], problems: list[str]) -> dict[str, Any]:
    """The value of each name; a name with two is a problem."""
    found: dict[str, Any] = {}
    for name, value in given:
        if found.setdefault(name, value) != value:
            problems.append(f"{flag} gives {name} both {found[name]} and {value}; give it one.")
    return found


def invitation(port: int) -> str:
    """The line to paste into a terminal whose programs are to take the endpoint for AWS."""
    settings = boto3_settings(f"http://127.0.0.1:{port}")
    return "export " + " ".join(f"{name}={value}" for name, value in settings.items())
