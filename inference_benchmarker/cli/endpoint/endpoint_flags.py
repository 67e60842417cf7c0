"""The flags of `benchmark endpoint`, and the endpoint that they describe."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import Flag, parse_int, parse_number, read_flags, table_for
from inference_benchmarker.cli.endpoint.aws_flags import AWS_FLAGS
from inference_benchmarker.embedded.config import EndpointConfig, WrongEndpointError
from inference_benchmarker.embedded.llm.rules import PROFILES
from inference_benchmarker.errors import BenchmarkError, Problem, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ENDPOINT_EPILOG = """\
The endpoint answers POST requests in the formats of several servers. SageMaker: /invocations,
/endpoints/NAME/invocations, /endpoints/NAME/invocations-response-stream. OpenAI: /v1/chat/completions,
/v1/completions, /v1/responses, /v1/embeddings. TEI: /rerank. Jina: /v1/rerank. KServe: /v2/models/NAME/infer,
/v2/models/NAME/generate_stream. TorchServe: /predictions/NAME. It also answers GET /ping, /metrics and /v1/models.
GET /arrivals lists every request that it received. POST /stall?seconds=2 makes it pause for 2 seconds.

To use the endpoint in place of AWS, set the environment variables that it prints when it starts. It has these services
for boto3. Bedrock: Converse. Lambda: Invoke. CloudWatch: GetMetricData, PutMetricData, ListMetrics, DescribeAlarms,
DescribeAlarmHistory. CloudWatch Logs: FilterLogEvents. SageMaker: CreateEndpoint, DescribeEndpoint, ListEndpoints,
DeleteEndpoint and similar calls for models, endpoint configurations, inference components and tags. Application Auto
Scaling: scalable targets, target tracking policies, activities. Service Quotas and the price list: calls about the
instance types of the --type flags. The SageMaker metrics show the load that the endpoint served; its errors appear as
log lines.

With --llm, the only POST requests that it answers are /v1/chat/completions and /v1/completions, and each word is a
token. GET /metrics has vLLM's metrics under vLLM's names, and boto3 can use only CloudWatch and CloudWatch Logs.
"""
PORT, HIGHEST_PORT = 8080, 65535


def _numbers(example: str) -> Callable[[str, str], tuple[float, ...]]:
    """The reader of as many numbers as the example has."""
    count = example.count(":") + 1

    def read(flag: str, text: str) -> tuple[float, ...]:
        parts = text.split(":")
        if len(parts) != count:
            raise BenchmarkError(f"{flag} must be {count} numbers, as in {example}, not {text!r}.")
        return tuple(parse_number(flag, part) for part in parts)

    return read


_BY_PROFILE = "(default: the profile's)"
_BY_NAME = ("metric_faults", "type_servers", "type_speed", "type_price", "type_quota")
"""Fields that map names to values, each given by a flag of its own."""

ENDPOINT_FLAGS = table_for(
    EndpointConfig,
    table={
        "address": [Flag("--port", "PORT", "port on loopback; 0 for any free port", parse_int, default=PORT)],
        "capacity": [
            Flag("--servers", "K", "requests served at a time", parse_int),
            Flag("--service", "KIND", "distribution of service times: none, fixed, exponential, lognormal or bimodal"),
            Flag("--service-time", "S", "mean service time in seconds", parse_number, sets="service_s"),
            Flag(
                "--cv",
                "X",
                "coefficient of variation (standard deviation / mean) of lognormal service times",
                parse_number,
            ),
            Flag("--slow-share", "F", "with --service bimodal: share of requests that are slow", parse_number),
            Flag(
                "--slow-factor", "X", "with --service bimodal: factor by which slow requests take longer", parse_number
            ),
            Flag(
                "--discipline",
                "KIND",
                "order of service: fifo, lifo, or ps (processor sharing: all requests share the servers)",
            ),
            Flag("--queue-limit", "N", "longest queue; further requests get 503 (default: no limit)", parse_int),
            Flag("--batch-size", "N", "maximum number of requests that a server serves together", parse_int),
            Flag(
                "--batch-delay",
                "S",
                "seconds that a request waits for its batch to fill (default {default}). A batch takes the "
                "--service-time",
                parse_number,
                sets="batch_delay_s",
            ),
            Flag(
                "--most-servers",
                "K",
                "add servers one by one up to this number while the queue is long (default: add none)",
                parse_int,
            ),
            Flag(
                "--grow-queue",
                "N",
                "queue length above which a server is added (default: twice the batch size)",
                parse_int,
            ),
            Flag(
                "--grow-delay",
                "S",
                "seconds until an added server is in service",
                parse_number,
                sets="grow_delay_s",
            ),
            Flag(
                "--grow-keep",
                "S",
                "remove an added server after S seconds in which the others were enough",
                parse_number,
                sets="grow_keep_s",
            ),
            Flag(
                "--cache-size",
                "N",
                "number of different request bodies that the endpoint caches; 0 for none",
                parse_int,
            ),
            Flag(
                "--cache-speedup",
                "X",
                "factor by which a cached request is faster",
                parse_number,
            ),
            Flag(
                "--prefix-cache",
                "TOKENS",
                "size of the prefix cache for chats, in tokens (default {default}), in blocks of 16; each answer says "
                "how many prompt tokens were cached",
                parse_int,
            ),
            Flag(
                "--cold-start",
                "S",
                "additional seconds for the first request of each server",
                parse_number,
                sets="cold_start_s",
            ),
            Flag(
                "--slow-start",
                "S",
                "requests are slow for S seconds, which begin with the first request",
                parse_number,
                sets="slow_start_s",
            ),
            Flag("--slow-start-requests", "N", "number of first requests that are slow", parse_int),
            Flag(
                "--slow-start-factor", "X", "factor by which a request takes longer during a slow start", parse_number
            ),
            Flag("--slow-start-gradual", None, "speed up gradually during a slow start, instead of at its end"),
            Flag(
                "--cool-down",
                "S",
                "idle seconds after which cold start and slow start begin again; 0 for never",
                parse_number,
                sets="cool_down_s",
            ),
            Flag(
                "--burst",
                "S",
                "seconds of service at full speed before burst credits are spent; 0 for no limit",
                parse_number,
                sets="burst_s",
            ),
            Flag(
                "--burst-baseline",
                "F",
                "speed after the burst credits are spent, as a share of full speed; an idle second earns this share of "
                "a second of credits",
                parse_number,
            ),
            Flag(
                "--pause-every",
                "S",
                "seconds between pauses of all servers, like those of garbage collection; 0 for none",
                parse_number,
                sets="pause_every_s",
            ),
            Flag("--pause", "S", "length of a pause in seconds", parse_number, sets="pause_s"),
            Flag("--tokens", "N", "number of tokens in the answer to a chat that sets no maximum", parse_int),
            Flag(
                "--tokens-per-piece",
                "N",
                "tokens in each event of a streamed chat; speculative decoding sends several",
                parse_int,
            ),
            Flag("--echo", None, "answer a chat with the words of its last message (default: with numbers)"),
            Flag("--seed", "N", "seed of every random draw", parse_int),
        ],
        "LLM engine": [
            Flag(
                "--llm",
                "NAME|RUN",
                "act as an LLM engine with continuous batching, in place of K servers. NAME: a profile "
                f"({', '.join(PROFILES)}). RUN: a run directory; the engine is fitted to its wave",
            ),
            Flag("--kv-tokens", "N", f"size of the KV cache in tokens {_BY_PROFILE}", parse_int),
            Flag("--max-num-seqs", "N", f"maximum number of requests in a batch {_BY_PROFILE}", parse_int),
            Flag(
                "--max-num-batched-tokens", "N", f"maximum number of tokens computed in a step {_BY_PROFILE}", parse_int
            ),
            Flag("--block-size", "N", f"tokens in a block of the KV cache {_BY_PROFILE}", parse_int),
            Flag(
                "--prefill-ms",
                "A:B:C",
                f"milliseconds to compute a prompt of x tokens: A x^2 + B x + C {_BY_PROFILE}",
                _numbers("4.21e-7:0.0152:16.5"),
            ),
            Flag(
                "--step-ms",
                "A:B:C:D",
                "milliseconds to compute a token for each of n answers: A u^2 + B u + C + D n, but at least 1 ms; u is "
                f"the share of the KV cache that their contexts fill {_BY_PROFILE}",
                _numbers("-25.74:54.01:5.74:0"),
            ),
        ],
        "faults": [
            Flag("--error-share", "F", "share of requests that fail", parse_number),
            Flag(
                "--error-status",
                "N",
                "HTTP status of these failures; boto3 gets the errors that SageMaker would return",
                parse_int,
            ),
            Flag(
                "--close-share",
                "F",
                "share of requests whose connection closes in the middle of the answer",
                parse_number,
            ),
            Flag("--hang-share", "F", "share of requests that are never answered", parse_number),
            Flag("--break-share", "F", "share of streams that end with an error", parse_number),
            Flag(
                "--swap-share",
                "F",
                "share of requests that get the answer to another request in progress; use --echo so that a swapped "
                "answer can be recognized",
                parse_number,
            ),
            Flag(
                "--finish-reason",
                "WORD",
                "finish reason of every chat and completion, such as abort (default: the true one)",
            ),
            Flag("--gzip", None, "compress every answer, even if the client does not accept it"),
        ],
        "AWS emulation": AWS_FLAGS,
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
        problems += given.problem_texts(
            Problem((field,), f"{flags[field]} {problem}.") for field, problem in error.problems
        )
    refuse(problems)
    return port, config


def _by_name(flag: str, given: Iterable[tuple[str, Any]], problems: list[str]) -> dict[str, Any]:
    """The value of each name; a name with two is a problem."""
    found: dict[str, Any] = {}
    for name, value in given:
        if found.setdefault(name, value) != value:
            problems.append(f"{flag} gives {name} both {found[name]} and {value}; give it one.")
    return found


def invitation(port: int, *, is_llm: bool) -> str:
    """Lines to paste into another terminal: waves to the endpoint, and what makes boto3 take it for AWS."""
    url = f"http://127.0.0.1:{port}"
    plain = "" if is_llm else f"  benchmark {url}/invocations --body '{{}}' --client-rps 50\n"
    return f"""\
Try it in another terminal:
{plain}  benchmark {url}/v1 --output-tokens 64
To make boto3 talk to it instead of AWS there:
  export AWS_ENDPOINT_URL={url} AWS_DEFAULT_REGION=us-east-1
  export AWS_ACCESS_KEY_ID=demo AWS_SECRET_ACCESS_KEY=demo"""
