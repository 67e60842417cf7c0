"""Asks CloudWatch: the client and its credentials, batches and pages; one query that fails takes no other with it."""

from __future__ import annotations

import email.utils
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.words.redact import redact
from server_capacity.metrics import aws_client
from server_capacity.metrics.aws import credential_problems, credentials_hint, region_problems
from server_capacity.metrics.aws_failures import (
    UNREADABLE,
    Failure,
    client_failure,
    first_line,
    service_failure,
    unreadable,
    without_results,
)
from server_capacity.metrics.cloudwatch.buckets import MINUTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from server_capacity.metrics.cloudwatch.buckets import Span
    from server_capacity.metrics.cloudwatch.queries import Query

BATCH = 500
MOST_PAGES = 1_000  # of one call; a service that names another one after each would be read for ever
ATTEMPTS = 4
"""Of a call. More would wait longer for one call than between two polls, which are attempts, too."""

MOST_CALLS, HOPELESS = 60, 12
"""A failed call is asked again in halves: so many calls at most, and so many at most of which all failed."""

STREAM, _PERMISSION = "cloudwatch", "cloudwatch:GetMetricData"


@dataclass(slots=True)
class Answer:
    """The answer to one query: bucket start -> value. ``note``: what CloudWatch remarked about it."""

    points: dict[int, float] = field(default_factory=dict)
    failure: Failure | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answers by Id, and how many seconds CloudWatch's clock is ahead of ours (None: it did not say)."""

    answers: dict[str, Answer]
    ahead_s: float | None = None


def make_client(attempts: int = ATTEMPTS) -> Any:
    """A CloudWatch client. BenchmarkError, with everything that is missing, before anything is asked."""
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        session = boto3.Session()
        wrong = credential_problems(session.get_credentials(), STREAM, _PERMISSION)
        refuse([*wrong, *region_problems(session.region_name, STREAM)])
        return aws_client.make_client("cloudwatch", None, attempts=attempts, connect_s=5, read_s=20)
    except (BotoCoreError, ValueError) as error:
        raise BenchmarkError(
            f"Stream cloudwatch: the AWS configuration cannot be used ({first_line(error)}).",
            credentials_hint(_PERMISSION),
        ) from None


def fetch(client: Any, queries: Sequence[Query]) -> Fetched:
    """Every query asked, in calls of one window and at most 500 queries; what failed says so in its answer.

    Where any call would fail the rest is not tried: each would take all its attempts.
    """
    asking = _Asking(client, {query.id: Answer() for query in queries})
    for window, together in _windows(queries).items():
        for first in range(0, len(together), BATCH):
            asking.ask(window, together[first : first + BATCH])
    return Fetched(asking.answers, max(asking.clocks, default=None))


def similar_dimensions(client: Any, namespace: str, name: str) -> list[dict[str, str]]:
    """Under which dimensions CloudWatch had the metric in the last three hours; nothing where it does not say."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        page = client.list_metrics(Namespace=namespace, MetricName=name, RecentlyActive="PT3H")
        metrics = page.get("Metrics", [])
        found = [{each["Name"]: each["Value"] for each in metric.get("Dimensions", [])} for metric in metrics]
    except (BotoCoreError, ClientError, *UNREADABLE):
        return []
    return [each for place, each in enumerate(found) if each not in found[:place]]


def _windows(queries: Iterable[Query]) -> dict[tuple[int, int], list[Query]]:
    """Queries by start and end of the call. The end is a whole minute: CloudWatch loses a partial last one."""
    windows: dict[tuple[int, int], list[Query]] = {}
    for query in queries:
        end = -(-query.span.end // MINUTE) * MINUTE
        windows.setdefault((query.span.start, end), []).append(query)
    return windows


class _Asking:
    """The calls of one ``fetch``, their answers, and what CloudWatch's clock said meanwhile."""

    def __init__(self, client: Any, answers: dict[str, Answer]) -> None:
        self._client = client
        self.answers = answers
        self.clocks: list[float] = []
        self._hopeless: Failure | None = None
        self._calls = 0
        self._succeeded = False

    def ask(self, window: tuple[int, int], queries: Sequence[Query]) -> None:
        """Ask for all of them, and in halves where one of them may be the reason that none is answered."""
        if self._hopeless is None:
            failure = self._call(window, queries)
            if failure is None:
                self._succeeded = True
                return
            if len(queries) > 1 and not failure.every_call and self._may_go_on():
                middle = len(queries) // 2
                self.ask(window, queries[:middle])
                self.ask(window, queries[middle:])
                return
            self._hopeless = failure if failure.every_call else None
            _fail(queries, self.answers, replace(failure, alone=len(queries) == 1))
        else:
            _fail(queries, self.answers, self._hopeless)

    def _may_go_on(self) -> bool:
        return self._calls < (MOST_CALLS if self._succeeded else HOPELESS)

    def _call(self, window: tuple[int, int], queries: Sequence[Query]) -> Failure | None:
        """One call with its pages; why it brought nothing, if so."""
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        self._calls += 1
        try:
            _pages(self._client, window, queries, self.answers, self.clocks)
        except ClientError as error:
            return service_failure(error, "CloudWatch: allow cloudwatch:GetMetricData")
        except UNREADABLE as error:
            return unreadable(error, self._client)
        except (BotoCoreError, ResponseParserError) as error:
            return client_failure(error, self._client)
        return None


def _pages(
    client: Any, window: tuple[int, int], queries: Sequence[Query], answers: dict[str, Answer], clocks: list[float]
) -> None:
    request: dict[str, Any] = {
        "MetricDataQueries": [_line(query) for query in queries],
        "StartTime": datetime.fromtimestamp(window[0], UTC),
        "EndTime": datetime.fromtimestamp(window[1], UTC),
        "ScanBy": "TimestampAscending",
    }
    spans = {query.id: query.span for query in queries}
    seen: set[str] = set()
    remarks: list[str] = []
    tokens: set[str] = set()
    while True:
        page = client.get_metric_data(**request)
        if "MetricDataResults" not in page:
            raise without_results(page)
        clocks.extend(seconds_ahead(page))
        remarks += _remarks(page)
        token = page.get("NextToken")
        for result in page["MetricDataResults"]:
            if (answer := answers.get(result.get("Id", ""))) is not None and result["Id"] in spans:
                seen.add(result["Id"])
                _merge(answer, result, spans[result["Id"]], more=bool(token))
        if not token or token in tokens or len(tokens) == MOST_PAGES:
            break
        tokens.add(token)
        request["NextToken"] = token
    for query in queries:
        _remark(answers[query.id], remarks, answered=query.id in seen)


def _line(query: Query) -> dict[str, Any]:
    metric = {
        "Namespace": query.namespace,
        "MetricName": query.name,
        "Dimensions": [{"Name": name, "Value": value} for name, value in query.dimensions],
    }
    return {"Id": query.id, "MetricStat": {"Metric": metric, "Period": query.period, "Stat": query.statistic}}


def _merge(answer: Answer, result: dict[str, Any], span: Span, *, more: bool) -> None:
    """A page's part of a query: the same Id comes on several pages, the last status holds, and pages end a part."""
    for moment, value in zip(result.get("Timestamps", []), result.get("Values", []), strict=False):
        bucket = int(moment.timestamp())
        if bucket in span:
            answer.points[bucket] = float(value)
    remarks = _remarks(result)
    status = result.get("StatusCode", "Complete")
    answer.failure = None if more and status == "PartialData" else _status_failure(status, remarks)
    if remarks and answer.failure is None:
        answer.note = "; ".join(remarks)


def _status_failure(status: str, remarks: list[str]) -> Failure | None:
    more = f" ({'; '.join(remarks)})" if remarks else ""
    if status == "PartialData":
        return Failure(f"CloudWatch returned only part of the data{more}", final=False)
    if status == "InternalError":
        return Failure(f"CloudWatch had an internal error{more}; try again later", final=False)
    if status == "Forbidden":
        return Failure(f"CloudWatch forbids reading this metric (another account or region?){more}", final=True)
    return None


def _remark(answer: Answer, remarks: list[str], *, answered: bool) -> None:
    text = "; ".join(remarks)
    if not answered:
        answer.failure = Failure(f"CloudWatch left this query out{f' ({text})' if text else ''}", final=False)
    elif text:
        answer.note = f"{answer.note}; {text}" if answer.note else text


def _remarks(part: dict[str, Any]) -> list[str]:
    texts = [message.get("Value") or message.get("Code") for message in part.get("Messages") or []]
    return [redact(str(text)) for text in texts if text]


def seconds_ahead(page: dict[str, Any]) -> Iterator[float]:
    """The seconds that the clock of the service is ahead of this machine's, from the answer's Date header."""
    date = page.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    try:
        yield email.utils.parsedate_to_datetime(date).timestamp() - time.time()
    except (TypeError, ValueError):
        return


def _fail(queries: Iterable[Query], answers: dict[str, Answer], failure: Failure) -> None:
    for query in queries:
        answers[query.id].failure = failure
