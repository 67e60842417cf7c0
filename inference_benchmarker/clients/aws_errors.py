"""The errors that boto3 would raise, in botocore's classes and words, so that they are counted under the same keys."""

from __future__ import annotations

from ssl import SSLError
from typing import TYPE_CHECKING, Any

from inference_benchmarker.clients.answer_parser import IncompleteAnswerError, NotHttpError
from inference_benchmarker.clients.connection import ConnectionClosedError, ReadTimeoutError
from inference_benchmarker.clients.pool import ConnectTimeoutError

if TYPE_CHECKING:
    from inference_benchmarker.clients.pool import Answer

# Once a connection stood, urllib3 calls all of these a broken protocol, and botocore a closed connection.
_CLOSED = (ConnectionClosedError, NotHttpError, ConnectionResetError, BrokenPipeError, ConnectionAbortedError)


def connection_error(error: OSError, url: str) -> Exception:
    """The error of a connection that could not be made or did not last."""
    from botocore import exceptions

    made: Exception
    if isinstance(error, IncompleteAnswerError):
        made = exceptions.ResponseStreamingError(error=error)
    elif isinstance(error, ReadTimeoutError):
        made = exceptions.ReadTimeoutError(endpoint_url=url, error=error)
    elif isinstance(error, ConnectTimeoutError):
        made = exceptions.ConnectTimeoutError(endpoint_url=url, error=error)
    elif isinstance(error, SSLError):
        made = exceptions.SSLError(endpoint_url=url, error=error)
    elif isinstance(error, _CLOSED):
        made = exceptions.ConnectionClosedError(endpoint_url=url, error=error, request=None)
    else:
        made = exceptions.EndpointConnectionError(endpoint_url=url, error=error)
    return made


def service_error(answer: Answer, model: Any, exceptions: Any) -> Exception:
    """The error in an answer to the operation ``model``; ``exceptions``: those of a boto3 client.

    botocore's own parser reads it: code and message, and what the service's model adds to its code.
    """
    from botocore.awsrequest import HeadersDict
    from botocore.parsers import RestJSONParser

    response = {"status_code": answer.status, "headers": HeadersDict(answer.headers), "body": answer.body}
    parsed = RestJSONParser().parse(response, model.output_shape)
    code = parsed["Error"]["Code"]
    if shape := model.service_model.shape_for_error_code(code):
        parsed |= RestJSONParser().parse(response, shape)
    parsed["ResponseMetadata"]["RetryAttempts"] = 0
    made: Exception = exceptions.from_code(code)(parsed, model.name)
    return made
