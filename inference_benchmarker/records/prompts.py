"""The text of a prompt in blocks, each known by itself and all before it, as a server's prefix cache knows them. Pure.

No tokenizer is known, so a block is a number of bytes, not of tokens: 32 are about 8 tokens. This runs between the
requests of a worker, so what grows with a history is left to functions that are C.
"""

from __future__ import annotations

from itertools import chain
from json import dumps  # by its name: the user's code may put another function into the module
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCK_BYTES = 32
_ROLE_AND_CONTENT = itemgetter("role", "content")
ROW = Struct("<11q")
"""A turn as a worker reports it: session, turn, the instants ``sent`` and ``done``, the bytes of the prompt, its
tokens and the cached ones (-1: unknown), the number of the beginning that it has in common with others (-1: the turn
before, or none), and how many blocks it has of that, how many new ones, and how many its answer adds."""
MOST_REQUESTS, MOST_BYTES = 200_000, 1 << 29
"""Of those that are looked at, the first ones, and the bytes of their blocks: their sums take 64 MiB."""
MOST_LOOKED_AT = 1 << 18
"""Bytes of a prompt that are new in a request: they take 3 ms of the loop that sends. Of more, nothing is known."""
TOO_LONG = 1 << 32
"""Above all bytes and tokens of a prompt: of more nobody is believed, and so no sum of ours is refused."""
_A_MESSAGE, _A_MEMBER = 16, 64  # bytes that take as long to look at
_DEEPEST = 100  # members within members
_LONG, _SAMPLES = 4096, 1024
_PLAIN, _TEXTS = {2}, {str}  # a message of so many members has a role and a content alone

Spoken = tuple[str | None, str]
"""Whose words they are, and what is said; with None, a text that has all before it in it."""


class End(NamedTuple):
    """The place where a text ends: after so many ``blocks``, and a ``rest`` that is less than one."""

    blocks: int = 0
    rest: bytes = b""

    @property
    def size(self) -> int:
        """The bytes of the text."""
        return self.blocks * BLOCK_BYTES + len(self.rest)

    def after(self, asked: bytes, answer: bytes = b"") -> tuple[bytes, End, End]:
        """All whole blocks that a prompt and its answer add to this text, and where the one and the other end."""
        data = self.rest + asked + answer
        prompt = len(self.rest) + len(asked)
        whole, blocks = len(data) // BLOCK_BYTES, prompt // BLOCK_BYTES
        cut = whole * BLOCK_BYTES
        prompt_end = End(self.blocks + blocks, data[blocks * BLOCK_BYTES : prompt])
        return data[:cut], prompt_end, End(self.blocks + whole, data[cut:])


BEGIN = End()


class AnsweredTurn(NamedTuple):
    """A turn that was answered: what stands before its messages, these, and then its answer, where one is repeated.

    The first ``asked`` messages are its own, and end at ``prompt_end``; the whole ends at ``end``.
    """

    head: tuple[str, ...]
    spoken: list[Spoken]
    asked: int
    prompt_end: End
    end: End


class Prompt(NamedTuple):
    """The text that a request asks: what stands before its messages, and these.

    ``speaks``: whose words its answer is, where a later request repeats it.
    """

    head: tuple[str, ...]
    spoken: list[Spoken]
    speaks: str | None = "assistant"

    def continued(self, before: AnsweredTurn | None) -> tuple[int, End]:
        """The number of its messages that are of the turn before it, and where that ends there; 0 for no later turn."""
        if before is None or self.head != before.head:
            return 0, BEGIN
        whole, asked = len(before.spoken), before.asked
        if self.spoken[:whole] == before.spoken:
            return whole, before.end
        return (asked, before.prompt_end) if self.spoken[:asked] == before.spoken[:asked] else (0, BEGIN)


def bytes_of(head: Sequence[str], spoken: Sequence[Spoken]) -> bytes:
    """The text of what stands before messages, and of these; ValueError for one that is too long."""
    texts = [*head]
    for role, text in spoken:
        texts += (text,) if role is None else ("\n", role, "\n", text)
    _check_size(sum(map(len, texts)))
    data = "".join(texts).encode("utf-8", "surrogatepass")
    _check_size(len(data))
    return data


def prompt_of(payload: Any) -> Prompt | None:
    """The prompt of a request to a language model (OpenAI's or Anthropic's shape); None where it is none.

    It may stand in a tuple with what else ``invoke`` is given. Raises anything for what a client of the user's may send
    all the same: objects that are no JSON, and whose methods raise; ValueError for one with too many members.
    """
    asked = payload
    if type(payload) is tuple:
        asked = next((each for each in payload if type(each) is dict), None)
    if type(asked) is not dict:
        return None
    get = asked.get
    model, messages = get("model"), get("messages")
    if type(messages) is not list:
        prompt = get("prompt")
        return Prompt((_Texts().of(model), prompt), [], None) if type(prompt) is str else None
    _check_size(_A_MESSAGE * len(messages))
    tools, system = get("tools"), get("system")
    plain = _plain(messages)
    if plain is not None and type(model) is str and tools is system is None:
        return Prompt((model, "", ""), plain)
    texts = _Texts(_A_MESSAGE * len(messages))
    head = texts.of(model), texts.of(tools), texts.of(system)
    return Prompt(head, [_said(message, texts) for message in messages] if plain is None else plain)


def _plain(messages: list[Any]) -> list[Spoken] | None:
    """The role and the content of each message, where all have these two alone, and they are texts; else None."""
    try:
        if {*map(len, messages)} != _PLAIN:
            return None
        spoken = [*map(_ROLE_AND_CONTENT, messages)]
    except (KeyError, TypeError):  # not all are objects
        return None
    return spoken if {*map(type, chain.from_iterable(spoken))} == _TEXTS else None


def _said(message: Any, texts: _Texts) -> Spoken:
    """The role and the content of a message."""
    if type(message) is dict:
        role, content = message.get("role"), message.get("content")
        if {len(message)} == _PLAIN and type(role) is str:
            return role, texts.of(content)
    return None, f"\n{texts.of(message)}"


class _Texts:
    """Makes texts of a request's parts, of no more than is looked at of one."""

    __slots__ = ("_taken",)

    def __init__(self, taken: int = 0) -> None:
        self._taken = taken

    def of(self, value: Any) -> str:
        """The value as a model may read it: a text as it is, else JSON. A text costs nothing before it is compared."""
        if value is None:
            return ""
        return value if type(value) is str else dumps(self._brief(value), ensure_ascii=False)

    def _take(self, size: int) -> None:
        """Look at so many bytes more; ValueError where they are too many."""
        self._taken += size
        _check_size(self._taken)

    def _brief(self, value: Any, depth: int = 0) -> Any:
        """The same with a sum in place of an image or a sound: it has megabytes, and no model reads it as text."""
        self._take(_A_MEMBER if depth < _DEEPEST else MOST_LOOKED_AT + 1)  # a value may hold itself
        if isinstance(value, dict):
            return {self._brief(key, depth + 1): self._brief(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._brief(each, depth + 1) for each in value]
        if type(value) is not str:
            return value
        if _is_data(value):
            return _sum(value)
        self._take(len(value))
        return value


def _is_data(text: str) -> bool:
    """Tells base64 of megabytes from words, by where no space is."""
    return len(text) > _LONG and text.isascii() and len(text[:_LONG].split(None, 1)) == 1


def _sum(data: str) -> str:
    """The size and a sum of its beginning, its end and some between: it takes as long for any size."""
    sampled = data[:_SAMPLES] + data[:: len(data) // _SAMPLES] + data[-_SAMPLES:]
    return f"{len(data)} {crc32(sampled.encode('ascii'))}"


def _check_size(size: int) -> None:
    if size > MOST_LOOKED_AT:
        raise ValueError("longer than what is looked at of a prompt")
