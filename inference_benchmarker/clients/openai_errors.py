"""The errors of an OpenAI-compatible endpoint, by the names that the openai package has for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from inference_benchmarker.clients.body_excerpt import shown

if TYPE_CHECKING:
    from inference_benchmarker.clients.pool import Answer

_SHOWN = 500


class APIError(Exception):
    """An error that the server put into words: its ``code``, ``type``, ``param`` and whole ``body``.

    One in the middle of a stream, where there is no status, is counted under its code, or else its type.
    """

    def __init__(self, message: str, body: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.body = body
        fields = body if isinstance(body, dict) else {}
        self.code, self.type, self.param = (_text(fields.get(name)) for name in ("code", "type", "param"))
        self._benchmark_detail = self.code or self.type


class APIConnectionError(APIError):
    """No connection, or one that ended before the answer did."""


class APITimeoutError(APIConnectionError):
    """The server did not answer, or stopped answering, for as long as a time-out."""


class APIStatusError(APIError):
    """An answer with a status of 300 or above, which with the class is what it is counted under."""

    def __init__(self, answer: Answer) -> None:
        text = answer.body.decode("utf-8", "replace")
        body = _parsed(text)
        body = body.get("error", body) if isinstance(body, dict) else body
        super().__init__(f"Error code: {answer.status} - {shown(answer.body, _SHOWN)}", body)
        self.status, self.headers, _ = answer
        self._benchmark_detail = None


class BadRequestError(APIStatusError):
    """400."""


class AuthenticationError(APIStatusError):
    """401."""


class PermissionDeniedError(APIStatusError):
    """403."""


class NotFoundError(APIStatusError):
    """404."""


class ConflictError(APIStatusError):
    """409."""


class UnprocessableEntityError(APIStatusError):
    """422."""


class RateLimitError(APIStatusError):
    """429."""


class InternalServerError(APIStatusError):
    """500 and above."""


_BY_STATUS: dict[int, type[APIStatusError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    422: UnprocessableEntityError,
    429: RateLimitError,
}


def status_error(answer: Answer) -> APIStatusError:
    """The error of an answer that is no success."""
    default = InternalServerError if answer.status >= 500 else APIStatusError
    return _BY_STATUS.get(answer.status, default)(answer)


def unexpected_error(answer: Answer) -> APIError:
    """The error of a success that is not what was asked for: an error object, else counted by its content type."""
    text = answer.body.decode("utf-8", "replace")
    body = _parsed(text)
    if isinstance(body, dict) and body.get("error"):
        return stream_error(body["error"])
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    named = f"content type {kind}" if kind else "no content type"
    error = APIError(
        f"The server answered {answer.status} with {named}, not as asked for: {shown(answer.body, _SHOWN)}", body
    )
    error._benchmark_detail = kind or "no_content_type"  # noqa: SLF001 - our own
    return error


def unreadable_error(data: bytes) -> APIError:
    """The error of an event of a stream that is no JSON, or JSON of another shape than the API's."""
    text = shown(data, _SHOWN)
    error = APIError(f"The stream has an event that the API does not define: {text}", text)
    error._benchmark_detail = "unreadable_event"  # noqa: SLF001 - our own
    return error


def empty_error(finish_reason: str | None) -> APIError:
    """The error of an answer that came to its end with nothing in it."""
    error = APIError(f"The answer is empty: it has neither text nor tokens; its finish_reason is {finish_reason}")
    error._benchmark_detail = "empty_answer"  # noqa: SLF001 - our own
    return error


def stream_error(error: Any) -> APIError:
    """The error of an object within a stream, or in an answer that says it is a success."""
    message = error.get("message") if isinstance(error, dict) else None
    shown = message if message and isinstance(message, str) else f"the server reported an error: {error!r:.{_SHOWN}}"
    return APIError(shown, error)


def _parsed(text: str) -> Any:
    """The JSON of a text, or the text where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
