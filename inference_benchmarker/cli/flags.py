"""The flags of the command line as text, from wherever they come, and what they mean: a plan.

Nothing is converted before everything is known, so that one message can name every problem.
"""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.files import MIB, read_given
from inference_benchmarker.plan.plan import Bounds, ClosedLoop, OpenLoop, WavePlan
from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.redact import redact
from server_capacity.aiperf.options import AIPERF_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator


DEMO_DEFAULTS = {"client_rps": "100", "obs_time": "10", "workers": "2"}
# aiperf takes milliseconds of CPU for a stream: at 100/s it would measure itself
DEMO_WITH_AIPERF = {**DEMO_DEFAULTS, "client_rps": "20"}
DEMO_FACTORIES = Path("demo") / "factories_demo.py"
DEMO_CHAT_FACTORIES = Path("openai_compatible") / "factories_chat_stream.py"
DEMO_METRICS = Path("server_metrics_configs") / "demo.json"

Flag = tuple[str, str | None, str]  # the flag, the name of its value (None: a switch), what it means

FLAGS: dict[str, list[Flag]] = {
    "endpoint": [
        (
            "--factories-file",
            "FILE",
            "the endpoint in two Python functions: invoke_factory and payload_factory",
        ),
        ("--endpoint-name", "NAME", "passed to invoke_factory"),
        ("--locust-file", "FILE", "a self-contained Locust file instead of factories"),
        ("--url", "URL", "host of a --locust-file that has none; where aiperf sends to"),
        ("--demo", None, "the embedded endpoint, its factories and its server metrics stand in for what is not given"),
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
        ("--load-timeout", "S", "how long loading the factories file may take (default 600)"),
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
        (
            "--goodput",
            "LIMITS",
            "count the requests that meet every limit, repeatable: ttft<1s,itl<50ms (latency, response_time, tpot)",
        ),
    ],
    "server metrics": [
        ("--endpoint-config", "FILE", "server metrics over the wave: a JSON list of CloudWatch and Prometheus blocks"),
    ],
    "aiperf": AIPERF_FLAGS,
    "processes and output": [
        ("--sample-client-hw", None, "record CPU, memory and network of this client during the wave"),
        (
            "--calibrate",
            None,
            "measure first what this tool itself adds at this rate on this host (a few seconds)",
        ),
        ("--port", "P", "the primary's port on loopback (default: any free one)"),
        ("--ui", None, "Locust's web page while the wave runs, on loopback, port 8089 or the next free one"),
        ("--output-dir", "DIR", "where the run directory goes (default .tmp)"),
        ("--name", "TEXT", "how the run is called in reports"),
        ("--json", None, "print the summary as JSON"),
        ("--quiet", None, "no progress"),
        ("--debug", None, "verbose logs"),
        ("--config", "FILE.toml", "the same flags as keys; the command line wins"),
    ],
}


REPEATABLE = ("--slo", "--goodput", "--metric-fault")


def read_config(path: Path, known: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The flags of a TOML file as text, and what is wrong with them."""
    try:
        data = tomllib.loads(read_given(path, MIB).decode())
    except (OSError, ValueError, RecursionError) as error:
        return {}, [f"--config {path}: cannot be read ({getattr(error, 'strerror', None) or error})."]
    values: dict[str, Any] = {}
    problems = []
    switches = {flag[2:].replace("-", "_") for flags in FLAGS.values() for flag, metavar, _ in flags if metavar is None}
    for key, value in data.items():
        name = key.replace("-", "_")
        several = f"--{name}" in REPEATABLE
        if name not in known or name in ("config", "help", "version"):
            problems.append(f"--config {path}: unknown key {key!r}.{_asked(key, known)}")
        elif (name in switches) != isinstance(value, bool) or not _is_plain(value, several=several):
            problems.append(
                f"--config {path}: {key} must be {'true or false' if name in switches else 'a value'}, not {value!r}."
            )
        elif several:
            values[name] = [str(item) for item in (value if isinstance(value, list) else [value])]
        else:
            values[name] = value if isinstance(value, bool) else str(value)
    return values, problems


def _asked(key: str, known: Collection[str]) -> str:
    from inference_benchmarker.suggest import meant, question

    keys = {name.replace("_", "-") for name in known} - {"config", "help", "version"}
    return question(meant(key, sorted(keys))) or " See `benchmark --help`."


def _is_plain(value: Any, *, several: bool) -> bool:
    """Whether a value of the file is one that a flag could have, or a list of such where a flag may repeat."""
    if several and isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, (str, int, float))


def make_plan(options: dict[str, Any], problems: list[str], *, endpoint_needed: bool = True) -> WavePlan:
    """The plan that the flags describe, or one error with everything that is wrong with them."""
    read = Reader(options, problems)
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
        load_timeout_s=read.decimal("load_timeout", Decimal(600)),
        max_in_flight=read.integer("max_in_flight"),
        seed=read.integer("seed"),
        success_threshold=float(read.decimal("success_threshold", Decimal("0.95"))),
        slos=tuple(read.slos()),
        goodput=tuple(read.request_limits()),
        port=read.integer("port"),
        ui=bool(options["ui"]),
        sample_client_hw=bool(options["sample_client_hw"]),
        debug=bool(options["debug"]),
        output_dir=read.path("output_dir") or Path(".tmp"),
        name=options["name"] and redact(options["name"]),
    )
    found = [problem for problem in plan.problems() if not read.stood_in_for(problem)]
    problems += [problem for problem in found if endpoint_needed or not problem.startswith("No endpoint")]
    if problems:
        from inference_benchmarker.engine.endpoint import source_problems

        problems += source_problems(plan.factories_file, plan.locust_file)
        raise BenchmarkError("\n".join(problems))
    return plan


def _load(read: Reader) -> OpenLoop | ClosedLoop:
    options = read.options
    if options["concurrency"] is not None:
        for name in ("client_rps", "arrivals"):
            if options[name] is not None:
                read.problems.append(f"Give either --concurrency or --{name.replace('_', '-')}, not both.")
        return ClosedLoop(read.integer("concurrency", 1) or 0)
    if options["client_rps"] is None:
        read.problems.append("No load: give --client-rps R (open loop) or --concurrency C (closed loop).")
    return OpenLoop(read.decimal("client_rps", Decimal(1)), options["arrivals"] or "constant")


class Reader:
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

    def number(self, name: str) -> float | None:
        """A number that need not be exact."""
        value = self.decimal(name)
        return None if value is None else float(value)

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

    def request_limits(self) -> Iterator[RequestLimit]:
        """The limits on each request that can be read."""
        for text in (text for given in self.options["goodput"] or () for text in given.split(",")):
            try:
                yield RequestLimit.parse(text)
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


def fill_in_demo(options: dict[str, Any]) -> None:
    """With ``--demo``: defaults for what is not given."""
    if options["workers"] is None and "1" in (options["concurrency"], options["max_in_flight"]):
        options["workers"] = "1"
    with_aiperf = bool(options["aiperf"] or options["aiperf_only"])
    for name, value in (DEMO_WITH_AIPERF if with_aiperf else DEMO_DEFAULTS).items():
        replaced = {"client_rps": "concurrency", "obs_time": "num_requests"}.get(name, name)
        if options[name] is None and options[replaced] is None:
            options[name] = value
    if options["factories_file"] is None and options["locust_file"] is None:
        options["factories_file"] = str(demo_factories(chat=with_aiperf))
        if options["endpoint_config"] is None:
            options["endpoint_config"] = str(packaged("server_capacity", DEMO_METRICS))


def demo_factories(*, chat: bool = False) -> Path:
    """The factories file of the embedded endpoint; as a chat, which is what aiperf can send."""
    return packaged("factories", DEMO_CHAT_FACTORIES if chat else DEMO_FACTORIES)


def packaged(package: str, file: Path) -> Path:
    """A file that comes with a package; the package itself is not imported for it."""
    from importlib.util import find_spec

    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations))) / file


def parse_decimal(flag: str, text: str) -> Decimal:
    """An exact decimal from a flag's text; NaN and infinity are refused, 1,000 and 1_000 too."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or not text.isascii() or "_" in text:
        raise BenchmarkError(f"{flag} must be a number, not {_shortened(text)}.")
    return value


def parse_int(flag: str, text: str) -> int:
    """A whole number from a flag's text; 1e3 and 1,000 are refused, 1_000 is not a surprise worth allowing."""
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,100}\s*", text):
        raise BenchmarkError(f"{flag} must be a whole number, not {_shortened(text)}.")
    return int(text)


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 100 else text[:100] + "…")
