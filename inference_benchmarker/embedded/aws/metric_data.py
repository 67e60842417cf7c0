"""GetMetricData: its queries, their datapoints and the pages these come in.

A page token is the whole state: where the next page begins and what was visible when the first one was cut, so that
all pages of a request show the same moment.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.data.json_text import parse_json
from inference_benchmarker.embedded.aws.aws_json import AwsError
from inference_benchmarker.embedded.aws.metric_store import SUB_MINUTE, Metric, MetricStore, datapoints
from inference_benchmarker.embedded.aws.statistics import Samples, parse_statistic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MAX_QUERIES = 500
MAX_DATAPOINTS = 100_800
MAX_PERIOD = 86_400
_ID = re.compile("[a-z][a-zA-Z0-9_]{0,254}")


def invalid(message: str) -> AwsError:
    """CloudWatch's answer to a request that it does not take."""
    return AwsError("ValidationError", message)


def dimensions(given: Any) -> frozenset[tuple[str, str]]:
    """A dimension set, whatever its order."""
    return frozenset((each["Name"], each["Value"]) for each in given or ())


@dataclass(frozen=True, slots=True)
class Query:
    """One MetricStat of a request."""

    id: str
    label: str
    metric: Metric
    period: int
    statistic: Callable[[Samples], float | None]
    unit: str | None
    returned: bool

    @classmethod
    def parse(cls, given: dict[str, Any], number: int) -> Query:
        """The query with that number, from 1. Raises AwsError."""
        member = f"MetricDataQueries.member.{number}"
        if not _ID.fullmatch(given["Id"]):
            raise invalid(f"The value {given['Id']} for parameter {member}.Id is not matching the expected pattern.")
        stat = given.get("MetricStat")
        if stat is None:
            raise invalid(f"{member} has no MetricStat; this endpoint evaluates no Expression.")
        period = stat["Period"]
        if period not in SUB_MINUTE and (type(period) is not int or not 0 < period <= MAX_PERIOD or period % 60):
            allowed = f"must be a value in the set {list(SUB_MINUTE)}, or any multiple of 60 up to {MAX_PERIOD}."
            raise invalid(f"The parameter {member}.MetricStat.Period {allowed}")
        try:
            statistic = parse_statistic(stat["Stat"])
        except ValueError:
            message = f"The value {stat['Stat']} for parameter {member}.MetricStat.Stat is not supported."
            raise invalid(message) from None
        named = stat["Metric"]
        metric = Metric(named["Namespace"], named["MetricName"], dimensions(named.get("Dimensions")))
        label = given.get("Label") or metric.name
        return cls(given["Id"], label, metric, period, statistic, stat.get("Unit"), given.get("ReturnData", True))


class Position(NamedTuple):
    """The place at which a page begins. ``halved``: the query was already cut short as ``metric_faults`` wants it."""

    query: int
    point: int
    halved: bool
    as_of: float


class MetricData:
    """One GetMetricData call."""

    def __init__(self, store: MetricStore, faults: Mapping[str, str], request: dict[str, Any], now: float) -> None:
        self._store = store
        self._faults = faults
        self._digest = zlib.crc32(json.dumps({**request, "NextToken": None}, sort_keys=True).encode())
        self._window = float(request["StartTime"]), float(request["EndTime"])
        self._descending = request.get("ScanBy", "TimestampDescending") == "TimestampDescending"
        self._room = request.get("MaxDatapoints", MAX_DATAPOINTS)
        token = request.get("NextToken")
        self._at = self._read_token(token) if token else Position(0, 0, halved=False, as_of=now)
        self._queries = [query for query in _queries(request["MetricDataQueries"]) if query.returned]
        if self._window[0] >= self._window[1]:
            raise invalid("The parameter StartTime must be less than the parameter EndTime.")
        if type(self._room) is not int or not 1 <= self._room <= MAX_DATAPOINTS:
            raise invalid(f"The parameter MaxDatapoints must be between 1 and {MAX_DATAPOINTS}.")

    def page(self) -> dict[str, Any]:
        """The output: as many datapoints as the page may have, and a token where there are more."""
        results = list(self._results())
        output: dict[str, Any] = {"MetricDataResults": results, "Messages": []}
        if self._at.query < len(self._queries):
            output["NextToken"] = self._token()
        return output

    def _results(self) -> Iterator[dict[str, Any]]:
        while self._at.query < len(self._queries) and self._room > 0:
            query, at = self._queries[self._at.query], self._at
            fault = self._faults.get(query.metric.name)
            if fault in ("InternalError", "Forbidden"):
                self._at = Position(at.query + 1, 0, halved=False, as_of=at.as_of)
                yield _result(query, [], fault)
                continue
            yield self._next_part(query, halve=fault == "PartialData" and not at.halved)
            if self._at.query == at.query:
                return

    def _next_part(self, query: Query, *, halve: bool) -> dict[str, Any]:
        """The datapoints of a query that the page can still take."""
        points, at = self._points(query), self._at
        end = min(at.point + self._room, max(at.point, len(points) // 2) if halve else len(points))
        self._room -= end - at.point
        complete = end == len(points) and not halve
        if complete:
            self._at = Position(at.query + 1, 0, halved=False, as_of=at.as_of)
        else:
            self._at = Position(at.query, end, halved=halve or at.halved, as_of=at.as_of)
        return _result(query, points[at.point : end], "Complete" if complete else "PartialData")

    def _points(self, query: Query) -> list[tuple[int, float]]:
        def cells(start: float, end: float) -> Iterator[Any]:
            visible = self._store.cells(query.metric, start, end, self._at.as_of)
            return (cell for cell in visible if query.unit in (None, cell.unit))

        points = datapoints(cells, self._window, query.period, self._at.as_of, query.statistic)
        return points[::-1] if self._descending else points

    def _token(self) -> str:
        return urlsafe_b64encode(json.dumps([self._digest, *self._at]).encode()).decode()

    def _read_token(self, token: str) -> Position:
        try:
            digest, query, point, halved, as_of = parse_json(urlsafe_b64decode(token))
        except ValueError:
            digest = None
        if digest != self._digest:
            raise AwsError("InvalidNextToken", "The next token is invalid: it belongs to another request.")
        return Position(query, point, halved, as_of)


def _queries(given: list[dict[str, Any]]) -> list[Query]:
    if len(given) > MAX_QUERIES:
        raise invalid(f"The collection MetricDataQueries must not have a size greater than {MAX_QUERIES}.")
    if not given:
        raise invalid("The collection MetricDataQueries must not have a size less than 1.")
    queries = [Query.parse(each, number) for number, each in enumerate(given, 1)]
    if len({query.id for query in queries}) < len(queries):
        raise invalid("The values for parameter id in MetricDataQueries are not unique.")
    return queries


def _result(query: Query, points: list[tuple[int, float]], status: str) -> dict[str, Any]:
    return {
        "Id": query.id,
        "Label": query.label,
        "Timestamps": [at for at, _ in points],
        "Values": [float(value) for _, value in points],
        "StatusCode": status,
    }
