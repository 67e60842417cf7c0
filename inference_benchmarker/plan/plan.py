"""The load to offer: the wave plan, a value that knows every conflict between its parts.

A plan comes from the command line, from a TOML file or from Python; it is checked as a whole, so a user
reads every problem at once, and it survives a round trip through JSON (``plan.json`` in a run directory).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import Problem, refuse
from inference_benchmarker.plan.exact import exact, take_exactly
from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop, seconds_problems
from inference_benchmarker.plan.pacing import schedule_of
from inference_benchmarker.plan.replay import Replay
from inference_benchmarker.plan.retries import Retries
from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.redact import redact
from inference_benchmarker.units import MAX_SECONDS, NS
from inference_benchmarker.url import url_problem
from inference_benchmarker.version import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inference_benchmarker.plan.replay import Recording

MAX_WORKERS = 1_000
DEFAULT_MAX_IN_FLIGHT = 10_000
SUCCESS_THRESHOLD = 0.95

_NO_ENDPOINT = Problem(
    ("factories_file", "locust_file"),
    "No endpoint: give --factories-file FILE (or --locust-file FILE, or --demo to try it out).",
)


@dataclass(frozen=True, slots=True)
class WavePlan:
    """One bounded load at one operating point. Seconds are decimals, counts are integers."""

    load: OpenLoop | ClosedLoop
    bounds: Bounds
    factories_file: Path | None = None
    endpoint_name: str | None = None
    locust_file: Path | None = None
    url: str | None = None
    workers: int = 1
    warmup_s: Decimal = Decimal(0)
    drain_timeout_s: Decimal = Decimal(60)
    request_timeout_s: Decimal | None = None
    retries: Retries = field(default_factory=Retries)
    load_timeout_s: Decimal = Decimal(600)
    max_in_flight: int | None = None
    seed: int | None = None
    success_threshold: float = SUCCESS_THRESHOLD
    slos: tuple[Slo, ...] = field(default=())
    goodput: tuple[RequestLimit, ...] = field(default=())
    port: int | None = None
    ui: bool = False
    sample_client_hw: bool = False
    debug: bool = False
    output_dir: Path = Path(".tmp")
    name: str | None = None

    def __post_init__(self) -> None:
        take_exactly(self, "warmup_s", "drain_timeout_s", "request_timeout_s", "load_timeout_s")
        for field_name in ("factories_file", "locust_file", "output_dir"):
            if isinstance(value := getattr(self, field_name), str):
                object.__setattr__(self, field_name, Path(value))
        if isinstance(self.load, OpenLoop) and self.bounds.duration_s is None and self.load.length_s is not None:
            object.__setattr__(self, "bounds", replace(self.bounds, duration_s=self.load.length_s))

    def problems(self, *, endpoint_needed: bool = True) -> list[Problem]:
        """Everything that is wrong with this plan; empty when it can run.

        Without ``endpoint_needed`` it may name no file: whoever asks has its requests from elsewhere.
        """
        missing = [] if self.factories_file or self.locust_file or not endpoint_needed else [_NO_ENDPOINT]
        return [*self.problems_of_values(), *missing, *self._endpoint_problems(), *self._recording_problems()]

    def problems_of_values(self) -> list[Problem]:
        """The problems of its numbers, whatever became of its endpoint: a plan that is read back has none."""
        return [
            *self.load.problems(),
            *(() if self._unread else self._bounds_problems()),
            *self._length_problems(),
            *self._stage_problems(),
            *self._replay_problems(),
            *self._process_problems(),
            *self._timing_problems(),
            *self._retry_problems(),
            *self._threshold_problems(),
        ]

    def check(self) -> None:
        """Raise one BenchmarkError that names every problem."""
        refuse([problem.text for problem in self.problems()])

    @property
    def warmup_ns(self) -> int:
        """Length of the warm-up before wave start."""
        return int(self.warmup_s * NS)

    @property
    def drain_ns(self) -> int:
        """The longest wait for requests in flight after the last arrival."""
        return int(self.drain_timeout_s * NS)

    @property
    def target_rate(self) -> float | None:
        """The planned rate in requests/s; None in the closed loop."""
        return float(self.load.rate) if isinstance(self.load, OpenLoop) else None

    @property
    def recording(self) -> Recording | None:
        """Facts of the recording that is replayed, once it has been read."""
        return self.load.recording if isinstance(self.load, OpenLoop) else None

    @property
    def expected_s(self) -> float | None:
        """The seconds that the wave lasts, of a Poisson one the mean; None where the endpoint's answers decide."""
        number, duration = self.bounds.num_requests, self.bounds.duration_s
        ends = [] if duration is None else [float(duration)]
        if number is not None and isinstance(self.load, OpenLoop) and self.load.rate:
            by_number = schedule_of(self.load).due(number) / NS if self.load.stages else float(number / self.load.rate)
            ends.append(by_number)
        return min(ends, default=None)

    def _bounds_problems(self) -> Iterator[Problem]:
        """A load that is steered ends when it is told to, so it needs no bound."""
        if not isinstance(self.load, OpenLoop) or not self.load.is_steered:
            yield from self.bounds.problems()
        elif self.bounds.num_requests is not None:
            text = "--interactive: a rate that changes has no known number of requests: leave --num-requests out."
            yield Problem(("num_requests", "steered"), text)
        elif self.bounds.duration_s is not None:
            yield from self.bounds.problems()

    def _length_problems(self) -> Iterator[Problem]:
        """A wave that no bound ends within the longest time a wave may last."""
        number = self.bounds.num_requests
        if isinstance(self.load, ClosedLoop) or number is None or self.bounds.duration_s is not None or self._unread:
            return
        if any(self.load.problems()) or any(self.bounds.problems()) or number <= self.load.rate * MAX_SECONDS:
            return
        text = (
            f"--num-requests {number} at {self.load.rate} requests/s would take longer than {MAX_SECONDS:,} seconds: "
            "give a higher --client-rps, fewer requests, or an --obs-time."
        )
        yield Problem(("num_requests", "rate"), text)

    def _stage_problems(self) -> Iterator[Problem]:
        load = self.load
        if not isinstance(load, OpenLoop) or not load.stages or any(load.problems()):
            return
        if self.bounds.duration_s != load.stages_s:
            text = f"--stages last {load.stages_s:f} seconds: leave --obs-time out, or give --client-rps instead."
            yield Problem(("duration_s", "stages"), text)
        if self.warmup_s and not load.stages[0].from_rps:
            text = "--warmup runs at the first stage's first rate, which is 0: leave it out, or begin above 0."
            yield Problem(("warmup_s", "stages"), text)

    @property
    def _unread(self) -> bool:
        """Tells whether a recording says how long the wave lasts, and has not been read yet."""
        return isinstance(self.load, OpenLoop) and self.load.replay is not None and self.load.recording is None

    def _replay_problems(self) -> Iterator[Problem]:
        load = self.load
        if not isinstance(load, OpenLoop) or load.replay is None:
            return
        if self.bounds.duration_s != load.length_s:
            yield Problem(
                ("replay", "duration_s"), "--replay: the recording says how long the wave lasts: leave --obs-time out."
            )
        if self.warmup_s:
            text = "--replay: a recording has no first rate, at which a --warmup would run: leave --warmup out."
            yield Problem(("replay", "warmup_s"), text)
        if self._unread and self.bounds.num_requests is not None:
            yield from replace(self.bounds, duration_s=None).problems()

    def _recording_problems(self) -> Iterator[Problem]:
        if isinstance(self.load, OpenLoop) and self.load.replay is not None and self._unread:
            file = self.load.replay.file
            if not _is(Path.is_file, file):
                yield Problem(("file",), f"--replay {file}: {_instead_of_a_file(file)}.")

    def _endpoint_problems(self) -> Iterator[Problem]:
        if self.factories_file is not None and self.locust_file is not None:
            text = "Give either --factories-file or --locust-file, not both."
            yield Problem(("factories_file", "locust_file"), text)
        files = {"factories_file": self.factories_file, "locust_file": self.locust_file}
        for name, path in files.items():
            if path is not None and not _is(Path.is_file, path):
                yield Problem((name,), f"--{name.replace('_', '-')} {path}: {_instead_of_a_file(path)}.")
        if self.endpoint_name is not None and not self.endpoint_name.strip():
            yield Problem(("endpoint_name",), "--endpoint-name must not be empty.")
        if self.endpoint_name is not None and self.factories_file is None and self.locust_file is not None:
            text = "--endpoint-name goes to invoke_factory; with --locust-file use --url."
            yield Problem(("endpoint_name", "factories_file"), text)
        if self.locust_file is not None and self.retries.asked:
            text = (
                "--client-timeout and --client-retries need a factories file, where a request is known for one; a task "
                "of a --locust-file tries again itself."
            )
            yield Problem(("locust_file", "retries", "timeout_s"), text)
        if self.url is not None:
            yield from self._url_problems(self.url)

    def _url_problems(self, url: str) -> Iterator[Problem]:
        if self.locust_file is None:
            text = "--url is the host of a --locust-file; a factories file names its endpoint itself."
            yield Problem(("url", "locust_file"), text)
        if problem := url_problem("--url", url):
            yield Problem(("url",), problem)

    def _process_problems(self) -> Iterator[Problem]:
        if not 1 <= self.workers <= MAX_WORKERS:
            yield Problem(("workers",), f"--workers must be from 1 to {MAX_WORKERS:,}, not {self.workers}.")
        if self.port is not None and not 1 <= self.port <= 65535:
            yield Problem(("port",), f"--port must be from 1 to 65535, not {self.port}.")
        if self.max_in_flight is not None and self.max_in_flight < self.workers:
            text = f"--max-in-flight must be at least one a worker ({self.workers}), not {self.max_in_flight}."
            yield Problem(("max_in_flight", "workers"), text)
        if isinstance(self.load, ClosedLoop):
            yield from self._closed_loop_problems(self.load.concurrency)
        if self.seed is not None and not 0 <= self.seed < 2**63:
            yield Problem(("seed",), f"--seed must be a whole number from 0 to 2^63 - 1, not {self.seed}.")

    def _closed_loop_problems(self, concurrency: int) -> Iterator[Problem]:
        if 1 <= concurrency < self.workers:
            text = (
                f"--concurrency {concurrency} cannot be split over {self.workers} workers: "
                f"use --workers {concurrency} or fewer."
            )
            yield Problem(("concurrency", "workers"), text)
        if self.max_in_flight is not None:
            text = "--max-in-flight caps an open loop; with --concurrency the cap is the concurrency."
            yield Problem(("max_in_flight",), text)

    def _timing_problems(self) -> Iterator[Problem]:
        yield from seconds_problems("warmup_s", "--warmup", self.warmup_s)
        yield from seconds_problems("drain_timeout_s", "--drain-timeout", self.drain_timeout_s)
        if self.request_timeout_s is not None:
            least = Decimal("0.001")
            yield from seconds_problems("request_timeout_s", "--request-timeout", self.request_timeout_s, least)
        yield from seconds_problems("load_timeout_s", "--load-timeout", self.load_timeout_s, least=Decimal(1))

    def _retry_problems(self) -> Iterator[Problem]:
        yield from self.retries.problems()
        attempt, arrival = self.retries.timeout_s, self.request_timeout_s
        given = [limit for limit in (attempt, arrival) if limit is not None and limit.is_finite()]
        if len(given) == 2 and given[0] >= given[1]:
            text = (
                f"--client-timeout {attempt} is for one attempt and must be below --request-timeout {arrival}, which "
                "bounds all attempts of an arrival together."
            )
            yield Problem(("timeout_s", "request_timeout_s"), text)

    def _threshold_problems(self) -> Iterator[Problem]:
        if not (math.isfinite(self.success_threshold) and 0 <= self.success_threshold <= 1):
            text = f"--success-threshold must be a share from 0 to 1, not {self.success_threshold}."
            yield Problem(("success_threshold",), text)
        names = self.load.stage_names if isinstance(self.load, OpenLoop) else ()
        steered = isinstance(self.load, OpenLoop) and self.load.steered
        for slo in self.slos:
            if slo.stage and slo.stage not in names and not (steered and slo.stage.isdecimal()):
                stages = f"the stages are {', '.join(names[:20])}" if names else "there are no --stages"
                yield Problem(("slos", "stages"), f"--slo {slo.expression}: there is no stage {slo.stage}; {stages}.")
            if slo.metric == "goodput" and not self.goodput:
                text = f"--slo {slo.expression}: say what a good request is, e.g. --goodput 'ttft<1s,itl<50ms'."
                yield Problem(("slos", "goodput"), text)
        if isinstance(self.load, ClosedLoop):
            yield from self._open_loop_only_problems()

    def _open_loop_only_problems(self) -> Iterator[Problem]:
        for limit in self.goodput:
            if limit.metric == "response_time":
                text = f"--goodput {limit.expression}: a closed loop has no response time; limit latency instead."
                yield Problem(("goodput",), text)
        for slo in self.slos:
            if what := _open_loop_only(slo):
                yield Problem(("slos",), f"--slo {slo.expression}: a closed loop has no {what}; limit latency instead.")

    def to_json(self) -> dict[str, Any]:
        """A JSON object; decimals and paths become strings, so nothing is rounded."""
        data = asdict(self)
        kind = "open" if isinstance(self.load, OpenLoop) else "closed"
        data["load"] = {"kind": kind, **data["load"]}
        if isinstance(self.load, OpenLoop):
            data["load"]["replay"] = None if self.load.replay is None else self.load.replay.to_json()
        data["retries"] = self.retries.to_json()
        data["slos"] = [slo.expression for slo in self.slos]
        data["goodput"] = [limit.expression for limit in self.goodput]
        return {"schema_version": SCHEMA_VERSION, **_plain(data)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> WavePlan:
        """The plan that ``to_json`` described."""
        values = {
            key: value for key, value in data.items() if key not in ("schema_version", "environment", "calibration")
        }
        load = dict(values.pop("load"))
        kind = load.pop("kind")
        if kind == "open":
            replay = load.get("replay")
            values["load"] = OpenLoop(
                exact(load["rate"]),
                load["arrivals"],
                _stages(load.get("stages", ())),
                None if replay is None else Replay.from_json(replay),
                load.get("steered", False),  # older plans have none
            )
        else:
            values["load"] = ClosedLoop(**load)
        bounds = values.pop("bounds")
        values["bounds"] = Bounds(_decimal(bounds["duration_s"]), bounds["num_requests"])
        values["slos"] = tuple(Slo.parse(text) for text in values["slos"])
        values["goodput"] = tuple(map(RequestLimit.parse, values.get("goodput", ())))  # older plans have none
        for key in ("warmup_s", "drain_timeout_s", "request_timeout_s"):
            values[key] = _decimal(values[key])
        if "retries" in values:  # older plans have none
            values["retries"] = Retries.from_json(values["retries"])
        if "load_timeout_s" in values:  # older plans have none
            values["load_timeout_s"] = Decimal(values["load_timeout_s"])
        for key in ("factories_file", "locust_file", "output_dir"):
            values[key] = None if values[key] is None else Path(values[key])
        return cls(**values)

    def public_json(self) -> dict[str, Any]:
        """``to_json`` without passwords: what may stand in a file."""
        data = self.to_json()
        return {key: redact(value) if isinstance(value, str) else value for key, value in data.items()}

    def with_replay(self, replay: Replay) -> WavePlan:
        """The same plan with its recording read."""
        return replace(self, load=OpenLoop(replay=replay), bounds=replace(self.bounds, duration_s=None))

    def with_seed(self, seed: int) -> WavePlan:
        """The same plan with its seed settled."""
        return replace(self, seed=seed)


def _open_loop_only(slo: Slo) -> str:
    if slo.metric == "rate":
        return "target rate"
    if slo.metric == "response_time":
        return "response time"
    return ""


def _stages(rows: list[dict[str, str]]) -> tuple[Stage, ...]:
    numbers = ("from_rps", "to_rps", "duration_s")
    return tuple(Stage(**{key: exact(row[key]) for key in numbers}, name=row["name"]) for row in rows)


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else exact(text)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (Decimal, Path)):
        return str(value)
    return value


def _is(kind: Callable[[Path], bool], path: Path) -> bool:
    try:
        return kind(path)
    except (OSError, ValueError):  # a name too long, a folder that may not be read
        return False


def _instead_of_a_file(path: Path) -> str:
    return "this is a folder; give the file in it" if _is(Path.is_dir, path) else "there is no such file"
