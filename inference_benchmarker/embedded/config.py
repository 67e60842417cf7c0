"""The properties of the embedded endpoint: its capacity, and how often it misbehaves."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.llm.rules import PROFILES, EngineRules
from inference_benchmarker.embedded.queueing.routed import ROUTINGS, SHARED
from inference_benchmarker.embedded.queueing.rules import DISCIPLINES, Rules
from inference_benchmarker.embedded.synthetic_types import MADE_UP
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NAME = re.compile("[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_REASON = re.compile("[a-zA-Z_]{1,40}")
_SECONDS = (
    "service_s",
    "batch_delay_s",
    "grow_delay_s",
    "grow_keep_s",
    "cold_start_s",
    "slow_start_s",
    "cool_down_s",
    "burst_s",
    "pause_every_s",
    "pause_s",
    "publication_delay_s",
    "model_load_s",
    "instance_start_s",
    "create_s",
)
_FACTORS = ("slow_factor", "slow_start_factor", "cache_speedup")
FAILED_AS_CONFIGURED = "The model failed, as configured."
PUBLISH_INTERVALS_S = (1, 10, 30, 60, 120, 180, 240, 300)
_FATES = ("error_share", "close_share", "hang_share", "break_share", "swap_share")
METRIC_FAULTS = ("PartialData", "InternalError", "Forbidden")
LOGS_FAULTS = ("AccessDeniedException", "ResourceNotFoundException", "ThrottlingException")
_OF_ENGINE = ("kv_tokens", "max_num_seqs", "max_num_batched_tokens", "block_size", "prefill_ms", "step_ms")
# Fields of servers that take a drawn time for each request, which an LLM engine has none of.
_OF_SERVERS = (
    *("servers", "service", "service_s", "cv", "slow_share", "slow_factor", "discipline", "queue_limit"),
    *("batch_size", "batch_delay_s", "most_servers", "grow_queue", "grow_delay_s", "grow_keep_s", "cache_size"),
    *("cache_speedup", "prefix_cache", "cold_start_s", "slow_start_s", "slow_start_requests", "slow_start_factor"),
    *("slow_start_gradual", "cool_down_s", "burst_s", "burst_baseline", "pause_every_s", "pause_s", "swap_share"),
    *("instances", "routing", "models_in_memory"),
)
SERVICE_KINDS = ("none", "fixed", "exponential", "lognormal", "bimodal")


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """The properties of the endpoint. Raises WrongEndpointError naming everything that is wrong.

    ``servers`` requests are in service at a time, for ``service_s`` seconds on average (``service``: none,
    fixed, exponential, lognormal or bimodal; ``cv`` = standard deviation / mean of the lognormal; of the bimodal,
    ``slow_share`` take ``slow_factor`` times as long as the others). Those that wait are taken up by ``discipline``,
    in batches of up to ``batch_size`` where one has waited for ``batch_delay_s``; see ``queueing.Rules``.
    ``queue_limit`` requests may wait, the next gets 503; None: no limit.

    When more than ``grow_queue`` wait (None: twice the batch size), a server is added, which serves ``grow_delay_s``
    later, one at a time up to ``most_servers`` (None: none is added). It goes when for ``grow_keep_s`` the others
    were enough. A request whose body is among the ``cache_size`` that were seen last takes the ``cache_speedup``-th
    part of its service time. ``prefix_cache``: the tokens of prompts and answers that its chat model keeps, in blocks;
    an answer says how many of its prompt's were there, and takes no less time for it.

    ``llm``: it is an LLM engine of that profile (see ``llm.rules``) instead of such servers, which batches
    continuously and serves chats and text completions alone. Each of ``kv_tokens``, ``max_num_seqs``,
    ``max_num_batched_tokens``, ``block_size``, ``prefill_ms`` and ``step_ms`` replaces the profile's; None: its own.

    The first request of each server takes ``cold_start_s`` longer. What begins in the first ``slow_start_s`` seconds
    from the first request on, and the first ``slow_start_requests``, takes ``slow_start_factor`` times as long, or
    evenly less and less (``slow_start_gradual``). Both begin anew after ``cool_down_s`` without a request; 0: never.
    Every ``pause_every_s`` from the first request on, all servers stand still for ``pause_s``, as for a collection of
    garbage. The servers can serve ``burst_s`` seconds of service at full speed, and as much as ``burst_baseline`` of
    their time allows; without anything saved up they go at that share of their speed; 0: always at full speed.

    Of the requests accepted, each by a draw of its own from ``seed``,
    ``error_share`` get ``error_status`` after their service, ``close_share`` see the connection close within the
    answer, ``hang_share`` never get one, ``break_share`` learn in the middle of their stream that the model
    failed (where there is no stream, they are errors), and ``swap_share`` get the answer to another request that is
    with the endpoint then, if any is.
    ``tokens``: those of a stream or completion whose request sets no limit. ``tokens_per_piece``: how many of them each
    event of a streamed chat brings. ``echo``: a chat repeats the words of its
    last message, as far as its tokens go. ``finish_reason``: why every chat
    and text that tells it ends, in the protocol's words (``abort``); None: as it does. ``gzip``: answers are
    compressed, whether the client accepts it or not.

    To AWS's clients it is the endpoint ``endpoint_name`` (and any name that is invoked) on ``instances`` instances of
    ``instance_type`` that share the servers; None: the smallest of g5 with a core for each of its servers. They have
    one queue together, or one each (``routing``: shared, random, least_outstanding; see ``queueing.RoutedQueues``). A
    further instance brings as many servers as each has, and serves ``instance_start_s`` after it was asked for. To
    Application Auto Scaling a minute, and so the start of an instance, is ``time_factor`` times as short. Its
    metrics are published every ``publish_interval_s`` and are visible ``publication_delay_s`` after an interval's end.
    ``models_in_memory``: it is a multi-model endpoint that keeps as many and takes ``model_load_s`` to load another.
    CloudWatch throttles every ``throttle_every``-th GetMetricData, gives the metrics named in ``metric_faults`` that
    status (PartialData, InternalError or Forbidden), and denies everything with ``access_denied``. CloudWatch Logs
    answers every FilterLogEvents with ``logs_fault`` (AccessDeniedException, ResourceNotFoundException or
    ThrottlingException).

    Endpoints that are created here are in service ``create_s`` later, shortened by ``time_factor``. Their instances
    have ``type_servers`` servers by type and are ``type_speed`` times as fast as this one (see ``instance_types`` for
    what a type has by itself), cost ``type_price`` USD an hour, and are ``type_quota`` at most.
    """

    servers: int = 4
    service: str = "fixed"
    service_s: float = 0.02
    cv: float = 1.0
    slow_share: float = 0.1
    slow_factor: float = 10.0
    discipline: str = "fifo"
    queue_limit: int | None = None
    batch_size: int = 1
    batch_delay_s: float = 0.0
    most_servers: int | None = None
    grow_queue: int | None = None
    grow_delay_s: float = 0.0
    grow_keep_s: float = 600.0
    cache_size: int = 0
    cache_speedup: float = 10.0
    prefix_cache: int = 0
    llm: str | None = None
    kv_tokens: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int | None = None
    prefill_ms: Sequence[float] | None = None
    step_ms: Sequence[float] | None = None
    error_share: float = 0.0
    error_status: int = 500
    close_share: float = 0.0
    hang_share: float = 0.0
    break_share: float = 0.0
    swap_share: float = 0.0
    cold_start_s: float = 0.0
    slow_start_s: float = 0.0
    slow_start_requests: int = 0
    slow_start_factor: float = 3.0
    slow_start_gradual: bool = False
    cool_down_s: float = 0.0
    burst_s: float = 0.0
    burst_baseline: float = 0.2
    pause_every_s: float = 0.0
    pause_s: float = 0.0
    tokens: int = 20
    tokens_per_piece: int = 1
    echo: bool = False
    finish_reason: str | None = None
    gzip: bool = False
    seed: int = 0
    endpoint_name: str = "demo"
    instances: int = 1
    routing: str = SHARED
    instance_type: str | None = None
    instance_start_s: float = 240.0
    time_factor: float = 1.0
    create_s: float = 3.0
    type_servers: Mapping[str, int] = field(default_factory=dict, hash=False)
    type_speed: Mapping[str, float] = field(default_factory=dict, hash=False)
    type_price: Mapping[str, float] = field(default_factory=dict, hash=False)
    type_quota: Mapping[str, int] = field(default_factory=dict, hash=False)
    publish_interval_s: int = 10
    publication_delay_s: float = 1.0
    models_in_memory: int | None = None
    model_load_s: float = 0.5
    throttle_every: int | None = None
    metric_faults: Mapping[str, str] = field(default_factory=dict, hash=False)
    access_denied: bool = False
    logs_fault: str | None = None

    def __post_init__(self) -> None:
        problems = [*self._wrong_integers(), *self._wrong_numbers(), *self._wrong_words(), *self._wrong_names()]
        problems += [*wrong_types(self), *wrong_engine(self)]
        if problems := problems or self._wrong_together():
            raise WrongEndpointError(problems)

    @property
    def rules(self) -> Rules:
        """The rules by which its servers work, for the queueing model."""
        return Rules(
            servers=self.servers,
            discipline=self.discipline,
            queue_limit=self.queue_limit,
            batch_size=self.batch_size,
            batch_delay_ns=round(self.batch_delay_s * NS),
            most_servers=self.servers_at_most,
            grow_queue=self.grows_above,
            grow_delay_ns=round(self.grow_delay_s * NS),
            grow_keep_ns=round(self.grow_keep_s * NS),
            cold_start_ns=round(self.cold_start_s * NS),
            slow_start_ns=round(self.slow_start_s * NS),
            slow_start_requests=self.slow_start_requests,
            slow_start_factor=self.slow_start_factor,
            slow_start_gradual=self.slow_start_gradual,
            cool_ns=round(self.cool_down_s * NS),
            burst_ns=round(self.burst_s * NS),
            burst_baseline=self.burst_baseline,
            pause_every_ns=round(self.pause_every_s * NS),
            pause_ns=round(self.pause_s * NS),
        )

    @property
    def engine(self) -> EngineRules | None:
        """The rules of its LLM engine; None where it is none."""
        profile = None if self.llm is None else PROFILES.get(self.llm)
        if profile is None:
            return None
        given = {name: value for name in _OF_ENGINE if (value := getattr(self, name)) is not None}
        # Of a process of its own, they come as lists.
        times = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        return replace(profile, **(given | times))

    @property
    def servers_at_most(self) -> int:
        """The number of servers that there may be when requests pile up."""
        return self.most_servers or self.servers

    @property
    def grows_above(self) -> int:
        """The number of waiting requests above which a server is added."""
        return 2 * self.batch_size if self.grow_queue is None else self.grow_queue

    def servers_of(self, instances: int) -> int:
        """The servers of that many instances, rounded down where each has no whole number of them."""
        return max(1, self.servers * instances // self.instances)

    def _wrong_together(self) -> list[tuple[str, str]]:
        """Fields that are right for themselves and wrong together."""
        problems = []
        if self.service != "none" and self.service_s == 0:
            problems.append(("service_s", "is 0: for no service time at all, service is 'none'"))
        if (shares := sum(getattr(self, name) for name in _FATES)) > 1:
            others = "and the shares that close, hang, break and swap"
            problems.append(("error_share", f"{others} are {shares:g}, more than 1 together"))
        if self.discipline == "ps" and self.batch_size > 1:
            problems.append(("batch_size", f"is {self.batch_size}: where requests share the servers, none are batched"))
        if self.most_servers is not None and self.most_servers < self.servers:
            problems.append(("most_servers", f"is {self.most_servers}: there are {self.servers} servers at first"))
        if self.most_servers and self.queue_limit is not None and self.queue_limit <= self.grows_above:
            never = f"a server is added when more than {self.grows_above} wait, so none ever is"
            problems.append(("queue_limit", f"is {self.queue_limit}: {never}"))
        if self.routing != SHARED and self.servers % self.instances:
            each = f"{self.instances} instances with a queue each cannot have equal parts of them"
            problems.append(("servers", f"is {self.servers}: {each}"))
        if 0 < self.pause_every_s < 0.001:
            problems.append(("pause_every_s", f"is {self.pause_every_s:g}: it must be 0 or at least 0.001"))
        if self.pause_s and self.pause_s >= self.pause_every_s:
            least = f"{self.pause_every_s:g} s from one pause to the next"
            problems.append(("pause_s", f"is {self.pause_s:g}: it must be less than the {least}"))
        return problems

    def _wrong_words(self) -> list[tuple[str, str]]:
        problems = [
            (name, f"is {value!r}: it must be one of {', '.join(words)}")
            for name, words in (("service", SERVICE_KINDS), ("discipline", DISCIPLINES), ("routing", ROUTINGS))
            if (value := getattr(self, name)) not in words
        ]
        if type(self.error_status) is not int or not 400 <= self.error_status <= 599:
            problems.append(("error_status", f"is {self.error_status!r}: it must be an HTTP status from 400 to 599"))
        if self.finish_reason is not None and not _REASON.fullmatch(str(self.finish_reason)):
            problems.append(("finish_reason", f"is {self.finish_reason!r}: it must be a word, as abort"))
        return problems

    def _wrong_integers(self) -> list[tuple[str, str]]:
        least: dict[str, int | None] = {"servers": 1, "tokens": 1, "seed": None, "instances": 1, "batch_size": 1}
        least |= {"tokens_per_piece": 1}
        least |= {"slow_start_requests": 0, "cache_size": 0, "prefix_cache": 0}
        optional = {"queue_limit": 0, "most_servers": 1, "grow_queue": 0, "models_in_memory": 1, "throttle_every": 1}
        least |= {name: low for name, low in optional.items() if getattr(self, name) is not None}
        return [
            (name, f"is {value!r}: it must be an integer" + ("" if low is None else f" of at least {low}"))
            for name, low in least.items()
            if type(value := getattr(self, name)) is not int or (low is not None and value < low)
        ]

    def _wrong_numbers(self) -> list[tuple[str, str]]:
        allowed = dict.fromkeys(_SECONDS, (0.0, 1e6)) | dict.fromkeys(_FACTORS, (1.0, 1e6))
        allowed |= {"cv": (0, 1e3), "time_factor": (1, 600), "burst_baseline": (0.001, 1)}
        allowed |= dict.fromkeys((*_FATES, "slow_share"), (0, 1))
        return [
            (name, f"is {value!r}: it must be from {low:g} to {high:g}")
            for name, (low, high) in allowed.items()
            if type(value := getattr(self, name)) not in (int, float)
            or not (math.isfinite(value) and low <= value <= high)
        ]

    def _wrong_names(self) -> list[tuple[str, str]]:
        """Fields that only AWS's clients see and that are wrong."""
        name, kind, interval = self.endpoint_name, self.instance_type, self.publish_interval_s
        problems = []
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            problems.append(("endpoint_name", f"is {name!r}: it must be up to 63 letters, digits and hyphens"))
        if kind is not None and not str(kind).startswith("ml."):
            problems.append(("instance_type", f"is {kind!r}: it must be one of SageMaker's, as ml.g5.xlarge"))
        if interval not in PUBLISH_INTERVALS_S:
            allowed = ", ".join(map(str, PUBLISH_INTERVALS_S))
            problems.append(("publish_interval_s", f"is {interval!r}: it must be one of {allowed}"))
        if wrong := {name: fault for name, fault in self.metric_faults.items() if fault not in METRIC_FAULTS}:
            problems.append(("metric_faults", f"is {wrong!r}: each must be one of {', '.join(METRIC_FAULTS)}"))
        if self.logs_fault not in (None, *LOGS_FAULTS):
            problems.append(("logs_fault", f"is {self.logs_fault!r}: it must be one of {', '.join(LOGS_FAULTS)}"))
        return problems


class WrongEndpointError(BenchmarkError):
    """No endpoint can be like that: each field that is wrong, and what is wrong with it."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        text = "; ".join(f"{field} {problem}" for field, problem in problems)
        super().__init__(f"The endpoint cannot be configured like that: {text}.")
        self.problems = problems


def wrong_types(config: EndpointConfig) -> Iterator[tuple[str, str]]:
    """Each setting of a type that is wrong, by the field it stands in."""
    for setting, least in (("type_servers", 1), ("type_quota", 0)):
        for name, number in getattr(config, setting).items():
            if not name.startswith("ml.") or type(number) is not int or number < least:
                yield (
                    setting,
                    f"has {name}={number!r}: it must be a type as ml.g5.xlarge, and an integer from {least} on",
                )
    for setting in ("type_speed", "type_price"):
        for name, number in getattr(config, setting).items():
            if not name.startswith("ml.") or type(number) not in (int, float) or not 0 < number < math.inf:
                yield setting, f"has {name}={number!r}: it must be a type as ml.g5.xlarge, and a number above 0"
    for name in config.type_speed:
        if name not in MADE_UP and name not in config.type_servers:
            yield "type_speed", f"has {name}: this type needs its number of servers, too (type_servers)"


def wrong_engine(config: EndpointConfig) -> Iterator[tuple[str, str]]:
    """Each setting that no LLM engine can have, or that means nothing beside one or without one."""
    if config.llm is None:
        for name in _OF_ENGINE:
            if (value := getattr(config, name)) is not None:
                yield name, f"is {value!r}: it belongs to an LLM engine, which llm names: {', '.join(PROFILES)}"
    elif config.engine is None:
        yield "llm", f"is {config.llm!r}: it must be one of {', '.join(PROFILES)}, or a run directory"
    else:
        yield from config.engine.problems()
        defaults = {each.name: each.default for each in fields(config)}
        for name in _OF_SERVERS:
            if (value := getattr(config, name)) != defaults[name]:
                yield name, f"is {value!r}: an LLM engine (llm) does not heed it; leave it out"
