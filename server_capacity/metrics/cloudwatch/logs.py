"""Asks CloudWatch Logs what endpoints wrote while requests failed: once, and a bounded part of it."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Timer
from typing import TYPE_CHECKING, Any

from inference_benchmarker.facts.server_metric import ServerLog
from inference_benchmarker.verdict.server.known_metrics import log_groups
from inference_benchmarker.words.text import one_line
from server_capacity.metrics import aws_client
from server_capacity.metrics.aws_failures import UNREADABLE, client_failure, service_failure, unreadable
from server_capacity.metrics.cloudwatch.log_lines import LineCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from inference_benchmarker.facts.server_metric import Interval
    from server_capacity.metrics.cloudwatch.block import CloudWatchBlock

CONNECT_S, READ_S, ATTEMPTS = 2, 8, 3
MOST_GROUPS = 5
MOST_EVENTS, MOST_CHARACTERS, MOST_PAGES = 20_000, 16_000_000, 200
"""Of each group: as many events as two full pages have, and more pages, for some are empty."""

MOST_S = 20.0
"""For all groups together, but for the call that is under way then."""

QUIET_S = 2.0
AGAIN = "`benchmark report DIR --endpoint-config FILE` asks again"
_MOST_OF_A_REASON = 500


def make_client(region: str) -> Any | None:
    """A client of CloudWatch Logs; None where AWS's configuration makes none."""
    from botocore.exceptions import BotoCoreError

    try:
        return aws_client.make_client("logs", region, attempts=ATTEMPTS, connect_s=CONNECT_S, read_s=READ_S)
    except (BotoCoreError, ValueError):
        return None


def groups_of(blocks: Iterable[CloudWatchBlock]) -> list[str]:
    """The log groups of what the blocks read metrics of."""
    found = dict.fromkeys(group for block in blocks for group in log_groups(dict(block.dimensions)))
    return list(found)[:MOST_GROUPS]


@dataclass(slots=True)
class LogReader:
    """Reads log groups over one interval, until ``clock`` says that it took too long or Ctrl-C comes.

    ``secrets``: values that stand in no line that is kept.
    """

    client: Any | None
    interval: Interval
    say: Callable[[str], None]
    secrets: Collection[str] = ()
    clock: Callable[[], float] = time.monotonic
    interrupted: bool = False
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    def read(self, groups: Iterable[str]) -> list[ServerLog]:
        """The lines of each group."""
        with self._patience():
            return [self._read(group) for group in groups]

    def _read(self, group: str) -> ServerLog:
        part = _Part(LineCounts(self.secrets))
        try:
            reason = self._try(group, part)
        except KeyboardInterrupt:
            self.interrupted = True
            reason = self._interruption()
        lines = part.counts.most_frequent()
        said = None if reason is None else one_line(reason, _MOST_OF_A_REASON)
        start, end = self.interval.start, self.interval.end
        return ServerLog(group, start, end, part.events, lines, part.counts.any_error, said)

    def _try(self, group: str, part: _Part) -> str | None:
        """Count what the group has; why that is not all, if so."""
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        if self.interrupted:
            return self._interruption()
        if self.client is None:
            return "the AWS configuration makes no client for CloudWatch Logs"
        try:
            return self._pages(self.client, group, part)
        except ClientError as error:
            return _refusal(error, group, self.client.meta)
        except UNREADABLE as error:
            return unreadable(error, self.client).text
        except (BotoCoreError, ResponseParserError) as error:
            return client_failure(error, self.client).text

    def _pages(self, client: Any, group: str, part: _Part) -> str | None:
        request: dict[str, Any] = {
            "logGroupName": group,
            "startTime": math.floor(self.interval.start * 1000),
            "endTime": math.ceil(self.interval.end * 1000),
        }
        for _ in range(MOST_PAGES):
            if self.clock() - self._began > MOST_S:
                return f"that took longer than {MOST_S:g} s; {AGAIN}"
            page = client.filter_log_events(**request)
            for event in page.get("events", ()):
                if not part.take(event):
                    return "there are more than the tool reads"
            token = page.get("nextToken")
            if not token or token == request.get("nextToken"):
                return None
            request["nextToken"] = token
        return "they are on more pages than the tool reads"

    @staticmethod
    def _interruption() -> str:
        return f"the wait was interrupted; {AGAIN}"

    @contextmanager
    def _patience(self) -> Iterator[None]:
        """Says what takes longer than a moment, also while a call is waited for."""
        said = f"   cloudwatch: reading the endpoint's log, {MOST_S:g} s at most (Ctrl-C: report what has arrived)"
        timer = Timer(QUIET_S, self.say, (said,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _refusal(error: Any, group: str, meta: Any) -> str:
    if error.response.get("Error", {}).get("Code") == "ResourceNotFoundException":
        return (
            f"there is no such group in {meta.region_name}; the endpoint has written nothing, or its execution role"
            " may not write logs (logs:CreateLogGroup, logs:CreateLogStream, logs:PutLogEvents)"
        )
    arn = f"arn:{meta.partition}:logs:{meta.region_name}:*:log-group:{group}:*"
    return service_failure(error, f"it: allow logs:FilterLogEvents on {arn}").text


@dataclass(slots=True)
class _Part:
    """The part of a group that was read so far."""

    counts: LineCounts
    events: int = 0
    characters: int = 0

    def take(self, event: dict[str, Any]) -> bool:
        """Count an event, where as much may still be read."""
        message = event["message"]
        if self.events == MOST_EVENTS or self.characters + len(message) > MOST_CHARACTERS:
            return False
        self.events += 1
        self.characters += len(message)
        self.counts.add(event.get("logStreamName", ""), message)
        return True
