"""OpenAI's chat completions, whole or as server-sent events with one token in each."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.embedded.config import FAILED_AS_CONFIGURED
from inference_benchmarker.embedded.http.messages import Answer, HttpError, json_answer
from inference_benchmarker.embedded.llm.kv_blocks import chain_of
from inference_benchmarker.embedded.llm.token_job import TokenJob
from inference_benchmarker.embedded.prefix_cache import PrefixCache
from inference_benchmarker.embedded.protocols.dialects import MODEL, Deferred, json_object, token
from inference_benchmarker.embedded.protocols.generation import MAX_TOKENS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.embedded.http.messages import Request
    from inference_benchmarker.embedded.protocols.dialects import Stream


class OpenAiDialect:
    """OpenAI's chat completions, whole or as server-sent events with one token in each.

    ``block_size``: tokens of a block of the LLM engine that computes them; None: there is none.
    """

    def __init__(
        self,
        tokens: int,
        finish_reason: str | None = None,
        *,
        echo: bool = False,
        prefix_cache: int = 0,
        tokens_per_piece: int = 1,
        block_size: int | None = None,
    ) -> None:
        self._tokens = tokens
        self._block_size = block_size
        self._echo = echo
        self._tokens_per_piece = tokens_per_piece
        self._prefixes = PrefixCache(prefix_cache)
        self._finish_reason = finish_reason

    def reply(self, request: Request, sequence: int) -> Answer | Stream | Deferred:
        """As many tokens as the request allows, else as many as configured."""
        asked = json_object(request.body)
        if self._block_size is not None:
            chat = asked_chat(asked, sequence, self._tokens, self._finish_reason, echo=self._echo)
            return self._computed(request, asked, chat, prompt_of(asked))
        return chat_completion(
            asked,
            sequence,
            self._tokens,
            self._finish_reason,
            cached=request.cached,
            echo=self._echo,
            prefixes=self._prefixes,
            tokens_per_piece=self._tokens_per_piece,
        )

    def _computed(
        self, request: Request, asked: dict[str, Any], chat: Chat, prompt: Sequence[str]
    ) -> Stream | Deferred:
        """The answer of an LLM engine, whose tokens come with the request. Raises HttpError."""
        assert self._block_size is not None
        if not prompt:
            raise HttpError(400, "the prompt must have at least one word, each of which is a token")
        chain = chain_of((*prompt, *chat.text().split()), self._block_size)
        request.job = TokenJob(len(prompt), chat.tokens, chain, self._tokens_per_piece)
        chat = replace(chat, job=request.job)
        return self._stream(asked, chat) if asked.get("stream") else Deferred(partial(self._whole, chat))

    def _stream(self, asked: dict[str, Any], chat: Chat) -> Stream:
        return chat_stream(asked, chat, self._tokens_per_piece)

    def _whole(self, chat: Chat) -> Answer:
        return chat.answer()

    def failure(self, status: int, reason: str, sequence: int) -> Answer:  # noqa: ARG002 - not all need all
        """OpenAI's error object."""
        kind = "invalid_request_error" if status < 500 else "server_error"
        return json_answer(status, {"error": {"message": reason, "type": kind, "param": None, "code": None}})

    @staticmethod
    def models() -> Answer:
        """The one model there is."""
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "inference-benchmarker"}
        return json_answer(200, {"object": "list", "data": [model]})


def chat_completion(
    asked: dict[str, Any],
    sequence: int,
    tokens: int,
    finish_reason: str | None,
    *,
    cached: bool | None = None,
    echo: bool = False,
    prefixes: PrefixCache | None = None,
    tokens_per_piece: int = 1,
) -> Answer | ChatStream:
    """The answer to a request with ``messages``, ``tokens`` long where it sets no limit. Raises HttpError.

    ``cached``: the whole prompt came from a cache; None without one. ``echo``: it repeats the words of the last
    message. ``prefixes``: a cache of how prompts begin.
    """
    chat = asked_chat(asked, sequence, tokens, finish_reason, echo=echo)
    known = None if cached is None else chat.prompt_tokens * cached
    if prefixes is not None and known is None:
        known = prefixes.take(prompt_of(asked), chat.text().split())
    chat = replace(chat, cached_tokens=known)
    return chat_stream(asked, chat, tokens_per_piece) if asked.get("stream") else chat.answer()


def prompt_of(asked: dict[str, Any]) -> list[str]:
    """The words of all messages, each of which is a token. Raises HttpError."""
    messages = asked.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        raise HttpError(400, "the body needs messages: a list with at least one object")
    return [word for message in messages for word in str(message.get("content")).split()]


def asked_chat(asked: dict[str, Any], sequence: int, tokens: int, finish_reason: str | None, *, echo: bool) -> Chat:
    """The chat that a request with ``messages`` asks for, without what a cache had of it. Raises HttpError."""
    chat = Chat.asked_for(asked, f"chatcmpl-{sequence}", tokens, len(prompt_of(asked)), finish_reason)
    if echo and (words := str(asked["messages"][-1].get("content")).split()):
        return replace(chat, words=tuple(words), tokens=min(chat.tokens, len(words)))
    return chat


def chat_stream(asked: dict[str, Any], chat: Chat, tokens_per_piece: int) -> ChatStream:
    """A chat as the stream that the request asks for."""
    return ChatStream(
        chat,
        wants_usage(asked),
        tokens_per_piece=tokens_per_piece,
        counts_pieces=wants_usage(asked, "continuous_usage_stats"),
    )


def wants_usage(asked: dict[str, Any], option: str = "include_usage") -> bool:
    """Tells whether a stream is to end with the token counts; or, as another ``option``, what else it is to have."""
    options = asked.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage")) and bool(options.get(option))


def _token_limit(asked: dict[str, Any]) -> int | None:
    for name in ("max_completion_tokens", "max_output_tokens", "max_tokens"):
        limit = asked.get(name)
        if limit is None:
            continue
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_TOKENS:
            raise HttpError(400, f"{name} is {limit!r}: it must be an integer from 1 to {MAX_TOKENS}")
        return limit
    return None


@dataclass(frozen=True, slots=True)
class Chat:
    """One completion: its tokens are the numbers from 0, a word each, or else ``words``.

    ``cached_tokens``: those of the prompt that were in a cache; None without one. ``job``: the LLM engine's, which
    knows instead; None without one.
    """

    id: str
    created: int
    model: str
    tokens: int
    prompt_tokens: int
    finish_reason: str
    cached_tokens: int | None = None
    words: tuple[str, ...] = ()
    job: TokenJob | None = None

    @classmethod
    def asked_for(
        cls, asked: dict[str, Any], name: str, tokens: int, prompt_tokens: int, finish_reason: str | None = None
    ) -> Self:
        """The completion that a request asks for; it ends for the reason given, else for its own. Raises HttpError."""
        limit = _token_limit(asked)
        finish_reason = finish_reason or ("length" if limit else "stop")
        model = str(asked.get("model", MODEL))
        return cls(name, int(time.time()), model, limit or tokens, prompt_tokens, finish_reason)

    def token(self, index: int) -> str:
        """The text of a token."""
        if self.words:
            return " " * (index > 0) + self.words[index]
        return token(index)

    def usage(self, tokens: int | None = None) -> dict[str, Any]:
        """The counts, of the first ``tokens`` of the answer or of all; where there is a cache, also what came of it."""
        generated = self.tokens if tokens is None else tokens
        total = self.prompt_tokens + generated
        counts = {"prompt_tokens": self.prompt_tokens, "completion_tokens": generated, "total_tokens": total}
        cached = self.cached_tokens if self.job is None else self.job.cached
        return counts if cached is None else {**counts, "prompt_tokens_details": {"cached_tokens": cached}}

    def envelope(self, kind: str) -> dict[str, object]:
        """The fields that stand around every object of this completion."""
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def text(self) -> str:
        """All tokens."""
        return "".join(map(self.token, range(self.tokens)))

    def answer(self) -> Answer:
        """The completion in one piece."""
        message = {"role": "assistant", "content": self.text()}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish_reason}
        content = {**self.envelope("chat.completion"), "choices": [choice], "usage": self.usage()}
        return json_answer(200, content)


class ChatStream:
    """A completion as server-sent events. Finish, usage and [DONE] leave with the last token.

    Each event has ``tokens_per_piece`` tokens, the last what is left; ``counts_pieces``: and the usage until then.
    """

    __slots__ = ("_chat", "_counts_pieces", "_include_usage", "_prefix", "_tokens_per_piece", "head", "pieces")
    kind = "chat.completion.chunk"

    def __init__(
        self, chat: Chat, include_usage: bool, *, tokens_per_piece: int = 1, counts_pieces: bool = False
    ) -> None:
        self.head = Answer(200, b"", "text/event-stream", {"Cache-Control": "no-cache"})
        self.pieces = -(-chat.tokens // tokens_per_piece)
        self._chat = chat
        self._include_usage = include_usage
        self._tokens_per_piece = tokens_per_piece
        self._counts_pieces = counts_pieces
        self._prefix = self._before_choice(None)

    def events(self, piece: int) -> Sequence[bytes]:
        """A piece of the answer."""
        prefix = self._before_choice(self._chat.usage(self._until(piece))) if self._counts_pieces else self._prefix
        token = f'{prefix}{self.change(piece)},"finish_reason":null}}]}}\n\n'.encode()
        return (token,) if piece < self.pieces - 1 else (token, *self._end())

    def _until(self, piece: int) -> int:
        """The tokens of the answer that there are with this piece."""
        return min((piece + 1) * self._tokens_per_piece, self._chat.tokens)

    def _before_choice(self, usage: dict[str, Any] | None) -> str:
        envelope = self._chat.envelope(self.kind) | ({"usage": usage} if self._include_usage else {})
        return f"data: {json.dumps(envelope, separators=(',', ':'))[:-1]}" + ',"choices":[{"index":0,'

    def broken(self) -> Sequence[bytes]:
        """An error object in place of a token, with nothing after it."""
        error = {"message": FAILED_AS_CONFIGURED, "type": "server_error", "param": None, "code": None}
        return (f"data: {json.dumps({'error': error}, separators=(',', ':'))}\n\n".encode(),)

    def change(self, piece: int | None) -> str:
        """The text that a piece adds to its choice (None: the end, nothing); the first says whose turn it is."""
        if piece is None:
            return '"delta":{}'
        role = '"role":"assistant",' if piece == 0 else ""
        return f'"delta":{{{role}"content":{json.dumps(self._text(piece))}}}'

    def _text(self, piece: int) -> str:
        return "".join(map(self._chat.token, range(piece * self._tokens_per_piece, self._until(piece))))

    def _end(self) -> Sequence[bytes]:
        finish = f'{self._prefix}{self.change(None)},"finish_reason":"{self._chat.finish_reason}"}}]}}\n\n'.encode()
        done = b"data: [DONE]\n\n"
        if not self._include_usage:
            return (finish, done)
        content = {**self._chat.envelope(self.kind), "choices": [], "usage": self._chat.usage()}
        return (finish, f"data: {json.dumps(content, separators=(',', ':'))}\n\n".encode(), done)
