"""A client for what speaks OpenAI's API: chat, completions and embeddings, whole or as a stream of tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.clients.answer_parser import IncompleteAnswerError
from inference_benchmarker.clients.body_excerpt import shown
from inference_benchmarker.clients.http import HttpClient, HttpStatusError, merged
from inference_benchmarker.clients.openai_errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    empty_error,
    status_error,
    stream_error,
    unexpected_error,
    unreadable_error,
)
from inference_benchmarker.clients.piece_tokens import TokenCounter
from inference_benchmarker.clients.pool import Answer
from inference_benchmarker.clients.sse import EventReader
from inference_benchmarker.clients.usage import read_usage
from inference_benchmarker.records.pieces import Reasoning, answered
from inference_benchmarker.records.response import FAILING_REASONS, Response
from inference_benchmarker.records.user_metrics import PIECES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike
    from ssl import SSLContext


CHAT, COMPLETIONS, EMBEDDINGS = "/chat/completions", "/completions", "/embeddings"
_LIST = {CHAT: "choices", COMPLETIONS: "choices", EMBEDDINGS: "data"}  # without which an answer is none
_EMPTY_BY_RIGHT = frozenset(("content_filter", "tool_calls", "function_call"))
_DONE = b"[DONE]"
# Raised by reading JSON of another shape than the API's, what is no JSON, and a thousand lists in lists.
_MISSHAPEN = (AttributeError, TypeError, ValueError, RecursionError)
_SHOWN = 200
_parse = json.JSONDecoder().raw_decode  # without guessing an encoding, as json.loads does
_STREAM = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True, slots=True)
class Completion(Response):
    """A whole answer: ``content`` is the JSON object that the server sent, the rest what a record needs of it."""

    content: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str | None:
        """The text of its choices, without reasoning; None where it has none to have, as embeddings."""
        if "choices" not in self.content:
            return None
        return "".join(answered(_text(choice)) for choice in self.content["choices"])


class OpenAIClient:
    """Chat, completions and embeddings of a server at ``base_url``, as in ``http://127.0.0.1:8000/v1``.

    Create it once in a worker, for all its requests; each method can be a factories file's ``invoke``. A payload is
    the request's JSON object, or its bytes. The methods that stream are generators: each event that brings something
    the model generated (text, reasoning, a refusal, a tool call's arguments; of several choices all that it brings) is
    one piece of text, and a ``Response`` with the server's usage comes last, and as its metrics ``cached_tokens`` of
    the prompt and ``reasoning_tokens`` of the answer, where the server reports them. They add ``stream`` and
    ``stream_options.include_usage`` to an object that does not say otherwise; bytes are sent as they are. Where each
    event has its usage, as with ``stream_options.continuous_usage_stats``, a piece with several tokens is a ``Piece``.

    There are no retries, redirects or proxies. Errors have the openai package's names: APIStatusError and its kin
    (RateLimitError...), APIConnectionError, APITimeoutError, and APIError for an error within a stream; an answer that
    ends with the finish_reason ``abort`` or ``error`` raises FinishReasonError. ``query``: added to each path, as Azure
    wants it: ``api-version=2024-10-21``.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        query: str = "",
        verify: bool | str | PathLike[str] | SSLContext = True,
        connect_timeout_s: float | None = 5.0,
        read_timeout_s: float | None = 60.0,
    ) -> None:
        key = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._query = f"?{query}" if query else ""
        self._http = HttpClient(
            base_url,
            headers=merged({"Accept": "application/json, text/event-stream", **key}, headers or {}),
            verify=verify,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
        )

    def chat(self, payload: Any) -> Completion:
        """A chat completion in one piece."""
        return self._whole(CHAT, payload)

    def completions(self, payload: Any) -> Completion:
        """A completion in one piece."""
        return self._whole(COMPLETIONS, payload)

    def embeddings(self, payload: Any) -> Completion:
        """Embeddings of one or many inputs."""
        return self._whole(EMBEDDINGS, payload)

    def stream_chat(self, payload: Any, headers: Mapping[str, str] | None = None) -> Iterator[str | Response]:
        """A chat completion, piece by piece; ``headers`` of this request alone."""
        return self._streamed(CHAT, payload, headers)

    def stream_completions(self, payload: Any) -> Iterator[str | Response]:
        """A completion, piece by piece."""
        return self._streamed(COMPLETIONS, payload)

    def _whole(self, path: str, payload: Any) -> Completion:
        try:
            answer = self._http.request("POST", path + self._query, payload)
        except (HttpStatusError, OSError) as error:
            raise _translated(error) from error
        content = _json_object(answer.body)
        if content is None or content.get("error") or not content.get(_LIST[path]):
            raise unexpected_error(answer)
        finish_reason, has_text = None, path == EMBEDDINGS
        try:
            for choice in content.get("choices") or ():
                finish_reason = _finish_reason(choice, finish_reason)
                has_text = has_text or bool(_text(choice))
        except _MISSHAPEN as error:
            raise unexpected_error(answer) from error
        usage = read_usage(content.get("usage"), content.get("model"), finish_reason, timings=content.get("timings"))
        _check_not_empty(has_text, usage)
        size = len(answer.body)
        return Completion(
            usage.tokens_in, usage.tokens_out, size, usage.model, usage.finish_reason, usage.metrics, content
        )

    def _streamed(self, path: str, payload: Any, headers: Mapping[str, str] | None = None) -> Iterator[str | Response]:
        if isinstance(payload, dict):
            payload = _STREAM | payload
        try:
            connection = self._http.ask(payload, path + self._query, headers)
        except (HttpStatusError, OSError) as error:
            raise _translated(error) from error
        answer = _StreamedAnswer()
        try:
            if _is_no_stream(connection.headers.get("content-type", "")):
                raise unexpected_error(Answer(connection.status, connection.headers, connection.read_body()))
            events, begun = EventReader(), b""
            # One generator, not one within the other: a greenlet that waits keeps a copy of the stack for each level.
            while piece := connection.read_piece():
                begun = begun or piece
                for data in events.feed(piece):
                    if text := answer.take(data):
                        yield text
            for data in events.end():
                if text := answer.take_last(data):
                    yield text
            yield answer.end(begun)
        except OSError as error:
            raise _translated(error) from error
        finally:
            self._http.release(connection)


class _StreamedAnswer:
    """The facts that a stream's events have reported so far, beside the text they brought."""

    def __init__(self) -> None:
        self._usage: dict[str, Any] | None = None
        self._counter = TokenCounter()
        self._timings: Any = None
        self._model: str | None = None
        self._finish_reason: str | None = None
        self._done = self._has_text = False

    def take(self, data: bytes) -> str:
        """The text that the model generated, of an event's data. Raises APIError for an error in it."""
        if self._done or data.startswith(_DONE):  # behind it nothing belongs to the answer
            self._done = True
            return ""
        text, usage = "", None
        try:
            event, _ = _parse(data.decode().lstrip())
            if error_body := event.get("error"):
                raise stream_error(error_body)
            if usage := event.get("usage"):
                self._usage = usage
            if timings := event.get("timings"):
                self._timings = timings
            self._model = event.get("model") or self._model
            for choice in event.get("choices") or ():
                said = _text(choice)
                text = text + said if text else said
                if choice.get("finish_reason"):
                    self._finish_reason = _finish_reason(choice, self._finish_reason)
        except _MISSHAPEN as error:
            raise unreadable_error(data) from error
        if text:
            self._has_text = True
            text = self._counter.counted(text, usage)
        return text

    def take_last(self, data: bytes) -> str:
        """The text of an event that only the end of the stream ended. Raises IncompleteAnswerError where it was cut."""
        if not data.startswith(_DONE) and _json_object(data) is None:
            raise IncompleteAnswerError(f"the stream ended in the middle of an event: {shown(data, _SHOWN)!r}")
        return self.take(data)

    def end(self, begun: bytes) -> Response:
        """The usage.

        Raises IncompleteAnswerError where the stream's own end is missing, FinishReasonError, and APIError for a stream
        with nothing in it.
        """
        if not self._done and self._finish_reason is None:
            began = f"; it began with {shown(begun, _SHOWN)!r}" if begun else ""
            raise IncompleteAnswerError(f"the stream ended without a finish_reason and without [DONE]{began}")
        usage = read_usage(self._usage, self._model, self._finish_reason, timings=self._timings)
        _check_not_empty(self._has_text, usage)
        if self._counter.has_counted:
            usage = replace(usage, metrics={**(usage.metrics or {}), PIECES: self._counter.pieces})
        return usage


def _check_not_empty(has_text: bool, response: Response) -> None:
    """Raises APIError where nothing was generated: no text came and the usage has no tokens, for no reason that may be.

    A model may think without showing it, and end at once: then its tokens are reported.
    """
    if not (has_text or response.tokens_out or response.finish_reason in _EMPTY_BY_RIGHT):
        raise empty_error(response.finish_reason)


def _is_no_stream(content_type: str) -> bool:
    """Tells whether an answer is a page or one JSON object; lines of those are a stream."""
    return "json" in content_type.replace("jsonl", "") or "html" in content_type


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _text(choice: dict[str, Any]) -> str:
    """The text that the model generated of a choice. Raises one of ``_MISSHAPEN`` where there is something else."""
    delta: dict[str, Any] | None = choice.get("delta") or choice.get("message")
    if delta is None:
        return "" + (choice.get("text") or "")
    text: Any = delta.get("content") or ""
    if text and len(delta) == 1 and type(text) is str:
        return text
    thought: str = delta.get("reasoning_content") or delta.get("reasoning") or ""
    if type(text) is list:
        text, more = _of_parts(text)
        thought += more
    rest: str = delta.get("refusal") or ""
    for call in delta.get("tool_calls") or ():
        function = call.get("function") or {}
        rest += (function.get("name") or "") + (function.get("arguments") or "")
    said: str = "" + text + rest
    return Reasoning(text + thought + rest, said) if thought else said


def _of_parts(content: list[Any]) -> tuple[str, str]:
    """The text of a content that stands in parts, as Mistral's models send it, and what is thought in it."""
    thought = "".join(_of_parts(part["thinking"])[0] for part in content if part.get("thinking"))
    return "".join(part.get("text") or "" for part in content), thought


def _finish_reason(choice: dict[str, Any], before: str | None) -> str | None:
    """The reason for which an answer ended, with what a further choice of it says; of several one that failed."""
    reason = choice.get("finish_reason")
    return before if not reason or before in FAILING_REASONS else str(reason)


def _translated(error: Exception) -> APIError:
    """A failure under the name that the openai package has for it."""
    if isinstance(error, HttpStatusError):
        return status_error(Answer(error.status, error.headers, error.body))
    if isinstance(error, TimeoutError):
        return APITimeoutError(str(error))
    return APIConnectionError(str(error))
