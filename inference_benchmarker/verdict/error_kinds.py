"""The kinds of errors, by their keys: what each says of the endpoint. Pure."""

from __future__ import annotations

import re

# gRPC's statuses. Its gateways map these to 429 and 503, those that failed to 500 and 501; a deadline is the client's.
_EXHAUSTED, _UNAVAILABLE, _TOO_LATE = " RESOURCE_EXHAUSTED", " UNAVAILABLE", " DEADLINE_EXCEEDED"
_FAILED = (" INTERNAL", " UNKNOWN", " DATA_LOSS", " UNIMPLEMENTED")

_GONE = (" 503", "ServiceUnavailable", "ConnectionRefused", "ECONNREFUSED", _UNAVAILABLE)
_BUSY = (" 429", "Throttl", "TooManyRequests", "Timeout", _EXHAUSTED, _TOO_LATE)


def _any_of(words: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, words))


OF_ONE_GONE = re.compile(_any_of(_GONE))
"""Said by an endpoint that has no capacity for the request, and of one that is not there."""
NO_CAPACITY = re.compile(_any_of(_GONE + _BUSY))
"""The endpoint had no capacity for the request."""
NO_CONNECTION = re.compile(r"ConnectionRefusedError$|\b(?:ECONNREFUSED|EHOSTUNREACH|EHOSTDOWN|gaierror)$")
"""There was no connection: it was refused, the host is not reached, or its name leads nowhere."""
SERVER_ERROR = re.compile(
    r"\b5\d\d$|\bModelError$|\b(?:InternalFailure|InternalServer|ServiceUnavailable|InternalDependency|ModelErrorExc"
    rf"|ModelStreamErr|InternalStreamFailure)|^FunctionError\b|RpcError(?:{_any_of((_UNAVAILABLE, *_FAILED))})$",
    re.IGNORECASE,
)
"""The server failed, or what is behind it."""
REFUSAL = re.compile(rf"\b4\d\d$|Throttl|RpcError{re.escape(_EXHAUSTED)}$")
"""The server did not take the request."""
