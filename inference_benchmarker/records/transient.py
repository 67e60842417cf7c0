"""The failures after which clients try a request again. Pure.

They are those of the AWS SDKs' standard retry mode (botocore ``retries/standard.py``: time-outs, connection errors,
500, 502, 503, 504 and the codes for throttling) and of the openai package (``_base_client.py``, ``_should_retry``:
connection errors, 408, 409, 429 and whatever is 500 or more), and of gRPC its UNAVAILABLE with the statuses that its
gateways map to 429 and 504. Of 409 a client of an inference endpoint knows no lock to wait for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from inference_benchmarker.records.error_cause import attribute, bases_of, class_name_of, connection_cause, is_a
from inference_benchmarker.records.error_key import aws_code, grpc_status, http_status

if TYPE_CHECKING:
    from collections.abc import Sequence

_GRPC = frozenset(("UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"))
_STATUSES = frozenset((408, 429))
# Also with a status of 400, as the AWS SDKs know them: ThrottlingException, RequestLimitExceeded, SlowDown.
_THROTTLED = re.compile(r"Throttl|TooManyRequests|RequestLimitExceeded|BandwidthLimitExceeded|SlowDown|RequestTimeout")


def is_transient(found: Sequence[BaseException]) -> bool:
    """Tells whether the failure with these ``causes`` may be another's next time: the server's, or the connection's.

    An answer that says what is wrong with the request, and a mistake of the user's own code, are neither.
    """
    failure = found[0]
    if status := grpc_status(failure):
        return status in _GRPC
    if number := _status(failure):
        return number >= 500 or number in _STATUSES or bool(_THROTTLED.search(aws_code(failure)))
    if code := aws_code(failure):
        return bool(_THROTTLED.search(code))
    ended = is_a(failure, ConnectionError) or bool(connection_cause(found))
    return ended or any(map(_is_timeout, found))


def _status(failure: BaseException) -> int:
    """The HTTP status of the answer; 0 where there was none."""
    status = http_status(failure)
    return int(status) if status else _of_boto3(attribute(failure, "response"))


def _of_boto3(response: Any) -> int:
    try:
        status = response["ResponseMetadata"]["HTTPStatusCode"]
    except BaseException:  # of the user's exception, anything
        return 0
    return status if type(status) is int else 0


def _is_timeout(cause: BaseException) -> bool:
    """Tells whether its class is named as time-outs are: ReadTimeoutError, APITimeoutError, TimeoutError."""
    return any("Timeout" in class_name_of(base) for base in bases_of(type(cause)))
