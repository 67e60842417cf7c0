"""The other two of OpenAI's protocols: text completions and embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.embedded.http.messages import Answer, HttpError, json_answer
from inference_benchmarker.embedded.protocols.chat import Chat, ChatStream, OpenAiDialect, wants_usage
from inference_benchmarker.embedded.protocols.dialects import MODEL, json_object

if TYPE_CHECKING:
    from typing import Any

    from inference_benchmarker.embedded.http.messages import Request
    from inference_benchmarker.embedded.protocols.dialects import Deferred, Stream

_DIMENSIONS = 8


class CompletionsDialect(OpenAiDialect):
    """OpenAI's text completions, whole or as server-sent events with one token in each."""

    def reply(self, request: Request, sequence: int) -> Answer | Stream | Deferred:
        """As many tokens as the request allows, else as many as configured."""
        asked = json_object(request.body)
        prompt = _prompt(asked)
        chat = Chat.asked_for(asked, f"cmpl-{sequence}", self._tokens, len(prompt), self._finish_reason)
        if self._block_size is not None:
            return self._computed(request, asked, chat, prompt)
        return self._stream(asked, chat) if asked.get("stream") else self._whole(chat)

    def _stream(self, asked: dict[str, Any], chat: Chat) -> Stream:
        return TextStream(chat, wants_usage(asked), tokens_per_piece=self._tokens_per_piece)

    def _whole(self, chat: Chat) -> Answer:
        choice = {"index": 0, "text": chat.text(), "logprobs": None, "finish_reason": chat.finish_reason}
        return json_answer(200, {**chat.envelope(TextStream.kind), "choices": [choice], "usage": chat.usage()})


class TextStream(ChatStream):
    """A text completion as server-sent events."""

    __slots__ = ()
    kind = "text_completion"

    def change(self, piece: int | None) -> str:
        """The text of a token."""
        text = "" if piece is None else self._text(piece)
        return f'"text":"{text}","logprobs":null'


class EmbeddingsDialect(OpenAiDialect):
    """OpenAI's embeddings: of each input, a short vector that depends on its length alone."""

    def reply(self, request: Request, sequence: int) -> Answer:  # noqa: ARG002 - not all need all
        """A vector for each input."""
        asked = json_object(request.body)
        texts = texts_of(asked, "input")
        data = [
            {"object": "embedding", "index": index, "embedding": [1 / (len(text) + 1)] * _DIMENSIONS}
            for index, text in enumerate(texts)
        ]
        tokens = words(texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        model = str(asked.get("model", MODEL))
        return json_answer(200, {"object": "list", "data": data, "model": model, "usage": usage})


def _prompt(asked: dict[str, Any]) -> list[str]:
    """Each word of a text is a token, and each number of a prompt in token ids."""
    prompt = asked.get("prompt")
    if isinstance(prompt, list) and prompt and all(type(token) is int for token in prompt):
        return list(map(str, prompt))
    return [word for text in texts_of(asked, "prompt") for word in text.split()]


def texts_of(asked: dict[str, Any], name: str) -> list[str]:
    """One text or a list of them."""
    given = asked.get(name)
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise HttpError(400, f"the body needs {name}: a text, or a list with at least one")
    return texts


def words(texts: list[str]) -> int:
    """The words of all, each of which counts as a token."""
    return sum(len(text.split()) for text in texts)
