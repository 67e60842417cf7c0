"""A search as a plan reads it: what its instances hold, and of what endpoint. Pure.

What is read here is the object of ``capacity.json``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.digest import KEY as DIGEST
from inference_benchmarker.data.typed import require
from inference_benchmarker.errors import refuse
from inference_benchmarker.exit_codes import OK
from inference_benchmarker.words.wording import length_text
from server_capacity.planning.request import MOST_INSTANCES
from server_capacity.results.text.agreement import planned_with
from server_capacity.results.text.headline import rate_text, unit_of
from server_capacity.results.types.axes import label_of
from server_capacity.results.types.standing import confirmed_of, standing, warnings_of
from server_capacity.search.limit_bracket import KEEPS_UP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from server_capacity.results.types.price import Price

    Found = Mapping[str, Any]

COMPONENT = "inference-component"
EVEN = 0.14
"""By so much evenly spaced arrivals can flatter an endpoint (four servers of exactly 20 ms)."""

_ARITHMETIC = 1e-6
_ENDPOINT: dict[str, Any] = {
    **dict.fromkeys(("name", "kind", "instance_type", "region", "variant", "routing"), str | None),
    **dict.fromkeys(("arguments", "payload_arguments"), dict[str, Any] | None),
    "instances": int | None,
    "seconds_to_create": float | None,
}
_OTHERS: dict[str, Any] = {
    **dict.fromkeys(("where_time_went", "twin", "interval", "at_least"), dict[str, Any] | None),
    "waves": dict[str, list[str]] | None,
    "limits": list[dict[str, Any]] | None,
    **dict.fromkeys(("curve", "confirmation", "stretches"), list[dict[str, Any]] | None),
}
_NOT_LINEAR = {
    "multi-model": "a multi-model endpoint sends a model's requests to the instances that hold it",
    "mixed": "its instances are of several types",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The rate that all ``instances`` of a search held together, in requests/s, with its 95% interval.

    ``high`` is None where nothing gave out (``at_least``): then ``low`` and ``rate`` are what was kept.
    ``factories_file``: which its waves were sent with, None where they do not tell. ``variant``: its values in a
    ranking, ``tied`` the variants there that tie with it, and ``price`` an hour of its instance there.
    ``unchecked``: a clause on waves that it is built on and that are not there any more, or may be others.
    """

    folder: str
    data: Found
    instances: int
    low: float
    rate: float
    high: float | None
    given_instances: bool = False
    factories_file: str | None = None
    variant: dict[str, str] = field(default_factory=dict)
    tied: tuple[str, ...] = ()
    price: Price | None = None
    unchecked: str = ""

    def to_source(self) -> dict[str, Any]:
        """Its entry in the plan's ``capacities``."""
        named = {"folder": self.folder, "instances": self.instances, "low": self.low}
        return {**named, "digest": self.data.get(DIGEST)}

    @property
    def is_counted(self) -> bool:
        """Tells whether the number of its instances is known, not assumed."""
        return self.given_instances or bool(self.endpoint.get("instances"))

    @property
    def endpoint(self) -> Found:
        """The ``endpoint`` of capacity.json; empty in files that have none."""
        return self.data.get("endpoint") or {}

    @property
    def at_least(self) -> bool:
        """Tells whether the search found no limit."""
        return self.high is None

    @property
    def name(self) -> str:
        """The endpoint's name: as it was called or made, else the search's, else the folder's."""
        return str(self.endpoint.get("name") or self.data.get("name") or self.folder.rstrip("/").rpartition("/")[2])

    @property
    def instance_type(self) -> str | None:
        """Its instance type, if that is known."""
        return self.endpoint.get("instance_type")

    @property
    def is_copies(self) -> bool:
        """Tells whether its instances are copies of an inference component, which have no price."""
        return self.endpoint.get("kind") == COMPONENT

    @property
    def not_linear(self) -> str:
        """The reason why more instances do not hold as many times more; empty where they do."""
        return _NOT_LINEAR.get(str(self.endpoint.get("kind")), "")

    @property
    def correlation(self) -> dict[str, float] | None:
        """``dispersion`` and ``slope`` of the limit that gives out first: how bursty requests over it are."""
        held = self.data.get("limit")
        row = next((row for row in self.data.get("limits") or [] if row["expression"] == held), None)
        if row is None or row.get("dispersion") is None or row.get("slope") is None:
            return None
        return {"dispersion": row["dispersion"], "slope": row["slope"]}

    @property
    def warnings(self) -> list[str]:
        """Clauses on what the search leaves open, which the plan inherits."""
        return [*warnings_of(self.data), *([self.unchecked] if self.unchecked else [])]

    @property
    def exit_code(self) -> int:
        """The exit code of the search."""
        return int(standing(self.data)["exit_code"]) if "exit_code" in self.data else OK

    def is_same_endpoint(self, other: Measured) -> bool:
        """Tells whether both are of one endpoint, but for the number of instances: all else that is known agrees."""
        files = {each.factories_file for each in (self, other) if each.factories_file is not None}
        return len(files) < 2 and self._identity() == other._identity()

    def _identity(self) -> tuple[object, ...]:
        endpoint = self.endpoint
        arguments = {
            name: value
            for name, value in (endpoint.get("arguments") or {}).items()
            if name not in ("instances", "instance_count")
        }
        limits = [row["expression"] for row in self.data.get("limits") or []]
        called = None if endpoint.get("arguments") else endpoint.get("name") or self.data.get("name")
        alike = [endpoint.get(name) for name in ("instance_type", "kind", "region", "variant", "payload_arguments")]
        return alike, called, arguments, limits

    def remarks(self) -> Iterator[str]:
        """Sentences on what it does not tell, or tells only under a condition."""
        if self.at_least:
            yield "No limit gave out in the search: the plan takes what was kept, and fewer instances may do."
        if self.data.get("arrivals") == "constant":
            yield (
                f"It was measured with evenly spaced arrivals, which flatter an endpoint by up to {EVEN:.0%}: "
                "search with Poisson arrivals before you deploy it."
            )
        if self.data.get("in") == "users":
            yield (
                "It was searched in users, who wait for answers and so spare an endpoint that is slow: the rate is "
                "theirs at the lower end, and arrivals that do not wait may need more instances."
            )
        yield from self._warnings()
        if apart := planned_with(self.data):
            yield apart
        if self.data.get("limit") == KEEPS_UP:
            yield 'It was searched without --slo: "holds" is only what it keeps up with. --slo "p99<500ms" says more.'
        if self.tied:
            named = " and ".join(self.tied)
            yield f"In the ranking {named} {'tie' if len(self.tied) > 1 else 'ties'} with {label_of(self.variant)}."
        if not self.is_counted:
            yield "How many instances were measured is not known: one is assumed. --instances N says otherwise."

    def _warnings(self) -> Iterator[str]:
        verdict = confirmed_of(self.data)
        if verdict == "fails":
            yield "The wave at the interval's lower end failed: search again before you deploy it."
        elif not self.at_least and verdict != "holds":
            yield "No wave confirmed the interval's lower end."
        if self.data.get("outcome") == "interrupted" and not self.at_least:
            yield "The search was interrupted: its interval is wider than it had to be."
        if self.data.get("cache") == "warm":
            yield "Each payload had been sent before the search: requests that no cache knows may take longer."


def measured(data: Found, folder: str, instances: int | None = None, instance_type: str = "") -> Measured | str:
    """A search as a plan can use it, or the reason why none can; ValueError and its like for what no search writes.

    ``instances`` of ``instance_type`` were measured, where they are given; BenchmarkError where the search knows of
    others.
    """
    endpoint = dict(data.get("endpoint") or {})
    for told, kinds in ((endpoint, _ENDPOINT), (data, _OTHERS)):
        for key, kind in kinds.items():
            require(told.get(key), kind, key)
    _require_no_conflict(endpoint, folder, instances, instance_type)
    if instance_type:
        endpoint["instance_type"] = instance_type
        data = {**data, "endpoint": endpoint}
    if endpoint.get("kind") == "serverless":
        return "a serverless endpoint has no instances to count: it scales by concurrency, which its configuration sets"
    found = _rates(data)
    if isinstance(found, str):
        return found
    count = instances or endpoint.get("instances") or 1
    if not 1 <= count <= MOST_INSTANCES:
        raise ValueError(f"endpoint.instances is not from 1 to {MOST_INSTANCES:,}")
    return Measured(folder, data, int(count), *found, given_instances=instances is not None)


def _require_no_conflict(endpoint: Found, folder: str, instances: int | None, instance_type: str) -> None:
    given = (("instances", instances), ("instance_type", instance_type or None))
    refuse(
        [
            f"--{key.replace('_', '-')} {value}: {folder} was measured with {endpoint[key]}. Leave it out there."
            for key, value in given
            if value is not None and endpoint.get(key) not in (None, value)
        ]
    )


def _rates(data: Found) -> tuple[float, float, float | None] | str:
    interval, at_least = data.get("interval"), data.get("at_least")
    if data.get("rate") is not None and interval:
        require(interval, dict[str, float], "interval")
        require(data["rate"], float, "rate")
        low, rate, high = interval["low"], data["rate"], interval["high"]
        if not low * (1 - _ARITHMETIC) <= rate <= high * (1 + _ARITHMETIC):
            raise ValueError("rate is outside of its interval")
    elif at_least and at_least.get("rate"):
        require(at_least["rate"], float, "at_least.rate")
        if data.get("outcome") == "interrupted" and not _is_confirmed(data):
            return _never_judged(data, at_least["rate"])
        low, rate, high = at_least["rate"], at_least["rate"], None
    else:
        return f"the search has no answer: {data.get('headline') or data.get('reason') or data.get('outcome')}"
    if data.get("in") == "users":
        law = (data.get("users") or {}).get("law")
        if not law or not law.get("users"):
            return "the search was in users, and no wave tells how many requests/s they send: search with --in rps"
        factor = law["x"] / law["users"]
        low, rate, high = low * factor, rate * factor, None if high is None else high * factor
    if not low > 0:
        return (
            f"the interval of {rate_text(rate, interval)} begins at 0: nothing is sure to hold; search for longer "
            "with --time"
        )
    return float(low), float(rate), None if high is None else float(high)


def _is_confirmed(data: Found) -> bool:
    """Tells whether a whole wave at the answer kept every limit."""
    waves = data.get("confirmation") or []
    return any(wave.get("verdict") == "holds" and not wave.get("spoilt") for wave in waves)


def _never_judged(data: Found, rate: float) -> str:
    """The reason why a rate that was kept until an interrupt is none to plan with: no limit was found beside it."""
    near = [each for each in data.get("stretches") or [] if each["rate"] == rate and not each.get("void")]
    seconds = sum(each["end_s"] - each["start_s"] for each in near)
    kept = f" for {length_text(seconds)}" if seconds > 0 else ""
    unit = unit_of(data)
    return (
        f"the search was interrupted before there was an answer: {rate_text(rate, None, unit)} kept every limit{kept}, "
        "and no limit was found. Search again"
    )
