"""The flags of a wave: one table, with a row for each. `wave_plan` makes a plan of their values."""

from __future__ import annotations

from inference_benchmarker.cli.core.chat_flags import MODEL_MIX
from inference_benchmarker.cli.core.expect_flags import CANARY, EXPECT
from inference_benchmarker.cli.core.flags import (
    Flag,
    by_text,
    parse_decimal,
    parse_int,
    parse_number,
    parse_path,
    table_for,
)
from inference_benchmarker.cli.core.hosts_flags import HOSTS_FLAGS, OF_HOSTS
from inference_benchmarker.cli.core.url_flags import FACTORIES_FILE, MAX_ANSWER_SIZE, SET_FLAG, URL_FLAGS
from inference_benchmarker.cli.wave.aiperf_flags import AIPERF_FLAGS
from inference_benchmarker.cli.wave.export_flags import EXPORT_FLAGS
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.abort_on import AbortOn
from inference_benchmarker.plan.conversation import AS_IS, FRESH, WARM
from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.recorded import Conversations
from inference_benchmarker.plan.replay import Replay
from inference_benchmarker.plan.retries import Backoff, Retries
from inference_benchmarker.plan.server_limit import ServerLimit, is_server_limit
from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.plan.think import Think
from inference_benchmarker.words.redact import excerpt, quoted, redact
from inference_benchmarker.words.units import MAX_SECONDS

SLO_ON_RATE = "rate>=0.99 (completed rate / target rate), "
SLO_ABOUT = (
    "a limit (repeatable): p99<200ms (of the response time, from when a request is due), latency.p95<=0.5s (from when "
    "it is sent), ttft.p90<1s, success>=0.99, "
    f"{SLO_ON_RATE}server.CPUUtilization<70% (a metric of --endpoint-config, as a share of all cores), "
    "metric.cache_hit.mean>0.8 (a value that invoke() reports)"
)
"""What ``--slo`` means for single requests."""

PARTS_OF_A_PLAN = (WavePlan, Bounds, OpenLoop, ClosedLoop, Replay, Retries)


def _slo(text: str) -> Slo | ServerLimit:
    return ServerLimit.parse(text) if is_server_limit(text) else Slo.parse(text)


def _cache(text: str) -> str:
    if text not in (AS_IS, FRESH, WARM):
        raise BenchmarkError(f"--cache must be {AS_IS}, {FRESH} or {WARM}, not {quoted(text)}.")
    return text


def _seconds_to_wait(flag: str, text: str) -> float:
    seconds = parse_number(flag, text)
    if not 0 <= seconds <= MAX_SECONDS:
        raise BenchmarkError(f"{flag} must be 0 to {MAX_SECONDS:,} seconds, not {excerpt(text, 100)}.")
    return seconds


REPLAY_FLAGS = [
    Flag("--window", "FROM..TO", "use only this part of the recording: 10:00..11:00, +10m..+20m, or two timestamps"),
    Flag(
        "--replay-column",
        "NAME",
        "column of the arrival times, if it is not detected; NAME:ms also sets the unit",
        sets="column",
    ),
]
CONVERSATIONS = (
    "send recorded conversations in the order of the file: ShareGPT (JSON), OpenAI messages (JSON lines), Mooncake or "
    "agent traces (JSON lines), BurstGPT or Azure (CSV)"
)
URL_WITHOUT_AIPERF = "the same as the argument URL; for a --locust-file without one, its base URL"
WAVE_FLAGS = table_for(
    *PARTS_OF_A_PLAN,
    table={
        "endpoint": [
            FACTORIES_FILE,
            Flag("--endpoint-name", "NAME", "name passed to invoke_factory"),
            SET_FLAG,
            Flag("--locust-file", "FILE", "a self-contained Locust file instead of a factories file", parse_path),
            Flag(
                "--url", "URL", "the same as the argument URL; for aiperf, or a --locust-file without one, its base URL"
            ),
            Flag(
                "--demo",
                None,
                "use the embedded endpoint (a small server that comes with the tool), its factories file and its "
                "server metrics, unless you give others; without flags for the load, send 100/s for 10 s (with "
                "--aiperf: 20/s) from 2 workers",
            ),
        ],
        "endpoint by URL, without a file": URL_FLAGS,
        "load": [
            Flag(
                "--client-rps",
                "R",
                "open loop: R arrivals (requests or, with --turns, conversations) per second, such as 50 or 0.5 "
                "(default for a URL: 10; for an LLM by its URL: 2)",
                parse_decimal,
                sets="rate",
            ),
            Flag(
                "--stages",
                "TEXT",
                "open loop at changing rates, in place of --client-rps and --obs-time. A stage is RATE:TIME or "
                "FROM..TO:TIME, with an optional name: 50:30s, 50..400:2m, spike=2000:10s",
                by_text(Stage.parse),
                repeatable=True,
            ),
            Flag(
                "--replay",
                "FILE",
                "open loop with recorded arrival times: CSV, JSON lines, parquet, access logs, LLM traces",
                parse_path,
                sets="file",
            ),
            Flag(
                "--conversations",
                "FILE",
                f"{CONVERSATIONS}. --replay FILE sends them at their recorded times",
                lambda flag, text: Conversations(parse_path(flag, text)),
            ),
            Flag(
                "--cache",
                "KIND",
                "state of the server's prefix cache. as-is (default): unchanged; fresh: every conversation begins "
                "with a word that no earlier wave had, so that nothing in the cache helps; warm: each shared prefix "
                "is sent once before the wave",
                by_text(_cache),
            ),
            Flag("--speed", "F", "replay the recording F times as fast", parse_decimal),
            *REPLAY_FLAGS,
            Flag(
                "--interactive",
                None,
                "change the rate at the keyboard: + and - by 10%, 2 doubles it, / halves it, and q ends the wave; "
                "--obs-time is optional",
                sets="steered",
            ),
            Flag(
                "--concurrency",
                "C",
                "closed loop: C requests in flight at a time (with --think-time: C users; with --turns, "
                "--conversations or session_factory: C open sessions)",
                parse_int,
            ),
            Flag(
                "--think-time",
                "TIME",
                "time from an answer to the next request of the same user (with --concurrency) or session: 5s, "
                "exponential:5s, uniform:2s..8s, lognormal:5s:0.5",
                by_text(Think.parse),
                sets="think",
            ),
            Flag("--arrivals", "KIND", "arrival process of an open loop: {default} (default) or poisson"),
            Flag("--seed", "N", "seed of every random draw (default: a new one, stored in summary.json)", parse_int),
            Flag("--obs-time", "S", "send for S seconds (default for a URL: 10)", parse_decimal, sets="duration_s"),
            Flag(
                "--num-requests",
                "N",
                "send N requests (with sessions: start N sessions); with --obs-time, stop at whichever comes first",
                parse_int,
            ),
            Flag(
                "--warmup",
                "S",
                "seconds of the same load before the measured window, reported separately",
                parse_decimal,
                sets="warmup_s",
            ),
            Flag(
                "--drain-timeout",
                "S",
                "seconds to wait for requests in flight after the last arrival",
                parse_decimal,
                sets="drain_timeout_s",
            ),
            Flag(
                "--request-timeout",
                "S",
                "fail a request that takes longer (default: no limit)",
                parse_decimal,
                sets="request_timeout_s",
            ),
            Flag(
                "--client-timeout",
                "S",
                "end an attempt that takes longer; --client-retries then repeats it (default: no limit)",
                parse_decimal,
                sets="timeout_s",
            ),
            Flag(
                "--client-retries",
                "N",
                "retry a request up to N times after a timeout, a broken connection, 429 or 5xx",
                parse_int,
                sets="retries",
            ),
            Flag(
                "--backoff",
                "WAIT",
                "wait before a retry: none (default), fixed:0.5s, exponential[:BASE..MAX] with jitter",
                by_text(Backoff.parse),
            ),
            MAX_ANSWER_SIZE,
            EXPECT._replace(about=f"{EXPECT.about}, {CANARY}"),
            MODEL_MIX,
            Flag(
                "--load-timeout",
                "S",
                "seconds that loading the factories file may take",
                parse_decimal,
                sets="load_timeout_s",
            ),
            Flag(
                "--max-in-flight",
                "N",
                "maximum requests in flight over all workers (default: from the open-file limit, at most 10,000)",
                parse_int,
            ),
            Flag(
                "--workers",
                "W",
                "worker processes (default {default}; use about one per core); with --hosts, the total on the hosts "
                "without *N (default: one per core)",
                parse_int,
            ),
        ],
        OF_HOSTS: HOSTS_FLAGS,
        "limits": [
            Flag("--success-threshold", "F", "share of requests that must succeed, 0 to 1", parse_number),
            Flag(
                "--slo",
                "EXPR",
                f"{SLO_ABOUT}; for conversations, also session.p95<60s, turn2+.ttft.p95<400ms",
                by_text(_slo),
                sets="slos",
                repeatable=True,
            ),
            Flag(
                "--goodput",
                "LIMITS",
                "count the requests that meet all LIMITS (repeatable): ttft<1s,itl<50ms (also latency, response_time, "
                "tpot)",
                by_text(RequestLimit.parse),
                repeatable=True,
            ),
            Flag(
                "--abort-on",
                "EXPR",
                "end the wave early if this holds over the last 10 seconds, or the time given after @ (repeatable): "
                "success<50%@10s, p99>2s@10s, ttft.p90>3s@30s",
                by_text(AbortOn.parse),
                repeatable=True,
            ),
            Flag(
                "--no-abort",
                None,
                "continue even if no connection to the endpoint succeeds (default: end such a wave after 3 seconds)",
            ),
        ],
        "server metrics": [
            Flag(
                "--endpoint-config",
                "FILE",
                "server metrics to collect over the wave: a JSON list of CloudWatch and Prometheus blocks",
            ),
            Flag(
                "--metrics-wait",
                "S",
                "maximum wait for CloudWatch metrics after the wave (default: each block's Lag, plus 5 of its "
                "Periods but at least 2 and at most 15 min)",
                _seconds_to_wait,
            ),
        ],
        "aiperf": AIPERF_FLAGS,
        "monitoring": EXPORT_FLAGS,
        "processes and output": [
            Flag("--sample-client-hw", None, "record CPU, memory and network use of this client during the wave"),
            Flag(
                "--calibrate",
                None,
                "for a few seconds before the wave, measure the time that this tool adds at this rate on this host",
            ),
            Flag("--port", "P", "port on loopback at which workers report (default: any free port)", parse_int),
            Flag("--ui", None, "show Locust's web page during the wave, on loopback, port 8089 or the next free one"),
            Flag(
                "--records",
                "all|none",
                "requests to record. {default} (default); none: only the slowest 1,000, so that a long wave takes "
                "little disk (percentiles are accurate to 1%)",
            ),
            Flag("--output-dir", "DIR", "where to create the run directory", parse_path),
            Flag("--name", "TEXT", "name of the run in reports", by_text(redact)),
            Flag("--json", None, "print the summary as JSON"),
            Flag("--quiet", None, "print no progress"),
            Flag("--verbose", None, "print the whole report even on a terminal, with every server metric"),
            Flag("--debug", None, "print verbose logs"),
            Flag("--config", "FILE.toml", "read flags from a TOML file; the command line takes precedence"),
        ],
    },
)
