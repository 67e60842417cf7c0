"""The command line: arguments -> WavePlan or another job. The only place for argparse, printing and exit codes.

Nothing heavy is imported before the arguments are known to be good.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
import time
import traceback
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.flags import FLAGS, REPEATABLE, Flag, fill_in_demo, make_plan, read_config
from inference_benchmarker.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from inference_benchmarker.aiperf_flags import AiperfOptions
    from inference_benchmarker.aiperf_stage import AiperfStage
    from inference_benchmarker.launch import Live
    from inference_benchmarker.plan import WavePlan
    from inference_benchmarker.wave import Wave
    from server_capacity.aiperf_export import AiperfResult
    from server_capacity.metrics import ServerMetric, Source

SLOW_S = 2.0
NOTHING_FOUND = FAILED = 1
BAD_INPUT, BROKEN, INTERRUPTED = 2, 3, 130
ALTERNATIVES = (("client_rps", "concurrency"), ("arrivals", "concurrency"), ("factories_file", "locust_file"))
DEMO_URL = "BENCHMARK_DEMO_URL"

_DESCRIPTION = """\
Sends an evenly paced wave of requests to an inference endpoint and prints a result that can be trusted.

  benchmark --demo                                       try it out: an embedded endpoint, 10 seconds
  benchmark --factories-file FILE --client-rps 10 --obs-time 60
"""
_EPILOG = """\
other commands (each with --help):
  benchmark factory            shipped examples to copy: `benchmark factory NAME > my_endpoint.py`
  benchmark check              one request of a factories file, and what was understood of it
  benchmark --plot DIR...      a page and pictures of one run or many, side by side
  benchmark report DIR         print a run again; finalise one that was cut off
  benchmark --compare BASE NEW what changed between two runs; a gate for pipelines
  benchmark client             what this machine can send: worker-saturation, rps-saturation, limits
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
    commands: dict[str, Callable[[list[str]], int]] = {
        "factory": _factory,
        "check": _check,
        "report": _report,
        "client": _client,
        "endpoint": _endpoint,
    }
    if arguments and arguments[0] in commands:
        return commands[arguments[0]](arguments[1:])
    if "--compare" in arguments:
        return _compare(arguments)
    if any(argument.partition("=")[0] == "--plot" for argument in arguments):
        return _plot(arguments)
    if arguments and arguments[0] in ("--init", "--self-test"):
        raise BenchmarkError(
            f"{arguments[0]} is for the launcher of a clone (./benchmark); this installation is set up."
        )
    if arguments and not arguments[0].startswith("-"):
        known = ", ".join(commands)
        raise BenchmarkError(
            f"There is no command {arguments[0]!r}.", f"Commands are {known}; a wave is told by flags."
        )
    return _wave(arguments)


def _wave(arguments: list[str]) -> int:
    parser = _wave_parser()
    if not arguments:
        parser.print_help()
        return 0
    options, problems = _wave_options(parser, arguments)
    if options["demo"]:
        fill_in_demo(options)
    if options["calibrate"] and options["locust_file"]:
        problems.append("--calibrate measures what factories cost; it has nothing to compare a --locust-file with.")
    from inference_benchmarker.aiperf_flags import API_KEY, take_aiperf

    if options["api_key"]:
        os.environ[API_KEY] = options["api_key"]  # where invoke may read it, and where what hides secrets looks
    aiperf = take_aiperf(options, problems, os.environ)
    plan = make_plan(options, problems, endpoint_needed=aiperf is None or not aiperf.stands_alone)
    with (
        _demo_endpoint(plan) if options["demo"] else nullcontext(plan) as plan,
        _aiperf_stage(aiperf, plan, options) as stage,
    ):
        sources = _sources(options["endpoint_config"])
        wave = (
            None
            if aiperf is not None and aiperf.only
            else _offered(stage.plan if stage else plan, sources, options, last=stage is None)
        )
        if stage is None:
            assert wave is not None
            return wave.verdict.exit_code
        return _aiperf(stage, wave, sources, options)


def _offered(plan: WavePlan, sources: list[Source], options: dict[str, Any], *, last: bool) -> Wave:
    """Run a wave and print it; where it is not the ``last`` of the run, its JSON waits for what comes."""
    from inference_benchmarker.launch import run_wave

    live = _live(plan, quiet=options["quiet"])
    if not options["quiet"]:
        _say_doubts(options["endpoint_config"], sources, plan)
    calibration = _calibration(plan, live) if options["calibrate"] else None
    for source in sources:
        source.begin()
    wave = run_wave(plan, live, calibration)
    if sources:
        wave = _with_server_metrics(wave, sources, options)
    elif not options["json"]:
        _print_wave(wave, as_json=False)
    if options["json"] and last:
        _print_wave(wave, as_json=True)
    return wave


@contextmanager
def _aiperf_stage(
    aiperf: AiperfOptions | None, plan: WavePlan, options: dict[str, Any]
) -> Iterator[AiperfStage | None]:
    """The stage with its requests made, before any load is sent; None where aiperf is not to run."""
    if aiperf is None:
        yield None
        return
    from inference_benchmarker.aiperf_stage import prepared

    say = _say_nothing if options["quiet"] else _say
    with prepared(aiperf, plan, aiperf.url or os.environ[DEMO_URL], os.environ, say) as stage:
        yield stage


def _aiperf(stage: AiperfStage, wave: Wave | None, sources: list[Source], options: dict[str, Any]) -> int:
    """Run aiperf, after the wave where there is one, and print what it measured; the exit code of both."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    outcome = stage.follow(wave, sources)
    if outcome.problem:
        _say(f"benchmark: {outcome.problem}")
    if outcome.result is not None or options["json"]:
        _print_aiperf(wave, outcome.result, as_json=options["json"])
    return outcome.exit_code


def _sources(config: str | None, *, afterwards: bool = False) -> list[Source]:
    """The configuration's sources; ``afterwards``: those that can be asked about the past, so not metrics pages."""
    if config is None:
        return []
    from server_capacity.config import load_config, make_sources

    blocks = [block for block in load_config(config) if not (afterwards and "scrape_url" in block)]
    return make_sources(blocks, os.environ)


def _say_doubts(config: str | None, sources: list[Source], plan: WavePlan) -> None:
    """What will probably bring nothing is said while it costs nothing yet; only the user knows, so nothing ends."""
    for source in sources:
        for doubt in source.doubts(plan.expected_s):
            _say(f"{config}: {doubt}")


def _with_server_metrics(wave: Wave, sources: list[Source], options: dict[str, Any]) -> Wave:
    """Print what the client measured at once, the rest when the server's metrics are there."""
    from inference_benchmarker.processes import counting_interrupts

    say = _say_nothing if options["quiet"] else _say
    metrics: list[ServerMetric] = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):  # a source ends its waiting by itself; this one came a moment before or later
        if not options["json"]:
            print(wave.texts()[0], flush=True)
        for source in sources:
            metrics += _collected(source, wave, say)
    with counting_interrupts():  # what has come is stored and printed, whatever is pressed meanwhile
        wave = wave.with_server_metrics(metrics)
        try:
            wave.store_server_metrics()
        except OSError as error:
            reason = error.strerror or str(error)
            _say(f"The server's metrics could not be stored ({reason}); what is printed is all there is of them.")
        if not options["json"]:
            print(wave.texts()[1], end="", flush=True)
    return wave


def _collected(source: Source, wave: Wave, say: Callable[[str], None]) -> list[ServerMetric]:
    """What the source tells; a fault of ours in it keeps its traceback, and the wave its result."""
    try:
        return source.collect(wave.interval(), say)
    except Exception as error:
        from server_capacity.metrics import ServerMetric

        traceback.print_exc()
        stream, reason = type(source).__name__.lower(), f"reading them failed ({type(error).__name__})"
        return [ServerMetric(stream, f"{stream} metrics", {"Value": None}, complete=False, reason=reason)]


def _calibration(plan: WavePlan, live: Live) -> dict[str, Any]:
    from client_capacity.calibration import calibrate

    return calibrate(plan, live).to_json()


def _factory(arguments: list[str]) -> int:
    from inference_benchmarker.examples import FACTORY_DESCRIPTION, find, listing, shipped

    parser = _Parser(
        prog="benchmark factory",
        description=FACTORY_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="the example to print; without one, all are listed")
    options = parser.parse_args(arguments)
    if options.name is None:
        print(listing(shipped()), end="", flush=True)
        return 0
    sys.stdout.flush()
    sys.stdout.buffer.write(find(options.name, shipped()).path.read_bytes())  # as it is, whatever the locale
    sys.stdout.buffer.flush()
    return 0


def _check(arguments: list[str]) -> int:
    from inference_benchmarker.check_flags import CHECK_DESCRIPTION, CHECK_EPILOG, CHECK_FLAGS, one_request

    parser = _Parser(
        prog="benchmark check",
        description=CHECK_DESCRIPTION,
        epilog=CHECK_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="benchmark check --factories-file FILE [options]",
        allow_abbrev=False,
    )
    _add_flags(parser, CHECK_FLAGS)
    options, problems = _parsed(parser, arguments)
    plan = one_request(options, problems)
    from inference_benchmarker.check import send_one

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        found = send_one(plan, lambda text: print(text, end="", file=sys.stderr, flush=True))
    except KeyboardInterrupt:
        _say("Interrupted before the request was over.")
        return INTERRUPTED
    _print_result(found, as_json=options["json"])
    return 0 if found.ok else FAILED


def _report(arguments: list[str]) -> int:
    parser = _Parser(prog="benchmark report", description="Print a run again; finalise one that was cut off.")
    parser.add_argument("dir", metavar="DIR", type=Path, help="a run directory")
    parser.add_argument("--json", action="store_true", help="print summary.json instead of the report")
    again = "ask for the server's metrics of the wave's window once more, and store them with it"
    parser.add_argument("--endpoint-config", metavar="FILE", help=again)
    options = parser.parse_args(arguments)
    from inference_benchmarker.run_dir import RunDir
    from inference_benchmarker.wave import Wave
    from server_capacity.aiperf_export import AiperfResult, heavier

    sources = _sources(options.endpoint_config, afterwards=True)
    run_dir = RunDir.find(options.dir)
    result = AiperfResult.load(run_dir.aiperf)
    wave = None if result is not None and not run_dir.has_wave else Wave.load(options.dir)
    if wave is not None and sources:
        wave = _with_server_metrics(wave, sources, {"json": options.json, "quiet": False})
    elif wave is not None and not options.json:
        _print_wave(wave, as_json=False)
    if result is not None:
        _print_aiperf(wave, result, as_json=options.json)
    elif wave is not None and options.json:
        _print_wave(wave, as_json=True)
    return heavier(0 if wave is None else wave.verdict.exit_code, 0 if result is None else result.exit_code)


def _compare(arguments: list[str]) -> int:
    options = _compare_parser().parse_args([argument for argument in arguments if argument != "--compare"])
    from inference_benchmarker.slo import MaxRegression
    from inference_benchmarker.verdict import EXIT_INVALID, EXIT_MISSED, EXIT_VALID
    from inference_benchmarker.wave import Wave
    from visualization import comparison_report
    from visualization.comparison import compare

    problems: list[str] = []
    limits = list(_good(MaxRegression.parse, options.max_regression, problems))
    waves = list(_good(Wave.load, (options.base, options.new), problems))
    if problems:
        raise BenchmarkError("\n".join(problems))
    base, new = waves
    found = compare(base, new, limits)
    if options.json:
        print(json.dumps(comparison_report.to_json(found), indent=2, allow_nan=False), flush=True)
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        print(comparison_report.to_text(found, colour=colour), end="", flush=True)
    for path, text in (
        (options.markdown, comparison_report.to_markdown(found)),
        (options.junit, comparison_report.to_junit(found)),
    ):
        if path is not None:
            _write(path, text)
    return {"invalid": EXIT_INVALID, "failed": EXIT_MISSED, "passed": EXIT_VALID}[found.outcome]


def _good(read: Callable[[Any], Any], given: Iterable[Any], problems: list[str]) -> Iterator[Any]:
    """What can be read of what was given; the rest becomes problems."""
    for one in given:
        try:
            yield read(one)
        except BenchmarkError as error:
            problems.append(str(error))


def _write(path: Path, text: str) -> None:
    from inference_benchmarker.run_dir import replace_file

    try:
        replace_file(path, text)
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be written ({error.strerror}).", "Give another file.") from None


def _plot(arguments: list[str]) -> int:
    from inference_benchmarker.plot_flags import PLOT, make_plot

    parser = _Parser(
        prog="benchmark --plot",
        usage="benchmark --plot DIR [DIR ...] [options]",
        description="Compare run directories: a page to look at (no network needed), pictures for documents.",
        allow_abbrev=False,
    )
    parser.add_argument("--plot", metavar="DIR", nargs="*", action="extend", help="run directories")
    _add_flags(parser, PLOT)
    options, problems = _parsed(parser, arguments)
    plot = make_plot(options, problems)
    from inference_benchmarker.wave import Wave
    from visualization.runs import read_runs
    from visualization.series import make_figures, write_report

    say = _say_nothing if options["quiet"] else _say_when_slow(time.monotonic() + SLOW_S)
    figures = make_figures(read_runs(plot.runs, plot.metadata, Wave.load, say), plot.fields)
    for path in write_report(figures, plot.formats, plot.output_dir, say):
        print(path, flush=True)
    return 0


def _endpoint(arguments: list[str]) -> int:
    from inference_benchmarker.demo_endpoint import listen, serve
    from inference_benchmarker.endpoint_flags import ENDPOINT_EPILOG, ENDPOINT_FLAGS, endpoint_config, invitation

    parser = _Parser(
        prog="benchmark endpoint",
        description="The embedded endpoint: a queueing model of an inference server with a known capacity.",
        epilog=ENDPOINT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="benchmark endpoint [options]",
        allow_abbrev=False,
    )
    _add_flags(parser, ENDPOINT_FLAGS)
    port, config = endpoint_config(*_parsed(parser, arguments))
    with listen(port) as sock:
        port = sock.getsockname()[1]
        print(f"Listening on http://127.0.0.1:{port} (Ctrl-C ends it)")
        print(f"To boto3 it is AWS in a terminal where you have entered\n{invitation(port)}", flush=True)
        serve(config, sock)
    return 0


def _client(arguments: list[str]) -> int:
    from inference_benchmarker.client_flags import CLIENT_HELP, SATURATION

    command, rest = (arguments or ["--help"])[0], arguments[1:]
    if command in ("-h", "--help"):
        print(CLIENT_HELP, end="")
        return 0
    if command == "limits":
        return _client_limits(rest)
    if command not in SATURATION:
        known = ", ".join([*SATURATION, "limits"])
        raise BenchmarkError(f"There is no command {command!r} of benchmark client.", f"Commands are {known}.")
    return _saturation(command, rest)


def _client_limits(arguments: list[str]) -> int:
    parser = _Parser(prog="benchmark client limits", description="File descriptors and ports, and what they allow.")
    parser.add_argument("--json", action="store_true", help="print the limits as JSON")
    options = parser.parse_args(arguments)
    from client_capacity.limits import find_file_descriptors_limit

    _print_result(find_file_descriptors_limit(), as_json=options.json)
    return 0


def _saturation(command: str, arguments: list[str]) -> int:
    from inference_benchmarker.client_flags import SATURATION, SATURATION_EPILOG, make_conditions

    description, flags = SATURATION[command]
    parser = _Parser(
        prog=f"benchmark client {command}",
        description=description,
        epilog=SATURATION_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=f"benchmark client {command} [--demo | --factories-file FILE] [options]",
        allow_abbrev=False,
    )
    _add_flags(parser, flags)
    options, problems = _parsed(parser, arguments)
    conditions = make_conditions(options, problems)
    found, interrupted = None, False
    try:
        # what is measured against an endpoint without a service time is the client
        embedded = _embedded_endpoint(service="none") if options["demo"] else nullcontext()
        with embedded, _progress(options["quiet"]) as say:
            from client_capacity.rps_saturation import measure_client
            from client_capacity.worker_saturation import measure_worker

            measure = measure_worker if command == "worker-saturation" else measure_client
            found = measure(conditions, say)
    except KeyboardInterrupt:
        interrupted = True
    if found is None:
        _say("Interrupted before the first step ended: no rate was tried to its end.")
        return INTERRUPTED
    _print_result(found, as_json=options["json"])
    if interrupted or found.limited_by == "interrupted":
        return INTERRUPTED
    return 0 if found.rate else NOTHING_FOUND


def _wave_parser() -> _Parser:
    parser = _Parser(
        prog="benchmark",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="benchmark [--demo | --factories-file FILE] [options]",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"benchmark {__version__}")
    _add_flags(parser, FLAGS)
    return parser


def _add_flags(parser: _Parser, groups: dict[str, list[Flag]]) -> None:
    for title, flags in groups.items():
        group = parser.add_argument_group(title)
        for flag, metavar, text in flags:
            if metavar is None:
                group.add_argument(flag, action="store_true", default=None, help=text)
            elif flag in REPEATABLE:
                group.add_argument(flag, metavar=metavar, action="append", help=text)
            else:
                group.add_argument(flag, metavar=metavar, help=text)


def _parsed(parser: _Parser, arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
    """The flags as text, and a problem for each argument that is none; what was surely meant counts as given."""
    parsed, unknown = parser.parse_known_args(arguments)
    if not unknown:
        return vars(parsed), []
    from inference_benchmarker.misspelt import meant, mended, question, strays

    known = [f"--{name.replace('_', '-')}" for name in vars(parsed)]
    found = strays(arguments, unknown)
    close = {argument: meant(argument, known) if argument.startswith("-") else [] for argument in found}
    with suppress(BenchmarkError):  # so that nothing else is called missing
        parsed, _ = parser.parse_known_args(list(mended(arguments, unknown, known)))
    hints = {argument: question(flags) or f" See `{parser.prog} --help`." for argument, flags in close.items()}
    return vars(parsed), [f"Unknown argument {argument!r}.{hints[argument]}" for argument in found]


def _wave_options(parser: _Parser, arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Flags as text (nothing converted yet), from the command line and the configuration file."""
    options, problems = _parsed(parser, arguments)
    if options["config"] is not None:
        configured, found = read_config(Path(options["config"]), options)
        problems += found
        for one, other in ALTERNATIVES:
            if options[one] is not None:
                configured.pop(other, None)
            if options[other] is not None:
                configured.pop(one, None)
        options = {key: configured.get(key) if value is None else value for key, value in options.items()}
        if found:  # what it should have said is not missing
            fill_in_demo(options)
    return options, problems


@contextmanager
def _demo_endpoint(plan: WavePlan) -> Iterator[WavePlan]:
    """With ``--demo``: the embedded endpoint while the wave runs; a Locust file without a host is sent to it.

    It publishes its metrics as often as it can, so that even a short wave has whole intervals.
    """
    with _embedded_endpoint(publish_interval_s=1) as url:
        yield replace(plan, url=url) if plan.locust_file is not None and plan.url is None else plan


@contextmanager
def _embedded_endpoint(**config: Any) -> Iterator[str]:
    """The address of an embedded endpoint; to the environment of this process and its children it is all of AWS."""
    from inference_benchmarker.demo.boto3_settings import isolated
    from inference_benchmarker.demo_endpoint import EndpointConfig, start

    with start(EndpointConfig(**config)) as endpoint:
        before = dict(os.environ)
        _set_environment({**isolated(before, endpoint.url), DEMO_URL: endpoint.url})
        try:
            yield endpoint.url
        finally:
            _set_environment(before)


def _set_environment(wanted: dict[str, str]) -> None:
    for name in set(os.environ) - set(wanted):
        del os.environ[name]
    os.environ.update(wanted)


def _compare_parser() -> _Parser:
    from inference_benchmarker.comparison_flags import COMPARE_DESCRIPTION, COMPARE_EPILOG, FILES, MAX_REGRESSION_HELP

    parser = _Parser(
        prog="benchmark --compare",
        description=COMPARE_DESCRIPTION,
        epilog=COMPARE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="benchmark --compare BASE NEW [options]",
        allow_abbrev=False,
    )
    parser.add_argument("base", metavar="BASE", type=Path, help="the run directory to compare with")
    parser.add_argument("new", metavar="NEW", type=Path, help="the run directory that is judged")
    parser.add_argument("--max-regression", metavar="LIMIT", action="append", default=[], help=MAX_REGRESSION_HELP)
    for flag, text in FILES:
        parser.add_argument(flag, metavar="FILE", type=Path, help=text)
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    return parser


def _live(plan: WavePlan, *, quiet: bool | None) -> Live:
    from inference_benchmarker.launch import Nobody
    from inference_benchmarker.progress import PanelView, PlainView

    if quiet:
        return Nobody()
    return PanelView(plan, sys.stderr) if sys.stderr.isatty() else PlainView(plan, sys.stderr)


def _print_wave(wave: Wave, *, as_json: bool | None) -> None:
    print(json.dumps(wave.to_json(), indent=2) + "\n" if as_json else wave.text(), end="", flush=True)


def _print_aiperf(wave: Wave | None, result: AiperfResult | None, *, as_json: bool | None) -> None:
    """Its block, below the wave's where there was one; as JSON one object of both."""
    from inference_benchmarker.aiperf_report import aiperf_text

    if as_json:
        told = {} if wave is None else wave.to_json()
        print(json.dumps({**told, "aiperf": None if result is None else result.to_json()}, indent=2), flush=True)
    elif result is not None:
        print(("" if wave is None else "\n") + aiperf_text(result), end="", flush=True)


def _print_result(found: Any, *, as_json: bool | None) -> None:
    print(json.dumps(found.to_json(), indent=2) + "\n" if as_json else found.to_text(), end="", flush=True)


@contextmanager
def _progress(quiet: bool | None) -> Iterator[Callable[[str], None]]:
    """What says how a search goes on: on a terminal the next line overwrites what is being tried."""
    from client_capacity.search import PASSING

    passing = ""

    def overwrite(message: str) -> None:
        nonlocal passing
        width = (os.get_terminal_size(sys.stderr.fileno()).columns or 80) - 1
        passing = message[:width] if message.startswith(PASSING) else ""
        print(f"\r\x1b[K{passing or message}", end="" if passing else "\n", file=sys.stderr, flush=True)

    try:
        yield _say_nothing if quiet else overwrite if sys.stderr.isatty() else _say
    finally:
        if passing:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _say_when_slow(from_then: float) -> Callable[[str], None]:
    """Progress of what is usually done before anyone would ask."""
    return lambda message: _say(message) if time.monotonic() > from_then else None


def _say_nothing(_: str) -> None:
    """--quiet."""


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
