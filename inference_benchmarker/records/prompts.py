"""The text of a prompt in blocks, each known by itself and all before it, as a server's prefix cache knows them. Pure.

No tokenizer is known, so a block is a number of bytes, not of tokens: 32 are about 8 tokens.
"""

from __future__ import annotations

from array import array
from json import dumps  # by its name: the user's code may put another function into the module
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCK_BYTES = 32
_BLOCKS = Struct(f"{BLOCK_BYTES}s")
_ROLES = {role: f"\n{role}\n" for role in ("system", "developer", "user", "assistant", "tool")}
MOST_LOOKED_AT = 1 << 18
"""Bytes of a prompt that are new in a request: they take 3 ms of the loop that sends. Of more, nothing is known."""
_A_MESSAGE, _A_MEMBER = 16, 64  # bytes that take as long to look at
_DEEPEST = 100  # members within members
_LONG, _SAMPLES = 4096, 1024
_PLAIN = 2  # a message of so many members has a role and a content alone


class Prompt(NamedTuple):
    """The text that a request asks, in ``pieces``. ``head``: how many of them end with the first message.

    ``before_answer`` stands between it and its answer where a later request repeats both.
    """

    pieces: list[str]
    head: int
    before_answer: str


class Chain(NamedTuple):
    """The blocks of a text of ``size`` bytes: ``sums`` has one for each, which depends on all the text up to its end.

    ``rest``: what is left after the last whole one.
    """

    sums: array[int]
    rest: bytes
    size: int

    def grown(self, text: str) -> Chain:
        """The chain of this text and another one after it; ValueError for one that is too long."""
        added = text[: MOST_LOOKED_AT + 1].encode("utf-8", "surrogatepass")
        _check_size(len(added))
        data = self.rest + added
        whole = len(data) - len(data) % BLOCK_BYTES
        last = self.sums[-1] if self.sums else 0
        new = [last := crc32(block, last) for (block,) in _BLOCKS.iter_unpack(data[:whole])]
        return Chain(self.sums + array("I", new), data[whole:], self.size + len(added))


class Said(NamedTuple):
    """A turn that was answered: the ``pieces`` of its prompt, which are ``asked``, and of its answer, in blocks.

    The prompt alone has the first ``blocks`` of them, a ``rest``, and this ``size``: of a session not more is kept.
    """

    pieces: list[str]
    asked: int
    whole: Chain
    blocks: int
    rest: bytes
    size: int

    def continued(self, pieces: list[str]) -> tuple[int, Chain] | None:
        """The number of a later prompt's pieces that are of this turn, and their blocks; None for no later one."""
        if pieces[: self.asked] != self.pieces[: self.asked]:
            return None
        if pieces[: len(self.pieces)] == self.pieces:
            return len(self.pieces), self.whole
        return self.asked, Chain(self.whole.sums[: self.blocks], self.rest, self.size)


NO_TEXT = Chain(array("I"), b"", 0)


def joined(pieces: Sequence[str]) -> str:
    """The text of these pieces; ValueError for one that is too long."""
    _check_size(sum(map(len, pieces)))
    return "".join(pieces)


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
    messages = asked.get("messages")
    if type(messages) is not list:
        prompt = asked.get("prompt")
        return Prompt([_Texts().of(asked.get("model")), prompt], 2, "") if type(prompt) is str else None
    texts = _Texts()
    texts.take(_A_MESSAGE * len(messages))
    pieces = [texts.of(asked.get(name)) for name in ("model", "tools", "system")]
    head = len(pieces) + 2
    for message in messages:
        pieces += _said(message, texts)
    return Prompt(pieces, head, _ROLES["assistant"])


def _said(message: Any, texts: _Texts) -> Sequence[str]:
    """The role and the content of a message."""
    if type(message) is dict:
        role, content = message.get("role"), message.get("content")
        if len(message) == _PLAIN and type(role) is str:
            return _ROLES.get(role) or f"\n{role}\n", content if type(content) is str else texts.of(content)
    return "\n", texts.of(message)


class _Texts:
    """Makes texts of a request's parts, of no more than is looked at of one."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken = 0

    def of(self, value: Any) -> str:
        """The value as a model may read it: a text as it is, else JSON. A text costs nothing before it is compared."""
        if value is None:
            return ""
        return value if type(value) is str else dumps(self._brief(value), ensure_ascii=False)

    def take(self, size: int) -> None:
        """Look at so many bytes more; ValueError where they are too many."""
        self._taken += size
        _check_size(self._taken)

    def _brief(self, value: Any, depth: int = 0) -> Any:
        """The same with a sum in place of an image or a sound: it has megabytes, and no model reads it as text."""
        self.take(_A_MEMBER if depth < _DEEPEST else MOST_LOOKED_AT + 1)  # a value may hold itself
        if isinstance(value, dict):
            return {self._brief(key, depth + 1): self._brief(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._brief(each, depth + 1) for each in value]
        if type(value) is not str:
            return value
        if _is_data(value):
            return _sum(value)
        self.take(len(value))
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
