"""CloudWatch Logs' FilterLogEvents over what the embedded endpoint's containers wrote.

Where it differs from AWS: filter patterns are refused, and an event is visible once its own age is the publication
delay.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.aws_json import AwsError, Caller, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from inference_benchmarker.embedded.aws.container_log import ContainerLog, LogEvent
    from inference_benchmarker.embedded.config import EndpointConfig

TARGET_PREFIX = "Logs_20140328"
GROUPS = "/aws/sagemaker/Endpoints/"
_MOST_EVENTS, _MOST_BYTES = 10_000, 1024 * 1024
_MESSAGES = {
    "AccessDeniedException": "User: arn:aws:iam::123456789012:user/demo is not authorized to perform:"
    " logs:FilterLogEvents because no identity-based policy allows the logs:FilterLogEvents action",
    "ResourceNotFoundException": "The specified log group does not exist.",
    "ThrottlingException": "Rate exceeded",
}


class CloudWatchLogs:
    """The operation. ``logs``: by the names of the endpoints; ``now``: seconds since the epoch."""

    def __init__(
        self, config: EndpointConfig, logs: Callable[[], Mapping[str, ContainerLog]], now: Callable[[], float]
    ) -> None:
        self._config = config
        self._logs = logs
        self._now = now
        self.service = Service("logs", {"FilterLogEvents": self._filter_log_events})

    def _filter_log_events(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        if self._config.logs_fault is not None:
            raise _refused(self._config.logs_fault)
        log = self._logs().get(_group(request).removeprefix(GROUPS))
        if log is None or not _group(request).startswith(GROUPS):
            raise _refused("ResourceNotFoundException")
        visible_ms = (self._now() - self._config.publication_delay_s) * 1000
        return page([event for event in log.events() if event.at_ms <= visible_ms], request)


def page(events: Iterable[LogEvent], request: dict[str, Any]) -> dict[str, Any]:
    """The page that is asked for of the events, which come oldest first. Both ends of the time range belong to it."""
    limit = int(request.get("limit") or _MOST_EVENTS)
    if not 1 <= limit <= _MOST_EVENTS:
        raise _invalid(f"limit is {limit}: it must be from 1 to {_MOST_EVENTS}")
    if request.get("filterPattern"):
        raise _invalid("filter patterns are not spoken here")
    first = _first(request.get("nextToken"))
    found = list(_matching(events, request))
    if request.get("startFromHead") is False:
        found.reverse()
    taken = list(_of_a_page(islice(found, first, first + limit)))
    after = first + len(taken)
    token = {"nextToken": f"after/{after}"} if after < len(found) else {}
    return {"events": [_described(event) for event in taken], "searchedLogStreams": [], **token}


def _matching(events: Iterable[LogEvent], request: dict[str, Any]) -> Iterator[LogEvent]:
    names, prefix = request.get("logStreamNames"), request.get("logStreamNamePrefix")
    if names and prefix:
        raise _invalid("logStreamNames and logStreamNamePrefix exclude each other")
    start, end = request.get("startTime", 0), request.get("endTime", float("inf"))
    for event in events:
        named = event.stream in names if names else event.stream.startswith(prefix or "")
        if named and start <= event.at_ms <= end:
            yield event


def _of_a_page(events: Iterable[LogEvent]) -> Iterator[LogEvent]:
    """As many as a page holds, and one at least."""
    size = 0
    for event in events:
        size += len(event.message.encode())
        if size > _MOST_BYTES and size > len(event.message.encode()):
            return
        yield event


def _first(token: str | None) -> int:
    place = (token or "after/0").removeprefix("after/")
    if not (place.isascii() and place.isdigit()):
        raise _invalid("The specified nextToken is invalid.")
    return int(place)


def _group(request: dict[str, Any]) -> str:
    name, identifier = request.get("logGroupName"), request.get("logGroupIdentifier")
    if (name is None) == (identifier is None):
        raise _invalid("Give either logGroupName or logGroupIdentifier.")
    return str(name or str(identifier).rpartition(":log-group:")[2])


def _described(event: LogEvent) -> dict[str, Any]:
    return {
        "logStreamName": event.stream,
        "timestamp": event.at_ms,
        "message": event.message,
        "ingestionTime": event.at_ms,
        "eventId": event.id,
    }


def _refused(code: str) -> AwsError:
    return AwsError(code, _MESSAGES[code])


def _invalid(message: str) -> AwsError:
    return AwsError("InvalidParameterException", message)
