"""The meaning of an error of AWS, of botocore and of whoever else answers, and whether asking again is of use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from inference_benchmarker.words.redact import excerpt, redact

UNREADABLE = (AttributeError, KeyError, TypeError, ValueError, RuntimeError)
"""What boto3 raises for JSON of another shape than AWS's: somebody else answers at that address."""

_MOST, _SHOWN = 10_000, 300
_THROTTLED = {"Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException", "LimitExceeded"}
_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized"}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
_REFUSED = {
    "AuthFailure",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "OptInRequired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}


class NoResultsError(ValueError):
    """An answer without what every answer of CloudWatch has; the text tells what came."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call brought nothing, in words.

    ``final``: asking again is of no use; ``every_call``: not the queries are the reason, any call would fail now;
    ``alone``: the query was asked for by itself.
    """

    text: str
    final: bool
    every_call: bool = False
    alone: bool = False


def service_failure(error: Any, readable: str) -> Failure:
    """The meaning of an error of the service. ``readable``: what those may read who have which permission."""
    details = error.response.get("Error", {})
    code, message = str(details.get("Code", "")), first_line(details.get("Message", ""))
    said = f"{code}: {message}" if message else code
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _THROTTLED or status == 429:
        attempts = error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0) + 1
        text = f"CloudWatch throttled the queries, also at attempt {attempts} ({said}); try again later"
        return Failure(text, final=False, every_call=True)
    if refusal := _refusal(code, status, readable):
        return Failure(f"{refusal} ({said})", final=True, every_call=True)
    if status >= 500:
        return Failure(f"CloudWatch failed with HTTP {status} ({said}); try again later", final=False)
    return Failure(f"CloudWatch refused the query ({said})", final=True)


def _refusal(code: str, status: int, readable: str) -> str:
    """The sentence on what is wrong with the credentials, and what to do; nothing where they are not the reason."""
    if code in _DENIED:
        return f"these credentials may not read {readable}"
    if code in _EXPIRED:
        return "the AWS credentials have expired: renew them"
    if code in _REFUSED or status in (401, 403):
        return "AWS does not accept these credentials: check keys, session token and clock"
    return ""


def client_failure(error: Exception, client: Any, failed: str = "CloudWatch could not be queried") -> Failure:
    """The meaning of botocore's own error: mostly that nobody was reached; else it says what ``failed``."""
    from botocore.exceptions import ConnectionError as NoConnection
    from botocore.exceptions import HTTPClientError

    said = first_line(error)
    if isinstance(error, NoConnection | HTTPClientError):
        address, region = client.meta.endpoint_url, client.meta.region_name
        text = redact(f"no connection to {address}: check network, proxy and region {region} ({said})")
        return Failure(text, final=True, every_call=True)
    return Failure(f"{failed} ({type(error).__name__}: {said})", final=True)


def without_results(page: dict[str, Any]) -> NoResultsError:
    """The error of an answer that has no results: botocore reads a web page as one without anything in it."""
    kind = page.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("content-type", "no content type")
    return NoResultsError(f"{excerpt(str(kind), 100)} without results")


def unreadable(error: Exception, client: Any) -> Failure:
    """Somebody answers who is not CloudWatch."""
    kind = "" if isinstance(error, NoResultsError) else f"{type(error).__name__}: "
    said = f"{kind}{first_line(error)}"
    text = redact(
        f"the answer of {client.meta.endpoint_url} is not CloudWatch's ({said}): is there a proxy in between?"
    )
    return Failure(text, final=True, every_call=True)


def first_line(error: object) -> str:
    """The beginning of its text, without secrets."""
    return excerpt(excerpt(str(error), _MOST).strip().partition("\n")[0].rstrip("."), _SHOWN)


def call_failure(error: Exception, client: Any, permission: str) -> Failure:
    """The meaning of what a call of another service of AWS's raised; ``permission``: what it is called in IAM."""
    from botocore.exceptions import BotoCoreError, ClientError

    if isinstance(error, ClientError):
        details: dict[str, Any] = dict(error.response.get("Error", {}))
        code, status = str(details.get("Code", "")), _status(error)
        said = f"{code}: {first_line(details.get('Message', ''))}".removesuffix(": ")
        if code in _THROTTLED or status == 429:
            return Failure(f"{permission} was throttled ({said})", final=False, every_call=True)
        if code in _DENIED:
            return Failure(f"these credentials may not call {permission} ({said})", final=True, every_call=True)
        refusal = _refusal(code, status, permission)
        text = f"{refusal} ({said})" if refusal else f"{permission} was answered with {said}"
        return Failure(text, final=status < 500, every_call=bool(refusal))
    if isinstance(error, BotoCoreError):
        return replace(client_failure(error, client, f"{permission} could not be called"), final=False)
    text = f"the answer of {client.meta.endpoint_url} is not AWS's ({type(error).__name__})"
    return Failure(redact(text), final=False)


def is_denied(error: Any) -> bool:
    """Tells whether the credentials lack a permission."""
    return error.response.get("Error", {}).get("Code") in _DENIED


def _status(error: Any) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
