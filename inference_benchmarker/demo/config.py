"""What the embedded endpoint is like: its capacity, and how often it misbehaves."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from inference_benchmarker.demo.queueing import SERVICE_KINDS
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAME = re.compile("[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
PUBLISH_INTERVALS_S = (1, 10, 30, 60, 120, 180, 240, 300)
_SHARES = ("error_share", "close_share", "hang_share", "break_share")
METRIC_FAULTS = ("PartialData", "InternalError", "Forbidden")
LOGS_FAULTS = ("AccessDeniedException", "ResourceNotFoundException", "ThrottlingException")


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """What the endpoint is like. Raises WrongEndpointError naming everything that is wrong.

    ``servers`` requests are in service at a time, for ``service_s`` seconds on average (``service``: none,
    fixed, exponential or lognormal; ``cv`` = standard deviation / mean of the last). ``queue_limit`` requests
    may wait, the next gets 503; None: no limit. Of those accepted, each by a draw of its own from ``seed``,
    ``error_share`` get ``error_status`` after their service, ``close_share`` see the connection close within the
    answer, ``hang_share`` never get one, and ``break_share`` are told in the middle of their stream that the model
    failed (where there is no stream, they are errors). The first request of each server takes ``cold_start_s`` longer.
    ``tokens``: those of a stream or completion whose request sets no limit.

    To AWS's clients it is the endpoint ``endpoint_name`` (and any name that is invoked) on ``instances`` instances of
    ``instance_type`` that share the servers; None: the smallest of g5 with a core for each of its servers. Its
    metrics are published every ``publish_interval_s`` and are visible ``publication_delay_s`` after an interval's end.
    ``models_in_memory``: it is a multi-model endpoint that keeps as many and takes ``model_load_s`` to load another.
    CloudWatch throttles every ``throttle_every``-th GetMetricData, gives the metrics named in ``metric_faults`` that
    status (PartialData, InternalError or Forbidden), and denies everything with ``access_denied``. CloudWatch Logs
    answers every FilterLogEvents with ``logs_fault`` (AccessDeniedException, ResourceNotFoundException or
    ThrottlingException).
    """

    servers: int = 4
    service: str = "fixed"
    service_s: float = 0.02
    cv: float = 1.0
    queue_limit: int | None = None
    error_share: float = 0.0
    error_status: int = 500
    close_share: float = 0.0
    hang_share: float = 0.0
    break_share: float = 0.0
    cold_start_s: float = 0.0
    tokens: int = 20
    seed: int = 0
    endpoint_name: str = "demo"
    instances: int = 1
    instance_type: str | None = None
    publish_interval_s: int = 10
    publication_delay_s: float = 1.0
    models_in_memory: int | None = None
    model_load_s: float = 0.5
    throttle_every: int | None = None
    metric_faults: Mapping[str, str] = field(default_factory=dict, hash=False)
    access_denied: bool = False
    logs_fault: str | None = None

    def __post_init__(self) -> None:
        problems = [*self._wrong_integers(), *self._wrong_numbers(), *self._wrong_names()]
        if self.service not in SERVICE_KINDS:
            problems.append(("service", f"is {self.service!r}: it must be one of {', '.join(SERVICE_KINDS)}"))
        elif self.service != "none" and self.service_s == 0:
            problems.append(("service_s", "is 0: for no service time at all, service is 'none'"))
        if type(self.error_status) is not int or not 400 <= self.error_status <= 599:
            problems.append(("error_status", f"is {self.error_status!r}: it must be an HTTP status from 400 to 599"))
        if not problems and (shares := sum(getattr(self, name) for name in _SHARES)) > 1:
            others = "and the shares that close, hang and break"
            problems.append(("error_share", f"{others} are {shares:g}, more than 1 together"))
        if problems:
            raise WrongEndpointError(problems)

    def _wrong_integers(self) -> list[tuple[str, str]]:
        least = {"servers": 1, "tokens": 1, "seed": None, "instances": 1}
        optional = {"queue_limit": 0, "models_in_memory": 1, "throttle_every": 1}
        least |= {name: low for name, low in optional.items() if getattr(self, name) is not None}
        return [
            (name, f"is {value!r}: it must be an integer" + ("" if low is None else f" of at least {low}"))
            for name, low in least.items()
            if type(value := getattr(self, name)) is not int or (low is not None and value < low)
        ]

    def _wrong_numbers(self) -> list[tuple[str, str]]:
        greatest = {"service_s": 1e6, "cv": 1e3, "cold_start_s": 1e6}
        greatest |= {"publication_delay_s": 1e6, "model_load_s": 1e6}
        greatest |= dict.fromkeys(_SHARES, 1)
        return [
            (name, f"is {value!r}: it must be from 0 to {high:g}")
            for name, high in greatest.items()
            if type(value := getattr(self, name)) not in (int, float)
            or not (math.isfinite(value) and 0 <= value <= high)
        ]

    def _wrong_names(self) -> list[tuple[str, str]]:
        """What is wrong with what only AWS's clients see."""
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
    """What no endpoint can be like: each field that is wrong, and what is wrong with it."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        told = "; ".join(f"{field} {problem}" for field, problem in problems)
        super().__init__(f"The endpoint cannot be like that: {told}.")
        self.problems = problems


class Fate(Enum):
    """What becomes of an accepted request."""

    ANSWER = "answer"
    ERROR = "error"
    CLOSE = "close"
    HANG = "hang"
    BREAK = "break"


def fates(config: EndpointConfig) -> Callable[[], Fate]:
    """The reproducible stream of fates: the i-th call is for the i-th queued request, rejected or not."""
    draw = random.Random(f"fate:{config.seed}").random
    error = config.error_share
    close = error + config.close_share
    hang = close + config.hang_share
    broken = hang + config.break_share

    def fate() -> Fate:
        drawn = draw()
        if drawn >= broken:
            return Fate.ANSWER
        bounds = ((error, Fate.ERROR), (close, Fate.CLOSE), (hang, Fate.HANG))
        return next((fate for bound, fate in bounds if drawn < bound), Fate.BREAK)

    return fate
