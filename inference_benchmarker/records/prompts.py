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
_LONG = 4096
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
        """The chain of this text and another one after it."""
        added = text.encode("utf-8", "surrogatepass")
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


def prompt_of(payload: Any) -> Prompt | None:
    """The prompt of a request to a language model (OpenAI's or Anthropic's shape); None where it is none.

    It may stand in a tuple with what else ``invoke`` is given.
    """
    try:
        return _prompt_of(payload)
    except (TypeError, ValueError, RecursionError):  # no JSON, which a client of the user's may send all the same
        return None


def _prompt_of(payload: Any) -> Prompt | None:
    asked = payload
    if type(payload) is tuple:
        asked = next((each for each in payload if type(each) is dict), None)
    if type(asked) is not dict:
        return None
    messages = asked.get("messages")
    if type(messages) is not list:
        prompt = asked.get("prompt")
        return Prompt([_text(asked.get("model")), prompt], 2, "") if type(prompt) is str else None
    pieces = [_text(asked.get(name)) for name in ("model", "tools", "system")]
    head = len(pieces) + 2
    for message in messages:
        pieces += _said(message)
    return Prompt(pieces, head, _ROLES["assistant"])


def _said(message: Any) -> Sequence[str]:
    """The role and the content of a message."""
    if type(message) is dict:
        role, content = message.get("role"), message.get("content")
        if len(message) == _PLAIN and type(role) is str:
            return _ROLES.get(role) or f"\n{role}\n", content if type(content) is str else _text(content)
    return "\n", _text(message)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if type(value) is str else dumps(_brief(value), ensure_ascii=False)


def _brief(value: Any) -> Any:
    """The same with its sum in place of a long text: an image has a megabyte, and no model reads it as text."""
    if type(value) is dict:
        return {key: _brief(each) for key, each in value.items()}
    if type(value) is list:
        return [_brief(each) for each in value]
    if type(value) is str and len(value) > _LONG:
        return f"{len(value)} {crc32(value.encode('utf-8', 'surrogatepass'))}"
    return value
