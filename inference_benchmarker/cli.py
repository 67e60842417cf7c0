"""The command line: arguments -> WavePlan or another job. The only place for argparse, printing and exit codes.

Nothing heavy is imported before the arguments are known to be good.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import tomllib
import traceback
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import inference_benchmarker
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan import Bounds, ClosedLoop, OpenLoop, Slo, WavePlan, parse_decimal, parse_int

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inference_benchmarker.demo.config import EndpointConfig
    from inference_benchmarker.launch import Live
    from inference_benchmarker.wave import Wave

BAD_INPUT, BROKEN, INTERRUPTED = 2, 3, 130
DEMO_DEFAULTS = {"client_rps": "100", "obs_time": "10", "workers": "2"}
DEMO_FACTORIES = Path("demo") / "factories_demo.py"
DEMO_URL = "BENCHMARK_DEMO_URL"

_DESCRIPTION = """\
Sends an evenly paced wave of requests to an inference endpoint and prints a result that can be trusted.

  benchmark --demo                                       try it out: an embedded endpoint, 10 seconds
  benchmark --factories-file FILE --client-rps 10 --obs-time 60
"""
_EPILOG = """\
other commands (each with --help):
  benchmark report DIR         print a run again; finalise one that was cut off
  benchmark endpoint           the embedded endpoint alone, to try things against

exit codes: 0 valid and every limit met, 1 a limit was missed, 2 bad input,
            3 INVALID (the client could not offer the load, or a process was lost), 130 interrupted
"""


class _Parser(argparse.ArgumentParser):
    """Raises instead of exiting, so that every error takes the one way out."""

    def error(self, message: str) -> NoReturn:
        raise BenchmarkError(message[:1].upper() + message[1:] + ".", f"See `{self.prog} --help`.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no ≥ still gets its report
    try:
        return _dispatch(arguments)
    except BenchmarkError as error:
        for line in str(error).splitlines():
            _say(f"benchmark: {line}")
        return BAD_INPUT
    except KeyboardInterrupt:
        _say("Interrupted before the wave began; nothing was measured.")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of our output has left
        return BROKEN
    except Exception:  # a fault of ours keeps its traceback, but not Python's exit code 1: nobody missed a threshold
        traceback.print_exc()
        return BROKEN


def _dispatch(arguments: list[str]) -> int:
    commands: dict[str, Callable[[list[str]], int]] = {"report": _report, "endpoint": _endpoint}
    if arguments and arguments[0] in commands:
        return commands[arguments[0]](arguments[1:])
    if arguments and arguments[0] in ("--init", "--self-test"):
        raise BenchmarkError(
            f"{arguments[0]} is for the launcher of a clone (./benchmark); this installation is set up."
        )
    return _wave(arguments)


def _wave(arguments: list[str]) -> int:
    parser = _wave_parser()
    if not arguments:
        parser.print_help()
        return 0
    options, problems = _wave_options(parser, arguments)
    if options["demo"]:
        _fill_in_demo(options)
    plan = _plan(options, problems)
    with _demo_endpoint(plan) if options["demo"] else nullcontext(plan) as plan:
        from inference_benchmarker.launch import run_wave

        wave = run_wave(plan, _live(plan, quiet=options["quiet"]))
    _print_wave(wave, as_json=options["json"])
    return wave.verdict.exit_code


def _report(arguments: list[str]) -> int:
    parser = _Parser(prog="benchmark report", description="Print a run again; finalise one that was cut off.")
    parser.add_argument("dir", metavar="DIR", type=Path, help="a run directory")
    parser.add_argument("--json", action="store_true", help="print summary.json instead of the report")
    options = parser.parse_args(arguments)
    from inference_benchmarker.wave import Wave

    wave = Wave.load(options.dir)
    _print_wave(wave, as_json=options.json)
    return wave.verdict.exit_code


def _endpoint(arguments: list[str]) -> int:
    from inference_benchmarker.demo_endpoint import listen, serve

    options = vars(_endpoint_parser().parse_args(arguments))
    problems: list[str] = []
    port = _Reader(options, problems).integer("port", 0)
    config = _endpoint_config(options, problems)
    assert port is not None
    with listen(port) as sock:
        print(f"Listening on http://127.0.0.1:{sock.getsockname()[1]} (Ctrl-C ends it)", flush=True)
        serve(config, sock)
    return 0


def _wave_parser() -> _Parser:
    parser = _Parser(
        prog="benchmark",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="benchmark [--demo | --factories-file FILE] [options]",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"benchmark {inference_benchmarker.__version__}")
    for title, flags in _FLAGS.items():
        group = parser.add_argument_group(title)
        for flag, metavar, text in flags:
            if metavar is None:
                group.add_argument(flag, action="store_true", default=None, help=text)
            elif flag == "--slo":
                group.add_argument(flag, metavar=metavar, action="append", help=text)
            else:
                group.add_argument(flag, metavar=metavar, help=text)
    return parser


_FLAGS: dict[str, list[tuple[str, str | None, str]]] = {
    "endpoint": [
        (
            "--factories-file",
            "FILE",
            "the endpoint in two Python functions: invoke_factory and payload_factory",
        ),
        ("--endpoint-name", "NAME", "passed to invoke_factory"),
        ("--locust-file", "FILE", "a self-contained Locust file instead of factories"),
        ("--url", "URL", "host of a --locust-file that has none"),
        ("--demo", None, "the embedded endpoint and its factories stand in for whatever is not given"),
    ],
    "load": [
        ("--client-rps", "R", "open loop: R arrivals a second, fractions allowed"),
        ("--concurrency", "C", "closed loop instead: exactly C requests in flight"),
        ("--arrivals", "KIND", "spacing of the open loop: constant (default) or poisson"),
        ("--seed", "N", "seed of everything drawn (default: a new one, noted in summary.json)"),
        ("--obs-time", "S", "send for S seconds"),
        ("--num-requests", "N", "send N requests; with --obs-time: whichever comes first"),
        ("--warmup", "S", "seconds of the same load before the window, reported apart"),
        (
            "--drain-timeout",
            "S",
            "how long to wait for requests in flight after the last arrival (default 60)",
        ),
        ("--request-timeout", "S", "end and fail a request that takes longer (default: none)"),
        ("--max-in-flight", "N", "cap over all workers (default: what descriptors allow, 10,000 at most)"),
        ("--workers", "W", "worker processes (default 1; about one a core)"),
    ],
    "limits": [
        ("--success-threshold", "F", "least share of sent requests that must succeed, 0 to 1 (default 0.95)"),
        (
            "--slo",
            "EXPR",
            "a limit, repeatable: p99<200ms, latency.p95<=0.5s, ttft.p90<1s, success>=0.99, rate>=0.99",
        ),
    ],
    "processes and output": [
        ("--sample-client-hw", None, "record CPU, memory and network of this client during the wave"),
        ("--port", "P", "the primary's port on loopback (default 5557; the next free one if taken)"),
        ("--ui", None, "Locust's web page while the wave runs, on loopback, port 8089 or the next free one"),
        ("--output-dir", "DIR", "where the run directory goes (default .tmp)"),
        ("--name", "TEXT", "how the run is called in reports"),
        ("--json", None, "print the summary as JSON"),
        ("--quiet", None, "no progress"),
        ("--debug", None, "verbose logs"),
        ("--config", "FILE.toml", "the same flags as keys; the command line wins"),
    ],
}


def _wave_options(parser: _Parser, arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Flags as text (nothing converted yet), from the command line and the configuration file."""
    parsed, unknown = parser.parse_known_args(arguments)
    options = vars(parsed)
    problems = [f"Unknown argument {argument!r}. See `benchmark --help`." for argument in unknown]
    if options["config"] is not None:
        configured, found = _config(Path(options["config"]), options)
        problems += found
        options = {key: configured.get(key) if value is None else value for key, value in options.items()}
    return options, problems


def _config(path: Path, known: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The flags of a TOML file as text, and what is wrong with them."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return {}, [f"--config {path}: cannot be read ({error})."]
    values: dict[str, Any] = {}
    problems = []
    switches = {
        flag[2:].replace("-", "_") for flags in _FLAGS.values() for flag, metavar, _ in flags if metavar is None
    }
    for key, value in data.items():
        name = key.replace("-", "_")
        if name not in known or name in ("config", "help", "version"):
            problems.append(f"--config {path}: unknown key {key!r}.")
        elif (name in switches) != isinstance(value, bool) or not _is_plain(value, several=name == "slo"):
            problems.append(
                f"--config {path}: {key} must be {'true or false' if name in switches else 'a value'}, not {value!r}."
            )
        elif name == "slo":
            values[name] = [str(item) for item in (value if isinstance(value, list) else [value])]
        else:
            values[name] = value if isinstance(value, bool) else str(value)
    return values, problems


def _is_plain(value: Any, *, several: bool) -> bool:
    """Whether a value of the file is one that a flag could have, or a list of such where a flag may repeat."""
    if several and isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, (str, int, float))


def _plan(options: dict[str, Any], problems: list[str]) -> WavePlan:
    """The plan that the flags describe, or one error with everything that is wrong with them."""
    read = _Reader(options, problems)
    plan = WavePlan(
        load=_load(read),
        bounds=Bounds(read.decimal("obs_time"), read.integer("num_requests")),
        factories_file=read.path("factories_file"),
        endpoint_name=options["endpoint_name"],
        locust_file=read.path("locust_file"),
        url=options["url"],
        workers=read.integer("workers", 1) or 0,
        warmup_s=read.decimal("warmup") or Decimal(0),
        drain_timeout_s=read.decimal("drain_timeout", Decimal(60)),
        request_timeout_s=read.decimal("request_timeout"),
        max_in_flight=read.integer("max_in_flight"),
        seed=read.integer("seed"),
        success_threshold=float(read.decimal("success_threshold", Decimal("0.95"))),
        slos=tuple(read.slos()),
        port=read.integer("port", 5557) or 0,
        ui=bool(options["ui"]),
        sample_client_hw=bool(options["sample_client_hw"]),
        debug=bool(options["debug"]),
        output_dir=read.path("output_dir") or Path(".tmp"),
        name=options["name"],
    )
    problems += [problem for problem in plan.problems() if not read.stood_in_for(problem)]
    if problems:
        raise BenchmarkError("\n".join(problems))
    return plan


def _load(read: _Reader) -> OpenLoop | ClosedLoop:
    options = read.options
    if options["concurrency"] is not None:
        for name in ("client_rps", "arrivals"):
            if options[name] is not None:
                read.problems.append(f"Give either --concurrency or --{name.replace('_', '-')}, not both.")
        return ClosedLoop(read.integer("concurrency", 1) or 0)
    if options["client_rps"] is None:
        read.problems.append("No load: give --client-rps R (open loop) or --concurrency C (closed loop).")
    return OpenLoop(read.decimal("client_rps", Decimal(1)), options["arrivals"] or "constant")


class _Reader:
    """Turns flags' text into values; what cannot be read becomes a problem and something good stands in for it."""

    def __init__(self, options: dict[str, Any], problems: list[str]) -> None:
        self.options = options
        self.problems = problems
        self._unread: list[str] = []

    def stood_in_for(self, problem: str) -> bool:
        """Whether a problem is only that of a value which stands in for one that could not be read."""
        no_file = problem.startswith("No endpoint") and {"--factories-file", "--locust-file"} & set(self._unread)
        return bool(no_file) or problem.startswith(tuple(f"{flag} " for flag in self._unread))

    def decimal(self, name: str, default: Any = None) -> Any:
        """An exact decimal."""
        return self._read(name, parse_decimal, default)

    def integer(self, name: str, default: int | None = None) -> int | None:
        """A whole number."""
        value: int | None = self._read(name, parse_int, default)
        return value

    def path(self, name: str) -> Path | None:
        """A path; an empty one is no path."""
        value: Path | None = self._read(name, _parse_path, None)
        return value

    def slos(self) -> Iterator[Slo]:
        """The limits that can be read."""
        for text in self.options["slo"] or ():
            try:
                yield Slo.parse(text)
            except BenchmarkError as error:
                self.problems.append(str(error))

    def _read(self, name: str, parse: Callable[[str, str], Any], default: Any) -> Any:
        text = self.options[name]
        if text is None:
            return default
        flag = "--" + name.replace("_", "-")
        try:
            return parse(flag, text)
        except BenchmarkError as error:
            self.problems.append(str(error))
            self._unread.append(flag)
            return default if default is not None else 1 if parse is not _parse_path else None


def _parse_path(flag: str, text: str) -> Path:
    if not text.strip() or "\0" in text:
        raise BenchmarkError(f"{flag} must be a path, not {text!r}.")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise BenchmarkError(f"{flag} {text}: there is no such user.") from None


def _fill_in_demo(options: dict[str, Any]) -> None:
    """With ``--demo``: defaults for what is not given."""
    if options["workers"] is None and "1" in (options["concurrency"], options["max_in_flight"]):
        options["workers"] = "1"
    for name, value in DEMO_DEFAULTS.items():
        replaced = {"client_rps": "concurrency", "obs_time": "num_requests"}.get(name, name)
        if options[name] is None and options[replaced] is None:
            options[name] = value
    if options["factories_file"] is None and options["locust_file"] is None:
        options["factories_file"] = str(_demo_factories())


@contextmanager
def _demo_endpoint(plan: WavePlan) -> Iterator[WavePlan]:
    """With ``--demo``: the embedded endpoint while the wave runs; a Locust file without a host is sent to it."""
    from inference_benchmarker.demo_endpoint import EndpointConfig, start

    with start(EndpointConfig()) as endpoint:
        os.environ[DEMO_URL] = endpoint.url
        yield replace(plan, url=endpoint.url) if plan.locust_file is not None and plan.url is None else plan


_ENDPOINT_FLAGS = (
    ("--port", "8080", "PORT", "port on loopback; 0 for any free one"),
    ("--servers", "4", "K", "requests in service at a time"),
    ("--service", "fixed", "KIND", "service time: none, fixed, exponential or lognormal"),
    ("--service-time", "0.02", "S", "its mean in seconds"),
    ("--cv", "1", "X", "standard deviation / mean of the lognormal service time"),
    ("--queue-limit", None, "N", "requests that may wait; the next gets 503 (default: no limit)"),
    ("--error-share", "0", "F", "share of requests that get a 500"),
    ("--close-share", "0", "F", "share of requests whose connection closes within the answer"),
    ("--hang-share", "0", "F", "share of requests that are never answered"),
    ("--cold-start", "0", "S", "seconds the first request of each server takes longer"),
    ("--tokens", "20", "N", "tokens of a chat completion that sets no limit"),
    ("--seed", "0", "N", "seed of everything drawn"),
)


def _endpoint_parser() -> _Parser:
    parser = _Parser(
        prog="benchmark endpoint",
        description="The embedded endpoint: a queueing model of an inference server with a known capacity.",
        epilog="It answers POST /invocations, /endpoints/NAME/invocations and /v1/chat/completions, GET /ping, "
        "/metrics and /arrivals (what it saw, for checking), and POST /stall?seconds=2.",
        allow_abbrev=False,
    )
    for flag, default, metavar, text in _ENDPOINT_FLAGS:
        shown = text if default is None else f"{text} (default {default})"
        parser.add_argument(flag, default=default, metavar=metavar, help=shown)
    return parser


def _endpoint_config(options: dict[str, Any], problems: list[str]) -> EndpointConfig:
    from inference_benchmarker.demo_endpoint import EndpointConfig

    read = _Reader(options, problems)
    values = {
        "servers": read.integer("servers"),
        "service": options["service"],
        "service_s": float(read.decimal("service_time")),
        "cv": float(read.decimal("cv")),
        "queue_limit": read.integer("queue_limit"),
        **{name: float(read.decimal(name)) for name in ("error_share", "close_share", "hang_share")},
        "cold_start_s": float(read.decimal("cold_start")),
        "tokens": read.integer("tokens"),
        "seed": read.integer("seed"),
    }
    if problems:
        raise BenchmarkError("\n".join(problems))
    return EndpointConfig(**values)


def _demo_factories() -> Path:
    from importlib.util import find_spec

    spec = find_spec("factories")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations))) / DEMO_FACTORIES


def _live(plan: WavePlan, *, quiet: bool | None) -> Live:
    from inference_benchmarker.launch import Nobody
    from inference_benchmarker.progress import PanelView, PlainView

    if quiet:
        return Nobody()
    return PanelView(plan, sys.stderr) if sys.stderr.isatty() else PlainView(plan, sys.stderr)


def _print_wave(wave: Wave, *, as_json: bool | None) -> None:
    print(json.dumps(wave.to_json(), indent=2) if as_json else wave.text(), flush=True)


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
