"""A search as a plan reads it: what its instances hold, and of what endpoint. Pure.

What is read here is the object of ``capacity.json``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from inference_benchmarker.errors import refuse
from inference_benchmarker.exit_codes import MISSED, OK, worst_exit_code
from inference_benchmarker.words.wording import length_text
from server_capacity.planning.request import MOST_INSTANCES
from server_capacity.planning.searched_requests import differences
from server_capacity.results.text.agreement import planned_with
from server_capacity.results.text.headline import answer, rate_text, unit_of
from server_capacity.results.types.axes import label_of
from server_capacity.results.types.bounds import Endpoint, Spread
from server_capacity.results.types.plan import Source
from server_capacity.results.types.result_status import confirmed_of, standing, warnings_of
from server_capacity.search.limit_bracket import KEEPS_UP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.plan import SearchedRequests
    from server_capacity.results.types.price import Price

COMPONENT = "inference-component"
EVEN = 0.14
"""By so much evenly spaced arrivals can flatter an endpoint (four servers of exactly 20 ms)."""

_NOT_LINEAR = {
    "multi-model": "a multi-model endpoint sends a model's requests to the instances that hold it",
    "mixed": "its instances are of several types",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The rate that all ``instances`` of a search held together, in requests/s, with its 95% interval.

    ``high`` is None where no limit was violated (``at_least``): then ``low`` and ``rate`` are what was kept.
    ``factories_file`` and ``requests``: of its waves, None where they do not say. ``variant``: its values in a
    ranking, ``tied`` the variants there that tie with it, and ``price`` an hour of its instance there.
    ``beside`` are clauses on what else the ranking leaves open, and ``ranking_code`` is its exit code.
    ``unchecked``: a clause on waves that it is built on and that are not there any more, or may be others.
    """

    folder: str
    data: CapacityResult
    instances: int
    low: float
    rate: float
    high: float | None
    given_instances: bool = False
    factories_file: str | None = None
    requests: SearchedRequests | None = None
    variant: dict[str, str] = field(default_factory=dict)
    tied: tuple[str, ...] = ()
    price: Price | None = None
    beside: tuple[str, ...] = ()
    ranking_code: int = OK
    unchecked: str = ""

    def to_source(self) -> Source:
        """Its entry in the plan's ``capacities``."""
        return Source(self.folder, self.instances, self.low, self.data.digest)

    @property
    def is_counted(self) -> bool:
        """Tells whether the number of its instances is known, not assumed."""
        return self.given_instances or bool(self.endpoint.instances)

    @property
    def endpoint(self) -> Endpoint:
        """The ``endpoint`` of capacity.json; an empty one in files that have none."""
        return self.data.endpoint or Endpoint()

    @property
    def at_least(self) -> bool:
        """Tells whether the search found no limit."""
        return self.high is None

    @property
    def name(self) -> str:
        """The endpoint's name: as it was called or made, else the search's, else the folder's."""
        return str(self.endpoint.name or self.data.name or self.folder.rstrip("/").rpartition("/")[2])

    @property
    def instance_type(self) -> str | None:
        """Its instance type, if that is known."""
        return self.endpoint.instance_type

    @property
    def is_copies(self) -> bool:
        """Tells whether its instances are copies of an inference component, which have no price."""
        return self.endpoint.kind == COMPONENT

    @property
    def not_linear(self) -> str:
        """The reason why more instances do not hold as many times more; empty where they do."""
        return _NOT_LINEAR.get(str(self.endpoint.kind), "")

    @property
    def correlation(self) -> Spread | None:
        """The burstiness of requests over the limit that is violated first."""
        row = next((row for row in self.data.limits if row.expression == self.data.limit), None)
        if row is None or row.dispersion is None or row.slope is None:
            return None
        return Spread(row.dispersion, row.slope)

    @property
    def warnings(self) -> list[str]:
        """Clauses on what the search leaves open, which the plan inherits."""
        return [*warnings_of(self.data), *self.beside, *([self.unchecked] if self.unchecked else [])]

    @property
    def exit_code(self) -> int:
        """The exit code of the search, or of its ranking where that is the graver."""
        return worst_exit_code(standing(self.data).exit_code, self.ranking_code)

    def is_same_endpoint(self, other: Measured) -> bool:
        """Tells whether both are of one endpoint, but for the number of instances: all else that is known agrees."""
        files = {each.factories_file for each in (self, other) if each.factories_file is not None}
        return len(files) < 2 and self._identity() == other._identity() and self._asks_the_same(other)

    def _asks_the_same(self, other: Measured) -> bool:
        """Tells whether both sent the same requests, as far as both say what they sent."""
        one, two = self.requests, other.requests
        if one is None or two is None:
            return True
        return not any([*differences(one, None, two, None), *differences(two, None, one, None)])

    def _identity(self) -> tuple[object, ...]:
        endpoint = self.endpoint
        counts = ("instances", "instance_count")
        arguments = {name: value for name, value in (endpoint.arguments or {}).items() if name not in counts}
        called = None if endpoint.arguments else endpoint.name or self.data.name
        alike = (endpoint.instance_type, endpoint.kind, endpoint.region, endpoint.variant, endpoint.payload_arguments)
        return alike, called, arguments, [row.expression for row in self.data.limits]

    def remarks(self) -> Iterator[str]:
        """Sentences on what it does not report, or only under a condition."""
        if self.at_least:
            yield (
                "No limit was violated in the search: the plan uses the highest rate that was sent, and fewer "
                "instances may suffice."
            )
        if self.data.arrivals == "constant":
            yield (
                f"The search sent evenly spaced arrivals, which overstate capacity by up to {EVEN:.0%}: search with "
                "Poisson arrivals before you deploy."
            )
        if self.data.in_ == "users":
            yield (
                "The search was in users, who wait for answers and so slow down with the endpoint: the rate is the "
                "one that they sent at the lower end, and arrivals that do not wait may need more instances."
            )
        yield from self.caveats()
        if apart := planned_with(self.data):
            yield apart
        if self.data.limit == KEEPS_UP and all(each.metric == "success" for each in self.data.limits):
            yield (
                "The search had no --slo, so the capacity is only the rate that the endpoint keeps up with. A limit "
                'such as --slo "p99<500ms" says more.'
            )
        if self.tied:
            named = " and ".join(self.tied)
            yield f"In the ranking {named} {'tie' if len(self.tied) > 1 else 'ties'} with {label_of(self.variant)}."
        if not self.is_counted:
            yield "The number of measured instances is not known; one is assumed. Set it with --instances N."

    def caveats(self) -> Iterator[str]:
        """Sentences on what speaks against the answer itself."""
        verdict = confirmed_of(self.data)
        if verdict == "fails":
            yield "The wave at the interval's lower end failed: search again before you deploy."
        elif not self.at_least and verdict != "holds":
            yield "No wave confirmed the interval's lower end."
        if self.data.outcome == "interrupted" and not self.at_least:
            yield "The search was interrupted: its interval is wider than necessary."
        if self.data.sessions is not None and self.data.memory is None and not self.at_least:
            yield "The search did not see whether a replica recovers from overload."
        if self.data.cache == "warm":
            yield "Each payload was sent before the search: requests that are in no cache may take longer."


@dataclass(frozen=True, slots=True)
class Refused:
    """The reason why no plan can rest on a search, and the exit code of that: at least MISSED."""

    why: str
    exit_code: int = MISSED

    @classmethod
    def of(cls, why: str, clauses: Iterable[str], exit_code: int) -> Self:
        """The reason, and the clauses on what else the exit code is of."""
        return cls("; ".join(dict.fromkeys([why.rstrip("."), *clauses])), exit_code)


def measured(
    data: CapacityResult,
    folder: str,
    instances: int | None = None,
    instance_type: str = "",
    *,
    for_users: bool = False,
) -> Measured | str:
    """A search as a plan can use it, or the reason why none can; ValueError for what no search writes.

    ``for_users``: who have conversations; its rates are those of the search, else requests/s.

    ``instances`` of ``instance_type`` were measured, where they are given; BenchmarkError where the search knows of
    others.
    """
    endpoint = data.endpoint or Endpoint()
    _require_no_conflict(endpoint, folder, instances, instance_type)
    if instance_type:
        endpoint = replace(endpoint, instance_type=instance_type)
        data = replace(data, endpoint=endpoint)
    if endpoint.kind == "serverless":
        return "a serverless endpoint has no instances to count: it scales by concurrency, which its configuration sets"
    found = _of_conversations(data) if for_users else _rates(data)
    if isinstance(found, str):
        return found
    count = instances or endpoint.instances or 1
    if not 1 <= count <= MOST_INSTANCES:
        raise ValueError(f"endpoint.instances is not from 1 to {MOST_INSTANCES:,}")
    return Measured(folder, data, count, *found, given_instances=instances is not None)


def _require_no_conflict(endpoint: Endpoint, folder: str, instances: int | None, instance_type: str) -> None:
    given = (
        ("--instances", instances, endpoint.instances),
        ("--instance-type", instance_type or None, endpoint.instance_type),
    )
    refuse(
        [
            f"{flag} {value}: {folder} was measured with {stored}. Leave the flag out."
            for flag, value, stored in given
            if value is not None and stored not in (None, value)
        ]
    )


_Rates = tuple[float, float, float | None]


def _of_conversations(data: CapacityResult) -> _Rates | str:
    """Open conversations, or those that begin a second."""
    at = data.sessions
    if at is None:
        return (
            "the search sent single requests, and a plan for users needs conversations: search with --in users and "
            "--turns or --conversations"
        )
    if at.length_s is None or not at.length_s > 0:
        return "no wave measured how long a conversation takes at the interval's lower end: search longer with --time"
    return _found(data)


def _rates(data: CapacityResult) -> _Rates | str:
    """Requests/s."""
    if data.sessions is not None:
        return (
            "the search was for sessions, and --target-rps is in requests/s: plan for --users N, or search with --in "
            "rps"
        )
    found = _found(data)
    if isinstance(found, str) or data.in_ != "users":
        return found
    law = data.users and data.users.law
    if not law or not law.users:
        return "the search was in users, and no wave measured how many requests/s they send: search with --in rps"
    low, rate, high = found
    factor = law.x / law.users
    return low * factor, rate * factor, None if high is None else high * factor


def _found(data: CapacityResult) -> _Rates | str:
    """The rates in the search's unit: the interval's lower end, the answer, and the upper end."""
    interval, high = data.interval, None
    if data.rate is not None and interval:
        low, rate, high = interval.low, data.rate, interval.high
    elif data.at_least and data.at_least.rate:
        low = rate = data.at_least.rate
        if data.outcome == "interrupted" and not _is_confirmed(data):
            return _never_judged(data, rate)
    else:
        return f"the search found no capacity: {answer(data)}"
    if not low > 0:
        return (
            f"the interval of {rate_text(rate, interval, unit_of(data))} starts at 0: no rate is certain to meet the "
            "limits; search longer with --time"
        )
    return low, rate, high


def _is_confirmed(data: CapacityResult) -> bool:
    """Tells whether a whole wave at the answer kept every limit."""
    return any(wave.verdict == "holds" and not wave.spoilt for wave in data.confirmation or [])


def _never_judged(data: CapacityResult, rate: float) -> str:
    """The reason why a rate that was kept until an interrupt is none to plan with: no limit was found beside it."""
    near = [each for each in data.stretches or [] if each.rate == rate and not each.void]
    seconds = sum(each.end_s - each.start_s for each in near)
    for_how_long = f" for {length_text(seconds)}" if seconds > 0 else ""
    unit = unit_of(data)
    return (
        f"the search was interrupted before there was an answer: {rate_text(rate, None, unit)} met every "
        f"limit{for_how_long}, and no limit was found. Search again"
    )
