"""The wave plan: all that a wave is asked for, as a plain value.

A plan comes from the command line, from a TOML file or from Python. ``problems`` checks it as a whole, so a user
reads every problem at once, and it survives a round trip through JSON (``plan.json`` in a run directory).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.answer_size import DEFAULT_ANSWER_SIZE
from inference_benchmarker.plan.abort_on import AbortOn
from inference_benchmarker.plan.expectation import Expectation
from inference_benchmarker.plan.hosts import Hosts
from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop, Population
from inference_benchmarker.plan.model_mix import ModelMix
from inference_benchmarker.plan.numbers import exact, take_exactly
from inference_benchmarker.plan.recorded import Conversations
from inference_benchmarker.plan.replay import Replay
from inference_benchmarker.plan.retries import Retries
from inference_benchmarker.plan.server_limit import ServerLimit, is_server_limit
from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.plan.think import Think
from inference_benchmarker.url import SEED_SETTING, address_of
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.words.redact import redact
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from inference_benchmarker.plan.replay import Recording

DEFAULT_MAX_IN_FLIGHT = 10_000
SUCCESS_THRESHOLD = 0.95
ALL, NONE = "all", "none"


@dataclass(frozen=True, slots=True)
class WavePlan:
    """One bounded load at one operating point. Seconds are decimals, counts are integers.

    ``records``: keep the record of each request (``all``), or count requests and keep only the records of the slowest
    (``none``). ``first_payload``: the index of arrival 0's payload, or its session's number, so that waves in a row
    need not repeat any. ``payload_arguments``: keyword arguments of ``payload_factory``, as JSON values.
    ``factory_settings``: strings by name that replace constants of the factories file; they are stored in
    ``plan.json``, so they must not be secrets. ``abort``: end the wave if no connection to the endpoint succeeds.
    ``max_answer_size``: in bytes; a request with a larger answer fails. ``expect``: conditions on every answer; a
    request whose answer violates one fails. ``model_mix``: the models that requests name. ``hosts``: the hosts of the
    workers; ``workers`` is the total over all hosts, see ``on``. ``conversations``: recorded conversations, which
    sessions send.
    """

    load: OpenLoop | ClosedLoop
    bounds: Bounds
    factories_file: Path | None = None
    endpoint_name: str | None = None
    locust_file: Path | None = None
    url: str | None = None
    workers: int = 1
    hosts: Hosts = field(default_factory=Hosts)
    conversations: Conversations | None = None
    warmup_s: Decimal = Decimal(0)
    drain_timeout_s: Decimal = Decimal(60)
    request_timeout_s: Decimal | None = None
    max_answer_size: int = DEFAULT_ANSWER_SIZE
    expect: tuple[Expectation, ...] = field(default=())
    model_mix: ModelMix | None = None
    retries: Retries = field(default_factory=Retries)
    load_timeout_s: Decimal = Decimal(600)
    max_in_flight: int | None = None
    seed: int | None = None
    success_threshold: float = SUCCESS_THRESHOLD
    slos: tuple[Slo, ...] = field(default=())
    server_limits: tuple[ServerLimit, ...] = field(default=())
    goodput: tuple[RequestLimit, ...] = field(default=())
    abort_on: tuple[AbortOn, ...] = field(default=())
    abort: bool = True
    port: int | None = None
    ui: bool = False
    sample_client_hw: bool = False
    records: str = ALL
    first_payload: int = 0
    payload_arguments: dict[str, Any] | None = None
    factory_settings: dict[str, str] = field(default_factory=dict)
    debug: bool = False
    output_dir: Path = Path(".tmp")
    name: str | None = None

    def __post_init__(self) -> None:
        take_exactly(self, "warmup_s", "drain_timeout_s", "request_timeout_s", "load_timeout_s")
        for field_name in ("factories_file", "locust_file", "output_dir"):
            if isinstance(value := getattr(self, field_name), str):
                object.__setattr__(self, field_name, Path(value))
        if self.bounds.duration_s is None and self.load.length_s is not None:
            object.__setattr__(self, "bounds", replace(self.bounds, duration_s=self.load.length_s))

    @property
    def endpoint(self) -> str | None:
        """The endpoint as people call it, without secrets: its name, else the address that the plan knows of it."""
        called = self.endpoint_name or address_of(self.factory_settings) or self.url
        return None if called is None else redact(called)

    @property
    def warmup_ns(self) -> int:
        """Length of the warm-up before wave start."""
        return int(self.warmup_s * NS)

    @property
    def counts_requests(self) -> bool:
        """Tells whether requests are counted, and no record is kept of each."""
        return self.records == NONE

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
            by_number = self.load.schedule.due(number) / NS if self.load.stages else float(number / self.load.rate)
            ends.append(by_number)
        return min(ends, default=None)

    def to_json(self) -> dict[str, Any]:
        """A JSON object; decimals and paths become strings, so nothing is rounded."""
        data = asdict(self)
        kind = "open" if isinstance(self.load, OpenLoop) else "closed"
        data["load"] = {"kind": kind, **data["load"]}
        if isinstance(self.load, OpenLoop):
            data["load"]["replay"] = None if self.load.replay is None else self.load.replay.to_json()
        data["load"]["think"] = None if self.load.think is None else self.load.think.text
        data["retries"] = self.retries.to_json()
        data["model_mix"] = None if self.model_mix is None else self.model_mix.text
        data["hosts"] = self.hosts.to_json()
        data["conversations"] = None if self.conversations is None else self.conversations.to_json()
        del data["server_limits"]
        data["slos"] = [slo.expression for slo in self.slos] + [limit.expression for limit in self.server_limits]
        data["goodput"] = [limit.expression for limit in self.goodput]
        data["abort_on"] = [each.text for each in self.abort_on]
        return {"schema_version": SCHEMA_VERSION, **_plain(data)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> WavePlan:
        """The plan that ``to_json`` described."""
        values = {
            key: value for key, value in data.items() if key not in ("schema_version", "environment", "calibration")
        }
        values["load"] = _load_of(values["load"])
        bounds = values.pop("bounds")
        values["bounds"] = Bounds(_decimal(bounds["duration_s"]), bounds["num_requests"])
        values["slos"], values["server_limits"] = limits_of(values["slos"])
        values["goodput"] = tuple(map(RequestLimit.parse, values.get("goodput", ())))  # older plans have none
        values["abort_on"] = tuple(map(AbortOn.parse, values.get("abort_on", ())))  # older plans have none
        values["expect"] = tuple(map(Expectation.from_json, values.get("expect", ())))  # older plans have none
        for key in ("warmup_s", "drain_timeout_s", "request_timeout_s"):
            values[key] = _decimal(values[key])
        values["factory_settings"] = _texts(values.get("factory_settings", {}))  # older plans have none
        mix = values.get("model_mix")  # older plans have none
        values["model_mix"] = None if mix is None else ModelMix.parse(mix)
        values["hosts"] = Hosts.from_json(values.get("hosts"))  # older plans have none
        values["conversations"] = Conversations.from_json(values.get("conversations"))  # as for hosts
        if "retries" in values:  # older plans have none
            values["retries"] = Retries.from_json(values["retries"])
        if "load_timeout_s" in values:  # older plans have none
            values["load_timeout_s"] = Decimal(values["load_timeout_s"])
        for key in ("factories_file", "locust_file", "output_dir"):
            values[key] = None if values[key] is None else Path(values[key])
        return cls(**values)

    def public_json(self) -> dict[str, Any]:
        """``to_json`` without passwords: what may stand in a file."""
        data = _redacted(self.to_json())
        return {**data, "factory_settings": _redacted(data["factory_settings"])}

    def with_replay(self, replay: Replay) -> WavePlan:
        """The same plan with its recording read."""
        load = OpenLoop(replay=replay, think=self.load.think)
        return replace(self, load=load, bounds=replace(self.bounds, duration_s=None))

    def on(self, hosts: Hosts, workers: int | None = None) -> WavePlan:
        """The same plan with its workers on these hosts: ``workers`` of them in all, or as many as the hosts say.

        BenchmarkError where so many cannot be dealt to them.
        """
        if not hosts:
            return replace(self, hosts=hosts, workers=self.workers if workers is None else workers)
        hosts = hosts if workers is None else hosts.dealt(workers)
        return replace(self, hosts=hosts, workers=hosts.workers)

    def with_workers(self, workers: int) -> WavePlan:
        """The same plan with so many workers; where hosts have them, those of the hosts in turn, and no more."""
        hosts = self.hosts.at_most(workers)
        return replace(self, hosts=hosts, workers=hosts.workers if hosts else workers)

    def with_cores(self, cores: Mapping[str, int]) -> WavePlan:
        """The same plan with a worker for each core of the hosts, by name, whose number of workers nobody gave.

        Its problems are to be asked for again: only now it is known how many workers share the load.
        """
        return self.on(self.hosts.with_cores(cores))

    def with_seed(self, seed: int) -> WavePlan:
        """The same plan with another seed; that of a URL's requests follows where it was the same.

        So a wave after another repeats neither its arrivals nor its prompts, which the server may have in its cache.
        """
        follows = self.seed is not None and self.factory_settings.get(SEED_SETTING) == str(self.seed)
        settings = {**self.factory_settings, SEED_SETTING: str(seed)} if follows else self.factory_settings
        return replace(self, seed=seed, factory_settings=settings)


def limits_of(texts: Iterable[str]) -> tuple[tuple[Slo, ...], tuple[ServerLimit, ...]]:
    """The limits of ``--slo``: on what the client measures, and on metrics of the server."""
    listed = list(texts)
    ours = tuple(Slo.parse(text) for text in listed if not is_server_limit(text))
    return ours, tuple(ServerLimit.parse(text) for text in listed if is_server_limit(text))


def _texts(settings: Any) -> dict[str, str]:
    """Settings as they were written. Raises TypeError for anything else: a plan that is read back may be anybody's."""
    if not isinstance(settings, dict) or not all(isinstance(text, str) for pair in settings.items() for text in pair):
        raise TypeError("factory_settings must be strings by name")
    return dict(settings)


def _redacted(data: dict[str, Any]) -> dict[str, Any]:
    return {key: redact(value) if isinstance(value, str) else value for key, value in data.items()}


def _load_of(data: Mapping[str, Any]) -> OpenLoop | ClosedLoop:
    """The load of a stored plan; older plans have no replay, think time, steering or populations."""
    think = None if data.get("think") is None else Think.parse(data["think"])
    if data["kind"] == "open":
        replay = None if data.get("replay") is None else Replay.from_json(data["replay"])
        stages = _stages(data.get("stages", ()))
        return OpenLoop(exact(data["rate"]), data["arrivals"], stages, replay, data.get("steered", False), think)
    populations = (Population(row["users"], exact(row["duration_s"])) for row in data.get("populations", ()))
    return ClosedLoop(data["concurrency"], think, data.get("steered", False), tuple(populations))


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
