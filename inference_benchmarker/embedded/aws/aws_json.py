"""AWS's JSON protocol, 1.0 and 1.1, as botocore from 1.43 on speaks it: POST / with the operation in X-Amz-Target.

Nobody's signature is checked, but a request without one is refused as AWS does. Older botocore asks CloudWatch in
the Query protocol, which is not spoken here.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from itertools import count
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.json_text import parse_json
from inference_benchmarker.embedded.http.messages import Answer

if TYPE_CHECKING:
    from inference_benchmarker.embedded.http.messages import Request

ACCOUNT = "123456789012"
_MAX_CONTENT = 64 * 1024 * 1024
_SCOPE = re.compile(r"Credential=[^/,]+/\d{8}/([^/,]+)/([^/,]+)/aws4_request")

Operation = Callable[[dict[str, Any], "Caller"], dict[str, Any]]


class AwsError(Exception):
    """A service refuses: its code as boto3 shows it, the sentence, and the HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a service, by the region that a request was signed for."""

    region: str


@dataclass(frozen=True, slots=True)
class Service:
    """A service's operations by the name in X-Amz-Target.

    ``query_compatible``: it once spoke the Query protocol, and its errors bear that protocol's codes in a header.
    """

    iam_prefix: str
    operations: Mapping[str, Operation]
    query_compatible: bool = False


class AwsJson:
    """Dispatches requests to services, by the prefix of their targets."""

    def __init__(self, services: Mapping[str, Service], *, access_denied: bool) -> None:
        self._services = services
        self._access_denied = access_denied
        self._numbers = count(1)

    def answer(self, request: Request) -> Answer:
        """The answer to a request for any of the services."""
        prefix, _, name = request.headers.get("x-amz-target", "").partition(".")
        service = self._services.get(prefix)
        headers = {
            "x-amzn-RequestId": f"00000000-0000-4000-9000-{next(self._numbers):012x}",
            "Date": formatdate(usegmt=True),
        }
        kind = request.headers.get("content-type", "application/x-amz-json-1.0")
        try:
            content, status = self._run(service, name, request), 200
        except AwsError as error:
            content, status = {"__type": error.code, "message": error.message, "Message": error.message}, error.status
            if service and service.query_compatible:
                headers["x-amzn-query-error"] = f"{error.code};{'Sender' if status < 500 else 'Receiver'}"
        return Answer(status, json.dumps(content, separators=(",", ":")).encode(), kind, headers)

    def _run(self, service: Service | None, name: str, request: Request) -> dict[str, Any]:
        operation = service.operations.get(name) if service else None
        if not service or not operation:
            target = request.headers.get("x-amz-target", "no X-Amz-Target")
            raise AwsError("UnknownOperationException", f"There is no such operation here: {target}", 404)
        caller = self._authorize(request, f"{service.iam_prefix}:{name}")
        try:
            return operation(_content(request), caller)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise AwsError("SerializationException", f"The request has not the shape of {name}: {error!r}") from error

    def _authorize(self, request: Request, action: str) -> Caller:
        authorization = request.headers.get("authorization")
        if not authorization:
            raise AwsError("MissingAuthenticationToken", "Request is missing Authentication Token", 403)
        if self._access_denied:
            user = f"arn:aws:iam::{ACCOUNT}:user/demo"
            reason = f"because no identity-based policy allows the {action} action"
            code = "AccessDenied" if action.startswith("cloudwatch") else "AccessDeniedException"
            raise AwsError(code, f"User: {user} is not authorized to perform: {action} {reason}", 403)
        scope = _SCOPE.search(authorization)
        return Caller(scope[1] if scope else "us-east-1")


def _content(request: Request) -> dict[str, Any]:
    """The JSON object of a request; botocore compresses what is longer than 10 kB."""
    body = request.body
    if request.headers.get("content-encoding", "").lower() == "gzip":
        unzip = zlib.decompressobj(wbits=31)
        try:
            body = unzip.decompress(body, _MAX_CONTENT)
        except zlib.error as error:
            raise ValueError(f"not gzip: {error}") from error
        if unzip.unconsumed_tail:
            raise ValueError(f"more than {_MAX_CONTENT} bytes")
    content = parse_json(body or b"{}")
    if not isinstance(content, dict):
        raise TypeError("not a JSON object")
    return content
